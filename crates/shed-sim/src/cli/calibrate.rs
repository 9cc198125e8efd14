//! `calibrate`: predicted PoCDs against what happened.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

mod closed_form;

use super::CliError;
use super::bound::prepare;
use super::lists::{self, Cell, Lists};
use super::output::{self, Format};
use super::sweep::{Traces, read_traces};
use crate::calibration::{Calibration, MOMENTS, Prediction, Predictions};
use crate::engine::Engine;
use crate::settings::Passes;

pub(super) const EXAMPLES: &str = "\
Every flag of `run` takes a list with commas, and --seed ranges such as 0..20: runs that differ in
their seed alone are one sample. Jobs of several stages are left out.

Example:
    shed-sim calibrate --preset A --seed 0..8 --policy shed-plus{law=best},shed-prime
    shed-sim calibrate --formulas --preset A --policy chronos-s-resume{theta_c=0,r_min=0,max_clones=1}";

#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// How results are written.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// What the paper's formula for the policy says at submission, instead of what the planner
    /// says: for hadoop-ns, chronos-clone, chronos-s-restart, chronos-s-resume and srquant, each
    /// with as many clones per task as `max_clones`.
    #[arg(long)]
    formulas: bool,
    #[command(flatten)]
    lists: Lists,
}

/// The predictions of one moment in one cell.
#[derive(Debug, Clone, Serialize)]
struct CalibrationRow {
    /// The flags of its runs but for the seed.
    cell: String,
    /// The share of the time to the deadline that had passed; 0: as soon as the PoCD was known.
    moment: f64,
    #[serde(flatten)]
    calibration: Calibration,
}

pub(super) fn run(args: &CalibrateArgs) -> Result<(), CliError> {
    if args.format == Format::Csv {
        let message = "--format csv: bins do not fit a row; use json";
        return Err(CliError::Usage(message.into()));
    }
    let cells = args.lists.cells()?;
    let traces = read_traces(&cells)?;
    let mut seen: BTreeMap<String, [Vec<Prediction>; MOMENTS.len()]> = BTreeMap::new();
    for cell in &cells {
        let name = lists::without(&cell.name, &["--seed"]);
        let of_cell = seen.entry(name).or_default();
        predict(cell, &traces, of_cell, args.formulas)?;
    }
    let mut rows = Vec::new();
    for (cell, moments) in seen {
        for (predictions, moment) in moments.iter().zip(MOMENTS) {
            rows.extend(
                Calibration::of(predictions).map(|calibration| CalibrationRow {
                    cell: cell.clone(),
                    moment,
                    calibration,
                }),
            );
        }
    }
    if rows.is_empty() {
        let message = "nothing was predicted: jobs of one stage with deadlines are needed \
                       (--deadline-factor gives some)";
        return Err(CliError::Usage(message.into()));
    }
    output::write_to_stdout(&match args.format {
        Format::Json => output::json_lines(&rows)?,
        _ => table(&rows).into_bytes(),
    })
}

/// Runs the cell and adds what was predicted of each job, and whether that came.
fn predict(
    cell: &Cell,
    traces: &Traces,
    moments: &mut [Vec<Prediction>; MOMENTS.len()],
    formulas: bool,
) -> Result<(), CliError> {
    let mut prepared = prepare(cell, traces)?;
    let policy = prepared.settings.policy.speculation.clone();
    if formulas && !closed_form::exists(&policy) {
        let name = &cell.options.policy;
        let message = format!("--formulas: `{name}` has none; chronos-s-resume and hadoop-ns have");
        return Err(CliError::Usage(message));
    }
    prepared.settings.passes = Passes::Full;
    let mut predictions = Predictions::default();
    let engine = Engine::new(&prepared.settings, &prepared.workload);
    let outcome = engine.watched(&mut predictions).run()?;
    let jobs = prepared.workload.jobs.iter().zip(&outcome.jobs);
    for (position, (job, ended)) in jobs.enumerate() {
        if job.stages.len() != 1 || ended.deadline.is_none() {
            continue;
        }
        let predicted = if formulas {
            [closed_form::pocd(&policy, job), None, None, None]
        } else {
            predictions.of_job(position)
        };
        for (moment, pocd) in moments.iter_mut().zip(predicted) {
            let met = ended.met();
            moment.extend(pocd.map(|pocd| Prediction { pocd, met }));
        }
    }
    Ok(())
}

fn table(rows: &[CalibrationRow]) -> String {
    let (mut text, mut last) = (String::new(), None);
    for row in rows {
        if last != Some(&row.cell) {
            text.push_str(&format!("{}\n", row.cell));
            last = Some(&row.cell);
        }
        let of = &row.calibration;
        let skill = of
            .skill
            .map_or("-".to_owned(), |skill| format!("{skill:.3}"));
        text.push_str(&format!(
            "  at {:.0} %: {} predictions, Brier {:.4} (base rate {:.4}), skill {skill}\n",
            row.moment * 100.0,
            of.count,
            of.brier,
            of.brier_of_base_rate
        ));
        for bin in &of.bins {
            text.push_str(&format!(
                "      {:6} said {:5.1} %, came {:5.1} % (off by {:+5.1}, standard error {:.1})\n",
                bin.count,
                bin.predicted * 100.0,
                bin.happened * 100.0,
                (bin.happened - bin.predicted) * 100.0,
                bin.error * 100.0
            ));
        }
    }
    text
}
