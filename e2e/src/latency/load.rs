//! The load: jobs that arrive at a steady rate, each with stragglers by a distribution that it declares.

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::campaign::kubelet::RUN_MS;
use crate::jobs::{manifest, shell_or_fake};

/// Tasks of a job.
pub const TASKS: u32 = 10;
/// Usual duration of an attempt in milliseconds, and the longest of one that is not a straggler …
pub const LONGEST_MS: u32 = 5000;
/// … and the duration of a straggler.
const STRAGGLER_MS: u32 = 60_000;
/// One attempt of this many is a straggler.
const ONE_OF: usize = 10;
/// A straggler alone does not meet it, and a clone does.
const DEADLINE: &str = "40s";
/// Highest rate that is taken.
const RATE_MAX: f64 = 100.0;

/// An arrival rate of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(f64);

impl Rate {
    /// Jobs per second.
    pub fn per_second(self) -> f64 {
        self.0
    }

    /// Jobs that arrive in this time.
    pub fn jobs_in(self, time: Duration) -> u32 {
        (self.0 * time.as_secs_f64()).round().max(1.0) as u32
    }

    /// When a job arrives, from the first one on.
    pub fn arrival(self, index: u32) -> Duration {
        Duration::from_secs_f64(f64::from(index) / self.0)
    }
}

impl Eq for Rate {}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Display for Rate {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = text
            .parse()
            .ok()
            .filter(|rate| 0.0 < *rate && *rate <= RATE_MAX);
        let unknown = || {
            format!(
                "unknown load `{text}`: jobs per second, above 0 and at most {RATE_MAX}, such as 0.5 or 4"
            )
        };
        rate.map(Self).ok_or_else(unknown)
    }
}

/// Jobs that arrive at a steady rate, and at once in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Load {
    /// Jobs that arrive at once.
    #[serde(default, skip_serializing_if = "is_calm")]
    pub storm: u32,
    /// Arrival rate of the others.
    pub rate: Rate,
}

impl Display for Load {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} jobs per second", self.rate)?;
        match self.storm {
            0 => Ok(()),
            storm => write!(formatter, ", and {storm} at once"),
        }
    }
}

// Serde passes a reference.
fn is_calm(storm: &u32) -> bool {
    *storm == 0
}

/// Jobs with stragglers arrive at this rate for this time before a storm, so that kills are due while it lasts …
pub const STORM_RATE: Rate = Rate(4.0);
/// … see [`STORM_RATE`] …
pub const STORM_ARRIVALS: Duration = Duration::from_secs(10);
/// … and it comes that long after the first of them: most stragglers have a clone by then, which still runs.
pub const STORM_AFTER: Duration = Duration::from_secs(15);

/// A job of a storm: its attempts all take the usual time, so none is cloned or deleted.
pub fn storm_job(index: u32) -> Value {
    let spec = json!({
        "completions": TASKS,
        "deadline": {"within": "1h"},
        "onMiss": "Continue",
        "speculation": {"mode": "Disabled"},
        "template": shell_or_fake("exit 0", LONGEST_MS, 0),
    });
    manifest(&format!("storm-{index}"), &spec)
}

/// One job. Pods draw their durations by the hash of job, task and attempt (kwok/stages.yaml), so a clone's differs
/// from its original's.
pub fn job(index: u32) -> Value {
    let mut template = shell_or_fake("exit 0", LONGEST_MS, 0);
    let mut durations = vec![LONGEST_MS.to_string(); ONE_OF - 1];
    durations.push(STRAGGLER_MS.to_string());
    template["metadata"]["annotations"][RUN_MS] = json!(durations.join(" "));
    let usual = format!("{LONGEST_MS}ms");
    let spec = json!({
        "completions": TASKS,
        "deadline": {"within": DEADLINE},
        "onMiss": "Continue",
        "speculation": {"mode": "Enabled"},
        // The declared distribution: the duration of every attempt that is no straggler.
        "expectedTaskDuration": {"p50": usual, "p90": usual},
        "template": template,
    });
    manifest(&format!("job-{index}"), &spec)
}

#[cfg(test)]
mod tests {
    use shed::api::DeadlineJob;

    use super::*;

    #[test]
    fn an_unknown_load_is_answered_with_what_is_one() {
        for wrong in ["", "fast", "0", "-1", "1000", "NaN"] {
            let said = wrong.parse::<Rate>().unwrap_err();
            assert!(said.contains("jobs per second"), "{said}");
        }
        assert_eq!("0.5".parse(), Ok(Rate(0.5)));
    }

    #[test]
    fn jobs_arrive_at_the_rate() {
        let rate = Rate(4.0);
        assert_eq!(rate.jobs_in(Duration::from_secs(30)), 120);
        assert_eq!(rate.arrival(6), Duration::from_millis(1500));
    }

    #[test]
    fn a_job_declares_the_duration_of_a_regular_attempt() {
        let job: DeadlineJob = serde_json::from_value(job(7)).unwrap();
        assert_eq!(u32::try_from(job.spec.completions), Ok(TASKS));
        let p90 = job.spec.expected_task_duration.unwrap().p90;
        assert_eq!(p90.as_deref(), Some("5000ms"));
    }
}
