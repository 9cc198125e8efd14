//! An apiserver in memory, and one life of the operator's process that uses it. The apiserver keeps
//! one job and its pods, checks resourceVersions and uids, honors finalizers, and records every
//! call. After each write it checks the invariants. Tests compare the whole list of calls, so an
//! extra call fails like a missing one.

mod invariants;
mod kubelet;
mod process;
mod slow_webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::ObjectMeta;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shed_core::plan::Move;
use shed_core::snapshot::AttemptKind;
use shed_core::time::Instant;

use self::invariants::Invariants;
pub use self::process::Process;
pub use self::slow_webhook::{SLOW_NAMESPACE, WEBHOOK_TIME, slow_webhook};
use crate::api::{ATTEMPT_FINALIZER, DeadlineJob, JOB_TRACKING_FINALIZER};
use crate::clock;
use crate::cluster::pod::AttemptId;

/// One call: in words for the list, and with its content.
#[derive(Debug, Clone)]
pub struct Call {
    /// Such as `POST pod 2-0`: method, kind, and of a pod its task and attempt.
    pub words: String,
    /// Name of the pod, if it is about one.
    pub pod: String,
    /// The query.
    pub query: String,
    /// The body.
    pub body: Value,
}

/// Result of a call.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// It is carried out and answered.
    Served,
    /// The apiserver refuses: code, reason, message.
    Refused(u16, &'static str, &'static str),
    /// The connection breaks before the apiserver has the call.
    LostBefore,
    /// The connection breaks after the call was carried out.
    LostAfter,
}

type Script = Box<dyn FnMut(&Call) -> Fate + Send>;
type Refusal = (u16, &'static str, String);

/// Content of the apiserver.
pub struct World {
    /// The job, until it is deleted.
    pub job: Option<DeadlineJob>,
    /// The batch/v1 Job that it represents.
    pub batch: Option<Job>,
    /// Pods by name.
    pub pods: BTreeMap<String, Pod>,
    /// Access modes of claims, by name.
    pub claims: BTreeMap<String, Vec<&'static str>>,
    /// Answers of attempts to progress polls.
    pub answers: BTreeMap<AttemptId, String>,
    /// Every call so far.
    pub calls: Vec<Call>,
    /// The highest resourceVersion; each call is one more.
    pub version: u64,
    /// How much higher the versions of pods are, which may be in an etcd of their own.
    pub pods_apart: u64,
    /// Pods in one answer to a list that has a limit.
    pub page: usize,
    /// Its time; absent: this machine's.
    pub time: Option<Instant>,
    script: Script,
    invariants: Invariants,
}

/// The apiserver.
pub struct Apiserver {
    /// A client of it.
    pub client: Client,
    /// What the mock holds.
    pub world: Arc<Mutex<World>>,
}

impl Apiserver {
    /// Holds this job and nothing else. Must be called within a runtime.
    pub fn new(job: DeadlineJob) -> Self {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let world = Arc::new(Mutex::new(World {
            job: Some(job),
            batch: None,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            answers: BTreeMap::new(),
            calls: Vec::new(),
            script: Box::new(|_| Fate::Served),
            version: 100,
            pods_apart: 0,
            page: usize::MAX,
            time: None,
            invariants: Invariants::default(),
        }));
        let served = Arc::clone(&world);
        tokio::spawn(async move {
            while let Some((request, respond)) = handle.next_request().await {
                let call = Call::read(request).await;
                let answer = served.lock().take(call);
                match answer {
                    Some(answer) => respond.send_response(answer),
                    None => respond.send_error("the connection broke"),
                }
            }
        });
        Self {
            client: Client::new(service, "default"),
            world,
        }
    }

    /// Its time.
    pub fn now(&self) -> Instant {
        self.world.lock().now()
    }

    /// Decides the fate of calls from now on.
    pub fn script(&self, script: impl FnMut(&Call) -> Fate + Send + 'static) {
        self.world.lock().script = Box::new(script);
    }

    /// Refuses every call that begins with these words.
    pub fn refuse(
        &self,
        words: &'static str,
        code: u16,
        reason: &'static str,
        message: &'static str,
    ) {
        self.script(move |call| match call.words.starts_with(words) {
            true => Fate::Refused(code, reason, message),
            false => Fate::Served,
        });
    }

    /// The job, as a watch that is up to date shows it.
    pub fn job(&self) -> Arc<DeadlineJob> {
        Arc::new(self.world.lock().job.clone().expect("the job is there"))
    }

    /// The pods, as a watch that is up to date shows them.
    pub fn pods(&self) -> Vec<Pod> {
        self.world.lock().pods.values().cloned().collect()
    }

    /// The calls since the last call of this function, in words.
    pub fn said(&self) -> Vec<String> {
        let calls = std::mem::take(&mut self.world.lock().calls);
        calls.into_iter().map(|call| call.words).collect()
    }

    /// The last call that begins with these words.
    pub fn call(&self, words: &str) -> Call {
        let world = self.world.lock();
        let found = world
            .calls
            .iter()
            .rfind(|call| call.words.starts_with(words));
        found
            .unwrap_or_else(|| panic!("no {words}: {:?}", world.calls))
            .clone()
    }

    /// Status of the job's condition, and its reason.
    pub fn condition(&self, type_: &str) -> Option<(String, String)> {
        let status = self.job().status.clone()?;
        let mut conditions = status.conditions.into_iter();
        let found = conditions.find(|condition| condition.type_ == type_)?;
        Some((found.status, found.reason))
    }
}

impl Drop for Apiserver {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let broken = &self.world.lock().invariants.broken;
            assert!(broken.is_empty(), "{broken:#?}");
        }
    }
}

/// Task and attempt at the end of a pod's name.
fn tail(name: &str) -> String {
    let mut parts = name.rsplitn(3, '-');
    let (attempt, task) = (parts.next().unwrap(), parts.next().unwrap_or_default());
    format!("{task}-{attempt}")
}

impl Call {
    async fn read(request: Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.expect("body");
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let segments: Vec<&str> = head.uri.path().split('/').collect();
        let (method, mut pod) = (head.method.as_str(), String::new());
        let words = match segments[..] {
            [.., "deadlinejobs", _, "status"] => format!("{method} job status"),
            [.., "deadlinejobs", _] => format!("{method} job"),
            [.., "jobs", _, "status"] => format!("{method} Job status"),
            [.., "jobs", _] => format!("{method} Job"),
            [.., "deadlinejobs"] if method == "GET" => "LIST jobs".to_owned(),
            [.., "jobs"] if method == "GET" => "LIST Jobs".to_owned(),
            [.., "pods"] if method == "GET" => "LIST pods".to_owned(),
            [.., "pods"] => {
                text("/metadata/name")
                    .unwrap_or_default()
                    .clone_into(&mut pod);
                format!("{method} pod {}", tail(&pod))
            }
            [.., "pods", name] => {
                name.clone_into(&mut pod);
                format!("{method} pod {}", tail(name))
            }
            [.., "persistentvolumeclaims", name] => format!("{method} claim {name}"),
            [.., "events"] => format!("{method} event {}", text("/reason").unwrap_or("?")),
            _ => format!("{method} {}", head.uri.path()),
        };
        Self {
            words,
            pod,
            query: head.uri.query().unwrap_or_default().to_owned(),
            body,
        }
    }
}

impl World {
    fn now(&self) -> Instant {
        self.time.unwrap_or_else(clock::now)
    }

    /// The answer to a call; none if the connection breaks.
    fn take(&mut self, call: Call) -> Option<Response<Body>> {
        self.calls.push(call.clone());
        let fate = (self.script)(&call);
        let answer = match fate {
            Fate::LostBefore => return None,
            Fate::Refused(code, reason, message) => Err((code, reason, message.to_owned())),
            Fate::Served | Fate::LostAfter => {
                let before = self.job.clone();
                let answer = self.carry_out(&call);
                if answer.is_ok() {
                    let after = self.job.as_ref();
                    self.invariants.check(&call, before.as_ref(), after);
                }
                answer
            }
        };
        if matches!(fate, Fate::LostAfter) {
            return None;
        }
        let (code, body) = match answer {
            Ok(body) => (200, body),
            Err((code, reason, message)) => (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": message, "reason": reason, "code": code}),
            ),
        };
        let response = Response::builder().status(code);
        Some(
            response
                .body(Body::from(body.to_string().into_bytes()))
                .expect("response"),
        )
    }

    fn carry_out(&mut self, call: &Call) -> Result<Value, Refusal> {
        self.version += 1;
        let (method, rest) = call.words.split_once(' ').unwrap_or_default();
        match (method, rest.split(' ').next().unwrap_or_default()) {
            ("PUT", "job") => self.put_status(call),
            ("PUT", "Job") => Ok(call.body.clone()),
            ("GET", "Job") => Ok(json!(self.batch.as_ref().ok_or_else(not_found)?)),
            ("PATCH", "Job") => self.label_batch(call),
            ("GET", "job") => Ok(json!(self.job.as_ref().ok_or_else(not_found)?)),
            ("DELETE", "job") => self.delete_job(call),
            ("LIST", "jobs") => Ok(json!({"apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadataList", "items": self.job.as_slice(),
                "metadata": {"resourceVersion": self.version.to_string()}})),
            ("LIST", "Jobs") => Ok(json!({"apiVersion": "batch/v1", "kind": "JobList",
                "items": self.batch.as_slice(), "metadata": {}})),
            ("LIST", "pods") => Ok(self.list_pods(call)),
            ("POST", "pod") => self.create_pod(call),
            // A request for metadata reads no other field.
            ("GET", "pod") => Ok(json!(self.pod(call)?)),
            ("DELETE", "pod") => self.delete_pod(call),
            ("PATCH", "pod") if is_annotation(call) => self.annotate_pod(call),
            ("PATCH", "pod") => self.release_pod(call),
            ("GET", "claim") => {
                let name = rest.rsplit(' ').next().unwrap_or_default();
                let modes = self.claims.get(name).ok_or_else(not_found)?;
                Ok(json!({"metadata": {"name": name}, "spec": {"accessModes": modes}}))
            }
            ("POST" | "PATCH", "event") => Ok(call.body.clone()),
            _ => Err((
                405,
                "MethodNotAllowed",
                format!("unexpected {}", call.words),
            )),
        }
    }

    /// A page of pods; its `continue` is the number of those before the next one.
    fn list_pods(&self, call: &Call) -> Value {
        let is_limited = parameter(&call.query, "limit").is_some();
        let page = if is_limited { self.page } else { usize::MAX };
        let token = parameter(&call.query, "continue");
        let before: usize = token.map_or(0, |token| token.parse().expect("a number"));
        let selected: Vec<&Pod> = self
            .pods
            .values()
            .filter(|pod| is_selected(call, pod))
            .collect();
        let end = before.saturating_add(page);
        let next = (end < selected.len()).then(|| end.to_string());
        let items: Vec<_> = selected.into_iter().skip(before).take(page).collect();
        json!({"apiVersion": "v1", "kind": "PodList", "items": items,
            "metadata": {"resourceVersion": self.pods_version(), "continue": next}})
    }

    fn pods_version(&self) -> String {
        (self.version + self.pods_apart).to_string()
    }

    fn put_status(&mut self, call: &Call) -> Result<Value, Refusal> {
        let job = self.job.as_mut().ok_or_else(not_found)?;
        let bad = |error: serde_json::Error| (400, "BadRequest", error.to_string());
        let metadata: ObjectMeta =
            serde_json::from_value(call.body["metadata"].clone()).map_err(bad)?;
        if metadata.uid != job.metadata.uid
            || metadata.resource_version != job.metadata.resource_version
        {
            return Err(conflict());
        }
        job.status = serde_json::from_value(call.body["status"].clone()).map_err(bad)?;
        job.metadata.resource_version = Some(self.version.to_string());
        Ok(json!(job))
    }

    fn delete_job(&mut self, call: &Call) -> Result<Value, Refusal> {
        let job = self
            .job
            .take_if(|job| has_uid(call, job.metadata.uid.as_deref()));
        job.map(|job| json!(job)).ok_or_else(conflict)
    }

    fn create_pod(&mut self, call: &Call) -> Result<Value, Refusal> {
        if self.pods.contains_key(&call.pod) {
            let message = format!("pods \"{}\" already exists", call.pod);
            return Err((409, "AlreadyExists", message));
        }
        let mut pod: Pod = serde_json::from_value(call.body.clone())
            .map_err(|error| (400, "BadRequest", error.to_string()))?;
        pod.metadata.uid = Some(format!("uid-{}-{}", tail(&call.pod), self.version));
        pod.metadata.resource_version = Some(self.pods_version());
        self.pods.insert(call.pod.clone(), pod.clone());
        Ok(json!(pod))
    }

    fn pod(&mut self, call: &Call) -> Result<&mut Pod, Refusal> {
        self.pods.get_mut(&call.pod).ok_or_else(not_found)
    }

    fn delete_pod(&mut self, call: &Call) -> Result<Value, Refusal> {
        let now = clock::time(self.now());
        let pod = self.pod(call)?;
        if !has_uid(call, pod.metadata.uid.as_deref()) {
            return Err(conflict());
        }
        pod.metadata.deletion_timestamp.get_or_insert(now);
        let answer = json!(pod);
        self.collect_garbage();
        Ok(answer)
    }

    fn label_batch(&mut self, call: &Call) -> Result<Value, Refusal> {
        let labels = serde_json::from_value(call.body["metadata"]["labels"].clone());
        let labels: BTreeMap<String, String> = labels.expect("labels");
        let job = self.batch.as_mut().ok_or_else(not_found)?;
        job.metadata.labels.get_or_insert_default().extend(labels);
        Ok(json!(job))
    }

    fn annotate_pod(&mut self, call: &Call) -> Result<Value, Refusal> {
        let all = serde_json::from_value(call.body["metadata"]["annotations"].clone());
        let all: BTreeMap<String, String> = all.expect("annotations");
        let pod = self.pod(call)?;
        if call.body["metadata"]["uid"].as_str() != pod.metadata.uid.as_deref() {
            return Err(conflict());
        }
        pod.metadata.annotations.get_or_insert_default().extend(all);
        Ok(json!(pod))
    }

    fn release_pod(&mut self, call: &Call) -> Result<Value, Refusal> {
        let taken_off = &call.body["metadata"]["$deleteFromPrimitiveList/finalizers"];
        if *taken_off != json!([ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER]) {
            return Err((422, "Invalid", "not a release".to_owned()));
        }
        let pod = self.pod(call)?;
        if call.body["metadata"]["uid"].as_str() != pod.metadata.uid.as_deref() {
            return Err(conflict());
        }
        let finalizers = pod.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|finalizer| finalizer != ATTEMPT_FINALIZER);
        let answer = json!(pod);
        self.collect_garbage();
        Ok(answer)
    }

    /// Removes objects that are marked for deletion and have no finalizer.
    fn collect_garbage(&mut self) {
        self.pods.retain(|_, pod| {
            let metadata = &pod.metadata;
            let held = metadata.finalizers.iter().flatten().next().is_some();
            // The kubelet's own grace period holds a pod too, until its containers have ended.
            metadata.deletion_timestamp.is_none() || held || !kubelet::has_ended(pod)
        });
    }
}

/// Whether a patch of a pod changes annotations, and nothing else.
fn is_annotation(call: &Call) -> bool {
    let metadata = call.body["metadata"].as_object();
    metadata.is_some_and(|all| all.len() == 2 && all.contains_key("annotations"))
}

/// Whether a list shows a pod. Labels are requested by one name, with or without a value.
fn is_selected(call: &Call, pod: &Pod) -> bool {
    let query = call.query.replace("%2F", "/").replace("%3D", "=");
    let Some(selector) = parameter(&query, "labelSelector") else {
        return true;
    };
    let (name, value) = selector.split_once('=').unwrap_or((selector, ""));
    let label = pod
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(name));
    label.is_some_and(|label| value.is_empty() || label == value)
}

fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut parts = query.split('&').filter_map(|part| part.split_once('='));
    parts.find_map(|(own, value)| (own == name).then_some(value))
}

fn has_uid(call: &Call, uid: Option<&str>) -> bool {
    let asked = call.body.pointer("/preconditions/uid");
    uid.is_some() && asked.and_then(Value::as_str) == uid
}

fn conflict() -> Refusal {
    (409, "Conflict", "the object has been modified".to_owned())
}

fn not_found() -> Refusal {
    (404, "NotFound", "not found".to_owned())
}

/// A planned launch.
pub fn launch(task: u32, kind: AttemptKind) -> Move {
    Move::Launch(shed_core::fixtures::launch(task, kind))
}

/// Planned first attempts of the first `tasks` tasks.
pub fn originals(tasks: u32) -> Vec<Move> {
    let tasks = 0..tasks;
    tasks
        .map(|task| launch(task, AttemptKind::Original))
        .collect()
}

/// Name of an attempt's pod.
pub fn pod_name(job: &DeadlineJob, id: AttemptId) -> String {
    let metadata = &job.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let uid = metadata.uid.as_deref().unwrap_or_default();
    crate::pod_names::attempt_pod(name, uid, id.0, id.1)
}
