//! Attempts that shed preempts for a more urgent job, because their user allowed it.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api;
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, label, said, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};

use crate::progress::shows_pocd;
use crate::tasks::{first_unit, worker};

/// A node holds one attempt that requests this much of its cpu.
const SHARE_OF_NODE: f64 = 0.6;

/// A template for attempts; a node holds only one.
pub async fn large(world: &World, script: &str) -> Result<Value> {
    let nodes: Api<Node> = Api::all(world.cluster.client());
    let name = world.cluster.node_names().await?.pop().context("no node")?;
    let allocatable = nodes.get(&name).await?.status.and_then(|s| s.allocatable);
    let cpu = allocatable.and_then(|mut all| all.remove("cpu"));
    let cores: f64 = cpu.context("no cpu")?.0.parse()?;
    let mut template = shell(script);
    let millis = format!("{:.0}m", cores * 1000.0 * SHARE_OF_NODE);
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(millis);
    Ok(template)
}

/// One job fills the cluster and has time, the other has none.
async fn go(world: &World) -> Result<()> {
    let nodes = world.cluster.node_names().await?.len();
    let patient = json!({
        "completions": nodes,
        "deadline": {"within": "15m"},
        "progress": {"file": {}, "periodSeconds": 1},
        "resume": "Checkpoint",
        "preemption": "WhenCheckpointed",
        "template": large(world, &worker(50, 1.0, 1.0, ":")).await?,
    });
    let patient = Job::submit(world, "patient", patient).await?;
    patient
        .wait("its attempts to be heard of", SOON, shows_pocd)
        .await?;
    let urgent = json!({
        "deadline": {"within": "30s"},
        "onMiss": "Continue",
        "template": large(world, "sleep 2").await?,
    });
    let urgent = Job::submit(world, "urgent", urgent).await?;
    urgent.wait_complete().await?;
    let preempted = world
        .operator
        .metric("shed_attempts_stopped_total", &["reason=\"preempt\""]);
    assert_eq!(preempted.await?, 1.0, "attempts that made way");
    let ended = patient.wait_complete().await?;
    assert_counts_balance(&ended);
    let counts = status(&ended).attempts;
    assert_eq!((counts.retries, counts.failed), (1, 0));
    let pods = patient.pods_ever();
    assert_eq!(pods.len(), nodes + 1, "attempts in all");
    let retry = pods.iter().find(|p| label(p, api::LABEL_KIND) == "retry");
    let retry = retry.context("no retry")?;
    let began = first_unit(said(retry)).with_context(|| retry.name_any())?;
    ensure!(began > 3, "it began at unit {began}, not where it was");
    Ok(())
}

#[tokio::test]
async fn a_preempted_attempt_resumes_from_its_checkpoint() {
    scenario(Needs::OperatorPod, Company::Alone, async |world| {
        go(world).await
    })
    .await;
}
