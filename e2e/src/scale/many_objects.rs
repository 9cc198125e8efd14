//! Many objects: specifications of one MB, half of them another controller's, and jobs that have
//! finished.

use std::time::{Duration, Instant};

use anyhow::Result;
use kube::Client;
use kube::api::ListParams;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shed::api;

use super::outcome::Outcome;
use super::stage::Stage;
use super::{Options, judge};
use crate::bench::namespace::each;
use crate::campaign::workload::{arguments, finished};
use crate::host_operator::HostOperator;
use crate::jobs::{manifest, reason, shell_or_fake};

/// Bytes of the arguments of one specification.
const MEGABYTE: usize = 1_000_000;
const PAGE: u32 = 20;
/// An operator that has logged nothing for this long has logged everything.
const QUIET: Duration = Duration::from_secs(10);

/// Jobs of one MB each under two operators, one after another.
pub async fn specs(options: &Options, client: Client, outcome: &mut Outcome) -> Result<()> {
    let home = "scale-specs";
    let stage = Stage::prepare(options, client, "specs", &[home], |_, _| None).await?;
    outcome.figure("jobs", options.specs);
    stage.submit_all(home, large_specs(options.specs)).await?;
    let went = list_twice(&stage, home, outcome).await;
    stage.remove().await?;
    went
}

fn large_specs(count: u32) -> impl Iterator<Item = (Value, Option<Value>)> {
    (0..count).map(|index| {
        let mut template = shell_or_fake("exit 0", 1000, 0);
        template["spec"]["containers"][0]["args"] = arguments(MEGABYTE);
        let owner = (index % 2 == 1).then_some("example.com/other");
        let spec = json!({"template": template, "managedBy": owner});
        (manifest(&format!("spec-{index}"), &spec), None)
    })
}

async fn list_twice(stage: &Stage<'_>, home: &str, outcome: &mut Outcome) -> Result<()> {
    let own = u64::from(stage.options.specs.div_ceil(2));
    for name in ["all refused", "listed by the next leader"] {
        let subject = stage.start().await?;
        let refused = async || Ok(answered(stage, home).await? == (own, 0));
        stage.phase(outcome, &subject, name, None, refused).await?;
        settle(stage, outcome, &subject, "settled").await?;
        judge(stage, &subject, outcome)?;
        subject.stop().await?;
    }
    Ok(())
}

/// How many jobs were refused for their size, and how many of another controller have a status.
async fn answered(stage: &Stage<'_>, home: &str) -> Result<(u64, u64)> {
    let (mut refused, mut foreign) = (0, 0);
    let page = ListParams::default().limit(PAGE);
    each(&stage.jobs(home), page, |job| {
        let is_refused = reason(&job, api::FAILED) == Some("InvalidSpec");
        refused += u64::from(is_refused);
        foreign += u64::from(job.spec.managed_by.is_some() && job.status.is_some());
        Ok(())
    })
    .await?;
    Ok((refused, foreign))
}

/// Jobs that have finished, and an operator that has nothing to do.
pub async fn idle(options: &Options, client: Client, outcome: &mut Outcome) -> Result<()> {
    let home = "scale-finished";
    let stage = Stage::prepare(options, client, "finished", &[home], |_, _| None).await?;
    outcome.figure("jobs", options.finished);
    let without = stage.start().await?;
    let empty = without.taken()?.rss;
    without.stop().await?;
    let template = shell_or_fake("exit 0", 1000, 0);
    let jobs = (0..options.finished).map(|index| {
        let (job, status) = finished(&template, &format!("old-{index}"));
        (job, Some(status))
    });
    stage.submit_all(home, jobs).await?;
    let went = rest(&stage, empty, outcome).await;
    stage.remove().await?;
    went
}

async fn rest(stage: &Stage<'_>, empty: u64, outcome: &mut Outcome) -> Result<()> {
    // The first operator has made a key.
    let made = stage.meter.counts();
    let subject = stage.start().await?;
    settle(stage, outcome, &subject, "settled").await?;
    let (before, began) = (subject.taken()?, Instant::now());
    let idle = Duration::from_secs(stage.options.idle_seconds);
    let slept = async || Ok(began.elapsed() >= idle);
    stage.phase(outcome, &subject, "idle", None, slept).await?;
    let after = subject.taken()?;
    let share = (after.cpu - before.cpu) / began.elapsed().as_secs_f64();
    outcome.figure("percentOfACore", (share * 100_000.0).round() / 1000.0);
    let more = after.rss.saturating_sub(empty) * 1024;
    let per_job = more / u64::from(stage.options.finished);
    outcome.figure("bytesPerJob", per_job);
    let writes = outcome
        .phases
        .last()
        .map_or(0, |phase| phase.counts.writes());
    outcome.demand(writes == 0, || {
        format!("{writes} writes of an operator that has nothing to do")
    });
    let all = stage.meter.counts().since(&made).writes();
    outcome.demand(all == 0, || {
        format!("{all} writes about jobs that have finished")
    });
    judge(stage, &subject, outcome)
}

/// Waits until the operator has written and listed nothing for a while.
pub(super) async fn settle(
    stage: &Stage<'_>,
    outcome: &mut Outcome,
    subject: &HostOperator,
    name: &'static str,
) -> Result<()> {
    let last = Mutex::new((work(stage), Instant::now()));
    let settled = async || {
        let (mut last, work) = (last.lock(), work(stage));
        if last.0 != work {
            *last = (work, Instant::now());
        }
        Ok(last.1.elapsed() >= QUIET)
    };
    stage.phase(outcome, subject, name, None, settled).await
}

/// Writes and lists. An operator that is ready may still list jobs.
fn work(stage: &Stage<'_>) -> u64 {
    let counts = stage.meter.counts();
    counts.writes() + counts.calls.get("list").copied().unwrap_or(0)
}
