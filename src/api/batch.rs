//! The fields that a `DeadlineJob` shares with a batch/v1 Job, under the same names and with the
//! same meaning.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Value of `spec.managedBy` that means shed; absent means the same.
pub const MANAGED_BY: &str = "shed.dev/deadline-controller";

/// Value of `spec.managedBy` of the companion that shed creates for a batch/v1 Job that it runs.
pub const COMPANION: &str = "shed.dev/job-companion";

/// Effect of a pod failure, by exit code or pod condition. The first matching rule applies. Without
/// a matching rule a failure counts unless the pod was disrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodFailurePolicy {
    /// The rules, in order; at most 20.
    #[schemars(length(max = 20))]
    pub rules: Vec<PodFailureRule>,
}

/// One rule: its match and its action.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.onExitCodes) != has(self.onPodConditions)")
    .message("a rule of spec.podFailurePolicy needs exactly one of onExitCodes and onPodConditions"))]
pub struct PodFailureRule {
    /// FailJob, FailIndex (shed does not retry the task), Ignore (the failure does not count) or Count.
    pub action: PodFailureAction,
    /// Matches by the exit code of a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit_codes: Option<OnExitCodes>,
    /// Matches if the pod has one of these conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub on_pod_conditions: Option<Vec<OnPodCondition>>,
}

/// The action on a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodFailureAction {
    FailJob,
    FailIndex,
    Ignore,
    Count,
}

/// Exit codes that a rule matches. A container that exited with 0 never matches.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.operator != 'In' || !(0 in self.values)")
    .message("onExitCodes.values must not contain 0 with operator In, because exit code 0 is not a failure"))]
pub struct OnExitCodes {
    /// Container that the rule checks; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub container_name: Option<String>,
    /// In or NotIn.
    pub operator: ExitCodeOperator,
    /// The codes; at most 255.
    #[schemars(length(min = 1, max = 255), inner(range(min = 0, max = 255)))]
    pub values: Vec<i32>,
}

/// How exit codes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExitCodeOperator {
    In,
    NotIn,
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnPodCondition {
    /// Its type, e.g. DisruptionTarget.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// True, False or Unknown.
    #[serde(default = "default_condition_status")]
    pub status: ConditionStatus,
}

fn default_condition_status() -> ConditionStatus {
    ConditionStatus::True
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

impl ConditionStatus {
    /// As Kubernetes writes it.
    pub fn text(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// When the job succeeds before every task has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuccessPolicy {
    /// The job succeeds as soon as one rule is met; at most 20.
    #[schemars(length(min = 1, max = 20))]
    pub rules: Vec<SuccessPolicyRule>,
}

/// Tasks whose success is enough.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.succeededIndexes) || has(self.succeededCount)")
    .message("a rule of spec.successPolicy needs succeededIndexes, succeededCount or both"))]
pub struct SuccessPolicyRule {
    /// Tasks that count, e.g. `0,3-5`; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub succeeded_indexes: Option<String>,
    /// How many of them must have succeeded; absent: each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub succeeded_count: Option<i32>,
}

/// When shed retries a task whose attempt failed or is being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodReplacementPolicy {
    /// At once.
    #[default]
    TerminatingOrFailed,
    /// When its last attempt has finished.
    Failed,
}
