use k8s_openapi::api::batch::v1::Job;

use super::*;
use crate::adopt::AdoptJobs;
use crate::api::{DeadlineJobStatus, Ledger};
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

/// A process that sees a companion with this ledger, and Jobs as in `adopting`.
fn process(
    ledger: Option<Ledger>,
    adopting: impl FnOnce(Arc<Stores>, Job) -> Arc<Stores>,
) -> (Apiserver, Process) {
    let job = fixtures::batch_job("");
    let mut companion = fixtures::companion(&job);
    companion.status = Some(DeadlineJobStatus {
        ledger,
        ..DeadlineJobStatus::default()
    });
    let api = Apiserver::new(companion.clone());
    let stores = adopting(Stores::for_tests(vec![companion], vec![], &[]), job);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

fn begun() -> Option<Ledger> {
    Some(Ledger::default())
}

fn is_off(stores: Arc<Stores>, _: Job) -> Arc<Stores> {
    stores
}

fn not_taken(stores: Arc<Stores>, mut job: Job) -> Arc<Stores> {
    job.spec.as_mut().unwrap().managed_by = None;
    stores.adopting(AdoptJobs::Managed, vec![job])
}

#[tokio::test]
async fn a_begun_job_that_is_no_longer_adopted_is_reported_once() {
    for adopting in [is_off, not_taken] {
        let (api, process) = process(begun(), adopting);
        let mut reported = Reported::default();
        let new = look(&process.context, &mut reported);
        assert_eq!(new.len(), 1);
        announce(&process.context, &new[0]).await;
        process.send_events().await;
        let regarding = api.call("POST event NotAdopted").body["regarding"]["kind"].clone();
        assert_eq!(regarding, "DeadlineJob", "the last of the two");
        assert_eq!(api.said(), ["POST event NotAdopted"; 2]);
        assert!(look(&process.context, &mut reported).is_empty());
        assert_eq!(process.context.metrics.reconciles.not_adopted.get(), 1);
    }
}

#[tokio::test]
async fn a_job_that_is_run_gone_over_or_not_begun_is_not_reported() {
    let run = |stores: Arc<Stores>, job| stores.adopting(AdoptJobs::Managed, vec![job]);
    let gone = |stores: Arc<Stores>, _| stores.adopting(AdoptJobs::Managed, vec![]);
    let finished = Ledger {
        finished: true,
        ..Ledger::default()
    };
    for (_api, process) in [
        process(begun(), run),
        process(begun(), gone),
        process(None, is_off),
        process(Some(finished), is_off),
    ] {
        assert!(look(&process.context, &mut Reported::default()).is_empty());
        assert_eq!(process.context.metrics.reconciles.not_adopted.get(), 0);
    }
}
