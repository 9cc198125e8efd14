use std::collections::BTreeMap;

use super::*;
use crate::api;

fn workflow(run: &str) -> Workflow {
    let annotations: BTreeMap<String, String> = [
        (api::ANNOTATION_WORKFLOW.to_owned(), run.to_owned()),
        (
            api::ANNOTATION_WORKFLOW_DEADLINE.to_owned(),
            "1h".to_owned(),
        ),
    ]
    .into();
    Workflow::read(Some(&annotations)).unwrap().unwrap()
}

fn at(seconds: i64) -> Instant {
    Instant(seconds * 1000)
}

/// A stage of a run in the namespace `team`.
fn stage<'a>(workflow: &'a Workflow, uid: &'a str, name: &'a str, created: i64) -> StageOfRun<'a> {
    StageOfRun {
        uid,
        namespace: "team",
        stage: Some(name).filter(|name| !name.is_empty()),
        created: at(created),
        workflow,
    }
}

/// A run of extract (10 s) and load (30 s), a second apart.
fn see(runs: &WorkflowRuns, run: &str, from: i64) {
    let workflow = workflow(run);
    let [first, second] = ["extract", "load"].map(|name| format!("{run}-{name}"));
    let extract = stage(&workflow, &first, "extract", from);
    runs.see(&extract, JobState::Complete(at(from + 10)));
    let load = stage(&workflow, &second, "load", from + 11);
    runs.see(&load, JobState::Complete(at(from + 41)));
}

#[test]
fn a_stage_has_its_part_after_three_runs() {
    let runs = WorkflowRuns::default();
    let now = workflow("etl-9");
    let extract = stage(&now, "9", "extract", 9000);
    for night in 0..3 {
        let known = runs.later_stages(&extract, at(9000));
        assert_eq!(known.deadline(at(10_000)), None);
        see(&runs, &format!("etl-{night}"), night * 1000);
    }
    let known = runs.later_stages(&extract, at(9000));
    assert_eq!(known.deadline(at(10_000)), Some(at(9969)));
    let elsewhere = StageOfRun {
        namespace: "other",
        ..extract.clone()
    };
    assert_eq!(
        runs.later_stages(&elsewhere, at(9000)),
        LaterStages::default()
    );
    let unnamed = stage(&now, "9", "", 9000);
    assert_eq!(
        runs.later_stages(&unnamed, at(9000)),
        LaterStages::default()
    );
}

#[test]
fn a_run_keeps_its_start_when_its_first_job_is_deleted() {
    let runs = WorkflowRuns::default();
    let run = workflow("etl-1");
    let first = stage(&run, "1", "extract", 100);
    runs.see(&first, JobState::Open);
    runs.see(&first, JobState::Gone);
    let second = stage(&run, "2", "load", 500);
    assert_eq!(runs.start(&second), at(100));
    // A run that nothing is known of begins with the job, or when its user says so.
    let other = workflow("etl-2");
    assert_eq!(runs.start(&stage(&other, "3", "load", 500)), at(500));
    let stated = Workflow {
        start: Some(at(50)),
        ..other
    };
    assert_eq!(runs.start(&stage(&stated, "3", "load", 500)), at(50));
}

#[test]
fn stages_at_the_same_time_leave_each_other_no_time() {
    let runs = WorkflowRuns::default();
    for night in 0..3 {
        let run = workflow(&format!("etl-{night}"));
        let from = night * 1000;
        for (name, end) in [("left", 10), ("right", 40)] {
            let uid = format!("{night}-{name}");
            let job = stage(&run, &uid, name, from);
            runs.see(&job, JobState::Complete(at(from + end)));
        }
    }
    let run = workflow("etl-9");
    runs.see(&stage(&run, "x", "left", 9000), JobState::Open);
    let part = |name| runs.later_stages(&stage(&run, "y", name, 9000), at(9000));
    assert_eq!(part("left").deadline(at(9100)), Some(at(9100)));
    assert_eq!(part("right").deadline(at(9100)), Some(at(9100)));
}

#[test]
fn a_run_that_never_ends_teaches_nothing() {
    let runs = WorkflowRuns::default();
    for night in 0..3 {
        see(&runs, &format!("etl-{night}"), night * 1000);
    }
    let open = workflow("etl-3");
    runs.see(&stage(&open, "open", "publish", 3000), JobState::Open);
    let run = workflow("etl-9");
    let extract = stage(&run, "9", "extract", 900_000);
    assert_eq!(runs.later_stages(&extract, at(900_000)).tails.len(), 3);
    let publish = stage(&run, "9", "publish", 900_000);
    assert_eq!(runs.later_stages(&publish, at(900_000)).tails.len(), 0);
}

#[test]
fn a_new_shape_is_learned_once_three_runs_have_it() {
    let runs = WorkflowRuns::default();
    for night in 0..3 {
        see(&runs, &format!("etl-{night}"), night * 1000);
    }
    let run = workflow("etl-9");
    let load = stage(&run, "9", "load", 900_000);
    let part = || runs.later_stages(&load, at(900_000)).deadline(at(900_100));
    assert_eq!(part(), Some(at(900_100)), "it is the last one");
    for night in 3..23 {
        let name = format!("etl-{night}");
        see(&runs, &name, night * 1000);
        let more = workflow(&name);
        let uid = format!("{name}-publish");
        let publish = stage(&more, &uid, "publish", night * 1000 + 42);
        runs.see(&publish, JobState::Complete(at(night * 1000 + 61)));
    }
    assert_eq!(part(), Some(at(900_080)));
}

#[test]
fn what_was_stored_is_restored_once() {
    let first = WorkflowRuns::default();
    see(&first, "etl-0", 0);
    let run = workflow("etl-1");
    first.see(&stage(&run, "open", "extract", 1000), JobState::Open);
    let stored = first.to_store();
    let next = WorkflowRuns::default();
    next.restore(&stored);
    let job = stage(&run, "later", "load", 1500);
    assert_eq!(next.start(&job), at(1000));
    let known = next.to_store();
    next.restore(&stored);
    assert_eq!(next.to_store(), known);
}

#[test]
fn ten_thousand_runs_are_bounded() {
    let runs = WorkflowRuns::default();
    let quiet = workflow("quiet-1");
    let mut job = stage(&quiet, "q", "all", 0);
    job.namespace = "victim";
    runs.see(&job, JobState::Open);
    for number in 0..10_000 {
        // Each has a class of its own, and a long name.
        let run = workflow(&format!("{number:0>200}-1"));
        let uid = format!("uid-{number}");
        runs.see(&stage(&run, &uid, "all", number), JobState::Open);
    }
    let stored = runs.to_store();
    assert!(stored.is_sound());
    assert!(size::bytes(&stored) <= STORED_MAX);
    assert_eq!(runs.start(&job), at(0));
    assert!(stored.runs("victim/quiet").is_some());
}

#[test]
fn the_stage_with_the_largest_overrun_is_named() {
    let runs = WorkflowRuns::default();
    for night in 0..3 {
        see(&runs, &format!("etl-{night}"), night * 1000);
    }
    let run = workflow("etl-9");
    // It took 25 s in place of 10 s.
    let extract = stage(&run, "9-extract", "extract", 9000);
    runs.see(&extract, JobState::Complete(at(9025)));
    let load = stage(&run, "9-load", "load", 9030);
    runs.see(&load, JobState::Open);
    let largest = |job: &StageOfRun<'_>, end| {
        let overruns = runs.overruns(job, at(9031));
        let largest = overruns.largest(at(end))?;
        Some((largest.stage.to_string(), largest.by.seconds()))
    };
    // Its usual time is 30 s.
    let named = |name: &str, by| Some((name.to_owned(), by));
    assert_eq!(largest(&load, 9060), named("extract", 15.0));
    assert_eq!(largest(&load, 9075), named("extract", 15.0));
    assert_eq!(largest(&load, 9076), named("load", 16.0));
    // A stage that has ended has the time that it took.
    assert_eq!(largest(&extract, 9500), named("extract", 15.0));
    let usual = workflow("etl-8");
    let extract = stage(&usual, "8-extract", "extract", 8000);
    runs.see(&extract, JobState::Open);
    assert_eq!(largest(&extract, 8010), None);
    let unnamed = stage(&usual, "8-unnamed", "", 8000);
    runs.see(&unnamed, JobState::Open);
    assert_eq!(largest(&unnamed, 8010), named("extract", 1021.0));
}
