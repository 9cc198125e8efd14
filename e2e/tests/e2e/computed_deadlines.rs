//! Deadlines as people say them: the next time of day, a share of the history, and durations from the scheduled time
//! of a CronJob.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::adopt::SCHEDULED;
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::cluster::RELEASE;
use shed_e2e::jobs::{Job, SOON, condition, manifest, shell_or_fake, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

const ZONE: &str = "Europe/Zurich";
/// A CronJob of each minute creates its next Job within this time.
const NEXT_MINUTE: Duration = Duration::from_secs(90);
/// The leader stores completion times within 30 s.
const STORED: Duration = Duration::from_secs(60);

/// The specification of a Job that shed runs.
fn job_spec() -> Value {
    let mut template = shell_or_fake("sleep 5", 5000, 0);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"managedBy": api::MANAGED_BY, "template": template})
}

async fn create_cron_job(
    world: &World,
    name: &str,
    deadline: &str,
    suspend: bool,
) -> Result<batch::CronJob> {
    let cron_jobs: Api<batch::CronJob> = world.api();
    let cron_job = json!({"metadata": {"name": name}, "spec": {
        "schedule": "* * * * *", "suspend": suspend, "concurrencyPolicy": "Forbid",
        "jobTemplate": {"metadata": {"annotations": {"shed.dev/deadline": deadline}}, "spec": job_spec()},
    }});
    let cron_job = serde_json::from_value(cron_job)?;
    Ok(cron_jobs.create(&PostParams::default(), &cron_job).await?)
}

/// The deadline of the Job that this object owns, and when the Job was scheduled.
async fn deadline_of_job(world: &World, owner: &str) -> Result<(Timestamp, Timestamp)> {
    let jobs: Api<batch::Job> = world.api();
    let companions: Api<DeadlineJob> = world.api();
    let owns = |object: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference],
                uid: &str| { object.iter().any(|owner| owner.uid == uid) };
    wait::until("a Job with a deadline", NEXT_MINUTE, async || {
        let jobs = jobs.list(&ListParams::default()).await?.items;
        let job = jobs
            .into_iter()
            .find(|job| owns(job.owner_references(), owner));
        let Some(job) = job else {
            return Ok(Seen::from_option(None, || "no Job".to_owned()));
        };
        let scheduled = job.annotations().get(SCHEDULED).context("not scheduled")?;
        let scheduled: Timestamp = scheduled.parse()?;
        let uid = job.uid().context("a Job without uid")?;
        let companions = companions.list(&ListParams::default()).await?.items;
        let companion = companions
            .iter()
            .find(|one| owns(one.owner_references(), &uid));
        let deadline = companion.and_then(|one| status(one).deadline);
        let seen = deadline.map(|deadline| (deadline.0, scheduled));
        Ok(Seen::from_option(seen, || {
            format!("{} has no deadline", job.name_any())
        }))
    })
    .await
}

#[tokio::test]
async fn a_job_of_a_cron_job_is_due_at_the_next_time_of_day() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let deadline = format!("06:00 {ZONE}");
        let cron_job = create_cron_job(world, "on-the-clock", &deadline, false).await?;
        let uid = cron_job.uid().context("a CronJob without uid")?;
        let (deadline, scheduled) = deadline_of_job(world, &uid).await?;
        let hours = deadline.duration_since(scheduled).as_secs_f64() / 3600.0;
        ensure!(hours > 0.0 && hours <= 25.0, "{hours} h after {scheduled}");
        let local = deadline.in_tz(ZONE)?;
        assert_eq!(
            (local.hour(), local.minute(), local.second()),
            (6, 0, 0),
            "{local}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_duration_counts_from_the_scheduled_time_of_a_late_job() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let cron_job = create_cron_job(world, "late", "30m", true).await?;
        let uid = cron_job.uid().context("a CronJob without uid")?;
        // The test plays a CronJob controller that is ten minutes late.
        let scheduled = Timestamp::now() - SignedDuration::from_mins(10);
        let scheduled = scheduled.round(Unit::Second)?;
        let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "late", "uid": uid,
            "controller": true, "blockOwnerDeletion": true});
        let job = json!({"metadata": {"name": "late-1", "ownerReferences": [owner],
            "annotations": {"shed.dev/deadline": "30m", SCHEDULED: scheduled.to_string()}},
            "spec": job_spec()});
        let jobs: Api<batch::Job> = world.api();
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?)
            .await?;
        let (deadline, _) = deadline_of_job(world, &uid).await?;
        assert_eq!(deadline, scheduled + SignedDuration::from_mins(30));
        Ok(())
    })
    .await;
}

/// A job of this class, with a deadline of ten times the median of earlier ones.
async fn submit_by_history<'w>(world: &'w World, name: &str, class: &str) -> Result<Job<'w>> {
    let history = json!({"quantile": "p50", "factor": "10"});
    let spec = json!({"completions": 1, "deadline": {"history": history}, "onMiss": "Continue",
        "template": shell_or_fake("sleep 5", 5000, 0)});
    let mut job = manifest(name, &spec);
    job["metadata"]["labels"][api::LABEL_CLASS] = json!(class);
    Job::submit_manifest(world, &job).await
}

async fn is_stored(world: &World, class: &str, runs: usize) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(world.cluster.client(), world.operator.namespace());
    let class = format!("{}/{class}", world.namespace);
    wait::until("the completion times to be stored", STORED, async || {
        let map = maps.get(&format!("{RELEASE}-state")).await?;
        let text = map.data.and_then(|mut data| data.remove("state.json"));
        let text = text.unwrap_or_else(|| "{}".to_owned());
        let state: Value = serde_json::from_str(&text)?;
        let stored = state["completions"][&class].as_array().map_or(0, Vec::len);
        Ok(Seen::when(stored == runs, || {
            format!("{stored} of {runs}: {text}")
        }))
    })
    .await
}

#[tokio::test]
async fn a_class_has_deadlines_from_its_sixth_job_across_leaders() {
    scenario(Needs::OperatorPod, Company::Restarts, async |world| {
        for number in 0..5 {
            let job = submit_by_history(world, &format!("run-{number}"), "nightly").await?;
            let unknown = job
                .wait_true(api::DEADLINE_UNKNOWN, reason::TOO_FEW_RUNS, SOON)
                .await?;
            let message = &condition(&unknown, api::DEADLINE_UNKNOWN)
                .context("no condition")?
                .message;
            let known = format!("shed knows {number};");
            ensure!(message.contains(&known), "`{known}` not in {message}");
            let complete = job.wait_complete().await?;
            let status = status(&complete);
            ensure!(
                status.deadline.is_none() && status.pocd.is_none(),
                "{status:?}"
            );
        }
        is_stored(world, "nightly", 5).await?;
        world.restart_operator().await?;
        let sixth = submit_by_history(world, "run-5", "nightly").await?;
        let complete = sixth.wait_complete().await?;
        let status = status(&complete);
        let deadline = status.deadline.context("no deadline")?.0;
        let fixed = status.ledger.and_then(|ledger| ledger.fixed_deadline);
        let fixed = fixed.context("no deadline in the ledger")?;
        assert_eq!(fixed.rule, "history(p50)*10");
        assert_eq!(fixed.at.0 / 1000, deadline.as_second());
        let created = complete.creation_timestamp().context("no time")?.0;
        let seconds = deadline.duration_since(created).as_secs();
        // Ten times 5 s, with the start of a pod.
        ensure!((45..=600).contains(&seconds), "{seconds} s");
        ensure!(
            condition(&complete, api::DEADLINE_UNKNOWN).is_none(),
            "it was known at once"
        );
        // Another class of the namespace has no history.
        let other = submit_by_history(world, "other", "weekly").await?;
        other
            .wait_true(api::DEADLINE_UNKNOWN, reason::TOO_FEW_RUNS, SOON)
            .await?;
        Ok(())
    })
    .await;
}
