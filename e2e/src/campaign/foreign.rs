//! Pods of other people that look like attempts of a run's jobs: they bear the same labels, in
//! another namespace or without an owner. Whatever they do must not matter to the jobs.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use shed::adopt;
use shed::api::{self, DeadlineJob, Ledger};

use super::nodes::RUN;
use crate::patches::report;

/// Marks what is no attempt, so that the checks leave it out; the operator knows nothing of it.
pub const FOREIGN: &str = "e2e.shed.dev/foreign";
/// How the names of pods begin that the operator must not touch.
pub const PREFIX: &str = "foreign-";
/// The pod that is edited again and again, so that the planner looks again.
pub const TICKER: &str = "foreign-ticker";
/// The label by which batch/v1 Jobs take pods in.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// A job that does not exist.
const MADE_UP: &str = "00000000-0000-4000-8000-000000000000";

/// Whether a pod is not one of the workload's attempts.
pub fn is_foreign(pod: &Pod) -> bool {
    pod.annotations().contains_key(FOREIGN)
}

/// Puts pods into `other`, and some without an owner into `own`, that look like attempts of every
/// DeadlineJob of `own`.
pub async fn plant(client: &Client, own: &str, other: &str) -> Result<()> {
    let jobs: Api<DeadlineJob> = Api::namespaced(client.clone(), own);
    let node = any_node(client).await?;
    let (here, there) = (Home::new(client, own), Home::new(client, other));
    let too_much = json!({"cpu": "100000"});
    for (index, job) in jobs.list(&ListParams::default()).await?.iter().enumerate() {
        let (task, number) = one_attempt(job);
        let labels = labels_of(job, task, number);
        let next = labels_of(job, task, number + 1);
        there
            .ended(&format!("{PREFIX}done-{index}"), &labels)
            .await?;
        let running = format!("{PREFIX}running-{index}");
        there.running(&running, &next, &node).await?;
        let waiting = format!("{PREFIX}waiting-{index}");
        there.waiting(&waiting, &next, &too_much).await?;
        // A Job takes in what has no owner and bears its label: that is its right.
        let ownerless = |mut labels: Value| {
            labels.as_object_mut().map(|all| all.remove(CONTROLLER_UID));
            labels
        };
        let name = format!("{PREFIX}ownerless-{index}");
        here.ended(&name, &ownerless(labels)).await?;
        here.stray(&format!("stray-{index}"), job, &node).await?;
    }
    let mut made_up = json!({});
    for (label, value) in [
        (api::LABEL_JOB_UID, MADE_UP),
        (api::LABEL_INDEX, "0"),
        (api::LABEL_ATTEMPT, "0"),
    ] {
        made_up[label] = json!(value);
    }
    let name = format!("{PREFIX}made-up");
    there.waiting(&name, &made_up, &too_much).await
}

/// Any node that all runs share.
async fn any_node(client: &Client) -> Result<String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let shared = ListParams::default().labels(&format!("!{RUN}"));
    let nodes = nodes.list(&shared).await?;
    let node = nodes.iter().next();
    Ok(node.map(ResourceExt::name_any).unwrap_or_default())
}

/// The task and the number of an attempt that is under way, if one is.
fn one_attempt(job: &DeadlineJob) -> (u32, u32) {
    let ledger = Ledger::from_status(job.status.as_ref()).unwrap_or_default();
    let mut open = ledger.tasks.values().flat_map(|task| {
        let attempts = task.attempts.iter();
        attempts.map(|attempt| (task.index, attempt.number))
    });
    open.next().unwrap_or((0, 0))
}

fn labels_of(job: &DeadlineJob, task: u32, number: u32) -> Value {
    let mut labels = json!({});
    for (label, value) in [
        (api::LABEL_JOB_UID, job.uid().unwrap_or_default()),
        (api::LABEL_JOB_NAME, job.name_any()),
        (api::LABEL_BATCH_JOB_NAME, job.name_any()),
        (api::LABEL_INDEX, task.to_string()),
        (api::LABEL_ATTEMPT, number.to_string()),
        (api::LABEL_KIND, "original".to_owned()),
    ] {
        labels[label] = json!(value);
    }
    let owner = adopt::controller(&job.metadata).filter(|_| job.spec.is_companion());
    if let Some(owner) = owner {
        labels[CONTROLLER_UID] = json!(owner.uid);
    }
    labels
}

struct Home {
    pods: Api<Pod>,
}

impl Home {
    fn new(client: &Client, namespace: &str) -> Self {
        Self {
            pods: Api::namespaced(client.clone(), namespace),
        }
    }

    async fn create(&self, name: &str, metadata: Value, spec: Value) -> Result<()> {
        let mut pod = json!({"metadata": metadata, "spec": spec});
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["annotations"][FOREIGN] = json!("true");
        pod["spec"]["containers"][0]["name"] = json!("task");
        pod["spec"]["containers"][0]["image"] = json!("unused");
        let pod: Pod = serde_json::from_value(pod)?;
        drop(self.pods.create(&PostParams::default(), &pod).await?);
        Ok(())
    }

    /// A pod that has succeeded.
    async fn ended(&self, name: &str, labels: &Value) -> Result<()> {
        // No scheduler of this name exists, so that nothing but this says what becomes of it.
        let spec = json!({"schedulerName": "nobody", "restartPolicy": "Never", "containers": [{}]});
        self.create(name, json!({"labels": labels}), spec).await?;
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let terminated = json!({"exitCode": 0, "reason": "Completed",
            "startedAt": now, "finishedAt": now});
        let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
            "name": "task", "image": "unused", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": terminated}}]}});
        Ok(report(&self.pods, name, &status).await.map(drop)?)
    }

    async fn running(&self, name: &str, labels: &Value, node: &str) -> Result<()> {
        let metadata = json!({"labels": labels,
            "annotations": {"shed.dev/kwok-run-ms": "600000"}});
        let spec = json!({"nodeName": node, "restartPolicy": "Never", "containers": [{}]});
        self.create(name, metadata, spec).await
    }

    async fn waiting(&self, name: &str, labels: &Value, requests: &Value) -> Result<()> {
        let spec = json!({"containers": [{"resources": {"requests": requests}}]});
        self.create(name, json!({"labels": labels}), spec).await
    }

    /// A pod of a job that lost its labels: only its finalizer and its owner are left.
    async fn stray(&self, name: &str, job: &DeadlineJob, node: &str) -> Result<()> {
        let (finalizer, owner) =
            match adopt::controller(&job.metadata).filter(|_| job.spec.is_companion()) {
                Some(owner) => (api::JOB_TRACKING_FINALIZER, json!(owner)),
                None => {
                    let owner = json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
                    "name": job.name_any(), "uid": job.uid(), "controller": true});
                    (api::ATTEMPT_FINALIZER, owner)
                }
            };
        let metadata = json!({"finalizers": [finalizer], "ownerReferences": [owner],
            "annotations": {"shed.dev/kwok-run-ms": "500"}});
        let spec = json!({"nodeName": node, "restartPolicy": "Never", "containers": [{}]});
        self.create(name, metadata, spec).await
    }
}

/// Creates a finished pod without an owner. Each edit of it makes every watch of pods
/// speak, and nothing else.
pub async fn make_ticker(client: &Client, namespace: &str) -> Result<()> {
    let home = Home::new(client, namespace);
    home.ended(TICKER, &json!({})).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_labels_are_those_of_an_attempt_that_is_under_way() {
        let job = json!({
            "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
            "metadata": {"name": "j", "uid": "u"},
            "spec": {"deadline": {"within": "5m"}, "completions": 3, "idempotency": "Safe",
                "template": {"spec": {"containers": [{"name": "task"}]}}},
            "status": {"ledger": {"form": 1, "done": "0", "tasks": {
                "since": "2026-01-01T00:00:00.000000Z", "lines": ["2,2;1r0"]}}},
        });
        let job: DeadlineJob = serde_json::from_value(job).unwrap();
        assert_eq!(one_attempt(&job), (2, 1));
        let labels = labels_of(&job, 2, 1);
        assert_eq!(labels[api::LABEL_JOB_UID], "u");
        assert_eq!(labels[api::LABEL_INDEX], "2");
        assert_eq!(labels[CONTROLLER_UID], Value::Null);
    }
}
