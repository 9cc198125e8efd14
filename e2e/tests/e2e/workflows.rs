//! Jobs that a script creates one after the other, with one deadline for all of them.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::batch::v1 as batch;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, WorkflowStatus};
use shed_e2e::jobs::{label, node, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::adopted::{companion, has, wait_for};
use crate::stored_state::{STORED, stored};
use crate::tasks::worker;

/// Work that costs CPU: a slow node makes no sleep longer.
const BURN: &str = "n=0; while [ $n -lt 150000 ]; do n=$((n + 1)); done";
const STAGES: [&str; 3] = ["extract", "transform", "load"];

/// What a script would apply for a stage of a run.
fn stage(run: &str, stage: &str, spec: &Value) -> Result<batch::Job> {
    let mut annotations = json!({
        api::ANNOTATION_WORKFLOW: run,
        api::ANNOTATION_WORKFLOW_DEADLINE: "80s",
        "shed.dev/idempotency": "Safe",
        "shed.dev/progress": "{file: {}, periodSeconds: 1}",
        "shed.dev/resume": "Checkpoint",
    });
    if stage == "load" {
        annotations[api::ANNOTATION_WORKFLOW_LAST] = json!("true");
    }
    let mut spec = spec.clone();
    spec["managedBy"] = json!(api::MANAGED_BY);
    spec["completionMode"] = json!("Indexed");
    spec["template"]["spec"]["restartPolicy"] = json!("Never");
    let metadata = json!({
        "name": format!("{run}-{stage}"),
        "labels": {api::LABEL_CLASS: format!("etl-{stage}")},
        "annotations": annotations,
    });
    Ok(serde_json::from_value(
        json!({"metadata": metadata, "spec": spec}),
    )?)
}

/// Creates the Job of a stage and waits for its end, as a script does. Returns its companion.
async fn run_stage(world: &World, run: &str, name: &str, spec: &Value) -> Result<DeadlineJob> {
    let jobs: Api<batch::Job> = world.api();
    let job = stage(run, name, spec)?;
    jobs.create(&PostParams::default(), &job).await?;
    let done = wait_for(world, &format!("{run}-{name}"), api::COMPLETE).await?;
    ensure!(
        !has(&done, api::DEADLINE_MISSED),
        "{name} of {run} ended after the deadline of the run"
    );
    companion(world, &done).await
}

fn of_run(companion: &DeadlineJob) -> Result<WorkflowStatus> {
    status(companion).workflow.context("no status.workflow")
}

/// A stage of one task of a second or so; `transform` costs CPU.
fn short(stage: &str) -> Value {
    let script = match stage {
        "transform" => worker(40, 0.0, 0.0, BURN),
        _ => worker(4, 0.2, 0.2, ":"),
    };
    json!({"completions": 1, "parallelism": 1, "template": shell(&script)})
}

/// A run before the slow one.
async fn earlier(world: &World, run: &str) -> Result<()> {
    for name in STAGES {
        let companion = run_stage(world, run, name, &short(name)).await?;
        let own = of_run(&companion)?;
        assert_eq!(own.run, run);
        // No run of the class has ended before.
        assert_eq!((own.pocd, own.overrun), (None, None), "{run}");
    }
    Ok(())
}

/// One task per node, with a slow one among them.
fn wide(nodes: usize) -> Value {
    let mut template = shell(&worker(40, 0.0, 0.0, BURN));
    // One first attempt per node, or the scheduler may leave the slow one out.
    template["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {api::LABEL_KIND: "original"}},
    }]);
    json!({"completions": nodes, "parallelism": nodes, "template": template})
}

#[tokio::test]
async fn a_run_with_a_slow_node_in_its_second_stage_is_in_time() {
    scenario(Needs::ThisMachine, Company::Alone, async |world| {
        let nodes = world.cluster.node_names().await?;
        let slow = nodes.last().context("no node")?;
        try_join_all(["etl-1", "etl-2", "etl-3"].map(|run| earlier(world, run))).await?;

        let extract = run_stage(world, "etl-4", "extract", &short("extract")).await?;
        world.cluster.slow(slow, 0.1).await?;
        let transform = run_stage(world, "etl-4", "transform", &wide(nodes.len())).await?;
        world.cluster.slow(slow, 1.0).await?;
        let load = run_stage(world, "etl-4", "load", &short("load")).await?;

        let counts = status(&transform).attempts;
        ensure!(counts.clone_wins >= 1, "no clone won: {counts:?}");
        let mut clones = world.seen.all();
        clones.retain(|pod| label(pod, api::LABEL_KIND) == "clone");
        for clone in clones {
            assert_ne!(node(&clone), slow, "a clone was put on the slow node");
        }
        // All stages have the deadline of the run, which counts from the first one.
        let [first, second, last] = [of_run(&extract)?, of_run(&transform)?, of_run(&load)?];
        assert_eq!(
            (&first.deadline, &second.deadline),
            (&second.deadline, &last.deadline)
        );
        assert_eq!(status(&load).deadline, Some(last.deadline.clone()));
        let created = extract
            .metadata
            .creation_timestamp
            .context("no creation")?
            .0;
        let within = last.deadline.0.duration_since(created).as_secs();
        ensure!(
            (70..=80).contains(&within),
            "due {within} s after the first stage"
        );
        let end = status(&load).completion_time.context("no end")?;
        ensure!(end.0 <= last.deadline.0, "the run ended after its deadline");
        // Three earlier runs have ended, so the whole run has figures.
        ensure!(second.pocd.is_some(), "{second:?}");
        ensure!(second.estimated_completion_time.is_some(), "{second:?}");
        is_stored(world).await
    })
    .await;
}

/// The next leader learns of these runs.
async fn is_stored(world: &World) -> Result<()> {
    let class = format!("{}/etl", world.namespace);
    wait::until("four runs to be stored", STORED, async || {
        let text = stored(world).await?;
        let state: Value = serde_json::from_str(&text)?;
        let runs = state["workflows"][&class].as_object();
        let count = runs.map_or(0, serde_json::Map::len);
        Ok(Seen::when(count == 4, || format!("{count} runs")))
    })
    .await
}
