//! batch/v1 Jobs that name shed in `spec.managedBy`.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};
use shed_e2e::jobs::{SOON, assert_counts_balance, label, shell, shell_or_fake, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::tasks::worker;

/// A Job of shed's as a user would write it.
async fn submit(
    world: &World,
    name: &str,
    annotations: Value,
    mut spec: Value,
) -> Result<batch::Job> {
    spec["managedBy"] = json!(api::MANAGED_BY);
    spec["template"]["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    let jobs: Api<batch::Job> = world.api();
    let job: batch::Job = serde_json::from_value(job)?;
    Ok(jobs.create(&PostParams::default(), &job).await?)
}

/// Whether a Job has a condition.
pub fn has(job: &batch::Job, type_: &str) -> bool {
    let conditions = job.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    conditions.any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Waits until a Job has a condition.
pub async fn wait_for(world: &World, name: &str, type_: &str) -> Result<batch::Job> {
    let jobs: Api<batch::Job> = world.api();
    wait::for_object(&jobs, name, type_, SOON, |job| has(job, type_)).await
}

/// The DeadlineJob that holds the Job's ledger.
pub async fn companion(world: &World, job: &batch::Job) -> Result<DeadlineJob> {
    let all: Api<DeadlineJob> = world.api();
    let mut all = all.list(&ListParams::default()).await?.items.into_iter();
    let uid = job.uid().context("a Job without uid")?;
    let is_its = |own: &DeadlineJob| own.owner_references().iter().any(|owner| owner.uid == uid);
    all.find(is_its).context("the Job has no companion")
}

async fn pods(world: &World, name: &str) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = world.api();
    let of_job = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}"));
    Ok(pods.list(&of_job).await?.items)
}

#[tokio::test]
async fn a_job_with_a_deadline_gets_a_clone_of_its_straggler() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let annotations = json!({
            "shed.dev/deadline": "60s",
            "shed.dev/idempotency": "Safe",
            "shed.dev/progress": "{file: {}, periodSeconds: 1}",
            "shed.dev/resume": "Checkpoint",
        });
        // The first attempt of task 0 would take some 80 s.
        let template = shell(&worker(40, 0.2, 2.0, ":"));
        let spec = json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed",
            "template": template});
        submit(world, "adopted", annotations, spec).await?;
        let job = wait_for(world, "adopted", api::COMPLETE).await?;
        let done = job.status.as_ref().context("no status")?;
        // Zero values are not written there.
        assert_eq!(
            (done.succeeded, done.failed, done.active),
            (Some(4), None, None)
        );
        assert_eq!(done.completed_indexes.as_deref(), Some("0-3"));
        ensure!(has(&job, api::SUCCESS_CRITERIA_MET), "no interim condition");
        ensure!(
            !has(&job, api::DEADLINE_MISSED),
            "missed in spite of the clone"
        );
        let companion = companion(world, &job).await?;
        // Where the cluster was full at that moment its place was given to a new attempt instead.
        let attempts = status(&companion).attempts;
        let rescues = attempts.clone_wins + attempts.retries;
        assert!(rescues >= 1, "in time without a rescue: {attempts:?}");
        assert_counts_balance(&companion);
        for pod in pods(world, "adopted").await? {
            let owners = pod.owner_references();
            ensure!(owners.iter().all(|owner| owner.kind == "Job"), "{owners:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_without_annotations_has_pods_that_know_nothing_of_shed() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 3, "parallelism": 2, "template": shell_or_fake("exit 0", 500, 0)});
        submit(world, "plain", json!({}), spec).await?;
        let job = wait_for(world, "plain", api::COMPLETE).await?;
        let done = job.status.as_ref().context("no status")?;
        assert_eq!((done.succeeded, done.ready, done.terminating), (Some(3), Some(0), Some(0)));
        assert_eq!(done.completed_indexes, None, "it is not Indexed");
        let pods = pods(world, "plain").await?;
        assert_eq!(pods.len(), 3);
        for pod in &pods {
            let spec = pod.spec.as_ref().context("no spec")?;
            ensure!(spec.init_containers.iter().flatten().next().is_none(), "a sidecar");
            ensure!(spec.containers.iter().all(|own| own.env.is_none()), "variables");
            assert_eq!(label(pod, api::LABEL_INDEX), "");
            ensure!(pod.name_any().starts_with("plain-"), "{}", pod.name_any());
            ensure!(pod.finalizers().is_empty(), "{:?}", pod.finalizers());
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unreadable_annotation_is_refused_until_it_is_corrected() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 1, "template": shell_or_fake("exit 0", 500, 0)});
        submit(world, "typo", json!({"shed.dev/deadline": "soon"}), spec).await?;
        let refused = wait_for(world, "typo", api::ADOPTION_REFUSED).await?;
        let conditions = refused.status.and_then(|status| status.conditions);
        let said = conditions.into_iter().flatten().find_map(|own| own.message);
        let said = said.unwrap_or_default();
        ensure!(
            said.contains("shed.dev/deadline") && said.contains("use a value such as"),
            "{said}"
        );
        let events: Api<Event> = world.api();
        wait::until("an event that says so", SOON, || async {
            let events = events.list(&ListParams::default()).await?.items;
            let reported = |event: &Event| event.message.as_deref() == Some(said.as_str());
            Ok(Seen::when(events.iter().any(reported), || {
                format!("{} events", events.len())
            }))
        })
        .await?;
        ensure!(
            pods(world, "typo").await?.is_empty(),
            "pods of a refused Job"
        );

        let jobs: Api<batch::Job> = world.api();
        let mended = json!({"metadata": {"annotations": {"shed.dev/deadline": "5m"}}});
        jobs.patch("typo", &PatchParams::default(), &Patch::Merge(mended))
            .await?;
        let job = wait_for(world, "typo", api::COMPLETE).await?;
        ensure!(!has(&job, api::ADOPTION_REFUSED), "still refused");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_job_takes_its_pods_and_its_ledger_along() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 2, "parallelism": 2, "template": shell_or_fake("sleep 300", 300_000, 0)});
        let job = submit(world, "gone", json!({}), spec).await?;
        let all: Api<Pod> = world.api();
        let selector = "batch.kubernetes.io/job-name=gone";
        let running = |pods: &[Pod]| pods.iter().filter(|pod| wait::phase(pod) == "Running").count();
        wait::for_pods(&all, selector, "two running pods", SOON, |pods| running(pods) == 2).await?;
        let name = companion(world, &job).await?.name_any();
        let jobs: Api<batch::Job> = world.api();
        jobs.delete("gone", &kube::api::DeleteParams::foreground()).await?;
        wait::for_absence(&jobs, "gone", SOON).await?;
        wait::for_pods(&all, selector, "no pod", SOON, <[Pod]>::is_empty).await?;
        let companions: Api<DeadlineJob> = world.api();
        wait::for_absence(&companions, &name, SOON).await
    })
    .await;
}
