//! The deadline of a job, as users write it.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the job must be complete, in exactly one form.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.within), has(self.at), has(self.clock), has(self.history)].filter(given, given).size() == 1")
        .message("spec.deadline needs exactly one of within (e.g. 10m), at (e.g. 2030-01-31T08:00:00Z), clock (e.g. {time: '06:00', timeZone: Europe/Zurich}) and history (e.g. {quantile: p95, factor: '1.5'})"),
    validation = Rule::new("!has(self.within) || duration(self.within) > duration('0s')")
        .message("spec.deadline.within must be longer than 0s, e.g. 10m"),
    validation = Rule::new("(!has(self.clock) && !has(self.history)) || self.clockStart == 'Creation'")
        .message("spec.deadline.clockStart: Start needs spec.deadline.within, because clock and history define their own start: remove it")
)]
pub struct Deadline {
    /// Time from clockStart, e.g. 90s, 10m, 1h30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub within: Option<String>,
    /// Absolute instant, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockDeadline>,
    /// A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryDeadline>,
    /// Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass
    /// in which the job is not suspended).
    #[serde(default)]
    pub clock_start: ClockStart,
}

/// A time of day in a time zone. If the clocks skip it on that day, the first instant after the gap counts; if they
/// show it twice, the first one.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.time.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')")
        .message("spec.deadline.clock.time must be HH:MM from 00:00 to 23:59, e.g. 06:00")
)]
pub struct ClockDeadline {
    /// Hour and minute, 00:00 to 23:59.
    #[schemars(length(max = 16))]
    pub time: String,
    /// Name from the IANA time zone database, e.g. Europe/Zurich or Etc/UTC.
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

/// A quantile of earlier completion times, times a factor. Until 5 completion times are known, the job runs
/// without a deadline.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.factor.matches('^[0-9]{1,3}([.][0-9]{1,3})?$') && double(self.factor) > 0.0 && double(self.factor) <= 100.0")
        .message("spec.deadline.history.factor must be a decimal number above 0 and at most 100, e.g. '1.5'")
)]
pub struct HistoryDeadline {
    /// p50, p90, p95, p99 or max of the last 50 completion times of the class.
    pub quantile: Quantile,
    /// The quantile is multiplied by this decimal number above 0 and at most 100.
    #[serde(default = "default_factor")]
    #[schemars(length(max = 7))]
    pub factor: String,
}

fn default_factor() -> String {
    "1".to_owned()
}

/// A quantile of completion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    P50,
    P90,
    P95,
    P99,
    Max,
}

impl Quantile {
    /// All quantiles, in ascending order.
    pub const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::Max];
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Max => "max",
        })
    }
}

/// Start of `within`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClockStart {
    #[default]
    Creation,
    Start,
}
