//! Nodes that are cordoned, that refuse pods, and that are lost.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::frozen::Frozen;
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, is_true, label, node, shell, shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::fence_faults::POLICY;
use crate::preemption::large;

/// A node whose kubelet is silent is called lost after some 50 s.
const NODE_LOST: Duration = Duration::from_secs(150);

async fn cordon(world: &World, name: &str, is: bool) -> Result<()> {
    let patch = json!({"spec": {"unschedulable": is}});
    Api::<Node>::all(world.cluster.client())
        .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

async fn events_of(world: &World, job: &str, reason: &str) -> Result<usize> {
    let events: Api<Event> = world.api();
    let of_job = ListParams::default().fields(&format!("involvedObject.name={job}"));
    let events = events.list(&of_job).await?;
    let wanted = |event: &&Event| event.reason.as_deref() == Some(reason);
    Ok(events.iter().filter(wanted).count())
}

/// A task and its clones take all nodes; then the first one's node is cordoned.
async fn cordon_under_clones(world: &World) -> Result<()> {
    let nodes = world.cluster.node_names().await?.len();
    let spec = json!({"template": large(world, "sleep 30").await?});
    let full = Job::submit(world, "full", spec).await?;
    let running = full.wait_running(nodes).await?;
    let on: BTreeSet<&str> = running.iter().map(node).collect();
    assert_eq!(on.len(), nodes, "one attempt on each node: {on:?}");
    let is_original = |pod: &&Pod| label(pod, api::LABEL_KIND) == "original";
    let original = running.iter().find(is_original).context("no original")?;
    let cordoned = node(original).to_owned();
    cordon(world, &cordoned, true).await?;
    let went = next_launch_follows(world, &full, &cordoned).await;
    cordon(world, &cordoned, false).await?;
    went
}

async fn next_launch_follows(world: &World, full: &Job<'_>, cordoned: &str) -> Result<()> {
    let spec = json!({"speculation": {"mode": "Disabled"}, "template": shell("sleep 5")});
    let next = Job::submit(world, "next", spec).await?;
    next.wait_complete().await?;
    let pods = next.pods_ever();
    ensure!(
        pods.len() == 1 && node(&pods[0]) != cordoned,
        "{} pods",
        pods.len()
    );
    assert_eq!(
        events_of(world, &full.name, "CloneEvicted").await?,
        0,
        "a cordon cost clones"
    );
    let ended = full.wait_complete().await?;
    assert_counts_balance(&ended);
    Ok(())
}

#[tokio::test]
async fn a_cordon_costs_no_clone_and_no_launch() {
    scenario(
        Needs::OperatorPod,
        Company::AloneUnder(POLICY),
        async |world| cordon_under_clones(world).await,
    )
    .await;
}

/// A template whose pods are drawn to a node, less than shed keeps retries off one.
fn drawn_to(mut template: Value, node: &str) -> Value {
    let only = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let preferred = json!([{"weight": 50, "preference": {"matchFields": only}}]);
    template["spec"]["affinity"] = json!({"nodeAffinity":
        {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    template
}

#[tokio::test]
async fn what_a_kubelet_refuses_is_launched_on_another_node() {
    scenario(Needs::OperatorProcess, Company::Shared, async |world| {
        let refusing = world.cluster.node_names().await?.pop().context("no node")?;
        for idempotency in ["Safe", "None"] {
            let mut template = drawn_to(shell_or_fake("true", 500, 0), &refusing);
            template["metadata"]["annotations"]["shed.dev/kwok-refused-by"] = json!(refusing);
            let spec = json!({
                "idempotency": idempotency,
                "speculation": {"mode": "Disabled"},
                "template": template,
            });
            let name = format!("refused-{}", idempotency.to_lowercase());
            let job = Job::submit(world, &name, spec).await?;
            let ended = job.wait_complete().await?;
            let attempts = status(&ended).attempts;
            let counts = (attempts.disrupted, attempts.failed, attempts.won);
            assert_eq!(counts, (1, 0, 1), "{idempotency}");
            let on: Vec<String> = job.pods_ever().iter().map(|p| node(p).to_owned()).collect();
            ensure!(on.iter().any(|node| *node != refusing), "all on {on:?}");
            assert_counts_balance(&ended);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_failed_init_container_fails_a_non_idempotent_task() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let mut template = shell("true");
        let mut prepare = template["spec"]["containers"][0].clone();
        prepare["name"] = json!("prepare");
        prepare["command"] = json!(["sh", "-c", "exit 1"]);
        template["spec"]["initContainers"] = json!([prepare]);
        let spec = json!({
            "idempotency": "None", "backoffLimitPerIndex": 1, "template": template,
        });
        let job = Job::submit(world, "unprepared", spec).await?;
        let failed = job
            .wait_true(api::FAILED, reason::FAILED_INDEXES, SOON)
            .await?;
        let attempts = status(&failed).attempts;
        assert_eq!((attempts.failed, attempts.retries), (2, 1));
        ensure!(
            !is_true(&failed, api::TERMINATION_UNCONFIRMED),
            "still awaited"
        );
        assert_counts_balance(&failed);
        Ok(())
    })
    .await;
}

/// The agent is stopped while the task's image can't be pulled: no main container ever started.
#[tokio::test]
async fn a_pod_deleted_before_its_task_started_is_followed_by_another() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let mut template = shell("true");
        let mut prepare = template["spec"]["containers"][0].clone();
        prepare["name"] = json!("prepare");
        prepare["command"] = json!(["sh", "-c", "trap 'exit 0' TERM; sleep 300 & wait"]);
        template["spec"]["initContainers"] = json!([prepare]);
        let spec = json!({
            "idempotency": "None", "progress": {"file": {}}, "template": template,
        });
        let job = Job::submit(world, "early", spec).await?;
        let runs = |pod: &Pod| {
            let statuses = pod
                .status
                .as_ref()
                .and_then(|s| s.init_container_statuses.as_ref());
            let mut statuses = statuses.into_iter().flatten();
            statuses.any(|own| {
                let state = own.state.as_ref();
                own.name == "prepare" && state.is_some_and(|state| state.running.is_some())
            })
        };
        let what = "its init container to run";
        let pods = job
            .wait_pods(what, SOON, |pods| pods.iter().any(runs))
            .await?;
        let first = pods[0].name_any();
        let api: Api<Pod> = world.api();
        api.delete(&first, &DeleteParams::default()).await?;
        let is_next = |pod: &Pod| label(pod, api::LABEL_ATTEMPT) == "1";
        job.wait_pods("another attempt", SOON, |pods| pods.iter().any(is_next))
            .await?;
        job.delete(&DeleteParams::background()).await?;
        job.wait_nothing_left(SOON).await
    })
    .await;
}

/// A node without a replica of the operator, if there is one.
async fn spare_node(world: &World) -> Result<String> {
    let operators = world.operator.nodes().await?;
    let mut names = world.cluster.node_names().await?;
    names.sort_by_key(|name| operators.contains(name));
    names.into_iter().next().context("no node")
}

/// The node's own controller would come to it after 50 s.
async fn call_silent(world: &World, name: &str) -> Result<()> {
    let silent = json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "frozen by a test"}]);
    let patch = json!({"status": {"conditions": silent}});
    let nodes: Api<Node> = Api::all(world.cluster.client());
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Strategic(&patch))
        .await?;
    Ok(())
}

/// The first attempt never ends by itself; its pod is deleted a second after its node was lost.
fn lost_with_its_node(node: &str) -> Value {
    let script = r#"if [ "$SHED_ATTEMPT" = 0 ]; then sleep 600; else sleep 1; fi"#;
    let mut template = drawn_to(shell(script), node);
    let toleration = |key: &str| {
        json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 1})
    };
    template["spec"]["tolerations"] = json!([toleration("unreachable"), toleration("not-ready")]);
    template
}

async fn lose_a_node(world: &World) -> Result<()> {
    let spare = spare_node(world).await?;
    let spec = json!({
        "speculation": {"mode": "Disabled"}, "template": lost_with_its_node(&spare),
    });
    let job = Job::submit(world, "lost", spec).await?;
    let pods = job.wait_running(1).await?;
    let lost = node(&pods[0]).to_owned();
    let frozen = Frozen::freeze(&world.cluster, &lost).await?;
    call_silent(world, &lost).await?;
    let won = job
        .wait("another attempt to win", NODE_LOST, |job| {
            status(job).succeeded == 1
        })
        .await?;
    assert_eq!(status(&won).attempts.retries, 1);
    let winner = job.pods_ever().into_iter().map(|p| node(&p).to_owned());
    ensure!(winner.clone().any(|node| node != lost), "all on {lost}");
    // As with batch/v1, the job's end waits for the pod on the dead node, and says so.
    let waits = job
        .wait_true(api::TERMINATION_UNCONFIRMED, reason::NODE_UNREACHABLE, SOON)
        .await?;
    let said = &condition(&waits, api::TERMINATION_UNCONFIRMED)
        .context("no condition")?
        .message;
    ensure!(said.contains(&lost), "the node isn't named: {said}");
    drop(frozen);
    let ended = job.wait_complete().await?;
    ensure!(
        !is_true(&ended, api::TERMINATION_UNCONFIRMED),
        "still awaited"
    );
    let attempts = status(&ended).attempts;
    assert_eq!((attempts.won, attempts.superseded), (1, 1));
    assert_counts_balance(&ended);
    Ok(())
}

#[tokio::test]
async fn a_lost_nodes_attempt_is_replaced_and_the_node_may_return() {
    scenario(Needs::OperatorPod, Company::Alone, async |world| {
        let went = lose_a_node(world).await;
        // The next test needs the node again. Its taint goes a moment after it is ready.
        wait::until("all nodes to take pods", SOON, || async {
            let nodes: Api<Node> = Api::all(world.cluster.client());
            let nodes = nodes.list(&ListParams::default()).await?.items.len();
            let taking = world.cluster.node_names().await?;
            Ok(Seen::when(taking.len() == nodes, || {
                format!("only {taking:?}")
            }))
        })
        .await?;
        went
    })
    .await;
}

/// A plain Job whose pods take 25 s to end once they are deleted.
async fn stubborn(world: &World) -> Result<()> {
    let mut template = shell("trap '' TERM; sleep 25; exit 0");
    template["spec"]["terminationGracePeriodSeconds"] = json!(60);
    template["spec"]["restartPolicy"] = json!("Never");
    let job: batch::Job = serde_json::from_value(json!({
        "metadata": {"name": "stubborn"},
        "spec": {"managedBy": api::MANAGED_BY, "template": template},
    }))?;
    let jobs: Api<batch::Job> = world.api();
    jobs.create(&PostParams::default(), &job).await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_pod_of_a_plain_job_is_replaced_before_it_has_ended() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        stubborn(world).await?;
        let (pods, jobs): (Api<Pod>, Api<batch::Job>) = (world.api(), world.api());
        let selector = "batch.kubernetes.io/job-name=stubborn";
        let runs = |pod: &Pod| wait::phase(pod) == "Running";
        let first = |pods: &[Pod]| pods.iter().any(runs);
        let running = wait::for_pods(&pods, selector, "a running pod", SOON, first).await?;
        let Some(first) = running.first() else {
            bail!("no pod");
        };
        pods.delete(&first.name_any(), &DeleteParams::default())
            .await?;
        let count = |job: &batch::Job| {
            let status = job.status.clone().unwrap_or_default();
            (status.failed, status.terminating, status.active)
        };
        let both = |job: &batch::Job| count(job) == (Some(1), Some(1), Some(1));
        wait::for_object(&jobs, "stubborn", "the second pod beside it", SOON, both).await?;
        let complete = |job: &batch::Job| {
            let conditions = job.status.iter().flat_map(|status| &status.conditions);
            let mut conditions = conditions.flatten();
            conditions.any(|own| own.type_ == api::COMPLETE && own.status == "True")
        };
        let ended = wait::for_object(&jobs, "stubborn", "completion", SOON, complete).await?;
        assert_eq!(ended.status.and_then(|status| status.failed), Some(1));
        let companions: Api<DeadlineJob> = world.api();
        for companion in companions.list(&ListParams::default()).await? {
            assert_counts_balance(&companion);
        }
        Ok(())
    })
    .await;
}
