//! Many nodes and tasks under trouble: nodes are lost and come back, the leader is killed, the connection to the
//! apiserver is bad. Every state is checked against the invariants of docs/develop/faults.md. A run without trouble comes first,
//! so that the overhead of trouble is known.

mod figures;
mod nodes;
mod page;
mod replicas;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;

use self::figures::{Figures, Load, Run, Runs, Trouble};
use crate::bench::site::Site;
use crate::bench::{Bench, Common};
use crate::cluster::Cluster;

/// Nodes that appear are this close to each other.
const NODES_PERIOD: Duration = Duration::from_secs(3);
/// Violations that are printed at once.
const PRINTED: usize = 20;

/// Runs many tasks while nodes, leaders and connections fail.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench_large", mut_arg("results", |arg| arg
    .required(false)
    .default_value("target/bench-large/runs.jsonl")
    .help("File of finished runs. A size that is measured again replaces its line on the page")))]
pub struct Options {
    /// Fake nodes, of 110 pods each. The cluster must have that many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=5000))]
    pub nodes: u32,
    /// Jobs.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub jobs: u32,
    /// Tasks of each job.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tasks: u32,
    /// Jobs that are created per second.
    #[arg(long, default_value_t = 1.0)]
    pub rate: f64,
    /// How often the leader is killed, in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(20..))]
    pub kill_seconds: u64,
    /// How long one run may take, in seconds.
    #[arg(long, default_value_t = 3600)]
    pub run_seconds: u64,
    /// For the operators' logs.
    #[arg(long, default_value = "target/bench-large")]
    pub folder: PathBuf,
    #[command(flatten)]
    common: Common,
}

impl Bench for Options {
    const NAME: &'static str = "bench-large";
    type Load = Load;
    type Figures = Figures;

    fn common(&self) -> &Common {
        &self.common
    }

    /// The size once without trouble and once with it.
    fn loads(&self) -> Result<Vec<Load>> {
        ensure!(
            self.rate > 0.0,
            "--rate {} must be above 0: jobs per second, such as 0.5 or 4",
            self.rate
        );
        let load = |trouble| Load {
            nodes: self.nodes,
            jobs: self.jobs,
            tasks: self.tasks,
            trouble,
        };
        load(Trouble::None).ensure_fits()?;
        Ok(vec![load(Trouble::None), load(Trouble::All)])
    }

    /// A size is measured again.
    fn is_left(&self, _load: Load, _known: &Runs) -> bool {
        true
    }

    /// Sizes are not compared with each other.
    fn must_match(&self, _load: Load) -> bool {
        false
    }

    async fn prepare(&self, site: &Site) -> Result<()> {
        let found = registered(&site.cluster, self.nodes as usize).await?;
        ensure!(
            found == self.nodes as usize,
            "the cluster has {found} nodes, and --nodes says {}: run e2e/bench-large.sh, which starts one of that size",
            self.nodes
        );
        Ok(())
    }

    async fn measure(&self, site: &Site, load: Load) -> Result<Figures> {
        let figures = self.run(site, load).await?;
        for line in figures.broken.iter().take(PRINTED) {
            eprintln!("  {line}");
        }
        Ok(figures)
    }

    fn page(lines: &Runs, note: &str) -> String {
        page::page(Self::NAME, lines, note)
    }

    /// Runs of other sizes are those of earlier commands.
    fn is_clean(&self, line: &Run) -> bool {
        let load = line.load;
        let is_own = (load.nodes, load.jobs, load.tasks) == (self.nodes, self.jobs, self.tasks);
        !is_own || line.figures.is_clean()
    }
}

/// How many nodes the cluster has, once it has as many as wanted or no more appear: `up` does not wait for all.
async fn registered(cluster: &Cluster, wanted: usize) -> Result<usize> {
    let mut found = 0;
    loop {
        let now = cluster.node_names().await?.len();
        if now >= wanted || now == found {
            return Ok(now);
        }
        found = now;
        tokio::time::sleep(NODES_PERIOD).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::line;
    use crate::bench::tests::{options, published, refusal};

    #[test]
    fn the_docs_have_the_page_of_their_results() {
        let (written, docs) = published::<Options>();
        assert_eq!(written, docs);
    }

    #[test]
    fn a_size_is_run_without_trouble_first_and_again_each_time() {
        let options: Options = options(&["--nodes", "3"]);
        let loads = options.loads().unwrap();
        let names: Vec<String> = loads.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "3 nodes, 20 x 10 tasks, without trouble",
                "3 nodes, 20 x 10 tasks, with trouble"
            ]
        );
        let known = loads
            .iter()
            .map(|load| (*load, line(*load, Figures::default())));
        let known = known.collect();
        assert!(loads.iter().all(|load| options.is_left(*load, &known)));
    }

    #[test]
    fn wrong_sizes_are_answered_with_the_valid_ones() {
        for (wrong, valid) in [
            (["--nodes", "1"], "2..=5000"),
            (["--tasks", "0"], "1..=10000"),
        ] {
            let said = refusal::<Options>(&wrong);
            assert!(said.contains(wrong[1]) && said.contains(valid), "{said}");
        }
    }
}
