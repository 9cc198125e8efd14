//! `reproduce`: the papers' figures and tables, run again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::LabError;
use crate::reproduce::check::{Leniency, differences};
use crate::reproduce::lab::{Lab, Scale};
use crate::reproduce::{self, Figure, Paper, render};
use shed_sim::cli::files::write_text;
use shed_sim::cli::{output, values};
use shed_sim::parallel::cores;

pub(super) const EXAMPLES: &str = "\
An unknown name prints those that there are. Figures on the Google trace need SHED_TRACES, the folder
of traces; without it they are listed as not run, and a check leaves them out.

Examples:
  One table of a paper:
    shed-lab reproduce P-6
  A paper on fewer seeds than the page has:
    shed-lab reproduce shed-plus --seeds 3
  The page of this repository:
    shed-lab reproduce all --out docs/research/reproduction.md
  Whether it is still what the code gives:
    shed-lab reproduce all --check docs/research/reproduction.md";

#[derive(Debug, Args)]
pub(super) struct ReproduceArgs {
    /// Figures to run: all, a paper (shed, shed-plus, laser, sca, dollymp) or figures such as P-6.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of seeds of each set-up.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Times the jobs of each set-up.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = values::above_zero)]
    scale: f64,
    /// Number of concurrent runs [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<usize>,
    /// The commit that the page names [default: that of git's work tree].
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// Writes the page to this file, in Markdown [default: prints it].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compares the page with this file instead, and fails if they differ in more than the commit.
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    check: Option<PathBuf>,
}

pub(super) fn run(args: &ReproduceArgs) -> Result<(), LabError> {
    let wanted = wanted(&args.names)?;
    let committed = args.check.as_deref().map(read_text).transpose()?;
    let count = wanted.len();
    let bar = ProgressBar::new(count as u64);
    let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {prefix} {elapsed}  {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let scale = Scale {
        seed: args.seed,
        seeds: args.seeds,
        jobs: args.scale,
        threads: args.threads.unwrap_or_else(cores),
        traces: std::env::var_os("SHED_TRACES").map(PathBuf::from),
    };
    let mut lab = Lab::new(scale.clone(), &bar);
    let mut results = Vec::new();
    for (paper, figure) in wanted {
        bar.set_prefix(figure.id);
        let begun = Instant::now();
        results.push((paper, figure, figure.make(&mut lab)?));
        bar.inc(1);
        // The bar is drawn only on a terminal.
        if bar.is_hidden() {
            let took = begun.elapsed().as_secs();
            eprintln!("{} of {}: {} in {took} s", bar.position(), count, figure.id);
        }
    }
    bar.finish_and_clear();
    let commit = args.commit.clone().unwrap_or_else(commit_of_work_tree);
    let page = render::page(&args.names, &scale, &commit, &results);
    match (&args.check, committed) {
        (Some(file), Some(committed)) => compare(file, &committed, &page, &results)?,
        _ => match &args.out {
            None => output::write_to_stdout(page.as_bytes())?,
            Some(path) => write_text(path, &page)?,
        },
    }
    Ok(())
}

/// The figures of all names, each once.
fn wanted(names: &[String]) -> Result<Vec<(&'static Paper, &'static Figure)>, LabError> {
    let mut wanted = Vec::new();
    for name in names {
        let found = reproduce::find(name);
        if found.is_empty() {
            let known = reproduce::known();
            let message =
                format!("unknown figure `{name}`; the papers and their figures are\n{known}");
            return Err(LabError::usage(message));
        }
        for (paper, figure) in found {
            let is_there = |(_, other): &(_, &Figure)| other.id == figure.id;
            if !wanted.iter().any(is_there) {
                wanted.push((paper, figure));
            }
        }
    }
    Ok(wanted)
}

/// Compares a fresh page with the committed one, and prints what was left out.
fn compare(
    file: &Path,
    committed: &str,
    page: &str,
    results: &[render::Result<'_>],
) -> Result<(), LabError> {
    let is_not_run = |(_, _, findings): &&render::Result<'_>| !findings.not_run.is_empty();
    let not_run = || results.iter().filter(is_not_run);
    let inexact = results.iter().filter(|(_, figure, _)| figure.is_inexact);
    let leniency = Leniency {
        not_run: not_run().map(|(_, figure, _)| figure.id).collect(),
        not_counted: not_run().map(|(paper, _, _)| paper.id).collect(),
        inexact: inexact.map(|(_, figure, _)| figure.id).collect(),
    };
    let differences = differences(committed, page, &leniency);
    if !differences.is_empty() {
        let file = file.to_owned();
        return Err(LabError::Page { file, differences });
    }
    let mut text = format!("{} is what the code gives", file.display());
    if !leniency.not_run.is_empty() {
        text += &format!(
            "; without {}, which were not run",
            leniency.not_run.join(", ")
        );
    }
    output::write_to_stdout(format!("{text}\n").as_bytes())?;
    Ok(())
}

fn read_text(path: &Path) -> Result<String, LabError> {
    std::fs::read_to_string(path)
        .map_err(|error| LabError::usage(format!("{}: {error}", path.display())))
}

/// The commit that is checked out, and whether the work tree has changes of the code that runs.
pub(super) fn commit_of_work_tree() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changes = git(&["status", "--porcelain", "--", ":/research", ":/crates"]);
    match changes {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with changes"),
    }
}
