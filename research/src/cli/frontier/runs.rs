//! The runs of a frontier: cells by preset and load, and who makes each of them.

use std::ops::Range;

use super::frozen::Frozen;
use crate::cli::preset_cells::{self, value};
use shed_sim::cli::CliError;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::sweep::{CellRow, ResultsFile, Traces, run_cell};
use shed_sim::outcome::Figures;

/// The policy under study.
pub(super) const OWN: &str = "shed-prime";

/// The same policy, as another program has it.
pub(super) const FROZEN: &str = "shed-prime@frozen";

/// A preset at a load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Workload {
    pub(super) preset: String,
    /// As it was typed.
    pub(super) load: String,
    /// The other flags of its runs.
    pub(super) flags: String,
}

impl Workload {
    /// The runs of policies on some seeds; `policies` is a list with commas.
    pub(super) fn cells(&self, policies: &str, seeds: Range<u64>) -> Result<Vec<Cell>, CliError> {
        let flags = format!(
            "--load {} --seed {}..{} {}",
            self.load, seeds.start, seeds.end, self.flags
        );
        preset_cells::of(&self.preset, policies, &flags)
    }

    /// The runs of the frozen program.
    pub(super) fn frozen_cells(&self, seeds: Range<u64>) -> Result<Vec<Cell>, CliError> {
        let mut cells = self.cells(OWN, seeds)?;
        for cell in &mut cells {
            let (own, frozen) = (format!("--policy {OWN} "), format!("--policy {FROZEN} "));
            cell.name = cell.name.replacen(&own, &frozen, 1);
        }
        Ok(cells)
    }
}

/// The program that makes a run: this one, or the frozen one.
pub(super) struct Runner {
    pub(super) traces: Traces,
    pub(super) frozen: Option<Frozen>,
}

impl Runner {
    /// Makes a run.
    pub(super) fn run(&self, cell: &Cell) -> Result<CellRow, CliError> {
        match &self.frozen {
            Some(frozen) if value(&cell.name, "--policy") == FROZEN => frozen.run(cell),
            _ => run_cell(cell, &self.traces, None),
        }
    }
}

/// Figures of cells that were run, in their order.
pub(super) fn figures<'a>(
    results: &'a ResultsFile,
    cells: &[Cell],
) -> Result<Vec<&'a Figures>, CliError> {
    let of = |cell: &Cell| match results.row(&cell.name) {
        Some(row) => Ok(&row.figures),
        None => Err(CliError::Usage(format!("no result of `{}`", cell.name))),
    };
    cells.iter().map(of).collect()
}

/// Deadlines met, in percent, by run.
pub(super) fn percents(figures: &[&Figures]) -> Result<Vec<f64>, CliError> {
    let percent = |figures: &&Figures| figures.pocd.map(|share| 100.0 * share);
    let percents: Option<Vec<f64>> = figures.iter().map(percent).collect();
    percents.ok_or_else(|| {
        let message = "a run has no deadlines: give --deadline-factor, or a preset that has them";
        CliError::Usage(message.to_owned())
    })
}
