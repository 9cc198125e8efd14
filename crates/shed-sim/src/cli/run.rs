//! `run`: one trace, one policy, one seed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use shed_core::policy::Order;

use super::details::DetailArgs;
use super::output::{self, Format, Row};
use super::record::Recording;
use super::{CliError, RunOptions, fault};
use crate::cli::options::Prepared;
use crate::engine::{Engine, Watch};
use crate::outcome::Outcome;
use crate::settings::Passes;

pub(super) const EXAMPLES: &str = "\
Examples:
  Central FIFO without clones, comparable to other simulators:
    shed-sim run --trace google2011_hawk_a.csv.gz --slots 12000 --policy hadoop-ns --order fifo --whole-seconds
  Shed+ at a load of 0.8 with deadlines of 1.5 times the job's fair time, clones as drawn from siblings:
    shed-sim run --trace jobs.csv --slots 200 --load 0.8 --deadline-factor 1.5 --attempt-model resample
  One's own cluster, as the operator recorded it, under another policy:
    shed-sim run --recording recording/ --slots 40 --policy dollymp
  The same on named nodes, as JSON:
    shed-sim run --trace jobs.csv --nodes nodes.csv --load 0.8 --deadline-factor 1.5 --format json
  With a row per job and per attempt, for `shed-lab report`:
    shed-sim run --trace jobs.csv --slots 200 --deadline-factor 1.5 --jobs jobs.jsonl --attempts attempts.csv.gz";

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) options: RunOptions,
    /// Write the planner's facts and decisions to a folder, as the operator does, for `replay`; implies
    /// --full-passes.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// How the result is written.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
    #[command(flatten)]
    details: DetailArgs,
}

pub(super) fn run(args: &RunArgs) -> Result<(), CliError> {
    let mut prepared = args.options.prepare()?;
    if args.options.has_unread_file()? {
        return Err(fault::of_unread_file(&[&args.options.policy]));
    }
    let has_tenants = args.options.tenants.is_some() && prepared.settings.shares;
    if prepared.settings.policy.order == Order::Capacity && !has_tenants {
        eprintln!(
            "note: without --tenants all jobs have one tenant, with which the order `capacity` is `fifo`"
        );
    }
    let files = args.details.create()?;
    let keeps_attempts = args.details.attempts.is_some();
    let (row, outcome) = match &args.record {
        Some(folder) => {
            prepared.settings.passes = Passes::Full;
            let mut recording = Recording::new(folder, &prepared.settings.policy);
            let watch: Option<&mut dyn Watch> = Some(&mut recording);
            let came = simulate(&args.options, &prepared, watch, keeps_attempts, None)?;
            recording.finish()?;
            came
        }
        None => simulate(&args.options, &prepared, None, keeps_attempts, None)?,
    };
    files.write(&row, &prepared.settings.cluster, &outcome)?;
    output::write_to_stdout(&output::render(&[row], args.format)?)
}

/// Runs a prepared run, whose processor time may be limited.
pub(super) fn execute(
    options: &RunOptions,
    prepared: &Prepared,
    limit: Option<Duration>,
) -> Result<Row, CliError> {
    simulate(options, prepared, None, false, limit).map(|(row, _)| row)
}

fn simulate(
    options: &RunOptions,
    prepared: &Prepared,
    watch: Option<&mut dyn Watch>,
    keeps_attempts: bool,
    limit: Option<Duration>,
) -> Result<(Row, Outcome), CliError> {
    let started = Instant::now();
    let mut engine = Engine::new(&prepared.settings, &prepared.workload);
    if keeps_attempts {
        engine = engine.with_attempts();
    }
    if let Some(limit) = limit {
        engine = engine.limited_to(limit);
    }
    let outcome = match watch {
        Some(watch) => engine.watched(watch).run()?,
        None => engine.run()?,
    };
    let wall_s = started.elapsed().as_secs_f64();
    let policy = &prepared.settings.policy;
    let row = Row {
        trace: options.trace.display().to_string(),
        policy: options.policy_text(policy),
        order: policy.order.to_string(),
        slots: prepared.slots,
        load: options.load,
        deadline_factor: options.deadline_factor,
        attempt_model: prepared.settings.model.to_string(),
        stage_deadlines: options.stage_deadlines,
        seed: options.seed,
        figures: outcome.figures_behind(options.skip_runs, prepared.slots),
        wall_s,
    };
    Ok((row, outcome))
}
