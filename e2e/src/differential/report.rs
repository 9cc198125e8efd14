//! What the runs found, in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::case::Case;
use super::compare::{Difference, unexplained};
use super::explained::ROWS;
use super::outcome::Outcome;

/// One case, run under both controllers.
#[derive(Clone, Debug)]
pub struct Pair {
    pub case: Case,
    pub builtin: Outcome,
    pub shed: Outcome,
    pub differences: Vec<Difference>,
}

/// The result of all cases.
#[derive(Debug, Default)]
pub struct Report {
    /// How many were equal, but for what the table explains.
    pub equal: usize,
    /// How many the apiserver refused.
    pub refused: usize,
    /// Those that differed once, and not again.
    pub unsteady: Vec<Pair>,
    pub failed: Vec<Pair>,
    /// How often each row of the table was used.
    pub used: BTreeMap<(&'static str, &'static str), usize>,
}

impl Report {
    /// Counts a case without an unexplained difference.
    pub fn take(&mut self, pair: &Pair) {
        self.equal += 1;
        self.refused += usize::from(pair.builtin.fields.contains_key("created"));
        for difference in &pair.differences {
            if let Some(row) = difference.row {
                *self.used.entry((row.field, row.reason)).or_default() += 1;
            }
        }
    }

    /// Whether shed does what the built-in controller does. What differs only sometimes counts if it is more than one
    /// in a hundred cases.
    pub fn is_clean(&self) -> bool {
        let all = self.equal + self.unsteady.len() + self.failed.len();
        self.failed.is_empty() && self.unsteady.len() * 100 <= all
    }

    /// All of it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for pair in &self.failed {
            let _ = writeln!(text, "\n{}", difference(pair));
        }
        for pair in &self.unsteady {
            let fields = unexplained(&pair.differences);
            let _ = writeln!(
                text,
                "differed once, and not again: {} in {fields:?}",
                pair.case.name
            );
        }
        for row in ROWS {
            let used = self.used.get(&(row.field, row.reason)).unwrap_or(&0);
            let _ = writeln!(
                text,
                "explained {used} times: {}: {}",
                row.field, row.reason
            );
        }
        let (refused, unsteady, failed) = (self.refused, self.unsteady.len(), self.failed.len());
        let _ = writeln!(
            text,
            "{} Jobs without an unexplained difference ({refused} refused by the apiserver), {unsteady} that differed \
             once and not again, {failed} that differ",
            self.equal
        );
        text
    }
}

/// A case that differs, with both ways there.
pub fn difference(pair: &Pair) -> String {
    let mut text = format!("{} differs:\n", pair.case.name);
    for own in &pair.differences {
        let explained = if own.row.is_some() {
            " (explained)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  {}{explained}\n    built-in {}\n    shed     {}",
            own.field, own.builtin, own.shed
        );
    }
    for (name, outcome) in [("built-in", &pair.builtin), ("shed", &pair.shed)] {
        let _ = writeln!(text, "  {name}:\n    {}", outcome.trail.join("\n    "));
    }
    let _ = writeln!(text, "---\n{}", pair.case.yaml());
    text
}
