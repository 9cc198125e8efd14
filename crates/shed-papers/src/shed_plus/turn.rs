//! When the optimizer runs for a job.

use shed_core::estimate::progress::optimization_interval;
use shed_core::policy::{Desk, Judgement, Recall};
use shed_core::round::JobView;
use shed_core::time::{Instant, Span};

use super::ShedPlus;

/// The facts about a job, besides the clock and t_avg, that determine when the optimizer runs for it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Turn {
    submitted: Instant,
    /// D in seconds.
    limit: f64,
    /// Whether the job's attempts can report progress.
    reports_progress: bool,
    /// When the optimizer last ran for the job, not in the future.
    last: Option<Instant>,
    /// Whether that run changed nothing.
    was_idle: bool,
    /// Whether the job's progress has reached ξ.
    has_reached_xi: bool,
    /// Whether a task turned out late since the last run.
    has_new_straggler: bool,
}

impl Turn {
    fn of(state: &JobView<'_>, recall: &Recall<'_, ()>, plus: &ShedPlus) -> Option<Self> {
        let (job, last) = (state.job, recall.last);
        Some(Self {
            submitted: job.submitted,
            limit: job.time_given()?.seconds(),
            reports_progress: job.reports_progress,
            last,
            was_idle: recall.was_idle,
            has_reached_xi: state.estimate.progress >= plus.xi,
            has_new_straggler: last.is_some_and(|last| has_new_straggler(state, last)),
        })
    }
}

impl ShedPlus {
    /// θ of the job, with t_avg in seconds.
    fn theta(&self, turn: &Turn, overhead: f64) -> Span {
        let overhead = if self.theta_floor { overhead } else { 0.0 };
        self.interval(turn.limit, overhead)
    }

    /// θ includes t_avg so that the launches of a run have time to report (eq. 17). A run that changed nothing need
    /// not wait. Otherwise tasks that were silent or looked hopeless then would be left alone for long. Not in [S+].
    fn idle_wait(&self, turn: &Turn, overhead: f64) -> Span {
        self.interval(turn.limit - overhead, 0.0)
    }

    pub(super) fn interval(&self, limit: f64, overhead: f64) -> Span {
        let theta = optimization_interval(limit, overhead, self.theta);
        Span::from_seconds_f64(theta).max(self.min_interval)
    }

    /// [S+] 4.2, trigger: the job's progress has reached ξ for the first time, or θ (eq. 17) has passed since the
    /// last run for it (A7: per job). Our readings:
    /// - A job that reports nothing is examined every θ from its submission on.
    /// - A job that could report and has spent 2ξ of its time below ξ is on course to take twice its time. The
    ///   optimizer does not wait for it.
    /// - A task that turns out late as soon as it reports does not wait for θ.
    fn due(&self, turn: &Turn, now: Instant, overhead: f64) -> Instant {
        let theta = self.theta(turn, overhead);
        match turn.last {
            None if turn.reports_progress && turn.has_reached_xi => now,
            None if turn.reports_progress => {
                let patience = Span::from_seconds_f64(2.0 * self.xi * turn.limit);
                let patience = turn.submitted.plus(patience);
                patience.max(turn.submitted.plus(theta))
            }
            None => turn.submitted.plus(theta),
            Some(last) if turn.has_new_straggler && !self.is_printed() => {
                last.plus(self.min_interval)
            }
            Some(last) if turn.was_idle => last.plus(self.idle_wait(turn, overhead)),
            Some(last) => last.plus(theta),
        }
    }
}

/// Whether the optimizer runs for the job in this pass, and when the policy needs to judge it again.
pub(super) fn judge(
    plus: &ShedPlus,
    state: &JobView<'_>,
    recall: &Recall<'_, ()>,
) -> Judgement<()> {
    let turn = Turn::of(state, recall, plus);
    let Some(turn) = turn.filter(|_| state.speculates() && state.can_gain()) else {
        return Judgement::none();
    };
    let now = recall.now;
    let theta = plus.theta(&turn, state.t_avg);
    let due = plus.due(&turn, now, state.t_avg);
    let acts = due <= now;
    // Progress causes no event, so a job that is below ξ is checked every θ.
    let awaits_progress = turn.last.is_none() && !acts;
    let next = if acts {
        now.plus(theta)
    } else if awaits_progress {
        due.min(now.plus(theta))
    } else {
        due
    };
    Judgement {
        acts,
        next: Some(next),
        ..Judgement::default()
    }
}

/// Notes the runs that changed nothing.
pub(super) fn look_again(desk: &mut Desk<'_, '_, ShedPlus>, plus: &ShedPlus) {
    if plus.is_printed() {
        return;
    }
    let now = desk.now();
    for position in 0..desk.jobs().len() {
        let Some(state) = desk.job(position) else {
            continue;
        };
        let recall = Recall {
            now,
            last: None,
            was_idle: false,
            state: &(),
        };
        let turn = Turn::of(state, &recall, plus).filter(|_| state.optimized_idly());
        let Some(turn) = turn else {
            continue;
        };
        let wait = plus.idle_wait(&turn, state.t_avg);
        desk.note_idle(position, now.plus(wait));
    }
}

/// Whether a task with one attempt has reported its speed for the first time since, and is late. The last run saw it
/// only as silent. Each task brings a run forward once. Not in [S+].
fn has_new_straggler(state: &JobView<'_>, last: Instant) -> bool {
    state.estimate.tasks.iter().any(|task| {
        let remaining = task.kept().and_then(|kept| kept.remaining);
        let is_late = remaining.zip(state.estimate.slack);
        task.is_news_since(last) && is_late.is_some_and(|(end, slack)| end > slack)
    })
}
