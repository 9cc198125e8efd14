//! Behavior at the deadline.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;
use shed::api::{self, reason};
use shed_e2e::jobs::{
    Job, SOON, assert_counts_balance, ended, is_true, shell, shell_or_fake, status,
};
use shed_e2e::scenario::{Company, Needs, scenario};
use shed_e2e::wait::{self, Seen};

#[tokio::test]
async fn on_miss_fail_stops_the_attempts() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("sleep 300", 300_000, 0);
        let spec = json!({"completions": 2, "deadline": {"within": "8s"}, "template": template});
        let job = Job::submit(world, "stops", spec).await?;
        job.wait_running(2).await?;
        let failed = job
            .wait_true(api::FAILED, reason::DEADLINE_MISSED, SOON)
            .await?;
        ensure!(is_true(&failed, api::DEADLINE_MISSED), "no DeadlineMissed");
        ensure!(!is_true(&failed, api::COMPLETE), "failed and complete");
        let status = status(&failed);
        assert_eq!(
            (status.succeeded, status.active, status.terminating),
            (0, 0, 0)
        );
        assert_eq!(
            status.attempts.superseded, 2,
            "killed by shed, so no failure"
        );
        assert_counts_balance(&failed);
        let done = |pods: &[_]| pods.iter().all(|pod| wait::phase(pod) != "Running");
        job.wait_pods("no attempt to run", SOON, done).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn by_default_a_late_job_goes_on_and_has_one_task() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("sleep 20", 20_000, 0);
        // Absent: the default of the CRD.
        let spec = json!({
            "deadline": {"within": "4s"}, "onMiss": null, "completions": null, "template": template,
        });
        let job = Job::submit(world, "goes-on", spec).await?;
        let missed = job
            .wait_true(api::DEADLINE_MISSED, reason::DEADLINE_PASSED, SOON)
            .await?;
        ensure!(!is_true(&missed, api::COMPLETE), "complete before its time");
        let ended = job.wait_complete().await?;
        ensure!(
            is_true(&ended, api::DEADLINE_MISSED),
            "the miss is forgotten"
        );
        assert_eq!(status(&ended).attempts.won, 1);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deadline_in_the_past_fails_the_job_before_any_pod() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({
            "deadline": {"at": "2001-01-01T00:00:00Z"}, "template": shell("true"),
        });
        let job = Job::submit(world, "past", spec).await?;
        let failed = job
            .wait_true(
                api::FAILED,
                reason::DEADLINE_IN_PAST,
                Duration::from_secs(15),
            )
            .await?;
        let attempts = status(&failed).attempts;
        assert_eq!(attempts.originals + attempts.refused, 0);
        ensure!(job.pods_ever().is_empty(), "a pod was created");
        Ok(())
    })
    .await;
}

/// Waits until the task of a job has finished before its deadline, and no kubelet would report it any more.
pub async fn finish_unseen(job: &Job<'_>) -> Result<()> {
    let deadline = job.api.get(&job.name).await?;
    let deadline = status(&deadline).deadline.context("no deadline")?.0;
    let finished = |pods: &[_]| pods.iter().all(|pod| ended(pod).is_some());
    let pods = job.wait_pods("the task to finish", SOON, finished).await?;
    let at = ended(&pods[0]).and_then(|end| end.finished_at.clone());
    ensure!(
        at.is_some_and(|at| at.0 < deadline),
        "the task was too slow for this test"
    );
    // Well past the time in which a kubelet reports.
    await_instant(deadline + Duration::from_secs(7)).await
}

/// The wall clock is what the caller is about, so it is the clock that is waited for.
async fn await_instant(instant: Timestamp) -> Result<()> {
    wait::until("the deadline to pass", SOON, || async {
        let now = Timestamp::now();
        Ok(Seen::when(now > instant, || now.to_string()))
    })
    .await
}
