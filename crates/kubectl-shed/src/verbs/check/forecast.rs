//! What the planner would say about the deadline of a job that has not begun, if it had this many slots. Pure.

use std::sync::Arc;

use shed::api::Ledger;
use shed::clock;
use shed::context::feasibility::ReportedFeasibility;
use shed::job::facts;
use shed::job::view::JobView as Facts;
use shed::validate::{DeadlineRule, ValidatedJob};
use shed_core::plan::Feasibility;
use shed_core::time::Instant;

use crate::single_job::{self, SingleJob};
use crate::words;

/// A forecast for a job that is created now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    figures: Feasibility,
    created: Instant,
}

impl Forecast {
    /// Whether PoCD reaches the target. Absent while the durations are unknown.
    pub fn is_feasible(&self) -> Option<bool> {
        let pocd = self.figures.pocd.filter(|_| self.figures.is_known)?;
        Some(pocd >= self.figures.target)
    }

    /// One sentence, as in the condition `DeadlineFeasible`.
    pub fn words(&self) -> String {
        if !self.figures.is_known {
            return "no forecast, because spec.expectedTaskDuration does not say how long a task takes: add it, \
                    e.g. {p50: 10m, p90: 15m}"
                .to_owned();
        }
        let (_, words) = ReportedFeasibility::after(None, &self.figures, 0, self.created).words();
        match self.figures.earliest {
            Some(earliest) => {
                let seconds = (earliest.since(self.created).0 + 999) / 1000;
                format!("{words}, {} after its creation", words::exact_span(seconds))
            }
            None => words,
        }
    }
}

/// The forecast for a job without attempts. Absent without a deadline.
pub fn forecast(job: &ValidatedJob, slots: u32) -> Option<Forecast> {
    let (created, ledger) = (job.created, ledger(job));
    let facts = Facts {
        places: single_job::places(std::iter::empty()),
        ..Facts::new(Arc::new(job.clone()), ledger, created, created)
    };
    facts.deadline?;
    let mut snapshot = facts::facts(&facts);
    // A suspended one is judged as if it were not.
    snapshot.rules.suspend = false;
    snapshot.asks_feasibility = true;
    let report = SingleJob::new(snapshot, slots).report(created);
    Some(Forecast {
        figures: report.ok()?.feasibility?,
        created,
    })
}

/// The first planning pass follows the creation at once.
fn ledger(job: &ValidatedJob) -> Ledger {
    Ledger {
        first_pass: Some(job.created),
        ..Ledger::default()
    }
}

/// A warning if the time limit would stop a job that starts now before its deadline.
pub fn time_limit_words(job: &ValidatedJob) -> Option<String> {
    let (limit, deadline) = (job.time_limit?, job.deadline_by(&ledger(job))?);
    let until_deadline = deadline.since(job.created);
    (limit < until_deadline).then(|| {
        format!(
            "spec.activeDeadlineSeconds: {} stops the job before its deadline, which is {} after its creation: raise it, \
             or leave it out",
            limit.0 / 1000,
            words::exact_span(until_deadline.0 / 1000)
        )
    })
}

/// How a job's deadline is stated, relative to its creation.
pub fn deadline_words(job: &ValidatedJob) -> String {
    match job.deadline_by(&ledger(job)) {
        None if job.deadline == DeadlineRule::Never => "no deadline".to_owned(),
        None if matches!(job.deadline, DeadlineRule::Run(_)) => {
            "the deadline of its workflow's run, which only the operator knows".to_owned()
        }
        None => {
            "a deadline from earlier runs of its class, which only the operator knows".to_owned()
        }
        Some(deadline) => {
            let seconds = deadline.since(job.created).0 / 1000;
            let at = clock::rfc3339(deadline);
            match seconds {
                1.. => format!(
                    "deadline {} after its creation ({at} if created now)",
                    words::exact_span(seconds)
                ),
                _ => format!("deadline {at}, which is over"),
            }
        }
    }
}
