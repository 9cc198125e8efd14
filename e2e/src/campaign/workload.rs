//! The reference workloads: what is submitted, how each attempt fares on its fake node, and
//! what a user does meanwhile.

mod ends;
mod large_specs;

use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use shed::api;

use super::fault::{Fault, Point};
use super::nodes;
use crate::command::option_name;
use crate::jobs::{manifest, shell_or_fake};
pub use ends::Expected;
use large_specs::BLOATED;
pub use large_specs::{arguments, finished};

/// The jobs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Workload {
    /// More tasks than slots, and no task fails.
    Plain,
    /// A straggler whose clones resume where it has got to.
    Clones,
    /// Failures within and beyond the limit, a deadline that passes, a pod and a job that are
    /// deleted, a time to live.
    Failures,
    /// batch/v1 Jobs that shed runs: one with a straggler and a failure, one that fails, one that
    /// asks nothing of shed.
    Adopted,
    /// Long attempts next to short ones that wait for capacity.
    Mixed,
    /// Jobs whose pods no scheduler can place, next to jobs whose pods it can.
    Unplaceable,
    /// More tasks than the namespace's ResourceQuota has pods for, next to a job of another
    /// namespace.
    Quota,
    /// Specifications at what is taken, just above, and far above it, next to ordinary ones.
    BigSpec,
    /// Hundreds of finished jobs next to live ones.
    ManyFinished,
    /// A job whose status a user makes as large as etcd takes it, and smaller again.
    Bloated,
}

/// Jobs that have finished before the operator starts, under [`Workload::ManyFinished`].
pub const FINISHED: usize = 300;
/// How their names begin.
pub const OLD: &str = "old-";
/// The job of the other namespace under a fault that it must not notice.
pub const NEIGHBOR: &str = "neighbor";
/// Pods that the namespace may have under [`Workload::Quota`].
pub const QUOTA: usize = 3;
/// A job that nothing keeps from being launched: how long it waits shows who stands in its way.
pub const BYSTANDER: &str = "bystander";
/// The job of [`Fault::DeniedCreates`].
pub const DENIED: &str = "denied";
/// The job that meets the ResourceQuota.
pub const NARROW: &str = "narrow";
/// Jobs that no scheduler can place: one asks for too much, one for a label that no node has, one
/// for a scheduler that does not exist.
const UNPLACEABLE: [&str; 3] = ["too-big", "nowhere", "unheard"];
/// Unplaceable pods are known as such before the bystander comes.
const BYSTANDER_AFTER: Duration = Duration::from_secs(15);
/// The quota is met before the bystander comes.
const QUOTA_MET_AFTER: Duration = Duration::from_secs(3);

/// Where a job is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The run's namespace.
    Own,
    /// The other namespace that its operator sees.
    Other,
}

/// When a job is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At the start.
    AtOnce,
    /// This long after the start.
    After(Duration),
    /// Once the fault has struck.
    Struck,
    /// Once the apiserver has refused a pod.
    Refused,
}

/// A job to submit.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its manifest.
    pub manifest: Value,
    /// Its namespace.
    pub home: Home,
    /// When it is submitted.
    pub when: When,
}

/// How an attempt fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fare {
    /// How long the whole task takes it.
    pub whole: Duration,
    /// How it ends.
    pub exit: i32,
}

/// A user's act on an object, once it exists.
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
    /// Edits the job's status once it has a running attempt, so that no more fits into etcd; makes it
    /// smaller again once an event says that the job is too large.
    Bloat {
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
    pub fn name(self) -> String {
        option_name(&self)
    }

    /// Whether its jobs are batch/v1 Jobs.
    pub fn is_adopted(self) -> bool {
        self == Self::Adopted
    }

    /// Whether it is run with this fault.
    pub fn goes_with(self, fault: Fault) -> bool {
        match self {
            Self::Plain | Self::Clones | Self::Failures | Self::Adopted => true,
            Self::Mixed => fault.spares_operator(),
            // They have troubles of their own, which must outlive a crash and a bad line.
            Self::BigSpec | Self::ManyFinished | Self::Bloated => {
                matches!(fault, Fault::None | Fault::Crash | Fault::Overloaded)
            }
            Self::Unplaceable | Self::Quota => matches!(
                fault,
                Fault::None
                    | Fault::Crash
                    | Fault::LostAnswer
                    | Fault::StaleBoth
                    | Fault::Gone
                    | Fault::Errors
            ),
        }
    }

    /// Whether there is another namespace, which its operator sees too.
    pub fn has_other_namespace(self) -> bool {
        self == Self::Quota
    }

    /// The jobs and those that the fault brings; `port` is where attempts serve their progress,
    /// `run` names the nodes that they are kept to, if there are such.
    pub fn jobs(self, port: u16, point: Option<Point>, run: Option<&str>) -> Vec<Submission> {
        let template = nodes::keep_to(shell_or_fake("exit 0", 1000, 0), run);
        let at_once = |manifest| Submission {
            manifest,
            home: Home::Own,
            when: When::AtOnce,
        };
        let own = self.own_jobs(&template, port).into_iter();
        let mut jobs: Vec<Submission> = own.map(at_once).collect();
        jobs.extend(self.companions(&template));
        if let Some(point) = point {
            jobs.extend(brought(point, &template));
            if point.fault == Fault::ClockSkew {
                jobs.iter_mut().for_each(tighten);
            }
            if point.fault.has_neighbor() {
                jobs.iter_mut().for_each(leave_capacity);
                jobs.push(neighbor(&template, port));
            }
        }
        jobs
    }

    fn own_jobs(self, template: &Value, port: u16) -> Vec<Value> {
        let job = |name: &str, spec: Value| of_template(name, spec, template);
        match self {
            Self::Plain => vec![job("plain", tasks(10, "10m"))],
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
                job("late", tasks(1, "6s")),
                job("dropped", tasks(2, "10m")),
                job(
                    "short-lived",
                    json!({"deadline": {"within": "10m"}, "ttlSecondsAfterFinished": 1}),
                ),
            ],
            Self::Adopted => adopted_jobs(template, port),
            Self::Mixed => vec![job("long", tasks(3, "10m")), job("short", tasks(8, "10m"))],
            Self::Unplaceable => unplaceable_jobs(template),
            Self::BigSpec => large_specs::big_specs(template),
            Self::Bloated => large_specs::bloated(template),
            Self::ManyFinished => vec![job("live", tasks(8, "10m"))],
            Self::Quota => vec![job(NARROW, tasks(10, "10m"))],
        }
    }

    /// Jobs that must go on next to those of the workload.
    fn companions(self, template: &Value) -> Vec<Submission> {
        match self {
            Self::Unplaceable => vec![bystander(template, When::After(BYSTANDER_AFTER))],
            Self::Quota => vec![Submission {
                home: Home::Other,
                ..bystander(template, When::After(QUOTA_MET_AFTER))
            }],
            _ => vec![],
        }
    }

    /// Jobs whose pods can't be placed or created. Their attempts hold no capacity for long, and their own
    /// waits are not checked.
    pub fn troubled(self) -> &'static [&'static str] {
        match self {
            Self::Unplaceable => &UNPLACEABLE,
            _ => &[DENIED],
        }
    }

    /// How an attempt fares.
    pub fn fare(self, job: &str, task: u32, attempt: u32) -> Fare {
        match (self, job, task, attempt) {
            (_, BYSTANDER | DENIED, ..) => fare(1500, 0),
            (_, NEIGHBOR, 0, 0) => fare(300_000, 0),
            (_, NEIGHBOR, ..) => fare(4000, 0),
            (Self::Bloated, BLOATED, ..) => fare(3000, 0),
            (Self::Mixed, "long", ..) => fare(25_000, 0),
            // Longer than a launch may wait.
            (Self::Mixed, ..) => fare(4000, 0),
            (Self::Plain | Self::Unplaceable | Self::Quota, ..)
            | (Self::BigSpec | Self::ManyFinished | Self::Bloated, ..) => fare(1500, 0),
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

    /// A user's act.
    pub fn meddling(self) -> &'static [Meddling] {
        match self {
            Self::Bloated => &[Meddling::Bloat { job: BLOATED }],
            Self::Failures => &[
                Meddling::DeletePod { job: "retries" },
                Meddling::DeleteJob { job: "dropped" },
            ],
            _ => &[],
        }
    }
}

fn brings(fault: Fault) -> bool {
    fault.spares_operator() && fault != Fault::None && !fault.has_neighbor()
}

/// The jobs that a fault brings with it.
fn brought(point: Point, template: &Value) -> Vec<Submission> {
    if !brings(point.fault) {
        return vec![];
    }
    if point.fault != Fault::DeniedCreates {
        return vec![bystander(template, When::Struck)];
    }
    let within = if point.denies_for_good() {
        "45s"
    } else {
        "10m"
    };
    let spec = tasks(6, within);
    let denied = Submission {
        manifest: of_template(DENIED, spec, template),
        home: Home::Own,
        when: When::Struck,
    };
    vec![denied, bystander(template, When::Refused)]
}

fn bystander(template: &Value, when: When) -> Submission {
    let spec = tasks(2, "10m");
    Submission {
        manifest: of_template(BYSTANDER, spec, template),
        home: Home::Own,
        when,
    }
}

/// A job of the other namespace with launches, a straggler, and kills.
fn neighbor(template: &Value, port: u16) -> Submission {
    let spec = json!({
        "completions": 8,
        "parallelism": 3,
        "deadline": {"within": "100s"},
        "progress": {"httpGet": {"port": port}, "periodSeconds": 1},
        "resume": "Checkpoint",
    });
    Submission {
        manifest: of_template(NEIGHBOR, spec, template),
        home: Home::Other,
        when: When::Struck,
    }
}

/// Few attempts at once, so that there is capacity for the other namespace.
fn leave_capacity(job: &mut Submission) {
    let spec = &mut job.manifest["spec"];
    if spec["completions"].as_i64().is_some_and(|count| count > 2) {
        spec["parallelism"] = json!(2);
    }
}

/// This many tasks that have this long.
fn tasks(completions: u32, within: &str) -> Value {
    json!({"completions": completions, "deadline": {"within": within}})
}

fn of_template(name: &str, mut spec: Value, template: &Value) -> Value {
    spec["template"] = template.clone();
    manifest(name, &spec)
}

/// A deadline that is minutes away comes so near that a clock which is off by
/// [`nodes::SKEW_SECONDS`] matters.
fn tighten(job: &mut Submission) {
    let within = &mut job.manifest["spec"]["deadline"]["within"];
    if within == "10m" {
        *within = json!(format!("{}s", nodes::SKEW_SECONDS));
    }
}

fn unplaceable_jobs(template: &Value) -> Vec<Value> {
    let [too_big, nowhere, unheard] = UNPLACEABLE;
    let job = |name: &str, completions: u32, spoil: fn(&mut Value)| {
        let spec = tasks(completions, "45s");
        let mut job = of_template(name, spec, template);
        spoil(&mut job["spec"]["template"]["spec"]);
        job
    };
    let normal = tasks(6, "10m");
    vec![
        job(too_big, 2, |pod| {
            pod["containers"][0]["resources"]["requests"]["cpu"] = json!("100000");
        }),
        job(nowhere, 2, |pod| {
            pod["nodeSelector"] = json!({"example.com/no-such": "node"});
        }),
        // As many as fit.
        job(unheard, 6, |pod| {
            pod["schedulerName"] = json!("no-such-scheduler");
        }),
        of_template("normal", normal, template),
    ]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every job that is to end in some way is submitted, and the other way round.
    #[test]
    fn what_is_submitted_is_what_is_expected_to_end() {
        for &workload in Workload::value_variants() {
            let faults = Fault::value_variants().iter();
            for &fault in faults.filter(|&&fault| workload.goes_with(fault)) {
                let point = Some(Point {
                    fault,
                    at: 2,
                    lasts: Duration::ZERO,
                });
                let jobs = workload.jobs(1, point, None).into_iter();
                let mut submitted: Vec<String> = jobs
                    .map(|job| {
                        job.manifest["metadata"]["name"]
                            .as_str()
                            .unwrap()
                            .to_owned()
                    })
                    .collect();
                let expected = workload.expected(point).into_iter();
                let mut expected: Vec<String> = expected.map(|own| own.job.to_owned()).collect();
                submitted.sort();
                expected.sort();
                assert_eq!(submitted, expected, "{} {}", workload.name(), fault.name());
            }
        }
    }

    #[test]
    fn a_job_of_a_run_with_nodes_of_its_own_is_kept_to_them() {
        for job in Workload::Mixed.jobs(1, None, Some("run")) {
            let spec = &job.manifest["spec"]["template"]["spec"];
            assert_eq!(spec["nodeSelector"][nodes::RUN], "run");
        }
    }
}
