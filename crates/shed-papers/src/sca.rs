//! SCA, smart cloning ([S] of DollyMP's specification, section 8). When more slots are free than
//! the new jobs have tasks, the convex program P2 gives the number of copies that each of their
//! tasks gets from its start. Otherwise each task gets one. It ignores deadlines, and its clones
//! start from zero.
//!
//! P2 requires a job's distribution: the one that is given, that of the job's class or of its user's
//! expectation, or else the one that the job's own attempts show, from its first winner on. So the
//! paper's decision at submission is late for a job of an unknown class. Then the tasks that still
//! wait and those that run all get the clones that P2 decides.
//!
//! The paper uses SCA below the cutoff of the arrival rate λ^U, and ESE above it. With `regimes` the
//! policy measures the load of the jobs that arrived recently, and does the same.

use crate::ese::Ese;
use crate::formulas::sca::{CloneJob, P2, round_copies, solve_relaxed};
use crate::given_distribution::GivenDistribution;
use crate::redundancy::is_decided;
use crate::redundancy::launch_copies_anytime;
use crate::state::Decided;
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::policy::prune::{GRACE_MIN, is_young, start_up};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::JobView;
use shed_core::round::clones::Ask;
use shed_core::settings::Setting;
use shed_core::time::Span;

mod load;

/// The parameters of SCA.
#[derive(Debug, Clone, PartialEq)]
pub struct Sca {
    /// γ: the price of a machine second against a second of flow time.
    pub gamma: f64,
    /// r − 1: the most clones of a task.
    pub max_clones: u32,
    /// Whether the policy is ESE while the measured load is above the cutoff.
    pub regimes: bool,
    /// The distribution, if it is given.
    pub distribution: GivenDistribution,
}

impl Default for Sca {
    fn default() -> Self {
        Self {
            gamma: 0.05,
            max_clones: 7,
            regimes: false,
            distribution: GivenDistribution::default(),
        }
    }
}

/// Time until clones that found no slot are tried again.
const LOOK: Span = Span::from_seconds(3);

/// Steps of work per task of the convex program: its sums over all tasks are formed some
/// thousand times, and are cheap.
const SOLVE_STEPS: u64 = 100;

impl PolicyRule for Sca {
    type Belief = ();
    type State = Decided;
    type Place = ();

    fn name(&self) -> &'static str {
        "sca"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = vec![
            Setting::number("gamma", &mut self.gamma, 0.0, 1000.0),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::switch("regimes", &mut self.regimes),
        ];
        settings.extend(self.distribution.settings());
        settings
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Self::State>) -> Judgement<()> {
        Judgement::every(LOOK, job, recall)
    }

    fn learn(&self, desk: &mut Desk<'_, '_, Self>) {
        if self.regimes {
            load::note_arrivals(desk, &self.distribution);
        }
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        if self.regimes && load::is_heavy(desk, &self.distribution) {
            let ese = Ese {
                gamma: self.gamma,
                max_clones: self.max_clones,
                distribution: self.distribution,
                ..Ese::default()
            };
            ese.act(desk);
            return;
        }
        self.decide_for_new_jobs(desk);
        let ask = Ask::blind(self.max_clones);
        launch_copies_anytime(desk, ask);
    }
}

/// The jobs without a decision that `may` have one and have a distribution: position and distribution.
pub(crate) fn undecided_jobs<R: PolicyRule<State = Decided>>(
    desk: &Desk<'_, '_, R>,
    distribution: &GivenDistribution,
    may: fn(&JobView<'_>) -> bool,
) -> Vec<(usize, ParetoDistribution)> {
    let positions = desk.by_submission().into_iter();
    let states = positions.filter_map(|at| Some((at, desk.jobs().get(at)?)));
    states
        .filter(|(at, state)| {
            let runs = !state.draft.started.is_empty() || !state.estimate.tasks.is_empty();
            state.draft.optimized && runs && !is_decided(desk, *at) && may(state)
        })
        .filter_map(|(at, state)| Some((at, distribution.of(state)?)))
        .collect()
}

/// Whether all attempts of the job have been starting up so far.
pub(crate) fn is_new(state: &JobView<'_>) -> bool {
    let grace = start_up(state, GRACE_MIN);
    let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
    let mut young = attempts.map(|attempt| is_young(attempt, grace));
    state.job.done.is_empty() && young.all(|young| young)
}

/// Whether P2 may decide about the job: at its submission, or once it has a winner. Reports alone show the least time
/// and hardly the shape.
fn is_decidable(state: &JobView<'_>) -> bool {
    is_new(state) || !state.job.ended_runs.is_empty()
}

/// The slots that the new jobs may share: free slots, and those of their first attempts.
pub(crate) fn slots_for<R: PolicyRule>(
    desk: &Desk<'_, '_, R>,
    positions: impl Iterator<Item = usize>,
) -> u64 {
    let (mut free, mut taken) = (0u64, 0u64);
    for position in positions {
        free = free.max(u64::from(desk.capacity().times_free(position)));
        if let Some(state) = desk.jobs().get(position) {
            taken += (state.draft.started.len() + state.estimate.tasks.len()) as u64;
        }
    }
    free.saturating_add(taken)
}

impl Sca {
    fn decide_for_new_jobs(&self, desk: &mut Desk<'_, '_, Self>) {
        let new = undecided_jobs(desk, &self.distribution, is_decidable);
        if new.is_empty() {
            return;
        }
        let p2 = P2 {
            gamma: self.gamma,
            machines: slots_for(desk, new.iter().map(|(at, _)| *at)),
            copies_max: self.max_clones.saturating_add(1),
        };
        let jobs: Vec<CloneJob> = new
            .iter()
            .zip(0..)
            .filter_map(|(&(at, distribution), id)| {
                let tasks = desk.jobs().get(at)?.unfinished();
                Some(CloneJob {
                    id,
                    tasks,
                    distribution,
                })
            })
            .collect();
        let tasks: u64 = jobs.iter().map(|job| u64::from(job.tasks)).sum();
        // Strictly more slots than tasks, as printed.
        let solves = tasks < p2.machines;
        let steps = tasks.saturating_mul(SOLVE_STEPS);
        let steps = steps.saturating_add((jobs.len() as u64).pow(2));
        let positions: Vec<usize> = new.iter().map(|(at, _)| *at).collect();
        // All or nothing, because half of P2's solution is not a solution.
        if solves && !desk.afford(&positions, steps) {
            return;
        }
        let relaxed = solves.then(|| solve_relaxed(&jobs, &p2));
        let copies = match relaxed {
            Some(Ok(relaxed)) => round_copies(&jobs, &p2, &relaxed),
            _ => vec![1; new.len()],
        };
        for ((at, _), copies) in new.into_iter().zip(copies) {
            if let Some(state) = desk.state_mut(at) {
                state.copies = Some(copies);
            }
        }
    }
}
