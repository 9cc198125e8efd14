//! What the attempts of one job hold.

use crate::capacity::UnusableNodes;
use crate::snapshot::{JobSnapshot, TaskSnapshot};

/// The numbers of attempts of a job that hold capacity, including those that are being stopped. One walk counts them
/// all, because the cost of a pass is mainly how often it fetches all attempts from memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    /// All attempts that hold usable capacity.
    pub(crate) all: usize,
    /// Attempts on a usable node.
    pub(crate) placed: usize,
    /// Attempts on an unusable node: they are in no other count.
    pub(crate) apart: usize,
    /// Attempts that are being stopped.
    pub(crate) killed: usize,
    /// Attempts that have not ended, whether or not they hold anything.
    pub(crate) existing: usize,
    /// Attempts that can be taken back: siblings of an attempt that continues the task, and attempts that may be
    /// preempted and have a durable checkpoint.
    pub(crate) returnable: usize,
    /// Live attempts that cannot be created or placed.
    pub(crate) unplaceable: usize,
    /// Live attempts that scheduling gates hold back.
    pub(crate) gated: usize,
    /// Live attempts that wait for a node, including those that cannot be placed.
    pub(crate) waiting: usize,
    /// Attempts that may still win.
    pub(crate) live: usize,
}

impl Holdings {
    /// The counts of a whole job.
    pub(crate) fn of(job: &JobSnapshot, unusable: &UnusableNodes) -> Self {
        let mut holdings = Self::default();
        for task in &job.tasks {
            holdings.count(job, task, unusable);
        }
        holdings
    }

    /// Adds the attempts of one more task.
    pub(crate) fn count(
        &mut self,
        job: &JobSnapshot,
        task: &TaskSnapshot,
        unusable: &UnusableNodes,
    ) {
        let mut lives = 0;
        for attempt in task.attempts.iter().filter(|a| a.holds_capacity()) {
            self.existing += 1;
            self.live += usize::from(attempt.kill.is_none());
            if unusable.has(attempt.node) {
                self.apart += 1;
                continue;
            }
            if attempt.waits_for_node() && attempt.kill.is_none() {
                self.waiting += 1;
                self.unplaceable += usize::from(attempt.unplaceable);
                self.gated += usize::from(attempt.gated);
            }
            if !job.takes_capacity(attempt) {
                continue;
            }
            self.all += 1;
            self.placed += usize::from(attempt.node.is_some());
            self.killed += usize::from(attempt.kill.is_some());
            lives += usize::from(attempt.kill.is_none());
        }
        self.returnable += match lives {
            1 if job.rules.is_preemptible() => usize::from(task.has_checkpoint()),
            lives => lives.saturating_sub(1),
        };
    }
}
