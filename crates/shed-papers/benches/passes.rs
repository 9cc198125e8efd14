//! The cost of one pass over a whole cluster under each kind of policy: it examines all jobs, unlike the passes
//! of the operator. Also the cost of the passes after it, each with news of one job.

use std::sync::Arc;

use shed_core::decide::{Changed, Planner, decide};
use shed_core::fixtures::{AttemptBuilder, JobBuilder, attempt, job, world};
use shed_core::ids::Tenant;
use shed_core::memory::Memory;
use shed_core::policy::{Order, Policy};
use shed_core::snapshot::Snapshot;
use shed_core::time::Span;

#[path = "../tests/optimizer/instances.rs"]
#[expect(dead_code, reason = "only the generator is wanted here")]
mod instances;
mod measure;

use cpu_time::ThreadTime;
use instances::Random;
use measure::{load, ms};

/// The first is the baseline of the others.
const POLICIES: [&str; 3] = ["hadoop-ns", "shed-plus", "shed-prime"];

fn policy(name: &str) -> Policy {
    let policy = shed_papers::registry().parse(name, Order::default());
    policy.expect("a known policy")
}

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

/// 2 000 jobs of 50 running attempts and 5 000 waiting jobs of 20 tasks, on 1 000 full nodes of one kind.
fn large_cluster() -> Snapshot {
    let mut random = Random(1);
    let nodes = world(NOW, 1_000, 1_000 * 100);
    let running = (0..2_000).map(|number| {
        let mean = random.between(100.0, 2_000.0);
        let ended = (0..10).map(|_| mean * random.between(0.5, 2.0));
        let job = job(&format!("running-{number}"))
            .cpu(1_000)
            .tasks(70)
            .ended_runs(ended.collect::<Vec<_>>())
            .done(0..10)
            .submitted(NOW - mean * random.between(0.5, 2.0))
            .deadline_in(mean * random.between(2.0, 6.0));
        (10..60).fold(job, |job, index: u32| {
            let place = number * 50 + index as usize;
            job.task(index, [running(&mut random, place % 1_000, mean)])
        })
    });
    let running: Vec<JobBuilder> = running.collect();
    let waiting = (0..5_000).map(|number| {
        let mean = random.between(100.0, 2_000.0);
        job(&format!("waiting-{number}"))
            .cpu(1_000)
            .tasks(20)
            .submitted(NOW - mean * random.between(0.0, 0.5))
            .deadline_in(mean * random.between(2.0, 6.0))
    });
    let jobs = running.into_iter().chain(waiting);
    let world = jobs.fold(nodes, |world, job| world.job(job));
    let mut snapshot = world.launch_overhead(3.0).build();
    // Executors keep the jobs in this order, and share the lists of nodes.
    let jobs = &mut snapshot.jobs;
    jobs.sort_by(|a, b| (a.submitted, &a.key).cmp(&(b.submitted, &b.key)));
    let all = Arc::clone(&jobs[0].eligible_nodes);
    jobs.iter_mut()
        .for_each(|job| job.eligible_nodes = Arc::clone(&all));
    snapshot
}

fn report_news() {
    let mut snapshot = large_cluster();
    println!("news of one of 7 000 jobs, 100 000 attempts; {}", load());
    for name in ["hadoop-ns", "shed-prime"] {
        let policy = policy(name);
        let (mut planner, mut memory) = (Planner::default(), Memory::default());
        planner.decide(&snapshot, &mut memory, &policy, Changed::All);
        let mut next = 0;
        let mut pass = || {
            next = (next + 37) % snapshot.jobs.len();
            // Later by so little that no job is due.
            snapshot.now = snapshot.now.plus(Span(1));
            let marked: Vec<bool> = (0..snapshot.jobs.len()).map(|at| at == next).collect();
            planner.decide(&snapshot, &mut memory, &policy, Changed::Marked(&marked))
        };
        let allocations = allocation_counter::measure(|| drop(pass()));
        let (least, median) = measure::time(41, &mut pass);
        println!(
            "  {name:<36} least {:>8.2} ms, median {:>8.2} ms; {} allocations, {} bytes",
            ms(least),
            ms(median),
            allocations.count_total,
            allocations.bytes_total,
        );
    }
}

const SHARED: Size = Size {
    name: "2 000 jobs of 30 tasks, 1 000 nodes, full",
    jobs: 2_000,
    tasks: 30,
    nodes: 1_000,
    busy: 1.0,
};

/// Passes over jobs of one tenant and of 200 tenants, in turn.
fn report_shares() {
    let one = cluster(&SHARED);
    let mut many = one.clone();
    for (number, job) in many.jobs.iter_mut().enumerate() {
        job.tenant = Tenant::from(format!("team-{:03}", number % 200).as_str());
    }
    println!("{}; one tenant and 200, in turn, {}", SHARED.name, load());
    for name in ["hadoop-ns", "shed-prime"] {
        let policy = policy(name);
        for of_news in [false, true] {
            let mut times = [vec![], vec![]];
            let mut launches = [0, 0];
            let mut planners = [&one, &many].map(|snapshot| {
                let (mut planner, mut memory) = (Planner::default(), Memory::default());
                planner.decide(snapshot, &mut memory, &policy, Changed::All);
                (snapshot.clone(), planner, memory)
            });
            for run in 0..41 {
                for (at, (snapshot, planner, memory)) in planners.iter_mut().enumerate() {
                    snapshot.now = snapshot.now.plus(Span(1));
                    let marked: Vec<bool> =
                        (0..snapshot.jobs.len()).map(|at| at == 37 * run).collect();
                    let changed = match of_news {
                        true => Changed::Marked(&marked),
                        false => Changed::All,
                    };
                    let started = ThreadTime::now();
                    let plan = planner.decide(snapshot, memory, &policy, changed);
                    times[at].push(started.elapsed());
                    launches[at] = plan.actions.len();
                }
            }
            times.iter_mut().for_each(|times| times.sort());
            let [least, median] = [0, 20].map(|at| times.each_ref().map(|it| ms(it[at])));
            println!(
                "  {name:<12} {:<16} least {:>7.3} and {:>7.3} ms ({:.2}), median {:>7.3} and {:>7.3} ms ({:.2}); {} and {} actions",
                if of_news {
                    "news of one job"
                } else {
                    "all jobs"
                },
                least[0],
                least[1],
                least[1] / least[0],
                median[0],
                median[1],
                median[1] / median[0],
                launches[0],
                launches[1],
            );
        }
    }
}

fn main() {
    report_shares();
    if std::env::args().any(|argument| argument == "shares") {
        return;
    }
    report_news();
    for size in &SIZES {
        let snapshot = cluster(size);
        println!("{}; medians of {RUNS}, {}", size.name, load());
        let mut base = None;
        for name in POLICIES {
            let policy = policy(name);
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
