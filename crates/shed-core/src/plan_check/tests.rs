use crate::decide::decide;
use crate::fixtures::{self, JobBuilder, at, attempt, job, world};
use crate::ids::{AttemptNumber, JobKey, NodeName, TaskIndex};
use crate::memory::Memory;
use crate::plan::{CloneBudget, CloneReport, Kill, Launch, Move, Plan, PlannedMove};
use crate::plan_check::{Rule, plan_check};
use crate::policy::{Judgement, Policy, PolicyRule, Recall, Speculation};
use crate::round::JobView;
use crate::snapshot::{
    AttemptKind, Conclusion, KillKind, NodeIndex, Preemption, Snapshot, SpeculationMode,
};

/// The check's violations for these actions of job `a` on two nodes of two cpus.
#[track_caller]
fn check(builder: JobBuilder, actions: impl IntoIterator<Item = Move>, expected: &[Rule]) {
    check_with(
        &world(30.0, 2, 2000).job(builder).build(),
        &Policy::default(),
        actions,
        expected,
    );
}

#[track_caller]
fn check_with(
    snapshot: &Snapshot,
    policy: &Policy,
    actions: impl IntoIterator<Item = Move>,
    expected: &[Rule],
) {
    let actions = actions.into_iter().map(|action| PlannedMove {
        job: JobKey::from("a"),
        action,
    });
    let plan = Plan {
        actions: actions.collect(),
        ..Plan::default()
    };
    let violations = plan_check(snapshot, policy, &plan);
    let rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, expected, "{violations:?}");
}

fn launch(task: u32, kind: AttemptKind) -> Move {
    Move::Launch(fixtures::launch(task, kind))
}

fn original(task: u32) -> Move {
    launch(task, AttemptKind::Original)
}

fn clone(task: u32) -> Move {
    launch(task, AttemptKind::Clone)
}

fn surge(action: Move) -> Move {
    match action {
        Move::Launch(launch) => Move::Launch(Launch {
            surge: true,
            ..launch
        }),
        other => other,
    }
}

fn kill(task: u32, number: u32, kind: KillKind, survivor: Option<u32>) -> Move {
    Move::Kill(Kill {
        task: TaskIndex(task),
        attempt: AttemptNumber(number),
        kind,
        survivor: survivor.map(AttemptNumber),
    })
}

/// Task 0 has an original that reports and a silent clone.
fn pair() -> JobBuilder {
    job("a").task(0, [attempt(0).on(0).progress(0.3, 30.0), attempt(1).on(1)])
}

#[test]
fn a_sound_plan_is_clean() {
    let prune = kill(0, 1, KillKind::Prune, Some(0));
    check(pair(), [prune, original(1), original(2)], &[]);
    let evict = kill(0, 1, KillKind::Evict, Some(0));
    check(pair(), [evict, original(1), clone(0)], &[]);
}

#[test]
fn use_above_usable_capacity_is_caught() {
    check(pair(), [original(1), original(2)], &[]);
    let three = [original(1), original(2), original(3)];
    check(pair(), three, &[Rule::Capacity]);
    // A stopped attempt holds its capacity until it is gone.
    let prune = kill(0, 1, KillKind::Prune, Some(0));
    let three = [prune, original(1), original(2), original(3)];
    check(pair(), three, &[Rule::Capacity]);
}

#[test]
fn the_share_of_capacity_is_respected() {
    let snapshot = world(30.0, 2, 2000).job(job("a")).build();
    let half = Policy {
        capacity_share: 0.5,
        ..Policy::default()
    };
    let three = [original(0), original(1), original(2)];
    check_with(&snapshot, &half, three, &[Rule::Capacity]);
}

#[test]
fn more_surge_than_the_policy_allows_is_caught() {
    let big = || job("a").cpu(3000);
    check(big(), [surge(original(0))], &[]);
    check(
        big(),
        [surge(original(0)), surge(original(1))],
        &[Rule::Surge],
    );
    let waiting = big().task(0, [attempt(0).pending()]);
    check(waiting, [surge(original(1))], &[Rule::Surge]);
    check(pair(), [surge(clone(0))], &[Rule::Surge]);
}

#[test]
fn more_tasks_than_parallelism_allows_are_caught() {
    check(pair().parallelism(2), [original(1)], &[]);
    let two = [original(1), original(2)];
    check(pair().parallelism(2), two, &[Rule::Parallelism]);
    // Clones don't count.
    check(pair().parallelism(1), [clone(0)], &[]);
}

#[test]
fn a_launch_whose_kind_contradicts_the_facts_is_caught() {
    check(pair(), [clone(1)], &[Rule::LaunchKind]);
    check(pair(), [original(0)], &[Rule::LaunchKind]);
    check(pair(), [launch(0, AttemptKind::Retry)], &[Rule::LaunchKind]);
    check(pair(), [original(1), original(1)], &[Rule::LaunchKind]);
}

#[test]
fn more_clones_than_the_job_or_the_policy_allows_are_caught() {
    check(pair().max_clones(2), [clone(0)], &[]);
    check(pair().max_clones(1), [clone(0)], &[Rule::CloneCount]);
    let snapshot = world(30.0, 2, 2000).job(pair()).build();
    let policy = Policy {
        speculation: "shed-prime{max_clones=1}".parse().unwrap(),
        ..Policy::default()
    };
    check_with(&snapshot, &policy, [clone(0)], &[Rule::CloneCount]);
}

#[test]
fn a_launch_for_what_must_not_get_any_is_caught() {
    let rule = &[Rule::LaunchTarget];
    check(job("a").done([1]), [original(1)], rule);
    check(job("a").failed([1]), [original(1)], rule);
    check(job("a").suspended(), [original(1)], rule);
    // The job's nodes are no longer capacity for attempts either.
    let rules = &[Rule::Capacity, Rule::LaunchTarget];
    check(job("a").ending(Conclusion::Complete), [original(1)], rules);
    let held = job("a").with(|job| job.launch_not_before = Some(at(30.001)));
    check(held, [original(1)], rule);
    let backing_off = job("a").task_with(1, [], |task| task.retry_not_before = Some(at(31.0)));
    check(backing_off, [launch(1, AttemptKind::Retry)], rule);
}

#[test]
fn clones_and_prunes_that_user_or_policy_forbids_are_caught() {
    for mode in [SpeculationMode::Observe, SpeculationMode::Disabled] {
        check(pair().speculation(mode), [clone(0)], &[Rule::Speculation]);
        let prune = kill(0, 1, KillKind::Prune, Some(0));
        check(pair().speculation(mode), [prune], &[Rule::Speculation]);
    }
    let snapshot = world(30.0, 2, 2000).job(pair()).build();
    let policy = Policy {
        speculation: Speculation::none(),
        ..Policy::default()
    };
    check_with(&snapshot, &policy, [clone(0)], &[Rule::Speculation]);
}

#[test]
fn a_clone_is_caught_while_an_administrator_stops_clones() {
    let stopped = || pair().with(|job| job.obstacles.clones_stopped = true);
    check(stopped(), [clone(0)], &[Rule::CloneStop]);
    let prune = kill(0, 1, KillKind::Prune, Some(0));
    check(stopped(), [prune, original(1)], &[]);
}

/// The check's violations for clones of task 0, or of 0 and 1, with these figures and costs.
#[track_caller]
fn check_budget(share: f64, figures: Option<(f64, f64)>, costs: &[(u32, f64)], expected: &[Rule]) {
    let running = |node| [attempt(0).on(node).progress(0.3, 30.0)];
    let job = job("a").clone_budget(share);
    let job = job.task(0, running(0)).task(1, running(1));
    let snapshot = world(30.0, 2, 8000).job(job).build();
    let policy = Policy::default();
    let mut plan = decide(&snapshot, Memory::default(), &policy).0;
    let report = &mut plan.report.jobs[0];
    report.stragglers = vec![TaskIndex(0)];
    report.clone_budget = figures.map(|(own, clones)| CloneBudget {
        own,
        clones,
        granted: 0.0,
    });
    let report_of = |&(task, cost_slot_seconds): &(u32, f64)| CloneReport {
        task: TaskIndex(task),
        pocd_gain: 0.0,
        cost_slot_seconds,
        trade: None,
    };
    report.clones = costs.iter().map(report_of).collect();
    let action = |&(task, _): &(u32, f64)| PlannedMove {
        job: JobKey::from("a"),
        action: clone(task),
    };
    plan.actions = costs.iter().map(action).collect();
    let violations = plan_check(&snapshot, &policy, &plan);
    let rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, expected, "{violations:?}");
}

#[test]
fn clones_beyond_the_jobs_budget_are_caught() {
    let rule = &[Rule::CloneBudget];
    // Two attempts have run for 30 s each, and task 0 is late.
    let figures = Some((100.0, 0.0));
    check_budget(0.0, figures, &[(0, 9.0)], &[]);
    check_budget(0.0, figures, &[(1, 9.0)], rule);
    check_budget(0.0, figures, &[(0, 9.0), (0, 9.0)], rule);
    check_budget(0.2, figures, &[(0, 9.0), (0, 9.0)], &[]);
    check_budget(0.2, figures, &[(1, 9.0), (1, 9.0)], &[]);
    check_budget(0.2, Some((100.0, 5.0)), &[(1, 9.0), (1, 9.0)], rule);
    check_budget(0.2, figures, &[(0, 15.0), (1, 9.0)], rule);
    check_budget(0.2, figures, &[(1, 0.0)], rule);
    check_budget(0.2, figures, &[(1, f64::NAN)], rule);
}

#[test]
fn figures_of_a_budget_that_contradict_the_facts_are_caught() {
    let rule = &[Rule::CloneBudget];
    check_budget(0.5, None, &[(0, 9.0)], rule);
    check_budget(0.5, Some((59.0, 0.0)), &[(0, 9.0)], rule);
    check_budget(0.5, Some((60.0, -1.0)), &[(0, 9.0)], rule);
    check_budget(0.5, Some((f64::INFINITY, 0.0)), &[(0, 9.0)], rule);
}

#[test]
fn two_copies_where_there_must_never_be_two_are_caught() {
    let never_two = |number: u32| {
        let gone_soon = attempt(number).killed(KillKind::Suspend, 20.0);
        job("a").not_idempotent().task(0, [gone_soon])
    };
    let retry = launch(0, AttemptKind::Retry);
    check(never_two(0), [retry], &[Rule::NeverTwo]);
    check(never_two(0), [original(1), original(1)], &[Rule::NeverTwo]);
    check(pair().not_idempotent(), [clone(0)], &[Rule::NeverTwo]);
}

#[test]
fn a_prune_without_a_survivor_that_reports_is_caught() {
    let rule = &[Rule::KillRule];
    check(pair(), [kill(0, 0, KillKind::Prune, Some(1))], rule);
    check(pair(), [kill(0, 1, KillKind::Prune, None)], rule);
    check(pair(), [kill(0, 1, KillKind::Prune, Some(1))], rule);
    // The attempt began at this progress and has not advanced.
    let resumed = attempt(1).resumed_at(0.5).progress(0.5, 30.0);
    let standing = job("a").task(0, [attempt(0), resumed]);
    check(standing, [kill(0, 0, KillKind::Prune, Some(1))], rule);
}

#[test]
fn a_started_clone_replaces_an_original_where_it_hands_over() {
    #[derive(Debug, Clone, PartialEq)]
    struct HandsOver;
    impl PolicyRule for HandsOver {
        type Belief = ();
        type State = ();
        type Place = ();
        fn name(&self) -> &'static str {
            "hands-over"
        }
        fn max_clones(&self) -> u32 {
            1
        }
        fn hands_over(&self) -> bool {
            true
        }
        fn judge(&self, _: &JobView<'_>, _: &Recall<'_, ()>) -> Judgement<()> {
            Judgement::none()
        }
    }
    let policy = Policy {
        speculation: Speculation::new(HandsOver),
        ..Policy::default()
    };
    let stop = |number, survivor| kill(0, number, KillKind::Prune, Some(survivor));
    let checked = |job: JobBuilder, stop, expected: &[Rule]| {
        let snapshot = world(30.0, 2, 2000).job(job).build();
        check_with(&snapshot, &policy, [stop], expected);
    };
    checked(pair().resumes(), stop(0, 1), &[]);
    checked(pair(), stop(0, 1), &[Rule::KillRule]);
    let starting = job("a").task(0, [attempt(0).on(0), attempt(1).pending()]);
    checked(starting.resumes(), stop(0, 1), &[Rule::KillRule]);
    check(pair().resumes(), [stop(0, 1)], &[Rule::KillRule]);
}

#[test]
fn only_a_clone_with_a_sibling_that_lives_on_may_be_evicted() {
    let rule = &[Rule::KillRule];
    check(pair(), [kill(0, 0, KillKind::Evict, Some(1))], rule);
    check(pair(), [kill(0, 1, KillKind::Evict, None)], rule);
    let dying = job("a").task(0, [attempt(0).killed(KillKind::Prune, 9.0), attempt(1)]);
    let evict = kill(0, 1, KillKind::Evict, Some(0));
    check(dying, [evict], &[Rule::LastAttempt, Rule::KillRule]);
}

#[test]
fn what_settle_must_say_is_caught_in_a_plan() {
    for kind in [
        KillKind::Settle,
        KillKind::Replace,
        KillKind::Suspend,
        KillKind::JobEnd,
    ] {
        check(pair(), [kill(0, 1, kind, Some(0))], &[Rule::WrongSource]);
    }
}

#[test]
fn killing_every_attempt_of_a_task_is_caught() {
    let both = [
        kill(0, 0, KillKind::Prune, Some(1)),
        kill(0, 1, KillKind::Evict, Some(0)),
    ];
    let rules = [
        Rule::LastAttempt,
        Rule::KillRule,
        Rule::LastAttempt,
        Rule::KillRule,
    ];
    check(pair(), both, &rules);
}

#[test]
fn a_stop_of_an_ended_attempt_or_a_second_stop_is_caught() {
    let prune = || kill(0, 1, KillKind::Prune, Some(0));
    check(pair(), [prune(), prune()], &[Rule::KillTarget]);
    let original = || attempt(0).progress(0.3, 30.0);
    let dying = job("a").task(0, [original(), attempt(1).killed(KillKind::Prune, 9.0)]);
    check(dying, [prune()], &[Rule::KillTarget]);
    let ended = job("a").task(0, [original(), attempt(1).failed(9.0)]);
    check(ended, [prune()], &[Rule::KillTarget]);
}

#[test]
fn unknown_jobs_tasks_and_attempts_are_caught() {
    let rule = &[Rule::UnknownTarget];
    check(pair(), [kill(0, 7, KillKind::Prune, Some(0))], rule);
    check(pair(), [original(4)], rule);
    check(job("b"), [original(0)], rule);
}

#[test]
fn kills_come_before_first_attempts_and_these_before_clones() {
    let prune = kill(0, 1, KillKind::Prune, Some(0));
    check(pair(), [original(1), prune], &[Rule::Order]);
    check(pair(), [clone(0), original(1)], &[Rule::Order]);
}

#[test]
fn a_violation_names_the_job_whose_slice_to_refuse() {
    let snapshot = world(30.0, 2, 2000).job(pair()).job(job("b")).build();
    let planned = |job: &str, action| PlannedMove {
        job: JobKey::from(job),
        action,
    };
    let plan = Plan {
        actions: vec![planned("b", original(0)), planned("a", clone(1))],
        ..Plan::default()
    };
    let violations = plan_check(&snapshot, &Policy::default(), &plan);
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["a: launch_kind: launches task 1 as clone"]);
}

fn on(node: &str, action: Move) -> Move {
    match action {
        Move::Launch(launch) => Move::Launch(Launch {
            node: Some(NodeName::from(node)),
            ..launch
        }),
        other => other,
    }
}

#[test]
fn a_launch_on_a_node_that_is_unknown_foreign_or_full_is_caught() {
    let rule = &[Rule::Placement];
    let two = |node| [on(node, original(1)), on(node, original(2))];
    check(pair(), [on("node-0", original(1))], &[]);
    check(pair(), [on("node-7", original(1))], rule);
    let own = || job("a").with(|job| job.eligible_nodes = [NodeIndex(1)].into());
    check(own(), [on("node-1", original(1))], &[]);
    check(own(), [on("node-0", original(1))], rule);
    // One cpu of each node is taken.
    check(pair(), two("node-1"), rule);
    check(
        pair(),
        [on("node-0", original(1)), on("node-1", original(2))],
        &[],
    );
}

#[test]
fn a_restart_requires_a_lone_attempt_and_a_restarting_policy() {
    let restart = || kill(0, 0, KillKind::Restart, None);
    let alone = || job("a").task(0, [attempt(0).on(0).progress(0.3, 30.0)]);
    let snapshot = |job: JobBuilder| world(30.0, 2, 2000).job(job).build();
    let policy = Policy {
        speculation: "shed-prime".parse().unwrap(),
        ..Policy::default()
    };
    let rule = &[Rule::KillRule];
    check_with(&snapshot(alone()), &policy, [restart()], &[]);
    check_with(&snapshot(pair()), &policy, [restart()], rule);
    let silent = job("a").task(0, [attempt(0).on(0)]);
    check_with(&snapshot(silent), &policy, [restart()], rule);
    let observing = alone().speculation(SpeculationMode::Observe);
    check_with(
        &snapshot(observing),
        &policy,
        [restart()],
        &[Rule::Speculation],
    );
    let none = Policy {
        speculation: Speculation::none(),
        ..Policy::default()
    };
    check_with(&snapshot(alone()), &none, [restart()], &[Rule::Speculation]);
}

/// Two tasks with checkpoints, launched at 0 s, that may be preempted.
fn patient() -> JobBuilder {
    let long = |node| attempt(0).on(node).progress(0.3, 29.0).checkpoint(0.3);
    job("a")
        .resumes()
        .task(0, [long(0)])
        .task(1, [long(1), attempt(1).on(1)])
        .with(|job| job.rules.preemption = Preemption::WhenCheckpointed)
}

#[test]
fn an_attempt_makes_way_only_if_its_user_and_the_policy_let_it() {
    let preempt = |task| [kill(task, 0, KillKind::Preempt, None)];
    let of = |job: JobBuilder| world(30.0, 2, 2000).launch_overhead(10.0).job(job).build();
    let prime: Policy = "shed-prime".parse().unwrap();
    check_with(&of(patient()), &prime, preempt(0), &[]);
    // Task 1 has a clone, which must be evicted first.
    check_with(&of(patient()), &prime, preempt(1), &[Rule::KillRule]);
    let never = patient().with(|job| job.rules.preemption = Preemption::Never);
    check_with(&of(never), &prime, preempt(0), &[Rule::Preemption]);
    let none = Policy {
        speculation: Speculation::none(),
        ..Policy::default()
    };
    check_with(&of(patient()), &none, preempt(0), &[Rule::Preemption]);
    let without = patient().with(|job| job.tasks[0].attempts[0].checkpoint = None);
    check_with(&of(without), &prime, preempt(0), &[Rule::KillRule]);
}

#[test]
fn an_attempt_that_was_launched_just_now_does_not_make_way() {
    let prime: Policy = "shed-prime".parse().unwrap();
    let early = world(30.0, 2, 2000).launch_overhead(10.1).job(patient());
    let preempt = [kill(0, 0, KillKind::Preempt, None)];
    check_with(&early.build(), &prime, preempt, &[Rule::KillRule]);
}
