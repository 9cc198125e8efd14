//! The program against a mock apiserver: what it asks for, and what it says when that fails.

mod mock;

use std::io::Read;
use std::process::Stdio;

use mock::{Answer, Apiserver, Asked, forbidden, not_found};
use serde_json::{Value, json};

const OWN: &str = "/apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs";
const ALL: &str = "/apis/shed.dev/v1alpha1/deadlinejobs";
const JOBS: &str = "/apis/batch/v1/namespaces/team-a/jobs";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/shed-system/leases/shed";
const FORWARD: &str = "/api/v1/namespaces/shed-system/pods/shed-abc/portforward";

fn deadline_job(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("uid-of-{name}")},
        "spec": {"completions": 2, "idempotency": "Safe", "template": {}}, "status": status,
    })
}

fn running(record: Option<Value>) -> Value {
    let mut status = json!({"phase": "Running", "deadline": "2199-01-31T08:00:00Z", "pocd": "0.953", "active": 2});
    if let Some(record) = record {
        status["record"] = record;
    }
    status
}

fn record(omitted: i32) -> Value {
    json!({"time": "2030-01-31T07:39:00Z", "omittedAttempts": omitted, "attempts": [
        {"task": 0, "attempt": 0, "kind": "Original", "node": "worker-1", "startTime": "2030-01-31T07:00:00Z",
         "progress": "0.420", "state": "Running"}]})
}

/// A Lease that was renewed at this time of the apiserver's clock. The leader's own clock is an hour behind.
fn lease_at(holder: &str, time: &str) -> Answer {
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 12, "renewTime": "2030-01-31T06:40:00.000000Z"});
    let metadata = json!({"name": "shed", "managedFields": [{"manager": "shed", "time": time}]});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
    Answer::Json(200, lease)
}

fn lease(holder: &str) -> Answer {
    lease_at(holder, "2030-01-31T07:39:58Z")
}

fn list(items: Vec<Value>, next: Option<String>) -> Answer {
    let metadata = json!({"resourceVersion": "1", "continue": next});
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items});
    Answer::Json(200, list)
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn a_job_is_shown_in_every_form() {
    let server = Apiserver::start("forms", |asked| match asked.path.strip_prefix(OWN) {
        Some("/nightly") => Answer::Json(200, deadline_job("nightly", &running(Some(record(0))))),
        _ if asked.path == LEASE => lease("shed-abc_1-1"),
        _ => not_found(),
    });
    says(
        &server.succeeds(&["status", "nightly"]),
        &["team-a/nightly", "0.953", "worker-1", "42 %"],
    );
    says(
        &server.succeeds(&["explain", "nightly"]),
        &["Decisions about clones", "None: no task was late"],
    );
    says(
        &server.succeeds(&["timeline", "nightly"]),
        &["0.0", "█", "times in UTC"],
    );
    let json: Value =
        serde_json::from_str(&server.succeeds(&["status", "nightly", "-o", "json"])).unwrap();
    assert_eq!(json["status"]["pocd"], "0.953");
    assert_eq!(json["record"]["attempts"][0]["node"], "worker-1");
    says(
        &server.succeeds(&["explain", "nightly", "-o", "yaml"]),
        &["name: nightly", "explained: []"],
    );
    // A pipe gets neither colors nor a second drawing.
    let watched = server.succeeds(&["status", "nightly", "--watch"]);
    assert!(!watched.contains('\u{1b}'), "{watched}");
    says(
        &server.fails(&["explain", "nightly", "--task", "2"]),
        &["--task 2", "the tasks 0 to 1"],
    );
    // Reading verbs write nothing.
    let methods: Vec<String> = server
        .asked()
        .into_iter()
        .map(|asked| asked.method)
        .collect();
    assert!(methods.iter().all(|method| method == "GET"), "{methods:?}");
}

#[test]
fn a_job_that_shed_only_watches_is_shown_without_advice() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "report", "namespace": "team-a", "uid": "u-1", "creationTimestamp": "2030-01-31T07:00:00Z",
            "annotations": {"shed.dev/deadline": "2199-01-31T08:00:00Z", "shed.dev/expected-task-duration": "10m"}},
        "spec": {"template": {"spec": {"containers": []}}}, "status": {"startTime": "2030-01-31T07:00:00Z", "active": 1}});
    let chosen = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"shed.dev/jobs": "watch"}}});
    let server = Apiserver::start("watched", move |asked| match asked.path.as_str() {
        "/api/v1/namespaces/team-a" => Answer::Json(200, chosen.clone()),
        OWN => list(vec![], None),
        JOBS => list(vec![job.clone()], None),
        path if path == format!("{JOBS}/report") => Answer::Json(200, job.clone()),
        _ => not_found(),
    });
    let neutral = "shed only watches this Job";
    for verb in ["status", "explain"] {
        let text = server.succeeds(&[verb, "report"]);
        says(&text, &["Expected", "PoCD         1.000", neutral]);
        assert!(!text.contains("managedBy"), "{text}");
    }
    says(
        &server.succeeds(&["timeline", "report"]),
        &["Job team-a/report: Running", neutral],
    );
    says(
        &server.succeeds(&["top"]),
        &["report", "0/1", "shed only watches the Jobs here"],
    );
    says(
        &server.fails(&["whatif", "report", "--slots", "2"]),
        &["shed only watches the Job report"],
    );
}

#[test]
fn an_adopted_job_is_shown_by_its_companion() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report", "uid": "u-1"}, "spec": {"template": {}}});
    let name: k8s_openapi::api::batch::v1::Job = serde_json::from_value(job.clone()).unwrap();
    let companion = shed::adopt::translate::companion_name(&name).unwrap();
    let mut object = deadline_job(&companion, &running(Some(record(0))));
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "report", "uid": "u-1", "controller": true}]);
    let path = format!("{OWN}/{companion}");
    let server = Apiserver::start("adopted", move |asked| match asked.path.as_str() {
        own if own == path => Answer::Json(200, object.clone()),
        other if other == format!("{JOBS}/report") => Answer::Json(200, job.clone()),
        _ => not_found(),
    });
    let text = server.succeeds(&["status", "report"]);
    says(&text, &["Job          team-a/report", "0.953"]);
}

#[test]
fn a_missing_right_names_verb_resource_namespace_and_fix() {
    let server = Apiserver::start("rights", |_| forbidden("no"));
    let text = server.fails(&["status", "nightly"]);
    says(
        &text,
        &[
            "you may not get deadlinejobs.shed.dev in namespace team-a",
            "ClusterRole `view`",
            "kubectl auth can-i get",
        ],
    );
    says(
        &server.fails(&["top"]),
        &["you may not list deadlinejobs.shed.dev in namespace team-a"],
    );
    says(
        &server.fails(&["nodes"]),
        &["you may not get leases.coordination.k8s.io in namespace shed-system"],
    );
    says(
        &server.fails(&["top", "-A"]),
        &["you may not list deadlinejobs.shed.dev in all namespaces"],
    );
}

#[test]
fn a_job_that_does_not_exist_is_named_with_similar_ones() {
    let server = Apiserver::start("missing", |asked| match asked.path.as_str() {
        OWN => {
            let names = ["nightly", "weekly"].map(|name| json!({"metadata": {"name": name}}));
            let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": names});
            Answer::Json(200, list)
        }
        _ => not_found(),
    });
    let text = server.fails(&["status", "nihgtly"]);
    says(
        &text,
        &[
            "neither a DeadlineJob nor a Job named nihgtly in namespace team-a",
            "did you mean nightly?",
        ],
    );
}

#[test]
fn a_missing_shed_and_a_missing_cluster_have_distinct_errors() {
    let gone = Apiserver::gone("gone");
    says(
        &gone.fails(&["top"]),
        &["the apiserver does not respond", "--context"],
    );
    let expired = Apiserver::start("expired", |_| {
        mock::refusal(401, "Unauthorized", "Unauthorized")
    });
    says(
        &expired.fails(&["top"]),
        &["does not accept your credentials"],
    );
    // The apiserver answers without details if it does not know the resource.
    let unknown = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": "the server could not find the requested resource", "details": {}});
    let server = Apiserver::start("without", move |_| Answer::Json(404, unknown.clone()));
    says(
        &server.fails(&["top"]),
        &[
            "does not know deadlinejobs.shed.dev",
            "shed is not installed",
        ],
    );
    let output = server
        .command(&["top", "--kubeconfig", "/does/not/exist"])
        .output()
        .unwrap();
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["--kubeconfig /does/not/exist"],
    );
    says(&server.fails(&["top", "--context", "other"]), &["other"]);
}

#[test]
fn an_older_operator_and_no_operator_are_named() {
    let server = Apiserver::start("older", |asked| match asked.path.as_str() {
        path if path == format!("{OWN}/nightly") => {
            Answer::Json(200, deadline_job("nightly", &running(None)))
        }
        LEASE => lease("shed-abc_1-1"),
        FORWARD => Answer::ForwardRefused,
        _ => not_found(),
    });
    let text = server.succeeds(&["status", "nightly"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    says(
        &text,
        &["no record of its attempts", "from version 0.1.0 on"],
    );

    let server = Apiserver::start("none", |asked| match asked.path.as_str() {
        path if path == format!("{OWN}/nightly") => {
            Answer::Json(200, deadline_job("nightly", &running(Some(record(0)))))
        }
        _ => not_found(),
    });
    let text = server.succeeds(&["status", "nightly"]);
    says(
        &text,
        &["No operator leads: the Lease shed-system/shed does not exist."],
    );
    says(
        &server.fails(&["nodes"]),
        &["no operator leads", "--shed-namespace"],
    );
    let server = Apiserver::start("expired-lease", |asked| match asked.path.as_str() {
        LEASE => lease_at("shed-abc_1-1", "2030-01-31T07:00:00Z"),
        _ => not_found(),
    });
    says(
        &server.fails(&["nodes"]),
        &["no operator leads: the Lease shed-system/shed expired 39m43s ago"],
    );
}

#[test]
fn the_leader_answers_through_a_forwarded_port() {
    let server = Apiserver::start("leader", |asked| match asked.path.as_str() {
        LEASE => lease("shed-abc_1-1"),
        FORWARD => Answer::Forward(Box::new(|path| match path {
            "/v1/jobs" => (
                200,
                json!({"time": "2030-01-31T07:39:00Z", "total": 2, "continue": "0.412/team-b/hourly/Job", "jobs": [
                {"namespace": "team-b", "name": "hourly", "kind": "DeadlineJob", "phase": "Running", "pocd": "0.412", "tasks": 9}]}),
            ),
            "/v1/jobs?continue=0.412/team-b/hourly/Job" => (
                200,
                json!({"time": "2030-01-31T07:39:00Z", "total": 2, "jobs": [
                {"namespace": "team-c", "name": "daily", "kind": "Job", "phase": "Running", "pocd": "0.777", "tasks": 3}]}),
            ),
            "/v1/nodes" => (
                200,
                json!({"nodes": [{"name": "worker-2", "pace": "0.300", "verdict": "Slow", "witnesses": []}]}),
            ),
            _ => (404, json!({"error": "no such path"})),
        })),
        _ => not_found(),
    });
    says(
        &server.succeeds(&["top", "-A"]),
        &["team-b", "hourly", "0.412", "team-c", "daily"],
    );
    says(&server.succeeds(&["nodes"]), &["worker-2", "Slow", "0.300"]);
}

#[test]
fn what_needs_the_leader_says_how_to_let_it_answer() {
    let server = Apiserver::start("silent", |asked| match asked.path.as_str() {
        LEASE => lease("shed-abc_1-1"),
        FORWARD => Answer::ForwardRefused,
        _ => not_found(),
    });
    says(
        &server.fails(&["nodes"]),
        &["shed-abc does not listen on port 9444", "askAddress"],
    );
}

/// A job with one attempt in its record. Of another one only the pod is known.
fn with_a_pod(asked: &Asked) -> Answer {
    let pod = json!({
        "metadata": {"name": shed::pod_names::attempt_pod("nightly", "uid-of-nightly", 1, 0), "namespace": "team-a",
            "uid": "p", "labels": {"shed.dev/job-uid": "uid-of-nightly", "shed.dev/attempt-kind": "original"},
            "ownerReferences": [{"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "nightly",
                "uid": "uid-of-nightly", "controller": true}]},
        "spec": {"nodeName": "worker-9", "containers": [{"name": "task"}]}, "status": {"phase": "Pending"},
    });
    match asked.path.as_str() {
        path if path == format!("{OWN}/nightly") => {
            Answer::Json(200, deadline_job("nightly", &running(Some(record(1)))))
        }
        "/api/v1/namespaces/team-a/pods" => {
            assert!(
                asked.query.contains("job-uid%3Duid-of-nightly"),
                "{asked:?}"
            );
            list(vec![pod], None)
        }
        _ => not_found(),
    }
}

#[test]
fn attempts_that_the_record_leaves_out_come_from_the_pods() {
    let server = Apiserver::start("pods", with_a_pod);
    for verb in ["status", "timeline", "explain"] {
        let text = server.succeeds(&[verb, "nightly"]);
        assert!(!text.contains("not listed"), "{text}");
    }
    let text = server.succeeds(&["status", "nightly"]);
    says(&text, &["worker-1", "worker-9", "Pending"]);
    let asked = server.asked();
    let forward = asked
        .iter()
        .find(|asked| asked.path.contains("portforward"));
    assert!(forward.is_none(), "{forward:?}");
}

#[test]
fn without_the_right_to_list_pods_the_record_is_shown() {
    let server = Apiserver::start("no-pods", |asked| match asked.path.as_str() {
        "/api/v1/namespaces/team-a/pods" => forbidden("no"),
        _ => with_a_pod(asked),
    });
    let text = server.succeeds(&["status", "nightly"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    says(
        &text,
        &[
            "worker-1",
            "1 attempt is not listed",
            "Only the record of the status: you may not list pods in namespace team-a",
        ],
    );
}

#[test]
fn top_falls_back_to_what_the_user_may_read() {
    let server = Apiserver::start("fallback", |asked| match asked.path.as_str() {
        OWN => list(vec![deadline_job("nightly", &running(None))], None),
        LEASE => lease("shed-abc_1-1"),
        ALL => forbidden("no"),
        FORWARD => forbidden("User \"u\" cannot create resource \"pods/portforward\""),
        _ => not_found(),
    });
    let text = server.succeeds(&["top", "-A"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    says(
        &text,
        &[
            "nightly",
            "you may not create pods/portforward in namespace shed-system",
            "Only namespace team-a",
        ],
    );
}

/// Ten thousand jobs, in pages of the size that the client asks for.
fn many(asked: &Asked) -> Answer {
    let value = |name: &str| {
        let pairs = asked
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value.parse::<usize>().unwrap())
            .next()
    };
    let (limit, start) = (
        value("limit").expect("a limit"),
        value("continue").unwrap_or(0),
    );
    let end = (start + limit).min(10_000);
    let items = (start..end).map(|number| deadline_job(&format!("job-{number}"), &running(None)));
    list(items.collect(), (end < 10_000).then(|| end.to_string()))
}

#[test]
fn ten_thousand_jobs_are_read_in_pages() {
    let server = Apiserver::start("many", many);
    assert_eq!(server.succeeds(&["top"]).lines().count(), 10_001);
    assert!(
        server.asked().len() >= 10,
        "{} requests",
        server.asked().len()
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let server = Apiserver::start("pipe", many);
    let mut command = server.command(&["top"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The text is larger than a pipe's buffer, so the program still writes when the pipe closes.
    let mut first = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
