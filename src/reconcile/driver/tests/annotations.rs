//! What is written on the pods of running attempts.

use std::collections::HashMap;

use shed_core::plan::JobReport;
use shed_core::time::Span;

use super::*;
use crate::context::attempt_annotations::AnnotationSettings;
use crate::job::disruption_cost::AT_RISK;

const ALL: AnnotationSettings = AnnotationSettings {
    deletion_cost: true,
    do_not_disrupt: true,
    expected_end: true,
};

/// A process that writes these annotations, two minutes later.
fn process(api: &Apiserver, annotations: AnnotationSettings) -> Process {
    let mut process = Process::start(api);
    let context = Arc::get_mut(&mut process.context).expect("no pass has begun");
    context.annotations = annotations;
    let two_minutes = Span::from_seconds(120);
    process.context.clock.skip_for_tests(two_minutes);
    process
}

/// A job of two tasks that have run for two minutes, and whose deadline leaves no time for another attempt.
async fn two_at_risk(annotations: AnnotationSettings) -> (Apiserver, Process) {
    let (api, _) = two_running("").await;
    let process = process(&api, annotations);
    let deadline = api.job().status.clone().unwrap().deadline.unwrap();
    let report = JobReport {
        estimated_completion: Some(clock::instant(&deadline).plus(Span::from_seconds(-60))),
        attempt_slot_seconds: Some(600.0),
        ..fixtures::report(api.job().metadata.uid.as_deref().unwrap())
    };
    let ticks = process.context.clock.ticks();
    let plan_slices = &process.context.plan_slices;
    plan_slices.publish(HashMap::new(), vec![(report, true)], ticks);
    (api, process)
}

fn patches(api: &Apiserver) -> usize {
    let said = api.said();
    said.iter()
        .filter(|words| words.starts_with("PATCH pod"))
        .count()
}

#[tokio::test]
async fn attempts_at_risk_are_annotated_once() {
    let (api, process) = two_at_risk(ALL).await;
    process.look(&api).await.unwrap();
    let written = api.call("PATCH pod 1-0").body["metadata"]["annotations"].clone();
    assert_eq!(written[api::ANNOTATION_DELETION_COST], AT_RISK.to_string());
    assert_eq!(written[api::ANNOTATION_DO_NOT_DISRUPT], "true");
    assert_eq!(written[api::ANNOTATION_SAFE_TO_EVICT], "false");
    assert!(written[api::ANNOTATION_EXPECTED_END].is_string());
    assert_eq!(patches(&api), 2);
    process.look(&api).await.unwrap();
    assert_eq!(patches(&api), 0);
    let writes = r#"shed_apiserver_writes_total{operation="annotate_pod"} 2"#;
    let page = process.context.metrics.page().unwrap();
    assert!(page.contains(writes), "{page}");
    // The next leader reads them from the pods.
    let (next, report) = (self::process(&api, ALL), |process: &Process| {
        process
            .context
            .plan_slices
            .report(api.job().metadata.uid.as_deref().unwrap())
    });
    let known = report(&process).unwrap();
    let ticks = next.context.clock.ticks();
    let plan_slices = &next.context.plan_slices;
    plan_slices.publish(HashMap::new(), vec![(known, true)], ticks);
    next.look(&api).await.unwrap();
    assert_eq!(patches(&api), 0);
}

#[tokio::test]
async fn a_refused_annotation_harms_no_pass_and_waits_a_minute() {
    let (api, process) = two_at_risk(ALL).await;
    api.refuse("PATCH pod", 403, "Forbidden", "a policy");
    process.look(&api).await.unwrap();
    assert_eq!(patches(&api), 2);
    process.look(&api).await.unwrap();
    assert_eq!(patches(&api), 0);
}

#[tokio::test]
async fn nothing_is_annotated_unless_it_is_switched_on() {
    let (api, process) = two_at_risk(AnnotationSettings::default()).await;
    process.look(&api).await.unwrap();
    assert_eq!(patches(&api), 0);
}
