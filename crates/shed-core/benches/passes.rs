//! The cost of one pass over a whole cluster under each kind of policy: it examines all jobs, unlike the simulator's
//! exact passes.

use shed_core::decide::decide;
use shed_core::fixtures::{AttemptBuilder, JobBuilder, attempt, job, world};
use shed_core::memory::Memory;
use shed_core::policy::Policy;
use shed_core::snapshot::Snapshot;

#[path = "../tests/optimizer/instances.rs"]
#[expect(dead_code, reason = "only the generator is wanted here")]
mod instances;
mod measure;

use instances::Random;
use measure::{load, ms};

/// The first is the baseline of the others.
const POLICIES: [&str; 5] = [
    "hadoop-ns",
    "shed-plus",
    "s-resume-event",
    "shed-prime",
    "shed-prime{reserve=off,timely=off}",
];
const RUNS: usize = 9;
const NOW: f64 = 10_000.0;
/// Attempts of one core that a node holds.
const PLACES: usize = 16;

struct Size {
    name: &'static str,
    jobs: usize,
    tasks: u32,
    nodes: usize,
    /// The share of the slots that hold an attempt.
    busy: f64,
}

const SIZES: [Size; 4] = [
    Size {
        name: "100 jobs of 50 tasks, 100 nodes, full",
        jobs: 100,
        tasks: 50,
        nodes: 100,
        busy: 1.0,
    },
    Size {
        name: "1 000 jobs of 50 tasks, 500 nodes, full",
        jobs: 1_000,
        tasks: 50,
        nodes: 500,
        busy: 1.0,
    },
    Size {
        name: "1 000 jobs of 16 tasks, 2 000 nodes, half full",
        jobs: 1_000,
        tasks: 16,
        nodes: 2_000,
        busy: 0.5,
    },
    Size {
        name: "5 000 jobs of 10 tasks, 500 nodes, full",
        jobs: 5_000,
        tasks: 10,
        nodes: 500,
        busy: 1.0,
    },
];

/// An attempt that began within the time that it takes. It has reported unless it is younger than a twentieth of
/// that.
fn running(random: &mut Random, node: usize, mean: f64) -> AttemptBuilder {
    let takes = mean * random.between(0.5, 3.0);
    let age = takes * random.share();
    let attempt = attempt(0).on(node).launched(NOW - age);
    let reported = age / takes;
    if reported > 0.05 {
        attempt.progress(reported, NOW)
    } else {
        attempt
    }
}

/// A third of a job's tasks have ended, as many as there are slots run, and the others wait.
fn a_job(random: &mut Random, size: &Size, number: usize) -> JobBuilder {
    let mean = random.between(20.0, 600.0);
    let done = size.tasks / 3;
    let places = (size.nodes * PLACES) as f64 * size.busy;
    let runs = (places / size.jobs as f64) as u32;
    let ended = (0..done).map(|_| mean * random.between(0.5, 2.0));
    let mut builder = job(&format!("job-{number}"))
        .cpu(1_000)
        .tasks(size.tasks)
        .ended_runs(ended.collect::<Vec<_>>())
        .done(0..done)
        .submitted(NOW - mean * random.between(0.5, 2.0))
        .deadline_in(mean * random.between(2.0, 6.0));
    for index in (done..size.tasks).take(runs as usize) {
        let place = number * runs as usize + index as usize - done as usize;
        let attempt = running(random, place % size.nodes, mean);
        builder = builder.task(index, [attempt]);
    }
    builder
}

fn cluster(size: &Size) -> Snapshot {
    let mut random = Random(1);
    let nodes = world(NOW, size.nodes, 1_000 * PLACES as i64);
    let jobs = (0..size.jobs).map(|number| a_job(&mut random, size, number));
    let world = jobs.fold(nodes, |world, job| world.job(job));
    world.launch_overhead(3.0).build()
}

fn main() {
    for size in &SIZES {
        let snapshot = cluster(size);
        println!("{}; medians of {RUNS}, {}", size.name, load());
        let mut base = None;
        for name in POLICIES {
            let policy: Policy = name.parse().unwrap();
            let pass = |memory: &Memory| decide(&snapshot, memory.clone(), &policy);
            let (_, first) = measure::time(RUNS, || pass(&Memory::default()));
            let (plan, memory) = pass(&Memory::default());
            let (_, next) = measure::time(RUNS, || pass(&memory));
            let base = *base.get_or_insert(first);
            println!(
                "  {name:<36} first {:>8.2} ms ({:>4.1} × {}), the next {:>8.2} ms; {} actions",
                ms(first),
                first.as_secs_f64() / base.as_secs_f64(),
                POLICIES[0],
                ms(next),
                plan.actions.len()
            );
        }
    }
}
