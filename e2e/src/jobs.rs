//! Writing DeadlineJobs, and waiting for what becomes of them.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, Selector};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob, DeadlineJobStatus};

use crate::failure_report::pod_line;
use crate::patches::merge;
use crate::scenario::World;
use crate::wait::{self, Seen};

/// Name of the task's container in the templates made here.
pub const TASK: &str = "task";

/// How long waits take at most when nothing is promised about the time.
pub const SOON: Duration = Duration::from_secs(90);

/// The image that tasks run in.
fn image() -> String {
    let named = std::env::var("SHED_E2E_BUSYBOX");
    named.unwrap_or_else(|_| "localhost/busybox:test".to_owned())
}

/// A pod template that runs a shell script. On fake nodes the script stands for nothing: the
/// pod then runs for `kwok_ms` and ends with `kwok_exit`.
pub fn shell_or_fake(script: &str, kwok_ms: u32, kwok_exit: i32) -> Value {
    json!({
        "metadata": {"annotations": {
            "shed.dev/kwok-run-ms": kwok_ms.to_string(),
            "shed.dev/kwok-exit-code": kwok_exit.to_string(),
        }},
        "spec": {
            // A shell as the first process ignores SIGTERM unless it traps it.
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": TASK,
                "image": image(),
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
                "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}},
            }],
        },
    })
}

/// A pod template that runs a shell script.
pub fn shell(script: &str) -> Value {
    shell_or_fake(script, 1000, 0)
}

/// A DeadlineJob as a user would write it; `spec` replaces or adds to the fields that a test
/// mostly doesn't care about.
pub fn manifest(name: &str, spec: &Value) -> Value {
    let mut all = json!({
        "apiVersion": "shed.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": name},
        "spec": {
            "deadline": {"within": "5m"},
            "completions": 1,
            "idempotency": "Safe",
            // A test that waits in vain ends at the deadline.
            "onMiss": "Fail",
        },
    });
    if let (Some(fields), Some(given)) = (all["spec"].as_object_mut(), spec.as_object()) {
        for (key, value) in given {
            fields.insert(key.clone(), value.clone());
        }
        // So that a test can leave out what is required.
        fields.retain(|_, value| !value.is_null());
    }
    all
}

/// The untyped API, as kubectl uses it: it also sends what the typed one can't express.
pub fn untyped(world: &World, client: kube::Client) -> Api<DynamicObject> {
    Api::namespaced_with(
        client,
        &world.namespace,
        &ApiResource::erase::<DeadlineJob>(&()),
    )
}

/// Sends a manifest as a client.
pub async fn create(
    world: &World,
    client: kube::Client,
    manifest: &Value,
) -> Result<(), kube::Error> {
    let object: DynamicObject =
        serde_json::from_value(manifest.clone()).map_err(kube::Error::SerdeError)?;
    let api = untyped(world, client);
    api.create(&PostParams::default(), &object).await.map(drop)
}

/// A job of a test.
pub struct Job<'w> {
    world: &'w World,
    pub name: String,
    pub uid: String,
    pub api: Api<DeadlineJob>,
}

impl<'w> Job<'w> {
    /// Creates a job.
    pub async fn submit(world: &'w World, name: &str, spec: Value) -> Result<Self> {
        Self::submit_manifest(world, &manifest(name, &spec)).await
    }

    /// Creates a job that is more than its specification.
    pub async fn submit_manifest(world: &'w World, manifest: &Value) -> Result<Self> {
        create(world, world.cluster.client(), manifest).await?;
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let api: Api<DeadlineJob> = world.api();
        let uid = api.get(name).await?.uid().context("a job without uid")?;
        Ok(Self {
            world,
            name: name.to_owned(),
            uid,
            api,
        })
    }

    /// Waits until the job is as wanted; says what its status was if it doesn't come to that.
    pub async fn wait(
        &self,
        what: &str,
        timeout: Duration,
        is_so: impl Fn(&DeadlineJob) -> bool,
    ) -> Result<DeadlineJob> {
        wait::until(&format!("{}: {what}", self.name), timeout, || async {
            let job = self.api.get(&self.name).await?;
            if is_so(&job) {
                return Ok(Seen::Ready(job));
            }
            Ok(Seen::NotYet(summary(&job)))
        })
        .await
    }

    /// Waits until a condition is true for a reason.
    pub async fn wait_true(
        &self,
        type_: &str,
        reason: &str,
        timeout: Duration,
    ) -> Result<DeadlineJob> {
        let what = format!("condition {type_} true because of {reason}");
        self.wait(&what, timeout, |job| {
            self::reason(job, type_) == Some(reason)
        })
        .await
    }

    /// Waits until the job is complete.
    pub async fn wait_complete(&self) -> Result<DeadlineJob> {
        let ended = self.wait("to be complete", SOON, has_ended).await?;
        anyhow::ensure!(
            is_true(&ended, api::COMPLETE),
            "{} failed: {}",
            self.name,
            summary(&ended)
        );
        Ok(ended)
    }

    /// Waits until this many attempts run.
    pub async fn wait_running(&self, count: usize) -> Result<Vec<Pod>> {
        let what = format!("{}: {count} attempts to run", self.name);
        self.wait_pods(&what, SOON, |pods| {
            pods.iter().filter(|pod| is_running(pod)).count() == count
        })
        .await
    }

    /// Waits until the job's pods are as wanted.
    pub async fn wait_pods(
        &self,
        what: &str,
        timeout: Duration,
        are_so: impl Fn(&[Pod]) -> bool,
    ) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = self.world.api();
        let wanted = self.selector();
        wait::until(what, timeout, || async {
            let pods = pods.list(&wanted).await?.items;
            if are_so(&pods) {
                return Ok(Seen::Ready(pods));
            }
            let lines: Vec<String> = pods.iter().map(pod_line).collect();
            Ok(Seen::NotYet(lines.join("; ")))
        })
        .await
    }

    fn selector(&self) -> ListParams {
        let selector = Selector::from_iter([(api::LABEL_JOB_UID.to_owned(), self.uid.clone())]);
        ListParams::default().labels_from(&selector)
    }

    /// Its pods, those that are gone included.
    pub fn pods_ever(&self) -> Vec<Pod> {
        let mut pods = self.world.seen.all();
        pods.retain(|pod| pod.labels().get(api::LABEL_JOB_UID) == Some(&self.uid));
        pods
    }

    /// Its pods that have not ended.
    pub fn unfinished_pods(&self) -> Vec<Pod> {
        let mut pods = self.pods_ever();
        pods.retain(|pod| !wait::is_over(pod));
        pods
    }

    /// Changes its specification.
    pub async fn change(&self, spec: &Value) -> Result<(), kube::Error> {
        let change = json!({"spec": spec});
        merge(&self.api, &self.name, &change).await.map(drop)
    }

    /// Deletes it; what becomes of its pods is for the caller to see.
    pub async fn delete(&self, how: &DeleteParams) -> Result<()> {
        self.api.delete(&self.name, how).await?;
        Ok(())
    }

    /// Waits until neither the job nor any of its pods is there.
    pub async fn wait_nothing_left(&self, timeout: Duration) -> Result<()> {
        let what = format!("nothing to be left of {}", self.name);
        wait::until(&what, timeout, || async {
            let job = self.api.get_opt(&self.name).await?;
            let job = job.filter(|job| job.uid().as_deref() == Some(&self.uid));
            let pods = self.world.api::<Pod>().list(&self.selector()).await?.items;
            if job.is_none() && pods.is_empty() {
                return Ok(Seen::Ready(()));
            }
            let lines: Vec<String> = pods.iter().map(pod_line).collect();
            let job = job.map(|job| job.finalizers().to_vec());
            Ok(Seen::NotYet(format!(
                "job (finalizers) {job:?}, pods {}",
                lines.join("; ")
            )))
        })
        .await
    }
}

/// A job's status; empty before its first write.
pub fn status(job: &DeadlineJob) -> DeadlineJobStatus {
    job.status.clone().unwrap_or_default()
}

/// One of a job's conditions.
pub fn condition<'j>(job: &'j DeadlineJob, type_: &str) -> Option<&'j Condition> {
    let conditions = &job.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition is there and true.
pub fn is_true(job: &DeadlineJob, type_: &str) -> bool {
    condition(job, type_).is_some_and(|condition| condition.status == "True")
}

/// The reason of a condition that is true.
pub fn reason<'j>(job: &'j DeadlineJob, type_: &str) -> Option<&'j str> {
    let condition = condition(job, type_).filter(|condition| condition.status == "True");
    condition.map(|condition| condition.reason.as_str())
}

/// Whether a job has come to its end.
pub fn has_ended(job: &DeadlineJob) -> bool {
    is_true(job, api::COMPLETE) || is_true(job, api::FAILED)
}

/// Bytes of a job without its managedFields, which only the apiserver knows.
pub fn object_bytes(job: &DeadlineJob) -> usize {
    let mut own = job.clone();
    own.metadata.managed_fields = None;
    shed::size::bytes(&own)
}

/// A job in one line.
pub fn summary(job: &DeadlineJob) -> String {
    let status = status(job);
    let conditions: Vec<String> = status
        .conditions
        .iter()
        .map(|c| format!("{}={} {} ({})", c.type_, c.status, c.reason, c.message))
        .collect();
    format!(
        "phase {:?}, active {}, clones {}, terminating {}, succeeded {}, failed {}, {:?}, [{}]",
        status.phase,
        status.active,
        status.clones,
        status.terminating,
        status.succeeded,
        status.failed,
        status.attempts,
        conditions.join("; ")
    )
}

/// Asserts that each attempt of an ended job landed in exactly one bucket.
///
/// # Panics
/// If an attempt is missing or counted twice.
pub fn assert_counts_balance(job: &DeadlineJob) {
    let counts = status(job).attempts;
    assert_eq!(
        counts.launched(),
        counts.ended(),
        "launched and ended attempts differ: {counts:?}"
    );
}

/// Whether a pod's task runs.
pub fn is_running(pod: &Pod) -> bool {
    wait::phase(pod) == "Running" && !wait::is_deleted(pod)
}

/// Whether a pod still carries shed's finalizer.
pub fn is_held(pod: &Pod) -> bool {
    pod.finalizers()
        .iter()
        .any(|held| held == api::ATTEMPT_FINALIZER)
}

/// A pod's label, empty if it has none of the name.
pub fn label<'p>(pod: &'p Pod, name: &str) -> &'p str {
    pod.labels().get(name).map_or("", String::as_str)
}

/// The node that a pod was put on, if it was.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// The node that a pod was put on, empty before.
pub fn node(pod: &Pod) -> &str {
    node_of(pod).unwrap_or_default()
}

/// The progress at which a pod's attempt resumes. shed hands it to the sidecar, which writes the resume file.
pub fn resume_point(pod: &Pod) -> Option<f64> {
    let containers = pod.spec.as_ref()?.init_containers.iter().flatten();
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    let variable = variables.find(|variable| variable.name == "SHED_RESUME")?;
    let point: Value = serde_json::from_str(variable.value.as_deref()?).ok()?;
    point["progress"].as_f64()
}

/// How a pod's first container ended. shed's sidecar is an init container.
pub fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.first()?.state.as_ref()?.terminated.as_ref()
}

/// How a pod's task ended.
pub fn ended(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let task = statuses.iter().find(|container| container.name == TASK)?;
    task.state.as_ref()?.terminated.as_ref()
}

/// The termination message of a pod's task.
pub fn said(pod: &Pod) -> &str {
    ended(pod)
        .and_then(|end| end.message.as_deref())
        .unwrap_or_default()
}
