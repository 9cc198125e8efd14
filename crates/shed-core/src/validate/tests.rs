use super::*;
use crate::fixtures::{JobBuilder, attempt, job, world};
use crate::ids::{AttemptNumber, Tenant};
use crate::snapshot::{Grant, SpeculationMode};

fn healthy() -> JobBuilder {
    let reporting = attempt(0).on(0).progress(0.4, 20.0);
    job("a").task(0, [reporting, attempt(1).on(1)])
}

#[track_caller]
fn check(builder: JobBuilder, expected: &[&str]) {
    let snapshot = world(30.0, 2, 4000).job(builder).build();
    let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
    assert_eq!(faults, expected);
}

#[test]
fn a_sound_snapshot_has_no_faults() {
    check(healthy(), &[]);
}

#[test]
fn a_fault_names_its_job_and_field() {
    check(job("a").tasks(0), &["a: rules.completions is zero"]);
    check(
        job("a").cpu(5000),
        &["a: demand is more than any eligible node has"],
    );
    check(job("a").cpu(-1), &["a: demand is negative"]);
    check(
        job("a").ended_runs([-1.0]),
        &["a: ended_runs has a negative or infinite time"],
    );
    let strange = healthy().with(|job| job.eligible_nodes = [NodeIndex(1), NodeIndex(1)].into());
    check(strange, &["a: eligible_nodes are not ascending"]);
    let beyond = healthy().with(|job| job.eligible_nodes = [NodeIndex(0), NodeIndex(2)].into());
    check(beyond, &["a: eligible_nodes are not all in the cluster"]);
    let twice = healthy().with(|job| job.tasks.push(job.tasks[0].clone()));
    check(twice, &["a: tasks are not ascending by index"]);
    let far = healthy().with(|job| job.time_limit = Some(Instant(i64::MAX)));
    check(far, &["a: time_limit is infinite"]);
    for target in [0.0, 1.5, f64::NAN] {
        check(
            job("a").target(target),
            &["a: rules.target_pocd is not in (0, 1]"],
        );
    }
    for budget in [-0.1, f64::NAN, f64::INFINITY] {
        check(
            job("a").clone_budget(budget),
            &["a: rules.clone_budget is negative or not finite"],
        );
    }
    let odd = healthy().with(|job| job.ended_slot_time.clones = Span(-1));
    check(odd, &["a: ended_slot_time is negative or infinite"]);
    // `completions` was lowered below a task that still runs.
    let unwanted = healthy().with(|job| job.tasks[0].index = TaskIndex(4));
    check(unwanted, &[]);
}

#[test]
fn what_attempts_report_must_be_shares_that_do_not_go_back() {
    for value in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
        let odd = healthy().with(|job| {
            let progress = job.tasks[0].attempts[0].progress.as_mut();
            progress.unwrap().last = value;
        });
        let snapshot = world(30.0, 2, 4000).job(odd).build();
        let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
        let named = "a: tasks[0].attempts[0].progress.last is not in [0, 1]";
        assert_eq!(faults[0], named);
    }
    let back = healthy().with(|job| {
        let progress = job.tasks[0].attempts[0].progress.as_mut();
        progress.unwrap().last = 0.0;
    });
    check(back, &["a: tasks[0].attempts[0].progress goes back"]);
    let whole = healthy().with(|job| job.tasks[0].attempts[1].start_progress = 1.0);
    check(
        whole,
        &["a: tasks[0].attempts[1].start_progress is not in [0, 1)"],
    );
}

#[test]
fn names_are_given_once() {
    let mut snapshot = world(30.0, 2, 4000).job(healthy()).job(healthy()).build();
    snapshot.nodes[1].name = snapshot.nodes[0].name.clone();
    snapshot.launch_overhead = Some(Span(-1));
    snapshot
        .launch_overheads
        .insert(Tenant::from("blue"), Span(-1));
    snapshot.weights.insert(Tenant::from("blue"), 0.0);
    let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
    let expected = [
        "launch_overhead is negative or infinite",
        "launch_overheads[blue] is negative or infinite",
        "weights[blue] is not above 0, or infinite",
        "nodes[1].name is given twice",
        "a: key is given twice",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn a_time_that_overflowed_is_none() {
    let far = Instant(i64::MAX);
    let fault = |change: fn(&mut JobSnapshot, Instant), field: &str| {
        let odd = healthy().with(|job| change(job, far));
        check(odd, &[&format!("a: {field} is infinite")]);
    };
    fault(|job, far| job.deadline = Some(far), "deadline");
    fault(|job, far| job.submitted = Instant(-far.0), "submitted");
    fault(
        |job, far| job.launch_not_before = Some(far),
        "launch_not_before",
    );
    fault(
        |job, far| job.obstacles.clones_not_before = Some(far),
        "obstacles.clones_not_before",
    );
    fault(
        |job, far| job.tasks[0].retry_not_before = Some(far),
        "tasks[0].retry_not_before",
    );
    fault(
        |job, far| {
            let attempt = AttemptNumber(0);
            job.tasks[0].grant = Some(Grant { attempt, at: far });
        },
        "tasks[0].grant.at",
    );
    fault(
        |job, far| job.tasks[0].attempts[1].killed_at = Some(far),
        "tasks[0].attempts[1].killed_at",
    );
    fault(
        |job, far| job.tasks[0].attempts[1].state = AttemptState::Stuck { since: far },
        "tasks[0].attempts[1].state",
    );
    fault(
        |job, far| job.tasks[0].attempts[0].progress.as_mut().unwrap().last_at = far,
        "tasks[0].attempts[0].progress.last_at",
    );
    check(
        job("a").ended_runs([f64::INFINITY]),
        &["a: ended_runs has a negative or infinite time"],
    );
}

#[test]
fn a_start_may_be_before_the_launch_by_what_clocks_differ_alone() {
    let started = |seconds: i64| {
        healthy().with(|job| {
            let attempt = &mut job.tasks[0].attempts[1];
            attempt.started = Some(attempt.launched.plus(Span::from_seconds(seconds)));
        })
    };
    check(started(-60), &[]);
    check(
        started(-61),
        &["a: tasks[0].attempts[1].started is before its launch"],
    );
}

#[test]
fn attempts_have_nodes_of_the_cluster_and_unique_numbers() {
    let mut snapshot = world(30.0, 2, 4000).job(healthy()).build();
    snapshot.jobs[0].tasks[0].attempts[1].node = Some(NodeIndex(2));
    let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
    let expected = ["a: tasks[0].attempts[1].node is not in the cluster"];
    assert_eq!(faults, expected);
    let twice = healthy().with(|job| job.tasks[0].attempts[1].number = AttemptNumber(0));
    check(twice, &["a: tasks[0].attempts are not ascending by number"]);
}

#[test]
fn a_job_with_faults_keeps_its_sound_facts_and_loses_clones() {
    let odd = healthy().with(|job| {
        job.tasks[0].attempts[0].start_progress = f64::NAN;
        job.tasks.push(job.tasks[0].clone());
        job.deadline = Some(Instant(i64::MAX));
    });
    let snapshot = world(30.0, 2, 4000).job(odd).job(job("b")).build();
    let (left, faults) = sound(&snapshot);
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert_eq!(validate(&left), []);
    let [one, other] = &left.jobs[..] else {
        panic!("{:?}", left.jobs);
    };
    assert_eq!(one.rules.speculation, SpeculationMode::Disabled);
    assert_eq!((one.tasks.len(), one.deadline), (1, None));
    assert!(one.tasks[0].attempts[0].progress.is_some());
    assert_eq!(other.rules.speculation, SpeculationMode::Enabled);
}

#[test]
fn of_two_jobs_with_one_key_the_first_is_left() {
    let snapshot = world(30.0, 2, 4000)
        .job(healthy())
        .job(healthy().tasks(7))
        .build();
    let (left, _) = sound(&snapshot);
    let completions: Vec<u32> = left.jobs.iter().map(|job| job.rules.completions).collect();
    assert_eq!(completions, [4]);
}

#[test]
fn a_sound_snapshot_is_not_copied() {
    let snapshot = world(30.0, 2, 4000).job(healthy()).build();
    assert!(matches!(sound(&snapshot).0, Cow::Borrowed(_)));
}
