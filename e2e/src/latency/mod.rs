//! How long shed takes to act, by the apiserver's own timestamps: a loser's delete after the winner's end, a clone
//! after its straggler is certain, a first pod after a new job. Each is a curve over the arrival rate of jobs.

mod chart;
mod load;
mod page;
mod results;
mod run;
mod spread;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use jiff::Timestamp;

use self::load::{Rate, STORM_ARRIVALS, STORM_RATE};
use self::results::{Line, Loads, WRITE_LIMIT_MS};
use self::run::Site;
use crate::bench_scale::results::Origin;
use crate::bench_scale::{audit, fingerprint, identity, machine, revision};
use crate::cluster::{Cluster, Nodes};
use crate::host_operator;
use crate::json_lines;

/// Measures how long shed takes to delete losers, to start clones and to begin jobs.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench_latency")]
pub struct Options {
    /// Loads: jobs per second, each of ten tasks. The bench stops after the first at which the apiserver is too slow.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0.5,1,1.5,2,3,4,6,8,12,16"
    )]
    pub rate: Vec<Rate>,
    /// Jobs that arrive at once, in a load of its own; 0 for no such load.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub storm: u32,
    /// Whether only that load is run. The steady loads of the results may then be of another build of the operator.
    #[arg(long)]
    pub only_storm: bool,
    /// For how long jobs arrive, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// File of finished loads. Those that it has are not repeated.
    #[arg(long, default_value = "target/bench-latency/loads.jsonl")]
    pub results: PathBuf,
    /// The operator's program. Default: the one that was built with this program.
    #[arg(long, value_name = "PATH")]
    pub operator: Option<PathBuf>,
    /// Folder for a page with tables, its figures and all loads as JSON.
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// A sentence about the measurement, for the page.
    #[arg(long, default_value = "")]
    pub note: String,
    /// Only check the options.
    #[arg(long)]
    pub check: bool,
}

/// Goes through the loads in rising order; true if kills met their bar at all of them.
///
/// # Errors
/// If there is no cluster to run on, a load fails, or the results can't be read or written.
pub async fn bench_latency(options: &Options) -> Result<bool> {
    let mut loads = results::read(&options.results)?;
    let program = match &options.operator {
        Some(program) => std::path::absolute(program)?,
        None => host_operator::program()?,
    };
    let operator = fingerprint(&program)?;
    let is_other = |line: &&Line| line.origin.operator != operator;
    let steady = loads.steady.values().filter(|_| !options.only_storm);
    if let Some(other) = steady.chain(&loads.storm).find(is_other) {
        anyhow::bail!(
            "{} has loads of another build of the operator (revision {}): name another file with --results, or remove it",
            options.results.display(),
            other.origin.revision
        );
    }
    if options.check {
        return Ok(true);
    }
    let storm = options.storm > 0 && loads.storm.is_none();
    let steady = !options.only_storm && !rest(options, &loads.steady).is_empty();
    if storm || steady {
        let (site, origin) = set_up(program, operator).await?;
        if storm {
            loads.storm = Some(one_load(options, &site, &origin, STORM_RATE, true).await?);
        }
        if steady {
            all_loads(options, &site, &origin, &mut loads.steady).await?;
        }
    }
    println!("{}", page::table(&loads.steady));
    if let Some(line) = &loads.storm {
        println!("{}", page::storm(line));
    }
    if let Some(folder) = &options.report {
        report(folder, &loads, &options.note)?;
    }
    let mut all = loads.steady.values().chain(&loads.storm);
    Ok(all.all(page::meets_bar))
}

/// The loads that are left to do, in rising order: none beyond one at which the apiserver was too slow.
fn rest(options: &Options, lines: &BTreeMap<Rate, Line>) -> Vec<Rate> {
    let mut slow = lines.values().filter(|line| !line.is_below_limit());
    let first_slow = slow.next().map(|line| line.rate);
    let mut rates = options.rate.clone();
    rates.sort();
    rates.dedup();
    rates.retain(|rate| !lines.contains_key(rate) && first_slow.is_none_or(|slow| *rate < slow));
    rates
}

/// Connects to the local cluster, and makes the operator's account.
async fn set_up(program: PathBuf, operator: String) -> Result<(Site, Origin)> {
    let cluster = Cluster::bring_up().await?;
    ensure!(
        cluster.nodes() == Nodes::Kwok && cluster.existing().is_none(),
        "this needs the local cluster with fake nodes: run e2e/bench-latency.sh, which starts one"
    );
    let kubeconfig = cluster.kubeconfig().to_owned();
    // Before minutes are spent on a load without it.
    drop(audit::AuditLog::at_end(&kubeconfig)?);
    let folder = kubeconfig.with_file_name("bench");
    std::fs::create_dir_all(&folder)?;
    let operator_kubeconfig = folder.join("operator-kubeconfig");
    let client = cluster.client();
    identity::write_kubeconfig(&client, &kubeconfig, &operator_kubeconfig).await?;
    let origin = Origin {
        revision: revision().await?,
        operator,
        kubernetes: client.apiserver_version().await?.git_version,
        machine: machine::description()?,
    };
    let site = Site {
        client,
        kubeconfig,
        operator_kubeconfig,
        program,
        folder,
    };
    Ok((site, origin))
}

async fn all_loads(
    options: &Options,
    site: &Site,
    origin: &Origin,
    lines: &mut BTreeMap<Rate, Line>,
) -> Result<()> {
    while let Some(&rate) = rest(options, lines).first() {
        let line = one_load(options, site, origin, rate, false).await?;
        if !line.is_below_limit() {
            eprintln!(
                "bench_latency: the p99 of the apiserver's writes is {:.1} ms, more than {WRITE_LIMIT_MS}: no higher load is run",
                line.writes.p99
            );
        }
        lines.insert(rate, line);
    }
    Ok(())
}

async fn one_load(
    options: &Options,
    site: &Site,
    origin: &Origin,
    rate: Rate,
    has_storm: bool,
) -> Result<Line> {
    let (storm, time) = match has_storm {
        true => (options.storm, STORM_ARRIVALS),
        false => (0, Duration::from_secs(options.seconds)),
    };
    let seconds = time.as_secs();
    eprintln!("bench_latency: {rate} jobs per second for {seconds} s, and {storm} at once");
    let (found, wall) = site.run(rate, time, storm).await?;
    let ended = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let wall = wall.as_secs_f64();
    let line = Line::of((rate, storm), origin.clone(), ended, wall, found);
    json_lines::append(&options.results, &line)?;
    Ok(line)
}

/// Writes the page, its figures and its data.
fn report(folder: &Path, loads: &Loads, note: &str) -> Result<()> {
    let lines = &loads.steady;
    std::fs::create_dir_all(folder)?;
    let file = folder.join("bench-latency.md");
    std::fs::write(&file, page::page(loads, note))?;
    for (name, figure) in [
        (page::CURVES, chart::curves(lines)?),
        (page::HISTOGRAM, chart::histogram(lines)?),
    ] {
        if let Some(figure) = figure {
            std::fs::write(folder.join(name), figure)?;
        }
    }
    let rows: Vec<&Line> = lines.values().chain(&loads.storm).collect();
    let data = format!("{}\n", serde_json::to_string_pretty(&rows)?);
    std::fs::write(folder.join(page::DATA), data)?;
    eprintln!("bench_latency: wrote {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::results::tests::line;
    use super::*;

    #[test]
    fn an_unknown_load_is_refused_with_what_is_one() {
        let error = Options::try_parse_from(["b", "--rate", "1,fast"]).unwrap_err();
        let said = error.to_string();
        assert_eq!(error.exit_code(), 2);
        assert!(
            said.contains("fast") && said.contains("jobs per second"),
            "{said}"
        );
    }

    #[test]
    fn loads_rise_and_end_where_the_apiserver_is_too_slow() {
        let options = Options::try_parse_from(["b", "--rate", "4,1,2,8,1"]).unwrap();
        let names = |lines: &[Line]| {
            let known = lines.iter().map(|line| (line.rate, line.clone())).collect();
            let rest = rest(&options, &known);
            rest.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["1", "2", "4", "8"]);
        assert_eq!(names(&[line("2", 9.0, 20.0)]), ["1", "4", "8"]);
        assert_eq!(names(&[line("4", 25.0, 60.0)]), ["1", "2"]);
    }
}
