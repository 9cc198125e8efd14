//! One policy against the ones to beat, a line per cell: where it is ahead, and where it is not.

use std::fmt::Write as _;

use super::{BASE, Tables, paired, shares, value, with_half};
use shed_sim::stats;

/// The policy of this project.
const OWN: &str = "shed-prime";

/// Those that it must never be behind.
const RIVALS: [&str; 2] = [BASE, "s-resume-event"];

/// So many points behind count.
const BEHIND: f64 = 1.0;

/// How the cells of one rival came out.
#[derive(Default)]
struct Tally {
    cells: usize,
    behind: usize,
    /// Behind by more than [`BEHIND`] on the mean.
    far_behind: usize,
    /// Not shown to be less than that behind: the 95 % interval reaches beyond it.
    unsure: usize,
}

/// The section; empty unless all of them were run.
pub(super) fn of(tables: &Tables) -> String {
    let mut tallies: [Tally; RIVALS.len()] = Default::default();
    let mut rows = String::new();
    for (cell, table) in tables {
        let Some(own) = table.runs.get(OWN) else {
            continue;
        };
        let differences = RIVALS.map(|rival| paired(own, table.runs.get(rival)?));
        if differences.iter().any(Option::is_none) {
            continue;
        }
        let own = stats::mean(&shares(own));
        let bound = stats::mean(&table.bound());
        let flags = ["--preset", "--load", "--deadline-factor"].map(|flag| value(cell, flag));
        let _ = write!(rows, "| {} | {bound:.1} | {own:.1} |", flags.join(" | "));
        for (difference, tally) in differences.iter().flatten().zip(&mut tallies) {
            tally.add(difference);
            let _ = write!(rows, " {} |", with_half(difference));
        }
        rows.push('\n');
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("## {OWN} against the ones to beat\n\n");
    for (rival, tally) in RIVALS.iter().zip(&tallies) {
        let Tally {
            cells,
            behind,
            far_behind,
            unsure,
        } = tally;
        let _ = writeln!(
            text,
            "- Of {cells} cells it is behind `{rival}` in {behind}, by more than {BEHIND:.0} point in \
             {far_behind}; in {unsure} the 95 % interval reaches beyond that."
        );
    }
    let _ = write!(
        text,
        "\n| preset | load | k | bound % | {OWN} % | to {} |\n|---|---|---|---|---|---|---|\n{rows}\n",
        RIVALS.join(" | to ")
    );
    text
}

impl Tally {
    fn add(&mut self, difference: &[f64]) {
        let mean = stats::mean(difference);
        let half = stats::half_width_95(difference).unwrap_or(0.0);
        self.cells += 1;
        self.behind += usize::from(mean < 0.0);
        self.far_behind += usize::from(mean < -BEHIND);
        self.unsure += usize::from(mean - half < -BEHIND);
    }
}
