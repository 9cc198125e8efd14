//! The conditions of a job in the states that occur on any cluster, each in the words of the table
//! (`shed::conditions::messages`).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, reason};
use shed::conditions::messages::{self, NAMED, Says};
use shed_e2e::jobs::{Job, SOON, condition, shell_or_fake, summary};
use shed_e2e::scenario::{Company, Needs, World, scenario};

/// Waits for a state, and checks that it is reported in the words of its row.
pub async fn check(job: &Job<'_>, type_: &str, reason: &str) -> Result<DeadlineJob> {
    let row = messages::row(type_, reason).context("no such row")?;
    let is_so = |job: &DeadlineJob| {
        let found = condition(job, type_);
        found.is_some_and(|found| found.reason == reason && found.status == row.status)
    };
    let what = format!("{type_} {} {reason}", row.status);
    let found = job.wait(&what, SOON, is_so).await?;
    let message = &condition(&found, type_).context("no condition")?.message;
    let mut parts = row.message.split("{}").chain(match row.help {
        NAMED => "".split("{}"),
        help => help.split("{}"),
    });
    ensure!(parts.all(|part| message.contains(part)), "{message}");
    let says_since = message.contains(" (since ");
    ensure!(says_since == (row.says == Says::Blocked), "{message}");
    Ok(found)
}

/// A job of two tasks with this duration.
async fn submit<'w>(world: &'w World, name: &str, ms: u32, change: Value) -> Result<Job<'w>> {
    let mut spec = json!({
        "completions": 2,
        "deadline": {"within": "10m"},
        "speculation": {"mode": "Disabled"},
        "template": shell_or_fake(&format!("sleep {}", ms / 1000), ms, 0),
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    Job::submit(world, name, spec).await
}

#[tokio::test]
async fn a_job_that_waits_says_for_what() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let suspended = submit(world, "suspended", 60_000, json!({"suspend": true})).await?;
        check(&suspended, api::SUSPENDED, reason::JOB_SUSPENDED).await?;
        suspended.change(&json!({"suspend": false})).await?;
        check(&suspended, api::SUSPENDED, reason::JOB_RESUMED).await?;
        let narrow = submit(world, "narrow", 60_000, json!({"parallelism": 1})).await?;
        check(&narrow, api::TASKS_PENDING, reason::PARALLELISM_REACHED).await?;
        check(&narrow, api::DEADLINE_FEASIBLE, reason::DURATIONS_UNKNOWN).await?;
        narrow.change(&json!({"parallelism": 2})).await?;
        check(&narrow, api::TASKS_PENDING, reason::NO_TASKS_PENDING).await?;
        // After some failures the next attempt is far enough away to be reported.
        let fails = shell_or_fake("exit 3", 300, 3);
        let change = json!({"backoffLimitPerIndex": 9, "completions": 1, "template": fails});
        let failing = submit(world, "failing", 300, change).await?;
        check(&failing, api::TASKS_PENDING, reason::BACK_OFF).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_whose_pods_are_refused_says_by_whom_and_since_when() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let quotas: Api<ResourceQuota> = world.api();
        let hard = [("pods".to_owned(), Quantity("0".to_owned()))];
        let quota = ResourceQuota {
            metadata: ObjectMeta {
                name: Some("no-pods".to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(ResourceQuotaSpec {
                hard: Some(hard.into()),
                ..ResourceQuotaSpec::default()
            }),
            status: None,
        };
        quotas.create(&PostParams::default(), &quota).await?;
        let job = submit(world, "refused", 1000, json!({})).await?;
        let first = check(&job, api::ATTEMPTS_BLOCKED, reason::QUOTA_EXCEEDED).await?;
        let since = |job: &DeadlineJob| -> Result<String> {
            let found = condition(job, api::ATTEMPTS_BLOCKED).context("no condition")?;
            let (_, since) = found.message.rsplit_once(" (since ").context("no time")?;
            Ok(since.to_owned())
        };
        // Its second refusal, after ten seconds.
        tokio::time::sleep(Duration::from_secs(15)).await;
        let later = job.api.get(&job.name).await?;
        assert_eq!(since(&later)?, since(&first)?, "{}", summary(&later));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deadline_that_passes_or_moves_is_reported() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let soft = json!({"deadline": {"within": "4s"}, "onMiss": "Continue"});
        let soft = submit(world, "soft", 120_000, soft).await?;
        check(&soft, api::DEADLINE_MISSED, reason::DEADLINE_PASSED).await?;
        soft.change(&json!({"deadline": {"within": "10m"}})).await?;
        check(&soft, api::DEADLINE_MISSED, reason::DEADLINE_MOVED).await?;
        let hard = submit(
            world,
            "hard",
            120_000,
            json!({"deadline": {"within": "4s"}}),
        )
        .await?;
        check(&hard, api::FAILED, reason::DEADLINE_MISSED).await?;
        let past = json!({"deadline": {"at": "2001-01-01T00:00:00Z"}});
        let past = submit(world, "past", 1000, past).await?;
        check(&past, api::FAILED, reason::DEADLINE_IN_PAST).await?;
        let limit = json!({"activeDeadlineSeconds": 3});
        let limit = submit(world, "limit", 120_000, limit).await?;
        check(&limit, api::FAILED, reason::DEADLINE_EXCEEDED).await?;
        check(&limit, api::DEADLINE_MISSED, reason::FAILED_BEFORE_DEADLINE).await?;
        let fails = json!({"backoffLimitPerIndex": 0, "template": shell_or_fake("exit 3", 300, 3)});
        let fails = submit(world, "fails", 300, fails).await?;
        check(&fails, api::FAILED, reason::FAILED_INDEXES).await?;
        let good = submit(world, "good", 300, json!({})).await?;
        check(&good, api::COMPLETE, reason::COMPLETIONS_REACHED).await?;
        Ok(())
    })
    .await;
}
