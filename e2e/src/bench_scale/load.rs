//! The loads of the bench: sizes, and the kinds of jobs that carry them.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use shed::api::MANAGED_BY;

use crate::jobs::{manifest, shell_or_fake};

/// How long a task runs, in milliseconds.
pub const TASK_MS: u32 = 5000;
/// No job comes near its deadline.
const DEADLINE: &str = "12h";

/// Jobs, and tasks of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Size {
    /// One job of 1 000 tasks.
    #[value(name = "1x1000")]
    OneBy1000,
    /// One job of 10 000 tasks.
    #[value(name = "1x10000")]
    OneBy10000,
    /// 200 jobs of 10 tasks, at once.
    #[value(name = "200x10")]
    ManySmall,
    /// 1 000 jobs of 10 tasks, at once.
    #[value(name = "1000x10")]
    VeryMany,
    /// 100 jobs of 100 tasks, one every 3 s.
    #[value(name = "100x100")]
    Arrivals,
}

/// The controller of the jobs, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Kind {
    /// batch/v1 Jobs of the built-in controller.
    Job,
    /// DeadlineJobs without clones.
    Disabled,
    /// batch/v1 Jobs that shed runs.
    Adopted,
}

impl Size {
    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> String {
        name(self)
    }

    /// Number of jobs.
    #[must_use]
    pub fn jobs(self) -> u32 {
        match self {
            Self::OneBy1000 | Self::OneBy10000 => 1,
            Self::ManySmall => 200,
            Self::VeryMany => 1000,
            Self::Arrivals => 100,
        }
    }

    /// Tasks of one job.
    #[must_use]
    pub fn tasks_per_job(self) -> u32 {
        match self {
            Self::OneBy1000 => 1000,
            Self::OneBy10000 => 10_000,
            Self::ManySmall | Self::VeryMany => 10,
            Self::Arrivals => 100,
        }
    }

    /// Tasks of all jobs.
    #[must_use]
    pub fn tasks(self) -> u32 {
        self.jobs() * self.tasks_per_job()
    }

    /// Time between two jobs.
    #[must_use]
    pub fn spacing(self) -> Duration {
        Duration::from_secs(if self == Self::Arrivals { 3 } else { 0 })
    }

    /// Pods that live at once, at least, unless the cluster is the limit.
    #[must_use]
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
    #[must_use]
    pub fn name(self) -> String {
        name(self)
    }

    /// Its name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Job => "batch/v1 Job",
            Self::Disabled => "DeadlineJob, no clones",
            Self::Adopted => "adopted Job",
        }
    }

    /// Whether its jobs are batch/v1 Jobs.
    #[must_use]
    pub fn is_batch(self) -> bool {
        matches!(self, Self::Job | Self::Adopted)
    }

    /// One job.
    #[must_use]
    pub fn manifest(self, name: &str, tasks: u32) -> Value {
        let mut template = shell_or_fake("exit 0", TASK_MS, 0);
        template["spec"]["restartPolicy"] = json!("Never");
        let mut job = if self.is_batch() {
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
                "completionMode": "Indexed", "completions": tasks, "parallelism": tasks,
                "template": template,
            }})
        } else {
            let spec = json!({"completions": tasks, "deadline": {"within": DEADLINE},
                "speculation": {"mode": "Disabled"}, "template": template});
            manifest(name, &spec)
        };
        if self == Self::Adopted {
            job["spec"]["managedBy"] = json!(MANAGED_BY);
            job["metadata"]["annotations"] = json!({"shed.dev/deadline": DEADLINE});
        }
        job
    }
}

fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use shed::api::DeadlineJob;

    use super::*;

    #[test]
    fn all_kinds_run_the_same_pods() {
        let template = |kind: Kind| kind.manifest("a", 3)["spec"]["template"].clone();
        for kind in Kind::value_variants() {
            assert_eq!(template(*kind), template(Kind::Job), "{kind:?}");
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
    }
}
