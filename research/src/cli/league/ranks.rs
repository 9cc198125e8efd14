//! Policies ranked within each kind of preset, those that may preempt apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Tables, kind, preempts, shares};
use shed_sim::cli::presets::Kind;
use shed_sim::stats;

/// The mean over the cells of one kind, and how many these are.
type Means = BTreeMap<(String, Kind), (f64, usize)>;

/// The section: a table without preemption, and one with it.
pub(super) fn of(tables: &Tables) -> String {
    let mut text = "## By kind of preset\n\n\
         Deadlines met in percent, over all cells of one kind, and the rank by them. A policy that lacks a cell that \
         another has gets no figure. [Method](method.md#workloads) has the presets of each kind.\n\n"
        .to_owned();
    for (preempting, title) in [(false, "Without preemption"), (true, "With preemption")] {
        let means = means(tables, preempting);
        if !means.is_empty() {
            let _ = writeln!(text, "{title}:\n\n{}", table(&means));
        }
    }
    text
}

fn means(tables: &Tables, preempting: bool) -> Means {
    let mut met: BTreeMap<(String, Kind), Vec<f64>> = BTreeMap::new();
    for (cell, table) in tables {
        let Some(kind) = kind(cell).filter(|_| preempts(cell) == preempting) else {
            continue;
        };
        for (policy, runs) in &table.runs {
            let mean = stats::mean(&shares(runs));
            met.entry((policy.clone(), kind)).or_default().push(mean);
        }
    }
    let mean = |cells: Vec<f64>| (stats::mean(&cells), cells.len());
    met.into_iter()
        .map(|(key, cells)| (key, mean(cells)))
        .collect()
}

fn table(means: &Means) -> String {
    let kinds: BTreeSet<Kind> = means.keys().map(|(_, kind)| *kind).collect();
    let policies: BTreeSet<&String> = means.keys().map(|(policy, _)| policy).collect();
    // Means over different cells do not compare.
    let full = |kind: Kind| -> BTreeMap<&String, f64> {
        let of_kind = means.iter().filter(|((_, of), _)| *of == kind);
        let most = of_kind.clone().map(|(_, (_, cells))| *cells).max();
        let whole = of_kind.filter(|(_, (_, cells))| Some(*cells) == most);
        whole
            .map(|((policy, _), (mean, _))| (policy, *mean))
            .collect()
    };
    let columns: Vec<(Kind, BTreeMap<&String, f64>)> =
        kinds.into_iter().map(|kind| (kind, full(kind))).collect();
    let names: Vec<&str> = columns.iter().map(|(kind, _)| kind.name()).collect();
    let mut text = format!(
        "| policy | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for policy in policies {
        let cell = |(_, column): &(Kind, BTreeMap<&String, f64>)| {
            column.get(policy).map_or("–".to_owned(), |mean| {
                let ahead = column.values().filter(|other| *other > mean).count();
                format!("{mean:.1} ({})", ahead + 1)
            })
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        let _ = writeln!(text, "| `{policy}` | {} |", cells.join(" | "));
    }
    text
}
