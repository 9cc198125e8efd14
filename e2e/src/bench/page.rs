//! Parts of the pages of benches: the head, tables, and cells with a spread.

use std::collections::BTreeSet;

use super::results::Line;

/// Median and extremes over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean of the two middle ones, if the number is even.
    pub median: f64,
    /// Least value.
    pub least: f64,
    /// Greatest value.
    pub most: f64,
    /// Number of values.
    pub count: usize,
}

impl Spread {
    /// Of values; absent without any.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self {
            median,
            least,
            most,
            count: values.len(),
        })
    }
}

/// `median (least–greatest)`, or the value alone if there is one; a dash without any.
pub fn cell(spread: Option<Spread>, digits: usize) -> String {
    match spread {
        None => "–".to_owned(),
        Some(own) if own.count == 1 => format!("{:.digits$}", own.median),
        Some(own) => format!(
            "{:.digits$} ({:.digits$}–{:.digits$})",
            own.median, own.least, own.most
        ),
    }
}

/// A column of a table: its title, and its cell in a row.
pub type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

/// A table with a row for each of `rows`.
pub fn table<R>(columns: &[Column<'_, R>], rows: impl IntoIterator<Item = R>) -> String {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut text = table_head(&titles);
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(&row)).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// The first two lines of a table.
pub fn table_head(titles: &[&str]) -> String {
    format!(
        "| {} |\n|{}\n",
        titles.join(" | "),
        "---|".repeat(titles.len())
    )
}

/// The file of a bench's results, next to its page.
pub fn data_of(name: &str) -> String {
    format!("{name}.json")
}

/// The first lines of a page, up to its setup. `measured` begins the sentence about when that was.
pub fn head<L, F>(
    (title, name, data): (&str, &str, &str),
    measured: &str,
    lines: &[&Line<L, F>],
    note: &str,
) -> String {
    let file = data_of(name);
    let note = match note {
        "" => String::new(),
        note => format!("{note}\n"),
    };
    format!(
        "# {title}\n\n\
         `make {name}` writes this page. [{file}]({file}) has {data}.\n\n\
         {measured} on {} at revision {}, with Kubernetes {}, on {}.\n{note}\n\
         The control plane is real, and kwok simulates the nodes and pods.\n",
        listed(lines, Line::day),
        listed(lines, |line| &line.origin.revision),
        listed(lines, |line| &line.origin.kubernetes),
        listed(lines, |line| &line.origin.machine),
    )
}

fn listed<L, F>(lines: &[&Line<L, F>], of: fn(&Line<L, F>) -> &str) -> String {
    let all: BTreeSet<&str> = lines.iter().map(|line| of(line)).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_and_the_extremes() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.most), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn a_value_without_a_measurement_is_a_dash() {
        assert_eq!(cell(None, 2), "–");
        assert_eq!(cell(Spread::of(vec![1.5]), 1), "1.5");
        assert_eq!(cell(Spread::of(vec![1.0, 2.0]), 1), "1.5 (1.0–2.0)");
    }
}
