//! The list of runs, and their execution.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use futures::{StreamExt, stream};

use super::fault::{Counts, Fault, Point, draw, hold};
use super::operator::Launcher;
use super::proxy::Seen;
use super::report::{Report, Row};
use super::run::{Outcome, Stage, run};
use super::tasks::Tasks;
use super::workload::Workload;
use crate::bench::site::local_cluster;

/// How often a run is repeated whose fault did not strike, since that run ended before the fault's point.
const TRIES: u32 = 8;

/// How many points, evenly spread over the writes, an exclusive fault has.
const POINTS_ALONE: u64 = 5;

/// Runs reference workloads with a fault at every write or notification, and checks every state.
#[derive(Clone, Debug, Parser)]
#[command(name = "campaign")]
pub struct Options {
    /// Faults to go through; all if none is named.
    #[arg(long, value_delimiter = ',')]
    pub fault: Vec<Fault>,
    /// Workloads to go through; all if none is named.
    #[arg(long, value_delimiter = ',')]
    pub workload: Vec<Workload>,
    /// Only this write or notification, counted from 1.
    #[arg(long)]
    pub at: Option<u64>,
    /// Only this many runs, drawn by the seed.
    #[arg(long)]
    pub sample: Option<usize>,
    /// The seed of the sample and of the lengths of holds.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many runs are under way at once.
    #[arg(long, default_value_t = 6)]
    pub parallel: usize,
    /// For how many seconds the apiserver is cut off.
    #[arg(long, default_value_t = 300)]
    pub cut_off_seconds: u64,
    /// Where what is left of failed runs goes.
    #[arg(long, default_value = "target/campaign")]
    pub folder: PathBuf,
    /// Only say whether the options are right.
    #[arg(long)]
    pub check: bool,
}

/// One run to go through.
#[derive(Clone, Copy, Debug)]
struct Planned {
    workload: Workload,
    point: Point,
}

/// Goes through the campaign; true if nothing was broken.
pub async fn campaign(options: &Options) -> Result<bool> {
    ensure!(options.parallel > 0, "--parallel must be at least 1");
    if options.check {
        return Ok(true);
    }
    let cluster = local_cluster("campaign").await?;
    let stage = Stage {
        launcher: Launcher::new(&cluster).await?,
        tasks: Arc::new(Tasks::serve().await?),
        folder: std::path::absolute(&options.folder)?,
        cluster,
    };
    std::fs::create_dir_all(&stage.folder)?;
    let mut report = Report::default();
    let planned = plan(options, &stage, &mut report).await?;
    let (alone, together): (Vec<Planned>, Vec<Planned>) = planned
        .into_iter()
        .partition(|planned| planned.point.fault.counts() == Counts::Alone);
    let total = alone.len() + together.len();
    let mut done = 0;
    let mut runs = stream::iter(together.into_iter().map(|planned| go(&stage, planned)))
        .buffer_unordered(options.parallel);
    while let Some(row) = runs.next().await {
        done += 1;
        report.take(done, total, row?);
    }
    drop(runs);
    for planned in alone {
        done += 1;
        report.take(done, total, go(&stage, planned).await?);
    }
    print!("{}{}", report.table(), report.failures());
    Ok(report.is_clean())
}

fn all_or<T: ValueEnum + Clone>(named: &[T]) -> Vec<T> {
    if named.is_empty() {
        T::value_variants().to_vec()
    } else {
        named.to_vec()
    }
}

/// A run without a fault tells how many writes and notifications a workload has.
async fn plan(options: &Options, stage: &Stage, report: &mut Report) -> Result<Vec<Planned>> {
    let faults = all_or(&options.fault);
    let goes = |workload: &Workload| faults.iter().any(|&fault| workload.goes_with(fault));
    let workloads = all_or(&options.workload).into_iter().filter(goes);
    let mut learning = stream::iter(workloads.map(|workload| async move {
        let name = format!("{}-learn-{}", workload.name(), std::process::id());
        let learnt = run(stage, workload, None, &name).await;
        (workload, learnt)
    }))
    .buffered(options.parallel);
    let mut planned = Vec::new();
    while let Some((workload, learnt)) = learning.next().await {
        let learnt = learnt?;
        report.learnt(workload, &learnt);
        for &fault in faults.iter().filter(|&&fault| workload.goes_with(fault)) {
            let mut points = points(fault, &learnt);
            points.retain(|at| options.at.is_none_or(|only| only == *at));
            for at in points {
                let lasts = match fault {
                    Fault::CutOff => Duration::from_secs(options.cut_off_seconds),
                    _ => hold(options.seed, at),
                };
                let point = Point { fault, at, lasts };
                planned.push(Planned { workload, point });
            }
        }
    }
    drop(learning);
    if let Some(size) = options.sample {
        let mut drawn: Vec<(u64, Planned)> = planned
            .into_iter()
            .zip(0..)
            .map(|(planned, index)| (draw(options.seed, index), planned))
            .collect();
        drawn.sort_by_key(|(drawn, _)| *drawn);
        planned = drawn
            .into_iter()
            .take(size)
            .map(|(_, planned)| planned)
            .collect();
    }
    ensure!(
        !planned.is_empty(),
        "nothing to run: no workload named goes with a fault named, or --at {:?} is beyond what \
         the workloads have",
        options.at
    );
    Ok(planned)
}

fn points(fault: Fault, learnt: &Outcome) -> Vec<u64> {
    let all = fault.counts().of(&learnt.seen);
    match fault.counts() {
        Counts::Writes | Counts::Notifications { .. } => (1..=all).collect(),
        // In the middle, where attempts run.
        Counts::Once => vec![(all / 2).max(1)],
        Counts::Alone => (1..=POINTS_ALONE)
            .map(|part| (all * part / (POINTS_ALONE + 1)).max(1))
            .collect(),
    }
}

/// The point of the next try after a run that ended before it: its last ones, each try an event earlier. No two
/// runs have the same number of writes or notifications, so the last points of the learned run may not exist.
fn within(point: Point, seen: &Seen, tries: u32) -> Point {
    let had = point.fault.counts().of(seen);
    let at = had.saturating_sub(u64::from(tries)).max(1).min(point.at);
    Point { at, ..point }
}

async fn go(stage: &Stage, planned: Planned) -> Result<Row> {
    let Planned {
        workload,
        mut point,
    } = planned;
    let mut tries = 0;
    loop {
        tries += 1;
        let name = format!(
            "{}-{}-{}-{}-{tries}",
            workload.name(),
            point.fault.name(),
            point.at,
            std::process::id()
        );
        let outcome = run(stage, workload, Some(point), &name).await;
        let outcome = outcome.with_context(|| format!("run {name}"))?;
        if outcome.seen.struck || !outcome.broken.is_empty() || tries == TRIES {
            return Ok(Row {
                workload,
                point,
                name,
                outcome,
            });
        }
        point = within(point, &outcome.seen, tries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_beyond_the_end_of_a_run_moves_into_it() {
        let point = |fault, at| Point {
            fault,
            at,
            lasts: Duration::ZERO,
        };
        let mut seen = Seen::default();
        (seen.writes, seen.pods, seen.jobs) = (30, 80, 25);
        let next = |fault, at, tries| within(point(fault, at), &seen, tries).at;
        assert_eq!(next(Fault::StaleBoth, 111, 1), 104);
        assert_eq!(next(Fault::StalePods, 81, 2), 78);
        assert_eq!(next(Fault::Crash, 31, 1), 29);
        // The run was long enough: only the fault itself failed.
        assert_eq!(next(Fault::Crash, 12, 1), 12);
        assert_eq!(next(Fault::Crash, 500, 40), 1);
    }

    #[test]
    fn a_wrong_fault_or_workload_is_answered_with_the_valid_ones() {
        for (wrong, valid) in [
            (["--fault", "crush"], "stale-both"),
            (["--workload", "planes"], "failures"),
        ] {
            let arguments = [&["campaign"][..], &wrong].concat();
            let error = Options::try_parse_from(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let said = error.to_string();
            assert!(said.contains(wrong[1]) && said.contains(valid), "{said}");
        }
    }
}
