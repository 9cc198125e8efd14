//! Alerts and dashboards on a real Prometheus that scrapes the real operator. The symptom of each alert is caused, and
//! the alert must fire and resolve. Each query of each dashboard must return data.

mod apiserver_line;
mod cause;
mod dashboards;
mod operator;
mod page;
mod prometheus;
mod rules;
mod symptom;
mod workload;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use futures::future::try_join_all;
use jiff::Timestamp;
use tokio::task::JoinHandle;

use self::apiserver_line::ApiserverLine;
use self::cause::Stage;
use self::dashboards::Board;
use self::operator::Operator;
use self::page::{Finding, Origin};
use self::prometheus::{Prometheus, Span};
use self::rules::{Alert, Rules};
use self::symptom::Symptom;
use self::workload::Workload;
use crate::bench::namespace::make_namespace;
use crate::bench::program;
use crate::bench::results::revision;
use crate::bench::site::local_cluster;
use crate::campaign::tasks::Tasks;
use crate::cluster::Cluster;
use crate::host_operator;
use crate::wait::{self, Seen};

/// How long an alert may take to fire, and to resolve: generous, since no time is asserted.
const FIRES_WITHIN: Duration = Duration::from_secs(480);
const RESOLVES_WITHIN: Duration = Duration::from_secs(900);
/// How long jobs run before the dashboards' last queries.
const SHOWN: Duration = Duration::from_secs(20);
/// A job that goes on during the whole run, and one at its end. By name, the job's dashboard selects the first.
const LONG: &str = "archive";
const AT_RISK: &str = "at-risk";

/// Sees alerts fire and resolve on a real Prometheus, and asks it the dashboards' queries.
#[derive(Clone, Debug, Parser)]
#[command(name = "monitoring")]
pub struct Options {
    /// Alerts to see fire. Default: all of the rule file, and then the dashboards.
    #[arg(long, value_delimiter = ',', conflicts_with = "report")]
    pub alert: Vec<String>,
    /// The rule file.
    #[arg(long, default_value = "manifests/alerts.yaml", value_name = "FILE")]
    pub rules: PathBuf,
    /// The folder of the dashboards.
    #[arg(
        long,
        default_value = "charts/shed/files/dashboards",
        value_name = "FOLDER"
    )]
    pub dashboards: PathBuf,
    /// The program of Prometheus; `e2e/cluster/cluster tool prometheus` builds it and prints its path.
    #[arg(long, value_name = "PATH")]
    pub prometheus: Option<PathBuf>,
    /// The operator's program. Default: the one that was built with this program.
    #[arg(long, value_name = "PATH")]
    pub operator: Option<PathBuf>,
    /// Folder for the page of this run.
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// Only check the options.
    #[arg(long)]
    pub check: bool,
}

/// The checked input of a run.
struct Input {
    rules: String,
    alerts: Vec<Alert>,
    boards: Vec<Board>,
    prometheus: PathBuf,
    operator: PathBuf,
}

/// Causes the symptoms one after the other; true if all queries of dashboards returned data.
pub async fn monitoring(options: &Options) -> Result<bool> {
    let mut input = checked(options)?;
    if options.check {
        return Ok(true);
    }
    let cluster = local_cluster("monitoring").await?;
    let folder = cluster.kubeconfig().with_file_name("monitoring");
    std::fs::create_dir_all(&folder)?;
    let mut stage = stage(&cluster, &input.operator, &folder).await?;
    let http = stage.operator.http;
    let prometheus = Prometheus::start(&input.prometheus, &folder, &input.rules, http).await?;
    let prometheus = Arc::new(prometheus);
    let began = now();
    stage.operator.restart(&[]).await?;
    let archive = stage.reporting(4);
    stage.workload.submit(LONG, &archive).await?;
    stage.workload.run_healthy().await?;
    let findings = see_alerts(options, &input.alerts, &mut stage, &prometheus).await?;
    println!("{}", page::table(&input.alerts, &findings));
    if !options.alert.is_empty() {
        return Ok(true);
    }
    show_unfinished(&stage).await?;
    let span = Span {
        from: began,
        to: now(),
    };
    let mut faults = Vec::new();
    for board in &mut input.boards {
        board.ask(&prometheus, span).await?;
        faults.extend(board.faults());
    }
    for fault in &faults {
        eprintln!("monitoring: {fault}");
    }
    if let Some(report) = &options.report {
        let origin = Origin {
            day: Timestamp::now().strftime("%Y-%m-%d").to_string(),
            revision: revision().await?,
            kubernetes: cluster.client().apiserver_version().await?.git_version,
        };
        let page = page::page(&origin, &input.alerts, &findings, &input.boards);
        std::fs::create_dir_all(report)?;
        let file = report.join("alerts-verified.md");
        std::fs::write(&file, page)?;
        eprintln!("monitoring: wrote {}", file.display());
    }
    stage.operator.stop().await?;
    Ok(faults.is_empty())
}

fn checked(options: &Options) -> Result<Input> {
    let rules = Rules::read(&options.rules)?;
    let alerts = rules.alerts();
    symptom::ensure_covered(&alerts)?;
    for name in &options.alert {
        let known: Vec<&str> = alerts.iter().map(|alert| &*alert.name).collect();
        ensure!(
            known.contains(&&**name),
            "--alert {name}: unknown alert; {} has {}",
            options.rules.display(),
            known.join(", ")
        );
    }
    const PROMETHEUS: &str = "`e2e/cluster/cluster tool prometheus` builds it and prints its path";
    let prometheus = options.prometheus.as_ref();
    let prometheus =
        prometheus.with_context(|| format!("--prometheus is missing: {PROMETHEUS}"))?;
    ensure!(
        prometheus.is_file(),
        "--prometheus {}: there is no such program; {PROMETHEUS}",
        prometheus.display()
    );
    let operator = program(options.operator.as_deref())?;
    ensure!(
        operator.is_file(),
        "--operator {}: there is no such program; `cargo build --bin shed` builds it",
        operator.display()
    );
    Ok(Input {
        rules: rules.shrunk()?,
        boards: dashboards::read(&options.dashboards)?,
        alerts,
        prometheus: std::path::absolute(prometheus)?,
        operator,
    })
}

async fn stage(cluster: &Cluster, operator: &Path, folder: &Path) -> Result<Stage> {
    let client = cluster.client();
    make_namespace(&client, workload::NAMESPACE).await?;
    let line = ApiserverLine::serve(client.clone()).await?;
    let http = host_operator::free_address()?;
    Ok(Stage {
        workload: Workload::new(client.clone()),
        operator: Operator::new(operator.to_owned(), line.address(), http, folder.to_owned())?,
        tasks: Tasks::serve().await?,
        client,
        line,
    })
}

/// Causes each symptom, and sees its alerts fire and resolve.
async fn see_alerts(
    options: &Options,
    alerts: &[Alert],
    stage: &mut Stage,
    prometheus: &Arc<Prometheus>,
) -> Result<Vec<Finding>> {
    let (mut findings, mut slow) = (Vec::new(), Vec::new());
    for &symptom in Symptom::value_variants() {
        let wanted = symptom.alerts(alerts).into_iter();
        let wanted =
            wanted.filter(|alert| options.alert.is_empty() || options.alert.contains(&alert.name));
        let names: Vec<String> = wanted.map(|alert| alert.name.clone()).collect();
        if names.is_empty() {
            continue;
        }
        let said = format!("{symptom:?} for {}", names.join(", "));
        eprintln!("monitoring: {said}");
        let seen = see(symptom, &names, stage, prometheus).await;
        let resolving = seen.with_context(|| said.clone())?;
        if symptom.resolves_slowly() {
            slow.push(resolving);
        } else {
            findings.extend(resolving.await?.with_context(|| said)?);
        }
    }
    for resolving in slow {
        findings.extend(resolving.await??);
    }
    Ok(findings)
}

/// Causes a symptom, sees its alerts fire, and ends it; the task ends when they are resolved.
async fn see(
    symptom: Symptom,
    names: &[String],
    stage: &mut Stage,
    prometheus: &Arc<Prometheus>,
) -> Result<JoinHandle<Result<Vec<Finding>>>> {
    // A healthy operator, and the end of the symptom before.
    let began = Instant::now();
    try_join_all(
        names
            .iter()
            .map(|name| changed(prometheus, name, false, began)),
    )
    .await?;
    let began = Instant::now();
    let mut lasting = stage.begin(symptom).await?;
    let fired = {
        let fire = try_join_all(
            names
                .iter()
                .map(|name| changed(prometheus, name, true, began)),
        );
        tokio::select! {
            fired = fire => fired?,
            ended = lasting.ended() => return Err(ended),
        }
    };
    stage.end(lasting).await?;
    let (ended, names, prometheus) = (Instant::now(), names.to_vec(), Arc::clone(prometheus));
    Ok(tokio::spawn(async move {
        let resolve = names
            .iter()
            .map(|name| changed(&prometheus, name, false, ended));
        let resolved = try_join_all(resolve).await?;
        let times = names.iter().zip(fired.into_iter().zip(resolved));
        let finding = |(alert, (fired, resolved)): (&String, _)| Finding {
            alert: alert.clone(),
            symptom,
            fired,
            resolved,
        };
        Ok(times.map(finding).collect())
    }))
}

/// Waits until an alert fires, or no longer fires; the time since `began`.
async fn changed(
    prometheus: &Prometheus,
    alert: &str,
    fires: bool,
    began: Instant,
) -> Result<Duration> {
    let (what, within) = match fires {
        true => (format!("{alert} to fire"), FIRES_WITHIN),
        false => (format!("{alert} not to fire"), RESOLVES_WITHIN),
    };
    wait::until(&what, within, async || {
        let firing = prometheus.firing().await?;
        let is_so = firing.contains(alert) == fires;
        Ok(Seen::when(is_so, || format!("{firing:?} fire")))
    })
    .await?;
    let took = began.elapsed();
    eprintln!("monitoring: {what}: {:.1} s", took.as_secs_f64());
    Ok(took)
}

/// Submits a job that goes on and is at risk, so that panels of unfinished jobs have data.
async fn show_unfinished(stage: &Stage) -> Result<()> {
    stage
        .workload
        .submit(AT_RISK, &workload::hopeless())
        .await?;
    stage.workload.runs(AT_RISK, 1).await?;
    tokio::time::sleep(SHOWN).await;
    Ok(())
}

fn now() -> f64 {
    Timestamp::now().as_millisecond() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn refused(arguments: &[&str]) -> String {
        let folder = crate::command::repository();
        let in_repository = |path: &str| folder.join(path).display().to_string();
        let (rules, boards) = (
            in_repository("manifests/alerts.yaml"),
            in_repository("charts/shed/files/dashboards"),
        );
        let mut flags: BTreeMap<&str, &str> = BTreeMap::from([
            ("--rules", &*rules),
            ("--dashboards", &*boards),
            ("--operator", "/bin/sh"),
        ]);
        flags.extend(arguments.chunks(2).map(|pair| (pair[0], pair[1])));
        let all = flags.into_iter().flat_map(|(flag, value)| [flag, value]);
        let all = std::iter::once("monitoring").chain(all);
        let options = Options::try_parse_from(all).unwrap();
        format!("{:#}", checked(&options).err().unwrap())
    }

    #[test]
    fn wrong_input_is_refused_with_its_flag_and_the_fix() {
        let program = ["--prometheus", "/bin/sh"];
        let with = |more: [&'static str; 2]| refused(&[program, more].concat());
        for (said, words) in [
            (
                refused(&[]),
                ["--prometheus is missing", "cluster tool prometheus"],
            ),
            (
                refused(&["--prometheus", "/nowhere"]),
                ["--prometheus /nowhere", "cluster tool prometheus"],
            ),
            (
                with(["--alert", "ShedTypo"]),
                ["--alert ShedTypo: unknown alert", "ShedNoLeader"],
            ),
            (
                with(["--rules", "/nowhere"]),
                ["--rules /nowhere", "manifests/alerts.yaml"],
            ),
            (
                with(["--dashboards", "/nowhere"]),
                ["--dashboards /nowhere", "charts/shed/files/dashboards"],
            ),
            (
                with(["--operator", "/nowhere"]),
                ["--operator /nowhere", "cargo build"],
            ),
        ] {
            for word in words {
                assert!(said.contains(word), "no {word} in: {said}");
            }
        }
    }
}
