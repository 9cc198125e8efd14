//! The work of a policy about clones in one pass, counted in steps: a task weighed, a clone handed out. Synchronous
//! code cannot be interrupted, so its work is counted, which also gives the same result on every machine. First
//! attempts are not counted, because a pass without budget still serves them.

use crate::round::Round;

/// The remaining steps of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepBudget {
    left: u64,
}

impl StepBudget {
    pub(crate) fn new(steps_max: u64) -> Self {
        Self { left: steps_max }
    }
}

impl Round<'_> {
    /// Takes `steps` for the job at `position`. If fewer remain it takes none and the job is cut short: the policy
    /// must leave the job unchanged.
    pub(crate) fn afford(&mut self, position: usize, steps: u64) -> bool {
        self.afford_all(&[position], steps)
    }

    /// The same for several jobs that are decided together.
    pub(crate) fn afford_all(&mut self, positions: &[usize], steps: u64) -> bool {
        match self.steps.left.checked_sub(steps) {
            Some(left) => {
                self.steps.left = left;
                true
            }
            None => {
                self.cut_short(positions);
                false
            }
        }
    }

    /// Records that the policy is not done with these jobs.
    pub(crate) fn cut_short(&mut self, positions: &[usize]) {
        for &position in positions {
            if let Some(state) = self.jobs.get_mut(position) {
                state.draft.is_cut_short = true;
            }
        }
    }

    /// The number of steps left.
    pub(crate) fn steps_left(&self) -> u64 {
        self.steps.left
    }
}
