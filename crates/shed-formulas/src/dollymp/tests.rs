use proptest::prelude::*;

use super::*;
use crate::dag::tests::{job, phase};
use crate::dag::{Job, Phase};

fn servers(count: u64, cpu: f64) -> Vec<Server> {
    let capacity = CpuMem { cpu, mem: cpu };
    let server = |id| Server {
        id,
        capacity,
        free: capacity,
    };
    (0..count).map(server).collect()
}

fn run(servers: &[Server], jobs: &[Job], params: &DollyMp) -> Vec<PassLaunch> {
    let mut board = Board::new(servers, jobs).unwrap();
    let level = priorities(&board, params.rho, params.slot).unwrap().level;
    round(&mut board, &level, params)
}

#[test]
fn clones_start_only_when_every_original_that_fits_runs() {
    let jobs = [
        job(1, vec![phase(2.0, &[], 2)]),
        job(2, vec![phase(90.0, &[], 3)]),
    ];
    let passes: Vec<u32> = run(&servers(2, 3.0), &jobs, &DollyMp::default())
        .iter()
        .map(|start| start.pass)
        .collect();
    assert_eq!(passes, [0, 0, 0, 0, 0, 1]);
}

#[test]
fn distinct_copies_are_on_different_servers() {
    let params = DollyMp {
        distinct: true,
        ..DollyMp::default()
    };
    let jobs = [job(1, vec![phase(2.0, &[], 1)])];
    let hosts: Vec<u64> = run(&servers(2, 9.0), &jobs, &params)
        .iter()
        .map(|start| start.launch.server)
        .collect();
    assert_eq!(hosts, [0, 1]);
    let anywhere = run(&servers(2, 9.0), &jobs, &DollyMp::default());
    assert_eq!(anywhere.len(), 3);
}

#[test]
fn clones_that_already_run_count_towards_the_budget() {
    let mut cloned = job(1, vec![phase(2.0, &[], 2)]);
    cloned.phases[0].tasks[0] = Task::Running { hosts: vec![0, 0] };
    let mut server = servers(1, 10.0);
    server[0].free = CpuMem { cpu: 8.0, mem: 8.0 };
    let clones_within = |budget: f64| {
        let params = DollyMp {
            clone_budget: Some(budget),
            ..DollyMp::default()
        };
        let starts = run(&server, std::slice::from_ref(&cloned), &params);
        starts.iter().filter(|start| start.pass > 0).count()
    };
    assert_eq!(clones_within(0.1), 0);
    assert_eq!(clones_within(0.2), 1);
    assert_eq!(clones_within(1.0), 3);
}

#[test]
fn a_job_without_a_cached_level_comes_after_all_that_have_one() {
    let jobs = [
        job(1, vec![phase(2.0, &[], 1)]),
        job(2, vec![phase(2.0, &[], 1)]),
    ];
    let board = Board::new(&servers(1, 1.0), &jobs).unwrap();
    let level = cached_levels(&board, &BTreeMap::from([(2, 3), (9, 7)]));
    assert_eq!(level, BTreeMap::from([(1, 8), (2, 3)]));
    assert_eq!(cached_levels(&board, &BTreeMap::new())[&1], 1);
}

/// Mostly halves, so that unlike demands often tie; some a hair more, less than a tie or about it.
fn any_amount(least: u32, most: u32) -> impl Strategy<Value = CpuMem> {
    let hair = || prop_oneof![4 => Just(0.0), 1 => (1u32..4).prop_map(|n| 0.4e-9 * f64::from(n))];
    let one = move || {
        (least..most, hair()).prop_map(|(halves, hair)| f64::from(halves) / 2.0 * (1.0 + hair))
    };
    (one(), one()).prop_map(|(cpu, mem)| CpuMem { cpu, mem })
}

fn any_task() -> impl Strategy<Value = Task> {
    prop_oneof![
        4 => Just(Task::Pending),
        1 => Just(Task::Finished),
        3 => prop::collection::vec(0u64..6, 1..4).prop_map(|hosts| Task::Running { hosts }),
    ]
}

fn any_phase() -> impl Strategy<Value = Phase> {
    let tasks = prop::collection::vec(any_task(), 1..6);
    (any_amount(0, 9), tasks, 1u32..50).prop_map(|(demand, tasks, theta)| Phase {
        demand,
        theta: f64::from(theta),
        sigma: f64::from(theta) / 2.0,
        parents: Vec::new(),
        tasks,
    })
}

fn any_jobs() -> impl Strategy<Value = Vec<Job>> {
    let phases = prop::collection::vec(any_phase(), 1..4);
    prop::collection::vec(phases, 0..25).prop_map(|jobs| {
        (0..)
            .zip(jobs)
            .map(|(id, phases)| job(id, phases))
            .collect()
    })
}

fn any_servers() -> impl Strategy<Value = Vec<Server>> {
    let one = (any_amount(4, 40), any_amount(0, 40));
    prop::collection::vec(one, 1..8).prop_map(|servers| {
        let server = |(id, (capacity, free)): (u64, (CpuMem, CpuMem))| Server {
            id,
            capacity,
            free: free.least(&capacity),
        };
        (0..).zip(servers).map(server).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_round_is_that_of_a_scan_of_all_offers(
        servers in any_servers(),
        jobs in any_jobs(),
        levels in prop::collection::vec(1u32..4, 25),
        clones in 0u32..4,
        distinct in prop::bool::ANY,
        fit in prop::sample::select(vec![Fit::Raw, Fit::Server]),
        clone_budget in prop::option::of(0.0..0.5),
    ) {
        let params = DollyMp { clones, distinct, fit, clone_budget, ..DollyMp::default() };
        let level: BTreeMap<u64, u32> = (0..).zip(levels).collect();
        let mut board = Board::new(&servers, &jobs).unwrap();
        let mut copy = board.clone();
        let launched = round(&mut board, &level, &params);
        prop_assert_eq!(launched, naive::round(&mut copy, &level, &params));
        prop_assert_eq!(board, copy);
    }
}
