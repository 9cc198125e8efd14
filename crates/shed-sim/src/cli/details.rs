//! The files of `run --jobs` and `run --attempts`: one row per job, one row per attempt. Times are seconds from the
//! start of the trace.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use shed_core::time::Instant;

use super::CliError;
use super::files::RowsFile;
use super::output::Row;
use crate::outcome::{AttemptOutcome, JobOutcome, Outcome};
use crate::settings::Cluster;

/// Files for the details of a run.
#[derive(Debug, Args)]
pub(super) struct DetailArgs {
    /// Write a row per job: JSON lines, or CSV if the name ends with .csv; a further .gz compresses it.
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Write a row per attempt, in the same formats.
    #[arg(long, value_name = "FILE")]
    pub(super) attempts: Option<PathBuf>,
}

/// The files, open.
pub(super) struct DetailFiles {
    jobs: Option<RowsFile>,
    attempts: Option<RowsFile>,
}

/// The run that a row belongs to: `csv` cannot write nested structures, so rows repeat the fields.
#[derive(Clone, Copy)]
struct Run<'a> {
    trace: &'a str,
    policy: &'a str,
    order: &'a str,
    load: Option<f64>,
    deadline_factor: Option<f64>,
    seed: u64,
}

/// One job.
#[derive(Debug, Serialize)]
struct JobRow<'a> {
    trace: &'a str,
    policy: &'a str,
    order: &'a str,
    load: Option<f64>,
    deadline_factor: Option<f64>,
    seed: u64,
    /// The job's name in the trace.
    job: &'a str,
    arrival_s: f64,
    /// The job's deadline.
    deadline_s: Option<f64>,
    /// When the job's result was known.
    ended_s: Option<f64>,
    /// Whether every task was done.
    complete: bool,
    /// Whether the job was complete at or before its deadline.
    met: bool,
    /// From arrival to completion.
    flowtime_s: Option<f64>,
}

/// One attempt.
#[derive(Debug, Serialize)]
struct AttemptRow<'a> {
    trace: &'a str,
    policy: &'a str,
    order: &'a str,
    load: Option<f64>,
    deadline_factor: Option<f64>,
    seed: u64,
    job: &'a str,
    /// When the job arrived.
    arrival_s: f64,
    /// The job's deadline.
    deadline_s: Option<f64>,
    /// Position of the stage in the job.
    stage: u32,
    /// Position of the task in the stage.
    task: u32,
    /// Number among the task's attempts.
    attempt: u32,
    /// `original`, `clone` or `retry`.
    kind: &'static str,
    /// Absent on slots.
    node: Option<&'a str>,
    launched_s: f64,
    /// When the attempt took its slot.
    placed_s: Option<f64>,
    /// When the attempt started to process.
    started_s: Option<f64>,
    /// When the attempt was gone.
    ended_s: f64,
    /// The share of the task that was done when the attempt began.
    begin: f64,
    /// `won`, or the bucket of the attempt's end.
    outcome: &'static str,
    /// Why the attempt was killed.
    kill: Option<&'static str>,
}

impl DetailArgs {
    /// Opens the requested files.
    pub(super) fn create(&self) -> Result<DetailFiles, CliError> {
        if self.jobs.is_some() && self.jobs == self.attempts {
            let message = "--jobs and --attempts need different files";
            return Err(CliError::Usage(message.into()));
        }
        let create = |path: &Option<PathBuf>| path.as_deref().map(RowsFile::create).transpose();
        Ok(DetailFiles {
            jobs: create(&self.jobs)?,
            attempts: create(&self.attempts)?,
        })
    }
}

impl DetailFiles {
    /// Writes the results of the run.
    pub(super) fn write(
        self,
        row: &Row,
        cluster: &Cluster,
        outcome: &Outcome,
    ) -> Result<(), CliError> {
        let run = Run {
            trace: &row.trace,
            policy: &row.policy,
            order: &row.order,
            load: row.load,
            deadline_factor: row.deadline_factor,
            seed: row.seed,
        };
        if let Some(mut file) = self.jobs {
            for job in &outcome.jobs {
                file.write(&job_row(run, job))?;
            }
            file.finish()?;
        }
        if let Some(mut file) = self.attempts {
            for attempt in &outcome.attempts {
                let job = &outcome.jobs[attempt.job as usize];
                file.write(&attempt_row(run, job, cluster, attempt))?;
            }
            file.finish()?;
        }
        Ok(())
    }
}

fn seconds(at: Instant) -> f64 {
    at.since(Instant(0)).seconds()
}

fn job_row<'a>(run: Run<'a>, job: &'a JobOutcome) -> JobRow<'a> {
    JobRow {
        trace: run.trace,
        policy: run.policy,
        order: run.order,
        load: run.load,
        deadline_factor: run.deadline_factor,
        seed: run.seed,
        job: &job.id,
        arrival_s: seconds(job.arrival),
        deadline_s: job.deadline.map(seconds),
        ended_s: job.ended.map(seconds),
        complete: job.complete,
        met: job.met(),
        flowtime_s: job.flowtime().map(|span| span.seconds()),
    }
}

fn attempt_row<'a>(
    run: Run<'a>,
    job: &'a JobOutcome,
    cluster: &'a Cluster,
    attempt: &AttemptOutcome,
) -> AttemptRow<'a> {
    let node = match cluster {
        Cluster::Slots(_) => None,
        Cluster::Nodes(nodes) => attempt.node.and_then(|at| nodes.get(at as usize)),
    };
    AttemptRow {
        trace: run.trace,
        policy: run.policy,
        order: run.order,
        load: run.load,
        deadline_factor: run.deadline_factor,
        seed: run.seed,
        job: &job.id,
        arrival_s: seconds(job.arrival),
        deadline_s: job.deadline.map(seconds),
        stage: attempt.stage,
        task: attempt.task,
        attempt: attempt.number,
        kind: attempt.kind.label(),
        node: node.map(|node| &*node.name.0),
        launched_s: seconds(attempt.launched),
        placed_s: attempt.placed.map(seconds),
        started_s: attempt.started.map(seconds),
        ended_s: seconds(attempt.ended),
        begin: attempt.begin,
        outcome: attempt.bucket.map_or("won", |bucket| bucket.label()),
        kill: attempt.kill.map(|kill| kill.label()),
    }
}
