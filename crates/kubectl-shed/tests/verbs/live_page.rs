//! `page`: the program serves the page to clients of this machine, and reads with the rights of the kubeconfig.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::mock::{Answer, Apiserver, Asked, forbidden, not_found};

const ALL: &str = "/apis/shed.dev/v1alpha1/deadlinejobs";
const TEAM: &str = "/apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs";

/// The running program. It ends with the test.
struct Page {
    child: Child,
    /// Such as `127.0.0.1:40123`.
    host: String,
    /// The secret path, with slashes around it.
    path: String,
    /// What it printed after the address.
    words: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Page {
    fn of(mock: &Apiserver, arguments: &[&str]) -> Self {
        let mut command = mock.command(&[&["page"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next().unwrap().unwrap();
        let words = lines.nth(1).unwrap().unwrap();
        let (host, path) = address
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        Self {
            child,
            host: host.to_owned(),
            path: format!("/{path}"),
            words,
        }
    }

    /// Status, head and body of the answer.
    fn send(&self, method: &str, path: &str, host: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.send("GET", &format!("{}{path}", self.path), &self.host);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

fn job(name: &str, status: &Value) -> Value {
    json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": name, "resourceVersion": "1"},
        "spec": {"completions": 10_000, "idempotency": "Safe", "template": {}}, "status": status})
}

/// A job of 10 000 tasks that is at risk, one that has ended, and one with a record that this program does not know.
fn jobs() -> Vec<Value> {
    let record = json!({"time": "2030-01-31T07:39:00Z", "omittedAttempts": 180, "attempts": [
        {"task": 9, "attempt": 0, "kind": "Original", "state": "Running", "progress": "0.420"}],
        "decisions": [{"time": "2030-01-31T07:30:00Z", "task": 9, "verdict": "Refused", "reason": "Capacity"}]});
    let running = json!({"phase": "Running", "pocd": "0.412", "active": 181, "record": record,
        "conditions": [{"type": "DeadlineAtRisk", "status": "True", "reason": "TasksSlow", "message": "m",
            "lastTransitionTime": "2030-01-31T07:30:00Z"}]});
    let ended = json!({"phase": "Complete", "completionTime": "2030-01-31T07:00:00Z"});
    let older = json!({"phase": "Running", "pocd": "0.900", "record": {"moment": 3}});
    vec![
        job("big", &running),
        job("over", &ended),
        job("older", &older),
    ]
}

fn pods() -> Vec<Value> {
    let pod = |task: u32| {
        json!({"metadata": {"name": shed::pod_names::attempt_pod("big", "big", task, 0), "namespace": "team-a",
                "uid": format!("p{task}"), "labels": {"shed.dev/job-uid": "big", "shed.dev/attempt-kind": "original"},
                "ownerReferences": [{"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "big", "uid": "big",
                    "controller": true}]},
            "spec": {"nodeName": "worker-1", "containers": [{"name": "task"}]}, "status": {"phase": "Pending"}})
    };
    (10..190).map(pod).collect()
}

/// A cluster whose operator is down. `lists` are the paths of DeadlineJobs that the user may list.
fn cluster(name: &str, lists: &'static [&'static str]) -> Apiserver {
    Apiserver::start(name, move |asked: &Asked| match asked.path.as_str() {
        ALL | TEAM if !lists.contains(&asked.path.as_str()) => forbidden("no"),
        // A watch without news.
        ALL | TEAM if asked.query.contains("watch=") => {
            std::thread::sleep(Duration::from_secs(1));
            Answer::Text("")
        }
        ALL | TEAM => list("DeadlineJobList", jobs()),
        "/api/v1/namespaces/team-a/pods" => {
            assert!(
                asked.query.contains("status.phase%21%3DSucceeded"),
                "{asked:?}"
            );
            list("PodList", pods())
        }
        "/api/v1/namespaces/team-a/events" => {
            let event = json!({"metadata": {"name": "e"}, "involvedObject": {}, "type": "Warning", "reason": "DeadlineAtRisk",
                "message": "late", "count": 2, "lastTimestamp": "2030-01-31T07:30:00Z"});
            list("EventList", vec![event])
        }
        _ => not_found(),
    })
}

fn list(kind: &str, items: Vec<Value>) -> Answer {
    let metadata = json!({"resourceVersion": "1"});
    Answer::Json(
        200,
        json!({"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items}),
    )
}

fn names(list: &Value) -> Vec<&str> {
    let jobs = list["jobs"].as_array().unwrap().iter();
    jobs.map(|job| job["name"].as_str().unwrap()).collect()
}

#[test]
fn jobs_are_listed_by_risk_and_ended_ones_on_demand() {
    let mock = cluster("page-list", &[ALL]);
    let page = Page::of(&mock, &[]);
    assert!(
        page.words.contains("the jobs of all namespaces"),
        "{}",
        page.words
    );
    let list = page.get("api/jobs");
    assert_eq!(names(&list), ["big", "older"]);
    assert_eq!(
        (&list["total"], &list["namespace"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(list["jobs"][0]["risk"]["cause"], "TasksSlow");
    let all = page.get("api/jobs?ended=true");
    assert_eq!(names(&all), ["big", "older", "over"]);
    let first = page.get("api/jobs?limit=1");
    assert_eq!((names(&first), &first["total"]), (vec!["big"], &json!(2)));
}

#[test]
fn a_large_job_is_shown_with_its_pods_without_an_operator() {
    let mock = cluster("page-job", &[ALL]);
    let page = Page::of(&mock, &[]);
    let job = page.get("api/jobs/team-a/big");
    assert_eq!(job["tasks"], 10_000);
    let attempts = job["record"]["attempts"].as_array().unwrap();
    assert_eq!(
        (attempts.len(), &job["record"]["omittedAttempts"]),
        (181, &json!(0))
    );
    assert_eq!(attempts[0]["progress"], "0.420");
    assert_eq!(
        job["explained"][0]["why"],
        "no capacity was left for a clone"
    );
    assert_eq!(job["events"][0]["reason"], "DeadlineAtRisk");
    let notes = job["notes"].to_string();
    assert!(notes.contains("No operator leads"), "{notes}");
    // Further readings of an unchanged job ask for nothing more.
    let reads = || {
        mock.asked()
            .iter()
            .filter(|asked| asked.path.ends_with("/pods"))
            .count()
    };
    let before = reads();
    page.get("api/jobs/team-a/big?kind=DeadlineJob");
    assert_eq!(reads(), before);
}

#[test]
fn a_record_of_another_version_is_named() {
    let mock = cluster("page-older", &[ALL]);
    let page = Page::of(&mock, &[]);
    let job = page.get("api/jobs/team-a/over");
    assert!(
        job["notes"]
            .to_string()
            .contains("no record of its attempts"),
        "{job}"
    );
    let (status, _, body) = page.send(
        "GET",
        &format!("{}api/jobs/team-a/none", page.path),
        &page.host,
    );
    assert_eq!(status, 404);
    assert!(body.contains("no such job that you may read"), "{body}");
}

#[test]
fn the_own_namespace_is_shown_without_the_right_to_all() {
    let mock = cluster("page-team", &[TEAM]);
    let page = Page::of(&mock, &[]);
    assert!(
        page.words.contains("the jobs of namespace team-a"),
        "{}",
        page.words
    );
    assert_eq!(page.get("api/jobs")["namespace"], "team-a");
}

#[test]
fn a_kubeconfig_without_rights_is_reported_so() {
    let mock = cluster("page-none", &[]);
    let said = mock.fails(&["page"]);
    assert!(
        said.contains("you may not list deadlinejobs.shed.dev in namespace team-a"),
        "{said}"
    );
    assert!(said.contains("kubectl auth can-i list"), "{said}");
}

#[test]
fn other_pages_and_programs_do_not_get_in() {
    let mock = cluster("page-guard", &[ALL]);
    let page = Page::of(&mock, &[]);
    let jobs = format!("{}api/jobs", page.path);
    let port = page.host.split_once(':').unwrap().1;
    for (path, host, status) in [
        (jobs.as_str(), page.host.clone(), 200),
        (&jobs, format!("localhost:{port}"), 200),
        (&jobs, format!("rebound.example:{port}"), 403),
        (&jobs, "127.0.0.1".to_owned(), 403),
        ("/api/jobs", page.host.clone(), 404),
        ("/", page.host.clone(), 404),
        (
            "/00000000000000000000000000000000/api/jobs",
            page.host.clone(),
            404,
        ),
    ] {
        let (found, head, body) = page.send("GET", path, &host);
        assert_eq!(found, status, "{path} {host}: {body}");
        assert!(!head.contains("access-control"), "{head}");
        assert!(
            head.contains("default-src 'none'") && head.contains("nosniff"),
            "{head}"
        );
        assert!(status == 200 || !body.contains("big"), "{body}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(page.send(method, &jobs, &page.host).0, 405, "{method}");
    }
    let (status, _, body) = page.send("GET", &page.path, &page.host);
    assert!(
        status == 200 && body.starts_with("<!doctype html>"),
        "{body}"
    );
    let script = format!("{}assets/app.js", page.path);
    assert!(
        page.send("GET", &script, &page.host)
            .1
            .contains("text/javascript")
    );
    // The program itself only reads.
    assert!(mock.asked().iter().all(|asked| asked.method == "GET"));
}
