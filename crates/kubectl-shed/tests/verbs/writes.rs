//! Which verbs write, and that they write only on request. Each verb runs to its end against an apiserver
//! that grants every request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shed::api::Ledger;
use shed_core::snapshot::Conclusion;
use shed_core::time::Instant;

use super::mock::{Answer, Apiserver, Asked, not_found};

const FINALIZER: &str = "shed.dev/attempt-tracking";

/// Command lines of each verb that only reads.
const READING: [(&str, &[&str]); 13] = [
    ("status", &["status nightly", "status nightly --watch"]),
    ("explain", &["explain nightly", "explain nightly --task 0"]),
    (
        "timeline",
        &["timeline nightly", "timeline nightly -o json"],
    ),
    // It does not end by itself. `live_page` holds that it only reads.
    ("page", &[]),
    ("top", &["top", "top -A", "top --watch"]),
    ("nodes", &["nodes"]),
    ("check", &["check -f tests/manifests/nightly.yaml"]),
    (
        "whatif",
        &["whatif nightly --slots 60", "whatif nightly --deadline 2h"],
    ),
    ("suggest", &["suggest nightly", "suggest --class report"]),
    (
        "adopt",
        &[
            "adopt job/loose --deadline 1h",
            "adopt loose --deadline 1h -o yaml",
        ],
    ),
    ("report", &["report -o TARGET"]),
    ("version", &["version", "version --client"]),
    ("completion", &["completion bash", "completion kubectl"]),
];

/// Command lines of each verb that writes: those that must write nothing, and one that writes with its words.
const WRITING: [(&str, &[&str], &str); 3] = [
    (
        "release",
        &["release nightly", "release --all --dry-run --yes"],
        "release nightly --yes",
    ),
    (
        "resume-clones",
        &["resume-clones --dry-run"],
        "resume-clones",
    ),
    (
        "stop-clones",
        &["stop-clones --dry-run", "stop-clones --all --dry-run"],
        "stop-clones --all",
    ),
];

fn list(items: Value) -> Answer {
    let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items});
    Answer::Json(200, list)
}

fn deadline_job() -> Value {
    // The record leaves attempts out, so that the pods are read too.
    let record = json!({"time": "2030-01-31T07:39:00Z", "omittedAttempts": 3});
    let labels = json!({"shed.dev/class": "report"});
    json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "d", "labels": labels,
            "creationTimestamp": "2030-01-31T07:00:00Z"},
        "spec": {"completions": 2, "idempotency": "Safe", "deadline": {"at": "2199-01-31T08:00:00Z"},
            "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}},
        "status": {"phase": "Running", "record": record}})
}

/// An earlier job of the class, for `suggest`.
fn completed_job() -> Value {
    let ledger = Ledger {
        finished: true,
        ending: Some(Conclusion::Complete),
        first_pass: Some(Instant(0)),
        last_win: Some(Instant(60_000)),
        ..Ledger::default()
    };
    let mut job = deadline_job();
    job["metadata"]["name"] = json!("earlier");
    job["status"] = json!({"phase": "Complete", "ledger": ledger});
    job
}

fn pod() -> Value {
    let owner = json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "nightly", "uid": "d",
        "controller": true});
    json!({"metadata": {"name": "nightly-0-0", "namespace": "team-a", "uid": "p", "finalizers": [FINALIZER],
        "ownerReferences": [owner]}, "status": {"phase": "Running"}})
}

fn loose_job() -> Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "loose", "namespace": "team-a", "uid": "j"},
        "spec": {"template": {"spec": pod}}})
}

/// A Lease that was renewed long ago by this machine's clock.
fn lease() -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "shed", "namespace": "shed-system"},
        "spec": {"holderIdentity": "shed-abc_1-1", "leaseDurationSeconds": 1}})
}

/// Answers of the leader's listener.
fn leader(path: &str) -> (u16, Value) {
    let path = path.split('?').next().unwrap_or_default();
    let answer = match path {
        "/v1/jobs" => json!({"jobs": []}),
        "/v1/nodes" => json!({"nodes": []}),
        _ => return (404, json!({"error": format!("no {path}")})),
    };
    (200, answer)
}

/// Every read is granted, and so is every write.
fn answer(asked: &Asked) -> Answer {
    if asked.method != "GET" {
        return Answer::Json(
            200,
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {}}),
        );
    }
    let (_, path) = asked.path.split_once("/apis/").unwrap_or(("", &asked.path));
    match path {
        "shed.dev/v1alpha1/deadlinejobs" | "shed.dev/v1alpha1/namespaces/team-a/deadlinejobs" => {
            list(json!([deadline_job(), completed_job()]))
        }
        "shed.dev/v1alpha1/namespaces/team-a/deadlinejobs/nightly" => {
            Answer::Json(200, deadline_job())
        }
        "batch/v1/namespaces/team-a/jobs/loose" => Answer::Json(200, loose_job()),
        "coordination.k8s.io/v1/leases" => list(json!([lease()])),
        "coordination.k8s.io/v1/namespaces/shed-system/leases/shed" => Answer::Json(200, lease()),
        "apiextensions.k8s.io/v1/customresourcedefinitions/deadlinejobs.shed.dev" => {
            let crd = <shed::api::DeadlineJob as kube::CustomResourceExt>::crd();
            Answer::Json(200, serde_json::to_value(crd).unwrap())
        }
        "/api/v1/pods" | "/api/v1/namespaces/team-a/pods" => list(json!([pod()])),
        "/api/v1/namespaces/shed-system/pods/shed-abc/portforward" => {
            Answer::Forward(Box::new(leader))
        }
        "/api/v1/namespaces/team-a" | "/api/v1/namespaces/shed-system" => namespace(path),
        path if path.ends_with('s') => list(json!([])),
        _ => not_found(),
    }
}

/// Clones are stopped in team-a alone.
fn namespace(path: &str) -> Answer {
    let annotations = match path.ends_with("team-a") {
        true => json!({"shed.dev/clones": "stop"}),
        false => json!({}),
    };
    let metadata = json!({"name": "x", "annotations": annotations});
    let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    Answer::Json(200, object)
}

/// Runs a command line, and returns its exit code and the requests that were no reads.
fn writes(name: &str, line: &str) -> (bool, Vec<Asked>) {
    let server = Apiserver::start(name, answer);
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.tar.gz"));
    let _ = std::fs::remove_file(&target);
    let line = line.replace("TARGET", target.to_str().unwrap());
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = server.run(&arguments);
    let written = server.asked().into_iter();
    let written = written.filter(|asked| asked.method != "GET").collect();
    (output.status.success(), written)
}

/// The verbs in the program's help, and what it says about each.
fn verbs() -> BTreeMap<String, String> {
    let help = super::run(&["--help"]).out;
    let (_, verbs) = help.split_once("Commands:\n").unwrap();
    let (verbs, _) = verbs.split_once("\n\n").unwrap();
    let pairs = verbs.lines().map(|line| {
        let (name, about) = line.trim().split_once(' ').unwrap();
        (name.to_owned(), about.trim().to_owned())
    });
    pairs.collect()
}

#[test]
fn each_verb_says_whether_it_writes() {
    let reading = READING.iter().map(|(verb, _)| *verb);
    let all = reading.chain(WRITING.iter().map(|(verb, ..)| *verb));
    let verbs = verbs();
    let known: BTreeSet<&str> = verbs.keys().map(String::as_str).collect();
    assert_eq!(known, all.collect(), "each verb has its command lines here");
    for (verb, about) in &verbs {
        let says = about.contains("(writes") || about.contains("(removes");
        let writes = WRITING.iter().any(|(other, ..)| other == verb);
        assert_eq!(says, writes, "{verb}: {about}");
    }
}

#[test]
fn a_verb_that_reads_sends_no_write() {
    for (verb, lines) in READING {
        for (number, line) in lines.iter().enumerate() {
            assert!(line.starts_with(verb), "{line}");
            let (succeeds, written) = writes(&format!("reads-{verb}-{number}"), line);
            assert!(succeeds, "`{line}` ends before it has done its work");
            assert!(written.is_empty(), "`{line}` writes {written:?}");
        }
    }
}

#[test]
fn a_verb_that_writes_does_so_only_with_its_words() {
    for (verb, silent, line) in WRITING {
        for (number, line) in silent.iter().enumerate() {
            assert!(line.starts_with(verb), "{line}");
            let (_, written) = writes(&format!("silent-{verb}-{number}"), line);
            assert!(written.is_empty(), "`{line}` writes {written:?}");
        }
        let (succeeds, written) = writes(&format!("writes-{verb}"), line);
        assert!(succeeds && !written.is_empty(), "`{line}` writes nothing");
        // It changes objects, and neither creates nor deletes any.
        let methods: BTreeSet<&str> = written.iter().map(|one| one.method.as_str()).collect();
        assert_eq!(methods, ["PATCH"].into(), "{line}: {written:?}");
    }
}
