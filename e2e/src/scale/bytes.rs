//! Objects as large as the apiserver takes them, which any user of a namespace may create. The operator's memory stays
//! below half of the chart's limit.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::ListParams;
use serde_json::{Value, json};
use shed::api;

use super::many_objects::settle;
use super::outcome::Outcome;
use super::stage::Stage;
use super::{Options, judge};
use crate::bench::namespace::each;
use crate::bench::operator::memory_limit;
use crate::campaign::workload::arguments;
use crate::host_operator::HostOperator;
use crate::jobs::{manifest, reason, shell_or_fake};
use crate::patches::merge_status;

/// Bytes of the arguments of a pod or Job.
const MEGABYTE: usize = 1_000_000;
/// Bytes of the arguments and of the annotations of a live DeadlineJob: a little below what is accepted.
const ACCEPTED: usize = 250_000;
/// Requests of the harness that are under way at once.
const AT_ONCE: usize = 8;

/// What there are many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Pods that no scheduler places, with 1 MB of arguments.
    Pods,
    /// Suspended Jobs of shed's with 1 MB of arguments.
    SuspendedJobs,
    /// Jobs of shed's that have finished, with 1 MB of arguments.
    FinishedJobs,
    /// DeadlineJobs at the limits of specification and annotations, with running tasks.
    LiveJobs,
}

/// Two operators, one after another, next to many large objects.
pub async fn large(
    load: Load,
    options: &Options,
    client: Client,
    outcome: &mut Outcome,
) -> Result<()> {
    let home = match load {
        Load::Pods => "scale-pods",
        Load::SuspendedJobs => "scale-suspended",
        Load::FinishedJobs => "scale-adopted",
        Load::LiveJobs => "scale-live",
    };
    let stage = Stage::prepare(options, client, home, &[home], |_, _| None).await?;
    outcome.figure("objects", options.large);
    create_all(&stage, home, load).await?;
    let went = start_twice(&stage, home, load, outcome).await;
    stage.remove().await?;
    went
}

async fn create_all(stage: &Stage<'_>, home: &str, load: Load) -> Result<()> {
    let created = (0..stage.options.large).map(|index| async move {
        let name = format!("large-{index}");
        match load {
            Load::Pods => stage.create::<Pod>(home, pod(&name)).await,
            Load::SuspendedJobs => stage.create::<Job>(home, job(&name, true)).await,
            Load::FinishedJobs => {
                stage.create::<Job>(home, job(&name, false)).await?;
                let (jobs, change) = (stage.all::<Job>(home), json!({"status": completed()}));
                Ok(merge_status(&jobs, &name, &change).await.map(drop)?)
            }
            Load::LiveJobs => stage.submit(home, live(&name)).await,
        }
    });
    let created = stream::iter(created).buffer_unordered(AT_ONCE);
    created.try_collect().await
}

fn template() -> Value {
    let mut template = shell_or_fake("exit 0", 3_600_000, 0);
    template["spec"]["containers"][0]["args"] = arguments(MEGABYTE);
    template["spec"]["restartPolicy"] = json!("Never");
    template
}

fn pod(name: &str) -> Value {
    let mut pod = template();
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/never"}]);
    pod
}

fn job(name: &str, suspend: bool) -> Value {
    let spec = json!({"managedBy": api::MANAGED_BY, "suspend": suspend, "template": template()});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// The status of a Job that shed has run.
fn completed() -> Value {
    let then = "2026-01-01T00:00:00Z";
    let is_so = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "CompletionsReached",
            "lastTransitionTime": then, "lastProbeTime": then})
    };
    json!({"conditions": [is_so("SuccessCriteriaMet"), is_so("Complete")], "succeeded": 1,
        "startTime": then, "completionTime": then, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}})
}

fn live(name: &str) -> Value {
    let mut template = shell_or_fake("sleep 3600", 3_600_000, 0);
    template["spec"]["containers"][0]["args"] = arguments(ACCEPTED);
    let spec = json!({"template": template, "deadline": {"within": "24h"}});
    let mut job = manifest(name, &spec);
    job["metadata"]["annotations"] = json!({"example.com/notes": "x".repeat(ACCEPTED)});
    job
}

async fn start_twice(
    stage: &Stage<'_>,
    home: &str,
    load: Load,
    outcome: &mut Outcome,
) -> Result<()> {
    for name in ["settled", "settled under the next leader"] {
        let subject = stage.start().await?;
        settle(stage, outcome, &subject, name).await?;
        if load == Load::LiveJobs {
            report_waiting(stage, home, outcome).await?;
        }
        judge(stage, &subject, outcome)?;
        stays_below_half(&subject, outcome)?;
        subject.stop().await?;
    }
    Ok(())
}

fn stays_below_half(subject: &HostOperator, outcome: &mut Outcome) -> Result<()> {
    let (peak, most) = (subject.taken()?.peak, memory_limit()? / 2);
    outcome.demand(peak <= most, || {
        let (peak, most) = (peak / 1024, most / 1024);
        format!("the operator had {peak} MiB, and half of the chart's limit is {most}")
    });
    Ok(())
}

/// Each job runs, or its status reports that it waits.
async fn report_waiting(stage: &Stage<'_>, home: &str, outcome: &mut Outcome) -> Result<()> {
    let (mut running, mut waiting) = (0, 0);
    let page = ListParams::default().limit(20);
    each(&stage.jobs(home), page, |job| {
        let waits = reason(&job, api::ATTEMPTS_BLOCKED) == Some("OperatorMemory");
        waiting += u64::from(waits);
        let ledger = job.status.and_then(|status| status.ledger);
        running += u64::from(ledger.is_some_and(|ledger| !ledger.tasks.is_empty()));
        Ok(())
    })
    .await?;
    outcome.at_most("running", running);
    outcome.at_most("waiting", waiting);
    let all = u64::from(stage.options.large);
    outcome.demand(running > 0 && running + waiting == all, || {
        format!("{running} of {all} jobs run, and {waiting} report that they wait")
    });
    Ok(())
}
