//! What each policy's clones cost, by preset, over all loads of one deadline factor.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::clone_counts::{CloneCounts, or_dash};
use super::{Tables, label, value};

/// The section; empty if no cell has that deadline factor.
pub(super) fn of(tables: &Tables, factor: &str) -> String {
    let mut figures: BTreeMap<(String, &str), Vec<_>> = BTreeMap::new();
    for (cell, table) in tables {
        if value(cell, "--deadline-factor") != factor {
            continue;
        }
        for (policy, runs) in &table.runs {
            let row = figures.entry((label(cell), policy.as_str()));
            row.or_default().extend(runs.values());
        }
    }
    if figures.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Clones\n\n\
         At deadline factor k = {factor}, over all loads. The last column has the slot-seconds per run of attempts that did not \
         win, and their share of all slot-seconds.\n\n\
         | preset | policy | clones per task | clones per win | slot-seconds not won |\n\
         |---|---|---|---|---|\n"
    );
    for ((preset, policy), runs) in figures {
        let counts = CloneCounts::of(runs);
        let (per_task, per_win) = (or_dash(counts.per_task(), 2), or_dash(counts.per_win(), 1));
        let share = or_dash(counts.lost_share().map(|share| 100.0 * share), 0);
        let lost = counts.lost_per_run();
        let _ = writeln!(
            text,
            "| {preset} | {policy} | {per_task} | {per_win} | {lost:.0} ({share} %) |"
        );
    }
    text.push('\n');
    text
}
