//! The keys that order jobs and tasks when clones are handed out.

use crate::optimize::job_state::JobState;
use crate::optimize::tournament::{ABSENT, Tournament};

/// The key that orders the tasks of the worst job; smallest first.
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

    /// Whether the key requires computation.
    pub(super) fn is_costly(self) -> bool {
        match self {
            TaskKey::Pocd => false,
            TaskKey::Gain => true,
        }
    }

    /// The keys of all tasks.
    pub(super) fn all(self, state: &JobState) -> impl Iterator<Item = f64> + '_ {
        let tasks = state.task_ln_pocds().zip(0..);
        tasks.map(move |(ln_pocd, task)| match self {
            TaskKey::Pocd if state.may_receive(task) => ln_pocd,
            _ => self.of(state, task),
        })
    }

    pub(super) fn rank(self, state: &JobState) -> Tournament {
        Tournament::new(self.all(state), state.tasks())
    }
}

/// [`ABSENT`] for a job whose tasks may get no more, or that has reached its target.
pub(super) fn job_key(state: &JobState) -> f64 {
    if state.is_open() {
        state.ln_pocd()
    } else {
        ABSENT
    }
}
