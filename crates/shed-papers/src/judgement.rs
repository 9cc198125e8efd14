//! Two instants in a job's life, shared by Chronos' strategies, SRQuant and LASER. At τ_est the
//! job's stragglers are found, once, and get r extra attempts. At τ_kill the slower attempts are
//! stopped.

use crate::formulas::srquant::{Price, SrQuantJob};
use crate::given_distribution::GivenDistribution;
use crate::prune_due::{keep_furthest, prune_due, prune_for_clones};
use crate::redundancy::{is_decided, level_up_with};
use crate::state::Decided;
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::ids::TaskIndex;
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, MODES};
use shed_core::round::{JobView, TaskEstimate};
use shed_core::settings::Setting;
use shed_core::snapshot::{AttemptKind, JobSnapshot};
use shed_core::time::{Instant, Span};

/// Time until the next check of clones that found no slot, and of originals that are being
/// replaced.
const LOOK: Span = Span::from_seconds(3);

/// The two instants, counted from a job's submission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instants {
    /// τ_est as a share of the deadline.
    pub tau_est: f64,
    /// τ_kill as a share of the deadline.
    pub tau_kill: f64,
    /// τ_est in seconds; 0: by its share.
    pub tau_est_seconds: Span,
    /// τ_kill in seconds; 0: by its share.
    pub tau_kill_seconds: Span,
}

impl Default for Instants {
    /// LASER's first set-up: 120 s and 200 s of 250 s.
    fn default() -> Self {
        Self {
            tau_est: 0.48,
            tau_kill: 0.8,
            tau_est_seconds: Span(0),
            tau_kill_seconds: Span(0),
        }
    }
}

/// The parameters that all policies with these instants share.
pub(crate) fn settings<'a>(terms: &'a mut Terms, instants: &'a mut Instants) -> Vec<Setting<'a>> {
    let mut settings = terms.settings();
    settings.extend(instants.settings());
    settings
}

impl Instants {
    fn settings(&mut self) -> [Setting<'_>; 4] {
        [
            Setting::number("tau_est", &mut self.tau_est, 0.0, 1.0),
            Setting::number("tau_kill", &mut self.tau_kill, 0.0, 1.0),
            Setting::seconds("tau_est_seconds", &mut self.tau_est_seconds, 0.0, 1e6),
            Setting::seconds("tau_kill_seconds", &mut self.tau_kill_seconds, 0.0, 1e6),
        ]
    }

    /// τ_est and τ_kill of the job, from its submission on; the latter is never before the former.
    /// None without a deadline.
    pub fn of(&self, job: &JobSnapshot) -> Option<[Span; 2]> {
        Some(self.within(job.time_given()?))
    }

    /// The same for a job whose time until the deadline is `limit`.
    pub fn within(&self, limit: Span) -> [Span; 2] {
        let limit = limit.seconds();
        let pick = |share: f64, seconds: Span| {
            let share = Span::from_seconds_f64(share * limit);
            if seconds > Span(0) { seconds } else { share }
        };
        let est = pick(self.tau_est, self.tau_est_seconds);
        [est, pick(self.tau_kill, self.tau_kill_seconds).max(est)]
    }

    fn instants(&self, state: &JobView<'_>) -> Option<[Instant; 2]> {
        let spans = self.of(state.job)?;
        Some(spans.map(|span| state.job.submitted.plus(span)))
    }

    /// The job for the closed forms, with mean progress `phi_est` of the tasks in question.
    pub(crate) fn job(
        &self,
        state: &JobView<'_>,
        distribution: ParetoDistribution,
        phi_est: f64,
    ) -> Option<SrQuantJob> {
        let [est, kill] = self.of(state.job)?;
        Some(SrQuantJob {
            distribution,
            deadline: state.job.time_given()?.seconds(),
            tau_est: est.seconds(),
            tau_kill: kill.seconds(),
            phi_est,
            tasks: state.job.rules.completions,
        })
    }

    /// The strategy acts on jobs that are past the first of their instants (past their submission,
    /// if it clones then), and looks at them again at both.
    pub(crate) fn judge(
        &self,
        job: &JobView<'_>,
        recall: &Recall<'_, Decided>,
        clones_at_submission: bool,
    ) -> Judgement<()> {
        let Some([est, kill]) = self.instants(job).filter(|_| job.may_speculate()) else {
            return Judgement::none();
        };
        let (now, state) = (recall.now, recall.state);
        let awaits_distribution = est <= now && state.copies.is_none();
        let busy = awaits_distribution || !state.judged.is_empty() && now < kill;
        let look = busy.then(|| now.plus(LOOK));
        let wakes = [Some(est), Some(kill), look].into_iter().flatten();
        Judgement {
            acts: clones_at_submission || est <= now,
            next: wakes.filter(|&at| at > now).min(),
            ..Judgement::default()
        }
    }

    /// At τ_kill, once per job: of each task the attempt with the earliest predicted end is kept,
    /// because attempts that start over have little progress and may still end first. A task
    /// without any report keeps all its attempts.
    pub(crate) fn prune<R: PolicyRule<State = Decided>>(&self, desk: &mut Desk<'_, '_, R>) {
        let now = desk.now();
        let is_due = |job: &JobView<'_>, state: &Decided| self.is_over(job, state, now);
        prune_due(desk, is_due, |state| &mut state.pruned);
    }

    /// The same as printed: the attempt with the most progress is kept. Resumed attempts all begin at
    /// the same progress.
    pub(crate) fn keep_furthest<R: PolicyRule<State = Decided>>(&self, desk: &mut Desk<'_, '_, R>) {
        let now = desk.now();
        let is_due = |job: &JobView<'_>, state: &Decided| self.is_over(job, state, now);
        keep_furthest(desk, is_due, |state| &mut state.pruned);
    }

    /// Whether τ_kill has come and the job's slower attempts were not stopped yet.
    fn is_over(&self, state: &JobView<'_>, decided: &Decided, now: Instant) -> bool {
        let kill = self.instants(state).map(|[_, kill]| kill);
        decided.pruned.is_none() && kill.is_some_and(|kill| kill <= now)
    }

    fn is_open(&self, state: &JobView<'_>, now: Instant) -> bool {
        self.instants(state).is_some_and(|[_, kill]| now < kill)
    }
}

/// Evaluates the due jobs, once each. `late` gives the stragglers of a job, and `extra` the number
/// of extra attempts for each of them, from their mean progress. Then it launches the missing
/// attempts of these tasks. A task with a reporting clone gets no more.
pub(crate) fn judge<R: PolicyRule<State = Decided>>(
    desk: &mut Desk<'_, '_, R>,
    instants: &Instants,
    ask: Ask,
    late: impl Fn(&JobView<'_>) -> Vec<TaskIndex>,
    extra: impl Fn(&JobView<'_>, f64) -> Option<u32>,
) {
    let now = desk.now();
    for position in 0..desk.jobs().len() {
        let Some(job) = desk.job(position).filter(|job| job.draft.optimized) else {
            continue;
        };
        if is_decided(desk, position) {
            continue;
        }
        let late = late(job);
        let (Some(extra), judged) = (extra(job, mean_progress(job, &late)), judged(job, &late))
        else {
            continue;
        };
        if let Some(state) = desk.state_mut(position) {
            state.copies = Some(extra.saturating_add(1));
            state.judged = judged;
        }
    }
    let judged: Vec<Vec<TaskIndex>> = desk.states().iter().map(|s| s.judged.clone()).collect();
    for mode in MODES {
        let jobs = desk.clone_jobs(mode, ask, |position, state, task| {
            let judged = judged.get(position);
            judged.is_some_and(|judged| judged.binary_search(&task.index).is_ok())
                && instants.is_open(state, now)
                && !clone_reports(task)
        });
        for mut job in jobs {
            let copies = desk.state(job.position).and_then(|state| state.copies);
            let lacking = without_original(desk, job.position);
            level_up_with(desk, &mut job, copies.unwrap_or(1), |task| {
                u32::from(lacking.binary_search(&task).is_ok())
            });
        }
    }
}

/// The stragglers by expected values.
pub(crate) fn stragglers(job: &JobView<'_>) -> Vec<TaskIndex> {
    job.stragglers.clone()
}

/// The stragglers that no clone has taken over yet.
fn judged(state: &JobView<'_>, late: &[TaskIndex]) -> Vec<TaskIndex> {
    let tasks = state.estimate.tasks.iter();
    let open = tasks
        .filter(|task| !clone_reports(task))
        .map(|task| task.index);
    open.filter(|index| late.binary_search(index).is_ok())
        .collect()
}

/// Of the stragglers; 0 without any.
fn mean_progress(state: &JobView<'_>, stragglers: &[TaskIndex]) -> f64 {
    let late = state.estimate.tasks.iter().filter(|task| {
        let index = task.index;
        stragglers.binary_search(&index).is_ok()
    });
    let progress = late.map(|task| task.attempts.iter().map(|a| a.progress).fold(0.0, f64::max));
    let progress: Vec<f64> = progress.collect();
    progress.iter().sum::<f64>() / progress.len().max(1) as f64
}

fn clone_reports(task: &TaskEstimate) -> bool {
    let mut clones = task
        .attempts
        .iter()
        .filter(|a| a.kind == AttemptKind::Clone);
    clones.any(|clone| clone.reports())
}

/// The tasks of the job, ascending, whose original this plan does not leave alive: all their attempts are clones.
fn without_original<R: PolicyRule>(desk: &Desk<'_, '_, R>, position: usize) -> Vec<TaskIndex> {
    let Some(state) = desk.job(position) else {
        return Vec::new();
    };
    let lacks = |task: &&TaskEstimate| {
        let mut alive = task
            .attempts
            .iter()
            .filter(|attempt| !state.is_stopped((task.index, attempt.number)));
        alive.all(|attempt| attempt.kind == AttemptKind::Clone)
    };
    let tasks = state.estimate.tasks.iter().filter(lacks);
    tasks.map(|task| task.index).collect()
}

/// S-Resume: r + 1 resumed attempts replace the original. As printed, it runs to the offset b_new, which it reaches
/// while they start, and stops there. It stops once the first of them has started:
///
/// - `resume: Range`: the executor ends its segment at b_new, as printed, and the clones' segment is a task of its own.
/// - `resume: Latest`, which only the simulator has: the clone begins at what the original has done by then, which
///   is b_new as it turned out.
/// - `resume: Checkpoint`: the clone begins at the last checkpoint before its launch, so what the original does
///   while the clone starts is lost. The original runs on meanwhile, because a clone that finds no node, image or
///   quota never starts.
///
/// Where clones start over there is nothing to resume, and the original runs on.
pub(crate) fn stop_originals<R: PolicyRule<State = Decided>>(desk: &mut Desk<'_, '_, R>) {
    let judged: Vec<Vec<TaskIndex>> = desk.states().iter().map(|s| s.judged.clone()).collect();
    prune_for_clones(desk, |position, state, task| {
        let judged = judged.get(position);
        judged.is_some_and(|judged| judged.binary_search(&task.index).is_ok())
            && state.job.rules.resume.keeps_checkpoints()
    });
}

/// The number of extra attempts with the largest utility: the least of equals, and 0 when none is
/// above −∞.
pub(crate) fn best_extra(extra_max: u32, utility: impl Fn(u32) -> f64) -> u32 {
    let mut best = (0, f64::NEG_INFINITY);
    for extra in 0..=extra_max {
        let utility = utility(extra);
        if utility > best.1 {
            best = (extra, utility);
        }
    }
    best.0
}

/// Parameters of the strategies' decisions: the distribution, the price of machine time, the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The distribution, if it is given.
    pub distribution: GivenDistribution,
    /// θ·C: the price of a machine second.
    pub theta_c: f64,
    /// R_min: the PoCD below which the job is worth nothing.
    pub r_min: f64,
    /// Most clones of a task.
    pub max_clones: u32,
}

impl Default for Terms {
    fn default() -> Self {
        let price = Price::default();
        Self {
            distribution: GivenDistribution::default(),
            theta_c: price.theta_c,
            r_min: price.r_min,
            max_clones: 5,
        }
    }
}

impl Terms {
    pub(crate) fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = vec![
            Setting::number("theta_c", &mut self.theta_c, 0.0, 1.0),
            Setting::number("r_min", &mut self.r_min, 0.0, 1.0),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
        ];
        settings.extend(self.distribution.settings());
        settings
    }

    pub(crate) fn price(&self) -> Price {
        Price {
            theta_c: self.theta_c,
            r_min: self.r_min,
            ..Price::default()
        }
    }
}
