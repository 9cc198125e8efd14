//! The events of a job with a straggler: one line for each thing that its user must know.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use shed::api::{self, reason};
use shed_e2e::jobs::{Job, SOON, condition, shell, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::stragglers::with_straggler;
use crate::tasks::worker;

/// The events of a job as `Reason message`, in their order, once one of them has this reason.
async fn events_until(world: &World, job: &str, last: &str) -> Result<Vec<(String, String)>> {
    let api: Api<Event> = world.api();
    let fields = format!("involvedObject.name={job},involvedObject.kind=DeadlineJob");
    let wanted = ListParams::default().fields(&fields);
    let what = format!("event {last} of {job}");
    wait::until(&what, SOON, || async {
        let mut events = api.list(&wanted).await?.items;
        events.sort_by_key(|event| event.event_time.clone());
        let words = events.into_iter().map(|event| {
            let reason = event.reason.unwrap_or_default();
            (reason, event.message.unwrap_or_default())
        });
        let words: Vec<(String, String)> = words.collect();
        let is_there = words.iter().any(|(reason, _)| reason == last);
        let seen = format!("{words:?}");
        Ok(Seen::from_option(is_there.then_some(words), || seen))
    })
    .await
}

fn message<'e>(events: &'e [(String, String)], reason: &str) -> Result<&'e str> {
    let mut all = events.iter().filter(|(own, _)| own == reason);
    let (_, message) = all
        .next()
        .with_context(|| format!("no {reason}: {events:?}"))?;
    Ok(message)
}

#[tokio::test]
async fn the_events_of_a_saved_job_tell_what_happened() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let template = shell(&worker(40, 0.2, 2.0, ":"));
        let job = Job::submit(world, "saved", with_straggler(&template, "Checkpoint")).await?;
        let ended = job.wait_complete().await?;
        let events = events_until(world, "saved", "Completed").await?;
        let launched = message(&events, "CloneLaunched")?;
        ensure!(launched.contains("task 0"), "{launched}");
        let won = message(&events, "CloneWon")?;
        ensure!(
            won.contains("finished task 0 first; shed stops the task's other attempts"),
            "{won}"
        );
        let completed = message(&events, "Completed")?;
        ensure!(completed.contains("s before the deadline"), "{completed}");
        let position = |reason: &str| events.iter().position(|(own, _)| own == reason);
        // The win and the end are reported side by side, because they are of one write.
        ensure!(
            position("CloneLaunched") < position("CloneWon").min(position("Completed")),
            "{events:?}"
        );
        // One event for each burst of clones, however many they are.
        let bursts = events.iter().filter(|(own, _)| own == "CloneLaunched");
        let clones = status(&ended).attempts.clones;
        ensure!(
            i64::try_from(bursts.count())? <= clones && events.len() <= 10,
            "{events:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_observing_job_reports_the_straggler_and_possible_clones() {
    scenario(Needs::Containers, Company::Shared, async |world| {
        let mut spec = with_straggler(&shell(&worker(20, 0.2, 3.0, ":")), "Checkpoint");
        spec["deadline"] = json!({"within": "30s"});
        spec["onMiss"] = json!("Continue");
        spec["speculation"] = json!({"mode": "Observe"});
        let job = Job::submit(world, "observed", spec).await?;
        let is_shown = |job: &api::DeadlineJob| {
            let observed = status(job).observed;
            observed.is_some_and(|observed| observed.total_clones > 0)
        };
        let shown = job.wait("the clones of Enabled", SOON, is_shown).await?;
        let pocd = status(&shown).pocd.context("no PoCD")?;
        ensure!(
            pocd.value() < 0.9,
            "PoCD {pocd} counts clones that do not run"
        );
        let straggles = |job: &api::DeadlineJob| {
            let found = condition(job, api::DEADLINE_AT_RISK);
            found.is_some_and(|found| found.reason == reason::TASKS_STRAGGLING)
        };
        let at_risk = job.wait("a straggler to be named", SOON, straggles).await?;
        let words = &condition(&at_risk, api::DEADLINE_AT_RISK)
            .context("no condition")?
            .message;
        ensure!(
            words.contains("task 0 on node ") && words.contains("mode is Observe"),
            "{words}"
        );
        let events = events_until(world, "observed", "DeadlineAtRisk").await?;
        ensure!(
            events.iter().all(|(reason, _)| reason != "CloneLaunched"),
            "{events:?}"
        );
        let ended = job.wait_complete().await?;
        assert_eq!(status(&ended).attempts.clones, 0);
        ensure!(status(&ended).observed.is_some(), "the figures are gone");
        Ok(())
    })
    .await;
}
