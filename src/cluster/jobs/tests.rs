use kube::runtime::watcher::Event;

use super::*;
use crate::api::{DeadlineJobStatus, Ledger};
use crate::cluster::Stores;
use crate::cluster::identity::OwnerKind;
use crate::fixtures;
use crate::validate::Workflow;

fn named(name: &str, change: &str) -> DeadlineJob {
    let mut job = fixtures::job(change);
    job.metadata.name = Some(name.to_owned());
    job.metadata.uid = Some(format!("uid-{name}"));
    job
}

fn finished(name: &str) -> DeadlineJob {
    let mut job = named(name, "");
    job.status = Some(DeadlineJobStatus {
        observed_generation: job.metadata.generation,
        ledger: Some(Ledger {
            finished: true,
            ..Ledger::default()
        }),
        ..DeadlineJobStatus::default()
    });
    job
}

/// This number of jobs that have ended, and ten that continue.
fn many(ended: usize) -> Arc<Stores> {
    let ended = (0..ended).map(|number| finished(&format!("ended-{number}")));
    let live = (0..10).map(|number| named(&format!("live-{number}"), ""));
    Stores::for_tests(ended.chain(live).collect(), vec![], &[])
}

#[test]
fn what_goes_on_is_found_without_a_visit_of_what_has_ended() {
    let stores = many(10_000);
    stores.visits();
    assert_eq!(stores.jobs.live().len(), 10);
    assert_eq!(stores.visits(), 10);
    assert!(stores.jobs.live_job("uid-live-3").is_some());
    assert!(stores.jobs.live_job("uid-ended-3").is_none());
    assert_eq!(stores.visits(), 2);
}

#[test]
fn the_job_of_a_pod_is_found_at_once() {
    let stores = many(10_000);
    let pod = fixtures::attempt_pod(&named("ended-77", ""), (0, 0), "node-1", "Running");
    let (reported, _) = stores.apply_pod_event(Event::Apply(pod.into()));
    stores.visits();
    let job = stores.jobs.job_of(&reported[0]).unwrap();
    assert_eq!((job.name.as_str(), stores.visits()), ("ended-77", 1));
}

#[test]
fn of_pods_that_need_nothing_no_owner_is_visited() {
    let stores = many(100);
    for number in 0..100 {
        let job = named(&format!("ended-{number}"), "");
        let mut pod = fixtures::attempt_pod(&job, (0, 0), "node-1", "Succeeded");
        pod.metadata.finalizers = None;
        stores.apply_pod_event(Event::Apply(pod.into()));
    }
    stores.visits();
    assert!(stores.pods.owners_of_tracked().is_empty());
    assert!(stores.pods.owners_of_running(|_| true).is_empty());
    assert_eq!(stores.visits(), 0);
    let job = named("ended-7", "");
    let owner = Owner::of(&job.metadata);
    assert_eq!(stores.pods.attempts_of(&owner).len(), 1);
    assert!(stores.pods.open_attempts(&owner).is_empty());
    let late = fixtures::attempt_pod(&job, (0, 1), "node-1", "Running");
    stores.apply_pod_event(Event::Apply(late.into()));
    assert_eq!(
        stores.pods.owners_of_running(|_| true),
        std::slice::from_ref(&owner)
    );
    assert_eq!(stores.pods.open_attempts(&owner).len(), 1);
}

fn object(job: &DeadlineJob) -> JobObject {
    fixtures::object(job, &[])
}

/// The versions of the live jobs, and of the jobs that stay.
fn versions(stores: &Stores) -> (u64, u64) {
    (stores.jobs.live_version(), stores.jobs.staying_version())
}

#[test]
fn versions_move_with_what_they_are_about_alone() {
    let (stores, mut writer) = Stores::of_objects(vec![object(&named("a", ""))], vec![]);
    let mut moved = |event| {
        let before = versions(&stores);
        stores.apply_job_event(&mut writer, event);
        let after = versions(&stores);
        (after.0 > before.0, after.1 > before.1)
    };
    assert_eq!(moved(Event::Apply(object(&named("a", "")))), (false, false));
    let mut changed = named("a", "");
    changed.metadata.resource_version = Some("8".to_owned());
    assert_eq!(moved(Event::Apply(object(&changed))), (true, false));
    assert_eq!(moved(Event::Apply(object(&finished("b")))), (false, true));
    assert_eq!(moved(Event::Apply(object(&finished("a")))), (true, false));
    assert_eq!(moved(Event::Delete(object(&finished("a")))), (false, true));
}

#[test]
fn a_job_departs_once_also_where_another_takes_its_name() {
    let (stores, mut writer) = Stores::of_objects(vec![object(&named("a", ""))], vec![]);
    assert!(stores.jobs.take_departed().is_empty());
    let mut other = named("a", "");
    other.metadata.uid = Some("other".to_owned());
    stores.apply_job_event(&mut writer, Event::Apply(object(&other)));
    let departed = stores.jobs.take_departed();
    assert_eq!(departed.len(), 1);
    assert!(stores.jobs.stays_by_name(&departed[0]), "its successor");
    other.metadata.deletion_timestamp = Some(crate::clock::time(crate::clock::now()));
    stores.apply_job_event(&mut writer, Event::Apply(object(&other)));
    assert!(!stores.jobs.stays_by_name(&stores.jobs.take_departed()[0]));
    stores.apply_job_event(&mut writer, Event::Delete(object(&other)));
    assert!(stores.jobs.take_departed().is_empty());
    // A list that lacks it.
    let (stores, mut writer) = Stores::of_objects(vec![object(&named("a", ""))], vec![]);
    stores.apply_job_event(&mut writer, Event::Init);
    stores.apply_job_event(&mut writer, Event::InitDone);
    assert_eq!(stores.jobs.take_departed().len(), 1);
    assert!(stores.jobs.live().is_empty());
}

#[test]
fn what_rests_stays() {
    let foreign = named("foreign", "managedBy: example.com/other");
    let stores = Stores::for_tests(vec![finished("ended"), foreign.clone()], vec![], &[]);
    assert!(stores.jobs.live().is_empty());
    let is_there = |uid: &str| stores.jobs.table.read().version(uid) == Some(7);
    assert!(is_there("uid-ended") && is_there("uid-foreign"));
    let owner = Owner::of(&foreign.metadata);
    assert_eq!(owner.kind, OwnerKind::DeadlineJob);
    assert!(stores.jobs.stays(&owner));
}

/// A job of a run that must be complete within an hour.
fn of_run(job: DeadlineJob, created: i64) -> DeadlineJob {
    let mut job = job;
    let run = [
        (crate::api::ANNOTATION_WORKFLOW, "etl-1"),
        (crate::api::ANNOTATION_WORKFLOW_DEADLINE, "1h"),
        ("example.com/other", "x"),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(run.into());
    let created = crate::clock::time(shed_core::time::Instant(created * 1000));
    job.metadata.creation_timestamp = Some(created);
    let label = (crate::api::LABEL_CLASS.to_owned(), "extract".to_owned());
    job.metadata.labels = Some([label].into());
    job
}

#[test]
fn the_watch_fills_the_runs_of_workflows() {
    let mut ended = of_run(finished("a"), 100);
    let ledger = ended.status.as_mut().unwrap().ledger.as_mut().unwrap();
    ledger.ending = Some(shed_core::snapshot::Conclusion::Complete);
    ledger.first_pass = Some(shed_core::time::Instant(100_000));
    ledger.last_win = Some(shed_core::time::Instant(150_000));
    let open = of_run(named("b", ""), 300);
    let (stores, mut writer) = Stores::of_objects(vec![object(&open), object(&ended)], vec![]);
    let runs = stores.jobs.workflows();
    let workflow = Workflow::read(open.metadata.annotations.as_ref());
    let workflow = workflow.unwrap().unwrap();
    let stage = StageOfRun::of(&open.metadata, &workflow).unwrap();
    assert_eq!(runs.start(&stage).0, 100_000);
    let jobs = || {
        let stored = serde_json::to_value(runs.to_store()).unwrap();
        let classes = stored.as_object().unwrap();
        let class = classes.values().next().unwrap();
        class["etl-1"]["jobs"].as_array().unwrap().len()
    };
    assert_eq!(jobs(), 2);
    // A job that has ended stays in its run when it is deleted; an open one has left it.
    stores.apply_job_event(&mut writer, Event::Delete(object(&open)));
    assert_eq!(jobs(), 1);
    stores.apply_job_event(&mut writer, Event::Delete(object(&ended)));
    assert_eq!(jobs(), 1);
    assert_eq!(runs.start(&stage).0, 100_000);
}

#[test]
fn a_job_that_has_ended_keeps_the_annotations_of_its_run_alone() {
    let ended = WatchedJob::new(of_run(finished("a"), 100), 0);
    let kept = ended.skeleton().unwrap().metadata.annotations.clone();
    let kept: Vec<String> = kept.unwrap().into_keys().collect();
    assert_eq!(kept, ["shed.dev/workflow", "shed.dev/workflow-deadline"]);
    let mut long = of_run(finished("a"), 100);
    let run = long.metadata.annotations.as_mut().unwrap();
    run.insert("shed.dev/workflow".to_owned(), "\u{e4}".repeat(100_000));
    let kept = WatchedJob::new(long, 0);
    let kept = kept
        .skeleton()
        .unwrap()
        .metadata
        .annotations
        .clone()
        .unwrap();
    assert!(kept["shed.dev/workflow"].len() <= 260);
    assert!(Workflow::read(Some(&kept)).is_err(), "it stays too long");
}
