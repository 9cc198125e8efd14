//! Hopper (spec 8): a job's virtual size is 2/β times its remaining tasks, at least one slot each.
//! When all virtual sizes fit, slots are shared in their proportion. Otherwise jobs are filled up
//! in ascending virtual size. Within its share a job clones the tasks that would end later than a
//! new attempt, the latest first. It ignores deadlines, and its clones start from zero.

use crate::given_distribution::GivenDistribution;
use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::{Arranged, Comparison, Desk, Judgement, PolicyRule, Recall, Summary};
use shed_core::round::clones::{Ask, CloneJob, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::time::Span;

/// The parameters of Hopper.
#[derive(Debug, Clone, PartialEq)]
pub struct Hopper {
    /// Most clones of a task.
    pub max_clones: u32,
    /// β of the workload, which Hopper takes as fixed; 0: the job's own.
    pub beta: f64,
    /// From look to look.
    pub interval: Span,
}

impl Default for Hopper {
    fn default() -> Self {
        Self {
            max_clones: 1,
            beta: 0.0,
            interval: Span::from_seconds(3),
        }
    }
}

impl PolicyRule for Hopper {
    /// 2/β, at least 1, of a job that takes part.
    type Belief = Option<f64>;
    type State = ();
    /// The slots of the job.
    type Place = f64;

    fn name(&self) -> &'static str {
        "hopper"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::number("beta", &mut self.beta, 0.0, 1000.0),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, ()>) -> Judgement<Option<f64>> {
        let given = GivenDistribution {
            t_min: 1.0,
            beta: self.beta,
        };
        let beta = || given.of(job).map_or(1.0, |distribution| distribution.beta);
        Judgement {
            belief: job.may_speculate().then(|| (2.0 / beta()).max(1.0)),
            ..Judgement::every(self.interval, job, recall)
        }
    }

    fn arrange(
        &self,
        jobs: &[Summary<'_, Option<f64>>],
        context: &Comparison<'_>,
    ) -> Vec<Arranged<f64>> {
        let shares = shares(jobs, context.by_submission).into_iter();
        shares.map(Arranged::at).collect()
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let shares = desk.places().to_vec();
        for mode in MODES {
            let ask = Ask::blind(self.max_clones);
            for mut job in desk.clone_jobs(mode, ask, |_, state, task| {
                excess(state.estimate.mean_run, task) > 0.0
            }) {
                let share = shares.get(job.position).copied().unwrap_or(0.0);
                speculate(desk, &mut job, share);
            }
        }
    }
}

/// The slots of each job, by position.
fn shares(jobs: &[Summary<'_, Option<f64>>], by_submission: &[usize]) -> Vec<f64> {
    let size = |job: &Summary<'_, Option<f64>>| {
        job.belief
            .map_or(0.0, |factor| f64::from(job.unfinished) * factor)
    };
    let sizes: Vec<f64> = jobs.iter().map(size).collect();
    let slots = f64::from(jobs.iter().map(|job| job.slots).max().unwrap_or(0));
    let total: f64 = sizes.iter().sum();
    if total <= slots {
        let scale = if total > 0.0 { slots / total } else { 0.0 };
        return sizes.iter().map(|size| size * scale).collect();
    }
    let mut shares = vec![0.0; sizes.len()];
    let mut ascending = by_submission.to_vec();
    let size = |at: usize| sizes.get(at).copied().unwrap_or(0.0);
    ascending.sort_by(|&a, &b| size(a).total_cmp(&size(b)));
    let mut left = slots;
    for at in ascending {
        let share = size(at).min(left);
        left -= share;
        if let Some(slot) = shares.get_mut(at) {
            *slot = share;
        }
    }
    shares
}

/// How much later than a new attempt the task is expected to end.
fn excess(mean: Option<f64>, task: &TaskEstimate) -> f64 {
    match (mean, task.kept().and_then(|kept| kept.remaining)) {
        (Some(mean), Some(remaining)) => remaining - mean,
        _ => 0.0,
    }
}

fn speculate(desk: &mut Desk<'_, '_, Hopper>, job: &mut CloneJob, share: f64) {
    let Some(state) = desk.jobs().get(job.position) else {
        return;
    };
    let mut held =
        (state.estimate.tasks.len() + state.clones_alive() + state.draft.started.len()) as f64;
    let mean = state.estimate.mean_run.unwrap_or(0.0);
    let mut ranked: Vec<(f64, usize)> = Vec::new();
    for (at, task) in job.tasks.iter().enumerate() {
        ranked.extend(task.remaining.map(|remaining| (remaining - mean, at)));
    }
    // Stable: of equals the lowest index is first.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (seconds, at) in ranked {
        if held + 1.0 > share {
            break;
        }
        let finding = Finding::EndsLater { seconds };
        if desk.request(job, at, finding) {
            held += 1.0;
        }
    }
    desk.refuse_rest(job, RefusalReason::Budget);
}
