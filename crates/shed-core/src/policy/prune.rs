//! Rules that keep or stop attempts of a task, shared by the policies that prune.

use crate::policy::contract::PolicyRule;
use crate::policy::pass_view::Desk;
use crate::round::{AttemptEstimate, JobView, TaskEstimate};
use crate::snapshot::SpeculationMode;
use crate::time::Span;

/// A silent attempt is left alone for this many launch overheads: it needs one to start and about another to report.
/// If a policy stopped it earlier, it would restart the attempt at every run (pitfall 3).
const GRACE_LAUNCHES: f64 = 3.0;

/// The least grace, because overheads are measured as a mean and images are pulled.
pub const GRACE_MIN: Span = Span::from_seconds(10);

/// The time after its launch in which an attempt of the job is still starting up, in seconds; at least `least`.
pub fn start_up(state: &JobView<'_>, least: Span) -> f64 {
    start_up_of(state.t_avg, least)
}

/// The same for attempts that report this many seconds after their launch.
pub fn start_up_of(report: f64, least: Span) -> f64 {
    least.seconds().max(GRACE_LAUNCHES * report)
}

/// An attempt and the one of its task that the policy keeps: of those that report, the one with the earliest
/// predicted end (pitfall 2).
pub struct Rivals<'a> {
    /// The job's position in the pass.
    pub position: usize,
    /// The job.
    pub state: &'a JobView<'a>,
    /// The task.
    pub task: &'a TaskEstimate,
    /// The attempt to keep.
    pub kept: &'a AttemptEstimate,
    /// One of the others.
    pub other: &'a AttemptEstimate,
}

/// Stops the attempts that lose against the kept one of their task, in the jobs that are due and want clones. A task
/// loses no attempt unless one of its attempts reports.
pub fn prune<R: PolicyRule>(desk: &mut Desk<'_, '_, R>, loses: impl Fn(&Rivals<'_>) -> bool) {
    let mut losers = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        if !state.draft.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state.estimate.cloned() {
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
                    let id = (task.index, other.number);
                    losers.push((position, id, kept.number));
                }
            }
        }
    }
    for (position, id, kept) in losers {
        desk.prune(position, id, kept);
    }
}

/// Whether the attempt reports, or should have begun to report by now.
pub fn is_seen(attempt: &AttemptEstimate, grace: f64) -> bool {
    attempt.reports() || attempt.since_launch > grace
}

/// Whether the attempt is starting up.
pub fn is_young(attempt: &AttemptEstimate, grace: f64) -> bool {
    !is_seen(attempt, grace)
}
