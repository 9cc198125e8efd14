//! A secret that is planted wherever a user can write one must be nowhere in the bundle.

use super::*;

const PLANTED: &str = "hunter2-hunter2";

/// A DeadlineJob with the secret in each free field. The shape is that of a real object.
fn planted() -> Value {
    let container = json!({
        "name": "task", "image": "task:1", "args": ["--password", PLANTED], "command": ["run", PLANTED],
        "env": [{"name": "TOKEN", "value": PLANTED}],
        "livenessProbe": {"httpGet": {"port": 1, "path": format!("/x?{PLANTED}"),
            "httpHeaders": [{"name": "a", "value": PLANTED}]}},
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", PLANTED]}}},
        "resources": {"requests": {"cpu": "1"}},
    });
    json!({
        "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {
            "name": "nightly", "namespace": "team",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": format!("{{{PLANTED}}}"),
                "example.com/token": PLANTED,
            },
            "labels": {"shed.dev/class": "nightly", "example.com/l": PLANTED},
            "managedFields": [{"manager": PLANTED}],
        },
        "spec": {
            "completions": 4, "idempotency": "Safe",
            "progress": {"httpGet": {"port": 80, "path": format!("/progress?key={PLANTED}")}},
            "template": {
                "metadata": {"annotations": {"vault/secret": PLANTED}},
                "spec": {
                    "containers": [container], "initContainers": [container],
                    "hostAliases": [{"ip": "1.2.3.4", "hostnames": [PLANTED]}],
                    "volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"key": PLANTED}}}],
                    "nodeSelector": {"disk": "ssd"},
                },
            },
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "DeadlineAtRisk", "status": "True", "message": "task 3 is slow"}],
        },
    })
}

#[test]
fn a_planted_secret_is_nowhere_in_a_job() {
    let mut secrets = Secrets::default();
    let text = deadline_job(planted(), &mut secrets).to_string();
    assert!(!text.contains(PLANTED), "{text}");
    for kept in [
        "nightly",
        "task:1",
        "task 3 is slow",
        "\"cpu\":\"1\"",
        "ssd",
        "/progress?",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn a_removed_value_is_removed_from_logs_too() {
    let mut secrets = Secrets::default();
    let _ = deadline_job(planted(), &mut secrets);
    let log = secrets.scrubbed(&format!(
        "started with {PLANTED}, Authorization: Bearer abc.def\n"
    ));
    assert_eq!(log, "started with REMOVED, Authorization: REMOVED\n");
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl";
    assert_eq!(secrets.scrubbed(&format!("t={token}")), "t=REMOVED");
}

#[test]
fn checkpoints_are_removed_and_the_rest_of_the_ledger_stays() {
    let mut ledger = Ledger::default();
    let point = shed_core::snapshot::ResumePoint {
        progress: 0.5,
        checkpoint: PLANTED.into(),
    };
    let task = shed::api::TaskEntry {
        index: 3,
        next_attempt: 1,
        resume: Some(Box::new(point)),
        ..shed::api::TaskEntry::default()
    };
    ledger.tasks.insert(3, task);
    ledger.fence_token = 17;
    let mut job = planted();
    job["status"]["ledger"] = serde_json::to_value(&ledger).unwrap();
    assert!(job.to_string().contains(PLANTED));
    let mut secrets = Secrets::default();
    let redacted = deadline_job(job.clone(), &mut secrets);
    assert!(!redacted.to_string().contains(PLANTED), "{redacted}");
    assert_eq!(redacted["status"]["ledger"]["fenceToken"], 17);
    job["status"]["ledger"] = json!({"tasks": {"novel": PLANTED}});
    let redacted = deadline_job(job, &mut secrets);
    assert!(!redacted.to_string().contains(PLANTED), "{redacted}");
}

#[test]
fn a_deployment_keeps_the_settings_of_shed_alone() {
    let deployment = json!({
        "metadata": {"name": "shed", "annotations": {"x": PLANTED}},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [{
            "name": "operator", "image": "shed:0.1.0", "args": [PLANTED],
            "env": [
                {"name": "SHED_POLICY", "value": "shed-prime"},
                {"name": "OTEL_EXPORTER_OTLP_HEADERS", "value": format!("key={PLANTED}")},
            ],
        }]}}},
    });
    let mut secrets = Secrets::default();
    let redacted = workload(deployment, &mut secrets);
    assert!(!redacted.to_string().contains(PLANTED), "{redacted}");
    assert_eq!(
        redacted["settings"][0]["env"],
        json!({"SHED_POLICY": "shed-prime"})
    );
}
