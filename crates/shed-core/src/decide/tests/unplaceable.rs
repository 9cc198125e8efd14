//! Attempts that cannot be created or placed: they hold nothing, delay only their own job, and show an autoscaler the
//! demand.

use super::unusable::patient;
use super::{brief, check_by, plan, product, report, surging};
use crate::capacity::Capacity;
use crate::fixtures::{JobBuilder, World, at, attempt, job, world};
use crate::fixtures::{four_nodes as cluster, uneven};
use crate::plan::Plan;
use crate::plan_check::{Rule, plan_check};
use crate::policy::{Order, Policy};
use crate::snapshot::{KillKind, NodeIndex, Obstacles, Snapshot};

/// A job of a hundred tasks whose attempts no scheduler places.
fn gated(key: &str) -> JobBuilder {
    let waiting = (0..100).map(|task| (task, attempt(0).unplaceable()));
    let empty = job(key).tasks(100).tenant("other");
    waiting.fold(empty, |job, (task, attempt)| job.task(task, [attempt]))
}

fn victim() -> JobBuilder {
    job("victim").tasks(50).deadline_in(600.0)
}

pub(super) fn launches_of(plan: &Plan, key: &str) -> usize {
    let begins = format!("{key}: original");
    let words = brief(plan);
    words
        .iter()
        .filter(|words| words.starts_with(&begins))
        .count()
}

#[test]
fn a_hundred_gated_pods_of_another_tenant_hold_no_capacity() {
    for policy in ["shed-prime", "hadoop-ns"] {
        let policy: Policy = policy.parse().unwrap();
        let plan = plan(
            world(30.0, 1, 50_000).job(gated("g")).job(victim()),
            &policy,
        );
        assert_eq!(launches_of(&plan, "victim"), 50);
        assert_eq!(plan.report.capacity.used.get("cpu"), 0);
    }
}

#[test]
fn a_job_that_can_not_be_placed_gets_no_further_launches() {
    let blocked = job("a").task(0, [attempt(0).unplaceable()]);
    let both = world(30.0, 1, 9000).job(blocked).job(job("b").tasks(2));
    check_by(&surging(), both, &["b: original 0", "b: original 1"]);
    // Retries and clones are not launched either.
    let retrying = || {
        uneven()
            .tasks(10)
            .task_with(8, [], |task| task.failures = 1)
    };
    let policy = surging();
    let words = brief(&plan(cluster().job(retrying()), &policy));
    for kind in ["retry 8", "original 9", "clone 7"] {
        assert!(words.iter().any(|words| words.ends_with(kind)), "{words:?}");
    }
    let blocked = retrying().task(9, [attempt(0).unplaceable()]);
    assert_eq!(brief(&plan(cluster().job(blocked), &policy)), [""; 0]);
    let words = brief(&plan(cluster().job(uneven()), &policy));
    assert!(words.iter().all(|words| words == "a: clone 7"), "{words:?}");
}

#[test]
fn a_launch_for_an_unplaceable_job_is_caught() {
    let launch = plan(world(30.0, 1, 9000).job(job("a").tasks(1)), &product());
    let with = |change: fn(&mut Obstacles), waits: bool| {
        let mut one = job("a").with(|job| change(&mut job.obstacles));
        if waits {
            one = one.task(1, [attempt(0).unplaceable()]);
        }
        let snapshot = world(30.0, 1, 9000).job(one).build();
        let violations = plan_check(&snapshot, &product(), &launch);
        violations
            .into_iter()
            .map(|violation| violation.rule)
            .collect::<Vec<_>>()
    };
    assert_eq!(with(|_| (), false), []);
    assert_eq!(with(|_| (), true), [Rule::LaunchTarget]);
    let none_more = |obstacles: &mut Obstacles| obstacles.attempts_max = Some(0);
    assert_eq!(with(none_more, false), [Rule::LaunchTarget]);
}

#[test]
fn pods_that_wait_beyond_capacity_are_counted_by_tenant() {
    let full = || world(30.0, 1, 1000).job(job("runs").tasks(1).task(0, [attempt(0).on(0)]));
    let waits = |key: &str, tenant: &str| job(key).tasks(2).tenant(tenant);
    let cluster = full().job(waits("a", "one")).job(waits("b", "one"));
    let cluster = cluster.job(waits("c", "two"));
    let expected = [
        "a: original 0 beyond capacity",
        "c: original 0 beyond capacity",
    ];
    check_by(&surging(), cluster.clone(), &expected);
    for order in Order::ALL {
        let policy = Policy { order, ..surging() };
        assert_eq!(plan(cluster.clone(), &policy).actions.len(), 2, "{order}");
    }
    // An attempt that no scheduler places counts towards its tenant's limit.
    let blocked = waits("z", "two").task(0, [attempt(0).unplaceable()]);
    check_by(&surging(), cluster.job(blocked), &expected[..1]);
}

#[test]
fn a_job_that_no_node_can_hold_gets_one_pod_and_takes_no_slot() {
    let huge = |key: &str| {
        let job = job(key).cpu(3000).deadline_in(10.0);
        job.with(|job| job.obstacles.no_node = true)
    };
    let probes = [
        "x: original 0 beyond capacity",
        "y: original 0 beyond capacity",
    ];
    let pair = |jobs: [JobBuilder; 2]| jobs.into_iter().fold(world(30.0, 1, 2000), World::job);
    for policy in [product(), surging()] {
        check_by(&policy, pair([huge("x"), huge("y")]), &probes);
    }
    for order in Order::ALL {
        let policy = Policy { order, ..product() };
        let plan = plan(pair([huge("x"), huge("y")]), &policy);
        assert_eq!(plan.actions.len(), 2, "{order}");
    }
    // However the pod waits, the task gets no second one, and other jobs keep their slots.
    let running = job("runs").tasks(2).task(0, [attempt(0).on(0)]);
    let running = running.task(1, [attempt(0).on(0)]);
    for waits in [
        attempt(0).launching(),
        attempt(0).pending(),
        attempt(0).unplaceable(),
    ] {
        let shown = huge("x").task(0, [waits]);
        let cluster = pair([shown, running.clone()]).job(job("b").tasks(2));
        check_by(&surging(), cluster, &["b: original 0 beyond capacity"]);
    }
}

#[test]
fn a_job_without_a_node_evicts_nothing() {
    let unbound = job("a").tasks(1).with(|job| job.deadline = None);
    let clones = unbound.task(
        0,
        [
            attempt(0).on(0).progress(0.5, 29.0),
            attempt(1).on(1).launched(5.0).progress(0.45, 29.0),
        ],
    );
    let waits = |no_node| {
        let other = job("b")
            .tasks(1)
            .with(|job| job.obstacles.no_node = no_node);
        world(30.0, 2, 1000).job(clones.clone()).job(other)
    };
    check_by(&surging(), waits(false), &["a: evict 0.1 for 0.0"]);
    check_by(&surging(), waits(true), &["b: original 0 beyond capacity"]);
}

#[test]
fn no_more_attempts_exist_than_may_and_first_ones_come_first() {
    let most = |most| {
        move |job: &mut crate::snapshot::JobSnapshot| {
            job.obstacles.attempts_max = Some(most);
        }
    };
    let some = job("a").tasks(9).task(0, [attempt(0).on(0)]);
    check_by(
        &product(),
        world(30.0, 1, 9000).job(some.clone().with(most(3))),
        &["a: original 1", "a: original 2"],
    );
    let full = world(30.0, 1, 9000).job(some.with(most(1)));
    assert_eq!(report(&plan(full.clone(), &product()), "a").waiting, 8);
    check_by(&surging(), full, &[]);
    // At no price, the straggler gets all its clones at once: their first reports would come too late for others.
    let late = |job: &mut crate::snapshot::JobSnapshot| {
        let attempts = job.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for progress in attempts.filter_map(|attempt| attempt.progress.as_mut()) {
            (progress.first, progress.first_at) = (0.9 * progress.last, at(28.0));
        }
    };
    let due = || uneven().deadline_in(110.0).with(late);
    let straggling = |most| cluster().job(due().with(|job| job.obstacles.attempts_max = most));
    let policy: Policy = "shed-prime{clone_price=0}".parse().unwrap();
    let clones = |most| plan(straggling(most), &policy).actions.len();
    assert!(clones(None) > 1);
    assert_eq!((clones(Some(4)), clones(Some(3))), (1, 0));
}

#[test]
fn clones_that_were_refused_wait_and_first_attempts_do_not() {
    let until = |until, tasks| {
        let job = uneven().tasks(tasks);
        let wait = job.with(|job| job.obstacles.clones_not_before = Some(at(until)));
        plan(cluster().job(wait), &product())
    };
    let clones = brief(&until(30.0, 8));
    assert!(clones.iter().all(|words| words == "a: clone 7"));
    assert_ne!(clones, [""; 0]);
    let waits = until(31.0, 8);
    assert_eq!(brief(&waits), [""; 0]);
    assert_eq!(waits.report.next_pass, Some(at(31.0)));
    let first = brief(&until(31.0, 9));
    assert!(first.contains(&"a: original 8".to_owned()), "{first:?}");
}

pub(super) fn snapshot_of(jobs: impl IntoIterator<Item = JobBuilder>, milli_cpu: i64) -> Snapshot {
    jobs.into_iter()
        .fold(world(30.0, 1, milli_cpu), World::job)
        .build()
}

#[test]
fn an_unplaceable_attempt_that_is_stopped_holds_no_capacity() {
    let dying = attempt(0).unplaceable().killed(KillKind::JobEnd, 29.0);
    let snapshot = snapshot_of([job("a").task(0, [dying])], 1000);
    let capacity = Capacity::new(&snapshot, 1.0);
    assert_eq!(capacity.times_free(0), 1);
    assert_eq!(
        capacity.free.node(NodeIndex(0)),
        capacity.free_after_kills.node(NodeIndex(0))
    );
}

#[test]
fn a_job_that_is_held_up_makes_nobody_else_short_of_capacity() {
    // One slot is free, for a clone next to the lone attempt that is late.
    let policy = product();
    let words = |other: JobBuilder| {
        let cluster = world(30.0, 4, 1000).job(uneven());
        brief(&plan(cluster.job(other), &policy))
    };
    let alone = brief(&plan(world(30.0, 4, 1000).job(uneven()), &policy));
    // If another job waits for the slot, the attempt is given up for it.
    let waits = words(job("b").submitted(20.0).tasks(2).deadline_in(500.0));
    assert_ne!(waits, alone);
    let held: [fn(JobBuilder) -> JobBuilder; 4] = [
        |job| job.suspended(),
        |job| job.tasks(3).task(0, [attempt(0).unplaceable()]),
        |job| job.with(|job| job.launch_not_before = Some(at(99.0))),
        |job| job.with(|job| job.obstacles.attempts_max = Some(0)),
    ];
    for held_up in held {
        assert_eq!(
            words(held_up(
                job("b").submitted(20.0).tasks(2).deadline_in(500.0)
            )),
            alone
        );
    }
    assert!(
        alone.iter().all(|words| words.contains("clone")),
        "{alone:?}"
    );
}

#[test]
fn a_job_over_its_quota_neither_preempts_nor_blocks_others() {
    // One of its tasks runs, and the other one is urgent.
    let urgent = |most| {
        let job = job("b").tasks(2).submitted(25.0).deadline_in(35.0);
        let job = job.ended_runs([20.0; 4]).task(0, [attempt(0).on(2)]);
        job.with(move |job| job.obstacles.attempts_max = most)
    };
    let words = |most| {
        let cluster = world(30.0, 3, 1000).job(patient()).job(urgent(most));
        brief(&plan(cluster, &product()))
    };
    for most in [None, Some(2)] {
        assert_eq!(words(most), ["a: preempt 1.0"], "{most:?}");
    }
    assert_eq!(words(Some(1)), [""; 0]);
}

#[test]
fn only_attempts_that_can_launch_again_restart_or_are_preempted() {
    let policy = product();
    let waiting = || job("b").submitted(20.0).tasks(2).deadline_in(500.0);
    let crowded = |one| world(30.0, 3, 1000).job(one).job(waiting());
    assert_eq!(brief(&plan(crowded(uneven()), &policy)), ["a: restart 7.0"]);
    let blocked = uneven().tasks(9).task(8, [attempt(0).unplaceable()]);
    assert_eq!(brief(&plan(crowded(blocked), &policy)), [""; 0]);
}
