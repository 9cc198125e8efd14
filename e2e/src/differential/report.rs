//! What the runs found, in words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use super::case::Case;
use super::compare::{Difference, unexplained};
use super::explained::ROWS;
use super::outcome::{Outcome, POD_SHAPES};

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
    /// Those that differed, and not each time.
    pub unsteady: Vec<Pair>,
    pub failed: Vec<Pair>,
    /// The cases in which each row of the table was used.
    pub used: BTreeMap<(&'static str, &'static str), Vec<String>>,
}

impl Report {
    /// Counts a case without an unexplained difference.
    pub fn take(&mut self, pair: &Pair) {
        self.equal += 1;
        self.refused += usize::from(pair.builtin.fields.contains_key("created"));
        for difference in &pair.differences {
            if let Some(row) = difference.row {
                let cases = self.used.entry((row.field, row.reason)).or_default();
                cases.push(pair.case.name.clone());
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
                "differed, and not each time: {} in {fields:?}",
                pair.case.name
            );
        }
        for row in ROWS {
            let cases = self.used.get(&(row.field, row.reason));
            let cases = cases.map_or(&[][..], Vec::as_slice);
            let (times, such_as) = (cases.len(), &cases[..cases.len().min(3)]);
            let (field, reason) = (row.field, row.reason);
            let _ = writeln!(
                text,
                "explained {times} times {such_as:?}: {field}: {reason}"
            );
        }
        let (refused, unsteady, failed) = (self.refused, self.unsteady.len(), self.failed.len());
        let _ = writeln!(
            text,
            "{} Jobs without an unexplained difference ({refused} refused by the apiserver), {unsteady} that differed \
             and not each time, {failed} that differ",
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
        let _ = writeln!(text, "  {}{explained}", own.field);
        for (name, value, other) in [
            ("built-in", &own.builtin, &own.shed),
            ("shed    ", &own.shed, &own.builtin),
        ] {
            let _ = writeln!(text, "    {name} {}", shown(&own.field, value, other));
        }
    }
    for (name, outcome) in [("built-in", &pair.builtin), ("shed", &pair.shed)] {
        let _ = writeln!(text, "  {name}:\n    {}", outcome.trail.join("\n    "));
    }
    let _ = writeln!(text, "---\n{}", pair.case.yaml());
    text
}

/// A value of a field. Of the pods it is what only this controller's have.
fn shown(field: &str, value: &Value, other: &Value) -> String {
    let fields = |value: &Value| {
        let mut all = BTreeSet::new();
        let texts = value.as_array().into_iter().flatten();
        for shape in texts.filter_map(Value::as_str) {
            let shape: Value = serde_json::from_str(shape).unwrap_or_default();
            let name = shape["name"].as_str().unwrap_or_default();
            leaves(&shape, name, &mut all);
        }
        all
    };
    let (own, others) = (fields(value), fields(other));
    let only: Vec<_> = own.difference(&others).map(String::as_str).collect();
    match field == POD_SHAPES && own != others {
        true => only.join("\n             "),
        false => value.to_string(),
    }
}

/// Each leaf of a document, with its path.
fn leaves(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{path} {name}"), all);
            }
        }
        Value::Array(items) => {
            for item in items {
                leaves(item, path, all);
            }
        }
        leaf => drop(all.insert(format!("{path}: {leaf}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_pods_that_differ_the_differing_fields_are_shown() {
        let shapes = |node: &str| {
            let shape = json!({"name": "a-0-", "spec": {"restartPolicy": "Never", "node": [node]}});
            json!([shape.to_string()])
        };
        let shown = shown(POD_SHAPES, &shapes("x"), &shapes("y"));
        assert_eq!(shown, r#"a-0- spec node: "x""#);
    }
}
