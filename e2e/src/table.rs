//! Tables for a terminal.

/// Rows whose columns are as wide as they need; the first is aligned left.
pub fn table(rows: &[Vec<String>]) -> String {
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(length)
            .max()
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or(0);
            match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            }
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("   ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "234".to_owned()],
        ];
        assert_eq!(table(&rows), "  a       1\n  bcd   234\n");
    }
}
