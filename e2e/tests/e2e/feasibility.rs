//! Whether a deadline can be kept is reported before anything runs.

use anyhow::{Context, ensure};
use serde_json::json;
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::jobs::{Job, SOON, condition, manifest, shell_or_fake};
use shed_e2e::scenario::{Company, Needs, World, scenario};

/// One of a series of jobs, whose tasks run for two seconds.
async fn submit<'w>(
    world: &'w World,
    name: &str,
    spec: &serde_json::Value,
) -> anyhow::Result<Job<'w>> {
    let mut manifest = manifest(name, spec);
    manifest["spec"]["template"] = shell_or_fake("sleep 2", 2000, 0);
    manifest["metadata"]["labels"] = json!({api::LABEL_CLASS: "nightly"});
    Job::submit_manifest(world, &manifest).await
}

fn says(job: &DeadlineJob, status: &str, reason: &str) -> bool {
    condition(job, api::DEADLINE_FEASIBLE).is_some_and(|condition| {
        condition.status == status
            && condition.reason == reason
            && condition.observed_generation == job.metadata.generation
    })
}

#[tokio::test]
async fn the_earliest_deadline_is_reported_before_any_task_runs() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let first = submit(world, "first", &json!({"completions": 4, "suspend": true})).await?;
        first
            .wait("nothing to be known", SOON, |job| {
                says(job, "Unknown", reason::DURATIONS_UNKNOWN)
            })
            .await?;
        first.change(&json!({"suspend": false})).await?;
        first.wait_complete().await?;
        // Forty seconds of work one by one, in thirty.
        let spec = json!({"completions": 20, "parallelism": 1, "suspend": true,
            "deadline": {"within": "30s"}, "targetPoCD": 0.8});
        let second = submit(world, "second", &spec).await?;
        let reported = second
            .wait("its deadline to be too early", SOON, |job| {
                says(job, "False", reason::DEADLINE_INFEASIBLE)
            })
            .await?;
        let message = &condition(&reported, api::DEADLINE_FEASIBLE)
            .context("condition")?
            .message;
        let earliest = message
            .rsplit("reaches 0.8 is ")
            .next()
            .context("a figure")?;
        let earliest: jiff::Timestamp = earliest.parse().context(message.clone())?;
        let deadline = reported.status.and_then(|status| status.deadline);
        ensure!(deadline.is_some_and(|deadline| earliest > deadline.0));
        // Its own advice, with the time that passes until it is taken.
        let later = earliest + jiff::SignedDuration::from_secs(20);
        let deadline = json!({"within": null, "at": later});
        second.change(&json!({"deadline": deadline})).await?;
        let reported = second
            .wait("its deadline to be feasible", SOON, |job| {
                says(job, "True", reason::TARGET_REACHABLE)
            })
            .await?;
        let status = reported.status.context("status")?;
        assert_eq!((status.active, status.attempts.originals), (0, 0));
        Ok(())
    })
    .await;
}
