//! Tenants share the capacity: each gets its share first, and borrows what is left.

use std::collections::BTreeMap;

use super::{brief, plan_of, product, report};
use crate::decide::order::ranks;
use crate::decide::{Changed, FindingsCache, opened};
use crate::fixtures::{JobBuilder, World, attempt, job, world};
use crate::ids::{JobKey, Tenant};
use crate::memory::Memory;
use crate::plan::{Move, Plan, TenantShare};
use crate::policy::{Order, Policy, Speculation};
use crate::snapshot::{AttemptKind, Snapshot};

/// The slots of the cluster.
const SLOTS: i64 = 100;

pub(super) fn cluster() -> World {
    world(30.0, 1, SLOTS * 1000).weight("nobody", 1.0)
}

/// Policies with each order: the product's, and one that leaves all to the order.
pub(super) fn policies() -> Vec<Policy> {
    let with = |speculation: Speculation| {
        Order::ALL.map(|order| Policy {
            order,
            speculation: speculation.clone(),
            ..product()
        })
    };
    let all = [with(product().speculation), with(Speculation::none())];
    all.into_iter().flatten().collect()
}

/// The launches of each tenant, where a job is named after its tenant.
pub(super) fn launches(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for planned in &plan.actions {
        let job = snapshot.jobs.iter().find(|job| job.key == planned.job);
        if let (Move::Launch(launch), Some(job)) = (&planned.action, job)
            && !launch.surge
        {
            *counts.entry(job.tenant.to_string()).or_insert(0) += 1;
        }
    }
    counts
}

pub(super) fn share<'p>(plan: &'p Plan, tenant: &str) -> &'p TenantShare {
    let mut shares = plan.report.shares.iter();
    shares.find(|it| &*it.tenant.0 == tenant).unwrap()
}

pub(super) fn waits(tenant: &str, key: &str, tasks: u32) -> JobBuilder {
    job(key).tenant(tenant).tasks(tasks).deadline_in(600.0)
}

/// A job with this many running attempts, all on the first node.
pub(super) fn runs(tenant: &str, key: &str, tasks: u32) -> JobBuilder {
    let running = |job: JobBuilder, task| job.task(task, [attempt(0).on(0)]);
    (0..tasks).fold(waits(tenant, key, tasks), running)
}

#[test]
fn a_job_in_pieces_gets_no_more_than_a_whole_one() {
    let pieces = (0..100).map(|at| waits("evil", &format!("e-{at:02}"), 1));
    let pieces: Vec<JobBuilder> = pieces.collect();
    for late in [false, true] {
        let victim = waits("victim", "v", 100).submitted(if late { 29.0 } else { 0.0 });
        let all = pieces
            .iter()
            .cloned()
            .fold(cluster().job(victim), World::job);
        let snapshot = all.build();
        for policy in policies() {
            let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
            let counts = launches(&snapshot, &plan);
            assert_eq!(counts["victim"], 50, "{}", policy.order);
            assert_eq!(counts["evil"], 50, "{}", policy.order);
        }
    }
}

#[test]
fn weights_divide_and_what_is_not_demanded_is_divided_again() {
    let check = |weights: [f64; 2], demands: [u32; 3], expected: [usize; 3]| {
        let names = ["a", "b", "c"];
        let jobs = names
            .iter()
            .zip(demands)
            .map(|(name, tasks)| waits(name, name, tasks));
        let mut snapshot = jobs.fold(cluster(), World::job).build();
        let weights = names.iter().zip(weights);
        snapshot.weights = weights
            .map(|(name, weight)| (Tenant::from(*name), weight))
            .collect();
        for policy in policies() {
            let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
            let counts = launches(&snapshot, &plan);
            assert_eq!(names.map(|name| counts[name]), expected, "{}", policy.order);
        }
    };
    check([1.0, 1.0], [100, 100, 5], [48, 47, 5]);
    check([3.0, 1.0], [100, 100, 100], [60, 20, 20]);
    check([3.0, 1.0], [10, 100, 100], [10, 45, 45]);
    // A weight of 10⁹ takes all that it demands, and the others still divide the rest.
    check([1e9, 1.0], [80, 100, 100], [80, 10, 10]);
}

#[test]
fn big_pods_count_as_big() {
    // Two of these pods fill half of the cluster.
    let big = (0..4).map(|at| waits("evil", &format!("e-{at}"), 1).cpu(25_000));
    let all = big.fold(cluster().job(waits("victim", "v", 100)), World::job);
    let snapshot = all.build();
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &product());
    let counts = launches(&snapshot, &plan);
    assert_eq!((counts["victim"], counts["evil"]), (50, 2));
}

#[test]
fn a_slot_that_comes_free_goes_to_the_tenant_below_its_share() {
    // One slot is free. The evil job's tasks are as dense as can be, and due earlier.
    let evil = runs("evil", "e", 90).tasks(200).deadline_in(120.0);
    let evil = evil.ended_runs([1.0; 5]);
    let victim = runs("victim", "v", 9).tasks(100).ended_runs([60.0; 5]);
    let snapshot = cluster().job(evil).job(victim).build();
    for policy in policies() {
        let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
        assert_eq!(brief(&plan), ["v: original 9"], "{}", policy.order);
        let [evil, victim] = ["evil", "victim"].map(|name| share(&plan, name));
        assert!((victim.entitled - 0.5).abs() < 1e-9 && (victim.held - 0.1).abs() < 1e-9);
        assert!((victim.owed - 0.4).abs() < 1e-9 && (evil.lent - 0.4).abs() < 1e-9);
        assert_eq!((victim.lent, evil.owed), (0.0, 0.0));
        assert_eq!(report(&plan, "v").waiting_for_share, 90);
        assert_eq!(report(&plan, "e").waiting_for_share, 110);
    }
}

#[test]
fn a_full_cluster_without_borrowers_is_no_matter_of_shares() {
    // Half a slot is left on each node.
    let on_second = waits("b", "b", 2).task(0, [attempt(0).on(1)]);
    let split = world(30.0, 2, 1500)
        .weight("nobody", 1.0)
        .job(runs("a", "a", 1))
        .job(on_second);
    let (plan, _) = plan_of(&split.build(), &Memory::default(), &product());
    let b = report(&plan, "b");
    assert_eq!((b.waiting, b.waiting_for_share), (1, 0));
    // A tenant that is alone waits for capacity only.
    let alone = cluster().job(waits("a", "a", 300)).build();
    let (plan, _) = plan_of(&alone, &Memory::default(), &product());
    assert_eq!(
        (
            report(&plan, "a").waiting,
            report(&plan, "a").waiting_for_share
        ),
        (200, 0)
    );
    assert_eq!(plan.report.shares, []);
}

#[test]
fn lent_clones_are_evicted_for_a_tenant_below_its_share() {
    // Fifty tasks with a clone each, and the clones save the job.
    let cloned = |job: JobBuilder, task| {
        let report = |number| attempt(number).on(0).progress(0.1, 29.0);
        job.task(task, [report(0), report(1).kind(AttemptKind::Clone)])
    };
    let evil = waits("evil", "e", 50)
        .deadline_in(300.0)
        .ended_runs([30.0; 5]);
    let evil = (0..50).fold(evil, cloned);
    let victim = waits("victim", "v", 100).without_deadline();
    let snapshot = cluster().job(evil).job(victim).build();
    for policy in policies() {
        let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
        let evicted = brief(&plan)
            .iter()
            .filter(|it| it.starts_with("e: evict"))
            .count();
        let pruned = brief(&plan)
            .iter()
            .filter(|it| it.starts_with("e: prune"))
            .count();
        assert_eq!(evicted + pruned, 50, "{}", policy.order);
    }
}

#[test]
fn five_thousand_tenants_get_one_slot_each_at_most() {
    let all = (0..5000).map(|at| waits(&format!("t-{at:04}"), &format!("j-{at:04}"), 3));
    let snapshot = all.fold(cluster(), World::job).build();
    let policy = Policy {
        order: Order::Fifo,
        ..product()
    };
    let (plan, memory) = crate::decide::decide(&snapshot, Memory::default(), &policy);
    let counts = launches(&snapshot, &plan);
    assert_eq!((counts.len(), counts.values().max()), (100, Some(&1)));
    assert_eq!(memory.tenant_use().len(), 5000);
}

#[test]
fn a_tenant_whose_only_job_fits_no_node_keeps_nothing() {
    let unplaceable = |job: JobBuilder| job.with(|job| job.obstacles.no_node = true);
    let too_big = || waits("evil", "e", 50).cpu(200_000);
    for evil in [too_big(), unplaceable(too_big())] {
        let snapshot = cluster().job(evil).job(waits("victim", "v", 100)).build();
        for policy in policies() {
            let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
            let counts = launches(&snapshot, &plan);
            assert_eq!(counts.get("victim"), Some(&100), "{}", policy.order);
        }
    }
}

/// The tenant's jobs in the order of service.
fn order_of(snapshot: &Snapshot, policy: &Policy, tenant: &str) -> Vec<JobKey> {
    let (memory, kept) = (Memory::default(), FindingsCache::default());
    let mut round = opened(snapshot, &memory, policy, kept, Changed::All);
    let rule = policy.speculation.rule();
    let mut session = rule.open(&memory, &round, None);
    session.before(&mut round);
    let mut ranks = ranks(&round, policy.order);
    ranks.sort();
    let of_tenant = |at: &usize| *snapshot.jobs[*at].tenant.0 == *tenant;
    let own = ranks.into_iter().map(|(_, at)| at).filter(of_tenant);
    own.map(|at| snapshot.jobs[at].key.clone()).collect()
}

#[test]
fn jobs_of_one_tenant_do_not_reorder_those_of_another() {
    let own = || {
        let of = |key, tasks, due, takes: f64| {
            waits("victim", key, tasks)
                .deadline_in(due)
                .ended_runs([takes; 5])
        };
        let jobs = [
            of("wide", 90, 900.0, 60.0),
            of("soon", 20, 100.0, 30.0),
            of("late", 5, 40.0, 60.0),
            of("tiny", 1, 5000.0, 5.0),
        ];
        jobs.into_iter().fold(cluster(), World::job)
    };
    let evil = |count: u32, due: f64, takes: f64| {
        let of = |at| {
            waits("evil", &format!("e-{at:03}"), 1)
                .deadline_in(due)
                .ended_runs([takes])
        };
        (0..count).fold(own(), |world, at| world.job(of(at)))
    };
    // The score of Tetris weighs alignment by the means of all jobs, as its paper does.
    for policy in policies()
        .into_iter()
        .filter(|policy| policy.order != Order::Tetris)
    {
        let alone = order_of(&own().build(), &policy, "victim");
        assert_eq!(alone.len(), 4);
        for (due, takes) in [(31.0, 1.0), (35.0, 500.0), (100.0, 60.0), (1e6, 1e5)] {
            for count in [1, 300] {
                let mixed = order_of(&evil(count, due, takes).build(), &policy, "victim");
                assert_eq!(mixed, alone, "{} {due}", policy.order);
            }
        }
    }
}

#[test]
fn what_is_promised_to_a_tenant_depends_on_no_others_jobs() {
    let asks = |job: JobBuilder| {
        let job = job.ended_runs([60.0; 5]).deadline_in(400.0);
        job.with(|job| job.asks_feasibility = true)
    };
    let victim = || asks(waits("victim", "v", 200).submitted(0.0));
    for victim in [victim(), victim().suspended()] {
        let promise = |evil: Vec<JobBuilder>| {
            let all = evil
                .into_iter()
                .fold(cluster().job(victim.clone()), World::job);
            let (plan, _) = plan_of(&all.build(), &Memory::default(), &product());
            report(&plan, "v").feasibility.unwrap()
        };
        let one = promise(vec![waits("evil", "e", 100)]);
        assert_eq!(one.width, 50);
        let dense = |at| waits("evil", &format!("e-{at:03}"), 1).deadline_in(40.0);
        assert_eq!(promise((0..300).map(dense).collect()), one);
        let large = |at| waits("evil", &format!("e-{at:03}"), 2).cpu(25_000);
        assert_eq!(promise((0..300).map(large).collect()).width, 50);
        // Running attempts of others change what starts now, and not what the tenant may count on later.
        assert_eq!(promise(vec![runs("evil", "e", 100)]).width, 50);
        let alone = promise(Vec::new());
        assert!(alone.width == 100 && alone.pocd > one.pocd);
    }
}
