//! One ConfigMap in an apiserver in memory, in simulated time.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use shed_core::ids::{JobClass, JobKey, Tenant};
use shed_core::memory::{Memory, PastJob};
use shed_core::time::{Instant, Span};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::format::{Fault, Sections, TEXT_MAX, VERSION, decode, encode};
use super::metrics::{BROKEN, NEWER, StateMetrics, UNREADABLE};
use super::store::ENTRY;
use super::*;
use crate::api::Quantile;
use crate::completion_history::{Completion, CompletionHistory};
use crate::deadline_totals::{DeadlineOutcome, DeadlineTotals, JobWithDeadline};
use crate::metrics::{Metrics, loose_counter};
use crate::validate::Workflow;
use crate::workflow_runs::{StageOfRun, WorkflowRuns};
use shed_core::workflow::JobState;

mod apiserver_faults;
mod totals;

#[derive(Default)]
struct World {
    map: Option<Value>,
    version: u64,
    /// Writes, in order.
    calls: Vec<String>,
    /// Refuses calls of this method with this code.
    refuses: Option<(Method, u16)>,
    /// An entry that another client writes before the next write.
    rival: Option<String>,
}

impl World {
    fn put(&mut self, text: Option<&str>) {
        self.version += 1;
        let labels = json!({"app": "shed"});
        let data = text.map(|text| json!({ENTRY: text, "other": "kept"}));
        self.map = Some(json!({"metadata": {"name": "shed-state", "labels": labels,
            "resourceVersion": self.version.to_string()}, "data": data}));
    }

    fn answer(&mut self, method: &Method, body: &Value) -> (u16, Value) {
        if let Some((_, code)) = self.refuses.as_ref().filter(|(one, _)| one == method) {
            return failure(*code, "Forbidden");
        }
        if *method != Method::GET
            && let Some(text) = self.rival.take()
        {
            self.put(Some(&text));
        }
        match *method {
            Method::GET => self
                .map
                .clone()
                .map_or(failure(404, "NotFound"), |map| (200, map)),
            Method::POST if self.map.is_some() => failure(409, "AlreadyExists"),
            Method::POST => {
                self.put(body["data"][ENTRY].as_str());
                (201, self.map.clone().unwrap_or_default())
            }
            _ => self.patch(body),
        }
    }

    fn patch(&mut self, body: &Value) -> (u16, Value) {
        let Some(map) = &mut self.map else {
            return failure(404, "NotFound");
        };
        if map["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
            return failure(409, "Conflict");
        }
        self.version += 1;
        map["metadata"]["resourceVersion"] = json!(self.version.to_string());
        map["data"][ENTRY] = body["data"][ENTRY].clone();
        (200, map.clone())
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": reason,
        "reason": reason});
    (code, status)
}

struct Apiserver {
    client: Client,
    world: Arc<Mutex<World>>,
}

impl Apiserver {
    fn new() -> Self {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let world = Arc::new(Mutex::new(World::default()));
        let served = Arc::clone(&world);
        tokio::spawn(async move {
            while let Some((request, respond)) = handle.next_request().await {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, answer) = {
                    let mut world = served.lock();
                    let answer = world.answer(&head.method, &body);
                    if head.method != Method::GET {
                        world.calls.push(format!("{} {}", head.method, answer.0));
                    }
                    answer
                };
                let answer = Body::from(answer.to_string().into_bytes());
                let response = Response::builder().status(code).body(answer);
                respond.send_response(response.unwrap());
            }
        });
        Self {
            client: Client::new(service, "shed-system"),
            world,
        }
    }

    fn with(text: &str) -> Self {
        let api = Self::new();
        api.world.lock().put(Some(text));
        api
    }

    fn text(&self) -> String {
        let map = self.world.lock().map.clone().unwrap();
        map["data"][ENTRY].as_str().unwrap_or_default().to_owned()
    }

    /// The writes since the last call of this function.
    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.world.lock().calls)
    }
}

/// A term of leadership: its writer, and the state that its planner has.
struct Term {
    writer: JoinHandle<()>,
    hand_over: HandOver,
    latest: Arc<LatestExperience>,
    totals: Arc<DeadlineTotals>,
    completions: Arc<CompletionHistory>,
    workflows: Arc<WorkflowRuns>,
    begun_with: State,
    metrics: StateMetrics,
}

impl Term {
    async fn begin(api: &Apiserver) -> Self {
        let metrics = Metrics::new().unwrap().state;
        let store = Store::open(&api.client, "shed-state", metrics.clone()).await;
        let begun_with = store.stored();
        let latest = Arc::new(LatestExperience::new(begun_with.planner.clone()));
        let (hand_over, requests) = hand_over();
        let source = Arc::clone(&latest);
        let counted = Counted::default();
        if let Some(stored) = store.totals() {
            counted.totals.lock().restore(stored);
            counted.restore(&begun_with);
        }
        let writer = run(
            store,
            counted.clone(),
            move || State {
                planner: source.get(),
                ..State::default()
            },
            requests,
        );
        Self {
            writer: tokio::spawn(writer),
            hand_over,
            latest,
            totals: counted.totals,
            completions: counted.completions,
            workflows: counted.workflows,
            begun_with,
            metrics,
        }
    }

    /// Jobs of this many classes have ended.
    fn learn(&self, classes: u32) {
        self.latest.set(experience(classes));
    }

    fn unusable(&self, reason: &'static str) -> u64 {
        self.metrics.unusable.with([reason]).get()
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

/// The experience of one job with three tasks of each of these classes and tenants.
fn experience(classes: u32) -> Durable {
    experience_of(classes, 1, 3)
}

/// The experience of this many classes and tenants, with the number of jobs of each and their tasks.
fn experience_of(classes: u32, jobs: u32, tasks: i64) -> Durable {
    let past = |number: u32| {
        let class = number / jobs;
        PastJob {
            ended: Instant(i64::from(number) + 1),
            key: JobKey::from(&*format!("job-{number}")),
            tenant: Tenant::from(&*format!("team-{class}")),
            class: JobClass::from(&*format!("class-{class}")),
            runs: (0..tasks).map(|task| Span(100_000_000 + task)).collect(),
        }
    };
    let past = (0..classes * jobs).map(past).collect();
    Memory::restored(Durable::default(), past, []).durable(Instant(10_000))
}

fn text_of(planner: Durable) -> String {
    let state = State {
        planner,
        ..State::default()
    };
    encode(state, Sections::new()).unwrap().0
}

const A_LITTLE: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn changes_are_written_every_30_s_at_most_and_rest_is_not() {
    let api = Apiserver::new();
    let term = Term::begin(&api).await;
    sleep(Duration::from_secs(3600)).await;
    assert!(api.writes().is_empty(), "nothing was learned");
    for second in 1..=3600 {
        term.learn(1 + second % 50);
        sleep(Duration::from_secs(1)).await;
    }
    let writes = api.writes();
    assert_eq!((&*writes[0], &*writes[1]), ("POST 201", "PATCH 200"));
    assert_eq!(writes.len(), 120, "in an hour");
    sleep(Duration::from_secs(60)).await;
    api.writes();
    sleep(Duration::from_secs(3600)).await;
    assert!(api.writes().is_empty(), "nothing was learned");
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_writes_and_the_next_leader_goes_on() {
    let api = Apiserver::new();
    api.world.lock().put(None);
    let first = Term::begin(&api).await;
    assert_eq!(first.begun_with, State::default());
    first.learn(3);
    first.hand_over.take_place().await;
    assert_eq!(api.writes(), ["PATCH 200"]);
    assert_eq!(
        api.world.lock().map.as_ref().unwrap()["metadata"]["labels"]["app"],
        "shed"
    );
    let second = Term::begin(&api).await;
    assert_eq!(second.begun_with.planner, experience(3));
    assert_eq!(second.metrics.restored.get(), 6, "classes and tenants");
    second.hand_over.take_place().await;
    assert!(api.writes().is_empty(), "nothing new");
}

#[tokio::test(start_paused = true)]
async fn completion_times_continue_with_the_next_leader() {
    let api = Apiserver::new();
    let first = Term::begin(&api).await;
    let completion = |at: i64| Completion {
        at: Instant(at * 1000),
        took: Span(60_000 + at),
    };
    for at in 0..5 {
        first.completions.see("uid", "team/nightly", completion(at));
    }
    first.hand_over.take_place().await;
    let stored = first.completions.to_store();
    assert_eq!(decode(&api.text()).unwrap().0.completions, stored);
    // The next leader's watch has shown a part of them and one more.
    let second = Term::begin(&api).await;
    assert_eq!(second.begun_with.completions, stored);
    for at in [3, 4, 5] {
        second
            .completions
            .see("uid", "team/nightly", completion(at));
    }
    second.hand_over.take_place().await;
    let known = second.completions.known("team/nightly", Quantile::Max);
    assert_eq!((known.runs, known.quantile), (6, Some(Span(60_005))));
    let stored = decode(&api.text()).unwrap().0.completions;
    assert_eq!(stored, second.completions.to_store());
    api.writes();
    second.hand_over.take_place().await;
    assert!(api.writes().is_empty(), "nothing new");
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_knows_when_a_run_began() {
    let api = Apiserver::new();
    let annotations = [("shed.dev/workflow".to_owned(), "etl-1".to_owned())];
    let workflow = Workflow::read(Some(&annotations.into())).unwrap().unwrap();
    let job = |uid, created| StageOfRun {
        uid,
        namespace: "team",
        stage: Some("extract"),
        created: Instant(created),
        workflow: &workflow,
    };
    let first = Term::begin(&api).await;
    first
        .workflows
        .see(&job("a", 1000), JobState::Complete(Instant(2000)));
    first.workflows.see(&job("b", 3000), JobState::Open);
    first.hand_over.take_place().await;
    let second = Term::begin(&api).await;
    let start = second.workflows.start(&job("c", 9000));
    assert_eq!(start, Instant(1000));
    second.hand_over.take_place().await;
    let stored = decode(&api.text()).unwrap().0.workflows;
    assert_eq!(stored, second.workflows.to_store());
    assert_eq!(stored.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn impossible_numbers_in_a_list_are_a_broken_state() {
    let huge = u64::from(u32::MAX) + 1;
    let longest = i64::MAX;
    for section in [
        format!(r#""completions":{{"team/nightly":[[1,60000,{huge}]]}}"#),
        format!(r#""completions":{{"team/nightly":[[1,{longest},1]]}}"#),
        r#""completions":{"team/nightly":[[1,0,1]]}"#.to_owned(),
        format!(r#""totals":{{"series":{{"team":{{"nightly":[1,2,{longest}]}}}}}}"#),
    ] {
        let api = Apiserver::with(&format!(r#"{{"version":1,{section}}}"#));
        let term = Term::begin(&api).await;
        assert_eq!(term.unusable(BROKEN), 1, "{section}");
        let known = term.completions.known("team/nightly", Quantile::Max);
        assert_eq!(known.runs, 0, "{section}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_writer_a_hand_over_does_not_wait_for_ever() {
    let (hand_over, requests) = hand_over();
    let begun = tokio::time::Instant::now();
    hand_over.take_place().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    drop(requests);
    hand_over.take_place().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_newer_version_is_left_until_it_is_gone() {
    let newer = r#"{"version":2,"planner":"of another form"}"#;
    let api = Apiserver::with(newer);
    let term = Term::begin(&api).await;
    assert_eq!(term.begun_with, State::default());
    assert_eq!(term.unusable(NEWER), 1);
    term.learn(1);
    sleep(Duration::from_secs(600)).await;
    term.hand_over.take_place().await;
    assert!(api.writes().is_empty());
    assert_eq!((api.text().as_str(), term.unusable(NEWER)), (newer, 1));
    api.world.lock().put(None);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(api.writes(), ["PATCH 200"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_state_is_replaced() {
    let sound = text_of(experience(1));
    let too_large = format!("{sound}{}", " ".repeat(TEXT_MAX));
    for broken in [
        "",
        "{",
        "[]",
        r#"{"planner":{}}"#,
        r#"{"version":0}"#,
        r#"{"version":-1}"#,
        r#"{"version":1,"planner":3}"#,
        r#"{"version":1,"completions":{"team/a":[[5,0,1]]}}"#,
        r#"{"version":1,"calibration":{"tenants":{"a":{"last":1,"moments":[]}}}}"#,
        &sound.replace("[100000000,", "[-100000000,"),
        &too_large,
    ] {
        let api = Apiserver::with(broken);
        let term = Term::begin(&api).await;
        let begun_with = (&term.begun_with, term.unusable(BROKEN));
        assert_eq!(begun_with, (&State::default(), 1), "{broken:.80}");
        sleep(Duration::from_secs(30) + A_LITTLE).await;
        assert_eq!(api.writes(), ["PATCH 200"], "{broken:.80}");
        let (state, _) = decode(&api.text()).unwrap();
        assert!(state.is_same(&State::default()));
        assert_eq!(
            api.world.lock().map.as_ref().unwrap()["data"]["other"],
            "kept"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_the_next_leader_would_refuse_replaces_no_sound_one() {
    let sound = text_of(experience(1));
    let api = Apiserver::with(&sound);
    let term = Term::begin(&api).await;
    let edited = sound.replace("[100000000,", "[-100000000,");
    let content: Value = serde_json::from_str(&edited).unwrap();
    let invalid = serde_json::from_value(content["planner"].clone()).unwrap();
    term.latest.set(invalid);
    sleep(Duration::from_secs(30) + A_LITTLE).await;
    assert!(api.writes().is_empty());
    assert_eq!((api.text(), term.metrics.write_errors.get()), (sound, 1));
}

#[test]
fn a_text_never_exceeds_its_limit_and_keeps_the_newest() {
    let all = experience_of(300, 8, 32);
    let state = State {
        planner: all.clone(),
        ..State::default()
    };
    let before = state.len();
    let (text, dropped) = encode(state, Sections::new()).unwrap();
    assert!(
        text.len() <= TEXT_MAX && text.len() > TEXT_MAX * 4 / 5,
        "{}",
        text.len()
    );
    let (read, _) = decode(&text).unwrap();
    assert_eq!(read.len() + dropped, before);
    let kept = &read.planner;
    let history = |durable: &Durable, class: &str| {
        let memory = Memory::restored(durable.clone(), vec![], []);
        memory.history().least(Some(&JobClass::from(class)))
    };
    assert!(history(kept, "class-299").is_some());
    assert!(history(&all, "class-60").is_some(), "256 are remembered");
    assert_eq!(history(kept, "class-60"), None);
}

#[test]
fn sections_of_others_are_kept_unless_there_is_no_capacity() {
    let text = format!(r#"{{"version":{VERSION},"digests":{{"a":[1,2]}}}}"#);
    let (state, others) = decode(&text).unwrap();
    assert_eq!(state, State::default());
    let (written, _) = encode(state, others).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["digests"], json!({"a": [1, 2]}));
    let huge = [("digests".to_owned(), json!("x".repeat(TEXT_MAX)))];
    let (written, dropped) = encode(State::default(), huge.into()).unwrap();
    assert!(written.len() < 200 && dropped == 0, "{written:.200}");
    assert_eq!(decode(r#"{"version":7}"#), Err(Fault::Newer(7)));
}
