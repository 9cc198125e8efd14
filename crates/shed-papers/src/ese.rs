//! ESE, enhanced speculative execution ([S] of DollyMP's specification, section 9). A task with one
//! attempt that still needs more than σ mean times gets one more, the longest first. The tasks of
//! small new jobs get several copies from their start; the job's utility gives the number. It
//! ignores deadlines, and its clones start from zero.
//!
//! The paper serves stragglers before first attempts; here first attempts always go first.

use crate::formulas::copies::fastest_mean;
use crate::formulas::ese::{best_whole_copies, straggler_factor};
use crate::formulas::sca::CloneJob;
use crate::given_distribution::GivenDistribution;
use crate::redundancy::launch_copies;
use crate::sca::{is_new, slots_for, undecided_jobs};
use crate::state::Decided;
use shed_core::plan::Finding;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::SpeculationMode;
use shed_core::time::Span;

/// The parameters of ESE; the paper calls η and ξ tuned and gives no values.
#[derive(Debug, Clone, PartialEq)]
pub struct Ese {
    /// σ: remaining time of a straggler, in mean times. 0: σ* of each job's distribution, which
    /// saves most machine time.
    pub sigma: f64,
    /// γ: the price of a machine second against a second of flow time.
    pub gamma: f64,
    /// η: a small job has fewer tasks than this times its equal share of the free slots …
    pub eta: f64,
    /// ξ: … and tasks that take less than this.
    pub xi: Span,
    /// r − 1: the most clones of a small job's task.
    pub max_clones: u32,
    /// From look to look.
    pub interval: Span,
    /// The distribution, if it is given.
    pub distribution: GivenDistribution,
}

impl Default for Ese {
    fn default() -> Self {
        Self {
            sigma: 0.0,
            gamma: 0.05,
            eta: 1.0,
            xi: Span::from_seconds(300),
            max_clones: 7,
            interval: Span::from_seconds(3),
            distribution: GivenDistribution::default(),
        }
    }
}

impl PolicyRule for Ese {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "ese"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = vec![
            Setting::number("sigma", &mut self.sigma, 0.0, 1000.0),
            Setting::number("gamma", &mut self.gamma, 0.0, 1000.0),
            Setting::number("eta", &mut self.eta, 0.0, 1000.0),
            Setting::seconds("xi", &mut self.xi, 0.0, 1e6),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::seconds("interval", &mut self.interval, 0.1, 3600.0),
        ];
        settings.extend(self.distribution.settings());
        settings
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(self.interval, job, recall)
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        self.act(desk);
    }
}

/// Whether the task has one attempt, which still needs more than σ mean times.
fn is_overdue(task: &TaskEstimate, limits: Option<(f64, f64)>) -> bool {
    let needed = || Some((limits?, task.kept()?.remaining?));
    task.attempts.len() == 1 && needed().is_some_and(|((mean, sigma), left)| left / mean > sigma)
}

impl Ese {
    /// Duplicates stragglers, and clones the tasks of small new jobs.
    pub(crate) fn act<R: PolicyRule<State = Decided>>(&self, desk: &mut Desk<'_, '_, R>) {
        for mode in MODES {
            self.duplicate(desk, mode);
        }
        self.decide_for_new_jobs(desk);
        let ask = Ask::blind(self.max_clones);
        launch_copies(desk, ask);
    }

    /// The job's mean time in seconds and its σ.
    fn limits(&self, state: &JobView<'_>) -> Option<(f64, f64)> {
        let distribution = self.distribution.of(state)?;
        let sigma = if self.sigma > 0.0 {
            self.sigma
        } else {
            straggler_factor(distribution.beta)?
        };
        Some((fastest_mean(&distribution, 1.0), sigma))
    }

    fn duplicate<R: PolicyRule<State = Decided>>(
        &self,
        desk: &mut Desk<'_, '_, R>,
        mode: SpeculationMode,
    ) {
        let ask = Ask::blind(self.max_clones.min(1));
        // Of a job, not of each of its tasks: σ* is searched for.
        let limits: Vec<_> = desk.jobs().iter().map(|state| self.limits(state)).collect();
        let mut jobs = desk.clone_jobs(mode, ask, |position, _, task| {
            limits
                .get(position)
                .is_some_and(|job| is_overdue(task, *job))
        });
        let mut ranked = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            let limits = limits.get(job.position).copied().flatten();
            let mean = limits.map_or(f64::INFINITY, |(mean, _)| mean);
            for (task, candidate) in job.tasks.iter().enumerate() {
                let remaining = candidate.remaining.unwrap_or(0.0);
                ranked.push((remaining, remaining / mean, at, task));
            }
        }
        // Stable: of equals the earliest job's lowest index is first.
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, times, at, task) in ranked {
            if let Some(job) = jobs.get_mut(at) {
                let finding = Finding::Overdue { times };
                desk.request(job, task, finding);
            }
        }
    }

    fn decide_for_new_jobs<R: PolicyRule<State = Decided>>(&self, desk: &mut Desk<'_, '_, R>) {
        let new = undecided_jobs(desk, &self.distribution, is_new);
        let slots = slots_for(desk, new.iter().map(|(at, _)| *at));
        let share = slots as f64 / new.len().max(1) as f64;
        for (at, distribution) in new {
            let Some(state) = desk.jobs().get(at) else {
                continue;
            };
            let tasks = state.unfinished();
            let fits = u32::try_from(slots / u64::from(tasks.max(1))).unwrap_or(u32::MAX);
            let is_small = f64::from(tasks) < self.eta * share
                && fastest_mean(&distribution, 1.0) < self.xi.seconds();
            let most = self.max_clones.saturating_add(1).min(fits);
            let searches = is_small && most > 1;
            if searches && !desk.afford(&[at], u64::from(tasks) * u64::from(most)) {
                continue;
            }
            let copies = if searches {
                best_whole_copies(
                    &CloneJob {
                        id: 0,
                        tasks,
                        distribution,
                    },
                    self.gamma,
                    most,
                )
            } else {
                1
            };
            if let Some(state) = desk.state_mut(at) {
                state.copies = Some(copies);
            }
        }
    }
}
