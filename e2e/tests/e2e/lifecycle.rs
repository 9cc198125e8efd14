//! Jobs that are deleted, made again, suspended.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use shed::api::{self, reason};
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, condition, is_held, is_running, is_true, shell_or_fake,
    status,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// The guarantees about deletion.
const GONE: Duration = Duration::from_secs(30);

fn long_tasks(count: i32) -> Value {
    let template = shell_or_fake("sleep 300", 300_000, 0);
    json!({"completions": count, "template": template})
}

#[tokio::test]
async fn a_running_job_deleted_in_the_background_leaves_nothing() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        leaves_nothing(world, &DeleteParams::background()).await
    })
    .await;
}

#[tokio::test]
async fn a_running_job_deleted_in_the_foreground_leaves_nothing() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        leaves_nothing(world, &DeleteParams::foreground()).await
    })
    .await;
}

async fn leaves_nothing(world: &World, how: &DeleteParams) -> Result<()> {
    let job = Job::submit(world, "deleted", long_tasks(3)).await?;
    job.wait_running(3).await?;
    job.delete(how).await?;
    job.wait_nothing_left(GONE).await
}

#[tokio::test]
async fn pods_orphaned_on_purpose_are_let_go() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let job = Job::submit(world, "orphans", long_tasks(2)).await?;
        job.wait_running(2).await?;
        job.delete(&DeleteParams::orphan()).await?;
        let free = |pods: &[Pod]| pods.iter().all(|pod| !is_held(pod));
        job.wait_pods("no pod to be held by shed", GONE, free)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_made_again_under_its_name_starts_from_nothing() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let first = Job::submit(world, "again", long_tasks(2)).await?;
        first.wait_running(2).await?;
        first.delete(&DeleteParams::background()).await?;
        let second = submit_when_free(world, "again").await?;
        ensure!(first.uid != second.uid, "the old job is still there");
        let ended = second.wait_complete().await?;
        let attempts = status(&ended).attempts;
        assert_eq!((attempts.originals, attempts.won), (2, 2));
        assert_counts_balance(&ended);
        for pod in second.pods_ever() {
            let owners = pod.metadata.owner_references.unwrap_or_default();
            assert!(owners.iter().all(|owner| owner.uid == second.uid));
        }
        let gone = |pods: &[Pod]| pods.is_empty();
        first
            .wait_pods("the old pods to be gone", GONE, gone)
            .await?;
        Ok(())
    })
    .await;
}

/// The name is free as soon as the apiserver has carried out the deletion.
async fn submit_when_free<'w>(world: &'w World, name: &str) -> Result<Job<'w>> {
    let template = shell_or_fake("sleep 1", 1000, 0);
    wait::until("the name to be free", SOON, || async {
        let spec = json!({"completions": 2, "template": template});
        match Job::submit(world, name, spec).await {
            Ok(job) => Ok(Seen::Ready(job)),
            Err(error) if is_conflict(&error) => Ok(Seen::NotYet("409".to_owned())),
            Err(error) => Err(error),
        }
    })
    .await
}

fn is_conflict(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<kube::Error>(),
        Some(kube::Error::Api(response)) if response.code == 409
    )
}

#[tokio::test]
async fn a_suspended_job_stops_and_goes_on() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake(r#"[ "$SHED_ATTEMPT" != 0 ] || sleep 300"#, 8000, 0);
        // A clone would be one more that is superseded.
        let spec = json!({"completions": 2, "backoffLimitPerIndex": 0, "template": template,
            "speculation": {"mode": "Disabled"}});
        let job = Job::submit(world, "pause", spec).await?;
        job.wait_running(2).await?;
        job.change(&json!({"suspend": true})).await?;
        job.wait_true(api::SUSPENDED, reason::JOB_SUSPENDED, SOON)
            .await?;
        let stopped = |pods: &[Pod]| !pods.iter().any(is_running);
        job.wait_pods("attempts to stop", SOON, stopped).await?;
        let idle = job
            .wait("nothing active", SOON, |job| {
                let status = status(job);
                status.active == 0 && status.terminating == 0
            })
            .await?;
        assert_eq!(status(&idle).phase.as_deref(), Some("Suspended"));
        job.change(&json!({"suspend": false})).await?;
        let ended = job.wait_complete().await?;
        let suspended = condition(&ended, api::SUSPENDED).context("no Suspended")?;
        assert_eq!(
            (suspended.status.as_str(), suspended.reason.as_str()),
            ("False", reason::JOB_RESUMED)
        );
        let attempts = status(&ended).attempts;
        assert_eq!((attempts.failed, attempts.disrupted), (0, 0));
        assert_eq!((attempts.superseded, attempts.won), (2, 2));
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_created_suspended_has_no_pod_and_its_clock_waits() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({
            "suspend": true,
            "deadline": {"within": "5m", "clockStart": "Start"},
            "template": shell_or_fake("true", 500, 0),
        });
        let job = Job::submit(world, "later", spec).await?;
        let waiting = job
            .wait_true(api::SUSPENDED, reason::JOB_SUSPENDED, SOON)
            .await?;
        ensure!(status(&waiting).deadline.is_none(), "the clock has started");
        ensure!(job.pods_ever().is_empty(), "a pod was created");
        job.change(&json!({"suspend": false})).await?;
        let ended = job.wait_complete().await?;
        ensure!(status(&ended).deadline.is_some(), "the clock never started");
        ensure!(!is_true(&ended, api::SUSPENDED), "still suspended");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn parallelism_bounds_the_attempts_that_run() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("sleep 2", 2000, 0);
        // Clones come on top of `parallelism`, and a busy machine makes stragglers.
        let spec = json!({"completions": 5, "parallelism": 2, "template": template,
            "speculation": {"mode": "Disabled"}});
        let job = Job::submit(world, "narrow", spec).await?;
        let most = std::cell::Cell::new(0);
        let ended = job
            .wait("to be complete", SOON, |job| {
                most.set(most.get().max(status(job).active));
                is_true(job, api::COMPLETE)
            })
            .await?;
        assert_eq!(most.get(), 2, "most attempts at a time");
        assert_eq!(status(&ended).attempts.won, 5);
        let overlap = most_at_once(&job.pods_ever());
        ensure!(overlap <= 2, "{overlap} tasks ran at a time");
        Ok(())
    })
    .await;
}

/// How many pods existed at the same time at most, judged by creation and their tasks' ends.
fn most_at_once(pods: &[Pod]) -> usize {
    let spans: Vec<_> = pods
        .iter()
        .filter_map(|pod| {
            let end = shed_e2e::jobs::ended(pod)?.finished_at.clone()?.0;
            Some((pod.metadata.creation_timestamp.clone()?.0, end))
        })
        .collect();
    let at = |instant| {
        let live = spans
            .iter()
            .filter(|(from, to)| *from <= instant && instant < *to);
        live.count()
    };
    spans.iter().map(|(from, _)| at(*from)).max().unwrap_or(0)
}
