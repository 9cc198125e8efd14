//! The reference workloads: what is submitted, how each attempt fares on its fake node, and
//! what a user does meanwhile.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use shed::api;

use crate::jobs::{manifest, shell_or_fake};

/// Which jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Workload {
    /// More tasks than room, none of which fails.
    Plain,
    /// A straggler whose clones resume where it has got to.
    Clones,
    /// Failures within and beyond the limit, a deadline that passes, a pod and a job that are
    /// deleted, a time to live.
    Failures,
    /// batch/v1 Jobs that shed runs: one with a straggler and a failure, one that fails, one that
    /// asks nothing of shed.
    Adopted,
}

/// How an attempt fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fare {
    /// How long the whole task takes it.
    pub whole: Duration,
    /// How it ends.
    pub exit: i32,
}

/// How a job is to end if no fault keeps it beyond its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Name of the job.
    pub job: &'static str,
    /// Its last condition and the reason of that; none if it is gone.
    pub end: Option<(&'static str, &'static str)>,
}

/// What a user does to an object, once it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meddling {
    /// Deletes the first attempt of task 2 once it runs.
    DeletePod {
        /// Of this job.
        job: &'static str,
    },
    /// Deletes the job once it has a running attempt.
    DeleteJob {
        /// This one.
        job: &'static str,
    },
}

fn fare(millis: u64, exit: i32) -> Fare {
    Fare {
        whole: Duration::from_millis(millis),
        exit,
    }
}

impl Workload {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether its jobs are batch/v1 Jobs.
    #[must_use]
    pub fn is_adopted(self) -> bool {
        self == Self::Adopted
    }

    /// The jobs; `port` is where attempts serve their progress.
    #[must_use]
    pub fn jobs(self, port: u16) -> Vec<Value> {
        let template = shell_or_fake("exit 0", 1000, 0);
        let job = |name: &str, mut spec: Value| {
            spec["template"] = template.clone();
            manifest(name, &spec)
        };
        match self {
            Self::Plain => vec![job(
                "plain",
                json!({"completions": 10, "deadline": {"within": "10m"}}),
            )],
            Self::Clones => vec![job(
                "clones",
                json!({
                    "completions": 4,
                    "deadline": {"within": "100s"},
                    "progress": {"httpGet": {"port": port}, "periodSeconds": 1},
                    "resume": "Checkpoint",
                }),
            )],
            Self::Failures => vec![
                job(
                    "retries",
                    json!({"completions": 3, "backoffLimitPerIndex": 1, "deadline": {"within": "10m"}}),
                ),
                job("late", json!({"deadline": {"within": "6s"}})),
                job(
                    "dropped",
                    json!({"completions": 2, "deadline": {"within": "10m"}}),
                ),
                job(
                    "short-lived",
                    json!({"deadline": {"within": "10m"}, "ttlSecondsAfterFinished": 1}),
                ),
            ],
            Self::Adopted => adopted_jobs(&template, port),
        }
    }

    /// How an attempt fares.
    #[must_use]
    pub fn fare(self, job: &str, task: u32, attempt: u32) -> Fare {
        match (self, job, task, attempt) {
            (Self::Plain, ..) => fare(1500, 0),
            // The first attempt of task 0 alone would miss the deadline.
            (Self::Clones, _, 0, 0) => fare(300_000, 0),
            (Self::Clones, ..) => fare(5000, 0),
            // Task 0 fails once, task 1 fails for good; task 2 is deleted while it runs.
            (Self::Failures, "retries", 0, 0) | (Self::Failures, "retries", 1, _) => fare(1000, 3),
            (Self::Failures, "retries", 2, 0) => fare(6000, 0),
            (Self::Failures, "late" | "dropped", ..) => fare(60_000, 0),
            (Self::Failures, ..) | (Self::Adopted, "bare", ..) => fare(1000, 0),
            // As above, and task 1 fails once.
            (Self::Adopted, "adopted", 0, 0) => fare(300_000, 0),
            (Self::Adopted, "adopted", 1, 0) | (Self::Adopted, "doomed", ..) => fare(1000, 3),
            (Self::Adopted, ..) => fare(5000, 0),
        }
    }

    /// What a user does.
    #[must_use]
    pub fn meddling(self) -> &'static [Meddling] {
        match self {
            Self::Plain | Self::Clones | Self::Adopted => &[],
            Self::Failures => &[
                Meddling::DeletePod { job: "retries" },
                Meddling::DeleteJob { job: "dropped" },
            ],
        }
    }

    /// How the jobs are to end.
    #[must_use]
    pub fn expected(self) -> Vec<Expected> {
        let complete = |job| Expected {
            job,
            end: Some(("Complete", "")),
        };
        match self {
            Self::Plain => vec![complete("plain")],
            Self::Clones => vec![complete("clones")],
            Self::Failures => vec![
                Expected {
                    job: "retries",
                    end: Some(("Failed", "FailedIndexes")),
                },
                Expected {
                    job: "late",
                    end: Some(("Failed", "DeadlineMissed")),
                },
                Expected {
                    job: "dropped",
                    end: None,
                },
                Expected {
                    job: "short-lived",
                    end: None,
                },
            ],
            Self::Adopted => vec![
                complete("adopted"),
                Expected {
                    job: "doomed",
                    end: Some(("Failed", "BackoffLimitExceeded")),
                },
                complete("bare"),
            ],
        }
    }
}

fn adopted_jobs(template: &Value, port: u16) -> Vec<Value> {
    let job = |name: &str, annotations: Value, mut spec: Value| {
        spec["managedBy"] = json!(api::MANAGED_BY);
        spec["template"] = template.clone();
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "annotations": annotations}, "spec": spec})
    };
    let wishes = json!({
        "shed.dev/deadline": "100s",
        "shed.dev/idempotency": "Safe",
        "shed.dev/progress": format!("{{httpGet: {{port: {port}}}, periodSeconds: 1}}"),
        "shed.dev/resume": "Checkpoint",
    });
    vec![
        job(
            "adopted",
            wishes,
            json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed"}),
        ),
        job("doomed", json!({}), json!({"backoffLimit": 0})),
        job(
            "bare",
            json!({}),
            json!({"completions": 2, "parallelism": 2}),
        ),
    ]
}
