//! Whether a job met its deadline: the only place that decides this.

use shed_core::settle::DEADLINE_GRACE;
use shed_core::snapshot::{Conclusion, OnMiss};
use shed_core::time::Instant;

use crate::api::Ledger;
use crate::validate::ValidatedJob;

/// The verdict on a job's deadline. A job without a deadline gets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineVerdict {
    /// The job was complete in time.
    Met,
    /// It was not, or can no longer be.
    Missed,
}

impl DeadlineVerdict {
    /// The verdict by the ledger, once there is one. A complete job is judged by its latest winner's
    /// own clock. Container times have whole seconds, so the deadline's second still counts.
    pub fn of(
        job: &ValidatedJob,
        ledger: &Ledger,
        deadline: Option<Instant>,
        facts_as_of: Instant,
    ) -> Option<Self> {
        let deadline = deadline?;
        let is_missed = match ledger.ending.map(Conclusion::is_success) {
            Some(true) => ledger.last_win > Some(deadline),
            Some(false) => true,
            // Not while an end of the last task, in time, may still be unreported.
            None => {
                let passed = facts_as_of >= deadline.plus(DEADLINE_GRACE);
                if job.rules.on_miss == OnMiss::Fail || !passed {
                    return None;
                }
                true
            }
        };
        Some(match is_missed {
            true => Self::Missed,
            false => Self::Met,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::validate::validate;

    const DEADLINE: Instant = Instant(600_000);

    fn verdict(
        change: &str,
        ending: Option<Conclusion>,
        last_win: i64,
        facts_as_of: Instant,
    ) -> Option<DeadlineVerdict> {
        let ledger = Ledger {
            ending,
            last_win: Some(Instant(last_win)),
            ..Ledger::default()
        };
        let job = validate(&fixtures::job(change)).unwrap();
        DeadlineVerdict::of(&job, &ledger, Some(DEADLINE), facts_as_of)
    }

    #[test]
    fn an_ended_job_is_judged_by_its_latest_winner() {
        let complete = Some(Conclusion::Complete);
        let at = |last_win| verdict("", complete, last_win, Instant(0));
        assert_eq!(at(DEADLINE.0), Some(DeadlineVerdict::Met));
        assert_eq!(at(DEADLINE.0 + 1), Some(DeadlineVerdict::Missed));
        let failed = Some(Conclusion::BackoffLimit);
        let early = verdict("", failed, 0, Instant(0));
        assert_eq!(early, Some(DeadlineVerdict::Missed));
    }

    #[test]
    fn an_open_job_has_missed_once_every_end_in_time_is_known() {
        let known = DEADLINE.plus(DEADLINE_GRACE);
        let continues = |at| verdict("onMiss: Continue", None, 0, at);
        assert_eq!(continues(Instant(known.0 - 1)), None);
        assert_eq!(continues(known), Some(DeadlineVerdict::Missed));
        assert_eq!(verdict("onMiss: Fail", None, 0, known), None);
    }

    #[test]
    fn a_job_without_a_deadline_has_no_verdict() {
        let job = validate(&fixtures::job("")).unwrap();
        let ledger = Ledger {
            ending: Some(Conclusion::Complete),
            ..Ledger::default()
        };
        assert_eq!(DeadlineVerdict::of(&job, &ledger, None, Instant(0)), None);
    }
}
