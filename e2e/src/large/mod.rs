//! Many nodes and tasks under trouble: nodes are lost and come back, the leader is killed, the connection to the
//! apiserver is bad. Every state is checked against the invariants of docs/develop/faults.md. A run without trouble comes first,
//! so that the overhead of trouble is known.

mod figures;
mod nodes;
mod page;
mod replicas;
mod run;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use jiff::Timestamp;

use self::figures::{Line, Size, read};
use self::run::{Site, Trouble};
use crate::bench_scale::results::Origin;
use crate::bench_scale::{fingerprint, machine, revision};
use crate::cluster::{Cluster, Nodes};
use crate::{host_operator, json_lines};

/// Nodes that appear are this close to each other.
const NODES_PERIOD: Duration = Duration::from_secs(3);

/// Runs many tasks while nodes, leaders and connections fail.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench_large")]
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
    /// File of finished runs. A size that is measured again replaces its line on the page.
    #[arg(long, default_value = "target/bench-large/runs.jsonl")]
    pub results: PathBuf,
    /// The operator's program. Default: the one that was built with this program.
    #[arg(long, value_name = "PATH")]
    pub operator: Option<PathBuf>,
    /// Folder for a page with tables and all runs as JSON.
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// For the operators' logs.
    #[arg(long, default_value = "target/bench-large")]
    pub folder: PathBuf,
    /// Only check the options.
    #[arg(long)]
    pub check: bool,
}

impl Options {
    fn size(&self) -> Size {
        Size {
            nodes: self.nodes,
            jobs: self.jobs,
            tasks: self.tasks,
        }
    }
}

/// Runs the size once without trouble and once with it; true if every job finished and nothing was broken.
pub async fn bench_large(options: &Options) -> Result<bool> {
    ensure!(
        options.rate > 0.0,
        "--rate {} must be above 0: jobs per second, such as 0.5 or 4",
        options.rate
    );
    options.size().ensure_fits()?;
    let program = match &options.operator {
        Some(program) => std::path::absolute(program)?,
        None => host_operator::program()?,
    };
    let operator = fingerprint(&program)?;
    let mut lines = read(&options.results)?;
    if options.check {
        return Ok(true);
    }
    let cluster = Cluster::bring_up().await?;
    ensure!(
        cluster.nodes() == Nodes::Kwok && cluster.existing().is_none(),
        "this needs the local cluster with fake nodes: run e2e/bench-large.sh, which starts one"
    );
    let found = registered(&cluster, options.nodes as usize).await?;
    ensure!(
        found == options.nodes as usize,
        "the cluster has {found} nodes, and --nodes says {}: run e2e/bench-large.sh, which starts one of that size",
        options.nodes
    );
    let origin = Origin {
        revision: revision().await?,
        operator,
        kubernetes: cluster.client().apiserver_version().await?.git_version,
        machine: machine::description()?,
    };
    let folder = std::path::absolute(&options.folder)?;
    std::fs::create_dir_all(&folder)?;
    let site = Site {
        client: cluster.client(),
        kubeconfig: cluster.kubeconfig().to_owned(),
        program,
        folder,
        size: options.size(),
        rate: options.rate,
        kill_every: Duration::from_secs(options.kill_seconds),
        limit: Duration::from_secs(options.run_seconds),
    };
    let mut is_clean = true;
    for trouble in [Trouble::None, Trouble::All] {
        eprintln!("bench_large: {}, {}", site.size.name(), trouble.name());
        let figures = site.run(trouble).await?;
        for line in figures.broken.iter().take(20) {
            eprintln!("  {line}");
        }
        is_clean &= figures.is_clean();
        let line = Line {
            size: site.size,
            trouble,
            rate: site.rate,
            origin: origin.clone(),
            ended: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            figures,
        };
        json_lines::append(&options.results, &line)?;
        lines.insert((line.size, line.trouble), line);
    }
    println!("{}", page::tables(&lines));
    if let Some(folder) = &options.report {
        report(folder, &lines)?;
    }
    Ok(is_clean)
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

fn report(folder: &Path, lines: &figures::Lines) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let file = folder.join("bench-large.md");
    std::fs::write(&file, page::page(lines))?;
    let rows: Vec<&Line> = lines.values().collect();
    let data = format!("{}\n", serde_json::to_string_pretty(&rows)?);
    std::fs::write(folder.join(page::DATA), data)?;
    eprintln!("bench_large: wrote {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_sizes_are_answered_with_the_valid_ones() {
        for (wrong, valid) in [
            (["--nodes", "1"], "2..=5000"),
            (["--tasks", "0"], "1..=10000"),
        ] {
            let arguments = [&["bench_large"][..], &wrong].concat();
            let error = Options::try_parse_from(arguments).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(wrong[1]) && said.contains(valid), "{said}");
        }
    }
}
