//! How attempts report progress.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How attempts report progress. shed polls them like a probe.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.file), has(self.httpGet), has(self.metric)].filter(given, given).size() == 1")
    .message("spec.progress needs exactly one of file: {}, httpGet: {port, path} and metric: {port, path, name}; omit spec.progress if tasks do not report"))]
pub struct ProgressSource {
    /// The task writes `0.42`, `17/40` or `{\"progress\":0.42,\"checkpoint\":\"…\"}` to the file
    /// that SHED_PROGRESS_FILE names; a sidecar serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileProgress>,
    /// The task serves the same content itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpProgress>,
    /// The task serves a page of Prometheus metrics, and one metric has its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricProgress>,
    /// Minimum seconds between two polls of one attempt whose rate is known. shed polls an attempt up to eight
    /// times less often if a newer value would change little.
    #[serde(default = "default_period_seconds")]
    #[schemars(range(min = 1, max = 3600))]
    pub period_seconds: i32,
}

fn default_period_seconds() -> i32 {
    5
}

/// Progress by file; it has no options yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileProgress {}

/// Progress by the task's own endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpProgress {
    /// Port of the pod.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Path of the endpoint.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^/[^\s]*$"))]
    pub path: String,
}

fn default_path() -> String {
    "/progress".to_owned()
}

/// Progress by a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricProgress {
    /// Port of the pod.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Path of the page, in Prometheus' text format, at most 64 KiB.
    #[serde(default = "default_metrics_path")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^/[^\s]*$"))]
    pub path: String,
    /// Name of the metric, which must have exactly one series: a fraction from 0 to 1, or the amount of
    /// finished work if there is a total.
    #[schemars(
        length(min = 1, max = 256),
        regex(pattern = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")
    )]
    pub name: String,
    /// Name of the metric with the task's total work. Absent: the first metric is a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        regex(pattern = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")
    )]
    pub total: Option<String>,
}

fn default_metrics_path() -> String {
    "/metrics".to_owned()
}
