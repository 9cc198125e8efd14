use super::*;
use crate::documents;

fn adoption(text: &str, settings: &Settings) -> Adoption {
    let documents = documents::parse(text).unwrap();
    adopt(
        &documents[0],
        settings,
        "2030-01-31T08:00:00Z".parse().unwrap(),
    )
    .unwrap()
}

fn hour() -> Settings {
    Settings {
        deadline: Some("1h".to_owned()),
        ..Settings::default()
    }
}

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: nightly}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}
";

#[test]
fn a_plain_job_needs_two_lines() {
    let adoption = adoption(JOB, &hour());
    assert_eq!(adoption.refusals, [""; 0]);
    assert_eq!(
        adoption.text(None).unwrap(),
        "# add to Job nightly\nmetadata:\n  annotations:\n    shed.dev/deadline: 1h\nspec:\n  \
         managedBy: shed.dev/deadline-controller\n"
    );
    let whole = adoption.text(Some("yaml")).unwrap();
    let again = documents::parse(&whole).unwrap();
    assert_eq!(again[0].object["spec"]["managedBy"], MANAGED_BY);
    assert_eq!(
        again[0].object["spec"]["template"]["spec"]["restartPolicy"],
        "Never"
    );
}

#[test]
fn a_cron_job_gets_them_in_the_template_of_its_jobs() {
    let cron = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: '0 1 * * *'
  jobTemplate:
    spec:
      template: {spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}
";
    let settings = Settings {
        idempotency: Some("Safe".to_owned()),
        ..hour()
    };
    let adoption = adoption(cron, &settings);
    assert_eq!(adoption.refusals, [""; 0]);
    let template = &adoption.lines["spec"]["jobTemplate"];
    assert_eq!(template["spec"]["managedBy"], MANAGED_BY);
    assert_eq!(
        template["metadata"]["annotations"]["shed.dev/idempotency"],
        "Safe"
    );
    assert_eq!(adoption.notes, [""; 0]);
}

#[test]
fn what_cannot_be_adopted_names_the_field_and_the_fix() {
    let gang = JOB.replace(
        "spec:\n",
        "spec:\n  scheduling: {schedulingPolicy: {gang: {}}}\n",
    );
    let other = JOB.replace("spec:\n", "spec:\n  managedBy: example.com/other\n");
    let wrong = Settings {
        deadline: Some("soon".to_owned()),
        ..Settings::default()
    };
    for (text, settings, words) in [
        (
            JOB,
            Settings::default(),
            "it has no deadline: add --deadline",
        ),
        (JOB, wrong, "annotation shed.dev/deadline: invalid"),
        (
            &other,
            hour(),
            "spec.managedBy: `example.com/other` runs it",
        ),
        (&gang, hour(), "spec.scheduling.schedulingPolicy.gang"),
    ] {
        let refusals = adoption(text, &settings).refusals;
        assert!(
            refusals.iter().any(|refusal| refusal.contains(words)),
            "{words}: {refusals:?}"
        );
    }
}

#[test]
fn an_adopted_job_needs_nothing() {
    let adopted = adoption(JOB, &hour()).text(Some("yaml")).unwrap();
    let again = adoption(&adopted, &Settings::default());
    assert_eq!(
        again.text(None).unwrap(),
        "# Job nightly has all it needs\n"
    );
}

#[test]
fn an_object_of_the_cluster_becomes_a_manifest() {
    let live = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "uid": "u", "resourceVersion": "7", "creationTimestamp": "x", "generation": 1,
            "labels": {"app": "a", "controller-uid": "u", "batch.kubernetes.io/job-name": "j"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}},
        "spec": {"selector": {"matchLabels": {"controller-uid": "u"}},
            "template": {"metadata": {"labels": {"controller-uid": "u", "job-name": "j", "app": "a"}}}},
        "status": {"active": 1},
    });
    assert_eq!(
        as_manifest(live),
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "j", "labels": {"app": "a"}, "annotations": {"a": "b"}},
            "spec": {"template": {"metadata": {"labels": {"app": "a"}}}},
        })
    );
}
