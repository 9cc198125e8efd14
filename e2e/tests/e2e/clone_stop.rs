//! The stop switch: an annotation of a Namespace stops new clones, and its removal allows them again.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::jobs::{Job, SOON, assert_counts_balance, condition, shell, shell_or_fake, status};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

use crate::stragglers::with_straggler;
use crate::tasks::worker;

const STOP: Option<&str> = Some(api::CLONES_STOP);

fn says(job: &DeadlineJob, status: &str, reason: &str) -> bool {
    condition(job, api::CLONES_STOPPED)
        .is_some_and(|one| one.status == status && one.reason == reason)
}

async fn refused(world: &World) -> Result<f64> {
    let stopped = ["reason=\"stopped\""];
    world
        .operator
        .metric("shed_clones_refused_total", &stopped)
        .await
}

#[tokio::test]
async fn a_straggler_gets_its_clone_once_the_namespace_allows_it() {
    // Where capacity is short a straggler may be restarted instead.
    scenario(Needs::Containers, Company::Few, async |world| {
        let own = world.namespace.as_str();
        world
            .annotate_namespace(own, api::ANNOTATION_CLONES, STOP)
            .await?;
        let before = refused(world).await?;
        let template = shell(&worker(40, 0.2, 2.0, ":"));
        let job = Job::submit(world, "stopped", with_straggler(&template, "Checkpoint")).await?;
        job.wait("the stop to be reported", SOON, |job| {
            says(job, "True", reason::NAMESPACE_ANNOTATION)
        })
        .await?;
        wait::until("a clone to be refused", SOON, async || {
            let refused = refused(world).await? - before;
            Ok(Seen::when(refused > 0.0, || format!("{refused} refusals")))
        })
        .await?;
        let stopped = job.wait("the job to be there", SOON, |_| true).await?;
        assert_eq!(status(&stopped).attempts.clones, 0);
        world
            .annotate_namespace(own, api::ANNOTATION_CLONES, None)
            .await?;
        job.wait("clones to be allowed", SOON, |job| {
            says(job, "False", reason::CLONES_ALLOWED)
        })
        .await?;
        let ended = job.wait_complete().await?;
        assert_counts_balance(&ended);
        let counts = status(&ended).attempts;
        ensure!(counts.clone_wins == 1, "{counts:?}");
        Ok(())
    })
    .await;
}

/// The condition of a job follows the annotation of the operator's namespace.
async fn follow_the_cluster(world: &World) -> Result<()> {
    let spec = json!({"completions": 1, "suspend": true,
        "template": shell_or_fake("sleep 2", 2000, 0)});
    let job = Job::submit(world, "everywhere", spec).await?;
    let own = world.operator.namespace();
    let set = |value| world.annotate_namespace(own, api::ANNOTATION_CLONES, value);
    set(STOP).await?;
    let reported = job
        .wait("the stop of the cluster", SOON, |job| {
            says(job, "True", reason::CLUSTER_ANNOTATION)
        })
        .await?;
    let message = &condition(&reported, api::CLONES_STOPPED)
        .context("condition")?
        .message;
    ensure!(message.contains(own), "{message}");
    // An unknown value has no effect, and an event names it.
    set(Some("halt")).await?;
    job.wait("the end of the stop", SOON, |job| {
        says(job, "False", reason::CLONES_ALLOWED)
    })
    .await?;
    wait::until("the event", SOON, async || {
        let selector = format!("involvedObject.name={own},reason={}", api::UNKNOWN_VALUE);
        let arguments = [
            "get",
            "events",
            "--all-namespaces",
            "--field-selector",
            &selector,
        ];
        let events = world.kubectl(&arguments).await?;
        Ok(Seen::when(events.contains("invalid value `halt`"), || {
            events
        }))
    })
    .await
}

#[tokio::test]
async fn the_operator_namespace_annotation_stops_clones_of_every_job() {
    scenario(Needs::Pods, Company::Alone, async |world| {
        let followed = follow_the_cluster(world).await;
        world
            .annotate_namespace(world.operator.namespace(), api::ANNOTATION_CLONES, None)
            .await?;
        followed
    })
    .await;
}
