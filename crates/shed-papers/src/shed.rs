//! Shed ([S] Algorithm 1). Whenever a job arrives, every job's number of clones r is computed
//! again, the same for all of its tasks; the lowest PoCD is raised first. Each task keeps its
//! fastest attempt and starts r fresh ones.
//!
//! On live jobs a run takes place when a job's distribution is known for the first time: at its
//! arrival only if the distribution is given. Killed attempts free their slots later, so clones
//! follow when slots become free.

use crate::formulas::job_level::{JobLevelInput, JobLevelJob, JobLevelMode, alloc_job};
use crate::given_distribution::GivenDistribution;
use crate::redundancy::launch_copies_anytime;
use crate::state::Decided;
use shed_core::estimate::distribution::{AttemptDistribution, Evidence};
use shed_core::policy::prune;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, Heeds, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::SpeculationMode;
use shed_core::time::Span;

/// Time between two checks of clones that found no slot, and of jobs without a distribution.
const LOOK: Span = Span::from_seconds(3);

/// The parameters of Shed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shed {
    /// MAX: the most clones of a task.
    pub max_clones: u32,
    /// Treatment of hopeless jobs.
    pub mode: JobLevelMode,
    /// Whether a run leaves all attempts alone and counts them towards r. Off: as printed, each
    /// task's fastest attempt is kept, the others are killed, and r fresh ones are launched.
    pub keep: bool,
    /// Whether a departure also starts a run (A8: only the text has this, not the pseudo-code).
    pub departures: bool,
    /// The distribution, if it is given.
    pub distribution: GivenDistribution,
}

impl Default for Shed {
    fn default() -> Self {
        Self {
            max_clones: 5,
            mode: JobLevelMode::Paper,
            keep: false,
            departures: false,
            distribution: GivenDistribution::default(),
        }
    }
}

impl PolicyRule for Shed {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "shed"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = vec![
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::word("mode", &mut self.mode),
            Setting::switch("keep", &mut self.keep),
            Setting::switch("departures", &mut self.departures),
        ];
        settings.extend(self.distribution.settings());
        settings
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Decided>) -> Judgement<()> {
        Judgement {
            acts: self.takes_part(job),
            next: job.may_speculate().then(|| recall.now.plus(LOOK)),
            ..Judgement::default()
        }
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        if !self.keep && self.runs(desk) {
            prune::prune(desk, |_| true);
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        if self.runs(desk) {
            for mode in MODES {
                self.allocate(desk, mode);
            }
        }
        let ask = Ask {
            heeds: match self.mode {
                JobLevelMode::Paper => Heeds::Deadline,
                JobLevelMode::Guarded => Heeds::Chance,
            },
            ..Ask::aware(self.max_clones)
        };
        launch_copies_anytime(desk, ask);
    }
}

impl Shed {
    /// Whether to compute the numbers of clones again: a job takes part for the first time, or a
    /// job has left.
    fn runs(&self, desk: &Desk<'_, '_, Self>) -> bool {
        let departed = self.departures && desk.has_departed();
        let arrived = |job: &JobView<'_>| job.draft.optimized && job.is_new;
        departed || desk.jobs().iter().any(arrived)
    }

    /// Whether the job has a deadline in the future and a distribution. (Step 1 of the algorithm
    /// kills jobs past their deadline; here the job's user decides that.)
    fn takes_part(&self, state: &JobView<'_>) -> bool {
        let in_time = state.estimate.slack.is_some_and(|slack| slack > 0.0);
        state.may_speculate() && in_time && self.distribution.of(state).is_some()
    }

    /// Computes r for each job of that mode. κ: the free slots and those of live clones, which
    /// count towards r. N_j: the tasks that have not ended, because ended ones hold no slot here
    /// (A14).
    fn allocate(&self, desk: &mut Desk<'_, '_, Self>, mode: SpeculationMode) {
        let is_in =
            |state: &JobView<'_>| state.draft.optimized && state.job.rules.speculation == mode;
        let positions = desk.by_submission();
        let of = |&at: &usize| desk.jobs().get(at).is_some_and(is_in);
        let positions: Vec<usize> = positions.into_iter().filter(of).collect();
        let free = positions.iter().map(|&at| desk.capacity().times_free(at));
        let free = free.max().unwrap_or(0);
        let states = || positions.iter().filter_map(|&at| desk.jobs().get(at));
        let clones: usize = states().map(JobView::clones_alive).sum();
        let input = JobLevelInput {
            kappa: i64::from(free).saturating_add(i64::try_from(clones).unwrap_or(i64::MAX)),
            max_clones: self.max_clones,
            jobs: states().map(|state| self.job(state)).collect(),
        };
        let outcome = alloc_job(&input, self.mode);
        for (&position, clones) in positions.iter().zip(outcome.clones) {
            if let Some(state) = desk.state_mut(position) {
                state.copies = Some(clones.saturating_add(1));
            }
        }
    }

    /// [S] Theorem 1 for a job without a running task, otherwise Theorem 2. All tasks are assumed
    /// to be like the slowest.
    fn job(&self, state: &JobView<'_>) -> JobLevelJob {
        let progress = |task: &TaskEstimate| {
            let attempts = task.attempts.iter();
            attempts.map(|attempt| attempt.progress).fold(0.0, f64::max)
        };
        let tasks = state.unfinished();
        let running = state.estimate.tasks.len();
        let slowest = if (running as f64) < f64::from(tasks) {
            0.0
        } else {
            let running = state.estimate.tasks.iter().map(progress);
            running.fold(1.0, f64::min)
        };
        let slack = state.estimate.slack.unwrap_or(0.0);
        let distribution = self.distribution.of(state);
        let ln_miss = distribution
            .map(|distribution| distribution.ln_miss(Evidence::Progress { phi: slowest }, slack));
        JobLevelJob {
            tasks,
            ln_miss_attempt: ln_miss.unwrap_or(0.0),
        }
    }
}
