//! `make demo`: the same word count three times on a cluster with a slow node, as a batch/v1 Job,
//! as a DeadlineJob that only observes, and as a DeadlineJob that acts.

pub mod attempt;
pub mod image;
pub mod live;
pub mod manifest;
pub mod outcome;
pub mod screen;
pub mod storage;
pub mod text;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use kube::{Api, Resource};
use shed::api::DeadlineJob;

use self::live::Followed;
use self::manifest::{Wish, Work};
use self::outcome::Outcome;
use self::screen::Screen;
use self::storage::Storage;
use self::text::Text;
use crate::cluster::{Cluster, Nodes};
use crate::command::run_quietly;

/// The demo's own namespace.
pub const NAMESPACE: &str = "shed-demo";
/// Tasks that the text is split into; all may run at once, so that there is one wave of them.
const TASKS: i32 = 12;
const WAVES: u32 = 1;
/// What is left to the slow node.
const SLOW_SHARE: f64 = 0.2;

/// Runs the demo `repeat` times on one cluster and cleans up, also if it is interrupted. Whether all
/// went as it should: results equal, and the acting run in time in nine of ten repetitions.
///
/// # Errors
/// If anything keeps it from coming to a result.
pub async fn run(repeat: u32) -> Result<bool> {
    let screen = Screen::start();
    screen.say("demo", "bringing the cluster up");
    let cluster = Cluster::bring_up().await?;
    let shown = tokio::select! {
        shown = show(&cluster, &screen, repeat) => shown,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    screen.say("demo", "cleaning up");
    let cleaned = clean_up(&cluster).await;
    let good = shown?;
    cleaned.context("cleaning up")?;
    screen.say("demo", "done");
    if cluster.existing().is_none() {
        println!(
            "\nThe cluster stays up: `e2e/cluster/cluster status`; to remove it: `e2e/cluster/cluster down`."
        );
    }
    Ok(good)
}

/// Everything that the runs need.
struct Stage<'a> {
    cluster: &'a Cluster,
    screen: &'a Screen,
    text: Text,
    work: Work,
    storage: Storage,
    slow_node: Option<String>,
}

async fn show(cluster: &Cluster, screen: &Screen, repeat: u32) -> Result<bool> {
    if cluster.nodes() == Nodes::Kwok {
        bail!("this cluster's nodes are simulated (kwok): the demo needs real ones");
    }
    let stage = set_up(cluster, screen).await?;
    let mut all = Vec::new();
    for round in 1..=repeat {
        if repeat > 1 {
            screen.heading(&format!("Repetition {round} of {repeat}"));
        }
        all.push(stage.three_runs(round).await?);
    }
    Ok(conclude(&all))
}

async fn set_up<'a>(cluster: &'a Cluster, screen: &'a Screen) -> Result<Stage<'a>> {
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
    cluster.install_operator(&[]).await?;
    cluster.fresh_namespace(NAMESPACE).await?;
    let work = Work {
        image: cluster.image_name("wordcount"),
        input: text.name.clone(),
        tasks: TASKS,
    };
    let storage = Storage::set_up(cluster, &text, &work).await?;
    let slow_node = slow_a_node(cluster, screen).await?;
    Ok(Stage {
        cluster,
        screen,
        text,
        work,
        storage,
        slow_node,
    })
}

#[allow(clippy::cast_precision_loss)]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Slows the second of the nodes; which one doesn't matter.
async fn slow_a_node(cluster: &Cluster, screen: &Screen) -> Result<Option<String>> {
    let nodes = cluster.node_names().await?;
    let node = nodes.get(1).context("the demo needs at least two nodes")?;
    let Some(existing) = cluster.existing() else {
        cluster.slow(node, SLOW_SHARE).await?;
        screen.say("demo", &format!("node {node} now has a fifth of its CPU"));
        return Ok(Some(node.clone()));
    };
    let Some(command) = &existing.slow_node else {
        screen.say("demo", "no node is slowed (SHED_SLOW_NODE='docker update --cpus 0.1 {node}' would): expect no straggler");
        return Ok(None);
    };
    let line = command.replace("{node}", node);
    run_quietly("sh", &["-c", &line])
        .await
        .context("SHED_SLOW_NODE")?;
    screen.say("demo", &format!("node {node} is slow now: {line}"));
    Ok(Some(node.clone()))
}

async fn clean_up(cluster: &Cluster) -> Result<()> {
    if cluster.existing().is_none() && cluster.nodes() == Nodes::Real {
        for node in cluster.node_names().await? {
            cluster.slow(&node, 1.0).await?;
        }
    }
    cluster.delete_namespace(NAMESPACE).await?;
    Storage::remove_volume(cluster).await
}

/// The three outcomes of one repetition.
struct Round {
    plain: Outcome,
    observe: Outcome,
    enabled: Outcome,
}

impl Stage<'_> {
    async fn three_runs(&self, round: u32) -> Result<Round> {
        let mode = "1. batch/v1 Job";
        self.screen.heading(mode);
        let plain_name = format!("plain-{round}");
        let (plain, created) = self.run_plain(&plain_name).await?;
        let healthy = outcome::healthy_seconds(&plain.attempts, self.slow_node.as_deref())
            .context("no task of the batch/v1 Job ended on a healthy node")?;
        let deadline = outcome::deadline_seconds(healthy, WAVES);
        let equal = self.is_equal(&plain_name, &plain).await?;
        let plain = Outcome::judge("batch/v1 Job", &plain, created, deadline, equal);
        self.screen.say("demo", &format!(
            "deadline = {:.0} x {healthy:.1} s (median task on healthy nodes, measured above) x {WAVES} wave = {deadline} s",
            outcome::DEADLINE_FACTOR,
        ));

        self.screen
            .heading("2. DeadlineJob, mode Observe: decides and reports, launches nothing");
        let wish = Wish {
            mode: "Observe",
            on_miss: "Continue",
            within_seconds: deadline,
        };
        let observe = self
            .run_deadline_job(&format!("observe-{round}"), "DeadlineJob Observe", &wish)
            .await?;

        self.screen.heading("3. DeadlineJob, mode Enabled");
        let wish = Wish {
            mode: "Enabled",
            on_miss: "Fail",
            within_seconds: deadline,
        };
        let enabled = self
            .run_deadline_job(&format!("enabled-{round}"), "DeadlineJob Enabled", &wish)
            .await?;

        let round = Round {
            plain,
            observe,
            enabled,
        };
        self.screen.heading("The same word count, three times:");
        let outcomes = [&round.plain, &round.observe, &round.enabled].map(Clone::clone);
        println!("{}", outcome::results(&outcomes, deadline, healthy));
        Ok(round)
    }

    async fn run_plain(&self, name: &str) -> Result<(Followed, Timestamp)> {
        let jobs: Api<Job> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let job = jobs
            .create(&PostParams::default(), &self.work.job(name)?)
            .await?;
        let run = self.follow(name, "plain").await?;
        Ok((run, created(&job)?))
    }

    async fn run_deadline_job(
        &self,
        name: &str,
        label: &'static str,
        wish: &Wish<'_>,
    ) -> Result<Outcome> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let job = jobs
            .create(&PostParams::default(), &self.work.deadline_job(name, wish)?)
            .await?;
        let run = self.follow(name, &wish.mode.to_lowercase()).await?;
        let equal = self.is_equal(name, &run).await?;
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

    /// Whether the run's merged result is what a single process counts.
    async fn is_equal(&self, name: &str, run: &Followed) -> Result<bool> {
        Ok(run.completed && self.storage.merged(name, &self.work).await? == self.text.expected)
    }
}

fn created(job: &impl Resource) -> Result<Timestamp> {
    Ok(job
        .meta()
        .creation_timestamp
        .as_ref()
        .context("the apiserver gave no creation time")?
        .0)
}

/// Prints the sum over all repetitions, and says whether it is what was promised.
fn conclude(rounds: &[Round]) -> bool {
    let count = |is: fn(&Round) -> bool| rounds.iter().filter(|round| is(round)).count();
    let met = count(|round| round.enabled.met);
    let (plain, observe) = (
        count(|round| !round.plain.met),
        count(|round| !round.observe.met),
    );
    let all = rounds.len();
    println!(
        "Enabled met the deadline in {met} of {all}; the batch/v1 Job missed it in {plain} of {all}, Observe in {observe} of {all}."
    );
    let differs = |outcome: &Outcome| outcome.seconds.is_some() && !outcome.equal;
    let wrong = rounds
        .iter()
        .flat_map(|round| [&round.plain, &round.observe, &round.enabled])
        .filter(|one| differs(one));
    let wrong = wrong.count();
    if wrong > 0 {
        println!("{wrong} results differ from the single-process count.");
    }
    let incomplete =
        count(|round| round.plain.seconds.is_none() || round.observe.seconds.is_none());
    wrong == 0 && incomplete == 0 && met * 10 >= all * 9
}
