//! Properties of every round and formula, over random inputs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::board::Board;
use crate::cluster::{CpuMem, Launch, Server};
use crate::dag::tests::{job, phase};
use crate::dag::{DagError, Job, Phase, Task};
use crate::dollymp::{DollyMp, Fit, priorities, round};
use crate::ese::{Ese, duplication_cost, ese_round};
use crate::fluid::{FluidJob, simulate};
use crate::levels::{LevelItem, TransientJob, level_length, levels, transient};
use crate::ordering::{
    TetrisScore, by_arrival, by_remaining_time, by_volume, capacity, carbyne, drf, in_order, tetris,
};
use crate::sca::{Assignment, RunningTask, SlotJob, sca_round};
use crate::speedup::{pareto_from_moments, speedup, speedup_limit};
use shed_core::estimate::compare::sort_with_ties;
use shed_core::estimate::pareto::ParetoDistribution;
use shed_papers::formulas::ese::straggler_factor;
use shed_papers::formulas::mantri::pays_blind;
use shed_papers::formulas::sca::{CloneJob, P2, objective, round_copies, solve_relaxed};

fn amounts() -> impl Strategy<Value = CpuMem> {
    // Halves are exact, so that sums don't depend on their order.
    (1u32..12, 1u32..12).prop_map(|(cpu, mem)| CpuMem {
        cpu: f64::from(cpu) / 2.0,
        mem: f64::from(mem) / 2.0,
    })
}

fn any_phase(position: usize) -> impl Strategy<Value = Phase> {
    let parents = prop::collection::btree_set(0..position.max(1), 0..=position.min(2));
    let times = (1u32..40, 0u32..40);
    (amounts(), times, parents, 1usize..5).prop_map(move |(demand, (theta, sigma), parents, n)| {
        Phase {
            demand,
            theta: f64::from(theta),
            sigma: f64::from(sigma),
            parents: parents
                .into_iter()
                .filter(|&parent| parent < position)
                .collect(),
            tasks: vec![Task::Pending; n],
        }
    })
}

fn any_job() -> impl Strategy<Value = Job> {
    let phases = (any_phase(0), any_phase(1), any_phase(2), 1usize..=3);
    (phases, 0u32..5, prop::bool::ANY).prop_map(|((a, b, c, count), arrival, batch)| Job {
        id: 0,
        arrival: f64::from(arrival),
        queue: if batch { "batch" } else { "prod" }.into(),
        phases: [a, b, c].into_iter().take(count).collect(),
    })
}

fn any_cluster() -> impl Strategy<Value = (Vec<Server>, Vec<Job>)> {
    let servers = prop::collection::vec(amounts(), 1..5);
    let jobs = prop::collection::vec(any_job(), 0..6);
    (servers, jobs).prop_map(|(servers, mut jobs)| {
        let server = |(id, capacity): (u64, CpuMem)| Server {
            id,
            capacity,
            free: capacity,
        };
        for (id, job) in (100..).zip(&mut jobs) {
            job.id = id;
        }
        ((0..).zip(servers).map(server).collect(), jobs)
    })
}

fn dollymp() -> impl Strategy<Value = DollyMp> {
    let budget = prop::option::of(0.0..0.5);
    (0u32..4, prop::bool::ANY, prop::bool::ANY, budget).prop_map(
        |(clones, distinct, server_fit, clone_budget)| DollyMp {
            clones,
            distinct,
            fit: if server_fit { Fit::Server } else { Fit::Raw },
            clone_budget,
            ..DollyMp::default()
        },
    )
}

/// Every kind of round, with DollyMP's in the given parameters.
const ROUNDS: usize = 10;

fn start(board: &mut Board, kind: usize, params: &DollyMp) -> Result<Vec<Launch>, DagError> {
    let order = match kind {
        0 => by_arrival(board),
        1 => by_remaining_time(board, params.rho)?,
        _ => by_volume(board, params.rho),
    };
    Ok(match kind {
        0..=2 => in_order(board, &order, kind != 2),
        3 => drf(board),
        4 => tetris(board, TetrisScore::Inverse, 0.25),
        5 => tetris(board, TetrisScore::Plus, 0.0),
        6 => tetris(board, TetrisScore::Minus, 0.0),
        7 => capacity(board, &[]),
        8 => {
            let started = carbyne(board, params.slot)?;
            [started.fair, started.leftover].concat()
        }
        _ => {
            let level = priorities(board, params.rho, params.slot)?.level;
            let started = round(board, &level, params);
            started.into_iter().map(|start| start.launch).collect()
        }
    })
}

fn run(servers: &[Server], jobs: &[Job], kind: usize, params: &DollyMp) -> (Vec<Launch>, Board) {
    let mut board = Board::new(servers, jobs).unwrap();
    let launched = start(&mut board, kind, params).unwrap();
    (launched, board)
}

fn scaled(jobs: &[Job], factor: f64) -> Vec<Job> {
    let mut jobs = jobs.to_vec();
    for job in &mut jobs {
        job.arrival *= factor;
        for phase in &mut job.phases {
            phase.theta *= factor;
            phase.sigma *= factor;
        }
    }
    jobs
}

proptest! {
    #[test]
    fn the_order_of_servers_and_jobs_does_not_matter(
        (servers, jobs) in any_cluster(),
        kind in 0..ROUNDS,
        params in dollymp(),
    ) {
        let (launched, _) = run(&servers, &jobs, kind, &params);
        let mut others = (servers, jobs);
        others.0.reverse();
        others.1.reverse();
        prop_assert_eq!(run(&others.0, &others.1, kind, &params).0, launched);
    }

    #[test]
    fn what_starts_fits_and_is_accounted_for(
        (servers, jobs) in any_cluster(),
        kind in 0..ROUNDS,
        params in dollymp(),
    ) {
        let (launched, board) = run(&servers, &jobs, kind, &params);
        let mut free: BTreeMap<u64, CpuMem> =
            servers.iter().map(|server| (server.id, server.free)).collect();
        for launch in launched {
            let job = jobs.iter().find(|job| job.id == launch.job).unwrap();
            prop_assert!(job.is_ready(launch.phase));
            let left = free.get_mut(&launch.server).unwrap();
            *left = left.minus(&job.phases[launch.phase].demand);
            prop_assert!(left.cpu >= 0.0 && left.mem >= 0.0);
        }
        for server in board.servers() {
            prop_assert_eq!(server.free, free[&server.id]);
        }
    }

    /// For rounds by first fit, also without backfill. Rounds that proceed server by server may
    /// leave capacity: a job offers one task at a time, and its next task may fit an earlier
    /// server.
    #[test]
    fn first_fit_leaves_no_capacity_in_which_a_candidate_fits(
        (servers, jobs) in any_cluster(),
        kind in prop::sample::select(vec![0, 1, 3, 8]),
        params in dollymp(),
    ) {
        let (_, board) = run(&servers, &jobs, kind, &params);
        for job in 0..board.jobs().len() {
            if let Some((phase, _)) = board.candidate(job) {
                prop_assert_eq!(board.first_fit(&board.demand(job, phase)), None);
            }
        }
    }

    #[test]
    fn clones_keep_their_limit_their_budget_and_distinct_servers(
        (servers, jobs) in any_cluster(),
        params in dollymp(),
    ) {
        let (_, board) = run(&servers, &jobs, ROUNDS - 1, &params);
        let tasks = board.jobs().iter().flat_map(|job| &job.phases).flat_map(|phase| &phase.tasks);
        for task in tasks {
            let Task::Running { hosts } = task else { continue };
            prop_assert!(hosts.len() <= params.clones as usize + 1);
            let mut distinct = hosts.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert!(!params.distinct || distinct.len() == hosts.len());
        }
        if let Some(budget) = params.clone_budget {
            prop_assert!(board.clones_take().fits(&board.total().times(budget)));
        }
    }

    #[test]
    fn scaling_every_time_and_the_slot_changes_no_decision(
        (servers, jobs) in any_cluster(),
        kind in 0..ROUNDS,
        params in dollymp(),
        power in -6i32..7,
    ) {
        let factor = libm::scalbn(1.0, power);
        let slower = DollyMp { slot: params.slot * factor, ..params };
        let (launched, _) = run(&servers, &jobs, kind, &params);
        prop_assert_eq!(run(&servers, &scaled(&jobs, factor), kind, &slower).0, launched);
    }

    #[test]
    fn levels_hold_what_is_packed_and_every_job_has_one(
        measures in prop::collection::vec((0.0..50.0, 0.0..500.0), 0..20),
    ) {
        let items: Vec<LevelItem> = (0..)
            .zip(&measures)
            .map(|(id, &(volume, time))| LevelItem { id, volume, time })
            .collect();
        let found = levels(&items);
        prop_assert_eq!(found.priority.len(), items.len());
        for (level, packed) in (1..).zip(&found.packed) {
            let of = |id: &u64| &items[*id as usize];
            let volume: f64 = packed.iter().map(|id| of(id).volume).sum();
            prop_assert!(volume <= level_length(level) * (1.0 + 1e-8));
            prop_assert!(packed.iter().all(|id| of(id).time <= level_length(level) * (1.0 + 1e-8)));
        }
    }

    #[test]
    fn sorting_with_ties_does_not_depend_on_the_order_of_the_input(
        keys in prop::collection::vec(0u32..40, 0..20),
    ) {
        let near = keys.into_iter().map(|key| 1.0 + f64::from(key) * 0.4e-9);
        let mut items: Vec<(f64, usize)> = near.zip(0..).collect();
        let mut reversed: Vec<(f64, usize)> = items.iter().rev().copied().collect();
        sort_with_ties(&mut items, |item| item.0, |item| item.1);
        sort_with_ties(&mut reversed, |item| item.0, |item| item.1);
        prop_assert_eq!(items, reversed);
    }
}

fn any_clone_job() -> impl Strategy<Value = CloneJob> {
    let beta = prop_oneof![9 => 0.7..6.0, 1 => Just(f64::INFINITY)];
    (1u32..15, 0.5..40.0, beta).prop_map(|(tasks, t_min, beta)| CloneJob {
        id: 0,
        tasks,
        distribution: ParetoDistribution { t_min, beta },
    })
}

fn any_slot_job() -> impl Strategy<Value = SlotJob> {
    let running = prop::collection::vec((1u32..3, 0.0..500.0), 0..5);
    (any_clone_job(), prop::bool::ANY, running).prop_map(|(job, started, running)| {
        let task = |(task, (copies, t_rem))| RunningTask {
            task,
            copies,
            t_rem,
        };
        let running: Vec<RunningTask> = (0..).zip(running).map(task).collect();
        let running = if started { running } else { Vec::new() };
        SlotJob {
            job,
            started,
            unassigned: job.tasks.saturating_sub(running.len() as u32),
            running,
        }
    })
}

/// Ids in the order of the list.
fn with_ids<T>(mut jobs: Vec<T>, set: impl Fn(&mut T, u64)) -> Vec<T> {
    for (id, job) in (1..).zip(&mut jobs) {
        set(job, id);
    }
    jobs
}

fn clone_jobs() -> impl Strategy<Value = Vec<CloneJob>> {
    prop::collection::vec(any_clone_job(), 1..5)
        .prop_map(|jobs| with_ids(jobs, |job, id| job.id = id))
}

fn slot_jobs() -> impl Strategy<Value = Vec<SlotJob>> {
    prop::collection::vec(any_slot_job(), 0..6)
        .prop_map(|jobs| with_ids(jobs, |job, id| job.job.id = id))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn more_machines_never_lower_the_optimum(
        jobs in clone_jobs(),
        gamma in 0.0..0.3,
        machines in 1u64..120,
        more in 0u64..40,
    ) {
        let p2 = P2 { gamma, machines, copies_max: 5 };
        prop_assume!(solve_relaxed(&jobs, &p2).is_ok());
        let best = |p2: &P2| {
            let relaxed = solve_relaxed(&jobs, p2).unwrap();
            (objective(&jobs, &relaxed.copies, gamma), relaxed)
        };
        let (value, relaxed) = best(&p2);
        let copies = round_copies(&jobs, &p2, &relaxed);
        let whole: Vec<f64> = copies.iter().map(|&copies| f64::from(copies)).collect();
        let needed: f64 = jobs.iter().zip(&whole).map(|(job, c)| f64::from(job.tasks) * c).sum();
        prop_assert!(needed <= machines as f64);
        prop_assert!(whole.iter().all(|copies| (1.0..=5.0).contains(copies)));
        let slightly = 1e-6 * value.abs();
        prop_assert!(objective(&jobs, &whole, gamma) <= value + slightly);
        let larger = P2 { machines: machines + more, ..p2 };
        prop_assert!(best(&larger).0 >= value - slightly || value.is_infinite());
    }

    #[test]
    fn slots_account_for_every_machine(jobs in slot_jobs(), machines in 0u64..80) {
        let p2 = P2 { gamma: 0.05, machines, copies_max: 4 };
        let sca = sca_round(&jobs, &p2);
        let ese = ese_round(&jobs, machines, &Ese::default());
        for (assigned, backups, left) in [
            (&sca.assigned, 0, sca.machines_left),
            (&ese.assigned, ese.backups.len() as u64, ese.machines_left),
        ] {
            let machines_of = |start: &Assignment| u64::from(start.tasks * start.copies);
            let started = assigned.iter().map(machines_of);
            prop_assert_eq!(started.sum::<u64>() + backups + left, machines);
            for start in assigned {
                let job = jobs.iter().find(|job| job.job.id == start.job).unwrap();
                prop_assert!(start.tasks <= job.unassigned);
            }
        }
    }

    #[test]
    fn formulas_of_the_pareto_distribution_keep_within_their_bounds(
        mean in 1e-3..1e6,
        spread in 0.0..1e3,
        alpha in 1.001..1e3,
        age in 0.0..1e4,
    ) {
        let distribution = pareto_from_moments(mean, spread * mean);
        prop_assert!(distribution.beta > 2.0 && distribution.t_min > 0.0 && distribution.t_min <= mean);
        let gain = speedup(alpha, 3.0).unwrap();
        prop_assert!(gain >= 1.0 && gain <= speedup_limit(alpha).unwrap());
        let factor = straggler_factor(alpha).unwrap();
        prop_assert!(factor > (alpha - 1.0) / alpha && factor <= 2.0 * (1.0 + 1e-12));
        let cost = duplication_cost(alpha, factor).unwrap();
        prop_assert!(cost > 0.0 && cost <= 1.0 + 1e-12);
        let distribution = ParetoDistribution { t_min: 10.0, beta: alpha };
        let pays = pays_blind(&distribution, age, 1);
        prop_assert!((0.0..=1.0).contains(&pays));
        prop_assert!(pays_blind(&distribution, age * 1.5 + 10.0, 1) >= pays - 1e-12);
    }
}

/// Total flow time of one-task jobs on one server, started strictly in `order` (positions).
fn flow_in_order(capacity: CpuMem, jobs: &[FluidJob], order: &[usize]) -> f64 {
    let server = Server {
        id: 0,
        capacity,
        free: capacity,
    };
    let outcome = simulate(&[server], jobs, |board, _| {
        let ids = order.iter().map(|&position| jobs[position].job.id);
        let place = |id| board.jobs().iter().position(|job| job.id == id);
        let order: Vec<usize> = ids.filter_map(place).collect();
        in_order(board, &order, false);
        Ok(())
    });
    outcome.unwrap().flow_sum
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let rest: Vec<usize> = of.iter().copied().filter(|&other| other != first).collect();
        let follow = permutations(&rest).into_iter();
        follow.map(move |mut order| {
            order.insert(0, first);
            order
        })
    };
    of.iter().copied().flat_map(with_first).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// DollyMP Theorem 1 with times that do not vary (R = 1): without clones the order of
    /// Algorithm 1 has at most six times the least total flow time. The least is taken over list
    /// schedules, which is not below the true optimum.
    #[test]
    fn algorithm_1_keeps_its_bound(
        sizes in prop::collection::vec((1u32..=8, 1u32..=8, 1u32..40), 1..5),
    ) {
        let capacity = CpuMem { cpu: 8.0, mem: 8.0 };
        let jobs: Vec<FluidJob> = (1..)
            .zip(&sizes)
            .map(|(id, &(cpu, mem, theta))| {
                let mut wide = phase(f64::from(theta), &[], 1);
                wide.demand = CpuMem { cpu: f64::from(cpu), mem: f64::from(mem) };
                FluidJob {
                    job: job(id, vec![wide]),
                    alpha: vec![f64::INFINITY],
                }
            })
            .collect();
        let transient_jobs: Vec<TransientJob> = jobs
            .iter()
            .map(|job| TransientJob {
                id: job.job.id,
                demand: job.job.phases[0].demand,
                theta: job.job.phases[0].theta,
            })
            .collect();
        let found = transient(&transient_jobs, &capacity);
        let order: Vec<usize> = found.order.iter().map(|&id| id as usize - 1).collect();
        let flow = flow_in_order(capacity, &jobs, &order);
        let positions: Vec<usize> = (0..jobs.len()).collect();
        let least = permutations(&positions)
            .iter()
            .map(|order| flow_in_order(capacity, &jobs, order))
            .fold(f64::INFINITY, f64::min);
        prop_assert!(flow <= 6.0 * least);
    }
}
