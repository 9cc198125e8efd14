//! Dolly (spec 8 of the Shed family, section 10 of DollyMP): when a job is submitted, all of its
//! tasks get as many attempts as make it improbable that any straggles, or none gets a clone if
//! that would take more than a small share of the cluster.

use crate::formulas::dolly::{self, DollyLimits, DollyLoad};
use crate::redundancy::is_decided;
use crate::redundancy::launch_copies;
use crate::state::Decided;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::Ask;
use shed_core::settings::Setting;
use shed_core::time::Span;

/// A task straggles if it takes longer than this many medians of its job.
const STRAGGLES: f64 = 1.5;

/// The parameters of Dolly.
#[derive(Debug, Clone, PartialEq)]
pub struct Dolly {
    /// ε: the accepted probability that a task of the job straggles after cloning.
    pub epsilon: f64,
    /// p: the probability that an attempt straggles; 0: the share of the recent winners in the
    /// cluster that took more than 1.5 times the median of their job. \[S\] and \[S+\] give 1 − PoCD of
    /// Hadoop, a job's miss, in its place.
    pub p: f64,
    /// τ: the utilization from which on nothing is cloned.
    pub utilisation: f64,
    /// β: the share of all slots that clones may hold.
    pub budget: f64,
    /// Most clones of a task.
    pub max_clones: u32,
}

impl Default for Dolly {
    fn default() -> Self {
        let limits = DollyLimits::default();
        Self {
            epsilon: limits.epsilon,
            p: 0.0,
            utilisation: limits.utilisation_max,
            budget: limits.budget,
            max_clones: 20,
        }
    }
}

impl PolicyRule for Dolly {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "dolly"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::number("epsilon", &mut self.epsilon, 1e-9, 1.0),
            Setting::number("p", &mut self.p, 0.0, 1.0),
            Setting::number("utilisation", &mut self.utilisation, 0.0, 1.0),
            Setting::number("budget", &mut self.budget, 0.0, 1.0),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(LOOK, job, recall)
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        self.decide_for_new_jobs(desk);
        let ask = Ask::blind(self.max_clones);
        launch_copies(desk, ask);
    }
}

/// Time until clones that found no slot are tried again.
const LOOK: Span = Span::from_seconds(3);

impl Dolly {
    fn decide_for_new_jobs(&self, desk: &mut Desk<'_, '_, Self>) {
        let p = if self.p > 0.0 {
            self.p
        } else {
            share_of_stragglers(desk)
        };
        let mut in_use: u64 = desk.jobs().iter().map(|s| s.clones_alive() as u64).sum();
        for position in desk.by_submission() {
            let Some(state) = desk.jobs().get(position) else {
                continue;
            };
            if is_decided(desk, position) || state.draft.started.is_empty() {
                continue;
            }
            let slots = u64::from(desk.capacity().times_usable(position));
            let free = u64::from(desk.capacity().times_free(position));
            let load = DollyLoad {
                slots,
                utilisation: 1.0 - free as f64 / slots.max(1) as f64,
                clones_in_use: in_use,
            };
            let tasks = state.job.rules.completions;
            let decision = dolly::decide(tasks, p, &self.limits(), &load);
            in_use += u64::from(decision.copies - 1) * u64::from(tasks);
            if let Some(state) = desk.state_mut(position) {
                state.copies = Some(decision.copies);
            }
        }
    }

    fn limits(&self) -> DollyLimits {
        DollyLimits {
            epsilon: self.epsilon,
            utilisation_max: self.utilisation,
            budget: self.budget,
            tasks_max: None,
        }
    }
}

fn share_of_stragglers(desk: &Desk<'_, '_, Dolly>) -> f64 {
    let (mut all, mut slow) = (0usize, 0usize);
    for JobView { job, .. } in desk.jobs() {
        let mut runs = job.ended_runs.clone();
        runs.sort_unstable();
        if let Some(median) = runs.get(runs.len() / 2) {
            let limit = STRAGGLES * median.seconds();
            all += runs.len();
            slow += runs.iter().filter(|run| run.seconds() > limit).count();
        }
    }
    slow as f64 / all.max(1) as f64
}
