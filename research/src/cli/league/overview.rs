//! One policy against the ones to beat: how many cells it loses, and by how many points it is ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{BASE, NO_CLONES, RIVAL, Tables, kind, paired, preempts, value, with_half};
use shed_sim::cli::presets::Kind;
use shed_sim::stats;

/// The policy of this project.
pub(super) const OWN: &str = "shed-prime";

/// Policies that it must never be behind.
pub(super) const RIVALS: [&str; 3] = [NO_CLONES, BASE, RIVAL];

/// Policies with the same rights where preemption is allowed.
const PREEMPTING: [&str; 3] = ["preemption{by=edf}", "preemption{by=lst}", "edf-admission"];

/// Points behind that count.
pub(super) const BEHIND: f64 = 1.0;

/// The results of all cells against one rival.
#[derive(Default)]
struct Tally {
    cells: usize,
    behind: usize,
    /// Behind by more than [`BEHIND`] in the mean.
    far_behind: usize,
    /// The 95 % interval reaches further behind than [`BEHIND`].
    unsure: usize,
}

/// A section per rival, with tables of one deadline factor; empty unless both policies were run. Whole days have tables
/// of their own.
pub(super) fn of(tables: &Tables, factor: &str) -> String {
    let mut text = String::new();
    let without = RIVALS.map(|rival| (rival, false));
    let with = PREEMPTING.map(|rival| (rival, true));
    for (rival, preempting) in without.into_iter().chain(with) {
        let mut tally = Tally::default();
        let mut rows: BTreeMap<String, BTreeMap<Load, String>> = BTreeMap::new();
        let tables = tables
            .iter()
            .filter(|(cell, _)| preempts(cell) == preempting && kind(cell) != Some(Kind::WholeDay));
        for (cell, table) in tables {
            let runs = table.runs.get(OWN).zip(table.runs.get(rival));
            let Some(ahead) = runs.and_then(|(own, other)| paired(own, other)) else {
                continue;
            };
            tally.add(&ahead);
            if value(cell, "--deadline-factor") == factor {
                let row = rows.entry(value(cell, "--preset")).or_default();
                row.insert(Load::of(cell), with_half(&ahead));
            }
        }
        if tally.cells > 0 {
            let against = match preempting {
                true => format!("{rival}, both with preemption"),
                false => rival.to_owned(),
            };
            text.push_str(&section(&against, factor, &tally, &rows));
        }
    }
    text
}

/// A load as written, in the order of its number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Load(u64, String);

impl Load {
    fn of(cell: &str) -> Self {
        let text = value(cell, "--load");
        let number: f64 = text.parse().unwrap_or(0.0);
        Self((number * 1000.0) as u64, text)
    }
}

fn section(
    rival: &str,
    factor: &str,
    tally: &Tally,
    rows: &BTreeMap<String, BTreeMap<Load, String>>,
) -> String {
    let Tally {
        cells,
        behind,
        far_behind,
        unsure,
    } = tally;
    let loads: BTreeSet<&Load> = rows.values().flat_map(BTreeMap::keys).collect();
    let names: Vec<&str> = loads.iter().map(|load| load.1.as_str()).collect();
    let mut text = format!(
        "## {OWN} against {rival}\n\n\
         Of {cells} cells, {OWN} is behind in {behind}, and by more than {BEHIND:.0} point in {far_behind}. In \
         {unsure} cells the 95 % interval reaches beyond that.\n\n\
         Points ahead at deadline factor k = {factor}, by preset and load:\n\n\
         | preset | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for (preset, cells) in rows {
        let cell = |load: &&Load| cells.get(*load).map_or("", String::as_str);
        let cells: Vec<&str> = loads.iter().map(cell).collect();
        let _ = writeln!(text, "| {preset} | {} |", cells.join(" | "));
    }
    text.push('\n');
    text
}

impl Tally {
    fn add(&mut self, ahead: &[f64]) {
        let mean = stats::mean(ahead);
        let half = stats::half_width_95(ahead).unwrap_or(0.0);
        self.cells += 1;
        self.behind += usize::from(mean < 0.0);
        self.far_behind += usize::from(mean < -BEHIND);
        self.unsure += usize::from(mean - half < -BEHIND);
    }
}
