//! How a job with a deadline ended: the only place that says which total counts it.

use kube::api::ObjectMeta;
use shed_core::snapshot::Conclusion;
use shed_core::time::Instant;

use crate::api::{self, DeadlineJob, LABEL_CLASS};
use crate::clock;

/// How a job with a deadline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineOutcome {
    /// It completed at or before its deadline.
    Met,
    /// Its deadline passed before it completed.
    Missed,
    /// It failed for another reason before its deadline.
    Failed,
}

/// A job with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobWithDeadline<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its class; empty if it has none.
    pub class: &'a str,
    /// How it ended; absent while it is unfinished.
    pub outcome: Option<DeadlineOutcome>,
}

impl DeadlineOutcome {
    /// All outcomes, in the order in which they are stored.
    pub const ALL: [Self; 3] = [Self::Met, Self::Missed, Self::Failed];

    /// The outcome as the job's status holds it; absent while the job is unfinished, and for a job without a deadline.
    pub fn of(job: &DeadlineJob) -> Option<Self> {
        let status = job.status.as_ref()?;
        let deadline = clock::instant(status.deadline.as_ref()?);
        let ledger = status.ledger.as_ref().filter(|ledger| ledger.finished)?;
        let conclusion = ledger.ending?;
        let is_late = match conclusion {
            Conclusion::DeadlineExceeded | Conclusion::DeadlineInPast => true,
            // The condition has the verdict, which was made with an exact deadline.
            _ if conclusion.is_success() => status.is_true(api::DEADLINE_MISSED),
            _ => ledger.ended.is_some_and(|ended: Instant| ended > deadline),
        };
        Some(Self::judged(is_late, conclusion.is_success()))
    }

    /// The outcome of a job that ended with or without success, late or not.
    pub fn judged(is_late: bool, is_success: bool) -> Self {
        match (is_late, is_success) {
            (true, _) => Self::Missed,
            (false, true) => Self::Met,
            (false, false) => Self::Failed,
        }
    }

    /// Its name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Failed => "failed",
        }
    }
}

impl<'a> JobWithDeadline<'a> {
    /// The job, if its status has a deadline.
    pub fn of(job: &'a DeadlineJob) -> Option<Self> {
        job.status.as_ref()?.deadline.as_ref()?;
        Some(Self::new(&job.metadata, DeadlineOutcome::of(job)))
    }

    /// A job that has ended.
    pub fn ended(metadata: &'a ObjectMeta, outcome: DeadlineOutcome) -> Self {
        Self::new(metadata, Some(outcome))
    }

    fn new(metadata: &'a ObjectMeta, outcome: Option<DeadlineOutcome>) -> Self {
        let labels = metadata.labels.as_ref();
        let class = labels.and_then(|labels| labels.get(LABEL_CLASS));
        Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            class: class.map_or("", String::as_str),
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    /// The outcome of a job with a deadline at 12:00 that ended so.
    fn outcome(ending: &str, ended: &str, missed: &str) -> Option<DeadlineOutcome> {
        let mut job = fixtures::job("");
        let status = json!({
            "deadline": "2026-01-01T12:00:00Z",
            "conditions": [{"type": "DeadlineMissed", "status": missed, "reason": "", "message": "",
                "lastTransitionTime": "2026-01-01T12:00:00Z"}],
            "ledger": {"form": 1, "finished": true, "ending": ending, "ended": ended},
        });
        job.status = Some(serde_json::from_value(status).unwrap());
        DeadlineOutcome::of(&job)
    }

    #[test]
    fn each_end_has_one_outcome() {
        use DeadlineOutcome::{Failed, Met, Missed};
        let (early, late) = ("2026-01-01T11:59:00.000000Z", "2026-01-01T12:00:01.000000Z");
        for (ending, ended, missed, expected) in [
            ("Complete", early, "False", Met),
            // The last task finished in time, and shed saw that later.
            ("Complete", late, "False", Met),
            ("SuccessPolicy", early, "False", Met),
            ("Complete", late, "True", Missed),
            ("DeadlineExceeded", late, "True", Missed),
            ("DeadlineInPast", early, "True", Missed),
            // A job that fails cannot complete in time any more, so its verdict is a miss too.
            ("BackoffLimit", early, "True", Failed),
            ("TimeLimit", early, "True", Failed),
            ("BackoffLimit", late, "True", Missed),
        ] {
            let found = outcome(ending, ended, missed);
            assert_eq!(found, Some(expected), "{ending} {ended} {missed}");
        }
    }

    #[test]
    fn unfinished_jobs_and_jobs_without_deadline_have_none() {
        let mut job = fixtures::job("");
        assert_eq!(JobWithDeadline::of(&job), None);
        let open = json!({"deadline": "2026-01-01T12:00:00Z", "ledger": {"form": 1}});
        job.status = Some(serde_json::from_value(open).unwrap());
        let found = JobWithDeadline::of(&job).unwrap();
        assert_eq!((found.class, found.outcome), ("", None));
        let done = json!({"ledger": {"form": 1, "finished": true, "ending": "Complete"}});
        job.status = Some(serde_json::from_value(done).unwrap());
        assert_eq!(DeadlineOutcome::of(&job), None);
    }
}
