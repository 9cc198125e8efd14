use serde_json::{Value, json};

use super::*;

const JOB: &str = "11111111-2222-3333-4444-555555555555";

/// A history, write by write.
#[derive(Default)]
struct ReportedHistory(Vec<Entry>);

impl ReportedHistory {
    fn add(mut self, change: Change) -> Self {
        let version = self.0.len() as u64 + 1;
        self.0.push(Entry { version, change });
        self
    }

    /// The job's status: counts and ledger.
    fn job(self, attempts: Value, ledger: Value) -> Self {
        let job = json!({
            "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
            "metadata": {"name": "j", "uid": JOB},
            "spec": {"deadline": {"within": "5m"}, "completions": 1, "idempotency": "Safe",
                "template": {"spec": {"containers": [{"name": "task"}]}}},
            "status": {"attempts": attempts, "ledger": ledger},
        });
        self.add(Change::Job(serde_json::from_value(job).unwrap()))
    }

    fn pod(self, number: u32, phase: &str, more: &Value) -> Self {
        self.add(Change::Pod(Box::new(pod(number, phase, more))))
    }

    fn pod_gone(self, number: u32) -> Self {
        self.add(Change::PodGone(Box::new(pod(
            number,
            "Succeeded",
            &json!({}),
        ))))
    }

    fn broken(&self) -> Vec<String> {
        let known = Known {
            capacity: 2,
            deleted: BTreeSet::from(["pod-0".to_owned()]),
            ..Known::default()
        };
        check(&self.0, &known)
    }

    fn breaks(&self, words: &str) {
        let broken = self.broken();
        assert!(
            broken.iter().any(|line| line.contains(words)),
            "not reported: {words}: {broken:#?}"
        );
    }
}

fn pod(number: u32, phase: &str, more: &Value) -> Pod {
    let mut metadata = json!({
        "name": format!("j-{number}"), "uid": format!("pod-{number}"),
        "finalizers": [api::ATTEMPT_FINALIZER],
        "labels": {
            api::LABEL_JOB_UID: JOB,
            api::LABEL_INDEX: "0",
            api::LABEL_ATTEMPT: number.to_string(),
        },
    });
    for (key, value) in more.as_object().unwrap() {
        metadata[key] = value.clone();
    }
    let pod = json!({"metadata": metadata, "status": {"phase": phase}});
    serde_json::from_value(pod).unwrap()
}

/// An attempt, and since when it must stop, in milliseconds of its job.
struct Recorded {
    number: u32,
    kill: Option<(&'static str, u32)>,
}

fn attempt(number: u32, kill: Option<&'static str>) -> Recorded {
    let kill = kill.map(|kind| (kind, 0));
    Recorded { number, kill }
}

fn ledger(next: u32, attempts: &[Recorded]) -> Value {
    let mut line = format!("0,{next}");
    let mut kills = Vec::new();
    for attempt in attempts {
        line.push_str(&format!(";{}o0", attempt.number));
        if let Some((kind, since)) = attempt.kill {
            line.push_str(&format!(",k{}", kills.len()));
            kills.push(format!("{kind},{since}"));
        }
    }
    let since = "2026-01-01T00:00:00.000000Z";
    json!({"tasks": {"since": since, "lines": [line], "kills": kills}})
}

fn done() -> Value {
    json!({"done": "0", "ending": "Complete", "finished": true})
}

/// A job with one attempt that is running.
fn running() -> ReportedHistory {
    ReportedHistory::default()
        .job(json!({"originals": 1}), ledger(1, &[attempt(0, None)]))
        .pod(0, "Running", &json!({}))
}

#[test]
fn what_was_there_when_the_history_began_may_have_been_counted() {
    let reported = ReportedHistory::default()
        .job(json!({"originals": 1, "won": 1}), done())
        .pod(0, "Succeeded", &json!({"finalizers": []}));
    reported.breaks("I2: j-0 was created and is not in the ledger");
    let known = Known {
        capacity: 2,
        begins_at: 2,
        ..Known::default()
    };
    assert_eq!(check(&reported.0, &known), Vec::<String>::new());
}

#[test]
fn a_life_without_fault_is_sound() {
    let reported = running()
        .pod(0, "Succeeded", &json!({}))
        .job(json!({"originals": 1, "won": 1}), done())
        .pod(0, "Succeeded", &json!({"finalizers": []}));
    assert_eq!(reported.broken(), Vec::<String>::new());
}

#[test]
fn accounting() {
    running()
        .job(json!({"originals": 1, "won": 1}), done())
        .breaks("no attempt of it succeeded");
    running()
        .job(json!({"originals": 1}), done())
        .breaks("an attempt is in no bucket or in two");
    running()
        .pod(0, "Running", &json!({"finalizers": []}))
        .breaks("let go before its end was counted");
    running()
        .pod(0, "Failed", &json!({}))
        .job(json!({"originals": 1, "superseded": 1}), ledger(1, &[]))
        .job(
            json!({"originals": 2, "superseded": 1}),
            ledger(1, &[attempt(0, None)]),
        )
        .breaks("was given out twice");
    running()
        .pod_gone(0)
        .pod(0, "Running", &json!({"uid": "another"}))
        .breaks("had two pods");
}

#[test]
fn what_was_killed_is_no_failure() {
    let killed = |ends: &str| {
        running()
            .job(
                json!({"originals": 1}),
                ledger(1, &[attempt(0, Some("Suspend"))]),
            )
            .pod(0, "Failed", &json!({}))
            .job(json!({"originals": 1, ends: 1}), ledger(1, &[]))
            .broken()
    };
    let about_failures = |broken: Vec<String>| {
        broken
            .into_iter()
            .filter(|line| line.contains("failures counted"))
            .count()
    };
    assert_eq!(about_failures(killed("failed")), 1);
    assert_eq!(about_failures(killed("superseded")), 0);
}

#[test]
fn capacity() {
    let two = [attempt(0, None), attempt(1, None), attempt(2, None)];
    running()
        .job(json!({"originals": 1, "clones": 2}), ledger(3, &two))
        .pod(
            1,
            "Running",
            &json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        )
        .pod(2, "Pending", &json!({}))
        .breaks("3 attempts at once, and capacity for 2");
    running()
        .pod(1, "Pending", &json!({}))
        .breaks("is not in the ledger");
    running()
        .job(json!({"originals": 1, "disrupted": 1}), ledger(1, &[]))
        .breaks("was counted while it ran");
}

#[test]
fn kills() {
    let deleting = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    running()
        .pod(0, "Running", &deleting)
        .breaks("deleted before its kill was recorded");
    for (kind, words) in [
        ("Settle", "a loser is killed before there is a winner"),
        ("Prune", "no sibling is spared"),
    ] {
        running()
            .job(
                json!({"originals": 1}),
                ledger(1, &[attempt(0, Some(kind))]),
            )
            .breaks(words);
    }
}

#[test]
fn resume_points_and_ends() {
    let at = |progress: f64| {
        let mut ledger = ledger(1, &[attempt(0, None)]);
        ledger["tasks"]["lines"] = json!(["0,1,p0;0o0"]);
        ledger["tasks"]["points"] = json!([format!("{progress},c")]);
        ledger
    };
    let reported = ReportedHistory::default()
        .job(json!({"originals": 1}), at(0.5))
        .job(json!({"originals": 1}), at(0.4));
    reported.breaks("the resume point of task 0 went back");
    reported.breaks("jobs that have not come to an end");
    let known = Known {
        capacity: 2,
        emptied: true,
        ..Known::default()
    };
    let broken = check(&running().0, &known);
    assert!(
        broken.iter().any(|line| line.starts_with("at 2: I8")),
        "{broken:?}"
    );
}

#[test]
fn a_stopped_attempt_wins_only_if_it_succeeded_before_deletion() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let killed = || {
        running().job(
            json!({"originals": 1}),
            ledger(1, &[attempt(0, Some("Suspend"))]),
        )
    };
    let won = json!({"originals": 1, "won": 1});
    killed()
        .pod(0, "Running", &deleted)
        .pod(0, "Succeeded", &deleted)
        .job(won.clone(), done())
        .breaks("no attempt of it succeeded before it was killed");
    let in_time = killed()
        .pod(0, "Succeeded", &json!({}))
        .pod(0, "Succeeded", &deleted)
        .job(won, done());
    assert_eq!(in_time.broken(), Vec::<String>::new());
}

#[test]
fn pods_of_others_are_no_attempts() {
    let foreign = json!({"uid": "other", "annotations": {super::super::foreign::FOREIGN: "true"}});
    let reported = running()
        .pod(0, "Succeeded", &foreign)
        .pod(7, "Running", &foreign);
    let only_unfinished = |broken: Vec<String>| broken.iter().all(|line| line.contains("I3"));
    assert!(
        only_unfinished(reported.broken()),
        "{:#?}",
        reported.broken()
    );
    reported
        .job(json!({"originals": 1, "won": 1}), done())
        .breaks("no attempt of it succeeded");
}

#[test]
fn what_the_control_plane_deletes_needs_no_kill() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let reported = running().pod(0, "Running", &deleted);
    let known = Known {
        capacity: 2,
        ..Known::default()
    };
    let broken = check(&reported.0, &known);
    assert!(
        !broken.iter().any(|line| line.contains("I4")),
        "{broken:#?}"
    );
}

#[test]
fn what_is_deleted_before_it_has_a_node_never_runs() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let reported = ReportedHistory::default()
        .job(
            json!({"originals": 1}),
            ledger(1, &[attempt(0, Some("JobEnd"))]),
        )
        .pod(0, "Pending", &deleted)
        .job(
            json!({"originals": 1, "superseded": 1}),
            json!({"ending": "Complete", "finished": true}),
        );
    let broken = reported.broken();
    assert!(
        !broken.iter().any(|line| line.contains("while it ran")),
        "{broken:#?}"
    );
}

#[test]
fn a_pod_that_no_scheduler_places_takes_no_capacity() {
    let three = [attempt(0, None), attempt(1, None), attempt(2, None)];
    let labels = json!({"labels": {
        api::LABEL_JOB_UID: JOB, api::LABEL_INDEX: "0", api::LABEL_ATTEMPT: "2",
        api::LABEL_JOB_NAME: "j"}});
    let reported = running()
        .job(json!({"originals": 1, "clones": 2}), ledger(3, &three))
        .pod(1, "Running", &json!({}))
        .pod(2, "Pending", &labels);
    reported.breaks("3 attempts at once, and capacity for 2");
    let known = Known {
        capacity: 2,
        troubled: BTreeSet::from(["j".to_owned()]),
        ..Known::default()
    };
    let broken = check(&reported.0, &known);
    assert!(
        !broken.iter().any(|line| line.contains("capacity for")),
        "{broken:#?}"
    );
}

#[test]
fn a_quarantined_job_is_reported() {
    let mut reported = running();
    let Change::Job(job) = &mut reported.0[0].change else {
        panic!("a job was reported");
    };
    let mut edited = serde_json::to_value(&**job).unwrap();
    edited["status"]["conditions"] = json!([{"type": api::QUARANTINED, "status": "True",
        "reason": "Panicked", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    **job = serde_json::from_value(edited).unwrap();
    reported.breaks("I9: j is quarantined");
}

#[test]
fn nothing_is_late_before_the_deadline_on_the_apiserver_clock() {
    let counted = |written: &str| {
        let mut reported = running()
            .pod(0, "Succeeded", &json!({}))
            .job(json!({"originals": 1, "late": 1}), ledger(1, &[]));
        let Some(Change::Job(job)) = reported.0.last_mut().map(|entry| &mut entry.change) else {
            panic!("a job was reported");
        };
        let mut edited = serde_json::to_value(&**job).unwrap();
        edited["status"]["deadline"] = json!("2026-01-01T00:01:00Z");
        edited["metadata"]["managedFields"] = json!([{"manager": "m", "time": written}]);
        **job = serde_json::from_value(edited).unwrap();
        reported
    };
    counted("2026-01-01T00:00:30Z").breaks("1 attempts of j counted late before the deadline");
    let later = counted("2026-01-01T00:01:02Z").broken();
    assert!(!later.iter().any(|line| line.contains("late")), "{later:?}");
}

#[test]
fn an_abandoned_attempt_wins_only_if_it_had_ended_before() {
    let ended = |second: u32| {
        let abandoned = Recorded {
            number: 0,
            kill: Some(("Abandon", 30_000)),
        };
        let reported = running().job(json!({"originals": 1}), ledger(1, &[abandoned]));
        let mut pod = serde_json::to_value(pod(
            0,
            "Succeeded",
            &json!({"deletionTimestamp": "2026-01-01T00:00:29Z"}),
        ))
        .unwrap();
        pod["status"]["containerStatuses"] = json!([{"name": "task", "image": "", "imageID": "",
            "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 0,
                "finishedAt": format!("2026-01-01T00:00:{second}Z")}}}]);
        reported
            .add(Change::Pod(serde_json::from_value(pod).unwrap()))
            .job(json!({"originals": 1, "won": 1}), done())
    };
    assert_eq!(ended(20).broken(), Vec::<String>::new());
    ended(40).breaks("no attempt of it succeeded before it was killed");
}

#[test]
fn a_deleted_pod_of_a_plain_job_has_failed_by_its_deletion() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let mut reported = running()
        .pod(0, "Running", &deleted)
        .job(json!({"originals": 1, "failed": 1}), ledger(1, &[]));
    reported.breaks("was counted while it ran");
    for entry in &mut reported.0 {
        let Change::Job(job) = &mut entry.change else {
            continue;
        };
        job.spec.deadline = None;
        job.spec.managed_by = Some(api::COMPANION.to_owned());
    }
    let broken = reported.broken();
    let about = |words: &str| broken.iter().any(|line| line.contains(words));
    assert!(
        !about("while it ran") && !about("failures counted"),
        "{broken:#?}"
    );
}

#[test]
fn an_object_above_1_mib_is_reported_unless_a_user_made_it_so() {
    let reported = |length: usize| {
        let message = "x".repeat(length);
        let condition = json!({"type": "Long", "status": "True", "reason": "Long",
            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut reported =
            ReportedHistory::default().job(json!({"originals": 1, "won": 1}), done());
        let Change::Job(job) = &mut reported.0[0].change else {
            panic!("a job was reported");
        };
        let mut edited = serde_json::to_value(&**job).unwrap();
        edited["status"]["conditions"] = json!([condition]);
        **job = serde_json::from_value(edited).unwrap();
        reported
    };
    let rest = shed::size::bytes(&match &reported(0).0[0].change {
        Change::Job(job) => (**job).clone(),
        _ => panic!("a job was reported"),
    });
    let most = shed::size::OBJECT_MAX - rest;
    assert_eq!(reported(most).broken(), Vec::<String>::new());
    reported(most + 1).breaks("I13: j has 1048577 bytes");
    let known = Known {
        bloated: BTreeSet::from(["j".to_owned()]),
        ..Known::default()
    };
    assert_eq!(check(&reported(most + 1).0, &known), Vec::<String>::new());
}
