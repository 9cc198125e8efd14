//! The work of a policy about clones in one pass, counted in steps: a task weighed, a clone handed
//! out. Synchronous code can't be interrupted, so that it is counted, which is also the same on
//! every machine. First attempts are not counted: they are what a pass without budget still does.

use crate::round::Round;

/// What is left of a pass's steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    left: u64,
}

impl Work {
    pub(crate) fn new(steps_max: u64) -> Self {
        Self { left: steps_max }
    }
}

impl Round<'_> {
    /// Takes that many steps for the job at `position`. If fewer are left it takes none, and the
    /// job is cut short: the policy must leave it as it is.
    pub(crate) fn afford(&mut self, position: usize, steps: u64) -> bool {
        self.afford_all(&[position], steps)
    }

    /// The same for several jobs that are decided on together.
    pub(crate) fn afford_all(&mut self, positions: &[usize], steps: u64) -> bool {
        match self.work.left.checked_sub(steps) {
            Some(left) => {
                self.work.left = left;
                true
            }
            None => {
                self.cut_short(positions);
                false
            }
        }
    }

    /// The policy is not through with these jobs.
    pub(crate) fn cut_short(&mut self, positions: &[usize]) {
        for &position in positions {
            if let Some(state) = self.jobs.get_mut(position) {
                state.is_cut_short = true;
            }
        }
    }

    /// How many steps are left.
    pub(crate) fn steps_left(&self) -> u64 {
        self.work.left
    }
}
