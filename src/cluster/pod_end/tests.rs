use super::*;
use crate::api::SegmentEntry;
use crate::api::managed_fields::Trimmed;
use crate::cluster::pod::AttemptId;
use crate::job::attempt_outcome::is_proven;
use crate::job::view::JobView;
use crate::validate::ValidatedJob;
use std::sync::Arc;

const ID: AttemptId = (3, 1);

/// A pod that ended with 0 at 50 s by its node's clock; `metadata` and `conditions` are YAML.
fn pod(metadata: &str, conditions: &str, ended: bool) -> Trimmed<Pod> {
    let (phase, state) = match ended {
        true => (
            "Succeeded",
            "terminated: {exitCode: 0, startedAt: '1970-01-01T00:00:20Z', finishedAt: '1970-01-01T00:00:50Z'}",
        ),
        false => ("Running", "running: {startedAt: '1970-01-01T00:00:20Z'}"),
    };
    let yaml = format!(
        "{{metadata: {{uid: u, labels: {{shed.dev/job-uid: j, shed.dev/attempt: '1', \
         batch.kubernetes.io/job-completion-index: '3'}}, {metadata}}}, \
         spec: {{nodeName: n, containers: [{{name: task}}]}}, \
         status: {{phase: {phase}, conditions: [{conditions}], containerStatuses: [{{name: task, \
         ready: false, restartCount: 0, image: i, imageID: i, state: {{{state}}}}}]}}}}"
    );
    serde_saphyr::from_str(&yaml).unwrap()
}

fn seconds(at: i64) -> Instant {
    Instant(at * 1000)
}

fn seen(pod: &Trimmed<Pod>, at: i64) -> PodFacts {
    PodFacts::from_pod(pod, seconds(at))
}

fn end(facts: &PodFacts) -> EndFacts {
    facts.attempt.as_ref().unwrap().end
}

fn finished_at(facts: &PodFacts) -> Instant {
    finished(&facts.attempt.as_ref().unwrap().stage).unwrap()
}

/// A client requested its deletion at this second, with 30 s of grace.
fn deleted(at: i64) -> String {
    let gone_by = clock::time(seconds(at + 30)).0;
    format!("deletionTimestamp: '{gone_by}', deletionGracePeriodSeconds: 30")
}

const SURE: EndFacts = EndFacts {
    in_deletion: false,
    seen_deleted: false,
    dated_after: false,
};

#[test]
fn an_end_is_never_later_than_it_was_seen() {
    let plain = pod("", "", true);
    assert_eq!(finished_at(&seen(&plain, 51)), seconds(50));
    // The node's clock is ahead by 30 s.
    let ahead = seen(&plain, 20);
    assert_eq!(finished_at(&ahead), seconds(20));
    let started = ahead.attempt.as_ref().unwrap().started.unwrap();
    assert_eq!(
        seconds(20).since(started),
        seconds(50).since(seconds(20)),
        "the run is as long as the node says"
    );
    // Seen again, it does not move.
    let again = seen(&plain, 300).after(&ahead);
    assert_eq!(finished_at(&again), seconds(20));
    assert_eq!(again.attempt.unwrap().started, Some(started));
}

#[test]
fn an_end_after_the_deletion_was_asked_for_may_be_an_answer() {
    let end_of = |at| end(&seen(&pod(&deleted(at), "", true), 60));
    let is_in = |dated_after| EndFacts {
        in_deletion: true,
        dated_after,
        ..SURE
    };
    assert_eq!(end(&seen(&pod("", "", true), 60)), SURE);
    assert_eq!(end_of(45), is_in(true));
    // The stamp has whole seconds.
    assert_eq!(end_of(51), is_in(true));
    assert_eq!(end_of(52), is_in(false));
}

#[test]
fn what_was_seen_in_order_goes_over_any_clock() {
    let ended = seen(&pod("", "", true), 60);
    let then_deleted = seen(&pod(&deleted(45), "", true), 61).after(&ended);
    assert_eq!(end(&then_deleted), SURE);
    // The node's clock is minutes behind.
    let deleted_first = seen(&pod(&deleted(300), "", false), 300);
    let then_ended = seen(&pod(&deleted(300), "", true), 302);
    assert!(!end(&then_ended).may_be_answer(), "by the stamps alone");
    assert!(end(&then_ended.clone().after(&deleted_first)).may_be_answer());
    let mut other = deleted_first;
    other.uid = "another".to_owned();
    assert!(!end(&then_ended.after(&other)).may_be_answer());
}

#[test]
fn a_reported_disruption_counts_as_a_requested_deletion() {
    let reported = |at: i64, status: &str| {
        let at = clock::time(seconds(at)).0;
        let condition =
            format!("{{type: DisruptionTarget, status: '{status}', lastTransitionTime: '{at}'}}");
        end(&seen(&pod("", &condition, true), 60))
    };
    let answer = EndFacts {
        dated_after: true,
        ..SURE
    };
    assert_eq!(reported(49, "True"), answer);
    assert_eq!(reported(49, "False"), SURE);
    assert_eq!(reported(52, "True"), SURE);
}

mod judged {

    use shed_core::ids::TaskIndex;
    use shed_core::plan::Settled;
    use shed_core::snapshot::{AttemptKind, JobSnapshot, KillKind};

    use super::*;
    use crate::adopt::translate;
    use crate::api::{AttemptEntry, Ledger, TaskEntry};
    use crate::cluster::pod::JobPods;
    use crate::fixtures;
    use crate::job::facts::facts;
    use crate::validate::validate;

    fn ledger(kill: Option<KillKind>) -> Ledger {
        let mut ledger = Ledger::default();
        let attempt = AttemptEntry {
            number: ID.1,
            kind: AttemptKind::Original,
            launched: seconds(10),
            resume: None,
            avoid: Vec::new(),
            node: None,
            kill,
            killed_at: kill.map(|_| seconds(55)),
            unknown: Vec::new(),
        };
        let entry = TaskEntry {
            index: ID.0,
            next_attempt: 2,
            attempts: vec![attempt],
            ..TaskEntry::default()
        };
        ledger.tasks.insert(ID.0, entry);
        ledger
    }

    /// The result of `settle` for an attempt whose end may be a consequence of its deletion.
    fn settled(job: &ValidatedJob, kill: Option<KillKind>, pod: &Trimmed<Pod>) -> Vec<Settled> {
        shed_core::settle::settle(seconds(60), &observed(job, &ledger(kill), pod))
    }

    fn observed(job: &ValidatedJob, ledger: &Ledger, pod: &Trimmed<Pod>) -> JobSnapshot {
        let (job, ledger) = (Arc::new(job.clone()), ledger.clone());
        facts(&JobView {
            pods: JobPods::from([(ID, Arc::new(seen(pod, 60)))]),
            ..JobView::new(job, ledger, seconds(60), seconds(60))
        })
    }

    fn wins(job: &ValidatedJob, kill: Option<KillKind>, pod: &Trimmed<Pod>) -> bool {
        let actions = settled(job, kill, pod);
        let won = |action: &Settled| matches!(action, Settled::Win { task, .. } if *task == TaskIndex(ID.0));
        actions.iter().any(won)
    }

    fn own(change: &str) -> ValidatedJob {
        validate(&fixtures::job(change)).unwrap()
    }

    fn adopted(annotations: &str) -> ValidatedJob {
        let mut job = fixtures::batch_job("completions: 4, parallelism: 4");
        job.metadata.annotations = serde_saphyr::from_str(annotations).unwrap();
        translate::validated(&fixtures::companion(&job), &job).unwrap()
    }

    /// By its node's clock the pod started at 20 s and ended at 50 s.
    #[test]
    fn a_clock_that_is_behind_dates_no_run_before_its_launch() {
        let run = |launched: Instant, ended: bool| {
            let mut ledger = ledger(None);
            let attempts = &mut ledger.tasks.get_mut(&ID.0).unwrap().attempts;
            attempts[0].launched = launched;
            let facts = observed(&own(""), &ledger, &pod("", "", ended));
            let attempt = &facts.tasks[0].attempts[0];
            let finished = match attempt.state {
                AttemptState::Succeeded { finished } => Some(finished),
                _ => None,
            };
            (attempt.started, finished)
        };
        let stamped = (Some(seconds(20)), Some(seconds(50)));
        assert_eq!(run(seconds(25), true), stamped, "one clock, one run");
        // A stamp has no parts of a second.
        assert_eq!(run(Instant(20_900), false), (Some(seconds(20)), None));
        assert_eq!(run(seconds(25), false), (Some(seconds(24)), None));
        assert_eq!(run(seconds(90), false), (Some(seconds(89)), None));
    }

    #[test]
    fn an_answer_to_anothers_deletion_is_a_disruption() {
        let answer = pod(&deleted(45), "", true);
        for job in [own(""), own("idempotency: None")] {
            assert!(!wins(&job, None, &answer));
            let counted = settled(&job, None, &answer);
            assert!(format!("{counted:?}").contains("Disrupted"), "{counted:?}");
            // It had ended before.
            assert!(wins(&job, None, &pod(&deleted(55), "", true)));
            assert!(wins(&job, None, &pod("", "", true)));
        }
    }

    #[test]
    fn exit_code_0_wins_for_an_adopted_job_without_annotations() {
        let answer = pod(&deleted(45), "", true);
        assert!(wins(&adopted("{}"), None, &answer));
        assert!(!wins(
            &adopted("{shed.dev/idempotency: None}"),
            None,
            &answer
        ));
        assert!(!wins(&adopted("{shed.dev/deadline: 10m}"), None, &answer));
    }

    #[test]
    fn what_was_abandoned_is_judged_by_its_nodes_clock() {
        let abandoned = Some(KillKind::Abandon);
        assert!(wins(&own(""), abandoned, &pod(&deleted(55), "", true)));
        assert!(!wins(&own(""), abandoned, &pod(&deleted(45), "", true)));
    }

    #[test]
    fn what_was_killed_wins_only_if_it_was_seen_to_end_first() {
        for kill in [KillKind::Prune, KillKind::Suspend, KillKind::JobEnd] {
            // By the stamps it ended before its deletion, on a node that is behind.
            let answer = pod(&deleted(55), "", true);
            assert!(!wins(&own(""), Some(kill), &answer));
            assert!(wins(&own(""), Some(kill), &pod("", "", true)));
        }
    }
}

#[test]
fn the_last_report_says_whether_a_part_that_was_deleted_is_done() {
    let part = |end: u64| SegmentEntry {
        index: 3,
        task: 3,
        start: 0,
        end,
        total: 100,
        winner: None,
        dropped: false,
    };
    let mut facts = seen(&pod(&deleted(45), "", true), 60).attempt.unwrap();
    let job = crate::fixtures::job("{resume: Range, progress: {file: {}}}");
    let job = crate::validate::validate(&job).unwrap();
    assert!(!is_proven(&job, &facts, Some(&part(40))), "nobody knows");
    facts.reached = shed_agent::Units::parse("40/100");
    assert!(is_proven(&job, &facts, Some(&part(40))));
    assert!(!is_proven(&job, &facts, Some(&part(50))));
    assert!(!is_proven(&job, &facts, None));
    facts.reached = shed_agent::Units::parse("100/100");
    assert!(is_proven(&job, &facts, None));
}
