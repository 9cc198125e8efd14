//! The policies other than Shed+; each test shows the feature that distinguishes one.

use shed_core::fixtures::{AttemptBuilder, JobBuilder, World, at, attempt, job, world};
use shed_core::fixtures::{brief, plan_of, report};
pub use shed_core::fixtures::{findings, four_nodes as cluster, slow, uneven};
use shed_core::ids::{JobKey, TaskIndex};
use shed_core::memory::Memory;
use shed_core::plan::{Finding, Move, Plan, Refusal, RefusalReason};
use shed_core::policy::Policy;
use shed_core::policy::Remembered;
use shed_core::snapshot::{KillKind, SpeculationMode};
use shed_papers::state::{Decided, LastLaunch};

/// A policy by its text.
pub fn policy(text: &str) -> Policy {
    let order = shed_core::policy::Order::default();
    shed_papers::registry().parse(text, order).unwrap()
}

pub fn decide_by(text: &str, world: World, memory: &Memory) -> (Plan, Memory) {
    plan_of(&world.build(), memory, &policy(text))
}

#[track_caller]
pub fn check(text: &str, world: World, expected: &[&str]) {
    let (plan, _) = decide_by(text, world, &Memory::default());
    assert_eq!(brief(&plan), expected, "{text}");
}

/// The memory of a policy that remembers this of the job `a`.
pub fn remembering<S: Remembered>(change: impl FnOnce(&mut S)) -> Memory {
    let mut memory = Memory::default();
    let mut of_job = S::default();
    change(&mut of_job);
    memory.set_state(JobKey::from("a"), of_job.write());
    memory
}

/// The policy's memory of a job.
pub fn remembered<S: Remembered>(memory: &Memory, key: &str) -> S {
    let state = memory.state(&JobKey::from(key));
    state.map(S::read).unwrap_or_default()
}

#[test]
fn hadoop_clones_the_task_that_ends_latest_one_per_round() {
    check("hadoop-s", cluster().job(uneven()), &["a: clone 7"]);
    let (plan, memory) = decide_by("hadoop-s", cluster().job(uneven()), &Memory::default());
    let [Finding::EndsLater { seconds }] = findings(&plan)[..] else {
        panic!("{plan:?}");
    };
    // A tenth in the 29 s since its launch: 290 s in all, and 30 s are over. A new attempt would take the 60 s of
    // a winner and 3 s to start.
    assert!((seconds - 197.0).abs() < 0.1, "{seconds}");
    assert_eq!(remembered::<LastLaunch>(&memory, "a").0, Some(at(30.0)));
    // No round for 15 s after a launch.
    let soon = remembering(|memory: &mut LastLaunch| memory.0 = Some(at(16.0)));
    let (plan, _) = decide_by("hadoop-s", cluster().job(uneven()), &soon);
    assert_eq!(brief(&plan), [""; 0]);
    assert_eq!(plan.report.next_pass, Some(at(31.0)));
    let later = remembering(|memory: &mut LastLaunch| memory.0 = Some(at(15.0)));
    let (plan, _) = decide_by("hadoop-s", cluster().job(uneven()), &later);
    assert_eq!(brief(&plan), ["a: clone 7"]);
}

#[test]
fn hadoop_waits_for_winners_and_keeps_its_caps() {
    let none = || {
        uneven()
            .parallelism(3)
            .with(|job| job.done = shed_core::index_set::IndexSet::new())
    };
    check("hadoop-s", cluster().job(none()), &[]);
    let many = || cluster().job(uneven().parallelism(3).tasks(200));
    check("hadoop-s{min_finished=0.03,order=fifo}", many(), &[]);
    let text = "hadoop-s{cap=0,cap_tasks=0,cap_running=0}";
    let (plan, _) = decide_by(text, cluster().job(uneven()), &Memory::default());
    let refusals = &report(&plan, "a").refusals;
    let (task, why) = (TaskIndex(7), RefusalReason::Budget);
    assert_eq!(refusals[..], [Refusal { task, why }]);
}

#[test]
fn late_clones_slow_tasks_only_and_few_of_them() {
    check("late", cluster().job(uneven()), &[]);
    // With three tasks a quarter of the rates is less than one: none is below.
    let four = || {
        uneven()
            .tasks(9)
            .task(8, [attempt(0).on(3).progress(0.3, 29.0)])
    };
    check("late", cluster().job(four()), &["a: clone 7"]);
    // A tenth of 16 slots: as long as less than 1.6 clones run there may be one more.
    let two = ["a: clone 7", "a: clone 8"];
    check("late{slow_task=1}", cluster().job(four()), &two);
    let (plan, _) = decide_by("late{cap=0}", cluster().job(four()), &Memory::default());
    let why = RefusalReason::Budget;
    let task = TaskIndex(7);
    assert_eq!(report(&plan, "a").refusals, [Refusal { task, why }]);
}

#[test]
fn late_knows_no_deadline_and_starts_from_zero() {
    let four = || {
        let more = uneven()
            .tasks(9)
            .task(8, [attempt(0).on(3).progress(0.3, 29.0)]);
        let resumes = more.resumes().with(|job| job.deadline = Some(at(31.0)));
        resumes.with(|job| {
            let tasks = job.tasks.iter_mut();
            tasks.for_each(|t| t.resume_point = Some(shed_core::fixtures::resume_point(0.05)));
        })
    };
    check("late", cluster().job(four()), &["a: clone 7"]);
    // The deadline-aware rule sees that nothing can be in time.
    check("s-resume-event", cluster().job(four()), &[]);
}

#[test]
fn s_resume_on_events_brings_a_late_task_under_its_target() {
    let text = |target: &str| format!("s-resume-event{{miss_target={target}}}");
    check(&text("0.3"), cluster().job(uneven()), &["a: clone 7"]);
    let (plan, _) = decide_by(&text("0.01"), cluster().job(uneven()), &Memory::default());
    let misses: Vec<f64> = findings(&plan)
        .into_iter()
        .map(|finding| match finding {
            Finding::Late { miss } => miss,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        misses.windows(2).all(|pair| pair[1] < pair[0]),
        "{misses:?}"
    );
    assert!(misses.iter().all(|&miss| miss > 0.01), "{misses:?}");
    assert!(misses.len() > 1, "{misses:?}");
}

#[test]
fn s_resume_on_events_keeps_the_earliest_end_once_all_report() {
    let racing = |clone: AttemptBuilder| {
        let others = uneven().with(|job| {
            job.tasks.pop();
        });
        others.task(7, [slow(), clone.on(3)])
    };
    let young = attempt(1).launched(25.0);
    let text = "s-resume-event{max_clones=1}";
    check(text, cluster().job(racing(young.clone())), &[]);
    let fast = young.progress(0.1, 29.0);
    check(text, cluster().job(racing(fast)), &["a: prune 7.0 for 7.1"]);
}

#[test]
fn dolly_clones_a_small_job_with_its_first_attempts() {
    let new = || job("a").tasks(2);
    let wide = || world(30.0, 10, 10_000);
    let twice = ["a: original 0", "a: original 1", "a: clone 0", "a: clone 1"];
    check("dolly{p=0.1}", wide().job(new()), &twice);
    let (plan, memory) = decide_by("dolly{p=0.1}", wide().job(new()), &Memory::default());
    assert_eq!(findings(&plan), [Finding::Copies { copies: 2 }; 2]);
    assert_eq!(remembered::<Decided>(&memory, "a").copies, Some(2));
    // Five clones are more than 5 % of 10 slots. No p is measured.
    check(
        "dolly{p=0.1}",
        world(30.0, 1, 10_000).job(new()),
        &twice[..2],
    );
    check("dolly", wide().job(new()), &twice[..2]);
    // It is decided once.
    let once = remembering(|memory: &mut Decided| memory.copies = Some(1));
    let (plan, _) = decide_by("dolly{p=0.1}", wide().job(new()), &once);
    assert_eq!(brief(&plan), twice[..2]);
}

#[test]
fn a_clone_without_capacity_follows_while_its_task_starts() {
    let two = remembering(|memory: &mut Decided| memory.copies = Some(2));
    let started = |launched| {
        let first = attempt(0).launched(launched).on(0);
        job("a").tasks(1).task(0, [first])
    };
    let text = "dolly{p=0.1}";
    let (plan, _) = decide_by(text, cluster().job(started(22.0)), &two);
    assert_eq!(brief(&plan), ["a: clone 0"]);
    let (plan, _) = decide_by(text, cluster().job(started(2.0)), &two);
    assert_eq!(brief(&plan), [""; 0]);
}

#[test]
fn whatever_the_policy_the_users_rules_are_kept() {
    let observing = |builder: JobBuilder| builder.speculation(SpeculationMode::Observe);
    let disabled = |builder: JobBuilder| builder.speculation(SpeculationMode::Disabled);
    let bounded = |builder: JobBuilder| builder.max_clones(0);
    let unsafe_twice = |builder: JobBuilder| builder.not_idempotent();
    for policy in shed_papers::registry().all() {
        let text = policy.to_string();
        for rule in [observing, disabled, bounded, unsafe_twice] {
            let late = uneven()
                .tasks(9)
                .task(8, [attempt(0).on(3).progress(0.3, 29.0)]);
            let (plan, _) = decide_by(&text, cluster().job(rule(late)), &Memory::default());
            assert_eq!(brief(&plan), [""; 0], "{text}");
        }
    }
}

#[test]
fn every_kill_says_what_it_frees_and_costs() {
    let late = uneven().with(|job| {
        job.tasks.pop();
    });
    let fast = attempt(1).launched(25.0).progress(0.1, 29.0).on(3);
    let world = cluster().job(late.task(7, [slow(), fast]));
    let (plan, _) = decide_by("s-resume-event", world, &Memory::default());
    let [kill] = &report(&plan, "a").kills[..] else {
        panic!("{plan:?}");
    };
    assert_eq!((kill.task, kill.kind), (TaskIndex(7), KillKind::Prune));
    assert!(kill.freed_slot_seconds.unwrap() > 20.0, "{kill:?}");
    let miss = kill.miss_added.unwrap();
    assert!((0.0..0.1).contains(&miss), "{kill:?}");
}

#[test]
fn every_policy_stops_at_the_pocd_that_is_enough() {
    for text in [
        "s-resume-event",
        "late",
        "hadoop-s",
        "mantri",
        "shed",
        "dolly",
    ] {
        let world = cluster().job(uneven().target(1e-9));
        let (plan, _) = decide_by(text, world, &Memory::default());
        let actions = brief(&plan).into_iter();
        let clones = actions.filter(|action| action.contains("clone"));
        assert_eq!(clones.count(), 0, "{text}");
    }
}

#[test]
fn a_clone_only_prefers_to_avoid_its_siblings_assumed_node() {
    let waits = job("a").tasks(1).task(0, [attempt(0)]).deadline_in(600.0);
    let policy = policy("dollymp{max_clones=2}");
    let (plan, _) = plan_of(
        &world(9.0, 3, 1000).job(waits).build(),
        &Memory::default(),
        &policy,
    );
    let launched = plan
        .actions
        .iter()
        .filter_map(|planned| match &planned.action {
            Move::Launch(launch) => Some(launch),
            Move::Kill(_) => None,
        });
    let launched: Vec<_> = launched.collect();
    assert_eq!(launched.len(), 2);
    for launch in launched {
        assert_eq!(launch.avoid, [], "{launch:?}");
        assert!(!launch.rather_not.is_empty(), "{launch:?}");
    }
}
