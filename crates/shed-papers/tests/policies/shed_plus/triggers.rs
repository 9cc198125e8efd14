//! When the optimizer runs.

use super::{cluster, plan, policy, shed_plus, straggling};
use shed_core::fixtures::{at, attempt, brief, job, plan_of, report};
use shed_core::ids::JobKey;
use shed_core::memory::{JobMemory, Memory};

fn optimized_at(seconds: f64) -> Memory {
    let mut memory = Memory::default();
    let last_optimized = Some(at(seconds));
    memory.set(
        JobKey::from("a"),
        JobMemory {
            last_optimized,
            was_idle: false,
        },
    );
    memory
}

#[test]
fn the_optimizer_runs_at_progress_xi_and_then_every_theta() {
    let cases = [
        (0.5, Memory::default(), false, at(30.0 + 10.85)),
        (0.3, Memory::default(), true, at(30.0 + 10.85)),
        (0.3, optimized_at(20.0), false, at(20.0 + 10.85)),
        (0.3, optimized_at(19.15), true, at(30.0 + 10.85)),
    ];
    for (xi, memory, optimized, next) in cases {
        let policy = policy(&format!("shed-plus{{xi={xi}}}"));
        let snapshot = cluster(2).job(straggling()).build();
        let (plan, after) = plan_of(&snapshot, &memory, &policy);
        assert_eq!(report(&plan, "a").optimized, optimized, "{xi} {memory:?}");
        assert_eq!(plan.actions.is_empty(), !optimized);
        assert_eq!(plan.report.next_pass, Some(next));
        let last = after.job(&JobKey::from("a")).last_optimized;
        let expected = memory.job(&JobKey::from("a")).last_optimized;
        assert_eq!(last, if optimized { Some(at(30.0)) } else { expected });
    }
}

#[test]
fn a_clock_that_went_back_does_not_put_the_optimizer_off() {
    let snapshot = cluster(2).job(straggling()).build();
    let (plan, _) = plan_of(&snapshot, &optimized_at(500.0), &shed_plus());
    assert_eq!(plan.report.next_pass, Some(at(30.0 + 10.85)));
}

#[test]
fn the_measured_launch_overhead_lengthens_theta() {
    let snapshot = cluster(2).launch_overhead(60.0).job(straggling()).build();
    let (plan, _) = plan_of(&snapshot, &optimized_at(20.0), &shed_plus());
    assert_eq!(plan.report.next_pass, Some(at(20.0 + 65.0)));
}

#[test]
fn after_a_fifth_of_its_time_below_xi_a_job_is_optimized() {
    let late = |deadline| {
        let crawling = attempt(0).on(0).progress(0.05, 29.0);
        cluster(2).job(job("a").tasks(1).deadline_in(deadline).task(0, [crawling]))
    };
    assert!(!report(&plan(late(160.0)), "a").optimized);
    assert!(report(&plan(late(150.0)), "a").optimized);
}

#[test]
fn a_run_that_sees_only_hopeless_tasks_waits_for_no_launch() {
    let hopeless = || straggling().deadline_in(50.0);
    let snapshot = cluster(4).job(hopeless()).build();
    let (plan, memory) = plan_of(&snapshot, &Memory::default(), &shed_plus());
    assert_eq!(brief(&plan), [""; 0]);
    assert!(report(&plan, "a").optimized);
    // (50 s - 3 s) · 0.05 until the next one.
    let expected = JobMemory {
        last_optimized: Some(at(30.0)),
        was_idle: true,
    };
    assert_eq!(memory.job(&JobKey::from("a")), expected);
    assert_eq!(plan.report.next_pass, Some(at(32.35)));
}

#[test]
fn a_run_that_changes_nothing_waits_for_no_launch() {
    let next = |text: &str| {
        let full = cluster(0).job(straggling()).build();
        let (plan, memory) = plan_of(&full, &Memory::default(), &policy(text));
        assert_eq!(brief(&plan), [""; 0]);
        let next = plan.report.next_pass;
        // The pass then is the next run.
        let mut later = full.clone();
        later.now = next.unwrap();
        let (plan, _) = plan_of(&later, &memory, &policy(text));
        assert!(report(&plan, "a").optimized);
        next
    };
    // (160 s - 3 s) · 0.05, and 3 s more as printed.
    assert_eq!(next("shed-plus"), Some(at(37.85)));
    assert_eq!(next("shed-plus{variant=printed}"), Some(at(40.85)));
}

#[test]
fn a_task_late_at_its_first_report_brings_the_run_forward() {
    let reported_at = |first| {
        attempt(0)
            .on(3)
            .progress(0.1, 29.0)
            .first_report(0.095, first)
    };
    let optimized = |first, text: &str| {
        let job = straggling()
            .with(|job| job.tasks.truncate(3))
            .task(3, [reported_at(first)]);
        let world = cluster(3).job(job).build();
        let (plan, _) = plan_of(&world, &optimized_at(27.0), &policy(text));
        report(&plan, "a").optimized
    };
    assert!(optimized(28.0, "shed-plus"));
    assert!(!optimized(26.0, "shed-plus"));
    assert!(!optimized(28.0, "shed-plus{variant=printed}"));
}

#[test]
fn without_its_floor_theta_is_a_share_of_the_deadline() {
    let snapshot = cluster(2).launch_overhead(60.0).job(straggling()).build();
    let policy = policy("shed-plus{theta_floor=off}");
    let (plan, _) = plan_of(&snapshot, &optimized_at(25.0), &policy);
    assert_eq!(plan.report.next_pass, Some(at(25.0 + 8.0)));
}
