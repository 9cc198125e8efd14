//! `calibrate`: predicted PoCDs against outcomes.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use shed_core::decide::Changed;
use shed_core::estimate::forecast::Forecast;
use shed_core::guard::GuardedPlanner;
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::Policy;
use shed_core::snapshot::Snapshot;

mod closed_form;

use super::bound::prepare;
use crate::calibration::{Calibration, MOMENTS, Prediction, Predictions};
use crate::forecast::{self, Dated};
use shed_sim::cli::CliError;
use shed_sim::cli::lists::{self, Cell, Lists};
use shed_sim::cli::output::{self, Format};
use shed_sim::cli::sweep::{Traces, read_traces};
use shed_sim::engine::Engine;
use shed_sim::settings::Passes;

pub(super) const EXAMPLES: &str = "\
Every flag of `shed-sim run` takes a list with commas, and --seed ranges such as 0..20: runs that differ in
their seed alone are one sample. Jobs of several stages are left out.

Example:
    shed-lab calibrate --preset pareto --seed 0..8 --policy shed-plus{distribution=best},shed-prime
    shed-lab calibrate --forecast --preset pareto --seed 0..8 --policy shed-prime
    shed-lab calibrate --ends --preset pareto --seed 0..8 --policy shed-prime
    shed-lab calibrate --formulas --preset pareto --policy chronos-s-resume{theta_c=0,r_min=0,max_clones=1}";

#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// How results are written.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Evaluate the formula of the policy's paper at submission, instead of the planner's PoCD: for
    /// hadoop-ns, chronos-clone, chronos-s-restart, chronos-s-resume and srquant, each with
    /// `max_clones` clones per task.
    #[arg(long)]
    formulas: bool,
    /// Evaluate calibrated PoCD instead of PoCD. It is the share of earlier jobs with a similar
    /// PoCD that met their deadline. A run uses the jobs that ended before, and the runs of lower
    /// seeds.
    #[arg(long, conflicts_with = "formulas")]
    forecast: bool,
    /// Evaluate the range of a job's end instead of PoCD. The median and the 90th percentile count as
    /// predictions of 50 % and 90 % that the job ends by then.
    #[arg(long, conflicts_with_all = ["formulas", "forecast"])]
    ends: bool,
    #[command(flatten)]
    lists: Lists,
}

/// The predictions of one moment in one cell.
#[derive(Debug, Clone, Serialize)]
struct CalibrationRow {
    /// The flags of its runs without the seed.
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
    let mut seen: BTreeMap<String, [Sample; MOMENTS.len()]> = BTreeMap::new();
    for cell in &cells {
        let name = lists::without(&cell.name, &["--seed"]);
        let samples = seen.entry(name).or_default();
        let said = match args.ends {
            true => predict_ends(cell, &traces)?,
            false => predict(cell, &traces, args)?,
        };
        for (sample, said) in samples.iter_mut().zip(said) {
            sample.add(said, args.forecast);
        }
    }
    let mut rows = Vec::new();
    for (cell, samples) in seen {
        for (sample, moment) in samples.iter().zip(MOMENTS) {
            rows.extend(
                Calibration::of(&sample.predictions).map(|calibration| CalibrationRow {
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

/// The predictions of one moment in all runs of a cell.
#[derive(Debug, Default)]
struct Sample {
    predictions: Vec<Prediction>,
    forecast: Forecast,
}

impl Sample {
    fn add(&mut self, said: Vec<Dated>, forecast: bool) {
        if forecast {
            let forecasts = forecast::follow(&mut self.forecast, said);
            self.predictions.extend(forecasts);
        } else {
            let said = said.into_iter().map(|dated| dated.prediction);
            self.predictions.extend(said);
        }
    }
}

/// Runs the cell: prediction and outcome of each job, by moment.
fn predict(
    cell: &Cell,
    traces: &Traces,
    args: &CalibrateArgs,
) -> Result<[Vec<Dated>; MOMENTS.len()], CliError> {
    let formulas = args.formulas;
    let mut prepared = prepare(cell, traces)?;
    let policy = prepared.settings.policy.speculation.clone();
    if formulas && !closed_form::exists(&policy) {
        let name = &cell.options.policy;
        let message = format!("--formulas: `{name}` has none; chronos-s-resume and hadoop-ns have");
        return Err(CliError::Usage(message));
    }
    prepared.settings.passes = Passes::Full;
    // The calibrated PoCD is made of those that expect later clones.
    let mut predictions = Predictions::new(match args.forecast {
        true => |report| report.pocd_expected,
        false => |report| report.pocd_after,
    });
    let engine = Engine::new(&prepared.settings, &prepared.workload);
    let outcome = engine.watched(&mut predictions).run()?;
    let jobs = prepared.workload.jobs.iter().zip(&outcome.jobs);
    let mut moments: [Vec<Dated>; MOMENTS.len()] = Default::default();
    for (position, (job, ended)) in jobs.enumerate() {
        let Some(deadline) = ended.deadline.filter(|_| job.stages.len() == 1) else {
            continue;
        };
        let predicted = if formulas {
            let pocd = closed_form::pocd(&policy, job);
            [pocd.map(|pocd| (pocd, ended.arrival)), None, None, None]
        } else {
            predictions.of_job(position)
        };
        let met = ended.met();
        let known = ended.ended.map_or(deadline, |ended| ended.min(deadline));
        for (moment, predicted) in moments.iter_mut().zip(predicted) {
            moment.extend(predicted.map(|(pocd, said)| Dated {
                prediction: Prediction { pocd, met },
                said,
                known,
            }));
        }
    }
    Ok(moments)
}

/// Runs the cell: for each range of a job's end, by moment, whether the job ended by its median and by its 90th
/// percentile. A job that was stopped before one of these times is left out there.
fn predict_ends(cell: &Cell, traces: &Traces) -> Result<[Vec<Dated>; MOMENTS.len()], CliError> {
    let mut prepared = prepare(cell, traces)?;
    prepared.settings.passes = Passes::Full;
    let mut predictions = Predictions::new(|report| report.end_range);
    let engine = Engine::new(&prepared.settings, &prepared.workload).deciding_by(decide_with_ends);
    let outcome = engine.watched(&mut predictions).run()?;
    let jobs = prepared.workload.jobs.iter().zip(&outcome.jobs);
    let mut moments: [Vec<Dated>; MOMENTS.len()] = Default::default();
    for (position, (job, ended)) in jobs.enumerate() {
        let Some(known) = ended.ended.filter(|_| job.stages.len() == 1) else {
            continue;
        };
        for (moment, predicted) in moments.iter_mut().zip(predictions.of_job(position)) {
            let ends =
                predicted.map(|(range, said)| [(0.5, range.p50, said), (0.9, range.p90, said)]);
            let ends = ends.into_iter().flatten();
            let ends = ends.filter(|(_, by, _)| ended.complete || known > *by);
            moment.extend(ends.map(|(pocd, by, said)| Dated {
                prediction: Prediction {
                    pocd,
                    met: known <= by,
                },
                said,
                known,
            }));
        }
    }
    Ok(moments)
}

/// The core's `decide`, with ranges for the ends of jobs.
fn decide_with_ends(snapshot: &Snapshot, mut memory: Memory, policy: &Policy) -> (Plan, Memory) {
    let mut planner = GuardedPlanner::with_end_ranges();
    let passed = planner.decide(snapshot, &mut memory, policy, Changed::All);
    (passed.plan, memory)
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
