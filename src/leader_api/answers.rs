//! The answers, as the leader writes them and `kubectl shed` reads them. Fields of another version may be absent.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::api::{Decimal, Pocd};

/// A page of the unfinished jobs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobList {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Jobs in all, on this page or another one.
    pub total: usize,
    pub jobs: Vec<JobSummary>,
    /// The division of capacity between namespaces, those that are owed most first; on the first page only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareSummary>,
    /// The parameter of the next page.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A namespace's part of the capacity that attempts may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShareSummary {
    pub namespace: Arc<str>,
    pub weight: Decimal,
    /// The share that the namespace is entitled to.
    pub entitled: Decimal,
    /// The share that its attempts hold.
    pub held: Decimal,
    /// The part of `held` beyond `entitled`.
    pub lent: Decimal,
    /// The part of `entitled` that its tasks wait for while others hold it.
    pub owed: Decimal,
    /// When it holds its share at the latest, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owed_until: Option<Time>,
}

/// One job as people list it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSummary {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub kind: Cow<'static, str>,
    pub phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When it ended. The leader lists unfinished jobs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pocd: Option<Pocd>,
    #[serde(rename = "calibratedPoCD", skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Pocd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_completion_time: Option<Time>,
    /// From the estimated completion to the deadline; negative if the job is expected to be late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack_seconds: Option<i64>,
    pub tasks: i32,
    pub succeeded: i32,
    pub active: i32,
    pub clones: i32,
    pub waiting: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<RiskSummary>,
}

/// Why a job is at risk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RiskSummary {
    pub cause: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
}

/// The nodes, the slowest first; nodes without evidence last.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeList {
    /// The time of the facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    pub nodes: Vec<NodeSummary>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSummary {
    pub name: Arc<str>,
    /// Speed over the usual speed of the same jobs: 0.5 means that attempts take twice as long there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Decimal>,
    /// Normal, Slow or Unknown.
    pub verdict: Cow<'static, str>,
    /// Namespaces whose clones keep off the node because of their own attempts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub avoided_by: Vec<Arc<str>>,
    /// When slowness was last seen; for slow nodes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_time: Option<Time>,
    pub witnesses: Vec<WitnessSummary>,
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_witnesses: usize,
}

/// A job whose attempts show a node's pace.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WitnessSummary {
    pub namespace: Arc<str>,
    pub job: Arc<str>,
    pub tasks: u32,
    pub pace: Decimal,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
