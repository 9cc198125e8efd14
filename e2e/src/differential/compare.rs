//! How two outcomes differ.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case::Case;
use super::explained::{ROWS, Row};
use super::outcome::Outcome;

/// A field in which two outcomes differ.
#[derive(Clone, Debug)]
pub struct Difference {
    pub field: String,
    pub builtin: Value,
    pub shed: Value,
    /// The row of the table that explains it.
    pub row: Option<&'static Row>,
}

/// The fields in which two outcomes differ.
pub fn differences(case: &Case, builtin: &Outcome, shed: &Outcome) -> Vec<Difference> {
    let names: BTreeSet<_> = builtin.fields.keys().chain(shed.fields.keys()).collect();
    let differing = names.into_iter().filter_map(|name| {
        let of = |outcome: &Outcome| outcome.fields.get(name).cloned().unwrap_or(Value::Null);
        if of(builtin) == of(shed) {
            return None;
        }
        let explains = |row: &&Row| row.field == name && (row.holds)(case, builtin, shed);
        let row = ROWS.iter().find(explains);
        Some(Difference {
            field: name.clone(),
            builtin: of(builtin),
            shed: of(shed),
            row,
        })
    });
    differing.collect()
}

/// Fields that differ and that no row explains.
pub fn unexplained(differences: &[Difference]) -> BTreeSet<String> {
    let without = differences.iter().filter(|own| own.row.is_none());
    without.map(|own| own.field.clone()).collect()
}
