//! shed compared with the built-in Job controller: the same pods under both, in turn, on a real control plane with
//! fake nodes. Requests are counted from the apiserver's audit log; CPU and memory are those of the processes.

pub mod audit;
mod chart;
pub(crate) mod identity;
pub mod load;
pub(crate) mod machine;
pub mod page;
pub mod ratios;
pub mod results;
pub(crate) mod run;
mod summary;
mod tables;
pub(crate) mod window;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use jiff::Timestamp;

use self::load::{Kind, Size};
use self::results::{Figures, Key, Line, Origin};
use self::run::{Bench, Load};
use crate::cluster::{Cluster, Nodes};
use crate::command::run;
use crate::host_operator;
use crate::json_lines;
use crate::scale::subject::Subject;

/// Compares shed with the built-in Job controller.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench_scale")]
pub struct Options {
    /// Loads: number of jobs x tasks of each.
    #[arg(long, value_delimiter = ',', default_value = "1x1000,200x10")]
    pub size: Vec<Size>,
    /// Kinds of jobs. Ratios need `job`, and `job-pareto` for clones.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "job,disabled,adopted,job-pareto,clones"
    )]
    pub kind: Vec<Kind>,
    /// Repetitions of each size, interleaved: all kinds once, then all kinds again.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// File of finished runs. Those that it has are not repeated.
    #[arg(long, default_value = "target/bench-scale/runs.jsonl")]
    pub results: PathBuf,
    /// The operator's program. Default: the one that was built with this program.
    #[arg(long, value_name = "PATH")]
    pub operator: Option<PathBuf>,
    /// Folder for a page with tables, its figure and all runs as JSON.
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// A sentence about the measurement, for the page.
    #[arg(long, default_value = "")]
    pub note: String,
    /// How long one run may take, in seconds.
    #[arg(long, default_value_t = 1800)]
    pub run_seconds: u64,
    /// Only check the options.
    #[arg(long)]
    pub check: bool,
}

impl Options {
    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        for &size in &self.size {
            for repetition in 1..=self.repeat {
                let kinds = self.kind.iter().filter(|kind| size.has(**kind));
                keys.extend(kinds.map(|&kind| Key {
                    size,
                    repetition,
                    kind,
                }));
            }
        }
        keys
    }
}

/// Goes through the runs that are not in the results yet; true if none failed.
pub async fn bench_scale(options: &Options) -> Result<bool> {
    let known = results::read(&options.results)?;
    let program = match &options.operator {
        Some(program) => std::path::absolute(program)?,
        None => host_operator::program()?,
    };
    let operator = fingerprint(&program)?;
    results::ensure_operator(&known, &operator, &options.results)?;
    if options.check {
        return Ok(true);
    }
    let lines = if is_all_done(options, &known) {
        known
    } else {
        let session = Session::new(options, program).await?;
        let origin = Origin {
            revision: revision().await?,
            operator,
            kubernetes: session.kubernetes().await?,
            machine: machine::description()?,
        };
        all_runs(options, &session, known, &origin).await?
    };
    println!("{}", summary::table(&lines));
    if let Some(folder) = &options.report {
        report(folder, &lines, &options.note)?;
    }
    Ok(lines.values().all(|line| line.failure.is_none()))
}

/// Writes the page, its figure and its data.
fn report(folder: &Path, lines: &BTreeMap<Key, Line>, note: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let page_file = folder.join("bench-scale.md");
    std::fs::write(&page_file, page::page(lines, note))?;
    if let Some(figure) = chart::svg(&ratios::derived(lines))? {
        std::fs::write(folder.join(page::FIGURE), figure)?;
    }
    let rows: Vec<&Line> = lines.values().collect();
    let data = format!("{}\n", serde_json::to_string_pretty(&rows)?);
    std::fs::write(folder.join(page::DATA), data)?;
    eprintln!("bench_scale: wrote {}", page_file.display());
    Ok(())
}

fn is_all_done(options: &Options, known: &BTreeMap<Key, Line>) -> bool {
    let mut keys = options.keys().into_iter();
    keys.all(|key| is_done(known, &key))
}

/// Whether a run is in the results. One that failed is repeated.
fn is_done(known: &BTreeMap<Key, Line>, key: &Key) -> bool {
    known.get(key).is_some_and(|line| line.failure.is_none())
}

/// Does the runs that are missing, and returns all runs of the results.
async fn all_runs(
    options: &Options,
    session: &Session,
    known: BTreeMap<Key, Line>,
    origin: &Origin,
) -> Result<BTreeMap<Key, Line>> {
    let keys = options.keys();
    let done = keys.iter().filter(|key| is_done(&known, key)).count();
    let (all, file) = (keys.len(), options.results.display());
    eprintln!("bench_scale: {done} of {all} runs are in {file}");
    let mut lines = known;
    for key in keys {
        if is_done(&lines, &key) {
            continue;
        }
        let (size, kind) = (key.size.name(), key.kind.name());
        eprintln!("bench_scale: {size} {kind} #{}", key.repetition);
        let (figures, failure) = match session.run(key.size, key.kind).await {
            Ok(figures) => (Some(figures), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        if let Some(failure) = &failure {
            eprintln!("bench_scale: it failed: {failure}");
        }
        let line = Line {
            key,
            origin: origin.clone(),
            ended: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            failure,
            figures,
        };
        json_lines::append(&options.results, &line)?;
        lines.insert(key, line);
    }
    Ok(lines)
}

/// A cluster and an operator's program.
struct Session {
    bench: Bench,
    program: PathBuf,
    folder: PathBuf,
}

impl Session {
    /// Connects to the local cluster, and makes the operator's account.
    async fn new(options: &Options, program: PathBuf) -> Result<Self> {
        let cluster = Cluster::bring_up().await?;
        ensure!(
            cluster.nodes() == Nodes::Kwok && cluster.existing().is_none(),
            "this needs the local cluster with fake nodes: run e2e/bench-scale.sh, which starts one"
        );
        // Before minutes are spent on a run without it.
        drop(audit::AuditLog::at_end(cluster.kubeconfig())?);
        run::ensure_capacity(&cluster.client(), &options.size).await?;
        let session = Self {
            bench: Bench {
                client: cluster.client(),
                kubeconfig: cluster.kubeconfig().to_owned(),
                limit: Duration::from_secs(options.run_seconds),
            },
            program,
            folder: cluster.kubeconfig().with_file_name("bench"),
        };
        std::fs::create_dir_all(&session.folder)?;
        let file = session.operator_kubeconfig();
        identity::write_kubeconfig(&session.bench.client, &session.bench.kubeconfig, &file).await?;
        Ok(session)
    }

    async fn kubernetes(&self) -> Result<String> {
        Ok(self.bench.client.apiserver_version().await?.git_version)
    }

    fn operator_kubeconfig(&self) -> PathBuf {
        self.folder.join("operator-kubeconfig")
    }

    /// One run next to an operator of its own.
    async fn run(&self, size: Size, kind: Kind) -> Result<Figures> {
        machine::restart_controller_manager(&self.bench.kubeconfig).await?;
        let load = Load::prepare(&self.bench, size, kind).await?;
        let went = match size {
            Size::Finished => self.measure_idle(&load).await,
            _ => self.measure(&load).await,
        };
        load.remove().await?;
        went
    }

    async fn measure(&self, load: &Load<'_>) -> Result<Figures> {
        let (subject, pids) = self.start_operator().await?;
        let figures = load.measure(&pids).await;
        subject.stop().await?;
        figures
    }

    /// Both controllers start after the jobs have finished.
    async fn measure_idle(&self, load: &Load<'_>) -> Result<Figures> {
        let kubeconfig = &self.bench.kubeconfig;
        load.finish(&window::components(kubeconfig)?).await?;
        machine::restart_controller_manager(kubeconfig).await?;
        let (subject, pids) = self.start_operator().await?;
        machine::idle("the operator", subject.pid).await?;
        let figures = load.idle(&pids).await;
        subject.stop().await?;
        figures
    }

    async fn start_operator(&self) -> Result<(Subject, window::Pids)> {
        let kubeconfig = self.operator_kubeconfig();
        let subject = Subject::start_with(&self.program, &kubeconfig, &self.folder).await?;
        let mut pids = window::components(&self.bench.kubeconfig)?;
        pids.insert(audit::SHED.to_owned(), subject.pid);
        Ok((subject, pids))
    }
}

/// Identifies a program by its content.
pub(crate) fn fingerprint(program: &Path) -> Result<String> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The checked out revision.
pub(crate) async fn revision() -> Result<String> {
    let words = [
        "describe",
        "--always",
        "--dirty",
        "--abbrev=8",
        "--exclude=*",
    ];
    run("git", &words)
        .await
        .context("asking git for the revision")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn kinds_are_interleaved_within_each_size() {
        let arguments = [
            "b",
            "--size",
            "200x10,1x1000",
            "--repeat",
            "2",
            "--kind",
            "job,adopted",
        ];
        let keys = Options::try_parse_from(arguments).unwrap().keys();
        let order: Vec<String> = keys
            .iter()
            .map(|key| format!("{} {} {}", key.size.name(), key.repetition, key.kind.name()))
            .collect();
        assert_eq!(
            order[..5],
            [
                "200x10 1 job",
                "200x10 1 adopted",
                "200x10 2 job",
                "200x10 2 adopted",
                "1x1000 1 job"
            ]
        );
        assert_eq!(order.len(), 8);
    }

    #[test]
    fn a_wrong_size_or_kind_is_answered_with_the_valid_ones() {
        for (wrong, valid) in [
            (["--size", "2x2"], "200x10"),
            (["--kind", "pods"], "adopted"),
        ] {
            let arguments = [&["bench_scale"][..], &wrong].concat();
            let error = Options::try_parse_from(arguments).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(wrong[1]) && said.contains(valid), "{said}");
        }
    }

    #[test]
    fn every_size_has_a_name_of_its_own() {
        let names: Vec<String> = Size::value_variants()
            .iter()
            .map(|size| size.name())
            .collect();
        assert_eq!(
            names,
            [
                "20x5", "1x1000", "1x10000", "200x10", "1000x10", "100x100", "finished"
            ]
        );
    }
}
