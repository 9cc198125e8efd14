//! The preparation of the runs, and the three runs themselves.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource};
use shed::api::DeadlineJob;

use super::live::{self, Followed};
use super::manifest::{Wish, Work};
use super::outcome::{self, Outcome};
use super::screen::Screen;
use super::storage::Storage;
use super::text::Text;
use super::{NAMESPACE, image, kwok};
use crate::cluster::{Cluster, Nodes, OPERATOR_NAMESPACE};
use crate::command::run_quietly;
use crate::wait;

/// Tasks that the text is split into; all may run at once, so that there is one wave of them.
const TASKS: i32 = 12;
const WAVES: u32 = 1;
/// The share of the slow node: a fifth of its even share of the machine …
const SLOW_SHARE: f64 = 0.2;
/// … but no less than one task may use (the kernel wants it so), and on a large machine little more.
const SLOW_CPUS_MIN: f64 = 0.12;
const SLOW_CPUS_MAX: f64 = 0.13;

/// Everything that the runs need.
pub struct Stage<'a> {
    cluster: &'a Cluster,
    screen: &'a Screen,
    work: Work,
    /// Where results are, and what they must equal; none if pods are simulated.
    results: Option<(Storage, String)>,
    slow_node: Option<String>,
}

/// The three outcomes of one repetition.
pub struct Round {
    pub plain: Outcome,
    pub observe: Outcome,
    pub enabled: Outcome,
}

impl<'a> Stage<'a> {
    /// Text, images, operator, volume, and a slow node.
    pub async fn real(cluster: &'a Cluster, screen: &'a Screen) -> Result<Self> {
        let say = |what: &str| screen.say("demo", what);
        let text = Text::prepare(say).await?;
        let (distinct, words) = text.words();
        say(&format!(
            "the text: {:.1} MB, {words} words, {distinct} different",
            megabytes(text.bytes)
        ));
        say("building and loading the images, installing the chart");
        let archive = image::build(cluster, &text).await?;
        cluster.load_image(&archive, "wordcount").await?;
        let capacity = capacity(cluster).await?;
        let values: Vec<_> = capacity
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        cluster.install_operator(&values).await?;
        cluster.fresh_namespace(NAMESPACE).await?;
        let work = Work {
            image: cluster.image_name("wordcount"),
            input: Some(text.name.clone()),
            tasks: TASKS,
        };
        let storage = Storage::set_up(cluster, &text, &work).await?;
        let slow_node = slow_a_node(cluster, screen).await?;
        Ok(Self {
            cluster,
            screen,
            work,
            results: Some((storage, text.expected)),
            slow_node,
        })
    }

    /// Only a namespace: nothing is really done.
    pub async fn simulated(cluster: &'a Cluster, screen: &'a Screen) -> Result<Self> {
        // Remains of an earlier demo that was killed.
        kwok::release_pods(cluster.client()).await?;
        cluster.fresh_namespace(NAMESPACE).await?;
        let work = Work {
            image: "simulated".to_owned(),
            input: None,
            tasks: TASKS,
        };
        Ok(Self {
            cluster,
            screen,
            work,
            results: None,
            slow_node: None,
        })
    }

    /// The batch/v1 Job, from which the deadline follows, and the two DeadlineJobs.
    pub async fn three_runs(&self, round: u32) -> Result<Round> {
        self.screen.heading("1. batch/v1 Job");
        let name = format!("plain-{round}");
        let (run, created) = self.run_plain(&name).await?;
        let healthy = outcome::healthy_seconds(&run.attempts, self.slow_node.as_deref())
            .context("no task of the batch/v1 Job ended on a healthy node")?;
        let deadline = outcome::deadline_seconds(healthy, WAVES);
        let equal = self.is_equal(&name, &run).await?;
        let plain = Outcome::judge("batch/v1 Job", &run, created, deadline, equal);
        let factor = outcome::DEADLINE_FACTOR;
        let whose = if self.slow_node.is_some() {
            "the median task on nodes that aren't slowed"
        } else {
            "the median task"
        };
        let sum = format!(
            "deadline = {factor:.1} x {healthy:.1} s ({whose}) x {WAVES} wave = {deadline} s"
        );
        self.screen.say("demo", &sum);

        self.screen
            .heading("2. DeadlineJob, mode Observe: decides and reports, launches nothing");
        let wish = Wish {
            mode: "Observe",
            on_miss: "Continue",
            within_seconds: deadline,
        };
        let observe = self
            .run_deadline_job(round, "DeadlineJob Observe", &wish)
            .await?;

        self.screen.heading("3. DeadlineJob, mode Enabled");
        let wish = Wish {
            mode: "Enabled",
            on_miss: "Fail",
            within_seconds: deadline,
        };
        let enabled = self
            .run_deadline_job(round, "DeadlineJob Enabled", &wish)
            .await?;

        self.screen.heading("The same tasks, three times:");
        println!(
            "{}",
            outcome::results(&[&plain, &observe, &enabled], deadline, healthy)
        );
        Ok(Round {
            plain,
            observe,
            enabled,
        })
    }

    async fn run_plain(&self, name: &str) -> Result<(Followed, Timestamp)> {
        until_idle(&self.cluster.client()).await?;
        let jobs: Api<Job> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let job = jobs
            .create(&PostParams::default(), &self.work.job(name)?)
            .await?;
        let run = self.follow(name, "plain").await?;
        Ok((run, created(&job)?))
    }

    async fn run_deadline_job(
        &self,
        round: u32,
        label: &'static str,
        wish: &Wish<'_>,
    ) -> Result<Outcome> {
        let who = wish.mode.to_lowercase();
        let name = format!("{who}-{round}");
        until_idle(&self.cluster.client()).await?;
        let jobs: Api<DeadlineJob> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let job = jobs
            .create(
                &PostParams::default(),
                &self.work.deadline_job(&name, wish)?,
            )
            .await?;
        let run = self.follow(&name, &who).await?;
        let equal = self.is_equal(&name, &run).await?;
        Ok(Outcome::judge(
            label,
            &run,
            created(&job)?,
            wish.within_seconds,
            equal,
        ))
    }

    async fn follow(&self, name: &str, who: &str) -> Result<Followed> {
        let tasks = usize::try_from(self.work.tasks)?;
        live::follow(&self.cluster.client(), name, who, tasks, self.screen).await
    }

    /// Whether the run's merged result is what a single process counts; none without a result.
    async fn is_equal(&self, name: &str, run: &Followed) -> Result<Option<bool>> {
        let Some((storage, expected)) = self.results.as_ref().filter(|_| run.completed) else {
            return Ok(None);
        };
        Ok(Some(storage.merged(name, &self.work).await? == *expected))
    }
}

/// Each node of the local cluster says that it has the whole machine: of what they advertise together
/// an even share is really there.
async fn capacity(cluster: &Cluster) -> Result<Vec<(&'static str, String)>> {
    if cluster.existing().is_some() {
        return Ok(Vec::new());
    }
    let nodes = cluster.node_names().await?.len();
    Ok(vec![(
        "capacityShare",
        format!("{:.3}", 1.0 / nodes as f64),
    )])
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn created(job: &impl Resource) -> Result<Timestamp> {
    let created = job.meta().creation_timestamp.as_ref();
    Ok(created.context("the apiserver gave no creation time")?.0)
}

/// Waits until what ran before holds nothing any more, so that each run starts on the same cluster:
/// a task's end is known before its pod has released its slot.
async fn until_idle(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let is_over = |pod: &Pod| ["Succeeded", "Failed"].contains(&wait::phase(pod));
    let are_over = |pods: &[Pod]| pods.iter().all(is_over);
    let patience = Duration::from_secs(60);
    wait::for_pods(
        &pods,
        "",
        "the demo's earlier pods to end",
        patience,
        are_over,
    )
    .await?;
    Ok(())
}

/// A node that the operator doesn't run on: it is tasks that shall be slow.
async fn node_to_slow(cluster: &Cluster) -> Result<String> {
    let nodes = cluster.node_names().await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), OPERATOR_NAMESPACE);
    let pods = pods.list(&ListParams::default()).await?.items;
    let operators = pods
        .iter()
        .filter_map(|pod| pod.spec.as_ref()?.node_name.as_ref());
    let taken: Vec<&String> = operators.collect();
    let mut free = nodes.into_iter().filter(|node| !taken.contains(&node));
    free.next()
        .context("the demo needs a node beside the operator's")
}

async fn slow_a_node(cluster: &Cluster, screen: &Screen) -> Result<Option<String>> {
    let node = node_to_slow(cluster).await?;
    let Some(existing) = cluster.existing() else {
        let cpus = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        let even_share = cpus / cluster.node_names().await?.len() as f64;
        let left = (SLOW_SHARE * even_share).clamp(SLOW_CPUS_MIN, SLOW_CPUS_MAX);
        cluster.slow(&node, left / even_share).await?;
        let said = format!("node {node} now has {left:.2} of its {even_share:.2} CPUs");
        screen.say("demo", &said);
        return Ok(Some(node));
    };
    let Some(command) = &existing.slow_node else {
        let how = "SHED_SLOW_NODE='docker update --cpus 0.1 {node}'";
        screen.say(
            "demo",
            &format!("no node is slowed (as {how} would do with kind): expect no straggler"),
        );
        return Ok(None);
    };
    let line = command.replace("{node}", &node);
    run_quietly("sh", &["-c", &line])
        .await
        .context("SHED_SLOW_NODE")?;
    screen.say("demo", &format!("node {node} is slow now: {line}"));
    Ok(Some(node))
}

/// Takes the cap off every node of ours. Only the user can undo the effect of the user's own command.
pub async fn lift_slowness(cluster: &Cluster) -> Result<()> {
    if cluster.existing().is_some() || cluster.nodes() == Nodes::Kwok {
        return Ok(());
    }
    for node in cluster.node_names().await? {
        cluster.slow(&node, 1.0).await?;
    }
    Ok(())
}
