//! Builders of objects for tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use http::{HeaderMap, Uri};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use shed_agent::reply::{CODE_HEADER, NONCE_HEADER, ReplyKey};
use shed_core::time::{Instant, Span};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::adopt::translate;
use crate::agent_keys::AgentKeys;
use crate::api::{self, DeadlineJob};
use crate::clock;
use crate::cluster::JobObject;
use crate::cluster::pod::AttemptId;
use crate::pod_names;

/// Held by tests that set a subscriber of spans, or measure what a span costs without one. `tracing` remembers for
/// the whole process whether any subscriber wants a span.
pub static SPANS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A valid job of 4 tasks with a deadline of 10 minutes; `change` is YAML whose keys replace
/// those of the specification.
pub fn job(change: &str) -> DeadlineJob {
    let mut value: serde_json::Value = serde_saphyr::from_str(
        r"
apiVersion: shed.dev/v1alpha1
kind: DeadlineJob
metadata:
  name: count
  namespace: team
  uid: 11111111-2222-3333-4444-555555555555
  generation: 1
  resourceVersion: '7'
  creationTimestamp: '1970-01-01T00:00:00Z'
spec:
  deadline: {within: 10m}
  completions: 4
  idempotency: Safe
  onMiss: Fail
  template: {spec: {containers: [{name: task, image: task}]}}
",
    )
    .expect("fixture");
    let last = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    let change: Option<serde_json::Map<String, serde_json::Value>> =
        serde_saphyr::from_str_with_options(change, last).expect("change is a YAML map");
    for (key, field) in change.unwrap_or_default() {
        value["spec"][key] = field;
    }
    serde_json::from_value(value).expect("fixture with change")
}

/// A job as the apiserver holds it, with values here and there that may make no sense to this version:
/// each by its place, such as `/spec/onMiss`.
pub fn changed(job: &DeadlineJob, changes: &[(&str, serde_json::Value)]) -> serde_json::Value {
    let mut value = serde_json::to_value(job).expect("job");
    for (pointer, change) in changes {
        let (parent, field) = pointer.rsplit_once('/').expect("pointer");
        let parent = value.pointer_mut(parent).expect("parent");
        parent[field] = change.clone();
    }
    value
}

/// The same in a watch event.
pub fn object(job: &DeadlineJob, changes: &[(&str, serde_json::Value)]) -> JobObject {
    serde_json::from_value(changed(job, changes)).expect("object")
}

/// The same job, created this many seconds ago by the driver's own clock.
pub fn job_of_age(seconds: i64, change: &str) -> DeadlineJob {
    let mut job = job(change);
    let created = clock::now().plus(Span::from_seconds(-seconds));
    job.metadata.creation_timestamp = Some(clock::time(created));
    job
}

/// The pod of an attempt of the job, with one core on this node, in this phase.
pub fn attempt_pod(job: &DeadlineJob, id: AttemptId, node: &str, phase: &str) -> Pod {
    let metadata = &job.metadata;
    let (name, uid) = (metadata.name.as_deref(), metadata.uid.as_deref());
    let (name, uid) = (name.expect("name"), uid.expect("uid"));
    let pod = pod_names::attempt_pod(name, uid, id.0, id.1);
    let pod = serde_json::json!({
        "metadata": {
            "name": pod, "namespace": metadata.namespace, "uid": format!("pod-{}-{}", id.0, id.1),
            "finalizers": [api::ATTEMPT_FINALIZER],
            "labels": {
                api::LABEL_JOB_UID: uid, api::LABEL_JOB_NAME: name,
                api::LABEL_INDEX: id.0.to_string(), api::LABEL_ATTEMPT: id.1.to_string(),
            },
            "ownerReferences": [{"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": name,
                "uid": uid, "controller": true}],
        },
        "spec": {"nodeName": node, "containers":
            [{"name": "task", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": phase},
    });
    serde_json::from_value(pod).expect("pod")
}

/// The first attempt's pod at task 0 of a Job, which runs on `node-1`.
pub fn job_pod(job: &Job) -> Pod {
    let companion = companion(job);
    let validated = translate::validated(&companion, job).expect("Job");
    let pod = pod_names::of_attempt(&validated, 0, 0);
    let adopted = validated.adopted.expect("adopted");
    let pod = serde_json::json!({
        "metadata": {
            "name": pod, "namespace": "team", "uid": "pod-0-0",
            "finalizers": [api::JOB_TRACKING_FINALIZER],
            "labels": {
                api::LABEL_JOB_UID: validated.uid, api::LABEL_JOB_NAME: adopted.name,
                api::LABEL_TASK: "0", api::LABEL_ATTEMPT: "0",
                "batch.kubernetes.io/controller-uid": adopted.uid,
            },
            "ownerReferences": [translate::owner_reference(&adopted.name, &adopted.uid)],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "task"}]},
        "status": {"phase": "Running"},
    });
    serde_json::from_value(pod).expect("pod")
}

/// A ready node with that name and this many cores.
pub fn node(name: &str, cores: u32) -> Node {
    let yaml = format!(
        "{{metadata: {{name: {name}}}, status: {{allocatable: {{cpu: '{cores}', memory: 8Gi, \
         pods: '110'}}, conditions: [{{type: Ready, status: 'True'}}]}}}}"
    );
    serde_saphyr::from_str(&yaml).expect("node")
}

/// A batch/v1 Job that shed runs; `change` holds further keys of its specification, as YAML.
pub fn batch_job(change: &str) -> Job {
    let mut job: serde_json::Value = serde_saphyr::from_str(
        r"
metadata: {name: pi, namespace: team, uid: job-uid, resourceVersion: '7', creationTimestamp: '1970-01-01T00:00:00Z'}
spec:
  managedBy: shed.dev/deadline-controller
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: job-uid}}
  template: {spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}
",
    )
    .expect("fixture");
    let change: serde_json::Map<String, serde_json::Value> =
        serde_saphyr::from_str(&format!("{{{change}}}")).expect("change is a YAML map");
    for (key, field) in change {
        job["spec"][key] = field;
    }
    serde_json::from_value(job).expect("Job")
}

/// Its companion, as the apiserver holds it.
pub fn companion(job: &Job) -> DeadlineJob {
    let mut companion = translate::companion(job).expect("annotations");
    companion.metadata.uid = Some("11111111-2222-3333-4444-555555555555".to_owned());
    companion.metadata.resource_version = Some("8".to_owned());
    companion.metadata.creation_timestamp = Some(clock::time(Instant(0)));
    companion
}

/// The operator's keys, the same for all tests of a process.
pub fn keys() -> Arc<AgentKeys> {
    static KEYS: LazyLock<Arc<AgentKeys>> =
        LazyLock::new(|| Arc::new(AgentKeys::drawn().expect("random numbers")));
    Arc::clone(&KEYS)
}

/// An agent on this machine: gives every poll the same answer, with the code of its key, accepts every order and counts
/// them.
pub struct Agent {
    pub address: SocketAddr,
    orders: Arc<AtomicU32>,
    server: JoinHandle<()>,
}

impl Agent {
    /// The agent of the job's pod without a name.
    pub async fn serve(job_uid: &str, answer: Vec<u8>) -> Self {
        let key = ReplyKey::parse(&keys().reply_key(job_uid, "")).expect("a key");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("its address");
        let orders: Arc<AtomicU32> = Arc::default();
        let taken = Arc::clone(&orders);
        let answering = axum::routing::get(move |uri: Uri, asked: HeaderMap| {
            let nonce = asked.get(NONCE_HEADER).expect("a nonce");
            let code = key.code(uri.path(), nonce.as_bytes(), &answer);
            std::future::ready(([(CODE_HEADER, code)], answer.clone()))
        })
        .post(move || {
            taken.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        let router = axum::Router::new().fallback_service(answering);
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self {
            address,
            orders,
            server,
        }
    }

    /// How many it got.
    pub fn orders(&self) -> u32 {
        self.orders.load(Ordering::Relaxed)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The share of a namespace that is entitled to a part of the capacity and holds another one; it waits for the rest.
pub fn share(namespace: &str, entitled: f64, held: f64) -> shed_core::plan::TenantShare {
    shed_core::plan::TenantShare {
        tenant: shed_core::ids::Tenant::from(namespace),
        entitled,
        held,
        lent: (held - entitled).max(0.0),
        owed: (entitled - held).max(0.0),
        owed_until: None,
    }
}

/// A report of a pass that found nothing out about the job.
pub fn report(key: &str) -> shed_core::plan::JobReport {
    shed_core::plan::JobReport {
        key: shed_core::ids::JobKey::from(key),
        pocd_before: None,
        pocd_after: None,
        pocd_expected: None,
        estimated_completion: None,
        end_range: None,
        is_cut_short: false,
        optimized: false,
        stragglers: vec![],
        clones: vec![],
        kills: vec![],
        refusals: vec![],
        clone_budget: None,
        waiting: 0,
        waiting_for_share: 0,
        attempt_slot_seconds: None,
        feasibility: None,
        risk: None,
        ends: vec![],
    }
}
