//! Outcome of an ended attempt's work.

use std::sync::Arc;

use shed_core::snapshot::{AttemptState, Idempotency, KillKind, Resume, TaskSnapshot};

use crate::api::SegmentEntry;
use crate::cluster::pod::AttemptFacts;
use crate::job::view::JobView;
use crate::validate::{Adopted, ValidatedJob};

/// An exit with 0 after a deletion by another client is not a result: the attempt was disrupted. `settle`
/// judges the attempts that shed killed, on the same facts.
pub(crate) fn judge(task: &mut TaskSnapshot, part: Option<&SegmentEntry>, view: &JobView) {
    let job = &*view.job;
    let is_fenced = job.rules.idempotency == Idempotency::Fenced;
    let holder = task.grant.as_ref().filter(|_| is_fenced);
    let holder = holder.map(|grant| grant.attempt);
    for attempt in &mut task.attempts {
        let pod = view.pods.get(&(task.index.0, attempt.number.0));
        let Some(facts) = pod.and_then(|pod| pod.attempt.as_ref()) else {
            continue;
        };
        attempt.ended_in_deletion = match attempt.kill {
            // Another client had deleted it, and its node reports long after the end.
            Some(KillKind::Abandon) => facts.end.dated_after && !is_proven(job, facts, part),
            _ => facts.end.in_deletion,
        };
        // Its grant is in the ledger, so it has published. That stands, whatever its pod's phase.
        if let AttemptState::Failed { finished, .. } = attempt.state
            && facts.exited_with_0
            && holder == Some(attempt.number)
        {
            attempt.state = AttemptState::Succeeded { finished };
        }
        let AttemptState::Succeeded { finished } = attempt.state else {
            continue;
        };
        if attempt.kill.is_none() && facts.end.may_be_answer() && !is_proven(job, facts, part) {
            attempt.state = AttemptState::Failed {
                finished,
                disrupted: true,
            };
        }
    }
}

/// Whether other evidence than the order of end and deletion proves that the work is done. The
/// evidence is the grant of a fence, the last report of a task that counts units, or the rule of
/// batch/v1 that an exit with 0 is a success.
pub(crate) fn is_proven(
    job: &ValidatedJob,
    facts: &AttemptFacts,
    part: Option<&SegmentEntry>,
) -> bool {
    let by_batch = |job: &Arc<Adopted>| job.plain && !job.says_idempotency;
    job.adopted.as_ref().is_some_and(by_batch)
        || job.rules.idempotency == Idempotency::Fenced
        || job.rules.resume == Resume::Range && facts.has_reached_end(part)
}

impl AttemptFacts {
    /// Whether its last report shows that all of its segment, or of its task, is done.
    pub fn has_reached_end(&self, part: Option<&SegmentEntry>) -> bool {
        self.reached.is_some_and(|units| match part {
            Some(part) => (units.done, units.total) == (part.end, part.total),
            None => units.done == units.total,
        })
    }
}

#[cfg(test)]
mod tests;
