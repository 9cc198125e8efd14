//! Namespaces share the capacity by the weights on them, in whatever order and number their jobs came.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, reason};
use shed_e2e::jobs::{
    Job, SOON, condition, create, has_ended, is_running, manifest, shell_or_fake,
};
use shed_e2e::scenario::{Company, Needs, World, scenario};
use shed_e2e::wait::{self, Seen};

/// Attempts that a node holds: each requests this part of its cpu.
const PER_NODE: usize = 6;
const SHARE_OF_NODE: f64 = 0.14;
const SMALL_JOBS: usize = 100;
/// The weight of the namespace that comes later; the first one has 1. So its share is two thirds.
const LATER: &str = "2";

/// A template for attempts of some seconds; a node holds [`PER_NODE`] of them.
async fn template(world: &World) -> Result<Value> {
    let nodes: Api<Node> = Api::all(world.cluster.client());
    let name = world.cluster.node_names().await?.pop().context("no node")?;
    let allocatable = nodes.get(&name).await?.status.and_then(|s| s.allocatable);
    let cpu = allocatable.and_then(|mut all| all.remove("cpu"));
    let cores: f64 = cpu.context("no cpu")?.0.parse()?;
    let mut template = shell_or_fake("sleep 8", 8000, 0);
    let millis = format!("{:.0}m", cores * 1000.0 * SHARE_OF_NODE);
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(millis);
    Ok(template)
}

async fn running(world: &World, namespace: &str) -> Result<usize> {
    let pods: Api<Pod> = Api::namespaced(world.cluster.client(), namespace);
    let pods = pods.list(&ListParams::default()).await?;
    Ok(pods.items.iter().filter(|pod| is_running(pod)).count())
}

/// The jobs of the test's namespace that have not ended.
async fn unfinished(world: &World) -> Result<Vec<DeadlineJob>> {
    let jobs: Api<DeadlineJob> = world.api();
    let jobs = jobs.list(&ListParams::default()).await?;
    Ok(jobs
        .items
        .into_iter()
        .filter(|job| !has_ended(job))
        .collect())
}

/// A hundred jobs of one task fill the cluster. Then a job of many tasks comes to the other namespace.
async fn go(world: &World, later: &str) -> Result<()> {
    let slots = world.cluster.node_names().await?.len() * PER_NODE;
    let template = template(world).await?;
    let small = json!({"deadline": {"within": "30m"}, "speculation": {"mode": "Disabled"}, "template": template});
    let jobs = (0..SMALL_JOBS).map(|at| manifest(&format!("small-{at:02}"), &small));
    let jobs: Vec<Value> = jobs.collect();
    try_join_all(
        jobs.iter()
            .map(|job| create(world, world.cluster.client(), job)),
    )
    .await?;
    wait::until(
        "the first namespace to fill the cluster",
        SOON,
        async || {
            let first = running(world, &world.namespace).await?;
            Ok(Seen::when(first + 1 >= slots, || {
                format!("{first} of {slots} run")
            }))
        },
    )
    .await?;
    let mut wide = manifest("wide", &small);
    wide["spec"]["completions"] = json!(4 * slots);
    let wide: DeadlineJob = serde_json::from_value(wide)?;
    let jobs: Api<DeadlineJob> = Api::namespaced(world.cluster.client(), later);
    jobs.create(&PostParams::default(), &wide).await?;
    wait::until("the later namespace to have its share", SOON, async || {
        let (first, second) = (
            running(world, &world.namespace).await?,
            running(world, later).await?,
        );
        let waiting = unfinished(world).await?.len() - first.min(SMALL_JOBS);
        ensure!(waiting > 0, "the small jobs were done before");
        // One slot may lie between two of its attempts.
        let is_shared = second + 1 >= slots * 2 / 3 && first > 0;
        Ok(Seen::when(is_shared, || {
            format!("{first} and {second} of {slots} run, {waiting} wait")
        }))
    })
    .await?;
    let label = [format!("job_namespace=\"{later}\"")];
    let entitled = world
        .operator
        .metric("shed_share_entitled", &[&label[0]])
        .await?;
    ensure!((entitled - 2.0 / 3.0).abs() < 0.1, "entitled to {entitled}");
    wait::until(
        "a job to report that its namespace's share is in use",
        SOON,
        async || {
            let jobs = unfinished(world).await?;
            let says = |job: &&DeadlineJob| {
                condition(job, api::TASKS_PENDING)
                    .is_some_and(|one| one.reason == reason::SHARE_IN_USE)
            };
            let found = jobs
                .iter()
                .find(says)
                .and_then(|job| condition(job, api::TASKS_PENDING));
            if let Some(Condition { message, .. }) = found {
                ensure!(
                    message.contains(api::LABEL_SHARE) && !message.contains(later),
                    "{message}"
                );
            }
            Ok(Seen::when(found.is_some(), || {
                format!("{} jobs wait", jobs.len())
            }))
        },
    )
    .await
}

#[tokio::test]
async fn a_later_namespace_gets_its_share_by_weight() {
    scenario(Needs::Pods, Company::Alone, async |world| {
        let later = format!("{}-later", world.namespace);
        world.cluster.fresh_namespace(&later).await?;
        world
            .label_namespace(&later, api::LABEL_SHARE, LATER)
            .await?;
        let went = go(world, &later).await;
        world.cluster.delete_namespace(&later).await?;
        went
    })
    .await;
}

#[tokio::test]
async fn jobs_over_the_limit_of_active_jobs_wait_their_turn() {
    scenario(Needs::Pods, Company::Shared, async |world| {
        let limit = Some("1");
        world
            .annotate_namespace(&world.namespace, api::ANNOTATION_ACTIVE_JOBS_MAX, limit)
            .await?;
        let spec = json!({"completions": 2, "template": shell_or_fake("sleep 15", 15_000, 0)});
        let first = Job::submit(world, "first", spec.clone()).await?;
        first.wait_running(2).await?;
        let second = Job::submit(world, "second", spec).await?;
        let waits = second
            .wait("the limit to be reported", SOON, |job| {
                condition(job, api::TASKS_PENDING)
                    .is_some_and(|one| one.reason == reason::ACTIVE_JOBS_LIMIT)
            })
            .await?;
        let message = &condition(&waits, api::TASKS_PENDING)
            .context("condition")?
            .message;
        ensure!(
            message.contains(api::ANNOTATION_ACTIVE_JOBS_MAX),
            "{message}"
        );
        ensure!(second.pods_ever().is_empty(), "{} has pods", second.uid);
        first.wait_complete().await?;
        second.wait_complete().await?;
        Ok(())
    })
    .await;
}
