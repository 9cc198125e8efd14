//! One job of many live attempts: started, suspended, resumed, stopped at its deadline. With clones
//! and checkpoints, too, and under an apiserver that has too much to do.

use std::time::Duration;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use shed::size::OBJECT_MAX;

use super::outcome::Outcome;
use super::stage::{Stage, failed};
use super::{Options, judge};
use crate::host_operator::HostOperator;
use crate::jobs::{manifest, shell_or_fake};

/// How long an attempt runs that nothing stops, in milliseconds: a day.
const DAY_MS: u32 = 86_400_000;
const JOB: &str = "large";
/// How far away the deadline is moved once it is to pass.
const DEADLINE_IN: SignedDuration = SignedDuration::from_secs(20);
/// One task in ten is a straggler.
const STRAGGLER: u32 = 10;

/// A job of ten times as many tasks as attempts may live. No attempt ends by itself.
pub async fn one_job(options: &Options, client: Client, outcome: &mut Outcome) -> Result<()> {
    let home = "scale-large";
    let stage = Stage::prepare(options, client, "job", &[home], |_, _| None).await?;
    stage.meter.overload(options.overloaded);
    let live = options.live;
    let spec = json!({
        "completions": (10 * live).min(100_000),
        "parallelism": live,
        "deadline": {"within": "24h"},
        "template": shell_or_fake("exit 0", DAY_MS, 0),
    });
    outcome.figure("live", live);
    let attempts = Attempts { live, cloned: 0 };
    let went = start_to_end(&stage, home, manifest(JOB, &spec), attempts, outcome).await;
    end(&stage, went, outcome).await
}

/// A job whose attempts report progress with checkpoints of 64 bytes, one in ten of them slowly, so
/// that clones are launched next to them. One percent of all answers are errors.
pub async fn clones(options: &Options, client: Client, outcome: &mut Outcome) -> Result<()> {
    let home = "scale-clones";
    let stage = Stage::prepare(options, client, "clones", &[home], fare).await?;
    stage.meter.overload(true);
    let live = options.cloned;
    let spec = json!({
        "completions": live,
        // Far enough for every clone to be worth its slot.
        "deadline": {"within": "4h"},
        "progress": {"httpGet": {"port": stage.tasks.port}, "periodSeconds": 10},
        "resume": "Checkpoint",
        "template": shell_or_fake("exit 0", DAY_MS, 0),
    });
    outcome.figure("live", live);
    let cloned = live.div_ceil(STRAGGLER);
    let attempts = Attempts { live, cloned };
    let went = start_to_end(&stage, home, manifest(JOB, &spec), attempts, outcome).await;
    outcome.figure("overloaded", stage.meter.counts().overloaded);
    end(&stage, went, outcome).await
}

/// A straggler would miss the deadline, and its first report shows it: the policy waits for that, because the others'
/// times leave it hours to spare. Reports are multiples of a 200th, so this one comes after 100 s. The others have not
/// ended when it is time to stop them.
fn fare(task: u32, attempt: u32) -> Option<Duration> {
    let is_straggler = task.is_multiple_of(STRAGGLER) && attempt == 0;
    Some(Duration::from_secs(if is_straggler {
        20_000
    } else {
        1800
    }))
}

/// Live attempts, and how many of them get a clone.
#[derive(Clone, Copy)]
struct Attempts {
    live: u32,
    cloned: u32,
}

async fn start_to_end(
    stage: &Stage<'_>,
    home: &str,
    job: Value,
    attempts: Attempts,
    outcome: &mut Outcome,
) -> Result<()> {
    let Attempts { live, cloned } = attempts;
    let subject = stage.start().await?;
    let large = Some((home, JOB));
    stage.submit(home, job).await?;
    let all_live = async || {
        let are_there = stage.pods(home).await? >= u64::from(live);
        // A clone may be on its way.
        Ok(are_there && (cloned > 0 || stage.all_run(home).await?))
    };
    let none = async || Ok(stage.pods(home).await? == 0);
    stage
        .phase(outcome, &subject, "all live", large, &all_live)
        .await?;
    if cloned > 0 {
        let jobs = stage.jobs(home);
        let has_clones = async || {
            let status = jobs.get(JOB).await?.status.unwrap_or_default();
            Ok(status.attempts.clones >= i64::from(cloned))
        };
        let name = "all stragglers cloned";
        stage
            .phase(outcome, &subject, name, large, has_clones)
            .await?;
    }
    stage.edit(home, JOB, &json!({"suspend": true})).await?;
    stage
        .phase(outcome, &subject, "suspended", large, &none)
        .await?;
    stage.edit(home, JOB, &json!({"suspend": false})).await?;
    stage
        .phase(outcome, &subject, "all live again", large, &all_live)
        .await?;
    pass_deadline(stage, home, &subject, outcome).await
}

/// The deadline comes near, and passes.
async fn pass_deadline(
    stage: &Stage<'_>,
    home: &str,
    subject: &HostOperator,
    outcome: &mut Outcome,
) -> Result<()> {
    let at = Timestamp::now().saturating_add(DEADLINE_IN)?;
    let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let deadline = json!({"deadline": {"within": null, "at": at}});
    stage.edit(home, JOB, &deadline).await?;
    let jobs = stage.jobs(home);
    let ended = async || Ok(failed(&jobs, JOB).await?.is_some() && stage.pods(home).await? == 0);
    let large = Some((home, JOB));
    stage
        .phase(outcome, subject, "stopped at the deadline", large, ended)
        .await?;
    let reason = failed(&jobs, JOB).await?.unwrap_or_default();
    outcome.demand(reason == "DeadlineMissed", || {
        format!("it failed as {reason}")
    });
    judge(stage, subject, outcome)
}

async fn end(stage: &Stage<'_>, went: Result<()>, outcome: &mut Outcome) -> Result<()> {
    let largest = stage.meter.counts().largest;
    outcome.figure("largestObject", largest);
    outcome.demand(largest <= OBJECT_MAX, || {
        format!("an object of {largest} bytes was written, more than {OBJECT_MAX}")
    });
    stage.remove().await?;
    went
}
