//! Nodes that are lost and come back: every second time their objects are deleted, else they become unreachable.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::campaign::draw;
use crate::patches::{merge, report};

/// How often nodes are lost.
pub const EVERY: Duration = Duration::from_secs(20);
/// How long they stay away. Pods of a deleted node are removed after 40 s or more.
const AWAY: Duration = Duration::from_secs(70);
/// One node of this many is lost at a time.
const ONE_OF: usize = 50;
/// The annotation by which kwok manages a node.
const MANAGED: &str = "kwok.x-k8s.io/node";

/// Loses nodes until it is dropped.
pub struct Losses {
    nodes: Api<Node>,
    /// As they were, without status.
    manifests: Vec<Node>,
    away: Vec<(Timestamp, usize, Loss)>,
    rounds: u64,
    /// Nodes that were lost so far.
    pub count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    Deleted,
    Unreachable,
}

impl Losses {
    /// Of the nodes that are there.
    pub async fn of(client: Client) -> Result<Self> {
        let nodes: Api<Node> = Api::all(client);
        let found = nodes.list(&ListParams::default()).await?;
        let manifests = found.items.into_iter().map(fresh).collect();
        Ok(Self {
            nodes,
            manifests,
            away: Vec::new(),
            rounds: 0,
            count: 0,
        })
    }

    /// Loses some more, and brings those back that were away for long enough.
    pub async fn next(&mut self) -> Result<()> {
        let now = Timestamp::now();
        self.restore(Some(now)).await?;
        self.rounds += 1;
        let loss = match self.rounds.is_multiple_of(2) {
            true => Loss::Unreachable,
            false => Loss::Deleted,
        };
        let all = self.manifests.len();
        for number in 0..all.div_ceil(ONE_OF) as u64 {
            let victim = draw(self.rounds, number) as usize % all;
            if self.away.iter().any(|(_, away, _)| *away == victim) {
                continue;
            }
            self.lose(victim, loss).await?;
            self.away.push((now, victim, loss));
            self.count += 1;
        }
        Ok(())
    }

    async fn lose(&self, victim: usize, loss: Loss) -> Result<()> {
        let name = self.manifests[victim].name_any();
        if loss == Loss::Deleted {
            drop(self.nodes.delete(&name, &DeleteParams::default()).await?);
            return Ok(());
        }
        // kwok would say at once that it is ready.
        self.annotate(&name, &Value::Null).await?;
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown",
            "reason": "NodeStatusUnknown", "message": "", "lastTransitionTime": Timestamp::now()}]}});
        Ok(report(&self.nodes, &name, &status).await.map(drop)?)
    }

    async fn annotate(&self, name: &str, value: &Value) -> Result<()> {
        let change = json!({"metadata": {"annotations": {MANAGED: value}}});
        Ok(merge(&self.nodes, name, &change).await.map(drop)?)
    }

    /// Brings back those that were away for long enough at `now`, or all.
    pub async fn restore(&mut self, now: Option<Timestamp>) -> Result<()> {
        let is_due = |since: Timestamp| {
            now.is_none_or(|now| now.duration_since(since).as_secs_f64() >= AWAY.as_secs_f64())
        };
        let due: Vec<_> = self
            .away
            .extract_if(.., |(since, ..)| is_due(*since))
            .collect();
        for (_, victim, loss) in due {
            let manifest = &self.manifests[victim];
            match loss {
                Loss::Deleted => {
                    drop(self.nodes.create(&PostParams::default(), manifest).await?);
                }
                Loss::Unreachable => self.annotate(&manifest.name_any(), &json!("fake")).await?,
            }
        }
        Ok(())
    }
}

/// A node as it was registered.
fn fresh(mut node: Node) -> Node {
    let metadata = &mut node.metadata;
    (metadata.uid, metadata.resource_version) = (None, None);
    (metadata.creation_timestamp, metadata.managed_fields) = (None, None);
    let status = node.status.take().unwrap_or_default();
    node.status = Some(k8s_openapi::api::core::v1::NodeStatus {
        allocatable: status.allocatable,
        capacity: status.capacity,
        ..Default::default()
    });
    node.spec = None;
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_comes_back_with_its_size_and_its_labels() {
        let node = json!({"metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
            "annotations": {MANAGED: "fake"}}, "spec": {"unschedulable": true},
            "status": {"allocatable": {"pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}});
        let fresh = serde_json::to_value(fresh(serde_json::from_value(node).unwrap())).unwrap();
        assert_eq!(fresh["status"]["allocatable"]["pods"], "110");
        assert_eq!(fresh["metadata"]["annotations"][MANAGED], "fake");
        assert_eq!(fresh["metadata"]["labels"]["a"], "b");
        for gone in ["/metadata/uid", "/status/conditions", "/spec"] {
            assert_eq!(fresh.pointer(gone), None, "{gone}");
        }
    }
}
