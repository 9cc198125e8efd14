//! The preparation of the runs, and the three runs themselves.

use std::fmt::Debug;
use std::path::PathBuf;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::live::{self, Followed};
use super::manifest::{Wish, Work};
use super::outcome::{self, Outcome};
use super::screen::Screen;
use super::storage::Storage;
use super::text::Text;
use super::{NAMESPACE, image, timeline};
use crate::bench::namespace::free_pods;
use crate::cluster::{Cluster, Nodes, OPERATOR_NAMESPACE};
use crate::command::{repository, run_quietly};
use crate::wait;

/// Tasks that the text is split into; all may run at once, so that there is one wave of them.
const TASKS: i32 = 12;
const WAVES: u32 = 1;
/// Where the picture goes.
const PICTURE: &str = "SHED_DEMO_PICTURE";
const PICTURE_DEFAULT: &str = "target/demo/timeline.svg";

/// How fast tasks and the slow node are.
pub struct Pace {
    /// CPU that an attempt may use, in thousandths.
    pub cpu_limit: u32,
    /// How long a task should take. One task is measured, and the limit is adjusted. Without it the limit stays.
    pub task_seconds: Option<f64>,
    /// The share of the slow node, of its even share of the machine …
    pub slow_share: f64,
    /// … but no less than one task may use (the kernel wants it so), and on a large machine little more; in limits
    /// of a task.
    pub slow_limits: (f64, f64),
}

/// Limits that a measured task may lead to: all twelve tasks and six clones then fit two CPUs.
const LIMITS: (f64, f64) = (20.0, 110.0);

/// Tasks of some 8 s, and a node with a fifth of its share.
pub const QUICK: Pace = Pace {
    cpu_limit: 120,
    task_seconds: None,
    slow_share: 0.2,
    slow_limits: (1.0, 1.1),
};

/// Everything that the runs need.
pub struct Stage<'a> {
    pub cluster: &'a Cluster,
    pub screen: &'a Screen,
    pub work: Work,
    /// Where results are, and what they must equal; none if pods are simulated.
    results: Option<(Storage, String)>,
    pub slow_node: Option<String>,
}

/// Outcomes of one repetition: of the batch/v1 Job, and of the DeadlineJobs that observe and act.
pub type Round = [Outcome; 3];

/// A job that has ended.
pub struct EndedJob {
    run: Followed,
    pub created: Timestamp,
    equal: Option<bool>,
}

impl EndedJob {
    /// Judges it; `deadline` in seconds from its creation.
    pub fn judge(&self, label: &'static str, deadline: i64) -> Outcome {
        Outcome::judge(label, &self.run, self.created, deadline, self.equal)
    }

    /// Median time of its tasks on nodes that are not slow.
    pub fn healthy_seconds(&self, slow_node: Option<&str>) -> Option<f64> {
        outcome::healthy_seconds(&self.run.attempts, slow_node)
    }

    /// Writes the picture of its attempts over time.
    pub fn draw(&self, deadline: i64) -> Result<()> {
        let picture = std::env::var_os(PICTURE);
        let picture = picture.map_or_else(|| PICTURE_DEFAULT.into(), PathBuf::from);
        // Relative to the repository, wherever this program was started.
        let path = repository().join(&picture);
        std::fs::create_dir_all(path.parent().context("the picture needs a folder")?)?;
        let svg = timeline::svg(&self.run.attempts, self.created, deadline as f64)?;
        std::fs::write(&path, svg).with_context(|| path.display().to_string())?;
        println!("Its attempts over time: {}\n", picture.display());
        Ok(())
    }
}

impl<'a> Stage<'a> {
    /// Text, images, operator, volume, and a slow node.
    pub async fn real(cluster: &'a Cluster, screen: &'a Screen, pace: &Pace) -> Result<Self> {
        let say = |what: &str| screen.say("demo", what);
        screen.step("prepare the text");
        let text = Text::prepare(say).await?;
        let (distinct, words) = text.words();
        say(&format!(
            "the text: {:.1} MB, {words} words, {distinct} different",
            megabytes(text.bytes)
        ));
        screen.step("make the images and bring them to the nodes");
        let archive = image::build(cluster, &text).await?;
        cluster.load_image(&archive, "wordcount").await?;
        install(cluster, screen).await?;
        cluster.fresh_namespace(NAMESPACE).await?;
        let work = Work {
            image: cluster.image_name("wordcount"),
            input: Some(text.name.clone()),
            tasks: TASKS,
            cpu_limit: pace.cpu_limit,
        };
        let storage = Storage::set_up(cluster, &text, &work).await?;
        let mut stage = Self {
            cluster,
            screen,
            work,
            results: Some((storage, text.expected)),
            slow_node: None,
        };
        if let Some(seconds) = pace.task_seconds {
            stage.adjust_limit(seconds).await?;
        }
        stage.slow_node = stage.slow_a_node(pace).await?;
        Ok(stage)
    }

    /// Measures one task, and sets the limit under which it should take that many seconds.
    async fn adjust_limit(&mut self, seconds: f64) -> Result<()> {
        let name = "measured";
        let mut job = self.work.job(name)?;
        let spec = job.spec.get_or_insert_default();
        (spec.completions, spec.parallelism) = (Some(1), Some(1));
        let jobs: Api<Job> = Api::namespaced(self.cluster.client(), NAMESPACE);
        jobs.create(&PostParams::default(), &job).await?;
        let names = live::Names {
            job: name,
            deadline_job: name,
            who: name,
        };
        let run = live::follow(self.cluster, &names, 1, self.screen).await?;
        let taken =
            outcome::healthy_seconds(&run.attempts, None).context("the measured task failed")?;
        let limit = f64::from(self.work.cpu_limit) * taken / seconds;
        self.work.cpu_limit = limit.clamp(LIMITS.0, LIMITS.1).round() as u32;
        let limit = self.work.cpu_limit;
        let said = format!("one task took {taken:.0} s: tasks now may use {limit}m of CPU");
        self.screen.say("demo", &said);
        Ok(())
    }

    async fn slow_a_node(&self, pace: &Pace) -> Result<Option<String>> {
        let (cluster, screen) = (self.cluster, self.screen);
        let node = node_to_slow(cluster).await?;
        let Some(existing) = cluster.existing() else {
            let cpus = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
            let even_share = cpus / cluster.node_names().await?.len() as f64;
            let limits = |count: f64| count * f64::from(self.work.cpu_limit) / 1000.0;
            let (least, most) = (limits(pace.slow_limits.0), limits(pace.slow_limits.1));
            let left = (pace.slow_share * even_share).clamp(least, most);
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

    /// Only a namespace: nothing is really done.
    pub async fn simulated(cluster: &'a Cluster, screen: &'a Screen) -> Result<Self> {
        // Remains of an earlier demo that was killed.
        free_pods(&cluster.client(), NAMESPACE).await?;
        screen.step("install shed");
        // The Deployment is simulated like every pod: a process of this machine does its work.
        if cluster.existing().is_some() {
            cluster.install_chart("none", &[]).await?;
        } else {
            cluster.install_manifests("none", &[]).await?;
        }
        cluster.fresh_namespace(NAMESPACE).await?;
        let work = Work {
            image: "simulated".to_owned(),
            input: None,
            tasks: TASKS,
            cpu_limit: QUICK.cpu_limit,
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
        if round == 1 {
            self.screen.step("run the same tasks three times");
        }
        self.screen.heading("1. batch/v1 Job");
        let name = format!("plain-{round}");
        let plain = self.run(&name, "plain", &self.work.job(&name)?).await?;
        let healthy = plain
            .healthy_seconds(self.slow_node.as_deref())
            .context("no task of the batch/v1 Job ended on a healthy node")?;
        let deadline = outcome::deadline_seconds(healthy, WAVES);
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
        let observe = self
            .run_deadline_job(round, "Observe", "Continue", deadline)
            .await?;
        self.screen.heading("3. DeadlineJob, mode Enabled");
        let enabled = self
            .run_deadline_job(round, "Enabled", "Fail", deadline)
            .await?;

        self.screen.heading("The same tasks, three times:");
        let outcomes = [
            plain.judge("batch/v1 Job", deadline),
            observe.judge("DeadlineJob Observe", deadline),
            enabled.judge("DeadlineJob Enabled", deadline),
        ];
        println!("{}", outcome::results(&outcomes, deadline, healthy));
        enabled.draw(deadline)?;
        Ok(outcomes)
    }

    async fn run_deadline_job(
        &self,
        round: u32,
        mode: &str,
        on_miss: &str,
        within_seconds: i64,
    ) -> Result<EndedJob> {
        let who = mode.to_lowercase();
        let name = format!("{who}-{round}");
        let wish = Wish {
            mode,
            on_miss,
            within_seconds,
        };
        let job = self.work.deadline_job(&name, &wish)?;
        self.run(&name, &who, &job).await
    }

    /// Creates a job and follows it to its end.
    async fn run<K>(&self, name: &str, who: &str, job: &K) -> Result<EndedJob>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        until_idle(&self.cluster.client()).await?;
        let jobs: Api<K> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let job = jobs.create(&PostParams::default(), job).await?;
        self.follow(&job, name, who).await
    }

    /// Follows a job with its DeadlineJob, which has another name only for an adopted Job.
    pub async fn follow(
        &self,
        job: &impl Resource<DynamicType = ()>,
        deadline_job: &str,
        who: &str,
    ) -> Result<EndedJob> {
        let name = &job.name_any();
        let followed = live::Names {
            job: name,
            deadline_job,
            who,
        };
        let tasks = usize::try_from(self.work.tasks)?;
        let run = live::follow(self.cluster, &followed, tasks, self.screen).await?;
        let created = job.meta().creation_timestamp.as_ref();
        Ok(EndedJob {
            created: created.context("the apiserver gave no creation time")?.0,
            equal: self.is_equal(name, &run).await?,
            run,
        })
    }

    /// Whether the run's merged result is what a single process counts; none without a result.
    async fn is_equal(&self, name: &str, run: &Followed) -> Result<Option<bool>> {
        let Some((storage, expected)) = self.results.as_ref().filter(|_| run.completed) else {
            return Ok(None);
        };
        Ok(Some(storage.merged(name, &self.work).await? == *expected))
    }
}

/// Brings the operator's image in and installs shed: from the manifests on the local cluster, with helm on a
/// cluster of the user's.
async fn install(cluster: &Cluster, screen: &Screen) -> Result<()> {
    if cluster.existing().is_some() {
        screen.step("install shed");
        return cluster.install_operator(&[]).await;
    }
    let digest = cluster.load_operator().await?;
    screen.step("install shed");
    // Each node of the local cluster says that it has the whole machine: of what they advertise together
    // an even share is really there.
    let nodes = cluster.node_names().await?.len();
    let share = format!("{:.3}", 1.0 / nodes as f64);
    cluster
        .install_manifests(&digest, &[("SHED_CAPACITY_SHARE", share)])
        .await?;
    cluster.rolled_out().await
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Waits until what ran before holds nothing any more, so that each run starts on the same cluster:
/// a task's end is known before its pod has released its slot.
async fn until_idle(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    wait::for_pods_to_end(&pods, "the demo's earlier pods to end").await
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
