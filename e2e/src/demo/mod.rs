//! `make demo`: the same word count three times on a cluster with a slow node, as a batch/v1 Job,
//! as a DeadlineJob that only observes, and as a DeadlineJob that acts.

pub mod attempt;
pub mod image;
pub mod kwok;
pub mod live;
pub mod manifest;
pub mod outcome;
pub mod screen;
mod stage;
pub mod storage;
pub mod text;

use anyhow::{Context, Result};

use self::screen::Screen;
use self::stage::{Round, Stage};
use self::storage::Storage;
use crate::cluster::{Cluster, Nodes, OPERATOR_NAMESPACE, RELEASE};
use crate::host_operator::HostOperator;

/// The demo's own namespace.
pub const NAMESPACE: &str = "shed-demo";

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

async fn show(cluster: &Cluster, screen: &Screen, repeat: u32) -> Result<bool> {
    if cluster.nodes() == Nodes::Real {
        let stage = Stage::real(cluster, screen).await?;
        return Ok(conclude(&repeated(&stage, screen, repeat).await?));
    }
    screen.say("demo", "this cluster's nodes are simulated (kwok): real control plane, real operator, no real work;");
    screen.say("demo", "each pod's duration is drawn, there are no progress reports, no checkpoints and no results");
    let stage = Stage::simulated(cluster, screen).await?;
    let _operator =
        HostOperator::start(cluster, &["--clone-priority-class", "shed-clones"]).await?;
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
        kwok::release_pods(cluster.client()).await?;
    }
    cluster.delete_namespace(NAMESPACE).await?;
    Storage::remove_volume(cluster).await
}

/// Prints the sum over all repetitions, and says whether it is what was promised.
fn conclude(rounds: &[Round]) -> bool {
    let count = |is: fn(&Round) -> bool| rounds.iter().filter(|round| is(round)).count();
    let all = rounds.len();
    let met = count(|round| round.enabled.met);
    let plain = count(|round| !round.plain.met);
    let observe = count(|round| !round.observe.met);
    println!(
        "Enabled met the deadline in {met} of {all}; the batch/v1 Job missed it in {plain} of {all}, Observe in {observe} of {all}."
    );
    let outcomes = rounds
        .iter()
        .flat_map(|round| [&round.plain, &round.observe, &round.enabled]);
    let wrong = outcomes
        .filter(|outcome| outcome.equal == Some(false))
        .count();
    if wrong > 0 {
        println!("{wrong} results differ from the single-process count.");
    }
    let incomplete =
        count(|round| round.plain.seconds.is_none() || round.observe.seconds.is_none());
    wrong == 0 && incomplete == 0 && met * 10 >= all * 9
}
