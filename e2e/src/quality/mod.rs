//! `make demo-quality`: an excerpt of a trace on the local cluster, one of its nodes slow, under several
//! policies, and the same excerpt in the simulator.

pub mod compare;
pub mod excerpt;
mod replay;
pub mod run_result;
pub mod simulated;
pub mod task;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use shed_core::policy::Order;
use shed_sim::trace::setups::Setup;
use shed_sim::trace::{self, Trace};

use self::compare::{Compared, Delays, Replayed};
use self::excerpt::Rule;
use self::replay::Replay;
use self::run_result::RunResult;
use self::simulated::Conditions;
use self::task::Tasks;
use crate::cluster::{Cluster, Nodes};
use crate::demo::screen::Screen;
use crate::operator::Operator;

/// The replay's own namespace.
const NAMESPACE: &str = "shed-quality";
/// Runs of the simulator per policy in addition to the paired one: a multiple of the nodes' number has the slow
/// one equally often at each place.
const OTHERS: u64 = 30;
/// The cost of a launch relative to a task's work shrinks to a tenth, as with tasks of minutes.
const TENFOLD: i64 = 10;

/// The replayed excerpt and its cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// A trace's file, or a made-up workload as `setup:A`.
    pub trace: PathBuf,
    pub rule: Rule,
    pub policies: Vec<String>,
    pub slots_per_node: u32,
    /// How many times as long work takes on the slow node.
    pub slowness: u32,
    /// Whether shed may preempt first attempts (`preemption: WhenCheckpointed`).
    pub preempts: bool,
}

/// The results of the replays, saved so that they can be compared again without a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Results {
    plan: Plan,
    nodes: Vec<String>,
    slow: String,
    replayed: Vec<Replayed>,
}

impl Plan {
    /// Replays the excerpt under each policy, writes what came of it to a file, and prints the
    /// comparison. Cleans up, also if it is interrupted.
    ///
    /// # Errors
    /// If the trace or a policy is invalid, containers cannot run here, or a replay does not end.
    pub async fn replay(self, file: &Path) -> Result<()> {
        self.check()?;
        let screen = Screen::start();
        // Errors of the trace are reported before a cluster is started.
        let trace = self.read_trace()?;
        screen.say("quality", "bringing the cluster up");
        let cluster = Cluster::bring_up().await?;
        let done = tokio::select! {
            done = self.on(&cluster, &screen, trace, file) => done,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        };
        screen.say("quality", "cleaning up");
        let cleaned = clean_up(&cluster).await;
        done?;
        cleaned.context("cleaning up")?;
        println!("\nThe cluster stays up, with shed. To remove it: e2e/cluster/cluster down");
        Ok(())
    }

    fn read_trace(&self) -> Result<Trace> {
        let made_up = self
            .trace
            .to_str()
            .and_then(|name| name.strip_prefix("setup:"));
        let Some(name) = made_up else {
            return trace::read(&self.trace).context("--trace");
        };
        let setup: Setup = name.parse().map_err(anyhow::Error::msg)?;
        Ok(setup.trace(self.rule.seed))
    }

    fn check(&self) -> Result<()> {
        for policy in &self.policies {
            shed_papers::registry()
                .parse(policy, Order::default())
                .with_context(|| format!("--policies: {policy}"))?;
        }
        Ok(())
    }

    async fn on(self, cluster: &Cluster, screen: &Screen, trace: Trace, file: &Path) -> Result<()> {
        ensure!(
            cluster.nodes() == Nodes::Real && cluster.existing().is_none(),
            "tasks tell their times by this machine's clock, so that the local cluster with real nodes is \
             needed: run as root where containerd can run (e2e/cluster/README.md, Requirements), without \
             SHED_KUBECONFIG; a cluster of fake nodes goes with `e2e/cluster/cluster down`"
        );
        let nodes = cluster.node_names().await?;
        let slots = self.slots_per_node * u32::try_from(nodes.len())?;
        let workload = self.rule.take(trace, slots)?;
        // The last in the order, so that neither side prefers it among equally free ones.
        let slow = nodes.last().context("the cluster has no nodes")?.clone();
        screen.say("quality", &describe(&workload, slots));
        screen.say(
            "quality",
            "building and loading the image, installing the chart",
        );
        let values = [("resources.requests.cpu", r#""20m""#), ("surgeMax", "0")];
        cluster.install_operator(&values).await?;
        let tasks = Tasks {
            slow: slow.clone(),
            slowness: self.slowness,
            cpu: task::cpu_of_slot(cluster, self.slots_per_node).await?,
            seed: self.rule.seed,
            preempts: self.preempts,
        };
        let mut results = Results {
            plan: self,
            nodes,
            slow,
            replayed: Vec::new(),
        };
        let replay = Replay {
            cluster,
            screen,
            workload: &workload,
            tasks: &tasks,
        };
        let operator = Operator::new(cluster);
        for policy in results.plan.policies.clone() {
            screen.heading(&policy);
            let mut came = RunResult::default();
            let play = async || {
                operator.await_at_work().await?;
                came = replay.play(&policy).await?;
                Ok(())
            };
            operator.under_policy(&policy, play).await?;
            results.replayed.push(Replayed { policy, real: came });
            results.write(file)?;
        }
        screen.heading("Reality and simulator");
        println!("{}", results.compare(&workload)?);
        Ok(())
    }
}

async fn clean_up(cluster: &Cluster) -> Result<()> {
    cluster.delete_namespace(NAMESPACE).await?;
    Operator::new(cluster).put_policy_back().await
}

fn describe(workload: &Trace, slots: u32) -> String {
    let tasks: usize = workload.jobs.iter().map(trace::Job::tasks).sum();
    let medians = || {
        workload
            .jobs
            .iter()
            .map(|job| job.median_duration().seconds())
    };
    let (shortest, longest) = (
        medians().fold(f64::INFINITY, f64::min),
        medians().fold(0.0, f64::max),
    );
    let last = workload.jobs.last().map_or(0, |job| job.arrival.0);
    let last = last as f64 / 1000.0;
    format!(
        "the excerpt: {} jobs of {tasks} tasks that arrive within {last:.0} s; medians of {shortest:.1} to \
         {longest:.1} s; {slots} slots",
        workload.jobs.len()
    )
}

impl Results {
    fn write(&self, file: &Path) -> Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string(self)?;
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
    }

    fn compare(&self, workload: &Trace) -> Result<String> {
        let delays = Delays::of(self.replayed.iter().map(|replayed| &replayed.real));
        let delays = delays.context("no attempt has worked")?;
        let conditions = Conditions {
            nodes: self.nodes.clone(),
            slow: self.slow.clone(),
            slowness: f64::from(self.plan.slowness),
            slots_per_node: self.plan.slots_per_node,
            preempts: self.plan.preempts,
            launch_s: delays.launch,
            kill_s: delays.kill,
            release_s: delays.release,
            report_s: f64::from(task::REPORT_S),
        };
        let mut all = Vec::new();
        for replayed in &self.replayed {
            all.push(self.beside_simulator(replayed, workload, &conditions)?);
        }
        Ok(format!(
            "Measured, medians: {:.2} s from a launch to the start of work, {:.2} s from the end of a \
             winner's work \
             until its slot is seen free, {:.2} s from a kill until then.\n\n{}\n{}\n{}",
            delays.launch,
            delays.release,
            delays.kill,
            compare::figures(&all),
            compare::parts(&all),
            compare::differences(&all, &conditions),
        ))
    }

    fn beside_simulator(
        &self,
        replayed: &Replayed,
        workload: &Trace,
        conditions: &Conditions,
    ) -> Result<Compared> {
        let (policy, seed) = (&*replayed.policy, self.plan.rule.seed);
        let long = excerpt::stretched(workload, TENFOLD);
        let others = [
            ("", conditions.clone(), workload),
            (
                ", slots free at once",
                conditions.with_slots_at_once(),
                workload,
            ),
            (", no delays", conditions.without_delays(), workload),
            (", all times tenfold", conditions.clone(), &long),
        ];
        let mut means = Vec::new();
        for (name, conditions, workload) in others {
            means.push((name, others_of(workload, &conditions, policy, seed)?));
        }
        Ok(Compared {
            policy: policy.to_owned(),
            real: replayed.real.clone(),
            paired: simulated::run(workload, conditions, policy, seed)?,
            others: means,
        })
    }
}

/// Runs with other draws of what clones take, and the nodes in each order.
fn others_of(
    workload: &Trace,
    conditions: &Conditions,
    policy: &str,
    seed: u64,
) -> Result<Vec<RunResult>> {
    let run = |other: u64| {
        let mut turned = conditions.clone();
        turned
            .nodes
            .rotate_left(other as usize % conditions.nodes.len());
        simulated::run(workload, &turned, policy, seed + other)
    };
    (1..=OTHERS).map(run).collect()
}

/// Compares again what an earlier replay wrote, without a cluster; the simulator may be given another
/// slowness, or preemption, to see what they would change.
pub fn compare_again(file: &Path, slowness: Option<u32>, preempts: bool) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| {
        format!(
            "reading {}: run `make demo-quality` first, or name another file (--results)",
            file.display()
        )
    })?;
    let mut results: Results = serde_json::from_str(&text)
        .with_context(|| format!("{} holds no results of this version", file.display()))?;
    let plan = &results.plan;
    let slots = plan.slots_per_node * u32::try_from(results.nodes.len())?;
    let workload = plan.rule.take(plan.read_trace()?, slots)?;
    if results
        .replayed
        .iter()
        .any(|replayed| replayed.real.jobs.len() != workload.jobs.len())
    {
        bail!(
            "{}: the trace {} is not what it was",
            file.display(),
            plan.trace.display()
        );
    }
    results.plan.slowness = slowness.unwrap_or(results.plan.slowness);
    results.plan.preempts |= preempts;
    println!("{}", results.compare(&workload)?);
    Ok(())
}
