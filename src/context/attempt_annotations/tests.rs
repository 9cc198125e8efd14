use std::sync::Arc;

use super::*;
use crate::cluster::pod::PodFacts;
use crate::fixtures;
use crate::job::disruption_cost::{AT_RISK, AT_RISK_LATE};
use crate::validate::validate;

fn at(seconds: i64) -> Instant {
    Instant(seconds * 1000)
}

/// The pod of attempt 0-0 with these annotations.
fn pods(annotations: &str) -> JobPods {
    let yaml = format!(
        "{{metadata: {{name: p, uid: u, annotations: {{{annotations}}}, labels: {{shed.dev/job-uid: j, \
         shed.dev/task: '0', shed.dev/attempt: '0'}}}}, spec: {{containers: [{{name: c}}]}}}}"
    );
    let pod = PodFacts::from_pod(&serde_saphyr::from_str(&yaml).unwrap(), at(0));
    [((0, 0), Arc::new(pod))].into()
}

fn cost(deletion_cost: i32) -> PodAnnotations {
    PodAnnotations {
        deletion_cost,
        ..PodAnnotations::default()
    }
}

fn end(seconds: i64) -> PodAnnotations {
    PodAnnotations {
        expected_end: Some(at(seconds)),
        ..PodAnnotations::default()
    }
}

/// The values that are written, if a pod with these annotations should carry that.
fn written(annotations: &str, wanted: PodAnnotations) -> Vec<String> {
    let due = AnnotatedAttempts::default().due(
        &pods(annotations),
        vec![((0, 0), wanted)],
        (at(0), at(0)),
    );
    let changes = due.into_iter().flat_map(|due| due.changes);
    changes.map(|(_, value)| value).collect()
}

#[test]
fn a_deletion_cost_rises_twice_at_most_and_never_falls() {
    let shown = |cost: i32| format!("controller.kubernetes.io/pod-deletion-cost: '{cost}'");
    assert_eq!(written("", cost(AT_RISK)), [AT_RISK.to_string()]);
    let raised = [AT_RISK_LATE.to_string()];
    assert_eq!(written(&shown(AT_RISK), cost(AT_RISK_LATE)), raised);
    for (before, wanted) in [
        (AT_RISK, 0),
        (AT_RISK, AT_RISK),
        (AT_RISK_LATE, AT_RISK),
        (-7, 0),
    ] {
        assert!(written(&shown(before), cost(wanted)).is_empty());
    }
}

#[test]
fn an_expected_end_is_written_again_once_it_has_moved() {
    let shown = "shed.dev/expected-end: '1970-01-01T00:33:20Z'";
    assert_eq!(written("", end(2000)), ["1970-01-01T00:33:20Z"]);
    // By less than a tenth of 2200 s, and by less than a minute.
    assert!(written(shown, end(2200)).is_empty());
    assert_eq!(written(shown, end(2300)), ["1970-01-01T00:38:20Z"]);
    let soon = "shed.dev/expected-end: '1970-01-01T00:01:00Z'";
    assert!(written(soon, end(120)).is_empty());
    assert_eq!(written(soon, end(121)).len(), 1);
    assert!(
        written(soon, PodAnnotations::default()).is_empty(),
        "unknown again"
    );
}

#[test]
fn a_pod_is_written_once_a_minute_and_what_was_written_counts() {
    let mut annotated = AnnotatedAttempts::default();
    let due = |annotated: &mut AnnotatedAttempts, wanted, seconds| {
        let wanted = vec![((0, 0), wanted)];
        annotated.due(&pods(""), wanted, (at(0), at(seconds))).len()
    };
    assert_eq!(due(&mut annotated, cost(AT_RISK), 0), 1);
    // The apiserver refused it.
    annotated.note((0, 0), None, at(0));
    assert_eq!(due(&mut annotated, cost(AT_RISK), 59), 0);
    assert_eq!(due(&mut annotated, cost(AT_RISK), 60), 1);
    // The watch does not show it yet.
    annotated.note((0, 0), Some(cost(AT_RISK)), at(60));
    assert_eq!(due(&mut annotated, cost(AT_RISK), 200), 0);
    assert_eq!(due(&mut annotated, cost(AT_RISK_LATE), 200), 1);
}

#[test]
fn annotations_of_the_template_are_the_users() {
    let all = AnnotationSettings {
        deletion_cost: true,
        do_not_disrupt: true,
        expected_end: true,
    };
    let settings = |annotations: &str| {
        let change = format!(
            "template: {{metadata: {{annotations: {{{annotations}}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}"
        );
        all.unless_in_template_of(&validate(&fixtures::job(&change)).unwrap())
    };
    assert_eq!(settings(""), all);
    let cost = settings("controller.kubernetes.io/pod-deletion-cost: '1'");
    assert_eq!((cost.deletion_cost, cost.do_not_disrupt), (false, true));
    assert!(!settings("karpenter.sh/do-not-disrupt: 'false'").do_not_disrupt);
}

#[test]
fn an_attempt_gets_only_what_is_switched_on() {
    use shed_core::fixtures::{attempt, job};
    let job = job("a")
        .deadline_in(1000.0)
        .task(0, [attempt(0).launched(0.0)]);
    let job = job.build();
    let standing = Standing {
        is_at_risk: true,
        completion: None,
        now: at(500),
    };
    let report = JobReport {
        attempt_slot_seconds: Some(600.0),
        ..fixtures::report("a")
    };
    let wanted = |settings: AnnotationSettings| settings.wanted(&job, Some(&report), standing);
    assert_eq!(wanted(AnnotationSettings::default()), []);
    let one = |settings| wanted(settings)[0].1;
    let deletion_cost = AnnotationSettings {
        deletion_cost: true,
        ..AnnotationSettings::default()
    };
    assert_eq!(one(deletion_cost), cost(AT_RISK));
    let do_not_disrupt = AnnotationSettings {
        do_not_disrupt: true,
        ..AnnotationSettings::default()
    };
    assert!(one(do_not_disrupt).is_held);
    let expected_end = AnnotationSettings {
        expected_end: true,
        ..AnnotationSettings::default()
    };
    assert_eq!(one(expected_end), end(601));
}
