//! A table that fits into a width: long texts are cut a little, then columns of little weight go.

use crate::words::{self, Tint};

/// Columns between two cells.
const GAP: usize = 2;
/// Before a column goes, others of text are cut to this.
const TEXT_KEPT: usize = 16;
/// A column of text is never cut below this.
const TEXT_MIN: usize = 6;

#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub head: &'static str,
    /// The lowest goes first if the table is too wide; 0 stays.
    pub rank: u8,
    /// Whether it has numbers, which stand at its right.
    pub is_number: bool,
}

/// A column that stays.
pub const fn fixed(head: &'static str) -> Column {
    ranked(head, 0)
}

/// A column that is left out if the table is too wide; those of lower rank first.
pub const fn ranked(head: &'static str, rank: u8) -> Column {
    Column {
        head,
        rank,
        is_number: false,
    }
}

impl Column {
    /// The same with numbers.
    pub const fn number(mut self) -> Self {
        self.is_number = true;
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tint: Tint,
}

pub fn tinted(tint: Tint, text: impl Into<String>) -> Cell {
    Cell {
        text: words::printable(&text.into()),
        tint,
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        tinted(Tint::Plain, text)
    }
}

/// The table as lines of at most this width.
pub fn render(columns: &[Column], rows: &[Vec<Cell>], width: usize, color: bool) -> String {
    let widths = columns.iter().enumerate().map(|(index, column)| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let widest = cells.map(|cell| cell.text.chars().count()).max();
        widest.unwrap_or(0).max(column.head.chars().count())
    });
    let mut shown: Vec<(usize, usize)> = widths.enumerate().collect();
    drop_columns(columns, &mut shown, width);
    cut_texts(columns, &mut shown, width);
    let mut text = String::new();
    let head: Vec<Cell> = columns
        .iter()
        .map(|column| tinted(Tint::Bold, column.head))
        .collect();
    for row in std::iter::once(&head).chain(rows) {
        text.push_str(&line(columns, &shown, row, color));
    }
    text
}

fn total(shown: &[(usize, usize)]) -> usize {
    let cells: usize = shown.iter().map(|(_, width)| width).sum();
    cells + GAP * shown.len().saturating_sub(1)
}

fn drop_columns(columns: &[Column], shown: &mut Vec<(usize, usize)>, width: usize) {
    while total(shown) > width.saturating_add(cuttable(columns, shown)) {
        let ranked = shown.iter().filter(|(index, _)| columns[*index].rank > 0);
        let Some(&(lowest, _)) = ranked.min_by_key(|(index, _)| columns[*index].rank) else {
            return;
        };
        shown.retain(|(index, _)| *index != lowest);
    }
}

/// Columns of the terminal that cuts of long texts give.
fn cuttable(columns: &[Column], shown: &[(usize, usize)]) -> usize {
    let texts = shown.iter().filter(|(index, _)| !columns[*index].is_number);
    texts
        .map(|(_, width)| width.saturating_sub(TEXT_KEPT))
        .sum()
}

fn cut_texts(columns: &[Column], shown: &mut [(usize, usize)], width: usize) {
    let mut excess = total(shown).saturating_sub(width);
    while excess > 0 {
        let texts = shown.iter_mut().filter(|(index, width)| {
            let column = columns[*index];
            !column.is_number && *width > column.head.chars().count().max(TEXT_MIN)
        });
        let Some((_, widest)) = texts.max_by_key(|(_, width)| *width) else {
            return;
        };
        *widest -= 1;
        excess -= 1;
    }
}

fn line(columns: &[Column], shown: &[(usize, usize)], row: &[Cell], color: bool) -> String {
    let cells = shown.iter().map(|&(index, width)| {
        let empty = Cell::from("");
        let cell = row.get(index).unwrap_or(&empty);
        let text = words::cut(&cell.text, width);
        let padded = match columns[index].is_number {
            true => format!("{text:>width$}"),
            false => format!("{text:<width$}"),
        };
        cell.tint.paint(color, &padded)
    });
    let cells: Vec<String> = cells.collect();
    format!("{}\n", cells.join(&" ".repeat(GAP)).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        fixed("NAME"),
        ranked("NODE", 1),
        ranked("PACE", 2).number(),
        fixed("STATE"),
    ];

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![
                "a-rather-long-name".into(),
                "node-1".into(),
                "5".into(),
                "Running".into(),
            ],
            vec![
                "b".into(),
                "node-22".into(),
                "10".into(),
                tinted(Tint::Red, "Failed"),
            ],
        ]
    }

    #[test]
    fn numbers_are_right_aligned_and_lines_have_no_trailing_blanks() {
        let text = render(&COLUMNS, &rows(), 80, false);
        let wanted = "NAME                NODE     PACE  STATE\n\
                      a-rather-long-name  node-1      5  Running\n\
                      b                   node-22    10  Failed\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn no_line_is_wider_than_the_table_may_be() {
        for width in 20..60 {
            let text = render(&COLUMNS, &rows(), width, false);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= width, "{width}:\n{text}");
        }
        let narrow = render(&COLUMNS, &rows(), 20, false);
        assert!(
            narrow.starts_with("NAME         STATE\na-rather-l…  Running\n"),
            "{narrow}"
        );
    }

    #[test]
    fn a_table_without_a_limit_keeps_long_texts() {
        let text = render(&COLUMNS, &rows(), usize::MAX, false);
        assert!(text.contains("a-rather-long-name  node-1 "), "{text}");
    }

    #[test]
    fn a_color_adds_no_columns() {
        let text = render(&COLUMNS, &rows(), 80, true);
        assert!(text.contains("\x1b[31mFailed \x1b[0m"), "{text}");
    }
}
