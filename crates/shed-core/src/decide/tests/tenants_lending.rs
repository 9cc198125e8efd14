//! What tenants lend comes back, and tenants that used less borrow first.

use super::tenants_shares::{cluster, launches, policies, runs, share, waits};
use super::{brief, plan_of, product, report};
use crate::fixtures::{JobBuilder, World, at, attempt};
use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::snapshot::{Preemption, Snapshot};

/// The snapshot at `now` seconds.
fn then(now: f64, world: World) -> Snapshot {
    let mut snapshot = world.build();
    snapshot.now = at(now);
    snapshot
}

/// The memory after these tenants held as many slots each from 30 s to an hour later.
fn after_an_hour(jobs: &[JobBuilder], policy: &Policy) -> Memory {
    let jobs = || jobs.iter().cloned().fold(cluster(), World::job);
    let (_, memory) = plan_of(&then(30.0, jobs()), &Memory::default(), policy);
    let (_, memory) = plan_of(&then(3630.0, jobs()), &memory, policy);
    memory
}

#[test]
fn a_part_of_what_a_tenant_used_lately_is_not_lent_for_good() {
    for policy in policies() {
        let memory = after_an_hour(&[runs("a", "a", 40), runs("b", "b", 5)], &policy);
        let used = memory.tenant_use().get(&"a".into()).unwrap().used;
        // An hour of forty slots counts half.
        assert!((used - 0.2).abs() < 1e-6, "{used}");
        let alone = then(3640.0, cluster().job(waits("b", "w", 200)));
        let (plan, after) = plan_of(&alone, &memory, &policy);
        // A half of twenty slots stays free.
        assert_eq!(launches(&alone, &plan)["b"], 90, "{}", policy.order);
        assert_eq!(report(&plan, "w").waiting_for_share, 110);
        // The other tenant finds them at once.
        let back = then(
            3641.0,
            cluster().job(runs("b", "w", 90)).job(waits("a", "v", 50)),
        );
        let (plan, _) = plan_of(&back, &after, &policy);
        assert_eq!(launches(&back, &plan)["a"], 10);
        // After more than an hour nothing is kept.
        let late = then(3640.0 + 3601.0, cluster().job(waits("b", "w", 200)));
        let (plan, _) = plan_of(&late, &memory, &policy);
        assert_eq!(launches(&late, &plan)["b"], 100);
    }
}

#[test]
fn attempts_that_can_be_taken_back_may_hold_unused_shares() {
    let policy = product();
    let memory = after_an_hour(&[runs("a", "a", 40), runs("b", "b", 5)], &policy);
    // Ninety attempts hold capacity, and those beyond fifty can be preempted.
    let lent = preemptible(runs("b", "b", 90));
    let snapshot = then(3640.0, cluster().job(lent).job(waits("b", "w", 200)));
    let (plan, _) = plan_of(&snapshot, &memory, &policy);
    assert_eq!(launches(&snapshot, &plan)["b"], 10);
}

/// Its attempts may be preempted, and have checkpoints.
fn preemptible(job: JobBuilder) -> JobBuilder {
    job.resumes().with(|job| {
        job.rules.preemption = Preemption::WhenCheckpointed;
        for attempt in job.tasks.iter_mut().flat_map(|task| &mut task.attempts) {
            attempt.checkpoint = Some(crate::fixtures::resume_point(0.5));
        }
    })
}

fn preempted(plan: &Plan) -> usize {
    let all = brief(plan);
    all.iter().filter(|it| it.contains("preempt")).count()
}

#[test]
fn running_attempts_are_taken_back_at_a_bounded_rate() {
    let full = |evil: JobBuilder| {
        cluster()
            .job(evil.without_deadline())
            .job(waits("victim", "v", 100).without_deadline())
    };
    for policy in policies() {
        let snapshot = full(preemptible(runs("evil", "e", 100))).build();
        let (plan, memory) = plan_of(&snapshot, &Memory::default(), &policy);
        // A twentieth of the cluster within a minute.
        assert_eq!(preempted(&plan), 5, "{}", policy.order);
        let mut soon = snapshot.clone();
        soon.now = at(42.0);
        let (plan, memory) = plan_of(&soon, &memory, &policy);
        assert_eq!(preempted(&plan), 1, "{}", policy.order);
        soon.now = at(102.0);
        let (plan, _) = plan_of(&soon, &memory, &policy);
        assert_eq!(preempted(&plan), 5, "{}", policy.order);
        // Nothing else is stopped.
        let (plan, _) = plan_of(
            &full(runs("evil", "e", 100)).build(),
            &Memory::default(),
            &policy,
        );
        assert_eq!(brief(&plan), [""; 0]);
    }
}

#[test]
fn within_shares_no_tenant_preempts_another() {
    let urgent = waits("victim", "v", 1)
        .submitted(25.0)
        .deadline_in(26.0)
        .ended_runs([20.0; 5]);
    let patient = |tasks| preemptible(runs("evil", "e", tasks)).deadline_in(9000.0);
    let others = runs("victim", "w", 50);
    let snapshot = cluster()
        .job(patient(50))
        .job(others)
        .job(urgent.clone())
        .build();
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &product());
    assert_eq!(preempted(&plan), 0);
    let snapshot = cluster().job(patient(100)).job(urgent).build();
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &product());
    assert_eq!(preempted(&plan), 1);
}

#[test]
fn what_is_owed_is_due_when_what_is_lent_ends() {
    let evil = |ends: f64| {
        let reports =
            |job: JobBuilder, task| job.task(task, [attempt(0).on(0).progress(30.0 / ends, 29.9)]);
        (0..100)
            .fold(waits("evil", "e", 100), reports)
            .ended_runs([ends; 5])
    };
    let victim = || waits("victim", "v", 100);
    let (plan, _) = plan_of(
        &cluster().job(evil(90.0)).job(victim()).build(),
        &Memory::default(),
        &product(),
    );
    let owed = share(&plan, "victim");
    assert!((owed.owed - 0.5).abs() < 1e-9, "{owed:?}");
    let due = owed.owed_until.unwrap().since(at(0.0)).seconds();
    assert!((80.0..100.0).contains(&due), "{due}");
    // Attempts that report nothing, of a job without times, have no known end.
    let silent = cluster().job(runs("evil", "e", 100)).job(victim()).build();
    let (plan, _) = plan_of(&silent, &Memory::default(), &product());
    assert_eq!(share(&plan, "victim").owed_until, None);
}

#[test]
fn the_tenant_that_used_less_borrows_first() {
    // For an hour one tenant held sixty slots and another one ten. A third one has its share and wants no more.
    let past = [
        runs("busy", "b", 60),
        runs("calm", "c", 10),
        runs("third", "t", 10),
    ];
    let memory = after_an_hour(&past, &product());
    let credit = |tenant: &str| memory.tenant_use().get(&tenant.into()).unwrap().credit;
    assert!(credit("calm") > 0.0 && credit("busy") < 0.0);
    // Each holds a third of the capacity, and one slot is left.
    let now = [
        runs("busy", "b", 33).tasks(90),
        runs("calm", "c", 33).tasks(90),
    ];
    let now = now.into_iter().chain([runs("third", "t", 33)]);
    let snapshot = then(3640.0, now.fold(cluster(), World::job));
    let (plan, _) = plan_of(&snapshot, &memory, &product());
    assert_eq!(brief(&plan), ["c: original 33"]);
}
