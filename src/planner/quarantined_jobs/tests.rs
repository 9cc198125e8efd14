use shed_core::decide::decide;
use shed_core::memory::Memory;
use shed_core::plan::Move;
use shed_core::policy::Policy;

use super::*;
use crate::api::QuarantineEntry;
use crate::clock;
use crate::cluster::Stores;
use crate::fixtures;
use crate::planner::observation;
use crate::reconcile::mock::{Apiserver, Process, originals};

/// A job of three tasks with a core each and its other, on a node of four cores.
fn two_jobs() -> (Apiserver, Process) {
    let core = "completions: 3, template: {spec: {containers: [{name: task, image: i, resources: \
         {requests: {cpu: '1'}}}]}}";
    let job = fixtures::job_of_age(0, &format!("{{{core}}}"));
    let mut other = job.clone();
    other.metadata.name = Some("other".to_owned());
    other.metadata.uid = Some("another".to_owned());
    let api = Apiserver::new(job.clone());
    let stores = Stores::for_tests(vec![job, other], vec![], &[fixtures::node("node-1", 4)]);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

/// The launches that a pass plans, by job.
fn planned(process: &Process) -> Vec<String> {
    let view = observation::view(&process.context.shared);
    let policy = Policy {
        surge_max: 0,
        ..Policy::default()
    };
    let (plan, _) = decide(&view.snapshot, Memory::default(), &policy);
    let launches = plan.actions.into_iter().filter_map(|planned| {
        let uid = &planned.job.0;
        let name = view
            .addresses
            .references
            .get(uid)
            .map(|job| job.name.clone());
        matches!(planned.action, Move::Launch(_)).then(|| name.unwrap_or_default())
    });
    let mut launches: Vec<String> = launches.collect();
    launches.sort_unstable();
    launches
}

fn quarantined(process: &Process) -> i64 {
    process.context.metrics.reconciles.quarantined.get()
}

/// The job is quarantined as its ledger stands.
fn quarantine(api: &Apiserver, process: &Process) {
    let mut world = api.world.lock();
    let job = world.job.as_mut().expect("the job");
    let ledger = job
        .status
        .get_or_insert_default()
        .ledger
        .get_or_insert_default();
    ledger.quarantine = Some(QuarantineEntry {
        reason: "ReconcilePanicked".to_owned(),
        count: 1,
        until: clock::now(),
    });
    ledger.revision += 1;
    let newest = Arc::new(job.clone());
    let uid = job.metadata.uid.as_deref().unwrap_or_default().into();
    let job_memories = &process.context.job_memories;
    job_memories.with(&uid, |memory| memory.planned.newest = Some(newest));
}

#[tokio::test]
async fn a_quarantined_job_gets_nothing_and_keeps_its_capacity() {
    let (api, process) = two_jobs();
    assert_eq!(planned(&process).len(), 4);
    assert_eq!(quarantined(&process), 0);
    process.plan(&api.job(), originals(2));
    process.reconcile(api.job()).await.unwrap();
    quarantine(&api, &process);
    // The watch shows none of its two pods yet.
    assert_eq!(planned(&process), ["other"; 2]);
    assert_eq!(quarantined(&process), 1);
    for id in [(0, 0), (1, 0)] {
        api.run(id);
    }
    process.context.stores.show(api.pods());
    assert_eq!(planned(&process), ["other"; 2]);
    api.exit((1, 0), 0, clock::now());
    process.context.stores.show(api.pods());
    assert_eq!(planned(&process), ["other"; 3], "it has ended");
}

#[tokio::test]
async fn a_job_that_can_not_be_looked_at_is_quarantined_and_no_other() {
    let (api, process) = two_jobs();
    let context = &process.context.shared;
    let watched = api.job();
    let mut apart = Apart::begin(context);
    assert_eq!(apart.look(&watched, |_| Some(1)), Some(1));
    let looked: Option<u32> = apart.look(&watched, |_| panic!("on purpose"));
    assert_eq!(looked, None);
    let owners: Vec<Owner> = apart.owners().collect();
    assert_eq!(owners, [Owner::of(&watched.metadata)]);
    let accused = apart.end().accused;
    assert_eq!(accused, [ObjectRef::from_obj(watched.as_ref())]);
    // Until that is noted it is not looked at again.
    assert_eq!(planned(&process), ["other"; 3]);
    process.reconcile(watched).await.unwrap();
    let noted = ["GET job", "PUT job status", "POST event ReconcilePanicked"];
    assert_eq!(api.said(), noted);
    assert_eq!(planned(&process), ["other"; 3]);
}

#[tokio::test]
async fn what_was_decided_once_is_known_when_the_quarantine_ends() {
    let (api, process) = two_jobs();
    quarantine(&api, &process);
    let context = &process.context.shared;
    let mut newest = Arc::unwrap_or_clone(context.job_memories.newest(&api.job()));
    let ledger = newest
        .status
        .as_mut()
        .and_then(|status| status.ledger.as_mut());
    ledger.unwrap().policy_state = Some("3".to_owned());
    let uid: Arc<str> = newest.metadata.uid.as_deref().unwrap().into();
    context.job_memories.with(&uid, |memory| {
        memory.planned.newest = Some(Arc::new(newest))
    });
    let mut memory = Memory::default();
    observation::view(context).apart.keep_states(&mut memory);
    let states: Vec<_> = memory.durable_states().collect();
    assert_eq!(states, [(&JobKey(uid), "3")]);
}

#[tokio::test]
async fn a_job_that_is_tried_again_is_planned_for_once_that_went_well() {
    let (api, process) = two_jobs();
    quarantine(&api, &process);
    assert_eq!(planned(&process), ["other"; 3]);
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(planned(&process).len(), 4);
    assert_eq!(quarantined(&process), 0);
}
