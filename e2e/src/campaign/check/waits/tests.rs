use serde_json::json;
use shed::api;

use super::*;

/// Events, each at a millisecond of the run.
struct ReportedHistory {
    begin: Instant,
    entries: Vec<Entry>,
    evidence: Evidence,
    capacity: Capacity,
}

fn nothing() -> ReportedHistory {
    ReportedHistory {
        begin: Instant::now(),
        entries: Vec::new(),
        evidence: Evidence {
            shown: BTreeMap::new(),
            sent: BTreeMap::new(),
            passes: Vec::new(),
        },
        capacity: Capacity {
            attempts: 2,
            nodes: Vec::new(),
            unusable: None,
            quota: None,
            troubled: BTreeSet::new(),
            slow: None,
        },
    }
}

impl ReportedHistory {
    fn at(&self, millis: u64) -> Instant {
        self.begin + Duration::from_millis(millis)
    }

    fn add(mut self, millis: u64, change: Change) -> Self {
        let version = self.entries.len() as u64 + 1;
        self.entries.push(Entry { version, change });
        self.evidence.shown.insert(version, self.at(millis));
        self
    }

    /// A job of one task that has launched as many attempts as are open.
    fn job(self, millis: u64, name: &str, open: u32) -> Self {
        let attempts: String = (0..open).map(|number| format!(";{number}o0")).collect();
        let lines = match open {
            0 => json!([]),
            _ => json!([format!("0,{open}{attempts}")]),
        };
        let tasks = json!({"since": "2026-01-01T00:00:00.000000Z", "lines": lines});
        let job = json!({
            "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
            "metadata": {"name": name, "namespace": "n", "uid": name},
            "spec": {"deadline": {"within": "5m"}, "completions": 1, "idempotency": "Safe",
                "template": {"spec": {"containers": [{"name": "task"}]}}},
            "status": {"attempts": {"originals": open}, "ledger": {"form": 1, "tasks": tasks}},
        });
        self.add(millis, Change::Job(serde_json::from_value(job).unwrap()))
    }

    /// The operator sent the newest write at this moment.
    fn sent(mut self, millis: u64) -> Self {
        let version = self.entries.len() as u64;
        self.evidence.sent.insert(version, self.at(millis));
        self
    }

    fn pod(self, millis: u64, job: &str, number: u32, phase: &str, node: Option<&str>) -> Self {
        let pod = json!({
            "metadata": {"name": format!("{job}-{number}"), "namespace": "n",
                "uid": format!("{job}-{number}"), "labels": {
                    api::LABEL_JOB_UID: job, api::LABEL_INDEX: "0",
                    api::LABEL_ATTEMPT: number.to_string()}},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase},
        });
        self.add(millis, Change::Pod(serde_json::from_value(pod).unwrap()))
    }

    /// A pass decides every 500 ms, and is counted at once.
    fn passes(mut self, until: u64) -> Self {
        let samples = (0..=until / 100).map(|tenth| Sample {
            from: self.at(tenth * 100),
            to: self.at(tenth * 100),
            count: tenth / 5,
        });
        self.evidence.passes = samples.collect();
        self
    }

    fn waits(&self) -> Vec<String> {
        waits(&self.entries, &self.capacity, &self.evidence)
    }
}

/// Two attempts of `busy` hold all capacity, `late` waits.
fn full() -> ReportedHistory {
    nothing()
        .job(0, "busy", 2)
        .pod(10, "busy", 0, "Running", Some("a"))
        .pod(10, "busy", 1, "Running", Some("b"))
        .job(20, "late", 0)
}

#[test]
fn a_launch_that_waits_while_there_is_capacity_is_reported() {
    let reported = nothing().job(0, "late", 0).passes(6000);
    let broken = reported.waits();
    assert_eq!(broken.len(), 1, "{broken:?}");
    let words = "I11: a launch of late waited 10 passes";
    assert!(broken[0].contains(words), "{broken:?}");
}

#[test]
fn a_launch_by_the_second_pass_is_in_time() {
    let reported = nothing()
        .job(0, "late", 0)
        .job(1200, "late", 1)
        .sent(1100)
        .passes(6000);
    assert_eq!(reported.waits(), Vec::<String>::new());
}

#[test]
fn nobody_waits_for_capacity_that_is_not_there() {
    let reported = full().passes(6000);
    assert_eq!(reported.waits(), Vec::<String>::new());
    let freed = full().job(1000, "busy", 1).passes(6000);
    // Its pod still runs.
    assert_eq!(freed.waits(), Vec::<String>::new());
    let freed = full()
        .pod(1000, "busy", 1, "Succeeded", Some("b"))
        .job(1000, "busy", 1)
        .passes(6000);
    assert_eq!(freed.waits().len(), 1);
}

#[test]
fn what_the_operator_was_not_shown_counts_for_nothing() {
    let reported = nothing().job(5500, "late", 0).passes(6000);
    assert_eq!(reported.waits(), Vec::<String>::new());
    // Its launch was sent long before the watch reported it.
    let reported = nothing()
        .job(0, "late", 0)
        .job(5500, "late", 1)
        .sent(900)
        .passes(6000);
    assert_eq!(reported.waits(), Vec::<String>::new());
}

#[test]
fn a_machine_that_stands_still_breaks_nothing() {
    let mut reported = nothing().job(0, "late", 0).passes(6000);
    for sample in &mut reported.evidence.passes {
        sample.count = sample.count.min(4);
    }
    assert_eq!(reported.waits(), Vec::<String>::new());
}

#[test]
fn unplaceable_pods_hold_capacity_only_until_that_is_known() {
    let stuck = |until| {
        let mut reported = nothing()
            .job(0, "stuck", 2)
            .pod(10, "stuck", 0, "Pending", None)
            .pod(10, "stuck", 1, "Pending", None)
            .job(20, "late", 0)
            .passes(until);
        reported.capacity.troubled.insert("stuck".to_owned());
        reported
    };
    assert_eq!(stuck(14_000).waits(), Vec::<String>::new());
    let broken = stuck(19_000).waits();
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].contains("a launch of late"), "{broken:?}");
    let mut ordinary = stuck(19_000);
    ordinary.capacity.troubled.clear();
    assert_eq!(ordinary.waits(), Vec::<String>::new());
}

#[test]
fn attempts_of_a_lost_node_hold_that_node_alone() {
    let mut reported = full().passes(6000);
    reported.capacity.nodes = vec![("a".to_owned(), 1), ("b".to_owned(), 2)];
    assert_eq!(reported.waits().len(), 1, "b has capacity for one more");
    // The node with capacity is the one that is lost.
    reported.capacity.unusable = Some(("b".to_owned(), 1));
    assert_eq!(reported.waits(), Vec::<String>::new());
    reported.capacity.unusable = Some(("a".to_owned(), 1));
    assert_eq!(reported.waits().len(), 1);
}

#[test]
fn a_quota_is_capacity_too_and_its_owner_may_wait_longer() {
    let limited = |pods, until| {
        let mut reported = nothing()
            .job(0, "busy", 1)
            .pod(10, "busy", 0, "Running", Some("a"))
            .job(20, "late", 0)
            .passes(until);
        reported.capacity.quota = Some(("n".to_owned(), pods));
        reported
    };
    assert_eq!(limited(1, 20_000).waits(), Vec::<String>::new());
    assert_eq!(limited(2, 5000).waits(), Vec::<String>::new());
    assert_eq!(limited(2, 20_000).waits().len(), 1);
}

#[test]
fn only_who_could_be_launched_waits() {
    let over = json!({"done": "0", "ending": "Complete", "finished": true});
    for (spec, ledger) in [(json!({"suspend": true}), json!({})), (json!({}), over)] {
        let mut reported = nothing().job(0, "late", 0).passes(6000);
        let Change::Job(job) = &mut reported.entries[0].change else {
            panic!("a job was reported");
        };
        let mut edited = serde_json::to_value(&**job).unwrap();
        for (key, value) in spec.as_object().unwrap() {
            edited["spec"][key] = value.clone();
        }
        edited["status"]["ledger"] = ledger;
        **job = serde_json::from_value(edited).unwrap();
        assert_eq!(reported.waits(), Vec::<String>::new());
    }
}

/// The same run as another namespace sees it whose webhook is slow: ticks every half second, and no
/// pass, since the operator waits.
fn next_to_a_slow_one(mut reported: ReportedHistory, until: u64) -> Vec<String> {
    reported.capacity.slow = Some("slow".to_owned());
    for tick in 1..=until / 500 {
        let pod = json!({"metadata": {"name": foreign::TICKER, "namespace": "slow", "uid": "t",
            "annotations": {"e2e.shed.dev/foreign": "true"}}, "spec": {"containers": []}});
        reported = reported.add(
            tick * 500,
            Change::Pod(serde_json::from_value(pod).unwrap()),
        );
    }
    let mut reported = reported.passes(until);
    for sample in &mut reported.evidence.passes {
        sample.count = 0;
    }
    outlasted(&reported.entries, &reported.capacity, &reported.evidence)
}

#[test]
fn what_waits_for_the_webhook_of_another_namespace_is_reported() {
    let broken = next_to_a_slow_one(nothing().job(0, "late", 0), 6000);
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].contains("I12: a launch of late"), "{broken:?}");
    let launched = nothing().job(0, "late", 0).job(1200, "late", 1).sent(1100);
    assert_eq!(next_to_a_slow_one(launched, 6000), Vec::<String>::new());
}

#[test]
fn a_loser_that_outlives_its_sibling_s_success_is_reported() {
    let won = || {
        nothing()
            .job(0, "late", 2)
            .pod(10, "late", 0, "Running", Some("a"))
            .pod(10, "late", 1, "Succeeded", Some("b"))
    };
    let broken = next_to_a_slow_one(won(), 6000);
    assert!(
        broken
            .iter()
            .any(|line| line.contains("I12: the kill of late-0")),
        "{broken:?}"
    );
    let killed = won().pod(900, "late", 0, "Failed", Some("a"));
    assert_eq!(next_to_a_slow_one(killed, 6000), Vec::<String>::new());
}

#[test]
fn who_has_the_slow_webhook_may_wait() {
    let mut reported = nothing().job(0, "late", 0);
    let Change::Job(job) = &mut reported.entries[0].change else {
        panic!("a job was reported");
    };
    job.metadata.namespace = Some("slow".to_owned());
    assert_eq!(next_to_a_slow_one(reported, 6000), Vec::<String>::new());
}
