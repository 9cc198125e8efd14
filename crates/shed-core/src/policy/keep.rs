//! Which attempts of a task are kept and which are killed, shared by the policies that prune.

use crate::decide::{AttemptEstimate, JobState, Pass, TaskEstimate};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::snapshot::{AttemptKind, KillKind, SpeculationMode};
use crate::time::Span;

/// A silent attempt is left alone for so many launch overheads: it needs one to start and about
/// another to report. Killing it earlier would launch it anew at every run (pitfall 3).
const GRACE_LAUNCHES: f64 = 3.0;

/// At least this long, as overheads are measured on the mean and images are pulled.
pub(super) const GRACE_MIN: Span = Span::from_seconds(10);

/// For how long after its launch an attempt of the job is still starting up, in seconds; at least
/// `least`.
pub(super) fn start_up(state: &JobState<'_>, least: Span) -> f64 {
    least.seconds().max(GRACE_LAUNCHES * state.t_avg)
}

/// An attempt and the one of its task that is to be kept: of those that report, the one with the
/// earliest predicted end (pitfall 2).
pub(super) struct Rivals<'a> {
    pub(super) state: &'a JobState<'a>,
    pub(super) task: &'a TaskEstimate<'a>,
    pub(super) kept: &'a AttemptEstimate,
    pub(super) other: &'a AttemptEstimate,
}

/// Kills the attempts that lose against the kept one of their task, in the jobs that are due and
/// want clones launched. A task of which no attempt reports loses none.
pub(super) fn prune(pass: &mut Pass<'_>, loses: impl Fn(&Rivals<'_>) -> bool) {
    let mut losers = Vec::new();
    for (position, state) in pass.jobs.iter().enumerate() {
        if !state.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state.estimate.tasks.iter().filter(|t| t.attempts.len() > 1) {
            let Some(kept) = task.kept() else {
                continue;
            };
            for other in task.attempts.iter().filter(|a| a.number != kept.number) {
                let rivals = Rivals {
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
    kill(pass, losers);
}

/// Kills what is no clone in the tasks that `picks` says, as soon as a clone of the task reports:
/// the clone with the earliest predicted end takes over.
pub(super) fn prune_for_clones(
    pass: &mut Pass<'_>,
    picks: impl Fn(&JobState<'_>, &TaskEstimate<'_>) -> bool,
) {
    let is_clone = |attempt: &&AttemptEstimate| attempt.kind == AttemptKind::Clone;
    let mut losers = Vec::new();
    for (position, state) in pass.jobs.iter().enumerate() {
        if !state.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state
            .estimate
            .tasks
            .iter()
            .filter(|task| picks(state, task))
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
    kill(pass, losers);
}

/// Position of the job, task and attempt, and the attempt that is kept.
type Loser = (usize, (TaskIndex, AttemptNumber), AttemptNumber);

/// What is doomed already is left out: a policy may prune by two rules in one pass.
fn kill(pass: &mut Pass<'_>, losers: Vec<Loser>) {
    for (position, id, kept) in losers {
        let state = pass.jobs.get(position);
        let is_doomed = |id| state.is_some_and(|state| state.doomed.contains(id));
        if !is_doomed(&id) && !is_doomed(&(id.0, kept)) {
            pass.kill(position, id, KillKind::Prune, Some(kept));
        }
    }
}

/// Whether the attempt reports, or is past the time in which it should have begun to.
pub(super) fn is_seen(attempt: &AttemptEstimate, grace: f64) -> bool {
    attempt.reports() || attempt.since_launch > grace
}

/// Whether the attempt is starting up.
pub(super) fn is_young(attempt: &AttemptEstimate, grace: f64) -> bool {
    !is_seen(attempt, grace)
}
