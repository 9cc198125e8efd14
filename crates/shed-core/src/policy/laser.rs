//! LASER (\[L\] Algorithm 2): as SRQuant, but r is chosen by predictions of the job's time and of its
//! machine time for each r. The rule takes any [`Predictor`]; `decide` runs it with
//! [`LawPredictor`], which predicts from the job's law what \[L\] learns with neural networks.

use crate::decide::{JobState, Pass, TaskEstimate};
use crate::estimate::pareto::ParetoLaw;
use crate::estimate::speedup::fastest_mean;
use crate::formulas::srquant::{Prediction, laser_best_extra};
use crate::policy::Speculate;
use crate::policy::clones::Ask;
use crate::policy::judgement::{Instants, Terms, judge, settings, stop_originals};
use crate::policy::params::Setting;

/// A job at τ_est, as a predictor sees it. Times in seconds from the job's submission.
#[derive(Debug, Clone, PartialEq)]
pub struct LaserJob {
    /// The law of an attempt's time.
    pub law: ParetoLaw,
    /// Now.
    pub now: f64,
    /// D, the deadline.
    pub deadline: f64,
    /// τ_kill.
    pub tau_kill: f64,
    /// t_avg, from a launch to the first report.
    pub launch_overhead: f64,
    /// Its running tasks.
    pub tasks: Vec<LaserTask>,
}

/// A running task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaserTask {
    /// Since its first attempt's launch, in seconds.
    pub elapsed: f64,
    /// φ, 0…1.
    pub progress: f64,
    /// Expected time to its end as it is, in seconds; absent while unknown.
    pub remaining: Option<f64>,
    /// Whether it is a straggler, to be replaced.
    pub is_late: bool,
}

/// Predicts what r + 1 resumed attempts per straggler would make of a job.
pub trait Predictor {
    /// The job's time and machine time with `extra` = r; neither may be NaN.
    fn predict(&self, job: &LaserJob, extra: u32) -> Prediction;
}

/// LASER's rule: the r, at most `extra_max`, of the largest utility 1{T̂(r) ≤ D} − θC·M̂(r).
#[must_use]
pub fn extra_attempts(
    job: &LaserJob,
    predictor: &dyn Predictor,
    theta_c: f64,
    extra_max: u32,
) -> u32 {
    let predictions = (0..=extra_max).map(|extra| predictor.predict(job, extra));
    let predictions: Vec<Prediction> = predictions.collect();
    laser_best_extra(&predictions, job.deadline, theta_c)
}

/// Expected values under the job's law. A straggler's r + 1 attempts take (1 − φ) times the mean
/// of the fastest of so many, after a launch; the others end when they are expected to. The job's
/// time is the largest of the tasks' means, which is below the mean of their largest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LawPredictor;

impl Predictor for LawPredictor {
    fn predict(&self, job: &LaserJob, extra: u32) -> Prediction {
        let attempts = f64::from(extra) + 1.0;
        let fastest = fastest_mean(&job.law, attempts);
        let until_kill = (job.tau_kill - job.now).max(0.0);
        let (mut job_time, mut machine_time) = (job.now, 0.0);
        for task in &job.tasks {
            let rest = if task.is_late {
                job.launch_overhead + (1.0 - task.progress).max(0.0) * fastest
            } else {
                task.remaining.unwrap_or(0.0)
            };
            job_time = f64::max(job_time, job.now + rest);
            let losers = if task.is_late {
                f64::from(extra) * until_kill.min(rest)
            } else {
                0.0
            };
            machine_time += task.elapsed + rest + losers;
        }
        Prediction {
            job_time,
            machine_time,
        }
    }
}

/// The parameters of LASER; R_min is not used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Laser {
    /// τ_est and τ_kill.
    pub instants: Instants,
    /// Price, bound and law.
    pub terms: Terms,
}

impl Speculate for Laser {
    fn name(&self) -> &'static str {
        "laser"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        settings(&mut self.terms, &mut self.instants)
    }

    fn max_clones(&self) -> u32 {
        self.terms.max_clones
    }

    fn before_admission(&self, pass: &mut Pass<'_>) {
        self.instants.select(pass, false);
        stop_originals(pass);
        self.instants.prune(pass);
    }

    fn after_admission(&self, pass: &mut Pass<'_>) {
        let ask = Ask::aware(self.terms.max_clones);
        let (now, overhead) = (pass.snapshot.now, pass.overhead);
        judge(pass, &self.instants, ask, |state, phi| {
            let job = self.instants.job(state, self.terms.law.of(state)?, phi)?;
            let view = LaserJob {
                law: job.law,
                now: now.since(state.job.submitted).seconds(),
                deadline: job.deadline,
                tau_kill: job.tau_kill,
                launch_overhead: overhead,
                tasks: tasks(state),
            };
            let extra_max = self.terms.max_clones.saturating_sub(1);
            let extra = extra_attempts(&view, &LawPredictor, self.terms.theta_c, extra_max);
            // A15: r + 1 resumed attempts, as the original dies.
            Some(extra.saturating_add(1))
        });
    }
}

fn tasks(state: &JobState<'_>) -> Vec<LaserTask> {
    let task = |task: &TaskEstimate<'_>| {
        let index = task.task.index;
        let attempts = || task.attempts.iter();
        LaserTask {
            elapsed: attempts().map(|a| a.since_launch).fold(0.0, f64::max),
            progress: attempts().map(|a| a.progress).fold(0.0, f64::max),
            remaining: task.remaining().filter(|seconds| seconds.is_finite()),
            is_late: state.stragglers.binary_search(&index).is_ok(),
        }
    };
    state.estimate.tasks.iter().map(task).collect()
}
