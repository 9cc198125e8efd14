use crate::decide::decide;
use crate::fixtures::{
    JobBuilder, World, at, attempt, brief, job, plan_of, report, resume_point, world,
};
use crate::ids::JobKey;
use crate::memory::{JobMemory, Memory};
use crate::plan::{Move, Plan, PlannedMove};
use crate::plan_check::plan_check;
use crate::policy::{Order, Policy, Speculation};
use crate::snapshot::{AttemptKind, Conclusion, KillKind, NodeIndex, Snapshot};

mod admitted;
mod ageing;
mod disrupted;
mod distributions;
mod expected_duration;
mod feasibility;
mod findings_cache;
mod orders;
mod placement;
mod pocd;
mod risk;
mod shed_prime;
mod tenants;
mod tenants_adversaries;
mod tenants_lending;
mod tenants_shares;
mod unplaceable;
mod unusable;

fn plan(world: World, policy: &Policy) -> Plan {
    plan_of(&world.build(), &Memory::default(), policy).0
}

/// Under the product's policy the plan for this cluster has exactly these actions.
#[track_caller]
fn check(world: World, expected: &[&str]) {
    check_by(&product(), world, expected);
}

#[track_caller]
fn check_by(policy: &Policy, world: World, expected: &[&str]) {
    assert_eq!(brief(&plan(world, policy)), expected);
}

/// The product's policy, on a cluster that does not grow.
fn product() -> Policy {
    Policy {
        surge_max: 0,
        ..Policy::default()
    }
}

/// The product's policy, where one attempt may wait beyond capacity.
fn surging() -> Policy {
    Policy::default()
}

/// A policy that leaves it to the order to rank jobs.
fn unranked() -> Policy {
    Policy {
        speculation: Speculation::none(),
        ..product()
    }
}

#[test]
fn first_attempts_start_in_order_while_capacity_lasts() {
    let cluster = world(0.0, 1, 2500).job(job("a"));
    check(cluster.clone(), &["a: original 0", "a: original 1"]);
    let plan = plan(cluster, &product());
    assert_eq!(report(&plan, "a").waiting, 2);
    assert_eq!(plan.report.capacity.usable.get("cpu"), 2500);
    assert_eq!(plan.report.capacity.used.get("cpu"), 0);
    assert_eq!(plan.report.capacity.used_after.get("cpu"), 2000);
}

#[test]
fn tasks_that_ended_or_run_or_wait_for_settle_are_left_alone() {
    let busy = job("a")
        .tasks(8)
        .done([0])
        .failed([2])
        .task(1, [attempt(0).on(0)])
        .task(3, [attempt(0).succeeded(9.0)])
        .task(4, [attempt(0).failed(9.0)])
        .task_with(5, [], |task| task.failures = 4);
    check(
        world(9.0, 1, 9000).job(busy),
        &["a: original 6", "a: original 7"],
    );
}

#[test]
fn retries_come_first_and_begin_at_the_best_checkpoint() {
    let durable = |task: &mut crate::snapshot::TaskSnapshot| {
        task.failures = 1;
        task.resume_point = Some(resume_point(0.4));
    };
    let retrying = || job("a").resumes().task_with(3, [], durable);
    check(
        world(9.0, 1, 2000).job(retrying()),
        &["a: retry 3 from 0.4", "a: original 0"],
    );
    // Without resume the task starts over.
    let over = retrying().with(|job| job.rules.resume = crate::snapshot::Resume::None);
    check(world(9.0, 1, 1000).job(over), &["a: retry 3"]);
    // A stopped attempt may have reported more progress than was made durable.
    let dying = attempt(0)
        .on(0)
        .checkpoint(0.6)
        .killed(KillKind::Replace, 8.0);
    let further = job("a").tasks(1).resumes().task_with(0, [dying], durable);
    check(world(9.0, 1, 2000).job(further), &["a: retry 0 from 0.6"]);
}

#[test]
fn parallelism_counts_tasks_with_live_attempts_and_no_clones() {
    let three = job("a")
        .tasks(9)
        .parallelism(3)
        .task(0, [attempt(0).on(0), attempt(1).on(0)]);
    let cluster = world(9.0, 1, 9000).job(three);
    check(cluster.clone(), &["a: original 1", "a: original 2"]);
    assert_eq!(report(&plan(cluster, &product()), "a").waiting, 6);
}

#[test]
fn jobs_are_served_by_least_slack_and_infeasible_ones_last() {
    let cluster = || {
        world(0.0, 1, 1000)
            .job(job("doomed").deadline_in(20.0).ended_runs([30.0]))
            .job(job("short").deadline_in(70.0).ended_runs([10.0]))
            .job(job("long").deadline_in(100.0).tasks(1).ended_runs([90.0]))
            .job(job("unbound").with(|job| job.deadline = None))
    };
    check_by(&unranked(), cluster(), &["long: original 0"]);
    let by = |order| Policy {
        order,
        ..unranked()
    };
    check_by(
        &by(Order::EarliestDeadline),
        cluster(),
        &["doomed: original 0"],
    );
    let first = job("zeroth").submitted(-5.0).deadline_in(999.0);
    check_by(
        &by(Order::Fifo),
        cluster().job(first),
        &["zeroth: original 0"],
    );
}

#[test]
fn slack_counts_the_waves_that_a_job_needs() {
    let cluster = world(0.0, 1, 2000)
        .job(job("wide").deadline_in(60.0).tasks(2).ended_runs([20.0]))
        .job(
            job("waves")
                .deadline_in(65.0)
                .tasks(5)
                .parallelism(1)
                .ended_runs([10.0]),
        );
    check_by(
        &unranked(),
        cluster,
        &["waves: original 0", "wide: original 0"],
    );
}

#[test]
fn a_job_that_does_not_fit_holds_up_nobody() {
    let cluster = world(0.0, 1, 2000)
        .job(job("big").deadline_in(10.0).tasks(1).cpu(3000))
        .job(job("small").tasks(2));
    check_by(
        &product(),
        cluster,
        &["small: original 0", "small: original 1"],
    );
}

#[test]
fn what_must_wait_waits_and_the_next_pass_is_due_when_it_may() {
    let held = job("a")
        .tasks(1)
        .with(|job| job.launch_not_before = Some(at(12.0)));
    let backing_off = job("b")
        .tasks(1)
        .task_with(0, [], |task| task.retry_not_before = Some(at(11.0)));
    let cluster = world(9.0, 1, 9000).job(held).job(backing_off);
    check(cluster.clone(), &[]);
    assert_eq!(
        plan(cluster.clone(), &product()).report.next_pass,
        Some(at(11.0))
    );
    let mut later = cluster.build();
    later.now = at(12.0);
    let (plan, _) = plan_of(&later, &Memory::default(), &product());
    assert_eq!(brief(&plan), ["a: original 0", "b: retry 0"]);
    // The policy judges both again: a job of unknown times after 4 % of the 48 s that are left.
    assert_eq!(plan.report.next_pass, Some(at(13.92)));
}

#[test]
fn suspended_and_ending_jobs_get_nothing() {
    let cluster = world(9.0, 1, 9000)
        .job(job("a").suspended())
        .job(job("b").ending(Conclusion::DeadlineExceeded));
    check(cluster, &[]);
}

#[test]
fn a_task_that_is_not_idempotent_waits_until_its_copy_is_gone() {
    let dying = || attempt(0).on(0).killed(KillKind::Replace, 8.0);
    let one = job("a").tasks(2).parallelism(1).task(0, [dying()]);
    check(world(9.0, 1, 9000).job(one.clone()), &["a: retry 0"]);
    check(world(9.0, 1, 9000).job(one.not_idempotent()), &[]);
}

#[test]
fn what_is_being_killed_holds_its_capacity_until_it_is_gone() {
    let dying = attempt(1).on(0).killed(KillKind::Prune, 8.0);
    let pair = job("a").tasks(3).task(0, [attempt(0).on(0), dying]);
    check(world(9.0, 1, 3000).job(pair), &["a: original 1"]);
}

#[test]
fn capacity_and_nodes_each_limit_launches() {
    let half = Policy {
        capacity_share: 0.5,
        ..product()
    };
    let cluster = world(0.0, 2, 2000).job(job("a"));
    check_by(&half, cluster, &["a: original 0", "a: original 1"]);
    let fragments = world(0.0, 3, 1500).job(job("a").cpu(1000));
    let three = ["a: original 0", "a: original 1", "a: original 2"];
    check(fragments, &three);
}

#[test]
fn one_first_attempt_in_the_cluster_waits_beyond_capacity() {
    let big = || world(0.0, 1, 2000).job(job("big").cpu(3000));
    check_by(&surging(), big(), &["big: original 0 beyond capacity"]);
    let two = big().job(job("other").deadline_in(90.0).cpu(4000));
    check_by(&surging(), two, &["big: original 0 beyond capacity"]);
    let waits = job("big").cpu(3000).task(0, [attempt(0).pending()]);
    check_by(&surging(), world(0.0, 1, 2000).job(waits.clone()), &[]);
    // The job holds nothing, so that others can proceed meanwhile.
    let cluster = world(0.0, 1, 2000).job(waits).job(job("small").tasks(2));
    check_by(
        &surging(),
        cluster,
        &["small: original 0", "small: original 1"],
    );
}

#[test]
fn nobody_waits_beyond_capacity_while_a_node_has_capacity() {
    let policy = Policy {
        capacity_share: 0.5,
        ..surging()
    };
    let cluster = world(0.0, 1, 2000).job(job("a").tasks(2));
    check_by(&policy, cluster, &["a: original 0"]);
}

#[test]
fn without_any_node_one_attempt_asks_for_the_first() {
    check_by(
        &surging(),
        world(0.0, 0, 0).job(job("a")),
        &["a: original 0 beyond capacity"],
    );
}

/// Two nodes, both full: an original and two clones of a job without a deadline. All end in about 8 s.
fn clones_fill_the_cluster() -> JobBuilder {
    let race = [
        attempt(0).on(0).progress(0.5, 9.0),
        attempt(1).on(1).launched(5.0).progress(0.27, 9.0),
        attempt(2).on(1).launched(7.0).progress(0.11, 9.0),
    ];
    let unbound = job("a").tasks(1).with(|job| job.deadline = None);
    unbound.task(0, race)
}

#[test]
fn the_clone_with_the_least_progress_yields_to_a_first_attempt() {
    let full = || {
        world(9.0, 2, 2000)
            .others(0, 1000)
            .job(clones_fill_the_cluster())
    };
    let waiting = full().job(job("b").tasks(1));
    check(waiting, &["a: evict 0.2 for 0.0"]);
    let both = full().job(job("b").tasks(1).cpu(2000));
    check(both, &["a: evict 0.1 for 0.0", "a: evict 0.2 for 0.0"]);
}

#[test]
fn clones_stay_if_their_capacity_does_not_help() {
    let full = || {
        world(9.0, 2, 2000)
            .others(0, 1000)
            .job(clones_fill_the_cluster())
    };
    check(full().job(job("b").cpu(2500)), &[]);
    let elsewhere = job("b").with(|job| job.eligible_nodes = [NodeIndex(0)].into());
    check(full().job(elsewhere), &[]);
}

#[test]
fn no_clone_goes_that_another_one_makes_superfluous() {
    // The younger clone is small; the older one alone frees enough for the large attempt.
    let small = job("a")
        .cpu(500)
        .tasks(1)
        .task(0, [attempt(0).on(0), attempt(1).on(1).launched(8.0)]);
    let large = job("b")
        .cpu(1500)
        .tasks(1)
        .task(0, [attempt(0).on(0), attempt(1).on(1).launched(5.0)]);
    let waiting = job("c").cpu(1500).tasks(1);
    let cluster = world(9.0, 2, 2000).job(small).job(large).job(waiting);
    check(cluster, &["b: evict 0.1 for 0.0"]);
}

#[test]
fn capacity_that_comes_free_anyway_costs_no_clone() {
    let dying = attempt(2).on(1).launched(7.0).killed(KillKind::Evict, 8.0);
    let clones = [attempt(0).on(0), attempt(1).on(1), dying];
    let cluster = world(9.0, 2, 2000)
        .others(0, 1000)
        .job(job("a").tasks(1).task(0, clones))
        .job(job("b").tasks(1));
    check(cluster, &[]);
}

#[test]
fn a_clone_that_carries_its_task_alone_is_never_evicted() {
    let alone = [
        attempt(0).on(0).killed(KillKind::Prune, 8.0),
        attempt(1).on(0),
    ];
    let clones = [attempt(1).on(0), attempt(2).on(0)];
    let cluster = world(9.0, 1, 4000)
        .job(job("a").tasks(2).task(0, alone).task(1, clones))
        .job(job("b").tasks(2).deadline_in(90.0));
    // One of the two comes free with the pruned attempt, the other with one of two clones.
    check(cluster, &["a: evict 1.1 for 1.2"]);
}

#[test]
fn where_only_the_share_is_exhausted_a_clone_on_any_node_goes() {
    let policy = Policy {
        capacity_share: 0.5,
        ..product()
    };
    let pair = job("a")
        .tasks(1)
        .task(0, [attempt(0).on(0), attempt(1).on(0)]);
    let elsewhere = job("b")
        .tasks(1)
        .with(|job| job.eligible_nodes = [NodeIndex(1)].into());
    let cluster = world(9.0, 2, 2000).job(pair).job(elsewhere);
    check_by(&policy, cluster, &["a: evict 0.1 for 0.0"]);
}

#[test]
fn an_attempt_beyond_capacity_also_gets_the_capacity_of_clones() {
    let waits = job("b").tasks(1).cpu(2000).task(0, [attempt(0).pending()]);
    let cluster = world(9.0, 2, 2000).others(0, 1000);
    let cluster = cluster.job(clones_fill_the_cluster()).job(waits);
    check(cluster, &["a: evict 0.1 for 0.0", "a: evict 0.2 for 0.0"]);
}

#[test]
fn memory_of_jobs_that_are_gone_is_dropped() {
    let mut memory = Memory::default();
    let last_optimized = Some(at(1.0));
    memory.set(JobKey::from("a"), JobMemory { last_optimized });
    memory.set(JobKey::from("gone"), JobMemory { last_optimized });
    let snapshot = world(9.0, 1, 9000).job(job("a")).build();
    let (_, after) = plan_of(&snapshot, &memory, &product());
    assert_eq!(after.len(), 1);
    let of_present = after.job(&JobKey::from("a"));
    assert_eq!(of_present.last_optimized, Some(at(9.0)));
    let text = serde_json::to_string(&after).unwrap();
    assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), after);
}

/// Jobs with a thousand tasks each: half of the tasks run and report, and some of these straggle.
fn a_hundred_large_jobs() -> Snapshot {
    let mut cluster = world(30.0, 2000, 40_000);
    for number in 0..100 {
        let mut large = job(&format!("job-{number:03}"))
            .tasks(1000)
            .deadline_in(500.0);
        for index in 0..500 {
            let progress = if index % 50 == 0 { 0.05 } else { 0.4 };
            let node = (number * 500 + index as usize) % 2000;
            large = large.task(index, [attempt(0).on(node).progress(progress, 29.0)]);
        }
        cluster = cluster.job(large);
    }
    cluster.build()
}

#[test]
fn a_large_cluster_is_planned_in_one_pass() {
    let snapshot = a_hundred_large_jobs();
    let (plan, _) = decide(&snapshot, Memory::default(), &surging());
    assert_eq!(plan_check(&snapshot, &surging(), &plan), []);
    let first = |planned: &&PlannedMove| matches!(&planned.action, Move::Launch(launch) if launch.kind == AttemptKind::Original);
    // 80 000 slots: 50 000 are used, so that 30 000 first attempts fit.
    // One more waits beyond capacity.
    assert_eq!(plan.actions.iter().filter(first).count(), 30_001);
    // Because tasks wait, each of the 1000 stragglers is given up for a new attempt.
    assert_eq!(plan.actions.len(), 31_001);
}
