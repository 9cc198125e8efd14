//! `size`: the smallest cluster, share of it, or factor on deadlines that meets a share of deadlines.

mod chart;
mod cluster;
mod output;
mod plan;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::lists::Lists;
use super::output::{Format, write_to_stdout};
use super::progress::Progress;
use super::{CliError, files, values};
use crate::parallel::{cores, in_order};
use crate::sizing::search::Search;
use crate::sizing::share::Share;
use plan::Plan;

pub(super) const EXAMPLES: &str = "\
The policies are compared with each other, each on all seeds. --policy, --order, --policy-file and --seed
take lists, the other flags of `run` one value. --load and --deadline-factor refer to the cluster that is
given, and stay as they are while its size changes.

Examples:
  How many slots do three policies need for 95 % of the deadlines of a made-up workload?
    shed-sim size --preset A --target 0.95 --policy hadoop-ns,shed-plus,shed-prime --out size.svg
  How many nodes like ours would have met 99 % of last week's deadlines?
    shed-sim size --recording recording/ --target 0.99 --policy shed-prime,hadoop-ns
  What share of 40 slots do attempts need, and how much longer would deadlines have to be?
    shed-sim size --trace jobs.csv --slots 40 --target 0.99 --by lambda
    shed-sim size --trace jobs.csv --slots 40 --target 0.99 --by deadline --format json";

#[derive(Debug, Args)]
pub(super) struct SizeArgs {
    /// The share of deadlines to meet, such as 0.99.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    target: f64,
    /// The quantity to search for.
    #[arg(long, value_enum, default_value = "nodes")]
    by: By,
    /// Try nothing below this: nodes or slots, a share, or a factor [default: 1; 0.01; 0.1].
    #[arg(long, value_name = "X", value_parser = values::above_zero)]
    least: Option<f64>,
    /// Try nothing above this [default: twice what the tasks need if none waits; 1; 10].
    #[arg(long, value_name = "X", value_parser = values::above_zero)]
    most: Option<f64>,
    /// Run each size on the seeds from 0 to N - 1 [default: 10].
    #[arg(long, value_name = "N", value_parser = values::count, conflicts_with = "seed")]
    seeds: Option<usize>,
    /// Write a chart of deadlines met over size, as SVG.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format of the results: a line per policy (json: with its curve), or csv with a line per point of the curves.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Number of runs at a time [default: the number of cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    lists: Lists,
}

/// The quantity of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The smallest cluster of the given shape: nodes, or slots with --slots.
    Nodes,
    /// The smallest λ, the share of the given cluster that attempts may use.
    Lambda,
    /// The smallest factor on all deadlines, on the given cluster.
    Deadline,
}

impl By {
    /// The value of `--by`.
    fn label(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Lambda => "lambda",
            Self::Deadline => "deadline",
        }
    }

    /// How many steps of the search make 1.
    fn steps(self) -> f64 {
        match self {
            Self::Nodes => 1.0,
            Self::Lambda | Self::Deadline => 100.0,
        }
    }

    /// A step of the search as a number.
    fn value(self, step: u32) -> f64 {
        f64::from(step) / self.steps()
    }
}

pub(super) fn run(args: &SizeArgs) -> Result<(), CliError> {
    let plan = Plan::new(args)?;
    let searches = search(&plan, args)?;
    let rows = output::rows(&plan, &searches, args);
    if let Some(path) = &args.out {
        files::write_text(path, &chart::svg(&plan, &rows)?)?;
    }
    write_to_stdout(&output::render(&plan, &rows, args.format)?)
}

/// Runs in rounds; each round has all sizes that some policy's search needs next.
fn search(plan: &Plan, args: &SizeArgs) -> Result<Vec<Search>, CliError> {
    let threads = args.threads.unwrap_or_else(cores);
    let search = Search::new(plan.grid, args.target, plan.reachable());
    let mut searches = vec![search; plan.contenders.len()];
    for round in 1.. {
        let mut wanted: Vec<(usize, u32)> = Vec::new();
        for (at, search) in searches.iter_mut().enumerate() {
            wanted.extend(search.wanted().into_iter().map(|size| (at, size)));
        }
        if wanted.is_empty() {
            break;
        }
        eprintln!("round {round}: {}", plan.open(&searches, &wanted));
        let seeds = plan.cases.len();
        let runs: Vec<(usize, u32, usize)> = wanted
            .iter()
            .flat_map(|&(at, size)| (0..seeds).map(move |case| (at, size, case)))
            .collect();
        let progress = Progress::new(runs.len(), "runs");
        let met = in_order(&runs, threads, |&(at, size, case)| {
            let met = plan.run(at, size, case);
            progress.advance();
            met
        });
        progress.finish();
        for ((at, size), met) in wanted.into_iter().zip(met?.chunks(seeds)) {
            searches[at].take(size, Share::of(met, plan.same_jobs));
        }
    }
    Ok(searches)
}
