//! Counts the unfinished jobs that cannot start or continue, by namespace and reason, for an alert.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{self, DeadlineJob, LEDGER_FORM, reason};
use crate::cluster::Stores;
use crate::metrics::BlockedJobs;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::job_status;
use crate::reconcile::periodic_checks;
use crate::reconcile::record::LEDGER_TOO_NEW;

/// Interval of the check, which makes no call.
const PERIOD: Duration = Duration::from_secs(5);

/// Checks without end.
pub async fn run(context: Arc<ReconcileContext>) {
    let stores = &context.stores;
    let mut seen = None;
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        let now = (stores.jobs.live_version(), stores.jobs.batch_version());
        if seen.replace(now) != Some(now) {
            context.metrics.blocked.set(count(stores));
        }
    }
}

fn count(stores: &Stores) -> BlockedJobs {
    let mut found = BlockedJobs::new();
    let mut add = |namespace: &Option<String>, reason: &str| {
        let namespace = namespace.clone().unwrap_or_default();
        *found.entry((namespace, reason.to_owned())).or_default() += 1;
    };
    // A job that has ended is not live.
    for job in stores.jobs.live() {
        if job.metadata.deletion_timestamp.is_none() {
            reasons(&job).for_each(|reason| add(&job.metadata.namespace, reason));
        }
    }
    // A refused Job may have no companion.
    for job in stores
        .jobs
        .batch()
        .iter()
        .flat_map(|jobs| jobs.store.state())
    {
        let job = job.open().filter(|job| {
            job.metadata.deletion_timestamp.is_none() && !job_status::is_finished(job)
        });
        if let Some((job, reason)) = job.and_then(|job| Some((job, job_status::refusal(job)?))) {
            add(&job.metadata.namespace, reason);
        }
    }
    found
}

/// Why a job cannot start or continue.
fn reasons(job: &DeadlineJob) -> impl Iterator<Item = &str> {
    let status = job.status.iter();
    status.flat_map(|status| {
        let form = status.ledger.as_ref().map(|ledger| ledger.form);
        let too_new = form.filter(|form| *form > LEDGER_FORM);
        let held = status.conditions.iter().filter(|one| is_held(one));
        let held = held.map(|condition| condition.reason.as_str());
        held.chain(too_new.map(|_| LEDGER_TOO_NEW))
    })
}

fn is_held(condition: &Condition) -> bool {
    let type_ = condition.type_.as_str();
    // Other reasons of these conditions are wanted, or hold nothing up.
    let holding = [
        (api::FAILED, reason::INVALID_SPEC),
        (api::SPEC_INVALID, reason::VALID_SPEC_UNKNOWN),
        (api::SUSPENDED, reason::RESTORED_WITHOUT_STATUS),
    ];
    let is_holding = holding.contains(&(type_, condition.reason.as_str()));
    let holds = [api::ATTEMPTS_BLOCKED, api::TERMINATION_UNCONFIRMED].contains(&type_);
    condition.status == "True" && (holds || is_holding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adopt::AdoptJobs;
    use crate::api::DeadlineJobStatus;
    use crate::fixtures;

    fn job(name: &str, type_: &str, status: &str, reason: &str) -> DeadlineJob {
        let mut job = fixtures::job("");
        job.metadata.name = Some(name.to_owned());
        job.metadata.uid = Some(format!("uid-{name}"));
        let condition = serde_json::json!({
            "type": type_, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        });
        job.status = Some(DeadlineJobStatus {
            conditions: vec![serde_json::from_value(condition).unwrap()],
            ..DeadlineJobStatus::default()
        });
        job
    }

    #[test]
    fn jobs_that_cannot_continue_are_counted_by_reason() {
        let mut newer = job("newer", "TasksPending", "True", "BackOff");
        let ledger = serde_json::json!({"form": LEDGER_FORM + 1, "revision": 1});
        newer.status.as_mut().unwrap().ledger = serde_json::from_value(ledger).unwrap();
        let jobs = vec![
            job("a", "AttemptsBlocked", "True", "PodForbidden"),
            job("b", "AttemptsBlocked", "True", "PodForbidden"),
            job("over", "AttemptsBlocked", "False", "AttemptsStarting"),
            job("lost", "TerminationUnconfirmed", "True", "NodeUnreachable"),
            job("typo", "Failed", "True", "InvalidSpec"),
            job("restored", "Suspended", "True", "RestoredWithoutStatus"),
            job("suspended", "Suspended", "True", "JobSuspended"),
            newer,
        ];
        let refused = |name: &str| {
            let mut job = fixtures::batch_job("");
            job.metadata.name = Some(name.to_owned());
            let now = shed_core::time::Instant(0);
            job.status = job_status::refused(&job, "InvalidAnnotation", "", now);
            job
        };
        let mut foreign = refused("foreign");
        foreign.spec.as_mut().unwrap().managed_by = None;
        let stores = Stores::for_tests(jobs, vec![], &[])
            .adopting(AdoptJobs::Managed, vec![refused("pi"), foreign]);
        let found: Vec<_> = count(&stores)
            .into_iter()
            .map(|((namespace, reason), count)| format!("{namespace} {reason} {count}"))
            .collect();
        let expected = [
            "team InvalidAnnotation 1",
            "team InvalidSpec 1",
            "team LedgerTooNew 1",
            "team NodeUnreachable 1",
            "team PodForbidden 2",
            "team RestoredWithoutStatus 1",
        ];
        assert_eq!(found, expected);
    }
}
