//! The three networks of \[L\], their features, and the content of their file.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Predictor;
use super::network::Regressor;
use super::view::{LaserJob, LaserTask, drawn};
use crate::formulas::srquant::Prediction;

/// The version of the format that this crate reads. Raised with every change of features or
/// meaning.
pub const VERSION: u32 = 1;

/// A feature, and whether networks use its logarithm. They do for times and counts, which range
/// over magnitudes on real traces.
pub type Feature = (&'static str, bool);

/// Features of a task: those of \[L\] Table II that are known here. No simulator and no kubelet
/// knows records and bytes read and written, or the time for garbage collection. Times are in
/// seconds; `tau_est` is since the job's submission and `elapsed` since the attempt's launch. The
/// two are the same in \[L\], where no task waits for capacity.
pub const TASK_FEATURES: [Feature; 7] = [
    ("host", false),
    ("task", true),
    ("progress", false),
    ("cpu", true),
    ("launch", true),
    ("elapsed", true),
    ("tau_est", true),
];

/// Features of a job with `extra` = r: the mean and the slowest of its running tasks' features, and
/// τ_kill, D and the job's progress.
pub const JOB_FEATURES: [Feature; 14] = [
    ("progress_mean", false),
    ("progress_least", false),
    ("cpu_mean", true),
    ("cpu_most", true),
    ("launch_mean", true),
    ("launch_most", true),
    ("elapsed_mean", true),
    ("elapsed_most", true),
    ("tau_est", true),
    ("tau_kill", true),
    ("deadline", true),
    ("job_progress", false),
    ("tasks", true),
    ("extra", false),
];

/// φ and t_cpu of a running task. \[L\] V.B: for a task that has not begun to process they are
/// zero, and uniform random numbers from (0, 1) replace them.
fn processed(seed: u64, job: &LaserJob, task: &LaserTask) -> [f64; 2] {
    if task.progress > 0.0 {
        return [task.progress, task.cpu()];
    }
    [0, 1].map(|which| drawn(seed, &job.key, [task.index.0, which]))
}

/// The features of a running task, in the order of [`TASK_FEATURES`].
pub fn task_features(seed: u64, job: &LaserJob, task: &LaserTask) -> Vec<f64> {
    let [progress, cpu] = processed(seed, job, task);
    let index = f64::from(task.index.0);
    vec![
        task.host,
        index,
        progress,
        cpu,
        task.launch,
        task.elapsed,
        job.now,
    ]
}

/// The features of a job, in the order of [`JOB_FEATURES`].
pub fn job_features(seed: u64, job: &LaserJob, extra: u32) -> Vec<f64> {
    let of_tasks =
        |of: &dyn Fn(&LaserTask) -> f64| -> Vec<f64> { job.tasks.iter().map(of).collect() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let progress = of_tasks(&|task| processed(seed, job, task)[0]);
    let cpu = of_tasks(&|task| processed(seed, job, task)[1]);
    let launch = of_tasks(&|task| task.launch);
    let elapsed = of_tasks(&|task| task.elapsed);
    let tasks = f64::from(job.completions);
    let least = progress.iter().copied().fold(1.0, f64::min);
    let done = f64::from(job.done) + of_tasks(&|task| task.progress).iter().sum::<f64>();
    vec![
        mean(&progress),
        least,
        mean(&cpu),
        most(&cpu),
        mean(&launch),
        most(&launch),
        mean(&elapsed),
        most(&elapsed),
        job.now,
        job.tau_kill,
        job.deadline,
        done / tasks.max(1.0),
        tasks,
        f64::from(extra),
    ]
}

/// Description of the training data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Source of the jobs.
    pub source: String,
    /// Jobs that ran.
    pub jobs: u64,
    /// Number of them that ran at τ_est and ended.
    pub job_samples: u64,
    /// Number of tasks with a known time.
    pub task_samples: u64,
    /// Passes over the data.
    pub epochs: u32,
    /// The version of shed.
    pub shed: String,
}

/// Three trained networks.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Networks {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Seed of the numbers that replace zeros, in training and in use.
    pub seed: u64,
    /// Description of the training data.
    pub training: Training,
    /// A task's time, from its launch on.
    pub task: Regressor,
    /// A job's time, from its submission on.
    pub job: Regressor,
    /// A job's machine time, summed over all its attempts.
    pub machine: Regressor,
}

/// A thousand weights are useless in a log.
impl fmt::Debug for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Networks");
        out.field("seed", &self.seed);
        out.field("training", &self.training)
            .finish_non_exhaustive()
    }
}

/// The fault of networks that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworksFault {
    /// The field.
    pub field: String,
    /// The value found, the expected value, and the remedy.
    pub message: String,
}

/// The remedy for a file that this version cannot use.
const TRAIN: &str = "train them again by `shed-lab laser train`";

impl Networks {
    /// Whether this version can use them: its own features in its own order, and sound numbers.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> Result<(), NetworksFault> {
        let fault = |field: String, message: String| NetworksFault { field, message };
        if self.version != VERSION {
            return Err(fault(
                "version".into(),
                version_fault(u64::from(self.version)),
            ));
        }
        let networks = [
            ("task", &self.task, TASK_FEATURES.as_slice()),
            ("job", &self.job, &JOB_FEATURES),
            ("machine", &self.machine, &JOB_FEATURES),
        ];
        for (name, network, features) in networks {
            if let Some(message) = features_fault(network, features) {
                return Err(fault(format!("{name}.inputs"), message));
            }
            if let Some((field, what)) = network.fault() {
                return Err(fault(format!("{name}.{field}"), format!("{what}; {TRAIN}")));
            }
        }
        Ok(())
    }

    /// A task's predicted time in seconds, from its launch on.
    pub fn task_time(&self, job: &LaserJob, task: &LaserTask) -> f64 {
        self.task.predict(&task_features(self.seed, job, task))
    }
}

/// The message about networks of another version.
pub fn version_fault(found: u64) -> String {
    format!("networks of version {found}; this version of shed reads version {VERSION}: {TRAIN}")
}

fn features_fault(network: &Regressor, features: &[Feature]) -> Option<String> {
    let found: Vec<&str> = network.inputs.iter().map(|i| i.name.as_str()).collect();
    let expected: Vec<&str> = features.iter().map(|(name, _)| *name).collect();
    if found == expected {
        return None;
    }
    let not_in = |these: &[&str], those: &[&str]| -> Vec<String> {
        let lacking = these.iter().filter(|name| !those.contains(name));
        lacking.map(|name| format!("`{name}`")).collect()
    };
    let (missing, unknown) = (not_in(&expected, &found), not_in(&found, &expected));
    let mut what = Vec::new();
    if !missing.is_empty() {
        what.push(format!("{} missing", missing.join(", ")));
    }
    if !unknown.is_empty() {
        what.push(format!("{} unknown", unknown.join(", ")));
    }
    if what.is_empty() {
        what.push("another order, or a feature twice".into());
    }
    Some(format!(
        "{}; expected are {}: {TRAIN}",
        what.join(", "),
        expected.join(", ")
    ))
}

impl Predictor for Networks {
    fn predict(&self, job: &LaserJob, extra: u32) -> Prediction {
        let features = job_features(self.seed, job, extra);
        Prediction {
            job_time: self.job.predict(&features),
            machine_time: self.machine.predict(&features),
        }
    }

    fn is_late(&self, job: &LaserJob, task: &LaserTask) -> bool {
        job.now - task.elapsed + self.task_time(job, task) > job.deadline
    }
}
