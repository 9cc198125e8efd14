//! Jobs that are made again from a backup, as Velero does it: without uid and owners, with a label, and with the status
//! right after the object, if at all.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, is_true, label, shell_or_fake, status};
use shed_e2e::patches::merge;
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen, for_absence};

/// In this time a job that may start has started.
const QUIET: Duration = Duration::from_secs(5);

/// Four tasks, two at a time.
async fn submit<'w>(world: &'w World, name: &str) -> Result<Job<'w>> {
    let template = shell_or_fake("sleep 6", 6000, 0);
    let spec = json!({"completions": 4, "parallelism": 2, "template": template,
        "speculation": {"mode": "Disabled"}});
    Job::submit(world, name, spec).await
}

/// Takes a copy of a job that has two of four tasks done, and deletes it.
async fn half_done(job: &Job<'_>) -> Result<DeadlineJob> {
    let copy = job
        .wait("two tasks to be done", SOON, |job| {
            status(job).succeeded == 2
        })
        .await?;
    for pod in job.pods_ever() {
        assert_eq!(
            label(&pod, api::LABEL_NO_BACKUP),
            "true",
            "{}",
            pod.name_any()
        );
    }
    job.delete(&DeleteParams::background()).await?;
    for_absence(&job.api, &job.name, SOON).await?;
    Ok(copy)
}

/// The object as a backup brings it back, without a status.
async fn restore<'w>(world: &'w World, copy: &DeadlineJob) -> Result<Job<'w>> {
    let mut manifest = json!({
        "apiVersion": "shed.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": copy.name_any(), "labels": copy.labels()},
        "spec": copy.spec,
    });
    manifest["metadata"]["labels"][api::LABEL_RESTORED] = json!("monday");
    Job::submit_manifest(world, &manifest).await
}

/// Brings the status back, over whatever was written since.
async fn restore_status(job: &Job<'_>, copy: &DeadlineJob) -> Result<()> {
    wait::until("the status to be written", SOON, || async {
        let mut object = job.api.get(&job.name).await?;
        object.status.clone_from(&copy.status);
        let parameters = PostParams::default();
        let replace = job.api.replace_status(&job.name, &parameters, &object);
        match replace.await {
            Ok(_) => Ok(Seen::Ready(())),
            Err(kube::Error::Api(response)) if response.code == 409 => {
                Ok(Seen::NotYet("409".to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    })
    .await
}

fn tasks(pods: &[Pod]) -> Vec<&str> {
    let mut tasks: Vec<&str> = pods
        .iter()
        .map(|pod| label(pod, api::LABEL_INDEX))
        .collect();
    tasks.sort_unstable();
    tasks
}

#[tokio::test]
async fn a_job_restored_with_its_status_goes_on() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let copy = half_done(&submit(world, "go-on").await?).await?;
        let restored = restore(world, &copy).await?;
        restore_status(&restored, &copy).await?;
        let ended = restored.wait_complete().await?;
        assert_eq!(tasks(&restored.pods_ever()), ["2", "3"]);
        assert_eq!(status(&ended).succeeded, 4);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_restored_without_its_status_asks() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let copy = half_done(&submit(world, "ask").await?).await?;
        let restored = restore(world, &copy).await?;
        restored
            .wait_true(api::SUSPENDED, reason::RESTORED_WITHOUT_STATUS, SOON)
            .await?;
        tokio::time::sleep(QUIET).await;
        ensure!(restored.pods_ever().is_empty(), "it has started");
        let without_label = json!({"metadata": {"labels": {api::LABEL_RESTORED: Value::Null}}});
        merge(&restored.api, &restored.name, &without_label).await?;
        let ended = restored.wait_complete().await?;
        ensure!(!is_true(&ended, api::SUSPENDED), "it is suspended");
        assert_eq!(tasks(&restored.pods_ever()), ["0", "1", "2", "3"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_finished_job_stays_finished_when_it_is_restored() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let job = submit(world, "finished").await?;
        let copy = job.wait_complete().await?;
        job.delete(&DeleteParams::background()).await?;
        for_absence(&job.api, &job.name, SOON).await?;
        let restored = restore(world, &copy).await?;
        restore_status(&restored, &copy).await?;
        restored.wait_complete().await?;
        tokio::time::sleep(QUIET).await;
        ensure!(restored.pods_ever().is_empty(), "a task ran again");
        let now = restored.api.get(&restored.name).await?;
        let [before, after] = [&copy, &now].map(|job| status(job).attempts);
        assert_eq!(before, after);
        let ledger = now.ledger().context("it has no ledger")?;
        ensure!(ledger.finished, "it is open again");
        Ok(())
    })
    .await;
}
