//! `make demo`: the same word count three times on a cluster with a slow node, as a batch/v1 Job,
//! as a DeadlineJob that only observes, and as a DeadlineJob that acts.

pub mod attempt;
pub mod cron;
pub mod image;
pub mod kwok;
pub mod live;
pub mod manifest;
pub mod outcome;
pub mod screen;
mod stage;
pub mod storage;
pub mod text;
pub mod timeline;

use anyhow::{Context, Result};

use self::screen::Screen;
use self::stage::{QUICK, Round, Stage};
use self::storage::Storage;
use crate::bench::namespace::free_pods;
use crate::cluster::{Cluster, Nodes, OPERATOR_NAMESPACE, RELEASE};
use crate::host_operator::HostOperator;

/// The demo's own namespace.
pub const NAMESPACE: &str = "shed-demo";

/// Steps of the demo, with the builds of `e2e/demo.sh`, which has the same number.
const STEPS: usize = 7;
/// Steps where nodes are simulated: without a text and images.
const STEPS_SIMULATED: usize = 5;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// The same tasks under a batch/v1 Job and two DeadlineJobs, this many times.
    Straggler { repeat: u32 },
    /// A CronJob with a deadline on the clock.
    Cron,
}

/// Runs the demo on one cluster and cleans up, also if it is interrupted. Whether all went as it should:
/// results equal, and the acting run in time in nine of ten repetitions.
pub async fn run(show: Show) -> Result<bool> {
    let screen = Screen::continue_script(STEPS);
    screen.step("start the cluster");
    let cluster = Cluster::bring_up().await?;
    let shown = tokio::select! {
        shown = on_stage(&cluster, &screen, show) => shown,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    screen.step("clean up");
    let cleaned = clean_up(&cluster).await;
    let good = shown?;
    cleaned.context("cleaning up")?;
    screen.end_step();
    println!("\n{}", what_stays(&cluster));
    Ok(good)
}

/// The remains of the demo, and how to remove them.
fn what_stays(cluster: &Cluster) -> String {
    let Some(existing) = cluster.existing() else {
        return "The cluster stays up. To see it: e2e/cluster/cluster status. To remove it: e2e/cluster/cluster down"
            .to_owned();
    };
    let slow = existing.slow_node.as_ref().map_or(
        "",
        |_| " What SHED_SLOW_NODE did to a node is yours to undo.",
    );
    format!(
        "shed stays installed. To remove it: helm uninstall --namespace {OPERATOR_NAMESPACE} {RELEASE}.{slow}"
    )
}

async fn on_stage(cluster: &Cluster, screen: &Screen, show: Show) -> Result<bool> {
    let repeat = match show {
        Show::Straggler { repeat } => repeat,
        Show::Cron if cluster.nodes() == Nodes::Real => {
            return cron::run(&Stage::real(cluster, screen, &cron::PACE).await?).await;
        }
        Show::Cron => {
            anyhow::bail!("the CronJob's tasks report and resume, which simulated nodes don't do")
        }
    };
    if cluster.nodes() == Nodes::Real {
        let stage = Stage::real(cluster, screen, &QUICK).await?;
        return Ok(conclude(&repeated(&stage, screen, repeat).await?));
    }
    screen.expect_steps(STEPS_SIMULATED);
    screen.say("demo", "this cluster's nodes are simulated (kwok): real control plane, real operator, no real work;");
    screen.say("demo", "each pod's duration is drawn, there are no progress reports, no checkpoints and no results");
    let stage = Stage::simulated(cluster, screen).await?;
    let _operator =
        HostOperator::start_built(cluster, &["--clone-priority-class", "shed-clones"]).await?;
    let rounds = tokio::select! {
        rounds = repeated(&stage, screen, repeat) => rounds?,
        drawn = kwok::draw_durations(cluster.client()) => {
            drawn?;
            anyhow::bail!("the drawing of durations ended");
        }
    };
    conclude(&rounds);
    // Whether a clone beats a drawn duration is luck: nothing is promised here.
    Ok(true)
}

async fn repeated(stage: &Stage<'_>, screen: &Screen, repeat: u32) -> Result<Vec<Round>> {
    let mut all = Vec::new();
    for round in 1..=repeat {
        if repeat > 1 {
            screen.heading(&format!("Repetition {round} of {repeat}"));
        }
        all.push(stage.three_runs(round).await?);
    }
    Ok(all)
}

async fn clean_up(cluster: &Cluster) -> Result<()> {
    stage::lift_slowness(cluster).await?;
    if cluster.nodes() == Nodes::Kwok {
        // The operator runs only for as long as the demo does: pods that wait for it would keep the namespace.
        free_pods(&cluster.client(), NAMESPACE).await?;
    }
    cluster.delete_namespace(NAMESPACE).await?;
    Storage::remove_volume(cluster).await
}

/// Prints the sum over all repetitions, and says whether it is what was promised.
fn conclude(rounds: &[Round]) -> bool {
    let count = |is: fn(&Round) -> bool| rounds.iter().filter(|round| is(round)).count();
    let all = rounds.len();
    let met = count(|[_, _, enabled]| enabled.met);
    let plain = count(|[plain, ..]| !plain.met);
    let observe = count(|[_, observe, _]| !observe.met);
    println!(
        "Enabled met the deadline in {met} of {all}; the batch/v1 Job missed it in {plain} of {all}, Observe in {observe} of {all}."
    );
    let outcomes = rounds.iter().flatten();
    let wrong = outcomes
        .filter(|outcome| outcome.equal == Some(false))
        .count();
    if wrong > 0 {
        println!("{wrong} results differ from the single-process count.");
    }
    let incomplete =
        count(|[plain, observe, _]| plain.seconds.is_none() || observe.seconds.is_none());
    wrong == 0 && incomplete == 0 && met * 10 >= all * 9
}
