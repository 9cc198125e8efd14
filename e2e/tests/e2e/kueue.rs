//! Adopted Jobs in a queue, with a stand-in for Kueue.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, reason};
use shed_e2e::jobs::{SOON, label, said, shell, shell_or_fake};
use shed_e2e::kueue::{Admission, Queue, most_at_once, queued, serve_its_api};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::tasks::{first_unit, worker};

/// How long it is watched that no pod comes.
const WATCHED: Duration = Duration::from_secs(5);

/// Creates a Job as Kueue's webhook leaves it: suspended.
async fn submit(world: &World, name: &str, annotations: &Value, mut spec: Value) -> Result<()> {
    spec["managedBy"] = json!(api::MANAGED_BY);
    spec["suspend"] = json!(true);
    spec["completionMode"] = json!("Indexed");
    spec["template"]["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"metadata": queued(name, annotations), "spec": spec});
    let jobs: Api<Job> = world.api();
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?)
        .await?;
    wait_for(world, name, api::SUSPENDED, "").await.map(drop)
}

/// Waits for a condition of the Job, with this reason unless that is empty.
async fn wait_for(world: &World, name: &str, type_: &str, reason: &str) -> Result<Job> {
    let jobs: Api<Job> = world.api();
    let what = format!("{type_} {reason}");
    wait::for_object(&jobs, name, &what, SOON, |job| {
        let conditions = job.status.iter().flat_map(|status| &status.conditions);
        conditions.flatten().any(|own| {
            let is_reason = reason.is_empty() || own.reason.as_deref() == Some(reason);
            own.type_ == type_ && own.status == "True" && is_reason
        })
    })
    .await
}

/// The pods that were ever on the node.
fn on(world: &World, node: &str) -> Vec<Pod> {
    let mut pods = world.seen.all();
    pods.retain(|pod| {
        let spec = pod.spec.as_ref();
        spec.and_then(|spec| spec.node_name.as_deref()) == Some(node)
    });
    pods
}

/// One flavor until it is preempted, then another.
async fn move_between_flavors(world: &World) -> Result<()> {
    serve_its_api(world).await?;
    let mut nodes = world.cluster.node_names().await?;
    let (first, second) = nodes.pop().zip(nodes.pop()).context("two nodes")?;
    let annotations = json!({
        "shed.dev/deadline": "10m",
        "shed.dev/idempotency": "Safe",
        "shed.dev/progress": "{file: {}, periodSeconds: 1}",
        "shed.dev/resume": "Checkpoint",
    });
    let spec =
        json!({"completions": 4, "parallelism": 4, "template": shell(&worker(30, 1.0, 1.0, ":"))});
    submit(world, "moves", &annotations, spec).await?;
    tokio::time::sleep(WATCHED).await;
    ensure!(world.seen.all().is_empty(), "pods of a suspended Job");
    let (queue, jobs) = (Queue::of(world), world.api::<Job>());
    let admission = |node| Admission {
        node: Some(node),
        ..Admission::default()
    };
    queue.admit("moves", &admission(&first)).await?;
    // By this rule Kueue waits for the pods of a Job.
    let are_ready = |job: &Job| {
        let status = job.status.as_ref();
        status.is_some_and(|status| status.ready == Some(4))
    };
    wait::for_object(&jobs, "moves", "all pods ready", SOON, are_ready).await?;
    // Each has some checkpoints.
    tokio::time::sleep(Duration::from_secs(8)).await;
    queue.preempt("moves", 4).await?;
    let before = world.seen.all().len();
    assert_eq!((before, on(world, &first).len()), (4, 4));
    queue.admit("moves", &admission(&second)).await?;
    wait_for(world, "moves", api::COMPLETE, "").await?;
    let after = on(world, &second);
    assert_eq!(after.len(), 4, "one attempt of each task more");
    for pod in &after {
        assert_eq!(label(pod, "kueue.x-k8s.io/podset"), "main");
        let began = first_unit(said(pod)).with_context(|| pod.name_any())?;
        ensure!(began > 3, "{} began at unit {began}", pod.name_any());
    }
    assert_eq!(most_at_once(&world.seen.timed()), 4);
    Ok(())
}

#[tokio::test]
async fn a_preempted_job_resumes_on_another_flavor() {
    scenario(Needs::OperatorPod, Company::Alone, async |world| {
        move_between_flavors(world).await
    })
    .await;
}

/// Half the parallelism, and gates that the queue removes.
async fn run_in_part(world: &World) -> Result<()> {
    serve_its_api(world).await?;
    let annotations = json!({
        "shed.dev/deadline": "2m",
        "shed.dev/expected-task-duration": "1h",
        "shed.dev/idempotency": "Safe",
    });
    let template = shell_or_fake("sleep 1", 1000, 0);
    let spec = json!({"completions": 6, "parallelism": 4, "template": template});
    submit(world, "part", &annotations, spec).await?;
    wait_for(
        world,
        "part",
        api::DEADLINE_AT_RISK,
        reason::WAITING_IN_QUEUE,
    )
    .await?;
    let queue = Queue::of(world);
    let admission = Admission {
        by_topology: true,
        parallelism: Some(2),
        ..Admission::default()
    };
    queue.admit("part", &admission).await?;
    let job = wait_for(world, "part", api::TASKS_PENDING, reason::WAITING_IN_QUEUE).await?;
    let conditions = job.status.and_then(|status| status.conditions);
    let mut conditions = conditions.into_iter().flatten();
    let is_blocked =
        conditions.any(|own| own.type_ == api::ATTEMPTS_BLOCKED && own.status == "True");
    ensure!(!is_blocked, "gated pods are called blocked");
    assert_eq!(world.seen.all().len(), 2, "as many as were admitted");
    let jobs: Api<Job> = world.api();
    wait::until("the Job to complete", SOON, || async {
        queue.open_gates().await?;
        let status = jobs.get("part").await?.status;
        let succeeded = status.and_then(|status| status.succeeded);
        Ok(Seen::when(succeeded == Some(6), || {
            format!("{succeeded:?} succeeded")
        }))
    })
    .await?;
    assert_eq!(most_at_once(&world.seen.timed()), 2);
    Ok(())
}

#[tokio::test]
async fn a_job_admitted_in_part_waits_for_its_gates() {
    scenario(Needs::OperatorPod, Company::Alone, async |world| {
        run_in_part(world).await
    })
    .await;
}
