//! Pods that only look like attempts, and attempts that lose their labels.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api;
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, is_held, is_running, label, shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// How long an operator is watched that is to do nothing; it would act within a second.
const WATCHED: Duration = Duration::from_secs(4);
/// The guarantees about deletion.
const GONE: Duration = Duration::from_secs(30);

/// Runs a test with a second namespace, which goes with it.
pub async fn with_neighbor<F>(world: &World, body: F) -> Result<()>
where
    F: AsyncFnOnce(&str) -> Result<()>,
{
    let neighbor = format!("{}-n", world.namespace);
    world.cluster.fresh_namespace(&neighbor).await?;
    let outcome = body(&neighbor).await;
    let gone = world.cluster.delete_namespace(&neighbor).await;
    outcome.and(gone)
}

/// The labels of the first attempt at a task.
fn labels(job_uid: &str, task: u32) -> Value {
    json!({
        api::LABEL_JOB_UID: job_uid,
        api::LABEL_INDEX: task.to_string(),
        api::LABEL_ATTEMPT: "0",
    })
}

/// Creates a pod that runs the template, and has this metadata too.
async fn create_pod(
    world: &World,
    namespace: &str,
    mut metadata: Value,
    template: &Value,
) -> Result<Pod> {
    metadata["annotations"] = template["metadata"]["annotations"].clone();
    let mut spec = template["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec}))?;
    let pods: Api<Pod> = Api::namespaced(world.cluster.client(), namespace);
    // A new namespace has no service account for a moment.
    wait::until("a pod to be created", SOON, || async {
        match pods.create(&PostParams::default(), &pod).await {
            Ok(pod) => Ok(Seen::Ready(pod)),
            Err(kube::Error::Api(refused)) if refused.code == 403 => {
                Ok(Seen::NotYet(refused.message.clone()))
            }
            Err(error) => Err(error.into()),
        }
    })
    .await
}

async fn wait_phase(world: &World, pod: &Pod, phase: &str) -> Result<()> {
    let namespace = pod.namespace().context("no namespace")?;
    let pods: Api<Pod> = Api::namespaced(world.cluster.client(), &namespace);
    let name = pod.name_any();
    let is_so = |pod: &Pod| wait::phase(pod) == phase;
    wait::for_object(&pods, &name, phase, SOON, is_so).await?;
    Ok(())
}

async fn disowned(world: &World, reason: &str) -> Result<f64> {
    let label = format!(r#"reason="{reason}""#);
    let name = "shed_pods_disowned_total";
    world.operator.metric(name, &[&label]).await
}

async fn wait_disowned(world: &World, reason: &str, before: f64) -> Result<()> {
    let what = format!("a pod to be disowned for its {reason}");
    wait::until(&what, SOON, || async {
        let now = disowned(world, reason).await?;
        Ok(Seen::when(now > before + 0.5, || now.to_string()))
    })
    .await
}

#[tokio::test]
async fn a_succeeded_pod_with_copied_labels_completes_no_task() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        with_neighbor(world, async |neighbor| {
            let spec = json!({"completions": 2, "template": shell_or_fake("sleep 300", 300_000, 0),
                "speculation": {"mode": "Disabled"}});
            let job = Job::submit(world, "victim", spec).await?;
            job.wait_running(2).await?;
            let before = (
                disowned(world, "namespace").await?,
                disowned(world, "owner").await?,
            );
            let quick = shell_or_fake("exit 0", 100, 0);
            let metadata = json!({"name": "foreign", "labels": labels(&job.uid, 0)});
            let foreign = create_pod(world, neighbor, metadata, &quick).await?;
            let metadata = json!({"name": "copy", "labels": labels(&job.uid, 1)});
            let copy = create_pod(world, &world.namespace, metadata, &quick).await?;
            wait_phase(world, &foreign, "Succeeded").await?;
            wait_phase(world, &copy, "Succeeded").await?;
            wait_disowned(world, "namespace", before.0).await?;
            wait_disowned(world, "owner", before.1).await?;
            tokio::time::sleep(WATCHED).await;
            let now = status(&job.api.get("victim").await?);
            assert_eq!((now.succeeded, now.active, now.attempts.won), (0, 2, 0));
            let own = job
                .wait_pods("its own pods", SOON, |pods| pods.len() >= 2)
                .await?;
            assert_eq!(own.iter().filter(|pod| is_running(pod)).count(), 2);
            // Its own namespace hears of the one there, and of no other.
            let said = wait::until("an event", SOON, || async {
                let said = world.messages_of("victim", api::POD_DISOWNED).await?;
                Ok(Seen::from_option(
                    (!said.is_empty()).then_some(said),
                    String::new,
                ))
            })
            .await?;
            ensure!(
                said.contains("pod copy ") && !said.contains("foreign"),
                "{said}"
            );
            Ok(())
        })
        .await
    })
    .await;
}

#[tokio::test]
async fn a_pending_pod_with_a_made_up_label_holds_nothing() {
    // Its capacity stays shared.
    scenario(Needs::Pods, Company::Shared, async |world| {
        with_neighbor(world, async |neighbor| {
            let mut huge = shell_or_fake("exit 0", 100, 0);
            huge["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100000"}});
            for namespace in [neighbor, &world.namespace] {
                let metadata = json!({"name": "huge", "labels": labels("made-up", 0)});
                let pod = create_pod(world, namespace, metadata, &huge).await?;
                wait_phase(world, &pod, "Pending").await?;
            }
            // The operator has seen them by the time that the first of two jobs is through.
            for name in ["first", "second"] {
                let spec = json!({"completions": 4, "template": shell_or_fake("sleep 1", 1000, 0)});
                let ended = Job::submit(world, name, spec)
                    .await?
                    .wait_complete()
                    .await?;
                let attempts = status(&ended).attempts;
                assert_eq!((attempts.originals, attempts.won), (4, 4), "{name}");
                assert_counts_balance(&ended);
            }
            Ok(())
        })
        .await
    })
    .await;
}

/// The pods that a job controls, whatever their labels are.
async fn controlled(world: &World, job: &Job<'_>) -> Result<Vec<Pod>> {
    let mut pods = world.api::<Pod>().list(&ListParams::default()).await?.items;
    pods.retain(|pod| {
        pod.owner_references()
            .iter()
            .any(|owner| owner.uid == job.uid)
    });
    Ok(pods)
}

#[tokio::test]
async fn an_attempt_without_its_labels_runs_on_and_leaves_nothing() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 2, "template": shell_or_fake("sleep 15", 15_000, 0),
            "speculation": {"mode": "Disabled"}});
        let job = Job::submit(world, "bare", spec).await?;
        let running = job.wait_running(2).await?;
        let pods: Api<Pod> = world.api();
        let none = Patch::Merge(json!({"metadata": {"labels": null}}));
        let first = running
            .iter()
            .find(|pod| label(pod, api::LABEL_INDEX) == "0");
        let first = first.context("the first task's pod")?.name_any();
        pods.patch(&first, &PatchParams::default(), &none).await?;
        let ended = job.wait_complete().await?;
        let attempts = status(&ended).attempts;
        assert_eq!(
            (attempts.originals, attempts.won, attempts.retries),
            (2, 2, 0)
        );
        assert_counts_balance(&ended);
        // A pod is released after the write that completes its job.
        wait::until("its finalizer to go", SOON, || async {
            let pod = pods.get(&first).await?;
            ensure!(pod.labels().is_empty(), "{:?}", pod.metadata);
            let finalizers = pod.finalizers().join(", ");
            Ok(Seen::when(!is_held(&pod), || finalizers))
        })
        .await?;
        job.delete(&DeleteParams::background()).await?;
        nothing_is_left(world, &job).await
    })
    .await;
}

#[tokio::test]
async fn a_job_whose_pods_have_lost_their_labels_is_deleted_with_them() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("sleep 300", 300_000, 0);
        let job = Job::submit(
            world,
            "bare",
            json!({"completions": 2, "template": template}),
        )
        .await?;
        job.wait_running(2).await?;
        let pods: Api<Pod> = world.api();
        let none = Patch::Merge(json!({"metadata": {"labels": null}}));
        for pod in controlled(world, &job).await? {
            pods.patch(&pod.name_any(), &PatchParams::default(), &none)
                .await?;
        }
        // And one that is never counted.
        let metadata = json!({"name": "held", "finalizers": [api::ATTEMPT_FINALIZER]});
        create_pod(world, &world.namespace, metadata, &template).await?;
        job.delete(&DeleteParams::foreground()).await?;
        nothing_is_left(world, &job).await?;
        pods.delete("held", &DeleteParams::default()).await?;
        wait::for_absence(&pods, "held", GONE).await
    })
    .await;
}

async fn nothing_is_left(world: &World, job: &Job<'_>) -> Result<()> {
    job.wait_nothing_left(GONE).await?;
    wait::until("its pods to be gone", GONE, || async {
        let left = controlled(world, job).await?;
        let names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
        Ok(Seen::when(names.is_empty(), || names.join(", ")))
    })
    .await
}
