//! Jobs that the built-in controller runs, in a namespace that shed only watches.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1 as batch;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};
use shed_e2e::jobs::{SOON, shell_or_fake};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// Two tasks of twenty seconds.
async fn submit(world: &World, name: &str, annotations: Value) -> Result<batch::Job> {
    let mut template = shell_or_fake("sleep 20", 20_000, 0);
    template["spec"]["restartPolicy"] = json!("Never");
    let labels = json!({api::LABEL_CLASS: "nightly"});
    let job = json!({"metadata": {"name": name, "annotations": annotations, "labels": labels},
        "spec": {"completions": 2, "parallelism": 2, "template": template}});
    let jobs: Api<batch::Job> = world.api();
    let job: batch::Job = serde_json::from_value(job)?;
    Ok(jobs.create(&PostParams::default(), &job).await?)
}

/// The clients that have written the object, without the built-in controller.
fn writers(job: &batch::Job) -> BTreeSet<String> {
    let fields = job.metadata.managed_fields.iter().flatten();
    let managers = fields.filter_map(|entry| entry.manager.clone());
    managers
        .filter(|manager| manager != "kube-controller-manager")
        .collect()
}

/// A figure of a Job in the series of jobs.
async fn figure(world: &World, name: &str, job: &str) -> Result<f64> {
    let labels = [
        format!("job_namespace=\"{}\"", world.namespace),
        format!("job_name=\"{job}\""),
        "job_kind=\"WatchedJob\"".to_owned(),
    ];
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    world.operator.metric(name, &labels).await
}

#[tokio::test]
async fn a_job_that_is_only_watched_gets_events_and_figures() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        // The built-in controller begins it before the namespace is chosen.
        let expected =
            json!({"shed.dev/deadline": "90s", "shed.dev/expected-task-duration": "10m"});
        let created = submit(world, "watched", expected).await?;
        let own = world.namespace.as_str();
        world
            .label_namespace(own, api::LABEL_JOBS, api::JOBS_WATCH)
            .await?;
        wait::until("the event about its risk", SOON, async || {
            let said = world.messages_of("watched", api::DEADLINE_AT_RISK).await?;
            let is_said = said.contains("shed only watches this Job");
            Ok(Seen::when(is_said, || said))
        })
        .await?;
        let deadline = figure(world, "shed_job_deadline_timestamp_seconds", "watched").await?;
        ensure!(deadline > 1e9, "{deadline}");
        let at_risk = figure(world, "shed_job_pocd", "watched").await?;
        ensure!(at_risk < 0.5, "{at_risk}");

        let jobs: Api<batch::Job> = world.api();
        let ended = wait::for_object(&jobs, "watched", "its end", SOON, |job| {
            job.status
                .as_ref()
                .is_some_and(|status| status.completion_time.is_some())
        })
        .await?;
        assert_eq!(writers(&ended), writers(&created), "shed wrote nothing");
        assert_eq!(ended.metadata.generation, Some(1));
        assert_eq!(ended.annotations(), created.annotations());
        let companions: Api<DeadlineJob> = world.api();
        let companions = companions.list(&ListParams::default()).await?.items;
        ensure!(companions.is_empty(), "it has a companion");
        wait::until("its outcome", SOON, async || {
            let namespace = format!("job_namespace=\"{own}\"");
            let labels = [&*namespace, "outcome=\"met\""];
            let name = "shed_watched_deadlines_total";
            let met = world.operator.metric(name, &labels).await?;
            Ok(Seen::when(met == 1.0, || format!("{met} met")))
        })
        .await?;

        // Its class has learned how long it took.
        submit(world, "second", json!({})).await?;
        wait::until("the expected end of the next one", SOON, async || {
            let name = "shed_job_expected_completion_timestamp_seconds";
            let end = figure(world, name, "second").await?;
            Ok(Seen::when(end > 1e9, || format!("{end}")))
        })
        .await?;
        let second = jobs.get("second").await.context("the second")?;
        ensure!(second.spec.is_some_and(|spec| spec.managed_by.is_none()));
        Ok(())
    })
    .await;
}
