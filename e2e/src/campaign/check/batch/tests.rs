use serde_json::{Value, json};

use shed::api;

use crate::campaign::check::{Known, check};
use crate::campaign::history::{Change, Entry};

const JOB: &str = "99999999-2222-3333-4444-555555555555";

const TRACKED: [&str; 1] = [api::JOB_TRACKING_FINALIZER];

fn owner() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "name": "pi", "uid": JOB, "controller": true})
}

/// A history of one Job of two tasks, write by write.
#[derive(Default)]
struct ReportedHistory(Vec<Entry>);

impl ReportedHistory {
    fn add(mut self, change: Change) -> Self {
        let version = self.0.len() as u64 + 1;
        self.0.push(Entry { version, change });
        self
    }

    fn job(self, status: Value) -> Self {
        let job = json!({"metadata": {"name": "pi", "uid": JOB}, "status": status});
        self.add(Change::Batch(serde_json::from_value(job).unwrap()))
    }

    /// Its companion's counts and ledger.
    fn ledger(self, attempts: Value, ledger: Value) -> Self {
        let companion = json!({
            "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
            "metadata": {"name": "pi-1", "uid": "companion", "ownerReferences": [owner()]},
            "spec": {"completions": 2, "idempotency": "Safe", "managedBy": api::COMPANION, "template": {}},
            "status": {"attempts": attempts, "ledger": ledger},
        });
        self.add(Change::Job(serde_json::from_value(companion).unwrap()))
    }

    fn pod(self, task: u32, phase: &str, finalizers: &[&str]) -> Self {
        let pod = json!({
            "metadata": {
                "name": format!("pi-{task}"), "uid": format!("pod-{task}"),
                "ownerReferences": [owner()], "finalizers": finalizers,
                "labels": {
                    api::LABEL_JOB_UID: "companion",
                    api::LABEL_TASK: task.to_string(),
                    api::LABEL_ATTEMPT: "0",
                },
            },
            "status": {"phase": phase},
        });
        self.add(Change::Pod(serde_json::from_value(pod).unwrap()))
    }

    fn broken(&self) -> Vec<String> {
        let capacity = 2;
        check(
            &self.0,
            &Known {
                capacity,
                ..Known::default()
            },
        )
    }

    fn breaks(&self, words: &str) {
        let broken = self.broken();
        let reported = broken.iter().any(|line| line.contains(words));
        assert!(reported, "not reported: {words}: {broken:#?}");
    }
}

fn status(more: Value) -> Value {
    let mut status = json!({"startTime": "2026-01-01T00:00:00Z", "active": 2, "ready": 0, "succeeded": 0, "failed": 0});
    for (key, value) in more.as_object().unwrap() {
        status[key] = value.clone();
    }
    status
}

fn conditions(types: &[&str]) -> Value {
    let all = types
        .iter()
        .map(|type_| json!({"type": type_, "status": "True"}));
    all.collect()
}

fn complete() -> Value {
    status(
        json!({"active": 0, "succeeded": 2, "completedIndexes": "0,1",
        "completionTime": "2026-01-01T00:00:05Z", "conditions": conditions(&["SuccessCriteriaMet", "Complete"])}),
    )
}

fn running() -> ReportedHistory {
    ReportedHistory::default()
        .job(json!({}))
        .ledger(json!({"originals": 2}), attempts())
        .job(status(json!({})))
}

fn attempts() -> Value {
    let since = "2026-01-01T00:00:00.000000Z";
    json!({"tasks": {"since": since, "lines": ["0,1;0o0", "1,1;0o0"]}})
}

/// Its companion says that it is complete.
fn done(reported: ReportedHistory) -> ReportedHistory {
    let ledger = json!({"done": "0-1", "ending": "Complete", "finished": true});
    reported.ledger(json!({"originals": 2, "won": 2}), ledger)
}

#[test]
fn a_life_without_fault_is_sound() {
    let mut reported = running();
    for phase in ["Running", "Succeeded"] {
        reported = reported.pod(0, phase, &TRACKED).pod(1, phase, &TRACKED);
    }
    let reported = done(reported).job(complete()).pod(0, "Succeeded", &[]);
    assert_eq!(reported.broken(), Vec::<String>::new());
}

#[test]
fn an_attempt_beyond_the_quota_of_a_queue_is_noticed() {
    let with = |label: &str, parallelism: i32| {
        let job = json!({"metadata": {"name": "pi", "uid": JOB, "labels": {label: "team"}},
            "spec": {"completions": 2, "parallelism": parallelism, "template": {}}});
        let job = Change::Batch(serde_json::from_value(job).unwrap());
        let began = ReportedHistory::default().add(job);
        let began = began.ledger(json!({}), json!({}));
        began.ledger(json!({"originals": 2}), attempts())
    };
    with("kueue.x-k8s.io/queue-name", 1).breaks("I14: 2 attempts live, and the quota admits 1");
    for sound in [with("kueue.x-k8s.io/queue-name", 2), with("team", 1)] {
        let broken = sound.broken();
        assert!(broken.iter().all(|it| !it.contains("I14")), "{broken:?}");
    }
}

#[test]
fn a_job_says_nothing_before_its_ledger() {
    running()
        .job(status(json!({"succeeded": 1})))
        .breaks("pi says (1, 0) won and failed, its ledger (0, 0)");
    running()
        .job(status(json!({"failed": 1})))
        .breaks("pi says (0, 1) won and failed");
    running()
        .job(complete())
        .breaks("an end that its ledger does not say");
    let failed = conditions(&["FailureTarget", "Failed"]);
    done(running())
        .job(status(json!({"active": 0, "conditions": failed})))
        .breaks("an end that its ledger does not say");
    ReportedHistory::default()
        .job(json!({}))
        .ledger(json!({"originals": 2}), attempts())
        .pod(0, "Pending", &TRACKED)
        .breaks("created before its Job's status says that it has begun");
}

#[test]
fn ends_are_announced_and_for_good() {
    let mut unannounced = complete();
    unannounced["conditions"] = conditions(&["Complete"]);
    done(running())
        .job(unannounced)
        .breaks("Complete without SuccessCriteriaMet");
    let mut both = complete();
    both["conditions"] = conditions(&["SuccessCriteriaMet", "Complete", "FailureTarget"]);
    done(running()).job(both).breaks("both succeeds and fails");
    let ended = || done(running()).job(complete());
    ended()
        .job(status(json!({})))
        .breaks("changed after its end");
    ended().job(status(json!({}))).breaks("was taken back");
    let mut busy = complete();
    busy["active"] = json!(1);
    done(running()).job(busy).breaks("counts live pods");
    let mut endless = complete();
    endless.as_object_mut().unwrap().remove("completionTime");
    done(running()).job(endless).breaks("completion time");
}

#[test]
fn counts_and_times_only_add() {
    let one = || done(running()).job(status(json!({"succeeded": 1, "completedIndexes": "0"})));
    one()
        .job(status(json!({"succeeded": 0, "completedIndexes": "0"})))
        .breaks("counts of pi went back");
    one()
        .job(status(json!({"succeeded": 1, "completedIndexes": "1"})))
        .breaks("not complete any more");
    running()
        .job(status(json!({"startTime": "2026-01-01T00:00:09Z"})))
        .breaks("started at another time");
    running()
        .job(status(json!({"active": 1, "ready": 2})))
        .breaks("more ready pods than active ones");
}

#[test]
fn a_tracked_pod_is_released_after_its_end_is_counted() {
    running()
        .pod(0, "Running", &TRACKED)
        .pod(0, "Running", &[])
        .breaks("pi-0 was let go before its end was counted");
}
