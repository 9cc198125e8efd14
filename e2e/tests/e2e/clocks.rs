//! Clocks that differ, ends that are reported late, and exits that answer a deletion. The test plays
//! the kubelet: what it says of a pod is dated as a node would whose clock is off.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};
use shed_e2e::jobs::{
    Job, SOON, TASK, assert_counts_balance, is_true, shell_or_fake, status, summary,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// One task that runs until the test ends it, and gets no clone.
fn spec(change: &Value) -> Value {
    let mut spec = json!({
        "deadline": {"within": "10m"},
        "speculation": {"mode": "Disabled"},
        "template": shell_or_fake("sleep 600", 600_000, 0),
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

async fn patch_status(world: &World, pod: &Pod, status: Value) -> Result<()> {
    let pods: Api<Pod> = world.api();
    let patch = Patch::Merge(json!({"status": status}));
    let parameters = PatchParams::default();
    pods.patch_status(&pod.name_any(), &parameters, &patch)
        .await?;
    Ok(())
}

/// The pod's task ended with 0 at that instant, as its node says.
async fn succeeds(world: &World, pod: &Pod, at: Timestamp) -> Result<()> {
    let started = at - SignedDuration::from_secs(5);
    let end = json!({"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": at});
    let container = json!({"name": TASK, "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": {"terminated": end}});
    let status = json!({"phase": "Succeeded", "containerStatuses": [container]});
    patch_status(world, pod, status).await
}

/// From now on kwok leaves the pod to the test, also when it is deleted.
async fn take_over(world: &World, pod: &Pod) -> Result<()> {
    patch_status(world, pod, json!({"phase": "Unknown"})).await
}

fn whole_seconds(at: Timestamp) -> Result<Timestamp> {
    Ok(Timestamp::from_second(at.as_second())?)
}

fn in_seconds(seconds: i64) -> Result<Timestamp> {
    whole_seconds(Timestamp::now() + SignedDuration::from_secs(seconds))
}

async fn pass(instant: Timestamp) -> Result<()> {
    wait::until("an instant to pass", SOON, || async {
        let now = Timestamp::now();
        Ok(Seen::when(now > instant, || now.to_string()))
    })
    .await
}

/// Ends the job's next attempt well, and waits until the job is complete.
async fn completes(world: &World, job: &Job<'_>) -> Result<DeadlineJob> {
    let pods = job.wait_running(1).await?;
    let running = pods.iter().find(|pod| wait::phase(pod) == "Running");
    let running = running.context("no pod runs")?;
    succeeds(world, running, in_seconds(-1)?).await?;
    let complete = job.wait_complete().await?;
    assert_counts_balance(&complete);
    Ok(complete)
}

#[tokio::test]
async fn a_node_whose_clock_is_ahead_makes_nothing_late() {
    scenario(Needs::OperatorProcess, Company::Shared, async |world| {
        let change = json!({"deadline": {"within": "25s"}});
        let job = Job::submit(world, "ahead", spec(&change)).await?;
        let pods = job.wait_running(1).await?;
        // By the node it ends 15 s or more behind the deadline.
        succeeds(world, &pods[0], in_seconds(40)?).await?;
        let complete = job.wait_complete().await?;
        let attempts = status(&complete).attempts;
        assert_eq!(
            (attempts.won, attempts.late),
            (1, 0),
            "{}",
            summary(&complete)
        );
        ensure!(
            !is_true(&complete, api::DEADLINE_MISSED),
            "{}",
            summary(&complete)
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_answer_to_shed_s_kill_is_no_win_though_its_node_is_behind() {
    scenario(Needs::OperatorProcess, Company::Shared, async |world| {
        let job = Job::submit(world, "behind", spec(&json!({}))).await?;
        let pods = job.wait_running(1).await?;
        take_over(world, &pods[0]).await?;
        job.change(&json!({"suspend": true})).await?;
        let is_deleted = |pods: &[Pod]| {
            pods.iter()
                .all(|pod| pod.metadata.deletion_timestamp.is_some())
        };
        job.wait_pods("the pod to be deleted", SOON, is_deleted)
            .await?;
        // It traps SIGTERM; by its node that was a minute before.
        succeeds(world, &pods[0], in_seconds(-60)?).await?;
        let counted = |job: &DeadlineJob| status(job).attempts.superseded == 1;
        let suspended = job.wait("the kill to be counted", SOON, counted).await?;
        assert_eq!(status(&suspended).succeeded, 0, "half a result won");
        job.change(&json!({"suspend": false})).await?;
        let complete = completes(world, &job).await?;
        assert_eq!(status(&complete).attempts.won, 1);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_exit_with_0_in_answer_to_a_deletion_is_no_result() {
    scenario(Needs::OperatorProcess, Company::Shared, async |world| {
        let job = Job::submit(world, "drained", spec(&json!({}))).await?;
        let drained = job.wait_running(1).await?.swap_remove(0);
        take_over(world, &drained).await?;
        let pods: Api<Pod> = world.api();
        pods.delete(&drained.name_any(), &DeleteParams::default())
            .await?;
        succeeds(world, &drained, in_seconds(0)?).await?;
        let counted = |job: &DeadlineJob| status(job).attempts.disrupted == 1;
        let disrupted = job.wait("a disruption", SOON, counted).await?;
        assert_eq!(status(&disrupted).succeeded, 0, "half a result won");
        let complete = completes(world, &job).await?;
        assert_eq!(
            (
                status(&complete).attempts.won,
                status(&complete).attempts.failed
            ),
            (1, 0)
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_finish_in_time_that_is_reported_late_is_no_miss() {
    scenario(Needs::OperatorProcess, Company::Shared, async |world| {
        for on_miss in ["Fail", "Continue"] {
            let change = json!({"deadline": {"within": "15s"}, "onMiss": on_miss});
            let name = format!("late-report-{}", on_miss.to_lowercase());
            let job = Job::submit(world, &name, spec(&change)).await?;
            let pods = job.wait_running(1).await?;
            let deadline = status(&job.api.get(&job.name).await?).deadline;
            let deadline = deadline.context("no deadline")?.0;
            pass(deadline + SignedDuration::from_millis(2500)).await?;
            let undecided = job.api.get(&job.name).await?;
            for type_ in [api::DEADLINE_MISSED, api::FAILURE_TARGET] {
                ensure!(!is_true(&undecided, type_), "{}", summary(&undecided));
            }
            let in_time = whole_seconds(deadline - SignedDuration::from_secs(1))?;
            succeeds(world, &pods[0], in_time).await?;
            let complete = job.wait_complete().await?;
            for type_ in [api::DEADLINE_MISSED, api::FAILURE_TARGET] {
                ensure!(!is_true(&complete, type_), "{}", summary(&complete));
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_adopted_job_that_finished_in_time_is_no_miss() {
    scenario(Needs::OperatorProcess, Company::Shared, async |world| {
        let jobs: Api<batch::Job> = world.api();
        let mut template = shell_or_fake("sleep 600", 600_000, 0);
        template["spec"]["restartPolicy"] = json!("Never");
        let job: batch::Job = serde_json::from_value(json!({
            "metadata": {"name": "report", "annotations": {
                "shed.dev/deadline": "15s", "shed.dev/on-miss": "Fail"}},
            "spec": {"managedBy": api::MANAGED_BY, "template": template},
        }))?;
        let created = jobs.create(&PostParams::default(), &job).await?;
        let created = created.creation_timestamp().context("no creation")?.0;
        let deadline = created + SignedDuration::from_secs(15);
        let of_job = ListParams::default().labels("batch.kubernetes.io/job-name=report");
        let pods: Api<Pod> = world.api();
        let running = wait::until("its pod to run", SOON, || async {
            let pods = pods.list(&of_job).await?.items;
            let found = pods.into_iter().find(|pod| wait::phase(pod) == "Running");
            Ok(Seen::from_option(found, || "no pod runs".to_owned()))
        })
        .await?;
        pass(deadline + SignedDuration::from_millis(2500)).await?;
        let in_time = whole_seconds(deadline - SignedDuration::from_secs(1))?;
        succeeds(world, &running, in_time).await?;
        let reported = |job: &batch::Job| -> Vec<String> {
            let conditions = job.status.iter().flat_map(|status| &status.conditions);
            let true_ones = conditions.flatten().filter(|one| one.status == "True");
            true_ones.map(|one| one.type_.clone()).collect()
        };
        let complete = wait::for_object(&jobs, "report", "its end", SOON, |job| {
            reported(job).iter().any(|type_| type_ == api::COMPLETE)
        })
        .await?;
        let reported = reported(&complete);
        for type_ in [api::DEADLINE_MISSED, api::FAILURE_TARGET] {
            ensure!(!reported.iter().any(|one| one == type_), "{reported:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_operator_knows_the_apiservers_time() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let ready = world.operator.get("/readyz").await?;
        ensure!(!ready.contains("time is"), "{ready}");
        let uncertainty = world
            .operator
            .metric("shed_clock_uncertainty_seconds", &[])
            .await?;
        let offset = world
            .operator
            .metric("shed_clock_offset_seconds", &[])
            .await?;
        ensure!(
            uncertainty > 0.0 && uncertainty <= 2.0 && offset.abs() <= 2.0,
            "to within {uncertainty} s, {offset} s ahead"
        );
        Ok(())
    })
    .await;
}

/// A deadline that passes: the job is reported as failed, though later than its attempts are stopped.
#[tokio::test]
async fn a_miss_is_reported_when_its_attempts_are_stopped() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let change = json!({"deadline": {"within": "8s"}});
        let job = Job::submit(world, "missed", spec(&change)).await?;
        job.wait_running(1).await?;
        let reported = |job: &DeadlineJob| is_true(job, api::FAILURE_TARGET);
        let failing = job
            .wait("its fate", Duration::from_secs(40), reported)
            .await?;
        ensure!(
            is_true(&failing, api::DEADLINE_MISSED),
            "{}",
            summary(&failing)
        );
        Ok(())
    })
    .await;
}
