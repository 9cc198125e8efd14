//! What orders jobs and tasks when clones are handed out.

use crate::optimize::job_state::JobState;
use crate::optimize::tournament::{ABSENT, Tournament};

/// What orders the tasks of the worst job; smallest first.
#[derive(Debug, Clone, Copy)]
pub(super) enum TaskKey {
    Pocd,
    Gain,
}

impl TaskKey {
    /// [`ABSENT`] for a task that may get no more.
    pub(super) fn of(self, state: &JobState, task: usize) -> f64 {
        if !state.may_receive(task) {
            return ABSENT;
        }
        match self {
            TaskKey::Pocd => state.task_ln_pocd(task),
            TaskKey::Gain => -state.gain(task),
        }
    }

    pub(super) fn rank(self, state: &JobState) -> Tournament {
        let keys = (0..state.tasks()).map(|task| self.of(state, task));
        Tournament::new(keys, state.tasks())
    }
}

/// [`ABSENT`] for a job of which no task may get more.
pub(super) fn job_key(state: &JobState) -> f64 {
    if state.is_open() {
        state.ln_pocd()
    } else {
        ABSENT
    }
}
