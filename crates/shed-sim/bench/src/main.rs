//! Events per second of the simulator, compared with simcore (the published engine of DSLab) on the same event
//! pattern in the same run: FIFO on slots, one event per arrival and one per end of a task. simcore has the simplest
//! scheduler for this pattern. Two comparisons follow. One runs the same scheduler on our event queue, engine against
//! engine. The other has whole runs, in which the operator's `settle` and `decide` handle the facts of every attempt.
//!
//! `cargo run --release --manifest-path crates/shed-sim/bench/Cargo.toml [TRACE [SLOTS]]`; without a trace, jobs are
//! made up.

mod queue_fifo;
mod simcore_fifo;

use std::path::Path;
use std::time::Instant;

use shed_core::policy::{Order, Policy, Speculation};
use shed_sim::engine::Engine;
use shed_sim::settings::{Cluster, Settings};
use shed_sim::trace::{self, Trace};
use shed_sim::workload::{Shaping, shape};

/// Number of runs. The fastest counts, because the machine may do other work too.
const RUNS: usize = 5;

fn main() {
    let mut args = std::env::args().skip(1);
    let trace = match args.next() {
        Some(path) => trace::read(Path::new(&path)).unwrap_or_else(|error| panic!("{error}")),
        None => made_up(),
    };
    let slots = args.next().map_or(Ok(12_000), |text| text.parse());
    let slots: u32 = slots.unwrap_or_else(|error| panic!("slots: {error}"));
    let tasks: usize = trace.jobs.iter().map(trace::Job::tasks).sum();
    println!("{} jobs, {tasks} tasks, {slots} slots", trace.jobs.len());

    let theirs = best("simcore, FIFO", || simcore_fifo::run(&trace, slots));
    let queue = best("shed-sim's event queue, the same FIFO", || {
        queue_fifo::run(&trace, slots)
    });
    println!("ratio to simcore: {:.2}", queue / theirs);
    let ours = best("shed-sim, hadoop-ns fifo", || run(&trace, slots));
    println!(
        "ratio of the whole run, policy included, to simcore: {:.2}",
        ours / theirs
    );
}

/// Events per second of the fastest run.
fn best(what: &str, run: impl Fn() -> (u64, f64)) -> f64 {
    let mut best = (0, f64::INFINITY);
    for _ in 0..RUNS {
        let this = run();
        if this.1 < best.1 {
            best = this;
        }
    }
    let rate = best.0 as f64 / best.1;
    println!(
        "{what}: {} events in {:.3} s, {rate:.0} events/s",
        best.0, best.1
    );
    rate
}

fn run(trace: &Trace, slots: u32) -> (u64, f64) {
    let cluster = Cluster::Slots(slots);
    let workload = shape(trace.clone(), &Shaping::default(), &cluster);
    let workload = workload.unwrap_or_else(|error| panic!("{error}"));
    let policy = Policy {
        order: Order::Fifo,
        speculation: Speculation::none(),
        ..Policy::default()
    };
    let settings = Settings::new(policy, cluster);
    let started = Instant::now();
    let outcome = Engine::new(&settings, &workload).run();
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    (outcome.totals.events, started.elapsed().as_secs_f64())
}

/// A trace about as large as the one that the goal is set for.
fn made_up() -> Trace {
    let text = "A{jobs=19500,load=0.8,slots=12000}";
    let setup: trace::setups::Setup = text.parse().unwrap_or_else(|error| panic!("{error}"));
    setup.trace(1)
}
