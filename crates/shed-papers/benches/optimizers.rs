//! The cost of the optimizers. Every line has the size, the time and the allocations of one call; Criterion's own
//! statistics follow. Times are CPU time of the one thread, so other work on the machine matters only by its effect
//! on the caches.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::{Criterion, criterion_group, criterion_main};
use shed_core::resources::Resources;
use shed_papers::optimize::alpha_fair::{Stride, alloc_alpha_fair};
use shed_papers::optimize::clone_capacity::CloneCapacity;
use shed_papers::optimize::greedy::{GreedyInput, GreedyMode, alloc_task, alloc_task_within};

#[path = "../tests/optimizer/instances.rs"]
mod instances;
mod measure;
#[path = "../tests/optimizer/reference.rs"]
mod reference;

use instances::{Random, stragglers};
use measure::{load, ms, time};

/// The papers' claims are about 1 000 jobs.
const JOBS: usize = 1_000;
const TASKS: usize = 100;

const MODES: [(&str, GreedyMode); 4] = [
    ("paper", GreedyMode::Paper),
    ("guarded", GreedyMode::Guarded),
    ("maxmin", GreedyMode::MaxMin),
    ("marginal", GreedyMode::Marginal),
];

/// 30 slots per 100 stragglers.
fn input(jobs: usize) -> GreedyInput {
    let kappa = (jobs * TASKS * 3 / 10) as i64;
    stragglers(&mut Random(1), jobs, TASKS, kappa)
}

fn size_of(input: &GreedyInput) -> usize {
    input.jobs.iter().map(|job| job.tasks.len()).sum()
}

/// Prints size, time and allocations of a call; returns its least time.
fn report<R>(
    name: &str,
    input: &GreedyInput,
    runs: usize,
    mut call: impl FnMut() -> R,
) -> Duration {
    let tasks = size_of(input);
    let (least, median) = time(runs, &mut call);
    let used = allocation_counter::measure(|| {
        black_box(call());
    });
    println!(
        "{name:<28} {:>6} jobs {tasks:>8} tasks κ {:>7}: min {:>9.3} ms, median {:>9.3} ms of {runs}; \
         {:>7} allocations, {:>6.1} MB at most, {:>5.1} B per task; {}",
        input.jobs.len(),
        input.kappa,
        ms(least),
        ms(median),
        used.count_total,
        used.bytes_max as f64 / 1e6,
        used.bytes_max as f64 / tasks as f64,
        load(),
    );
    least
}

fn from_scratch(criterion: &mut Criterion) {
    for (jobs, runs) in [(JOBS, 50), (10 * JOBS, 15)] {
        let input = input(jobs);
        for (name, mode) in MODES {
            report(&format!("task level, {name}"), &input, runs, || {
                alloc_task(&input, mode)
            });
        }
    }
    let mut input = input(JOBS);
    for (name, mode) in [MODES[1], MODES[3]] {
        let kappa = std::mem::replace(&mut input.kappa, 1);
        report(&format!("set up alone, {name}"), &input, 50, || {
            alloc_task(&input, mode)
        });
        input.kappa = kappa;
    }
    for (name, mode) in MODES {
        criterion.bench_function(&format!("task level, {name}, {JOBS} x {TASKS}"), |bench| {
            bench.iter_custom(|calls| {
                let begin = ThreadTime::now();
                for _ in 0..calls {
                    black_box(alloc_task(&input, mode));
                }
                begin.elapsed()
            });
        });
    }
}

/// Shows the complexity: the time divided by (S + κ)·log S does not grow.
fn growth(_: &mut Criterion) {
    for jobs in [10, 100, JOBS, 10 * JOBS] {
        let input = input(jobs);
        let work = (size_of(&input) as f64 + input.kappa as f64) * (size_of(&input) as f64).log2();
        for (name, mode) in [MODES[1], MODES[3]] {
            let (least, _) = time(15, || alloc_task(&input, mode));
            let unit = least.as_secs_f64() * 1e9 / work;
            println!(
                "growth, {name:<9} S {:>8} κ {:>7}: {unit:.2} ns per (S + κ)·log2 S",
                size_of(&input),
                input.kappa
            );
        }
    }
}

/// The naive greedy scans and sums everything again for each clone, so the comparison uses a size that it can handle.
fn ratio_to_naive(_: &mut Criterion) {
    let input = stragglers(&mut Random(3), 100, 20, 600);
    for (name, mode) in MODES {
        let fast = report(&format!("task level, {name}"), &input, 50, || {
            alloc_task(&input, mode)
        });
        let naive = report(&format!("naive, {name}"), &input, 3, || {
            reference::steps(&input, mode)
        });
        println!(
            "  naive / fast: {:.0}",
            naive.as_secs_f64() / fast.as_secs_f64()
        );
    }
}

fn further(_: &mut Criterion) {
    let input = input(JOBS);
    for alpha in [0.0, 0.5, 2.0] {
        report(&format!("bundles, α {alpha}"), &input, 10, || {
            let capacity = CloneCapacity::slots(input.kappa);
            alloc_alpha_fair(&input.jobs, capacity, alpha, Stride::Bundle)
        });
    }
    // As much of each resource as κ jobs of the mean demand take.
    let names = ["cpu", "memory", "example.com/gpu"];
    let vector = |random: &mut Random| {
        Resources::from_pairs(names.map(|name| (name, random.below(7) as i64 + 1)))
    };
    let free = Resources::from_pairs(names.map(|name| (name, 4 * input.kappa)));
    let mut random = Random(4);
    let demands: Vec<Resources> = (0..JOBS).map(|_| vector(&mut random)).collect();
    let demands: Vec<&Resources> = demands.iter().collect();
    for (name, mode) in MODES {
        report(&format!("three resources, {name}"), &input, 20, || {
            alloc_task_within(&input.jobs, CloneCapacity::vector(&free, &demands), mode)
        });
    }
}

fn settings() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = settings();
    targets = from_scratch, growth, ratio_to_naive, further
}
criterion_main!(benches);
