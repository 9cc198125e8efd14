//! Jobs that a quota outside shed has admitted, and attempts that scheduling gates hold back.

use super::{brief, check, check_by, plan, product, report, surging, unranked};
use crate::fixtures::{JobBuilder, World, attempt, job, uneven, world};
use crate::fixtures::{four_nodes as cluster, launch};
use crate::plan::{Move, PlannedMove, RefusalReason};
use crate::plan_check::{Rule, plan_check};
use crate::policy::{Order, Policy};
use crate::snapshot::{AttemptKind, GATED_MAX, Snapshot};

/// One that waits for 4 tasks, in a queue of its own.
fn admitted(key: &str) -> JobBuilder {
    job(key).admitted(4)
}

#[test]
fn an_admitted_job_gets_all_first_attempts_at_once() {
    let two_slots = world(30.0, 1, 2500).job(job("b").submitted(-10.0).deadline_in(41.0));
    let both = two_slots.job(admitted("q").submitted(20.0).deadline_in(6000.0));
    let expected = [
        "q: original 0",
        "q: original 1",
        "q: original 2 beyond capacity",
        "q: original 3 beyond capacity",
    ];
    for order in Order::ALL {
        let policy = Policy { order, ..product() };
        let plan = plan(both.clone(), &policy);
        assert_eq!(brief(&plan), expected, "{order}");
        let waits = |key| report(&plan, key).waiting;
        assert_eq!((waits("q"), waits("b")), (0, 4), "{order}");
    }
}

#[test]
fn parallelism_and_quota_bound_an_admitted_job() {
    let launched = |job: JobBuilder| {
        let plan = plan(world(30.0, 1, 50_000).job(job), &product());
        plan.actions.len()
    };
    assert_eq!(launched(admitted("q").tasks(9)), 4);
    assert_eq!(launched(admitted("q").tasks(9).parallelism(3)), 3);
    let running = admitted("q").tasks(9).task(0, [attempt(0).on(0)]);
    assert_eq!(launched(running), 3);
    let suspended = admitted("q").tasks(9).suspended();
    assert_eq!(launched(suspended), 0);
}

#[test]
fn nothing_known_about_nodes_holds_an_admitted_job_back() {
    let waits = || admitted("q").task(0, [attempt(0).unplaceable()]);
    let rest = [1, 2, 3].map(|task| format!("q: original {task} beyond capacity"));
    let blind = waits().with(|job| job.obstacles.no_node = true);
    check(
        world(30.0, 1, 500).job(blind),
        &rest.each_ref().map(String::as_str),
    );
    let plan = plan(world(30.0, 1, 9000).job(waits()), &product());
    assert_eq!(plan.actions.len(), 3);
    // What the apiserver refuses is not asked for again and again.
    let over_quota = waits().with(|job| job.obstacles.attempts_max = Some(2));
    check(world(30.0, 1, 9000).job(over_quota), &["q: original 1"]);
}

#[test]
fn an_admitted_job_gets_no_clone() {
    let words = brief(&plan(cluster().job(uneven()), &product()));
    assert_eq!(words, ["a: clone 7"; 1]);
    let plan = plan(cluster().job(uneven().admitted(8)), &product());
    assert_eq!(brief(&plan), [""; 0]);
    let refused = report(&plan, "a").refusals.iter();
    let refused: Vec<_> = refused.map(|refusal| refusal.why).collect();
    assert_eq!(refused, [RefusalReason::Queue]);
}

/// The rules that a plan with this launch of the job breaks.
fn broken(snapshot: &Snapshot, kind: AttemptKind, task: u32) -> Vec<Rule> {
    let (mut plan, _) = crate::decide::decide(snapshot, Default::default(), &product());
    plan.actions.push(PlannedMove {
        job: snapshot.jobs[0].key.clone(),
        action: Move::Launch(launch(task, kind)),
    });
    let violations = plan_check(snapshot, &product(), &plan);
    violations.into_iter().map(|one| one.rule).collect()
}

#[test]
fn an_attempt_beyond_the_quota_is_caught() {
    let last_wave = |admitted| cluster().job(uneven().admitted(admitted)).build();
    // Three tasks are left, so that the quota for the others was given back.
    let clone = broken(&last_wave(8), AttemptKind::Clone, 7);
    assert_eq!(clone, [Rule::Quota]);
    let full = admitted("q").tasks(9).task(0, [attempt(0).on(0)]);
    let full = world(30.0, 1, 50_000).job(full).build();
    assert_eq!(broken(&full, AttemptKind::Original, 8), [Rule::Quota]);
}

#[test]
fn clones_of_others_make_way_for_an_admitted_job() {
    let cloned = job("c").deadline_in(600.0).tasks(1);
    let cloned = cloned.task(0, [attempt(0).on(0).progress(0.5, 29.0), attempt(1).on(0)]);
    let waits = admitted("q").tasks(1).task(0, [attempt(0).pending()]);
    let both = world(30.0, 1, 2000).job(cloned).job(waits);
    check_by(&unranked(), both, &["c: evict 0.1 for 0.0"]);
}

#[test]
fn pods_of_an_admitted_job_use_no_limit_of_their_tenant() {
    let full = || world(30.0, 1, 1000).job(job("runs").tasks(1).task(0, [attempt(0).on(0)]));
    let waits = admitted("q").tasks(1).task(0, [attempt(0).pending()]);
    let expected = ["w: original 0 beyond capacity"];
    check_by(&surging(), full().job(waits).job(job("w")), &expected);
}

#[test]
fn an_admitted_job_is_outside_the_shares() {
    let divided = || world(30.0, 1, 10_000).weight("one", 1.0).weight("two", 1.0);
    let one = |key: &str| job(key).tenant("one").tasks(10);
    let two = || job("two").tenant("two").tasks(10);
    let counts = |world: World| {
        let words = brief(&plan(world, &product()));
        ["one", "q", "two"].map(|key| {
            let begins = format!("{key}: ");
            words.iter().filter(|it| it.starts_with(&begins)).count()
        })
    };
    let both = divided().job(one("one")).job(two());
    assert_eq!(counts(both.clone()), [5, 0, 5]);
    // What its quota gives it is neither its tenant's share nor held back for it.
    let queued = one("q").tasks(4).admitted(4);
    assert_eq!(counts(both.job(queued)), [3, 4, 3]);
}

/// A job of a hundred tasks. This number of them wait behind gates.
fn gated(waiting: usize) -> JobBuilder {
    let empty = job("g").tasks(100).deadline_in(6000.0);
    (0..waiting as u32).fold(empty, |job, task| job.task(task, [attempt(0).gated()]))
}

#[test]
fn a_gated_attempt_holds_nothing_and_blocks_nothing() {
    let roomy = |waiting| world(30.0, 1, 50_000).job(gated(waiting));
    let of = |waiting| plan(roomy(waiting), &product()).actions.len();
    assert_eq!(of(0), 50, "nothing is known of gates");
    assert_eq!(of(1), GATED_MAX - 1);
    assert_eq!(of(GATED_MAX), 0);
    let full = world(30.0, 1, 1000).job(gated(5)).job(job("b").tasks(1));
    check(full, &["b: original 0"]);
}

#[test]
fn one_gated_attempt_too_many_is_caught() {
    let some = world(30.0, 1, 50_000).job(gated(1)).build();
    assert_eq!(
        broken(&some, AttemptKind::Original, 99),
        [Rule::LaunchTarget]
    );
    let queued = gated(GATED_MAX).admitted(100);
    let queued = world(30.0, 1, 150_000).job(queued);
    assert_eq!(
        plan(queued, &product()).actions.len(),
        90,
        "its quota counts on them"
    );
}

#[test]
fn a_suspended_admitted_job_changes_nothing_for_others() {
    let without = cluster().job(uneven()).job(job("b").tasks(20));
    let with = without.clone().job(admitted("q").suspended());
    for order in Order::ALL {
        let policy = Policy { order, ..surging() };
        let [one, other] = [&without, &with].map(|world| plan(world.clone(), &policy));
        assert_eq!(one.actions, other.actions, "{order}");
        assert_eq!(one.report.jobs[..], other.report.jobs[..2], "{order}");
    }
}
