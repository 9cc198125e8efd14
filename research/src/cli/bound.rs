//! `bound`: the upper bound for all policies.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use crate::bound::{Bound, Conditions, bound};
use shed_sim::cli::CliError;
use shed_sim::cli::lists::{self, Cell, Lists};
use shed_sim::cli::options::Prepared;
use shed_sim::cli::output::{self, Format};
use shed_sim::cli::sweep::{Traces, read_traces};
use shed_sim::stats;

pub(super) const EXAMPLES: &str = "\
Every flag of `shed-sim run` takes a list with commas, and --seed ranges such as 0..20; flags that only
matter to a policy are ignored. docs/research/bound.md says what the bound is and why it holds.

Example:
    shed-lab bound --preset pareto --load 0.8,1.5 --seed 0..20 --draws 1,6,60";

#[derive(Debug, Args)]
pub(super) struct BoundArgs {
    /// K: number of samples per task, its first attempt included. The bound does not hold for a
    /// policy that launches more attempts of a task.
    #[arg(
        long,
        value_name = "K",
        value_delimiter = ',',
        default_value = "1,6,60",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    draws: Vec<u32>,
    /// How results are written.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    lists: Lists,
}

/// The bound of one run.
#[derive(Debug, Clone, Serialize)]
struct BoundRow {
    /// The flags of the run.
    cell: String,
    draws: u32,
    seed: u64,
    /// Jobs with a deadline.
    jobs: usize,
    /// Jobs that would be in time if each ran alone.
    alone: usize,
    /// No policy has more of them in time.
    most: usize,
    /// `most` over `jobs`.
    bound: f64,
}

pub(super) fn run(args: &BoundArgs) -> Result<(), CliError> {
    let cells = args.lists.cells()?;
    let traces = read_traces(&cells)?;
    let mut rows = Vec::new();
    for cell in &cells {
        let prepared = prepare(cell, &traces)?;
        for &draws in &args.draws {
            let found = of(&prepared, draws)?;
            rows.push(BoundRow {
                cell: lists::without(&cell.name, &["--policy", "--order", "--seed"]),
                draws,
                seed: cell.options.seed,
                jobs: found.jobs,
                alone: found.alone,
                most: found.most,
                bound: found.most as f64 / found.jobs.max(1) as f64,
            });
        }
    }
    output::write_to_stdout(&match args.format {
        Format::Json => output::json_lines(&rows)?,
        Format::Csv => output::csv(&rows)?,
        Format::Table => table(&rows).into_bytes(),
    })
}

/// The run of a cell.
pub(super) fn prepare(cell: &Cell, traces: &Traces) -> Result<Prepared, CliError> {
    match traces.get(&cell.options.trace) {
        Some(trace) => cell.options.prepare_with(trace.clone()),
        None => cell.options.prepare(),
    }
}

/// The bound of a run with `draws` samples per task.
pub(super) fn of(prepared: &Prepared, draws: u32) -> Result<Bound, CliError> {
    let Some(slots) = prepared.slots else {
        let message = "the bound is one of equal slots: use --slots instead of --nodes";
        return Err(CliError::Usage(message.into()));
    };
    let conditions = Conditions {
        slots,
        model: prepared.settings.model,
        launch_overhead: prepared.settings.launch_overhead,
        draws,
        seed: prepared.settings.seed,
    };
    Ok(bound(&prepared.workload, &conditions))
}

fn table(rows: &[BoundRow]) -> String {
    let mut cells: BTreeMap<(&str, u32), Vec<&BoundRow>> = BTreeMap::new();
    for row in rows {
        cells.entry((&row.cell, row.draws)).or_default().push(row);
    }
    let (mut text, mut last) = (String::new(), None);
    for ((cell, draws), rows) in cells {
        if last != Some(cell) {
            text.push_str(&format!("{cell}\n"));
            last = Some(cell);
        }
        let share = |of: fn(&BoundRow) -> usize| {
            let shares = rows.iter();
            let shares = shares.map(|row| 100.0 * of(row) as f64 / row.jobs.max(1) as f64);
            shares.collect::<Vec<f64>>()
        };
        let most = share(|row| row.most);
        let spread = stats::half_width_95(&most).map_or(String::new(), |h| format!(" ± {h:.2}"));
        let alone = stats::mean(&share(|row| row.alone));
        text.push_str(&format!(
            "  K = {draws}: at most {:.2}{spread} % ({alone:.2} % if each job were alone, {} seeds)\n",
            stats::mean(&most),
            rows.len()
        ));
    }
    text
}
