use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;

use crate::api::DeadlineJob;
use crate::clock;
use crate::cluster::{JobObject, Stores};
use crate::fixtures;

/// A job of two tasks whose first attempts run.
fn two_running() -> (DeadlineJob, [Pod; 2], std::sync::Arc<Stores>) {
    let job = fixtures::job("completions: 2");
    let pods = [0, 1].map(|task| fixtures::attempt_pod(&job, (task, 0), "node-1", "Running"));
    let stores = Stores::for_tests(vec![job.clone()], pods.to_vec(), &[]);
    (job, pods, stores)
}

fn is_status_only(stores: &Stores, pod: Pod) -> bool {
    stores.apply_pod_event(Event::Apply(pod.into())).1
}

#[test]
fn a_pod_that_starts_or_is_released_changes_only_the_status() {
    let (job, _, stores) = two_running();
    for phase in ["Pending", "Running"] {
        let clone = fixtures::attempt_pod(&job, (0, 1), "node-2", phase);
        assert!(is_status_only(&stores, clone), "{phase}");
    }
    let mut ended = fixtures::attempt_pod(&job, (0, 0), "node-1", "Failed");
    assert!(!is_status_only(&stores, ended.clone()), "it may be retried");
    ended.metadata.finalizers = None;
    assert!(is_status_only(&stores, ended), "it was released");
}

#[test]
fn an_end_changes_only_the_status_unless_something_must_stop() {
    let (job, [mut first, second], stores) = two_running();
    first.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    assert!(!is_status_only(&stores, first.clone()), "its deletion");
    assert!(is_status_only(&stores, first), "and what follows from it");
    let won = |id| fixtures::attempt_pod(&job, id, "node-1", "Succeeded");
    assert!(is_status_only(&stores, won((0, 0))), "another task runs");
    stores.apply_pod_event(Event::Apply(second.into()));
    let clone = fixtures::attempt_pod(&job, (1, 1), "node-2", "Running");
    stores.apply_pod_event(Event::Apply(clone.into()));
    assert!(
        !is_status_only(&stores, won((1, 1))),
        "its sibling must stop"
    );
    assert!(!is_status_only(&stores, won((1, 0))), "none is left");
}

#[test]
fn a_pod_that_starts_after_its_task_was_won_must_stop() {
    let (job, _, stores) = two_running();
    let pod = |id, phase| fixtures::attempt_pod(&job, id, "node-1", phase);
    stores.apply_pod_event(Event::Apply(pod((0, 0), "Failed").into()));
    assert!(
        is_status_only(&stores, pod((0, 1), "Pending")),
        "a failed sibling won nothing"
    );
    stores.apply_pod_event(Event::Apply(pod((0, 1), "Succeeded").into()));
    assert!(!is_status_only(&stores, pod((0, 2), "Pending")));
    assert!(!is_status_only(&stores, pod((0, 2), "Running")));
    assert!(
        is_status_only(&stores, pod((1, 0), "Running")),
        "another task"
    );
}

#[test]
fn a_new_job_or_another_status_changes_only_the_status() {
    let job = fixtures::job("completions: 2");
    let (stores, mut writer) = Stores::of_objects(vec![fixtures::object(&job, &[])], vec![]);
    let mut is_status_only = |job: &DeadlineJob| {
        let event: Event<JobObject> = Event::Apply(fixtures::object(job, &[]));
        stores.apply_job_event(&mut writer, event).1
    };
    let mut new = job.clone();
    new.metadata.name = Some("new".to_owned());
    new.metadata.uid = Some("new".to_owned());
    assert!(
        is_status_only(&new),
        "the planner names it with its launches"
    );
    let mut written = job.clone();
    written.status = Some(crate::api::DeadlineJobStatus::default());
    assert!(is_status_only(&written));
    let mut edited = written.clone();
    edited.metadata.generation = Some(2);
    assert!(!is_status_only(&edited));
    assert!(is_status_only(&edited));
    let mut labelled = edited.clone();
    labelled.metadata.labels = Some([(crate::api::LABEL_CLASS.to_owned(), "b".to_owned())].into());
    assert!(!is_status_only(&labelled));
    let mut leaving = labelled.clone();
    leaving.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    assert!(!is_status_only(&leaving));
}
