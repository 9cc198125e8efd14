//! The loads of the bench: sizes, and the kinds of jobs that carry them.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shed::api::MANAGED_BY;

use crate::campaign::kubelet::RUN_MS;
use crate::campaign::workload::finished;
use crate::command::option_name;
use crate::jobs::{manifest, shell_or_fake};

/// How long a task runs, in milliseconds.
pub const TASK_MS: u32 = 5000;
/// Tail of the Pareto distribution, whose shortest duration is [`TASK_MS`] …
const TAIL: f64 = 1.5;
/// … and which is cut here, in milliseconds.
const LONGEST_MS: f64 = 120_000.0;
/// Its quantiles that pods have.
const QUANTILES: u32 = 100;
/// No job comes near its deadline.
const DEADLINE: &str = "12h";
/// Clones help to meet a deadline of at least this, in seconds …
const CLONES_DEADLINE: f64 = 120.0;
/// … at which about half of all jobs would be in time without clones: that is where a clone gains most.
const IN_TIME: f64 = 0.7;

/// Jobs, and tasks of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
pub enum Size {
    /// 20 jobs of 5 tasks, at once: to try the bench.
    #[value(name = "20x5")]
    #[serde(rename = "20x5")]
    Trial,
    /// One job of 1 000 tasks.
    #[value(name = "1x1000")]
    #[serde(rename = "1x1000")]
    OneBy1000,
    /// One job of 10 000 tasks.
    #[value(name = "1x10000")]
    #[serde(rename = "1x10000")]
    OneBy10000,
    /// 200 jobs of 10 tasks, at once.
    #[value(name = "200x10")]
    #[serde(rename = "200x10")]
    ManySmall,
    /// 1 000 jobs of 10 tasks, at once.
    #[value(name = "1000x10")]
    #[serde(rename = "1000x10")]
    VeryMany,
    /// 100 jobs of 100 tasks, one every 3 s.
    #[value(name = "100x100")]
    #[serde(rename = "100x100")]
    Arrivals,
    /// 10 000 jobs that have finished, while nothing happens for 60 s.
    #[value(name = "finished")]
    #[serde(rename = "finished")]
    Finished,
}

/// The controller of the jobs, and how long their tasks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// batch/v1 Jobs of the built-in controller.
    Job,
    /// DeadlineJobs without clones.
    Disabled,
    /// batch/v1 Jobs that shed runs.
    Adopted,
    /// As `job`, with durations from a Pareto distribution: the baseline of `clones`.
    JobPareto,
    /// DeadlineJobs with clones of stragglers, with durations from that distribution.
    Clones,
}

impl Size {
    /// Its name on the command line and in results.
    pub fn name(self) -> String {
        option_name(&self)
    }

    /// Number of jobs, and tasks of each.
    fn shape(self) -> (u32, u32) {
        match self {
            Self::Trial => (20, 5),
            Self::OneBy1000 => (1, 1000),
            Self::OneBy10000 => (1, 10_000),
            Self::ManySmall => (200, 10),
            Self::VeryMany => (1000, 10),
            Self::Arrivals => (100, 100),
            Self::Finished => (10_000, 0),
        }
    }

    /// Number of jobs.
    pub fn jobs(self) -> u32 {
        self.shape().0
    }

    /// Tasks of one job.
    pub fn tasks_per_job(self) -> u32 {
        self.shape().1
    }

    /// Tasks of all jobs.
    pub fn tasks(self) -> u32 {
        self.jobs() * self.tasks_per_job()
    }

    /// Time between two jobs.
    pub fn spacing(self) -> Duration {
        Duration::from_secs(if self == Self::Arrivals { 3 } else { 0 })
    }

    /// Whether it can be run with a kind. Jobs that have finished are made without an operator.
    pub fn has(self, kind: Kind) -> bool {
        self != Self::Finished || matches!(kind, Kind::Job | Kind::Disabled)
    }

    /// Pods that live at once, at least, unless the cluster is the limit.
    pub fn live(self) -> u32 {
        match self {
            // Four jobs live at once; eight leave time to start.
            Self::Arrivals => 8 * self.tasks_per_job(),
            _ => self.tasks(),
        }
    }
}

impl Kind {
    /// Its name on the command line and in results.
    pub fn name(self) -> String {
        option_name(&self)
    }

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Job => "batch/v1 Job",
            Self::Disabled => "DeadlineJob, no clones",
            Self::Adopted => "adopted Job",
            Self::JobPareto => "batch/v1 Job, Pareto",
            Self::Clones => "DeadlineJob, clones, Pareto",
        }
    }

    /// The kind that its figures are divided by; absent for those of the built-in controller.
    pub fn baseline(self) -> Option<Self> {
        match self {
            Self::Job | Self::JobPareto => None,
            Self::Disabled | Self::Adopted => Some(Self::Job),
            Self::Clones => Some(Self::JobPareto),
        }
    }

    /// For the built-in controller: the kind next to which the controller-manager has the same other work.
    pub fn without_controller(self) -> Option<Self> {
        match self {
            Self::Job => Some(Self::Disabled),
            Self::JobPareto => Some(Self::Clones),
            Self::Disabled | Self::Adopted | Self::Clones => None,
        }
    }

    /// Whether the built-in controller runs its jobs.
    pub fn is_builtin(self) -> bool {
        self.baseline().is_none()
    }

    /// Whether its jobs are batch/v1 Jobs.
    pub fn is_batch(self) -> bool {
        self.is_builtin() || self == Self::Adopted
    }

    /// Whether durations are from the Pareto distribution.
    fn is_pareto(self) -> bool {
        matches!(self, Self::JobPareto | Self::Clones)
    }

    /// One job.
    pub fn manifest(self, name: &str, tasks: u32) -> Value {
        let mut template = shell_or_fake("exit 0", TASK_MS, 0);
        template["spec"]["restartPolicy"] = json!("Never");
        if self.is_pareto() {
            template["metadata"]["annotations"][RUN_MS] = json!(pareto());
        }
        if self.is_batch() {
            let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
                "completionMode": "Indexed", "completions": tasks, "parallelism": tasks,
                "template": template,
            }});
            if self == Self::Adopted {
                job["spec"]["managedBy"] = json!(MANAGED_BY);
                job["metadata"]["annotations"] = json!({"shed.dev/deadline": DEADLINE});
            }
            return job;
        }
        let mut spec = json!({"completions": tasks, "deadline": {"within": DEADLINE},
            "speculation": {"mode": "Disabled"}, "template": template});
        if self == Self::Clones {
            spec["deadline"] = json!({"within": format!("{}s", clones_deadline(tasks))});
            spec["onMiss"] = json!("Continue");
            spec["speculation"] = json!({"mode": "Enabled"});
        }
        manifest(name, &spec)
    }
}

/// A deadline in seconds at which a number of [`IN_TIME`] tasks of the job is expected to be late without clones.
fn clones_deadline(tasks: u32) -> u64 {
    let shortest = f64::from(TASK_MS) / 1000.0;
    let within = shortest * (f64::from(tasks) / IN_TIME).powf(1.0 / TAIL);
    within.max(CLONES_DEADLINE) as u64
}

/// Quantiles of the Pareto distribution in milliseconds, from which kwok draws the duration of each pod by the hash
/// of its job, index and attempt. So every run of a size has the same durations.
fn pareto() -> String {
    let quantile = |rank: u32| {
        let above = 1.0 - (f64::from(rank) + 0.5) / f64::from(QUANTILES);
        let ms = f64::from(TASK_MS) * above.powf(-1.0 / TAIL);
        (ms.min(LONGEST_MS) as u64).to_string()
    };
    (0..QUANTILES).map(quantile).collect::<Vec<_>>().join(" ")
}

/// A DeadlineJob that has finished, and its status.
pub fn finished_deadline_job(name: &str) -> (Value, Value) {
    finished(&shell_or_fake("exit 0", TASK_MS, 0), name)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use shed::api::DeadlineJob;

    use super::*;

    #[test]
    fn a_kind_runs_the_same_pods_as_its_baseline() {
        let template = |kind: Kind| kind.manifest("a", 3)["spec"]["template"].clone();
        for kind in Kind::value_variants() {
            let baseline = kind.baseline().unwrap_or(*kind);
            assert_eq!(template(*kind), template(baseline), "{kind:?}");
            let job = kind.manifest("a", 3);
            if kind.is_batch() {
                let job: Job = serde_json::from_value(job).unwrap();
                let manager = job.spec.unwrap().managed_by;
                assert_eq!(manager.is_some(), *kind == Kind::Adopted);
            } else {
                let job: DeadlineJob = serde_json::from_value(job).unwrap();
                assert_eq!((job.spec.completions, job.spec.is_ours()), (3, true));
            }
        }
        assert_ne!(template(Kind::Job), template(Kind::JobPareto));
    }

    #[test]
    fn durations_are_quantiles_of_the_distribution() {
        let text = pareto();
        let all: Vec<u64> = text.split(' ').map(|ms| ms.parse().unwrap()).collect();
        assert_eq!(all.len(), 100);
        assert!(
            all.is_sorted() && all[0] >= 5000 && all[99] == 120_000,
            "{text}"
        );
        // The median of that distribution is 5 s x 2^(1/1.5) = 7.9 s.
        let shorter = all.iter().filter(|ms| **ms < 7937).count();
        assert_eq!(shorter, 50);
    }

    #[test]
    fn deadlines_of_jobs_with_clones_grow_with_their_tasks() {
        let all = [10, 100, 1000, 10_000].map(clones_deadline);
        assert_eq!(all, [120, 136, 634, 2943]);
    }

    #[test]
    fn names_on_the_command_line_are_those_of_the_results() {
        for size in Size::value_variants() {
            assert_eq!(serde_json::to_value(size).unwrap(), size.name());
        }
        for kind in Kind::value_variants() {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
