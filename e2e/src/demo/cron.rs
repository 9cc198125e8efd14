//! `make demo-cron`: a CronJob whose Jobs must be done at a time of day, on a cluster with a slow node.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::{RoundMode, Timestamp, ToSpan, Unit, Zoned, ZonedRound};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use shed::adopt::translate::companion_name;

use super::NAMESPACE;
use super::manifest::Times;
use super::outcome;
use super::stage::{Pace, Stage};
use crate::wait;

/// Tasks of some 25 s, so that a whole minute is a close deadline; alone on the slow node they take longer.
pub const PACE: Pace = Pace {
    cpu_limit: 40,
    task_seconds: Some(25.0),
    slow_share: 0.08,
    slow_limits: (1.25, 1.5),
};
/// The schedule is made for the next full minute that is at least this far away.
const LEAD_SECONDS: i64 = 10;
/// From the start to the deadline.
const WITHIN_MINUTES: i64 = 1;
const ZONE: &str = "Etc/UTC";
const NAME: &str = "nightly";

/// Creates the CronJob, follows its first Job, and compares it with its deadline. Whether the Job was done in time, with the
/// right result.
pub async fn run(stage: &Stage<'_>) -> Result<bool> {
    let start = next_minute(&Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC))?;
    let due = start.checked_add(WITHIN_MINUTES.minutes())?;
    let times = Times {
        schedule: format!("{} {} * * *", start.minute(), start.hour()),
        due: due.strftime("%H:%M").to_string(),
        zone: ZONE,
    };
    stage
        .screen
        .step("run a CronJob that is due at a time of day");
    let line = format!(
        "CronJob {NAME}: schedule \"{}\", shed.dev/deadline: \"{} {ZONE}\"",
        times.schedule, times.due
    );
    stage.screen.say("demo", &line);
    let client = stage.cluster.client();
    let cron_jobs: Api<CronJob> = Api::namespaced(client, NAMESPACE);
    cron_jobs
        .create(&PostParams::default(), &stage.work.cron_job(NAME, &times)?)
        .await?;
    let job = first_job(stage).await?;
    let name = job.name_any();
    let companion = companion_name(&job).context("a Job without a name")?;
    stage
        .screen
        .say("demo", &format!("the CronJob created the Job {name}"));
    let run = stage.follow(&job, &companion, "cron").await?;
    let seconds = due.timestamp().duration_since(run.created).as_secs();
    let outcome = run.judge("CronJob", seconds);
    let good = outcome.met && outcome.equal != Some(false);
    let healthy = run.healthy_seconds(stage.slow_node.as_deref());
    let results = outcome::results(&[outcome], seconds, healthy.unwrap_or(0.0));
    println!("\n{results}");
    run.draw(seconds)?;
    Ok(good)
}

/// The next full minute that is not too close.
fn next_minute(now: &Zoned) -> Result<Zoned> {
    let earliest = now.checked_add(LEAD_SECONDS.seconds())?;
    let full = ZonedRound::new()
        .smallest(Unit::Minute)
        .mode(RoundMode::Trunc);
    Ok(earliest.round(full)?.checked_add(1.minute())?)
}

async fn first_job(stage: &Stage<'_>) -> Result<Job> {
    let jobs: Api<Job> = Api::namespaced(stage.cluster.client(), NAMESPACE);
    wait::until(
        "the CronJob's first Job",
        Duration::from_secs(120),
        || async {
            let all = jobs.list(&ListParams::default()).await?.items;
            let found = all.into_iter().find(|job| job.name_any().starts_with(NAME));
            Ok(wait::Seen::from_option(found, || "no Job yet".to_owned()))
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_starts_at_a_full_minute_that_is_not_too_close() {
        let next = |time: &str| {
            let now: Timestamp = time.parse().unwrap();
            let next = next_minute(&now.to_zoned(jiff::tz::TimeZone::UTC)).unwrap();
            next.timestamp().to_string()
        };
        assert_eq!(next("2030-01-01T12:00:20Z"), "2030-01-01T12:01:00Z");
        assert_eq!(next("2030-01-01T12:00:55Z"), "2030-01-01T12:02:00Z");
        assert_eq!(next("2030-01-01T23:59:30Z"), "2030-01-02T00:00:00Z");
    }
}
