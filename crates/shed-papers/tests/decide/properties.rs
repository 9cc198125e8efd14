//! Properties of `decide` for any cluster.

use std::collections::BTreeSet;

use proptest::prelude::*;
use shed_core::decide::decide;
use shed_core::estimate::fit::DistributionChoice;
use shed_core::fixtures::{AttemptBuilder, JobBuilder, at, attempt, job, resume_point, world};
use shed_core::ids::{AttemptNumber, JobKey};
use shed_core::memory::{JobMemory, Memory};
use shed_core::plan::{Move, Plan};
use shed_core::plan_check::plan_check;
use shed_core::policy::{Hedge, Order, Policy, Registry, ShedPrime, Speculation};
use shed_core::snapshot::{
    AttemptKind, AttemptState, Conclusion, JobSnapshot, KillKind, NodeIndex, Snapshot,
    SpeculationMode,
};
use shed_papers::{Keep, ShedPlus, Utility};

pub(super) const NODES: usize = 3;

fn any_attempt() -> impl Strategy<Value = AttemptBuilder> {
    let progress = proptest::option::weighted(0.6, 0..100u32);
    let place = (0..NODES, any::<bool>());
    let kill = proptest::option::weighted(0.15, any_kill());
    (0..11u8, 0..90u32, progress, place, kill, 0..4u8).prop_map(
        |(state, launched, progress, (node, placed), kill, resumed)| {
            let mut built = attempt(0).launched(f64::from(launched));
            if resumed == 0 {
                built = built.resumed_at(0.2).checkpoint(0.3);
            }
            built = match state {
                0 => built.launching(),
                1 => built.pending(),
                2 => built.stuck(50.0),
                3 => built.failed(80.0),
                4 => built.succeeded(80.0),
                10 => built.unplaceable(),
                _ => built.on(node),
            };
            if placed && state < 3 {
                built = built.on(node);
            }
            if let (Some(progress), true) = (progress, (5..10).contains(&state)) {
                built = built.progress(f64::from(progress) / 99.0, 95.0);
            }
            match kill {
                Some(kind) => built.killed(kind, 90.0),
                None => built,
            }
        },
    )
}

fn any_kill() -> impl Strategy<Value = KillKind> {
    prop_oneof![
        Just(KillKind::Settle),
        Just(KillKind::Prune),
        Just(KillKind::Evict),
        Just(KillKind::Replace),
        Just(KillKind::Suspend),
    ]
}

type AnyTask = (Vec<AttemptBuilder>, u8, u32);

fn any_task() -> impl Strategy<Value = AnyTask> {
    let attempts = proptest::collection::vec(any_attempt(), 0..4);
    (attempts, 0..12u8, 0..3u32)
}

fn any_job() -> impl Strategy<Value = JobBuilder> {
    let tasks = proptest::collection::vec(any_task(), 0..6);
    let runs = proptest::collection::vec(1..60u32, 0..5);
    let size = (0..8u32, 1..6u32, 1..4i64, 100..400u32, 0..90u32);
    let flags = (0..16u8, 0..8u8, any::<bool>(), 0..4u32);
    (tasks, runs, size, flags).prop_map(|(tasks, runs, size, flags)| {
        let (more, parallelism, cpus, deadline, submitted) = size;
        let (strange, mode, resumes, max_clones) = flags;
        let mut builder = job("any")
            .tasks(tasks.len() as u32 + more)
            .parallelism(parallelism * 2)
            .cpu(cpus * 500)
            .submitted(f64::from(submitted))
            .deadline_in(f64::from(deadline))
            .ended_runs(runs.into_iter().map(f64::from))
            .max_clones(max_clones);
        builder = match strange {
            0 => builder.suspended(),
            1 => builder.ending(Conclusion::DeadlineExceeded),
            2 => builder.not_idempotent(),
            3 => builder.with(|job| job.launch_not_before = Some(at(101.0))),
            4 => builder.with(|job| job.deadline = None),
            5 => builder.with(|job| job.eligible_nodes = [NodeIndex(1)].into()),
            6 => builder.silent(),
            7 => builder.target(0.6),
            8 => builder.with(|job| job.asks_feasibility = true),
            9 => builder.with(|job| job.obstacles.no_node = true),
            10 => builder.with(|job| job.obstacles.attempts_max = Some(2)),
            11 => builder.with(|job| job.obstacles.clones_stopped = true),
            12 => builder.clone_budget(0.0),
            13 => builder.clone_budget(f64::from(deadline) / 400.0),
            14 => builder.admitted(deadline % 5),
            _ => builder,
        };
        builder = match mode {
            0 => builder.speculation(SpeculationMode::Observe),
            1 => builder.speculation(SpeculationMode::Disabled),
            _ => builder,
        };
        if resumes {
            builder = builder.resumes();
        }
        add_tasks(builder, tasks)
    })
}

fn add_tasks(mut builder: JobBuilder, tasks: Vec<AnyTask>) -> JobBuilder {
    for (index, (attempts, fate, failures)) in (0u32..).zip(tasks) {
        builder = builder.task_with(index, attempts, |task| {
            for (number, attempt) in (0u32..).zip(&mut task.attempts) {
                attempt.number = AttemptNumber(number);
                attempt.kind = match number {
                    0 => AttemptKind::Original,
                    _ => AttemptKind::Clone,
                };
            }
            task.failures = failures;
            task.clone_failures = failures;
            match fate {
                0 => task.winner = Some(AttemptNumber(9)),
                1 => task.retry_not_before = Some(at(102.0)),
                2 => task.resume_point = Some(resume_point(0.5)),
                _ => {}
            }
        });
        if fate == 3 {
            builder = builder.failed([index]);
        }
    }
    builder
}

pub(super) fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let jobs = proptest::collection::vec(any_job(), 1..5);
    let unusable = proptest::option::weighted(0.3, 0..NODES);
    (jobs, 1..6i64, 0..2000i64, unusable).prop_map(|(jobs, cpus, others, unusable)| {
        let mut cluster = world(100.0, NODES, cpus * 1000).others(0, others);
        if let Some(node) = unusable {
            cluster = cluster.unusable(node);
        }
        for (number, builder) in jobs.into_iter().enumerate() {
            let key = JobKey::from(format!("job-{number}").as_str());
            cluster = cluster.job(builder.with(|job| job.key = key));
        }
        cluster.build()
    })
}

/// The policies of the core, and Shed+.
pub(super) fn registry() -> Registry {
    Registry::default().with(ShedPlus::default())
}

/// Shed+ with each utility, shed-prime with each combination of switches, and every policy with its defaults.
fn any_speculation() -> impl Strategy<Value = Speculation> {
    let all = proptest::sample::select(registry().all().to_vec());
    prop_oneof![any_shed_plus(), any_shed_prime(), all]
}

fn any_shed_plus() -> impl Strategy<Value = Speculation> {
    let utility = proptest::sample::select(Utility::ALL.to_vec());
    let keep = proptest::sample::select(vec![Keep::Data, Keep::End]);
    let plus = (utility, 0.0..100.0, 1..4u32, any::<bool>(), keep);
    plus.prop_map(|(utility, alpha, max_clones, joint, keep)| {
        Speculation::new(ShedPlus {
            utility,
            alpha,
            max_clones,
            joint,
            keep,
            ..ShedPlus::default()
        })
    })
}

fn any_shed_prime() -> impl Strategy<Value = Speculation> {
    let hedge = proptest::sample::select(vec![Hedge::Never, Hedge::Silent, Hedge::Always]);
    let switches = any::<[bool; 2]>();
    (hedge, switches, 1..4u32).prop_map(|(hedge, switches, max_clones)| {
        let [weigh, pool] = switches;
        Speculation::new(ShedPrime {
            max_clones,
            hedge,
            weigh,
            pool,
            ..ShedPrime::default()
        })
    })
}

pub(super) fn any_policy() -> impl Strategy<Value = Policy> {
    let order = proptest::sample::select(Order::ALL.to_vec());
    let distribution = proptest::sample::select(DistributionChoice::ALL.to_vec());
    let numbers = (1..11u32, 0..3u32);
    let all = (any_speculation(), order, distribution, numbers);
    all.prop_map(
        |(speculation, order, distribution, (share, surge_max))| Policy {
            order,
            speculation,
            distribution,
            capacity_share: f64::from(share) / 10.0,
            surge_max,
            ..Policy::default()
        },
    )
}

pub(super) fn any_memory() -> impl Strategy<Value = Memory> {
    proptest::collection::vec(proptest::option::of(0..100u32), 5).prop_map(|times| {
        let mut memory = Memory::default();
        for (number, time) in times.into_iter().enumerate() {
            let key = JobKey::from(format!("job-{number}").as_str());
            let last_optimized = time.map(|time| at(f64::from(time)));
            memory.set(key, JobMemory { last_optimized });
        }
        memory
    })
}

/// The ledger and the cluster after the plan is carried out.
fn apply(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let mut world = snapshot.clone();
    for planned in &plan.actions {
        let job = world.jobs.iter_mut().find(|job| job.key == planned.job);
        let job = job.unwrap();
        match &planned.action {
            Move::Kill(kill) => {
                let task = job.tasks.iter_mut().find(|task| task.index == kill.task);
                let mut attempts = task.unwrap().attempts.iter_mut();
                let victim = attempts.find(|a| a.number == kill.attempt).unwrap();
                (victim.kill, victim.killed_at) = (Some(kill.kind), Some(world.now));
            }
            Move::Launch(launch) => {
                let builder = attempt(90).launched(100.0).kind(launch.kind).launching();
                add_attempt(job, launch.task.0, builder);
            }
        }
    }
    world
}

fn add_attempt(job: &mut JobSnapshot, index: u32, builder: AttemptBuilder) {
    let built = shed_core::fixtures::job("x").task(index, [builder]).build();
    let new = built.tasks.into_iter().next().unwrap();
    match job
        .tasks
        .binary_search_by_key(&new.index, |task| task.index)
    {
        Ok(position) => {
            let attempts = &mut job.tasks[position].attempts;
            let number = 100 + attempts.len() as u32;
            attempts.extend(new.attempts);
            attempts.last_mut().unwrap().number = AttemptNumber(number);
        }
        Err(position) => job.tasks.insert(position, new),
    }
}

fn is_clone(action: &Move) -> bool {
    matches!(action, Move::Launch(launch) if launch.kind == AttemptKind::Clone)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_plan_is_sound_and_the_same_when_made_again(
        snapshot in any_snapshot(),
        policy in any_policy(),
        memory in any_memory(),
    ) {
        let (plan, after) = decide(&snapshot, memory.clone(), &policy);
        prop_assert_eq!(plan_check(&snapshot, &policy, &plan), vec![]);
        let again = decide(&snapshot, memory, &policy);
        prop_assert_eq!(&(&plan, &after), &(&again.0, &again.1));
        for job in &plan.report.jobs {
            for pocd in job.pocd_before.iter().chain(&job.pocd_after) {
                prop_assert!((0.0..=1.0).contains(pocd), "{}: {}", job.key, pocd);
            }
        }
    }

    #[test]
    fn a_plan_that_was_carried_out_is_not_made_again(
        snapshot in any_snapshot(),
        policy in any_policy(),
    ) {
        let (plan, memory) = decide(&snapshot, Memory::default(), &policy);
        let (again, _) = decide(&apply(&snapshot, &plan), memory, &policy);
        // The pods have no nodes yet, and first fit may find capacity for others.
        let first_attempts = |plan: &Plan| {
            let launches = plan.actions.iter().filter_map(|planned| match &planned.action {
                Move::Launch(launch) if launch.kind != AttemptKind::Clone => {
                    Some((planned.job.clone(), launch.task))
                }
                _ => None,
            });
            launches.collect::<BTreeSet<_>>()
        };
        prop_assert!(first_attempts(&plan).is_disjoint(&first_attempts(&again)), "{:?}", again.actions);
        // shed-prime learns from all reports of a job how far they err, and stopped attempts report no more.
        let learns = policy.to_string().starts_with("shed-prime");
        for planned in &again.actions {
            let Move::Kill(kill) = &planned.action else { continue };
            let job = snapshot.jobs.iter().find(|job| job.key == planned.job).unwrap();
            let task = job.task(kill.task);
            let is_new = !task.is_some_and(|task| task.attempts.iter().any(|a| a.number == kill.attempt));
            prop_assert!(kill.kind != KillKind::Prune || learns && !is_new, "{:?}", kill);
        }
    }

    #[test]
    fn no_unfinished_task_loses_its_last_attempt(
        snapshot in any_snapshot(),
        policy in any_policy(),
    ) {
        let (plan, _) = decide(&snapshot, Memory::default(), &policy);
        let after = apply(&snapshot, &plan);
        for (before, after) in snapshot.jobs.iter().zip(&after.jobs) {
            for task in before.tasks.iter().filter(|task| task.live().next().is_some()) {
                let given_up = plan.actions.iter().any(|planned| match &planned.action {
                    Move::Kill(kill) => {
                        planned.job == before.key
                            && kill.task == task.index
                            && kill.kind.gives_up_the_only()
                    }
                    _ => false,
                });
                // `plan_check` checks when that is correct.
                let lives = after.task(task.index).unwrap().live().next().is_some();
                prop_assert!(lives || given_up);
            }
        }
    }

    #[test]
    fn no_task_is_launched_while_an_end_of_it_is_not_counted(
        snapshot in any_snapshot(),
        policy in any_policy(),
    ) {
        let (plan, _) = decide(&snapshot, Memory::default(), &policy);
        for planned in &plan.actions {
            let Move::Launch(launch) = &planned.action else { continue };
            let job = snapshot.jobs.iter().find(|job| job.key == planned.job).unwrap();
            let succeeded = job.task(launch.task).is_some_and(|task| {
                let open = |state| matches!(state, AttemptState::Succeeded { .. });
                task.attempts.iter().any(|a| open(a.state) && a.kill.is_none())
            });
            prop_assert!(!succeeded);
        }
    }

    #[test]
    fn a_pass_that_runs_out_of_work_returns_what_it_has(
        snapshot in any_snapshot(),
        policy in any_policy(),
        work_max in 0..40u64,
    ) {
        let short = Policy { work_max, ..policy.clone() };
        let (all, _) = decide(&snapshot, Memory::default(), &policy);
        let (some, after) = decide(&snapshot, Memory::default(), &short);
        prop_assert_eq!(plan_check(&snapshot, &short, &some), vec![]);
        let plain = |plan: &Plan| {
            let mut actions = plan.actions.clone();
            actions.retain(|planned| !is_clone(&planned.action));
            actions
        };
        if all.actions.iter().any(|planned| is_clone(&planned.action)) {
            // A clone of a higher value density may have come before a first attempt.
            let some = plain(&some);
            prop_assert!(plain(&all).iter().all(|planned| some.contains(planned)));
        } else {
            prop_assert_eq!(plain(&all), plain(&some));
        }
        let cut_short = some.report.jobs.iter().filter(|job| job.is_cut_short);
        for job in cut_short.clone() {
            prop_assert_eq!(after.job(&job.key).last_optimized, None);
        }
        if cut_short.count() == 0 {
            prop_assert_eq!(&all, &some);
        }
        let clones = some.actions.iter().filter(|planned| is_clone(&planned.action)).count();
        prop_assert!(clones as u64 <= work_max);
    }
}
