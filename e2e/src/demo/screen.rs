//! The printed output: a line per event, with the seconds since the start.

use std::time::Instant;

/// Prints lines with a clock.
#[derive(Clone)]
pub struct Screen {
    started: Instant,
}

impl Screen {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// Seconds since the start.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// One line about something that happened.
    pub fn say(&self, who: &str, what: &str) {
        println!("{:7.1} s  {who:<8}  {what}", self.seconds());
    }

    /// A heading.
    pub fn heading(&self, text: &str) {
        println!("\n{text}");
    }
}

/// Prints a table whose columns are as wide as they need; the first is aligned left.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<_> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
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
