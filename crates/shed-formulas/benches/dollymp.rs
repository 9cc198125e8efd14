//! Cost of a round of DollyMP: 1 000 jobs on 30 000 machines. For this size its paper reports less
//! than 50 ms.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use shed_formulas::board::Board;
use shed_formulas::cluster::{CpuMem, Server};
use shed_formulas::dag::{Job, Phase, Task};
use shed_formulas::dollymp::{DollyMp, priorities, round};

#[path = "../../shed-papers/tests/optimizer/instances.rs"]
#[expect(dead_code, reason = "only the generator is wanted here")]
mod instances;
#[path = "../../shed-papers/benches/measure/mod.rs"]
mod measure;

use instances::Random;
use measure::{load, ms};

const JOBS: usize = 1_000;
const SERVERS: usize = 30_000;
const RUNS: usize = 15;

/// A cluster where a share of the servers has capacity; on the others less than one core is free.
fn servers(random: &mut Random, with_capacity: f64) -> Vec<Server> {
    let capacity = CpuMem {
        cpu: 16.0,
        mem: 64.0,
    };
    let server = |id| Server {
        id,
        capacity,
        free: if random.share() < with_capacity {
            CpuMem {
                cpu: random.between(1.0, 16.0),
                mem: random.between(4.0, 64.0),
            }
        } else {
            CpuMem { cpu: 0.5, mem: 4.0 }
        },
    };
    (0..SERVERS as u64).map(server).collect()
}

/// Jobs of three phases in a chain: the first is half done, and a fifth of the rest waits.
fn jobs(random: &mut Random) -> Vec<Job> {
    let task = |random: &mut Random| match random.below(10) {
        0..5 => Task::Finished,
        5..9 => Task::Running {
            hosts: vec![random.below(SERVERS) as u64],
        },
        _ => Task::Pending,
    };
    let mut job = |id: usize| {
        let phase = |position: usize, random: &mut Random| Phase {
            demand: CpuMem {
                cpu: random.between(1.0, 4.0),
                mem: random.between(2.0, 8.0),
            },
            theta: random.between(20.0, 400.0),
            sigma: random.between(5.0, 200.0),
            parents: position.checked_sub(1).into_iter().collect(),
            tasks: (0..10 + random.below(90))
                .map(|_| match position {
                    0 => task(random),
                    _ => Task::Pending,
                })
                .collect(),
        };
        Job {
            id: id as u64,
            arrival: id as f64,
            queue: "default".into(),
            phases: (0..3).map(|position| phase(position, random)).collect(),
        }
    };
    (0..JOBS).map(&mut job).collect()
}

fn report(name: &str, board: &Board, params: &DollyMp) {
    let level = priorities(board, params.rho, params.slot).unwrap().level;
    let mut times = Vec::new();
    let mut launched = 0;
    for _ in 0..RUNS {
        let mut board = board.clone();
        let begin = ThreadTime::now();
        launched = black_box(round(&mut board, &level, params)).len();
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let mut copy = board.clone();
    let used = allocation_counter::measure(|| {
        black_box(round(&mut copy, &level, params));
    });
    println!(
        "{name:<30} {JOBS} jobs {SERVERS} servers, {launched:>6} launches: min {:>9.3} ms, \
         median {:>9.3} ms of {RUNS}; {} allocations, {:.1} MB at most; {}",
        ms(times[0]),
        ms(times[RUNS / 2]),
        used.count_total,
        used.bytes_max as f64 / 1e6,
        load(),
    );
}

fn rounds(criterion: &mut Criterion) {
    let params = DollyMp::default();
    let mut random = Random(1);
    for (name, with_capacity) in [
        ("full cluster", 0.0),
        ("1 % of servers with capacity", 0.01),
        ("10 % of servers with capacity", 0.1),
        ("every server with capacity", 1.0),
    ] {
        let board = Board::new(&servers(&mut random, with_capacity), &jobs(&mut random)).unwrap();
        report(name, &board, &params);
        let (least, median) = measure::time(RUNS, || priorities(&board, 1.5, 1.0));
        println!(
            "  its priorities: min {:.3} ms, median {:.3} ms",
            ms(least),
            ms(median)
        );
        let level = priorities(&board, params.rho, params.slot).unwrap().level;
        criterion.bench_function(&format!("round, {name}"), |bench| {
            let copy = || board.clone();
            bench.iter_batched_ref(
                copy,
                |board| round(board, &level, &params),
                BatchSize::LargeInput,
            );
        });
    }
}

fn settings() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = settings();
    targets = rounds
}
criterion_main!(benches);
