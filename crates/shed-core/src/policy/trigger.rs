//! When a policy looks at a job.

use crate::decide::JobState;
use crate::snapshot::SpeculationMode;

/// Whether the job has attempts that its user lets a policy about clones look at.
pub(super) fn speculates(state: &JobState<'_>) -> bool {
    state.may_run()
        && !state.estimate.tasks.is_empty()
        && state.job.rules.speculation != SpeculationMode::Disabled
}
