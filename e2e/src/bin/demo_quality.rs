//! An excerpt of a trace on the local cluster under several policies, and in the simulator.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use shed_e2e::quality::excerpt::Rule;
use shed_e2e::quality::{Plan, compare_again};

/// Real arrivals and times of tasks; in the folder that SHED_TRACES names.
const REAL: &str = "google2011_hawk_a.csv.gz";
/// Jobs of 5 and 10 tasks, Pareto.
const MADE_UP: &str = "setup:A";
/// How many times as long work takes on the slow node unless it is said.
const SLOWNESS: u32 = 3;

/// Replays an excerpt of a trace on the local cluster, which has one slow node, and compares it with the
/// simulator.
#[derive(Debug, Parser)]
struct Args {
    /// A trace as `shed-sim` reads it, or a made-up workload as `setup:A` [default: google2011_hawk_a.csv.gz
    /// in the folder SHED_TRACES; without that variable setup:A].
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Policies, as in `shed-plus{xi=0.1}`.
    #[arg(long, value_name = "POLICY", num_args = 1.., default_values = ["hadoop-ns", "shed-plus", "shed-prime"])]
    policies: Vec<String>,
    /// Tasks in all.
    #[arg(long, default_value_t = Rule::default().tasks)]
    tasks: usize,
    /// Draws the place in the trace, and what clones take.
    #[arg(long, default_value_t = Rule::default().seed)]
    seed: u64,
    /// The tasks' times at full speed / (slots × span).
    #[arg(long, default_value_t = Rule::default().load)]
    load: f64,
    /// From the first arrival to the last, in seconds.
    #[arg(long, default_value_t = Rule::default().span_s)]
    span: f64,
    /// k: a job has k × its median × ⌈tasks / (slots / 4)⌉ from its arrival.
    #[arg(long, default_value_t = Rule::default().deadline_factor)]
    deadline_factor: f64,
    /// Attempts that a node holds.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=15))]
    slots_per_node: u32,
    /// How many times as long work takes on the slow node [default: 3; what was replayed].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    slowness: Option<u32>,
    /// More urgent jobs may preempt first attempts with a checkpoint, if the policy preempts.
    #[arg(long)]
    preempt: bool,
    /// The folder for the results of the replays.
    #[arg(long, value_name = "FILE", default_value = "target/quality.json")]
    results: PathBuf,
    /// Only compare what is kept there with the simulator, which is given another --slowness, and --preempt, if
    /// they are set; needs no cluster.
    #[arg(long)]
    compare_only: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that `Result` would print: what went wrong is outside.
            eprintln!("demo-quality: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    if args.compare_only {
        return compare_again(&args.results, args.slowness, args.preempt);
    }
    let trace = args.trace.unwrap_or_else(default_trace);
    anyhow::ensure!(
        [args.load, args.span, args.deadline_factor]
            .iter()
            .all(|number| number.is_finite() && *number > 0.0),
        "--load, --span and --deadline-factor must be numbers above 0"
    );
    let plan = Plan {
        trace,
        rule: Rule {
            tasks: args.tasks,
            seed: args.seed,
            load: args.load,
            span_s: args.span,
            deadline_factor: args.deadline_factor,
            ..Rule::default()
        },
        policies: args.policies,
        slots_per_node: args.slots_per_node,
        slowness: args.slowness.unwrap_or(SLOWNESS),
        preempts: args.preempt,
    };
    plan.replay(&args.results).await
}

fn default_trace() -> PathBuf {
    let folder = std::env::var_os("SHED_TRACES").filter(|folder| !folder.is_empty());
    folder.map_or_else(
        || {
            println!("SHED_TRACES names no folder of traces: a made-up workload ({MADE_UP}) stands for one");
            PathBuf::from(MADE_UP)
        },
        |folder| PathBuf::from(folder).join(REAL),
    )
}
