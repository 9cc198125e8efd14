//! How long failed tasks wait.

use shed_core::time::Span;

/// How long a failed task waits for its next attempt: twice as long with each of its failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRule {
    /// After the first failure.
    pub first: Span,
    /// At most.
    pub most: Span,
    /// Whether all of the job's tasks wait while one does.
    pub whole_job: bool,
}

impl RetryRule {
    /// For jobs with a deadline: a failure costs little of the remaining time.
    pub const PROMPT: Self = Self {
        first: Span::from_seconds(1),
        most: Span::from_seconds(60),
        whole_job: false,
    };

    /// The wait after this number of failures of a task.
    pub fn wait(self, failures: u32) -> Span {
        let doublings = failures.saturating_sub(1).min(16);
        Span(self.first.0 << doublings).min(self.most)
    }
}
