//! `reproduce`: the papers' figures and tables, run again.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::LabError;
use crate::reproduce::lab::{Lab, Scale};
use crate::reproduce::{self, render};
use shed_sim::cli::files::write_text;
use shed_sim::cli::{output, values};
use shed_sim::parallel::cores;

pub(super) const EXAMPLES: &str = "\
An unknown name prints those that there are. Figures on the Google trace need SHED_TRACES, the folder
of traces; without it they are listed as not run.

Examples:
  One table of a paper:
    shed-lab reproduce P-6
  A paper on more seeds than usual:
    shed-lab reproduce shed-plus --seeds 20
  The page of this repository:
    shed-lab reproduce all --out docs/research/reproduction.md";

#[derive(Debug, Args)]
pub(super) struct ReproduceArgs {
    /// Figures to run: all, a paper (shed, shed-plus, laser, sca, dollymp) or figures such as P-6.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds each set-up is run on.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Times the jobs of each set-up.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = values::above_zero)]
    scale: f64,
    /// How many runs at a time [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<usize>,
    /// The page, in Markdown [default: printed].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &ReproduceArgs) -> Result<(), LabError> {
    let mut wanted = Vec::new();
    for name in &args.names {
        let found = reproduce::find(name);
        if found.is_empty() {
            let known = reproduce::known();
            let message =
                format!("`{name}` is no figure; the papers and their figures are\n{known}");
            return Err(LabError::usage(message));
        }
        for (paper, figure) in found {
            let is_there = |(_, other): &(_, &reproduce::Figure)| other.id == figure.id;
            if !wanted.iter().any(is_there) {
                wanted.push((paper, figure));
            }
        }
    }
    let bar = ProgressBar::new(wanted.len() as u64);
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
        results.push((paper, figure, figure.make(&mut lab)?));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let page = render::page(&args.names, &scale, &results);
    match &args.out {
        None => output::write_to_stdout(page.as_bytes())?,
        Some(path) => write_text(path, &page)?,
    }
    Ok(())
}
