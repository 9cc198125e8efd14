//! The closed forms on the page of the reproduction are those that the code computes.

use std::collections::BTreeMap;
use std::path::Path;

use shed_formulas::closed_forms::{self, Expected};

/// Number of columns of a table of printed values, and of one of reference values.
const PRINTED: usize = 7;
const REFERENCE: usize = 6;

/// The cells of all rows of a page, by figure and first cell.
type Rows = BTreeMap<(String, String), Vec<String>>;

fn rows_of(page: &str) -> Rows {
    let mut rows = Rows::new();
    let mut figure = String::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            figure = heading.split(':').next().unwrap_or_default().to_owned();
        }
        let row = line
            .strip_prefix("| ")
            .and_then(|row| row.strip_suffix(" |"));
        let cells: Vec<String> = row.map_or_else(Vec::new, |row| {
            row.split(" | ").map(str::to_owned).collect()
        });
        if let Some(what) = cells.first() {
            rows.insert((figure.clone(), what.clone()), cells);
        }
    }
    rows
}

/// Whether a printed number is the value, rounded to its digits.
fn is_rounded(text: &str, value: f64) -> bool {
    let Ok(number) = text.parse::<f64>() else {
        return false;
    };
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    (number - value).abs() <= 0.5000001 * 10f64.powi(-(digits as i32))
}

/// What is wrong with the page.
fn faults(page: &str) -> Vec<String> {
    let mut rows = rows_of(page);
    let mut faults = Vec::new();
    for group in closed_forms::GROUPS {
        for form in closed_forms::of(group.id) {
            let key = (group.id.to_owned(), form.what.clone());
            let Some(cells) = rows.remove(&key) else {
                faults.push(format!("{}: no row `{}`", group.id, form.what));
                continue;
            };
            let (columns, at) = match form.expected {
                Expected::Printed { .. } | Expected::AtMost { .. } => (PRINTED, 3),
                Expected::Specified { .. } => (REFERENCE, 2),
                Expected::Pictured => (2, 1),
            };
            let verdict = match form.expected.agrees(form.ours) {
                _ if columns == 2 => cells[1].as_str(),
                true => "holds",
                false => "**differs**",
            };
            let is_right = cells.len() == columns
                && is_rounded(&cells[at], form.ours)
                && cells.last().is_some_and(|last| last == verdict);
            if !is_right {
                faults.push(format!("{}: {cells:?}, but it is {}", group.id, form.ours));
            }
        }
    }
    for ((figure, what), cells) in rows {
        let is_head = cells.iter().any(|cell| cell == "verdict") || cells == ["what", "ours"];
        if closed_forms::GROUPS.iter().any(|group| group.id == figure) && !is_head {
            faults.push(format!("{figure}: `{what}` is not computed any more"));
        }
    }
    faults
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/research/reproduction.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_page_has_every_closed_form_as_it_is_computed() {
    let faults = faults(&page());
    assert!(
        faults.is_empty(),
        "docs/research/reproduction.md: {}\nwrite it with `shed-lab reproduce all --out`",
        faults.join("\n")
    );
}

#[test]
fn a_changed_a_missing_and_a_superfluous_row_are_faults() {
    let page = page();
    for (from, to) in [
        (
            "| θ in s, D 350 s | 74.5 | 74.5 |",
            "| θ in s, D 350 s | 74.5 | 74.6 |",
        ),
        ("| θ in s, D 350 s |", "| θ in s, D 351 s |"),
        ("| σ* at α 2 | Figure 5, section V.B |", "| σ* at α 2 |"),
    ] {
        let changed = page.replacen(from, to, 1);
        assert_ne!(changed, page, "{from}");
        assert!(!faults(&changed).is_empty(), "{from}");
    }
}
