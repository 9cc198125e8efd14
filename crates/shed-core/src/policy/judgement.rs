//! Two instants in a job's life, shared by Chronos' strategies, SRQuant and LASER: at τ_est its
//! stragglers are judged, once, and get so many extra attempts; at τ_kill the slower attempts die.

use crate::decide::{JobState, Pass, TaskEstimate};
use crate::estimate::pareto::ParetoLaw;
use crate::formulas::srquant::{Price, SrQuantJob};
use crate::ids::TaskIndex;
use crate::policy::clones::{Ask, MODES, clone_jobs};
use crate::policy::given::GivenLaw;
use crate::policy::keep;
use crate::policy::redundancy::level_up;
use crate::policy::trigger::may_speculate;
use crate::settings::Setting;
use crate::snapshot::{AttemptKind, JobSnapshot};
use crate::time::{Instant, Span};

/// Clones that found no room, and originals that make way, are looked after that often.
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

/// The parameters that all who judge at these instants have.
pub(super) fn settings<'a>(terms: &'a mut Terms, instants: &'a mut Instants) -> Vec<Setting<'a>> {
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
    #[must_use]
    pub fn of(&self, job: &JobSnapshot) -> Option<[Span; 2]> {
        Some(self.within(job.deadline?.since(job.submitted)))
    }

    /// The same of a job that has so much time.
    #[must_use]
    pub fn within(&self, limit: Span) -> [Span; 2] {
        let limit = limit.seconds();
        let pick = |share: f64, seconds: Span| {
            let share = Span::from_seconds_f64(share * limit);
            if seconds > Span(0) { seconds } else { share }
        };
        let est = pick(self.tau_est, self.tau_est_seconds);
        [est, pick(self.tau_kill, self.tau_kill_seconds).max(est)]
    }

    fn instants(&self, state: &JobState<'_>) -> Option<[Instant; 2]> {
        let spans = self.of(state.job)?;
        Some(spans.map(|span| state.job.submitted.plus(span)))
    }

    /// The job as the closed forms see it, with mean progress `phi_est` of the tasks in question.
    pub(super) fn job(
        &self,
        state: &JobState<'_>,
        law: ParetoLaw,
        phi_est: f64,
    ) -> Option<SrQuantJob> {
        let [est, kill] = self.of(state.job)?;
        Some(SrQuantJob {
            law,
            deadline: state.job.deadline?.since(state.job.submitted).seconds(),
            tau_est: est.seconds(),
            tau_kill: kill.seconds(),
            phi_est,
            tasks: state.job.rules.completions,
        })
    }

    /// Marks the jobs that are past the first of their instants (past their submission, if the
    /// strategy clones then) and asks for passes at both.
    pub(super) fn select(&self, pass: &mut Pass<'_>, clones_at_submission: bool) {
        let now = pass.snapshot.now;
        let mut wakes = Vec::new();
        for state in &mut pass.jobs {
            if !may_speculate(state) {
                continue;
            }
            let Some([est, kill]) = self.instants(state) else {
                continue;
            };
            state.optimized = clones_at_submission || est <= now;
            let awaits_law = est <= now && state.remembered.copies.is_none();
            let busy = awaits_law || !state.remembered.judged.is_empty() && now < kill;
            wakes.extend([est, kill]);
            wakes.extend(busy.then(|| now.plus(LOOK)));
        }
        for wake in wakes {
            pass.wake_at(Some(wake));
        }
    }

    /// At τ_kill, once per job: of each task the attempt with the earliest predicted end is kept.
    /// (The papers keep the one with the most progress; see pitfall 2.) A task of which no attempt
    /// reports keeps all.
    pub(super) fn prune(&self, pass: &mut Pass<'_>) {
        let now = pass.snapshot.now;
        let is_due = |state: &JobState<'_>| {
            let kill = self.instants(state).map(|[_, kill]| kill);
            state.remembered.pruned.is_none() && kill.is_some_and(|kill| kill <= now)
        };
        keep::prune(pass, |rivals| is_due(rivals.state));
        for state in pass.jobs.iter_mut().filter(|state| state.optimized) {
            if is_due(state) {
                state.remembered.pruned = Some(now);
            }
        }
    }

    fn is_open(&self, state: &JobState<'_>, now: Instant) -> bool {
        self.instants(state).is_some_and(|[_, kill]| now < kill)
    }
}

/// Judges the jobs that are due and have not been: `extra` says how many attempts each straggler
/// gets, given the stragglers' mean progress; then launches what the judged tasks lack. Tasks of
/// which a clone reports get no more.
pub(super) fn judge(
    pass: &mut Pass<'_>,
    instants: &Instants,
    ask: Ask,
    extra: impl Fn(&JobState<'_>, f64) -> Option<u32>,
) {
    let now = pass.snapshot.now;
    for state in pass.jobs.iter_mut().filter(|state| state.optimized) {
        if state.remembered.copies.is_none()
            && let Some(extra) = extra(state, mean_progress(state))
        {
            state.remembered.copies = Some(extra.saturating_add(1));
            state.remembered.judged = judged(state);
        }
    }
    for mode in MODES {
        let jobs = clone_jobs(pass, mode, ask, |_, state, task| {
            let judged = state.remembered.judged.binary_search(&task.task.index);
            judged.is_ok() && instants.is_open(state, now) && !clone_reports(task)
        });
        for mut job in jobs {
            let state = pass.jobs.get(job.position);
            let copies = state.and_then(|state| state.remembered.copies);
            level_up(pass, &mut job, copies.unwrap_or(1));
        }
    }
}

/// The stragglers that no clone has taken over yet.
fn judged(state: &JobState<'_>) -> Vec<TaskIndex> {
    let tasks = state.estimate.tasks.iter();
    let open = tasks
        .filter(|task| !clone_reports(task))
        .map(|task| task.task.index);
    open.filter(|index| state.stragglers.binary_search(index).is_ok())
        .collect()
}

/// Of the stragglers; 0 without any.
fn mean_progress(state: &JobState<'_>) -> f64 {
    let late = state.estimate.tasks.iter().filter(|task| {
        let index = task.task.index;
        state.stragglers.binary_search(&index).is_ok()
    });
    let progress = late.map(|task| task.attempts.iter().map(|a| a.progress).fold(0.0, f64::max));
    let progress: Vec<f64> = progress.collect();
    progress.iter().sum::<f64>() / progress.len().max(1) as f64
}

fn clone_reports(task: &TaskEstimate<'_>) -> bool {
    let mut clones = task
        .attempts
        .iter()
        .filter(|a| a.kind == AttemptKind::Clone);
    clones.any(|clone| clone.reports())
}

/// S-Resume: the resumed attempts replace the original, which dies once one of them reports. The
/// papers stop it at τ_est; here a task is never left to attempts that may not start. Where
/// clones start over there is nothing to resume, and the original runs on.
pub(super) fn stop_originals(pass: &mut Pass<'_>) {
    keep::prune_for_clones(pass, |state, task| {
        let judged = state.remembered.judged.binary_search(&task.task.index);
        judged.is_ok() && state.job.rules.resume.keeps_checkpoints()
    });
}

/// The number of extra attempts with the largest utility: the least of equals, and 0 when none is
/// above −∞.
pub(super) fn best_extra(extra_max: u32, utility: impl Fn(u32) -> f64) -> u32 {
    let mut best = (0, f64::NEG_INFINITY);
    for extra in 0..=extra_max {
        let utility = utility(extra);
        if utility > best.1 {
            best = (extra, utility);
        }
    }
    best.0
}

/// What the strategies decide with: the law, the price of machine time, the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The law, if it is given.
    pub law: GivenLaw,
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
            law: GivenLaw::default(),
            theta_c: price.theta_c,
            r_min: price.r_min,
            max_clones: 5,
        }
    }
}

impl Terms {
    pub(super) fn settings(&mut self) -> Vec<Setting<'_>> {
        let mut settings = vec![
            Setting::number("theta_c", &mut self.theta_c, 0.0, 1.0),
            Setting::number("r_min", &mut self.r_min, 0.0, 1.0),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
        ];
        settings.extend(self.law.settings());
        settings
    }

    pub(super) fn price(&self) -> Price {
        Price {
            theta_c: self.theta_c,
            r_min: self.r_min,
            ..Price::default()
        }
    }
}
