//! Verbs against a mock of the apiserver.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::apiserver::Apiserver;

const PLANTED: &str = "hunter2-hunter2";
const LEASES: &str = "GET /apis/coordination.k8s.io/v1/leases";

fn list(kind: &str, version: &str, items: Value) -> Value {
    json!({"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": items})
}

fn namespace(name: &str, annotations: Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": name, "annotations": annotations}})
}

/// A mock with two namespaces that can be annotated.
fn namespaces(name: &str) -> Apiserver {
    let mock = Apiserver::new(name);
    for one in ["team-a", "shed-system"] {
        mock.on(
            &format!("GET /api/v1/namespaces/{one}"),
            namespace(one, json!({})),
        );
        mock.on(
            &format!("PATCH /api/v1/namespaces/{one}"),
            namespace(one, json!({})),
        );
    }
    mock
}

#[test]
fn clones_are_stopped_and_resumed_by_the_annotation() {
    let mock = namespaces("clones");
    let dry = mock.run(&["stop-clones", "--dry-run"]);
    assert!(
        dry.code == 0
            && dry
                .out
                .starts_with("dry run: would annotate namespace team-a"),
        "{dry:?}"
    );
    assert!(mock.writes().is_empty());
    let ran = mock.run(&["stop-clones", "-n", "team-a"]);
    assert!(
        ran.code == 0 && ran.out.starts_with("annotated namespace team-a"),
        "{ran:?}"
    );
    let all = mock.run(&["stop-clones", "--all"]);
    assert!(
        all.out
            .contains("all jobs of the cluster get no new clones"),
        "{all:?}"
    );
    mock.on(
        "GET /api/v1/namespaces/team-a",
        namespace("team-a", json!({"shed.dev/clones": "stop"})),
    );
    mock.on(
        "GET /api/v1/namespaces/shed-system",
        namespace("shed-system", json!({"shed.dev/clones": "stop"})),
    );
    let resumed = mock.run(&["resume-clones"]);
    assert!(
        resumed
            .out
            .contains("clones stay stopped in the whole cluster"),
        "{resumed:?}"
    );
    let bodies: Vec<(String, Value)> = mock
        .writes()
        .into_iter()
        .map(|write| (write.path, write.body))
        .collect();
    let patch = |value: Value| json!({"metadata": {"annotations": {"shed.dev/clones": value}}});
    assert_eq!(
        bodies,
        [
            ("/api/v1/namespaces/team-a".to_owned(), patch("stop".into())),
            (
                "/api/v1/namespaces/shed-system".to_owned(),
                patch("stop".into())
            ),
            ("/api/v1/namespaces/team-a".to_owned(), patch(Value::Null)),
        ]
    );
}

#[test]
fn clones_of_a_namespace_without_rights_or_without_existence() {
    let mock = namespaces("clones-without");
    mock.forbids("GET /api/v1/namespaces/team-a");
    let ran = mock.run(&["stop-clones"]);
    assert!(
        ran.code == 1
            && ran
                .err
                .contains("you may not get namespaces in namespace team-a"),
        "{ran:?}"
    );
    let ran = mock.run(&["stop-clones", "-n", "none"]);
    assert!(
        ran.code == 1 && ran.err.contains("no namespace none: check -n"),
        "{ran:?}"
    );
    let ran = mock.run(&["stop-clones", "--all", "-n", "team-a"]);
    assert!(
        ran.code == 1 && ran.err.contains("use one of them"),
        "{ran:?}"
    );
    assert!(mock.writes().is_empty());
}

fn pod(name: &str, finalizers: Value, deleted: bool) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("uid-{name}"), "finalizers": finalizers,
            "ownerReferences": [{"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "nightly",
                "uid": "d", "controller": true}]},
        "status": {"phase": "Running"},
    });
    if deleted {
        pod["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
    }
    pod
}

/// A mock with a job whose operator is gone: one pod that runs, one that hangs in its deletion, one of others.
fn without_operator(name: &str) -> Apiserver {
    let mock = Apiserver::new(name);
    let of_shed = json!(["shed.dev/attempt-tracking"]);
    let pods = json!([
        pod("runs", of_shed.clone(), false),
        pod("hangs", of_shed, true),
        pod("other", json!(["example.com/x"]), true),
    ]);
    mock.on(
        "GET /api/v1/namespaces/team-a/pods",
        list("PodList", "v1", pods),
    );
    mock.on(
        "GET /apis/batch/v1/namespaces/team-a/jobs",
        list("JobList", "batch/v1", json!([])),
    );
    let job = json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "d"}, "spec": {"of": "another version"}});
    let jobs = list("DeadlineJobList", "shed.dev/v1alpha1", json!([job]));
    mock.on(
        "GET /apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs",
        jobs,
    );
    for one in ["runs", "hangs"] {
        let answer = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": one}});
        mock.on(
            &format!("PATCH /api/v1/namespaces/team-a/pods/{one}"),
            answer,
        );
    }
    mock.on(
        LEASES,
        list(
            "LeaseList",
            "coordination.k8s.io/v1",
            json!([lease("shed-0_1", "01")]),
        ),
    );
    mock
}

fn lease(holder: &str, second: &str) -> Value {
    json!({"metadata": {"name": "shed", "namespace": "shed-system"}, "spec": {"holderIdentity": holder,
        "leaseDurationSeconds": 1, "renewTime": format!("2030-01-01T00:00:{second}.000000Z")}})
}

#[test]
fn pods_are_released_once_the_lease_is_no_longer_renewed() {
    let mock = without_operator("release");
    let dry = mock.run(&["release", "nightly", "--dry-run"]);
    assert!(
        dry.code == 0
            && dry
                .out
                .contains("pod team-a/hangs (Running, being deleted): the apiserver completes"),
        "{dry:?}"
    );
    let asked = mock.run(&["release", "nightly"]);
    assert!(
        asked.code == 1 && asked.err.contains("no terminal to ask on: add --yes"),
        "{asked:?}"
    );
    assert!(mock.writes().is_empty());
    let ran = mock.run(&["release", "nightly", "--yes"]);
    assert!(
        ran.code == 0 && ran.out.ends_with("released 2 of 2\n"),
        "{ran:?}"
    );
    let writes = mock.writes();
    let paths: BTreeSet<&str> = writes.iter().map(|write| write.path.as_str()).collect();
    let expected = [
        "/api/v1/namespaces/team-a/pods/hangs",
        "/api/v1/namespaces/team-a/pods/runs",
    ];
    assert_eq!(paths, expected.into());
    for write in &writes {
        assert_eq!(write.method, "PATCH", "never deletes");
        let metadata = write.body["metadata"].as_object().unwrap();
        let fields: Vec<&String> = metadata.keys().collect();
        assert_eq!(fields, ["$deleteFromPrimitiveList/finalizers", "uid"]);
    }
}

#[test]
fn a_leader_that_renews_its_lease_keeps_its_pods() {
    let mock = without_operator("release-led");
    let leases = |second| {
        list(
            "LeaseList",
            "coordination.k8s.io/v1",
            json!([lease("shed-0_1", second)]),
        )
    };
    mock.in_turn(LEASES, vec![leases("01"), leases("02")]);
    let ran = mock.run(&["release", "nightly", "--yes"]);
    assert!(
        ran.code == 1 && ran.err.contains("shed-0_1 leads in namespace shed-system"),
        "{ran:?}"
    );
    assert!(mock.writes().is_empty());
    mock.forbids(LEASES);
    let ran = mock.run(&["release", "nightly", "--yes"]);
    assert!(
        ran.code == 1 && ran.err.contains("cannot tell whether an operator runs"),
        "{ran:?}"
    );
    assert!(mock.writes().is_empty());
    let forced = mock.run(&["release", "nightly", "--yes", "--force"]);
    assert!(
        forced.code == 0 && forced.out.ends_with("released 2 of 2\n"),
        "{forced:?}"
    );
}

#[test]
fn a_release_of_a_job_that_does_not_exist_names_it() {
    let ran = without_operator("release-none").run(&["release", "weekly", "--yes"]);
    assert!(
        ran.code == 1
            && ran
                .err
                .contains("no job weekly in namespace team-a, and no pod of it"),
        "{ran:?}"
    );
}

/// A mock with an installation that has the planted secret wherever one can be.
fn installation(name: &str) -> Apiserver {
    let mock = Apiserver::new(name);
    let container = json!({"name": "task", "image": "task:1", "args": [PLANTED], "command": [PLANTED],
        "env": [{"name": "TOKEN", "value": PLANTED}]});
    let job = json!({
        "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "d",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"x\":\"{PLANTED}\"}}")}},
        "spec": {"completions": 1, "template": {"spec": {"containers": [container]}}},
        "status": {"phase": "Running", "ledger": {"form": 99, "tasks": [PLANTED]}},
    });
    let jobs = list("DeadlineJobList", "shed.dev/v1alpha1", json!([job]));
    mock.on(
        "GET /apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs",
        jobs,
    );
    let event = json!({"metadata": {"name": "e"}, "reason": "CloneStarted", "message": format!("saw {PLANTED}"),
        "reportingComponent": "shed.dev/deadline-controller",
        "involvedObject": {"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "nightly"}});
    mock.on(
        "GET /api/v1/namespaces/team-a/events",
        list("EventList", "v1", json!([event])),
    );
    let mut held = lease("shed-0_1", "01");
    held["metadata"]["annotations"] = json!({"shed.dev/version": "0.1.0", "other": PLANTED});
    mock.on(
        "GET /apis/coordination.k8s.io/v1/namespaces/shed-system/leases/shed",
        held,
    );
    let operator = json!({"containers": [{"name": "operator", "image": "shed:0.1.0", "args": ["operator", PLANTED],
        "env": [{"name": "SHED_POLICY", "value": "shed-prime"}, {"name": "KEY", "value": PLANTED}],
        "ports": [{"name": "metrics", "containerPort": 8080}]}]});
    let deployment = json!({"metadata": {"name": "shed", "namespace": "shed-system"},
        "spec": {"selector": {}, "template": {"spec": operator}}});
    let deployments = list("DeploymentList", "apps/v1", json!([deployment]));
    mock.on(
        "GET /apis/apps/v1/namespaces/shed-system/deployments",
        deployments,
    );
    let pod = json!({"metadata": {"name": "shed-0", "namespace": "shed-system", "annotations": {"x": PLANTED}},
        "spec": operator, "status": {"phase": "Running"}});
    mock.on(
        "GET /api/v1/namespaces/shed-system/pods",
        list("PodList", "v1", json!([pod])),
    );
    mock.text(
        "GET /api/v1/namespaces/shed-system/pods/shed-0/log",
        "line one\nauth hunter2-hunter2\n",
    );
    mock.text(
        "GET /api/v1/namespaces/shed-system/pods/shed-0:8080/proxy/metrics",
        "shed_jobs 1\nshed_x{label=\"hunter2-hunter2\"} 1\n",
    );
    mock
}

fn target(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    let _ = fs::remove_file(&path);
    path
}

/// All files below a folder with their text.
fn files(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn a_planted_secret_is_nowhere_in_a_report() {
    let mock = installation("report");
    let folder = target("report-folder");
    let ran = mock.run(&["report", "-o", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let names: BTreeSet<String> = found
        .iter()
        .map(|(path, _)| path.strip_prefix(&folder).unwrap().display().to_string())
        .collect();
    let expected = [
        "deadlinejobs/team-a/nightly.yaml",
        "errors.txt",
        "events.yaml",
        "operator/deployment-shed.yaml",
        "operator/lease.yaml",
        "operator/log-shed-0.txt",
        "operator/metrics-shed-0.txt",
        "operator/pod-shed-0.yaml",
        "versions.txt",
    ];
    // The mock has no CRD, which versions.txt says.
    let expected: BTreeSet<String> = expected
        .iter()
        .filter(|name| **name != "errors.txt")
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, expected, "{ran:?}");
    for (path, text) in &found {
        assert!(!text.contains(PLANTED), "{}: {text}", path.display());
    }
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(text("operator/log-shed-0.txt").contains("line one\nauth REMOVED\n"));
    assert!(text("operator/deployment-shed.yaml").contains("SHED_POLICY: shed-prime"));
    assert!(text("versions.txt").contains("the cluster has no CRD"));
    let log = mock
        .asked()
        .into_iter()
        .find(|request| request.path.ends_with("/log"))
        .unwrap();
    assert!(log.query.contains("tailLines=2000"), "{log:?}");
    assert!(mock.writes().is_empty());
}

#[test]
fn a_report_names_what_it_may_not_read_and_overwrites_nothing() {
    let mock = installation("report-without");
    mock.forbids("GET /api/v1/namespaces/shed-system/pods/shed-0/log");
    mock.forbids("GET /apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs");
    let archive = target("report.tar.gz");
    let path = archive.to_str().unwrap();
    let ran = mock.run(&["report", "-o", path]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in [
        "you may not list deadlinejobs.shed.dev in namespace team-a",
        "you may not get pods/log",
    ] {
        assert!(ran.err.contains(words), "{words}: {ran:?}");
    }
    let bytes = fs::read(&archive).unwrap();
    assert_eq!(bytes[..2], [0x1f, 0x8b], "gzip");
    let again = mock.run(&["report", "-o", path]);
    assert!(
        again.code == 1 && again.err.contains("exists: choose another path"),
        "{again:?}"
    );
}

#[test]
fn version_shows_the_operator_and_what_is_missing() {
    let mock = installation("version");
    let ran = mock.run(&["version"]);
    assert!(
        ran.out
            .contains("operator:     0.1.0 (leads)\ndeployment:   shed, image shed:0.1.0\n"),
        "{ran:?}"
    );
    assert!(
        ran.code == 1
            && ran
                .out
                .contains("unknown: the cluster has no CRD deadlinejobs.shed.dev"),
        "{ran:?}"
    );
    let json = mock.run(&["version", "-o", "json"]);
    let versions: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(versions["leader"], "0.1.0");
}

#[test]
fn adopt_of_a_job_of_the_cluster_prints_a_manifest() {
    let mock = Apiserver::new("adopt");
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "u", "resourceVersion": "7"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}, "status": {"active": 1}});
    mock.on("GET /apis/batch/v1/namespaces/team-a/jobs/nightly", job);
    let ran = mock.run(&["adopt", "nightly", "--deadline", "1h", "-o", "yaml"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.err
            .contains("managedBy of an existing Job cannot be changed"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("managedBy: shed.dev/deadline-controller"),
        "{ran:?}"
    );
    assert!(
        !ran.out.contains("uid") && !ran.out.contains("status"),
        "{ran:?}"
    );
    let none = mock.run(&["adopt", "job/weekly", "--deadline", "1h"]);
    assert!(
        none.code == 1 && none.err.contains("no Job weekly in namespace team-a"),
        "{none:?}"
    );
    assert!(mock.writes().is_empty());
}
