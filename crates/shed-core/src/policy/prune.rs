//! Which attempts of a task are kept and which are killed, shared by the policies that prune.

use crate::ids::{AttemptNumber, TaskIndex};
use crate::policy::contract::PolicyRule;
use crate::policy::desk::Desk;
use crate::round::{AttemptEstimate, JobView, TaskEstimate};
use crate::snapshot::{AttemptKind, SpeculationMode};
use crate::time::Span;

/// A silent attempt is left alone for so many launch overheads: it needs one to start and about
/// another to report. Killing it earlier would launch it anew at every run (pitfall 3).
const GRACE_LAUNCHES: f64 = 3.0;

/// At least this long, as overheads are measured on the mean and images are pulled.
pub const GRACE_MIN: Span = Span::from_seconds(10);

/// For how long after its launch an attempt of the job is still starting up, in seconds; at least
/// `least`.
pub fn start_up(state: &JobView<'_>, least: Span) -> f64 {
    least.seconds().max(GRACE_LAUNCHES * state.t_avg)
}

/// An attempt and the one of its task that is to be kept: of those that report, the one with the
/// earliest predicted end (pitfall 2).
pub struct Rivals<'a> {
    /// The job's place in the pass.
    pub position: usize,
    /// The job.
    pub state: &'a JobView<'a>,
    /// The task.
    pub task: &'a TaskEstimate<'a>,
    /// The attempt to keep.
    pub kept: &'a AttemptEstimate,
    /// One of the others.
    pub other: &'a AttemptEstimate,
}

/// Kills the attempts that lose against the kept one of their task, in the jobs that are due and
/// want clones launched. A task of which no attempt reports loses none.
pub fn prune<R: PolicyRule>(desk: &mut Desk<'_, '_, R>, loses: impl Fn(&Rivals<'_>) -> bool) {
    let mut losers = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        if !state.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state.estimate.tasks.iter().filter(|t| t.attempts.len() > 1) {
            let Some(kept) = task.kept() else {
                continue;
            };
            for other in task.attempts.iter().filter(|a| a.number != kept.number) {
                let rivals = Rivals {
                    position,
                    state,
                    task,
                    kept,
                    other,
                };
                if loses(&rivals) {
                    let id = (task.task.index, other.number);
                    losers.push((position, id, kept.number));
                }
            }
        }
    }
    stop(desk, losers);
}

/// Kills what is no clone in the tasks that `picks` says, as soon as a clone of the task reports:
/// the clone with the earliest predicted end takes over.
pub fn prune_for_clones<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    picks: impl Fn(usize, &JobView<'_>, &TaskEstimate<'_>) -> bool,
) {
    let is_clone = |attempt: &&AttemptEstimate| attempt.kind == AttemptKind::Clone;
    let mut losers = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        if !state.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state
            .estimate
            .tasks
            .iter()
            .filter(|task| picks(position, state, task))
        {
            let clones = task.attempts.iter().filter(is_clone);
            let reporting = clones.filter(|clone| clone.reports());
            let end = |clone: &AttemptEstimate| clone.remaining.unwrap_or(f64::INFINITY);
            let Some(kept) = reporting.min_by(|a, b| end(a).total_cmp(&end(b))) else {
                continue;
            };
            for other in task.attempts.iter().filter(|attempt| !is_clone(attempt)) {
                losers.push((position, (task.task.index, other.number), kept.number));
            }
        }
    }
    stop(desk, losers);
}

/// Position of the job, task and attempt, and the attempt that is kept.
type Loser = (usize, (TaskIndex, AttemptNumber), AttemptNumber);

/// A policy may prune by two rules in one pass.
fn stop<R: PolicyRule>(desk: &mut Desk<'_, '_, R>, losers: Vec<Loser>) {
    for (position, id, kept) in losers {
        desk.prune(position, id, kept);
    }
}

/// Whether the attempt reports, or is past the time in which it should have begun to.
pub fn is_seen(attempt: &AttemptEstimate, grace: f64) -> bool {
    attempt.reports() || attempt.since_launch > grace
}

/// Whether the attempt is starting up.
pub fn is_young(attempt: &AttemptEstimate, grace: f64) -> bool {
    !is_seen(attempt, grace)
}
