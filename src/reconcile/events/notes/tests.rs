use shed_core::fixtures;
use shed_core::plan::{Finding, Outcome};

use super::*;
use crate::api::{AttemptCounts, Pocd};
use crate::validate::validate;

fn job() -> ValidatedJob {
    validate(&crate::fixtures::job("completions: 100")).unwrap()
}

fn all(notices: &[Notice]) -> Vec<ReportedEvent> {
    let (job, ledger) = (job(), Ledger::default());
    let names = Names {
        job: &job,
        ledger: &ledger,
    };
    reported(notices, names, None)
}

fn notes(notices: &[Notice]) -> Vec<String> {
    let reported = all(notices).into_iter();
    reported
        .map(|reported| format!("{} {}", reported.words.1, reported.words.2))
        .collect()
}

fn clone(task: u32, (pocd_before, pocd_after): (f64, f64)) -> Notice {
    let launch = Launch {
        reason: LaunchReason::Straggler {
            pocd_before,
            pocd_after,
        },
        ..fixtures::launch(task, AttemptKind::Clone)
    };
    Notice::Launched {
        id: (task, 1),
        launch,
    }
}

#[test]
fn a_burst_of_clones_is_one_event_with_its_count() {
    let pod = pod_names::of_attempt(&job(), 3, 1);
    let one = clone(3, (0.4, 0.95));
    assert_eq!(
        notes(std::slice::from_ref(&one)),
        [format!(
            "CloneLaunched shed started clone {pod} of task 3, from 0 %; PoCD 0.400 → 0.950"
        )]
    );
    let other = clone(7, (0.2, 0.4));
    assert_eq!(
        notes(&[other, one]),
        ["CloneLaunched shed started 2 clones, of tasks 3 and 7; PoCD 0.200 → 0.950"]
    );
    let many: Vec<Notice> = (0..20).map(|task| clone(task, (0.2, 0.4))).collect();
    let reported = all(&many);
    assert_eq!(reported.len(), 1);
    let note = &reported[0].words.2;
    assert!(
        note.contains("20 clones, of tasks 0, 1, 2, 3, 4, 5, 6, 7, … (20 in all)"),
        "{note}"
    );
    // A later burst is another event.
    assert_eq!(
        reported[0].about,
        About::Pod(pod_names::of_attempt(&job(), 0, 1))
    );
}

#[test]
fn an_attempt_that_never_requested_a_commit_names_that() {
    let counted = |task, uncommitted| Notice::Counted {
        id: (task, 0),
        kind: AttemptKind::Original,
        outcome: Outcome::Failed,
        uncommitted,
    };
    assert!(notes(&[counted(1, false)]).is_empty());
    let pod = pod_names::of_attempt(&job(), 1, 0);
    assert_eq!(
        notes(&[counted(1, true)]),
        [format!(
            "CommitNotRequested attempt {pod} of task 1 ended with exit code 0 and never requested a commit grant, so \
             it counts as failed; publish with `$SHED_BIN agent commit -- <command>`"
        )]
    );
    let two = notes(&[counted(1, true), counted(2, false), counted(4, true)]);
    assert!(
        two.len() == 1 && two[0].contains("2 attempts of tasks 1 and 4"),
        "{two:?}"
    );
}

#[test]
fn the_finding_of_a_rule_is_that_of_the_first_clone() {
    let of = |task, miss| Notice::Launched {
        id: (task, 1),
        launch: Launch {
            reason: LaunchReason::Rule {
                finding: Finding::Late { miss },
                pocd_before: Some(0.5),
                pocd_after: Some(0.75),
            },
            ..fixtures::launch(task, AttemptKind::Clone)
        },
    };
    let reported = notes(&[of(2, 0.5), of(4, 0.25)]);
    assert_eq!(
        reported,
        [
            "CloneLaunched shed started 2 clones, of tasks 2 and 4: of task 2, it is late and misses with \
             probability 0.500; PoCD 0.500 → 0.750"
        ]
    );
}

#[test]
fn stops_of_one_kind_are_one_event_and_settled_tasks_have_none() {
    let stop = |task, kind| Notice::Killed {
        id: (task, 0),
        kind,
    };
    let stops = [
        stop(1, KillKind::Evict),
        stop(2, KillKind::Settle),
        stop(3, KillKind::Evict),
        stop(4, KillKind::Prune),
    ];
    let reported = notes(&stops);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!(
        reported[0],
        "CloneEvicted shed stopped 2 clones of tasks 1 and 3, because a first attempt needs the slot"
    );
    assert!(reported[1].starts_with("AttemptPruned shed stopped attempt "));
}

#[test]
fn failed_tasks_are_one_event_that_names_the_first() {
    let failed = |task| Notice::TaskFailed { task };
    let reported = all(&[failed(5), failed(6)]);
    assert_eq!(reported.len(), 1);
    assert_eq!(reported[0].about, About::Task(5));
    assert!(
        reported[0]
            .words
            .2
            .starts_with("tasks 5 and 6 failed for good")
    );
}

#[test]
fn first_attempts_and_their_wins_are_no_events() {
    let first = Notice::Launched {
        id: (0, 0),
        launch: fixtures::launch(0, AttemptKind::Original),
    };
    let won = |kind| Notice::Won {
        id: (0, 1),
        kind,
        resumed_from: 0.0,
    };
    assert_eq!(notes(&[first, won(AttemptKind::Original)]), [""; 0]);
    let reported = notes(&[won(AttemptKind::Clone)]);
    assert!(reported[0].starts_with("CloneWon clone "), "{reported:?}");
}

#[test]
fn the_end_tells_the_slack_and_what_clones_did() {
    let status = DeadlineJobStatus {
        deadline: Some(clock::time(shed_core::time::Instant(600_000))),
        completion_time: Some(clock::time(shed_core::time::Instant(480_000))),
        pocd: Some(Pocd::MET),
        attempts: AttemptCounts {
            clones: 2,
            clone_wins: 1,
            ..AttemptCounts::default()
        },
        ..DeadlineJobStatus::default()
    };
    let (_, name, note) = end_words(Conclusion::Complete, Some(&status));
    assert_eq!(name, "Completed");
    assert_eq!(
        note,
        "every task has a winner, 120 s before the deadline; 2 clones were started, and 1 finished first"
    );
    let late = DeadlineJobStatus {
        completion_time: Some(clock::time(shed_core::time::Instant(610_000))),
        attempts: AttemptCounts::default(),
        ..status
    };
    let (_, _, note) = end_words(Conclusion::Complete, Some(&late));
    assert_eq!(note, "every task has a winner, 10 s after the deadline");
}
