//! When a policy looks at a job.

use crate::decide::{JobState, Pass};
use crate::snapshot::SpeculationMode;
use crate::time::{Instant, Span};

/// Whether the job has attempts that its user lets a policy about clones look at.
pub(super) fn speculates(state: &JobState<'_>) -> bool {
    may_speculate(state) && !state.estimate.tasks.is_empty()
}

/// The same for a job of which nothing may run yet.
pub(super) fn may_speculate(state: &JobState<'_>) -> bool {
    state.may_run() && state.job.rules.speculation != SpeculationMode::Disabled
}

/// Every pass looks at every job, and there is a pass every `interval`: progress is no event.
pub(super) fn in_every_pass(pass: &mut Pass<'_>, interval: Span) {
    let now = pass.snapshot.now;
    let mut is_any = false;
    for state in &mut pass.jobs {
        state.optimized = may_speculate(state);
        is_any |= state.optimized;
    }
    if is_any {
        pass.wake_at(Some(now.plus(interval)));
    }
}

/// A job is looked at when `due` says, which is given when it was looked at last.
pub(super) fn when_due(
    pass: &mut Pass<'_>,
    interval: Span,
    due: impl Fn(&JobState<'_>, Option<Instant>) -> Instant,
) {
    let (now, memory) = (pass.snapshot.now, pass.memory);
    let mut wakes = Vec::new();
    for state in pass.jobs.iter_mut().filter(|state| speculates(state)) {
        let last = memory.job(&state.job.key).last_optimized;
        let due = due(state, last.map(|last| last.min(now)));
        state.optimized = due <= now;
        wakes.push(if state.optimized {
            now.plus(interval)
        } else {
            due
        });
    }
    for wake in wakes {
        pass.wake_at(Some(wake));
    }
}
