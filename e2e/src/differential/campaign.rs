//! The list of cases, and their execution.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use futures::{StreamExt, TryStreamExt, future, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use serde_json::json;

use super::case::{Case, Controller, LABEL};
use super::case_run::{CaseRun, NAMESPACES, namespace};
use super::compare::{differences, unexplained};
use super::generate;
use super::report::{Pair, Report, difference};
use super::shrink::shrink;
use super::view::Views;
use crate::bench::site::local_cluster;
use crate::campaign::nodes::{register, report_ready};
use crate::cluster::Cluster;
use crate::host_operator::HostOperator;

/// Cases written by hand, each with its source.
const KNOWN: &str = include_str!("known.yaml");
const NODES: usize = 4;
/// The control plane waits 40 s or more.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How often a case that differs is run again.
const AGAIN: usize = 2;
/// How many differing cases are made smaller …
const SHRUNK: usize = 6;
/// … and for how long, all of them together: each step waits for both controllers.
const SHRINK_FOR: Duration = Duration::from_secs(300);

/// Runs random Jobs under the built-in controller and under shed, and compares the outcomes.
#[derive(Clone, Debug, Parser)]
#[command(name = "differential")]
pub struct Options {
    /// The seed of the cases.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many random cases to run, besides the known ones.
    #[arg(long, default_value_t = 60)]
    pub count: u64,
    /// Only these cases of the seed.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<u64>,
    /// Only the case in this file, as a failure prints it.
    #[arg(long, value_name = "FILE")]
    pub case: Option<PathBuf>,
    /// How many cases are under way at once.
    #[arg(long, default_value_t = 48)]
    pub parallel: usize,
    /// Do not make differing cases smaller.
    #[arg(long)]
    pub keep: bool,
    /// Only say whether the options are right.
    #[arg(long)]
    pub check: bool,
}

impl Options {
    fn cases(&self) -> Result<Vec<Case>> {
        if let Some(file) = &self.case {
            let text = std::fs::read_to_string(file)?;
            return Ok(vec![serde_yaml_ng::from_str(&text).context("not a case")?]);
        }
        let random = |number: &u64| generate::case(self.seed, *number);
        if !self.only.is_empty() {
            return Ok(self.only.iter().map(random).collect());
        }
        let mut cases = known()?;
        cases.extend((0..self.count).collect::<Vec<_>>().iter().map(random));
        Ok(cases)
    }
}

fn known() -> Result<Vec<Case>> {
    Ok(serde_yaml_ng::from_str(KNOWN)?)
}

/// Where cases run.
struct Stage {
    client: Client,
    views: Views,
    parallel: usize,
}

/// Goes through the cases; true if no difference is unexplained.
pub async fn differential(options: &Options) -> Result<bool> {
    ensure!(options.parallel > 0, "--parallel must be at least 1");
    let cases = options.cases()?;
    if options.check {
        return Ok(true);
    }
    let cluster = local_cluster("differential").await?;
    let client = cluster.client();
    prepare(&cluster).await?;
    let mut operator = HostOperator::start_built(&cluster, &[]).await?;
    let stage = Stage {
        views: Views::watch(&client),
        client: client.clone(),
        parallel: options.parallel,
    };
    let went = tokio::select! {
        went = go(&stage, cases, options.keep) => went,
        () = beat(&client) => Ok(false),
    };
    operator.still_runs()?;
    went
}

async fn go(stage: &Stage, cases: Vec<Case>, keep: bool) -> Result<bool> {
    let mut report = Report::default();
    let differing = stage.run(&cases, |pair| report.take(pair)).await?;
    // A change of one controller that the other had not seen yet need not come again.
    let mut still = differing.clone();
    for _ in 0..AGAIN {
        let again: Vec<Case> = still.iter().map(|pair| pair.case.clone()).collect();
        still = stage.run(&again, |_| ()).await?;
    }
    for pair in differing {
        match still.iter().find(|still| still.case.name == pair.case.name) {
            Some(still) => report.failed.push(still.clone()),
            None => report.unsteady.push(pair),
        }
    }
    if !keep {
        let until = Instant::now() + SHRINK_FOR;
        for pair in report.failed.iter_mut().take(SHRUNK) {
            *pair = stage.smallest(pair, until).await?;
        }
    }
    print!("{}", report.text());
    Ok(report.is_clean())
}

impl Stage {
    /// Runs cases under both controllers; returns those with an unexplained difference, and tells of the others.
    async fn run(&self, cases: &[Case], mut is_equal: impl FnMut(&Pair)) -> Result<Vec<Pair>> {
        let pairs = stream::iter(cases.iter().map(|case| self.pair(case)));
        let mut pairs = pairs.buffer_unordered(self.parallel);
        let mut differing = Vec::new();
        let mut done = 0;
        while let Some(pair) = pairs.try_next().await? {
            done += 1;
            if unexplained(&pair.differences).is_empty() {
                is_equal(&pair);
            } else {
                eprintln!("{}", difference(&pair));
                differing.push(pair);
            }
            if done % 50 == 0 {
                eprintln!(
                    "differential: {done} of {} cases, {} differ",
                    cases.len(),
                    differing.len()
                );
            }
        }
        Ok(differing)
    }

    /// A request that got no answer may have been served or not, so its case begins again.
    async fn pair(&self, case: &Case) -> Result<Pair> {
        let error = match self.both(case).await {
            Ok(pair) => return Ok(pair),
            Err(error) => error,
        };
        eprintln!("differential: {error:#}; again");
        for controller in [Controller::Builtin, Controller::Shed] {
            self.side(case, controller).clean_up().await?;
        }
        self.both(case).await
    }

    fn side<'s>(&'s self, case: &'s Case, controller: Controller) -> CaseRun<'s> {
        let (client, space) = (self.client.clone(), namespace(case, controller));
        CaseRun::new(client, &self.views, space, case, controller)
    }

    async fn both(&self, case: &Case) -> Result<Pair> {
        let side = |controller| self.side(case, controller).run();
        let both = future::try_join(side(Controller::Builtin), side(Controller::Shed));
        let (builtin, shed) = both.await.with_context(|| format!("case {}", case.name))?;
        let differences = differences(case, &builtin, &shed);
        Ok(Pair {
            case: case.clone(),
            builtin,
            shed,
            differences,
        })
    }

    /// The smallest part of a case that still differs in one of the same fields, as far as it is found in time.
    async fn smallest(&self, pair: &Pair, until: Instant) -> Result<Pair> {
        let fields = unexplained(&pair.differences);
        let is_same = |own: &BTreeSet<String>| !own.is_disjoint(&fields);
        let differs = async |cases: &[Case]| {
            if Instant::now() > until {
                return Ok(vec![false; cases.len()]);
            }
            let differing = self.run_quietly(cases).await?;
            Ok(differing
                .iter()
                .map(|pair| is_same(&unexplained(&pair.differences)))
                .collect())
        };
        let small = shrink(pair.case.clone(), differs).await?;
        self.pair(&small).await
    }

    async fn run_quietly(&self, cases: &[Case]) -> Result<Vec<Pair>> {
        let pairs = stream::iter(cases.iter().map(|case| self.pair(case)));
        pairs.buffered(self.parallel).try_collect().await
    }
}

/// Namespaces, and nodes that kwok leaves alone: the runs play their kubelets.
async fn prepare(cluster: &Cluster) -> Result<()> {
    for number in 0..NAMESPACES {
        for controller in ["builtin", "shed"] {
            cluster
                .fresh_namespace(&format!("{controller}-{number}"))
                .await?;
        }
    }
    let takes = json!({"cpu": "1000", "memory": "4000Gi", "pods": "5000"});
    register(&cluster.client(), &node_names(), (LABEL, "yes"), &takes).await
}

fn node_names() -> Vec<String> {
    let name = |number| format!("differential-{number}");
    (0..NODES).map(name).collect()
}

/// Tells the control plane that the nodes live, and never ends.
async fn beat(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut beats = tokio::time::interval(HEARTBEAT);
    loop {
        beats.tick().await;
        for name in node_names() {
            if let Err(error) = report_ready(&nodes, &name, "True").await {
                eprintln!("differential: the heartbeat of {name}: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_cases_are_well_formed() {
        assert!(!known().unwrap().is_empty());
    }
}
