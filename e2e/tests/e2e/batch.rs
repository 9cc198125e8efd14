//! The features of batch/v1 Job in a `DeadlineJob`.

use anyhow::ensure;
use serde_json::{Value, json};
use shed::api::{self, reason};
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, is_true, shell, shell_or_fake, status};
use shed_e2e::scenario::{Company, Needs, scenario};

/// A task that ends at once with a code of its own, or sleeps.
fn exits(index: u32, code: u32) -> Value {
    shell(&format!(
        r#"[ "$JOB_COMPLETION_INDEX" != {index} ] && sleep 300 || exit {code}"#
    ))
}

#[tokio::test]
async fn a_failure_rule_fails_the_job_and_says_which_pod_did_it() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}});
        let spec = json!({"completions": 2, "backoffLimitPerIndex": 9, "template": exits(1, 42),
            "podFailurePolicy": {"rules": [rule]}});
        let job = Job::submit(world, "fatal", spec).await?;
        let ended = job
            .wait_true(api::FAILED, reason::POD_FAILURE_POLICY, SOON)
            .await?;
        let conditions = &status(&ended).conditions;
        let failed = conditions.iter().find(|one| one.type_ == api::FAILED);
        let message = failed.map(|one| one.message.as_str()).unwrap_or_default();
        ensure!(message.contains("exited with code 42"), "{message}");
        assert_eq!(status(&ended).attempts.retries, 0);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_failure_rule_fails_a_task_without_spending_its_back_off() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let rules = json!([
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}},
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [4]}},
        ]);
        let script = r#"[ "$JOB_COMPLETION_INDEX" = 0 ] && exit 3
            [ "$SHED_ATTEMPT" != 0 ] || exit 4"#;
        let spec = json!({"completions": 2, "backoffLimitPerIndex": 0, "template": shell(script),
            "podFailurePolicy": {"rules": rules}});
        let job = Job::submit(world, "rules", spec).await?;
        let ended = job
            .wait_true(api::FAILED, reason::FAILED_INDEXES, SOON)
            .await?;
        let status = status(&ended);
        assert_eq!(
            (&*status.failed_indexes, &*status.completed_indexes),
            ("0", "1")
        );
        assert_eq!((status.attempts.failed, status.attempts.disrupted), (1, 1));
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn enough_successes_end_the_job_and_what_still_runs() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let spec = json!({"completions": 3, "template": exits(1, 0),
            "successPolicy": {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]}});
        let job = Job::submit(world, "enough", spec).await?;
        let ended = job
            .wait_true(api::COMPLETE, reason::SUCCESS_POLICY, SOON)
            .await?;
        let status = status(&ended);
        assert_eq!((&*status.completed_indexes, status.active), ("1", 0));
        ensure!(
            is_true(&ended, api::SUCCESS_CRITERIA_MET),
            "no interim condition"
        );
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn limits_of_failed_tasks_and_of_failures_end_the_job() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("exit 1", 500, 1);
        let limits = [
            (
                json!({"maxFailedIndexes": 1, "backoffLimitPerIndex": 0}),
                reason::MAX_FAILED_INDEXES,
            ),
            (
                json!({"backoffLimit": 1, "backoffLimitPerIndex": 9}),
                reason::BACKOFF_LIMIT,
            ),
        ];
        for (position, (limit, reason)) in limits.into_iter().enumerate() {
            let mut spec = json!({"completions": 4, "parallelism": 1, "template": template});
            for (key, value) in limit.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            let job = Job::submit(world, &format!("limit-{position}"), spec).await?;
            let ended = job.wait_true(api::FAILED, reason, SOON).await?;
            assert_eq!(status(&ended).attempts.failed, 2);
            assert_counts_balance(&ended);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_time_limit_stops_a_job_long_before_its_deadline() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        // A clone would be one more that is superseded.
        let spec = json!({"activeDeadlineSeconds": 3, "completions": 2,
            "speculation": {"mode": "Disabled"},
            "template": shell_or_fake("sleep 300", 300_000, 0)});
        let job = Job::submit(world, "limited", spec).await?;
        let ended = job
            .wait_true(api::FAILED, reason::DEADLINE_EXCEEDED, SOON)
            .await?;
        assert_eq!(status(&ended).attempts.superseded, 2);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn only_the_chosen_indexes_run() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 5, "indexes": "1,3-4", "speculation": {"mode": "Disabled"},
            "template": shell_or_fake("true", 300, 0)});
        let job = Job::submit(world, "chosen", spec).await?;
        let ended = job.wait_complete().await?;
        assert_eq!(status(&ended).completed_indexes, "1,3-4");
        assert_eq!(job.pods_ever().len(), 3);
        assert_counts_balance(&ended);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_running_job_grows_and_shrinks() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let spec = json!({"completions": 2, "speculation": {"mode": "Disabled"},
            "template": shell_or_fake("sleep 300", 300_000, 0)});
        let job = Job::submit(world, "elastic", spec).await?;
        job.wait_running(2).await?;
        job.change(&json!({"completions": 4})).await?;
        job.wait_running(4).await?;
        job.change(&json!({"parallelism": 1})).await?;
        job.wait("one task runs", SOON, |job| {
            (status(job).active, status(job).terminating) == (1, 0)
        })
        .await?;
        job.change(&json!({"completions": 3, "parallelism": 3}))
            .await?;
        job.wait_running(3).await?;
        let seen = job.api.get(&job.name).await?;
        assert_eq!(status(&seen).attempts.failed, 0);
        assert_eq!(status(&seen).attempts.superseded, 3);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_of_another_manager_is_left_alone() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let template = shell_or_fake("true", 300, 0);
        let spec = json!({"managedBy": "example.com/other", "template": template});
        let other = Job::submit(world, "not-ours", spec).await?;
        let spec = json!({"managedBy": api::MANAGED_BY, "template": template});
        let ours = Job::submit(world, "ours", spec).await?;
        ours.wait_complete().await?;
        ensure!(
            other.api.get(&other.name).await?.status.is_none(),
            "it has a status"
        );
        ensure!(other.pods_ever().is_empty(), "it has pods");
        Ok(())
    })
    .await;
}
