//! The frame of the benches: options, results after which a stopped bench continues, the cluster, the page. A bench
//! states its loads, how one of them is measured, and its page.

pub mod audit;
pub(crate) mod components;
pub mod identity;
pub mod namespace;
pub mod operator;
pub(crate) mod page;
pub mod results;
pub mod site;
pub(crate) mod window;

use std::fmt::Display;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Parser};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::results::{Line, Lines, Origin};
use self::site::Site;
use crate::host_operator;
use crate::signals;

/// Options that every bench has.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// File of finished measurements. Those that it has are not repeated.
    #[arg(long)]
    pub results: PathBuf,
    /// The operator's program. Default: the one that was built with this program.
    #[arg(long, value_name = "PATH")]
    pub operator: Option<PathBuf>,
    /// Folder for a page with tables, its figures and all measurements as JSON.
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// A sentence about the measurement, for the page.
    #[arg(long, default_value = "")]
    pub note: String,
    /// Only check the options.
    #[arg(long)]
    pub check: bool,
}

/// The lines of a bench by their load.
pub type LinesOf<B> = Lines<<B as Bench>::Load, <B as Bench>::Figures>;

/// A bench, which is its options.
pub trait Bench: Parser {
    /// The name of its command and, without the extension, of its page.
    const NAME: &'static str;
    /// One measurement, and its identity in the results.
    type Load: Copy + Ord + Display + Serialize + DeserializeOwned;
    /// The figures of a load.
    type Figures: Serialize + DeserializeOwned;

    /// The common options.
    fn common(&self) -> &Common;

    /// The loads to measure, in order.
    ///
    /// # Errors
    /// If options contradict each other.
    fn loads(&self) -> Result<Vec<Self::Load>>;

    /// Whether a load is still to be measured.
    fn is_left(&self, load: Self::Load, known: &LinesOf<Self>) -> bool;

    /// Whether an earlier line of this load must be of the same build of the operator.
    fn must_match(&self, load: Self::Load) -> bool;

    /// Prepares the cluster for all loads, and refuses one that is too small for them.
    fn prepare(&self, site: &Site) -> impl Future<Output = Result<()>>;

    /// Measures one load.
    fn measure(&self, site: &Site, load: Self::Load)
    -> impl Future<Output = Result<Self::Figures>>;

    /// The page, in Markdown.
    fn page(lines: &LinesOf<Self>, note: &str) -> String;

    /// The figures of the page as SVG, by the name of their file.
    fn charts(_lines: &LinesOf<Self>) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Whether a load held what must hold.
    fn is_clean(&self, line: &Line<Self::Load, Self::Figures>) -> bool;
}

/// Runs a bench to its end, or until it is stopped: then it ends the operators that it started.
pub async fn run<B: Bench>(bench: &B) -> ExitCode {
    let file = bench.common().results.display();
    let stopped = format!("stopped; finished measurements are in {file}");
    signals::exit_code(B::NAME, &stopped, go(bench)).await
}

/// Measures the loads that the results do not have yet; true if all held what must hold.
async fn go<B: Bench>(bench: &B) -> Result<bool> {
    let common = bench.common();
    let loads = bench.loads()?;
    let mut lines = results::read(&common.results)?;
    let program = program(common.operator.as_deref())?;
    let operator = results::fingerprint(&program)?;
    ensure_operator(bench, &lines, &operator)?;
    if common.check {
        return Ok(true);
    }
    let is_left = |load: &&B::Load| bench.is_left(**load, &lines);
    let left = loads.iter().filter(is_left).count();
    if left > 0 {
        let (name, file) = (B::NAME, common.results.display());
        eprintln!("{name}: {left} of {} are not in {file} yet", loads.len());
        let site = Site::connect(name, program, operator).await?;
        bench.prepare(&site).await?;
        measure_all(bench, &site, loads, &mut lines).await?;
    }
    println!("{}", B::page(&lines, &common.note));
    if let Some(folder) = &common.report {
        report::<B>(folder, &lines, &common.note)?;
    }
    Ok(lines.values().all(|line| bench.is_clean(line)))
}

async fn measure_all<B: Bench>(
    bench: &B,
    site: &Site,
    loads: Vec<B::Load>,
    lines: &mut LinesOf<B>,
) -> Result<()> {
    for load in loads {
        // A load that was measured meanwhile can make this one pointless.
        if !bench.is_left(load, lines) {
            continue;
        }
        eprintln!("{}: {load}", B::NAME);
        let figures = bench.measure(site, load).await?;
        let line = Line {
            load,
            origin: site.origin.clone(),
            ended: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            figures,
        };
        results::append(&bench.common().results, &line)?;
        lines.insert(load, line);
    }
    Ok(())
}

/// The operator's program: the one that the user names, or the one that was built with this program.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(program) => Ok(std::path::absolute(program)?),
        None => host_operator::program(),
    }
}

/// Refuses results of another operator where those of two would be compared.
fn ensure_operator<B: Bench>(bench: &B, lines: &LinesOf<B>, operator: &str) -> Result<()> {
    let mut bound = lines.values().filter(|line| bench.must_match(line.load));
    let other: Option<&Origin> = bound
        .find(|line| line.origin.operator != operator)
        .map(|line| &line.origin);
    ensure!(
        other.is_none(),
        "{} has results of another build of the operator (revision {}): name another file with --results, or remove it",
        bench.common().results.display(),
        other.map_or("", |other| &other.revision)
    );
    Ok(())
}

/// Writes the page, its figures and its data.
fn report<B: Bench>(folder: &Path, lines: &LinesOf<B>, note: &str) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let page = folder.join(format!("{}.md", B::NAME));
    std::fs::write(&page, B::page(lines, note))?;
    for (name, figure) in B::charts(lines)? {
        std::fs::write(folder.join(name), figure)?;
    }
    let rows: Vec<_> = lines.values().collect();
    let data = format!("{}\n", serde_json::to_string_pretty(&rows)?);
    std::fs::write(folder.join(page::data_of(B::NAME)), data)?;
    eprintln!("{}: wrote {}", B::NAME, page.display());
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::command::repository;
    use crate::latency;

    /// The options of a bench with these arguments.
    pub(crate) fn options<B: Bench>(arguments: &[&str]) -> B {
        B::try_parse_from([&["bench"], arguments].concat()).unwrap()
    }

    /// What the bench says about wrong arguments.
    pub(crate) fn refusal<B: Parser>(arguments: &[&str]) -> String {
        let parsed = B::try_parse_from([&["bench"], arguments].concat());
        let error = parsed.err().unwrap();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    /// The results that the docs publish.
    fn published_lines<B: Bench>() -> LinesOf<B> {
        let file = repository()
            .join("docs/develop")
            .join(page::data_of(B::NAME));
        let all: Vec<Line<B::Load, B::Figures>> =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        all.into_iter().map(|line| (line.load, line)).collect()
    }

    /// The page as it is written from those, and the docs' page.
    pub(crate) fn published<B: Bench>() -> (String, String) {
        let file = repository().join(format!("docs/develop/{}.md", B::NAME));
        let docs = std::fs::read_to_string(file).unwrap();
        (B::page(&published_lines::<B>(), ""), docs)
    }

    #[test]
    fn results_of_another_build_are_refused_where_they_are_compared() {
        let mut lines = published_lines::<latency::Options>();
        for line in lines.values_mut() {
            let is_storm = line.load.storm > 0;
            line.origin.operator = if is_storm { "storm" } else { "steady" }.to_owned();
        }
        let refused = |arguments: &[&str], operator: &str| {
            let bench: latency::Options = options(arguments);
            let ended = ensure_operator(&bench, &lines, operator);
            ended.err().map(|error| error.to_string())
        };
        let said = refused(&[], "storm").unwrap();
        assert!(said.contains("--results"), "{said}");
        assert_eq!(refused(&["--only-storm"], "storm"), None);
        assert!(refused(&["--only-storm"], "steady").is_some());
    }
}
