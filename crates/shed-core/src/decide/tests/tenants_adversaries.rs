//! Acts of a tenant against another one. In each case the victim, which holds nothing, starts its share in one pass.

use super::tenants_shares::{cluster, launches, policies, runs, waits};
use super::{brief, plan_of, product};
use crate::fixtures::{JobBuilder, World, at, attempt, resume_point};
use crate::ids::JobClass;
use crate::memory::Memory;
use crate::snapshot::{ExpectedDuration, Preemption, Snapshot};
use crate::time::Span;

/// The evil tenant's jobs, named in turn.
fn many(count: u32, of: impl Fn(&str, u32) -> JobBuilder) -> Vec<JobBuilder> {
    let named = (0..count).map(|number| of(&format!("e-{number:03}"), number));
    named.collect()
}

fn evil(key: &str, tasks: u32) -> JobBuilder {
    waits("evil", key, tasks).submitted(0.0)
}

fn stated(job: JobBuilder, seconds: i64) -> JobBuilder {
    let stated = ExpectedDuration::new(Span::from_seconds(seconds), None).unwrap();
    job.with(|job| job.expected_duration = Some(stated))
}

/// The victim was submitted after all others, and is due last.
fn victim() -> JobBuilder {
    waits("victim", "v", 100)
        .submitted(29.0)
        .deadline_in(3600.0)
}

fn against(evil: Vec<JobBuilder>) -> Snapshot {
    evil.into_iter()
        .fold(cluster().job(victim()), World::job)
        .build()
}

/// The acts, each with the attempts that it leaves to the victim: a half of the slots, or all.
fn acts() -> Vec<(&'static str, Vec<JobBuilder>, usize)> {
    let late = |key: &str, number: u32| {
        evil(key, 5)
            .submitted(f64::from(number) / 1000.0)
            .deadline_in(1.0)
    };
    vec![
        ("a job in pieces", many(100, |key, _| evil(key, 1)), 50),
        (
            "a deadline just ahead",
            many(100, |key, _| evil(key, 5).deadline_in(31.0)),
            50,
        ),
        ("deadlines that have passed", many(300, late), 50),
        (
            "durations stated too short",
            many(100, |key, _| stated(evil(key, 5), 1)),
            50,
        ),
        (
            "durations stated too long",
            many(100, |key, _| stated(evil(key, 5), 280)),
            50,
        ),
        (
            "short durations in a class",
            many(100, |key, _| {
                let job = evil(key, 5).ended_runs([0.5; 5]);
                job.with(|job| job.class = Some(JobClass::from("fast")))
            }),
            50,
        ),
        ("ten times the jobs", many(1000, |key, _| evil(key, 10)), 50),
        (
            "pods of half a node",
            many(10, |key, _| evil(key, 4).cpu(50_000)),
            50,
        ),
        (
            "suspended jobs",
            many(100, |key, _| evil(key, 5).suspended()),
            100,
        ),
        (
            "jobs that the apiserver refuses",
            many(100, |key, _| {
                evil(key, 5).with(|job| job.launch_not_before = Some(at(40.0)))
            }),
            100,
        ),
        (
            "pods that cannot be placed",
            many(100, |key, _| {
                evil(key, 5).task(0, [attempt(0).unplaceable()])
            }),
            100,
        ),
        (
            "pods larger than any node",
            many(100, |key, _| evil(key, 5).cpu(200_000)),
            100,
        ),
        (
            "demand that no node could hold",
            many(100, |key, _| {
                evil(key, 5)
                    .cpu(200_000)
                    .with(|job| job.obstacles.no_node = true)
            }),
            100,
        ),
    ]
}

#[test]
fn no_act_keeps_a_tenant_from_its_share() {
    for (act, jobs, expected) in acts() {
        let snapshot = against(jobs);
        for policy in policies() {
            let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
            let counts = launches(&snapshot, &plan);
            let started = counts.get("victim").copied().unwrap_or(0);
            let is_enough = started >= expected;
            assert!(
                is_enough,
                "{act}, {} {}: {started}",
                policy.order,
                policy.speculation.name()
            );
        }
    }
}

#[test]
fn late_jobs_of_one_tenant_take_no_late_jobs_turn_of_another() {
    // All have been late for as long as they had. The evil ones were first.
    let aged = |tenant, key: &str, since| {
        waits(tenant, key, 3)
            .submitted(since)
            .deadline_in(2.0)
            .ended_runs([60.0; 5])
    };
    let dense = waits("third", "d", 300)
        .deadline_in(100.0)
        .ended_runs([1.0; 5]);
    let all = many(50, |key, _| aged("evil", key, -900.0));
    let all = all.into_iter().fold(cluster().job(dense), World::job);
    let snapshot = all.job(aged("victim", "v", -800.0)).build();
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &product());
    assert!(launches(&snapshot, &plan)["victim"] >= 1);
    assert!(launches(&snapshot, &plan)["third"] >= 33);
}

#[test]
fn jobs_that_are_deleted_again_keep_next_to_nothing() {
    let policy = product();
    let long = || many(16, |key, _| stated(evil(key, 10), 280).deadline_in(8.0));
    let (_, memory) = plan_of(&against(long()), &Memory::default(), &policy);
    let mut snapshot = against(Vec::new());
    snapshot.now = at(42.0);
    let (plan, _) = plan_of(&snapshot, &memory, &policy);
    assert!(launches(&snapshot, &plan)["victim"] >= 99);
}

#[test]
fn clones_for_slow_reports_are_given_back() {
    // Twenty tasks with four clones each report next to no progress.
    let slow = |job: JobBuilder, task| {
        let report = |number| attempt(number).on(0).progress(0.01, 29.0);
        job.task(task, (0..5).map(report))
    };
    let slow = || (0..20).fold(evil("e", 20).deadline_in(300.0).max_clones(5), slow);
    for policy in policies() {
        let snapshot = against(vec![slow()]);
        let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
        let stopped = brief(&plan)
            .iter()
            .filter(|it| it.starts_with("e: "))
            .count();
        assert!(
            stopped >= 50,
            "{} {}",
            policy.order,
            policy.speculation.name()
        );
    }
}

#[test]
fn an_urgent_job_preempts_no_tenant_within_its_share() {
    let yields = |job: JobBuilder| {
        job.resumes().deadline_in(9000.0).with(|job| {
            job.rules.preemption = Preemption::WhenCheckpointed;
            for attempt in job.tasks.iter_mut().flat_map(|task| &mut task.attempts) {
                attempt.checkpoint = Some(resume_point(0.5));
            }
        })
    };
    let urgent = many(100, |key, _| evil(key, 1).submitted(25.0).deadline_in(10.0));
    let all = cluster()
        .job(yields(runs("victim", "v", 50)))
        .job(runs("evil", "r", 50));
    let snapshot = urgent.into_iter().fold(all, World::job).build();
    for policy in policies() {
        let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
        assert_eq!(brief(&plan), [""; 0], "{}", policy.order);
    }
}
