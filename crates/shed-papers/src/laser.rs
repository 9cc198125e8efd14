//! LASER (\[L\] Algorithm 2): as SRQuant, but predictions of the job's time and of its machine time
//! for each r choose r. The rule takes any [`Predictor`]: trained [`Networks`], as in \[L\], or
//! without them a [`DistributionPredictor`], which predicts from the job's distribution.

use crate::state::Decided;
use shed_core::ids::TaskIndex;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::formulas::copies::fastest_mean;
use crate::formulas::srquant::{Prediction, laser_best_extra};
use crate::judgement::{Instants, Terms, judge, settings, stop_originals};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::Ask;
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::Snapshot;

pub mod file;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod network;
mod networks;
mod view;

pub use network::{Input, Layer, Regressor};
pub use networks::{
    Feature, JOB_FEATURES, Networks, NetworksFault, TASK_FEATURES, Training, VERSION, job_features,
    task_features, version_fault,
};
pub use view::{LaserJob, LaserTask};

/// Predicts a job's times with r + 1 resumed attempts per straggler.
pub trait Predictor {
    /// The job's time and machine time with `extra` = r; neither may be NaN.
    fn predict(&self, job: &LaserJob, extra: u32) -> Prediction;

    /// Whether the task is a straggler: expected to end after the deadline.
    fn is_late(&self, _job: &LaserJob, task: &LaserTask) -> bool {
        task.is_late
    }
}

/// LASER's rule: the r, at most `extra_max`, of the largest utility 1{T̂(r) ≤ D} − θC·M̂(r).
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

/// Expected values under the job's distribution. A straggler's r + 1 attempts take (1 − φ) times
/// the mean of the fastest of r + 1 samples, after a launch. The other attempts end at their
/// expected time. The job's time is the largest of the tasks' means, which is below the mean of
/// their largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributionPredictor {
    /// The distribution of an attempt's time.
    pub distribution: ParetoDistribution,
    /// t_avg, from a launch to the first report, in seconds.
    pub launch_overhead: f64,
}

impl Predictor for DistributionPredictor {
    fn predict(&self, job: &LaserJob, extra: u32) -> Prediction {
        let attempts = f64::from(extra) + 1.0;
        let fastest = fastest_mean(&self.distribution, attempts);
        let until_kill = (job.tau_kill - job.now).max(0.0);
        let (mut job_time, mut machine_time) = (job.now, 0.0);
        for task in &job.tasks {
            let rest = if task.is_late {
                self.launch_overhead + (1.0 - task.progress_now).max(0.0) * fastest
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

/// Source of r.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Source {
    /// Expected values under the job's distribution.
    #[default]
    Distribution,
    /// Trained networks, which also predict the stragglers.
    Networks(Arc<Networks>),
    /// A random number from 0 to the maximum for each job, with this seed: training data for networks.
    Drawn(u64),
}

/// The parameters of LASER; R_min is not used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Laser {
    /// τ_est and τ_kill.
    pub instants: Instants,
    /// Price, bound and distribution.
    pub terms: Terms,
    /// Source of r; not a part of the policy text.
    pub source: Source,
}

/// The maximum r if a task may have `max_clones` clones: the original is stopped, and one clone
/// takes its place.
fn extra_max(max_clones: u32) -> u32 {
    max_clones.saturating_sub(1)
}

impl Laser {
    /// The r that [`Source::Drawn`] gives the job.
    pub fn drawn_extra(&self, seed: u64, job: &LaserJob) -> u32 {
        let most = extra_max(self.terms.max_clones);
        let unit = view::drawn(seed, &job.key, [u32::MAX; 2]);
        // Below most + 1: the cast rounds down.
        ((unit * (f64::from(most) + 1.0)) as u32).min(most)
    }

    /// r for a job. None while it is unknown: networks have no input while all tasks of the job
    /// wait for capacity.
    fn extra(&self, pass_overhead: f64, state: &JobView<'_>, job: &LaserJob) -> Option<u32> {
        if self.source != Source::Distribution && job.tasks.is_empty() {
            return None;
        }
        let by = |predictor: &dyn Predictor| {
            let allowed = state.job.rules.max_clones_per_task;
            let most = extra_max(self.terms.max_clones.min(allowed));
            extra_attempts(job, predictor, self.terms.theta_c, most)
        };
        Some(match &self.source {
            Source::Distribution => by(&DistributionPredictor {
                distribution: self.terms.distribution.of(state)?,
                launch_overhead: pass_overhead,
            }),
            Source::Networks(networks) => by(&**networks),
            Source::Drawn(seed) => self.drawn_extra(*seed, job),
        })
    }

    fn view(&self, snapshot: &Snapshot, state: &JobView<'_>) -> Option<LaserJob> {
        let [_, tau_kill] = self.instants.of(state.job)?;
        let mut view = LaserJob::of(snapshot, state.job, tau_kill)?;
        for task in &mut view.tasks {
            if let Some(estimate) = state.estimate.running(task.index) {
                foresee(task, estimate);
            }
            task.is_late = state.stragglers.binary_search(&task.index).is_ok();
        }
        Some(view)
    }

    /// Networks also predict which tasks are stragglers at τ_est.
    fn stragglers(&self, snapshot: &Snapshot, state: &JobView<'_>) -> Vec<TaskIndex> {
        match (&self.source, self.view(snapshot, state)) {
            (Source::Networks(networks), Some(job)) => {
                let tasks = job.tasks.iter();
                let late = tasks.filter(|task| networks.is_late(&job, task));
                late.map(|task| task.index).collect()
            }
            _ => state.stragglers.clone(),
        }
    }
}

/// Adds the estimates to the facts.
fn foresee(task: &mut LaserTask, estimate: &TaskEstimate) {
    let attempts = estimate.attempts.iter();
    task.progress_now = attempts.map(|a| a.progress).fold(0.0, f64::max);
    task.remaining = estimate.remaining().filter(|seconds| seconds.is_finite());
}

impl PolicyRule for Laser {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "laser"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        settings(&mut self.terms, &mut self.instants)
    }

    fn reads_files(&self) -> bool {
        true
    }

    fn read_file(&mut self, name: &str, text: &str) -> Result<(), String> {
        let networks = file::read_networks(text).map_err(|fault| format!("{name}: {fault}"))?;
        self.source = Source::Networks(Arc::new(networks));
        Ok(())
    }

    fn files(&self) -> BTreeMap<String, String> {
        let text = match &self.source {
            Source::Networks(networks) => file::networks_to_text(networks).ok(),
            Source::Distribution | Source::Drawn(_) => None,
        };
        let file = text.map(|text| (file::NAME.to_owned(), text));
        file.into_iter().collect()
    }

    fn max_clones(&self) -> u32 {
        self.terms.max_clones
    }

    fn hands_over(&self) -> bool {
        true
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Decided>) -> Judgement<()> {
        self.instants.judge(job, recall, false)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        stop_originals(desk);
        self.instants.keep_furthest(desk);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let ask = Ask::aware(self.terms.max_clones);
        let snapshot = desk.snapshot();
        let late = |state: &JobView<'_>| self.stragglers(snapshot, state);
        judge(desk, &self.instants, ask, late, |state, _| {
            let job = self.view(snapshot, state)?;
            let extra = self.extra(state.t_avg, state, &job)?;
            // A15: r + 1 resumed attempts, as the original dies.
            Some(extra.saturating_add(1))
        });
    }
}
