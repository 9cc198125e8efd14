//! The notes of a quarantine in the job's status. They are written without the code that failed: a
//! fresh read, the few fields changed, and the resourceVersion of that read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Client;
use kube::api::{Api, PostParams};
use shed_core::time::Instant;

use crate::api::{self, DeadlineJob, DeadlineJobStatus, LEDGER_FORM, QuarantineEntry, reason};
use crate::clock;
use crate::quarantine::{Crash, Subject, wait};

/// How often a write is tried that meets conflicts.
const TRIES_MAX: u32 = 5;

/// Records that a job is quarantined from now on. Returns the job after that, or None if it is gone
/// or a newer operator has its ledger.
pub async fn put(
    client: &Client,
    job: &Subject,
    crash: &Crash,
    now: Instant,
) -> Result<Option<DeadlineJob>, kube::Error> {
    change(client, job, |found, status| {
        let ledger = status.ledger.get_or_insert_default();
        let before = ledger.quarantine.as_ref().map_or(0, |entry| entry.count);
        // The answer to an earlier try was lost.
        if before > job.crashes {
            return false;
        }
        let count = job.crashes + 1;
        let until = now.plus(wait(count));
        let reason = crash.failure.reason();
        ledger.quarantine = Some(QuarantineEntry {
            reason: reason.to_owned(),
            count,
            until,
        });
        let message = crash.message(count, until);
        let fresh = condition(found, "True", reason, message, now);
        set(&mut status.conditions, fresh);
        true
    })
    .await
}

/// Notes that a reconcile of the job went well.
pub async fn lift(
    client: &Client,
    job: &Subject,
    now: Instant,
) -> Result<Option<DeadlineJob>, kube::Error> {
    change(client, job, |found, status| {
        let Some(ledger) = &mut status.ledger else {
            return false;
        };
        if ledger.quarantine.take().is_none() {
            return false;
        }
        let message = "the last reconcile of the job succeeded".to_owned();
        let fresh = condition(found, "False", reason::RECONCILED, message, now);
        set(&mut status.conditions, fresh);
        true
    })
    .await
}

fn condition(
    job: &DeadlineJob,
    status: &str,
    reason: &str,
    message: String,
    now: Instant,
) -> Condition {
    Condition {
        type_: api::QUARANTINED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: job.metadata.generation,
        last_transition_time: clock::time(now),
    }
}

/// Sets a condition; its transition time moves with its status only.
fn set(list: &mut Vec<Condition>, mut fresh: Condition) {
    let mut known = list.iter_mut();
    match known.find(|known| known.type_ == fresh.type_) {
        None => list.push(fresh),
        Some(known) => {
            if known.status == fresh.status {
                fresh.last_transition_time = known.last_transition_time.clone();
            }
            *known = fresh;
        }
    }
}

/// Changes the current status, and raises the ledger's revision if the status changes.
async fn change(
    client: &Client,
    job: &Subject,
    edit: impl Fn(&DeadlineJob, &mut DeadlineJobStatus) -> bool,
) -> Result<Option<DeadlineJob>, kube::Error> {
    let api: Api<DeadlineJob> = Api::namespaced(client.clone(), &job.namespace);
    let mut tries = 0;
    loop {
        let Some(mut live) = api.get_opt(&job.name).await? else {
            return Ok(None);
        };
        let mut status = live.status.take().unwrap_or_default();
        let form = status.ledger.as_ref().map_or(0, |ledger| ledger.form);
        if live.metadata.uid.as_deref() != Some(&*job.uid) || form > LEDGER_FORM {
            return Ok(None);
        }
        let is_changed = edit(&live, &mut status);
        if let Some(ledger) = status.ledger.as_mut().filter(|_| is_changed) {
            ledger.revision += 1;
        }
        live.status = Some(status);
        if !is_changed {
            return Ok(Some(live));
        }
        tries += 1;
        match api
            .replace_status(&job.name, &PostParams::default(), &live)
            .await
        {
            Ok(written) => return Ok(Some(written)),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES_MAX => {}
            Err(error) => return Err(error),
        }
    }
}
