//! Expected ends of single attempts, for people: of the few tasks that the pass found worth a closer look.

use crate::ids::TaskIndex;
use crate::plan::{ENDS_MAX, ExpectedEnd};
use crate::round::estimates::TaskEstimate;
use crate::round::job::JobView;
use crate::time::{Instant, Span};

impl JobView<'_> {
    /// Expected ends of the attempts of cloned tasks, of the task at risk, and of stragglers, in this order and at
    /// most [`ENDS_MAX`]. The time that this takes does not grow with the number of stragglers.
    pub(crate) fn expected_ends(
        &self,
        now: Instant,
        at_risk: Option<TaskIndex>,
    ) -> Vec<ExpectedEnd> {
        // Estimates of an earlier look count from then. Assumed times are not reported.
        if !self.is_looked_at() || self.estimate.is_assumed {
            return Vec::new();
        }
        let at_risk = at_risk.into_iter().chain(self.stragglers.iter().copied());
        let single = at_risk
            .filter_map(|task| self.estimate.running(task))
            .filter(|task| task.attempts.len() == 1)
            // The task at risk may be a straggler too.
            .take(ENDS_MAX + 1);
        let mut ends: Vec<ExpectedEnd> = Vec::new();
        let tasks = self.estimate.cloned().chain(single);
        for end in tasks.flat_map(|task| ends_of(task, now)) {
            if ends.len() == ENDS_MAX {
                break;
            }
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        ends
    }
}

fn ends_of(task: &TaskEstimate, now: Instant) -> impl Iterator<Item = ExpectedEnd> {
    task.attempts.iter().filter_map(move |attempt| {
        let seconds = attempt.remaining.filter(|seconds| seconds.is_finite())?;
        Some(ExpectedEnd {
            task: task.index,
            attempt: attempt.number,
            at: now.plus(Span::from_seconds_f64(seconds)),
        })
    })
}
