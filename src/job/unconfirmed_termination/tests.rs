use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use shed_core::plan::Move;
use shed_core::snapshot::AttemptKind;

use super::*;
use crate::api::Ledger;
use crate::cluster::pod::JobPods;
use crate::fixtures;
use crate::reconcile::mock::launch;
use crate::validate::validate;

/// A ledger with one attempt, and its pod that should have been gone at 10 s.
fn deleted(phase: &str) -> (Ledger, JobPods) {
    let mut ledger = Ledger::default();
    let Move::Launch(launch) = launch(0, AttemptKind::Original) else {
        unreachable!();
    };
    ledger.launch(&launch, Instant(0));
    let yaml = format!(
        "{{metadata: {{name: pod-0, labels: {{shed.dev/job-uid: j, shed.dev/attempt: '0', \
         batch.kubernetes.io/job-completion-index: '0'}}, deletionTimestamp: '1970-01-01T00:00:10Z'}}, \
         spec: {{nodeName: node-1, containers: [{{name: task}}]}}, status: {{phase: {phase}}}}}"
    );
    let pod = PodFacts::from_pod(&serde_saphyr::from_str(&yaml).unwrap(), Instant(0));
    (ledger, [((0, 0), Arc::new(pod))].into())
}

fn said(
    job: &str,
    (ledger, pods): &(Ledger, JobPods),
    nodes: &[Node],
    now: i64,
) -> Option<UnconfirmedTermination> {
    let job = validate(&fixtures::job(job)).unwrap();
    let stores = Stores::for_tests(vec![], vec![], nodes);
    let view = JobView {
        pods: pods.clone(),
        ..JobView::new(job.into(), ledger.clone(), Instant(now), Instant(now))
    };
    unconfirmed(&view, &stores)
}

const NONE: &str = "idempotency: None";
const LATE: i64 = 20_000;

fn node(ready: &str) -> Vec<Node> {
    let mut node = fixtures::node("node-1", 1);
    let conditions = node.status.as_mut().and_then(|s| s.conditions.as_mut());
    conditions.unwrap()[0].status = ready.to_owned();
    vec![node]
}

#[test]
fn nobody_is_reported_to_taint_a_healthy_node() {
    for phase in ["Running", "Pending", "Failed"] {
        let said = said(NONE, &deleted(phase), &node("True"), LATE).unwrap();
        assert_eq!(said.reason, reason::TERMINATION_NOT_REPORTED);
        assert!(said.message.contains("node-1 is Ready"), "{}", said.message);
        assert!(said.message.contains("pod-0"), "{}", said.message);
        assert!(!said.message.contains("taint"), "{}", said.message);
    }
    let (mut ledger, _) = deleted("Running");
    let placed = crate::api::NodeEntry {
        name: "node-1".to_owned(),
        boot: "boot-1".to_owned(),
    };
    ledger.place(0, 0, &placed);
    let vanished = said(NONE, &(ledger, JobPods::new()), &node("True"), LATE).unwrap();
    assert!(!vanished.message.contains("taint"), "{}", vanished.message);
    assert!(
        vanished.message.contains("restarted"),
        "{}",
        vanished.message
    );
}

#[test]
fn a_silent_node_may_be_tainted_and_a_missing_one_created() {
    let silent = said(NONE, &deleted("Running"), &node("Unknown"), LATE).unwrap();
    assert_eq!(silent.reason, reason::NODE_UNREACHABLE);
    let taint = "add the taint node.kubernetes.io/out-of-service to it";
    assert!(silent.message.contains(taint), "{}", silent.message);
    let missing = said(NONE, &deleted("Running"), &[], LATE).unwrap();
    assert_eq!(missing.reason, reason::NODE_UNREACHABLE);
    assert!(
        missing.message.contains("create a Node"),
        "{}",
        missing.message
    );
}

#[test]
fn who_waits_is_named_and_nothing_is_said_while_nobody_does() {
    let running = || deleted("Running");
    let waits = said(NONE, &running(), &node("Unknown"), LATE).unwrap();
    let retry = "the next attempt of task 0 waits for attempt 0 of task 0,";
    assert!(waits.message.starts_with(retry), "{}", waits.message);
    assert_eq!(
        said(NONE, &running(), &node("Unknown"), LATE - 1),
        None,
        "it may end yet"
    );
    assert_eq!(
        said("", &running(), &node("Unknown"), LATE),
        None,
        "it is replaced"
    );
    let policy = "podReplacementPolicy: Failed";
    assert!(said(policy, &running(), &node("Unknown"), LATE).is_some());
    let (mut ledger, pods) = running();
    ledger.ending = Some(shed_core::snapshot::Conclusion::Complete);
    let ends = said("", &(ledger.clone(), pods.clone()), &node("Unknown"), LATE).unwrap();
    assert!(
        ends.message.starts_with("the end of the job waits"),
        "{}",
        ends.message
    );
    ledger.finished = true;
    assert_eq!(said("", &(ledger, pods), &node("Unknown"), LATE), None);
}
