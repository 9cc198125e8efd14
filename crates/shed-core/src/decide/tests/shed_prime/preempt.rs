//! Attempts that have time to spare are preempted for tasks that have none.

use super::{
    Change, Moves, NOTHING, World, attempt, brief, changes, check, decided, ends_in, job, slots,
    steady, table, world,
};
use crate::fixtures::{JobBuilder, at};
use crate::snapshot::{KillKind, NodeIndex, Preemption};

const PREEMPTED: Moves<'static> = &["a: preempt 1.0"];

/// Two tasks that end in 60 s. Both can be preempted.
fn patient(deadline: f64) -> JobBuilder {
    let long = |node| ends_in(0, 60.0).on(node).checkpoint(0.3);
    let job = steady(job("a").tasks(2).deadline_in(deadline), 89.0).resumes();
    let job = job.task(0, [long(0)]).task(1, [long(1)]);
    job.with(|job| job.rules.preemption = Preemption::WhenCheckpointed)
}

/// A task of 20 s that waits, with this much slack.
fn urgent(slack: f64) -> JobBuilder {
    let job = job("b").tasks(1).submitted(25.0).deadline_in(26.0 + slack);
    steady(job, 20.0)
}

fn both(a: JobBuilder, b: JobBuilder) -> World {
    slots(2).job(a).job(b)
}

#[test]
fn a_task_preempts_within_two_fifths_of_its_time() {
    let slack = |slack| both(patient(1000.0), urgent(slack));
    // 8 s.
    table("shed-prime", slack, &[(7.8, PREEMPTED), (8.3, NOTHING)]);
    // A task that may still wait is examined again when it may not.
    let plan = decided("shed-prime", slack(8.2));
    let next = plan.report.next_pass.unwrap();
    assert!((30.15..30.25).contains(&next.since(at(0.0)).seconds()));
}

#[test]
fn a_victim_has_the_slack_of_three_tasks_of_the_waiting_job() {
    let deadline = |deadline| both(patient(deadline), urgent(5.0));
    // The victim needs 60 s, and 2 s for two launches; three tasks of 20 s take its slot.
    let rows = [(151.0, NOTHING), (153.0, PREEMPTED)];
    table("shed-prime", deadline, &rows);
    // Launches of 9 s cost 16 s more.
    let slow_start: Change = |job| started_at(job, 9.0);
    let deadline = |deadline| both(slow_start(patient(deadline)), urgent(5.0));
    let rows = [(167.0, NOTHING), (169.0, PREEMPTED)];
    table("shed-prime", deadline, &rows);
}

/// The job's attempts were launched at 0 and started then.
fn started_at(job: JobBuilder, seconds: f64) -> JobBuilder {
    job.with(|job| {
        for task in &mut job.tasks {
            task.attempts[0].started = Some(at(seconds));
        }
    })
}

#[test]
fn a_victim_has_run_for_three_launches() {
    let started = |seconds| both(started_at(patient(1000.0), seconds), urgent(5.0));
    // It was launched 30 s ago.
    table("shed-prime", started, &[(9.8, PREEMPTED), (10.2, NOTHING)]);
    // The launches of others count as well, as long as they take longer.
    let launch = |seconds| {
        let world = both(patient(1000.0), urgent(4.0 + seconds));
        world.launch_overhead(seconds)
    };
    table("shed-prime", launch, &[(9.8, PREEMPTED), (10.2, NOTHING)]);
}

#[test]
fn only_attempts_are_preempted_that_lose_no_work_and_may_be() {
    let victim = |job| both(job, urgent(5.0));
    changes(
        victim,
        &patient(1000.0),
        &[
            ("as it is", |job| job, PREEMPTED),
            (
                "without consent",
                |job| job.with(|job| job.rules.preemption = Preemption::Never),
                NOTHING,
            ),
            ("never two at once", JobBuilder::not_idempotent, NOTHING),
            (
                "clones start over",
                |job| job.with(|job| job.rules.resume = crate::snapshot::Resume::None),
                NOTHING,
            ),
            ("no checkpoint", |job| checkpoint(job, None), NOTHING),
            (
                "checkpoint of nothing",
                |job| checkpoint(job, Some(0.0)),
                NOTHING,
            ),
            (
                "cannot be launched again",
                |job| job.with(|job| job.launch_not_before = Some(at(40.0))),
                NOTHING,
            ),
            (
                "without a deadline",
                |job| job.with(|job| job.deadline = None),
                PREEMPTED,
            ),
            ("hopeless", |job| job.deadline_in(35.0), PREEMPTED),
            ("one is enough", |job| stopped(job), NOTHING),
        ],
    );
}

fn checkpoint(job: JobBuilder, progress: Option<f64>) -> JobBuilder {
    job.with(|job| {
        for task in &mut job.tasks {
            task.attempts[0].checkpoint = progress.map(crate::fixtures::resume_point);
        }
    })
}

/// One of its attempts is being preempted already.
fn stopped(job: JobBuilder) -> JobBuilder {
    job.with(|job| {
        job.tasks[1].attempts[0].kill = Some(KillKind::Preempt);
        job.tasks[1].attempts[0].killed_at = Some(job.submitted);
    })
}

#[test]
fn only_tasks_preempt_that_gain_by_it() {
    let waiter = |job| both(patient(1000.0), job);
    changes(
        waiter,
        &urgent(5.0),
        &[
            ("as it is", |job| job, PREEMPTED),
            ("hopeless", |job| job.deadline_in(10.0), NOTHING),
            (
                "without a deadline",
                |job| job.with(|job| job.deadline = None),
                NOTHING,
            ),
            ("suspended", JobBuilder::suspended, NOTHING),
            (
                "not before a time",
                |job| job.with(|job| job.launch_not_before = Some(at(40.0))),
                NOTHING,
            ),
            ("larger than the slot", |job| job.cpu(1001), NOTHING),
            (
                "a pod beyond capacity",
                |job| job.task(0, [attempt(0).pending()]),
                PREEMPTED,
            ),
        ],
    );
    // A free slot is taken first.
    check(
        "shed-prime",
        slots(3).job(patient(1000.0)).job(urgent(5.0)),
        &["b: original 0"],
    );
}

#[test]
fn the_attempt_with_the_most_slack_is_preempted_first() {
    let one = |key: &str, node: usize, deadline: f64| {
        let long = ends_in(0, 60.0).on(node).checkpoint(0.3);
        let job = steady(job(key).tasks(1).deadline_in(deadline), 100.0).resumes();
        let job = job.task(0, [long]);
        job.with(|job| job.rules.preemption = Preemption::WhenCheckpointed)
    };
    let world = slots(2).job(one("x", 0, 900.0)).job(one("y", 1, 800.0));
    check("shed-prime", world.job(urgent(5.0)), &["x: preempt 0.0"]);
}

#[test]
fn a_clone_is_evicted_before_an_attempt_is_preempted() {
    let attempts = |count: u32| {
        let pair = (0..count).map(|number| attempt(number).on(2 + number as usize));
        let unbound = job("c").tasks(1).with(|job| job.deadline = None);
        let cluster = slots(2 + count as usize).job(patient(1000.0));
        cluster.job(unbound.task(0, pair)).job(urgent(5.0))
    };
    let rows: [(u32, Moves<'_>); 2] = [(1, PREEMPTED), (2, &["c: evict 0.1 for 0.0"])];
    table("shed-prime", attempts, &rows);
}

#[test]
fn a_job_does_not_preempt_its_own_attempts() {
    // Ten more tasks of 20 s wait for its two slots. Within its deadline it has time for five rounds.
    let busy = |left| {
        let running = |node| ends_in(0, 20.0).on(node).checkpoint(0.3);
        let job = steady(job("b").tasks(12).deadline_in(30.0 + left), 20.0);
        let job = job.resumes().task(0, [running(0)]).task(1, [running(1)]);
        job.with(|job| job.rules.preemption = Preemption::WhenCheckpointed)
    };
    table(
        "shed-prime",
        |left| slots(2).job(busy(left)),
        &[(130.0, NOTHING)],
    );
    // It does preempt those of others.
    let other = |left| slots(4).job(busy(left)).job(on_nodes(patient(1000.0), 2));
    let both: Moves<'_> = &["a: preempt 1.0", "a: preempt 0.0"];
    table("shed-prime", other, &[(60.0, both)]);
}

fn on_nodes(job: JobBuilder, first: usize) -> JobBuilder {
    job.with(|job| {
        for (node, task) in job.tasks.iter_mut().enumerate() {
            task.attempts[0].node = Some(NodeIndex(first + node));
        }
    })
}

#[test]
fn only_attempts_on_nodes_that_the_job_may_use_are_preempted() {
    let nodes = |node: usize| {
        let bound = urgent(5.0).with(|job| job.eligible_nodes = [NodeIndex(node)].into());
        slots(3).others(2, 1000).job(patient(1000.0)).job(bound)
    };
    table(
        "shed-prime",
        nodes,
        &[(0, &["a: preempt 0.0"]), (1, PREEMPTED), (2, NOTHING)],
    );
}

#[test]
fn one_pass_preempts_256_attempts() {
    let preempted = |count: u32| {
        let long = |index: u32| ends_in(0, 60.0).on(index as usize % 3).checkpoint(0.3);
        let a = steady(job("a").tasks(count).deadline_in(10_000.0), 100.0).resumes();
        let a = (0..count).fold(a, |job, index| job.task(index, [long(index)]));
        let a = a.with(|job| job.rules.preemption = Preemption::WhenCheckpointed);
        let b = urgent(2.0).tasks(count);
        let world = world(30.0, 3, i64::from(count) * 1000 / 3);
        let plan = decided("shed-prime", world.launch_overhead(1.0).job(a).job(b));
        brief(&plan).len()
    };
    assert_eq!([preempted(255), preempted(258)], [255, 256]);
}
