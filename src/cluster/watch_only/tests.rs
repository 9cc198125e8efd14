use kube::runtime::reflector::store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use shed_core::time::Span;

use super::*;
use crate::adopt::WatchedBatchJob;
use crate::api::{LABEL_JOBS, MANAGED_BY};
use crate::cluster::batch::BatchObject;
use crate::fixtures;

/// A Job of the built-in controller in `team`, with these changes by their places.
fn job(changes: &[(&str, Value)]) -> Value {
    let mut job = json!(fixtures::batch_job("completions: 10, parallelism: 4"));
    job["spec"]["managedBy"] = Value::Null;
    job["metadata"]["labels"] = json!({"shed.dev/class": "nightly"});
    job["metadata"]["annotations"] = json!({"shed.dev/deadline": "10m"});
    job["status"] = json!({"startTime": "1970-01-01T00:00:10Z", "active": 4, "succeeded": 3});
    for (pointer, change) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        job.pointer_mut(parent).unwrap()[field] = change.clone();
    }
    job
}

fn complete(at: &str) -> Value {
    json!({"startTime": "1970-01-01T00:00:10Z", "completionTime": at, "succeeded": 10,
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": at}]})
}

/// Stores that see Jobs, with this label of `team`, and the writer of the watch.
fn stores(chosen: &str) -> (Arc<Stores>, Writer<WatchedBatchJob>) {
    let (stores, writer) = Stores::for_tests(vec![], vec![], &[]).seeing_jobs(AdoptJobs::Managed);
    stores.show_namespaces(&[("team", LABEL_JOBS, chosen)]);
    (stores, writer)
}

fn sent(job: &Value) -> BatchObject {
    serde_json::from_value(job.clone()).unwrap()
}

fn show(stores: &Stores, writer: &mut Writer<WatchedBatchJob>, job: &Value) {
    stores.apply_batch_event(writer, Event::Apply(sent(job)));
}

#[test]
fn only_jobs_of_the_built_in_controller_are_watched() {
    let other_namespace = json!("elsewhere");
    for (changes, chosen, is_watched) in [
        (vec![], "watch", true),
        (vec![], "run", false),
        (
            vec![("/spec/managedBy", json!("kubernetes.io/job-controller"))],
            "watch",
            true,
        ),
        (vec![("/spec/managedBy", json!(MANAGED_BY))], "watch", false),
        (
            vec![("/spec/managedBy", json!("example.com/other"))],
            "watch",
            false,
        ),
        (
            vec![("/metadata/namespace", other_namespace)],
            "watch",
            false,
        ),
        (vec![("/metadata/annotations", Value::Null)], "watch", true),
    ] {
        let (stores, mut writer) = stores(chosen);
        show(&stores, &mut writer, &job(&changes));
        assert_eq!(
            stores.watch_only.all().len(),
            usize::from(is_watched),
            "{changes:?} {chosen}"
        );
    }
}

#[test]
fn a_few_figures_of_a_job_are_kept() {
    let (stores, mut writer) = stores("watch");
    let annotations = json!({"shed.dev/deadline": "10m", "shed.dev/target-pocd": "0.8",
        "shed.dev/expected-task-duration": "2m"});
    show(
        &stores,
        &mut writer,
        &job(&[("/metadata/annotations", annotations)]),
    );
    let kept = stores.watch_only.all().remove(0);
    let run = WholeRun {
        tasks: 10,
        width: 4,
        done: 3,
        running: 4,
    };
    assert_eq!(
        (kept.run, kept.started, kept.end),
        (run, Some(Instant(10_000)), None)
    );
    assert_eq!(kept.history_class().as_deref(), Some("team/nightly"));
    let terms = kept.terms.clone().unwrap();
    let p50 = terms.expected.map(|expected| expected.p50());
    assert_eq!(
        (terms.target, p50),
        (Some(0.8), Some(Span::from_seconds(120)))
    );
    let deadline = terms.deadline.computed(kept.from, kept.started);
    assert_eq!(deadline, Some(Instant(600_000)));
}

#[test]
fn a_wrong_annotation_is_named_with_its_fix() {
    let (stores, mut writer) = stores("watch");
    for (annotations, words) in [
        (
            json!({"shed.dev/deadlin": "10m"}),
            "shed.dev/deadlin: is unknown: use one of",
        ),
        (
            json!({"shed.dev/deadline": "06:00 Europe/Atlantis"}),
            "unknown time zone `Europe/Atlantis`",
        ),
    ] {
        show(
            &stores,
            &mut writer,
            &job(&[("/metadata/annotations", annotations)]),
        );
        let fault = stores.watch_only.all().remove(0).terms.clone().unwrap_err();
        assert!(fault.contains(words), "{fault}");
    }
}

#[test]
fn a_completed_job_teaches_its_class_once() {
    let (stores, mut writer) = stores("watch");
    let of_uid = |uid: &str, status| job(&[("/metadata/uid", json!(uid)), ("/status", status)]);
    let ended = of_uid("a", complete("1970-01-01T00:05:10Z"));
    let seconds = || stores.jobs.completions().seconds("team/nightly");
    for _ in 0..2 {
        show(&stores, &mut writer, &ended);
    }
    // Until the second is over in which it ended.
    assert_eq!(seconds(), [301.0]);
    assert!(stores.watch_only.all().is_empty(), "it had ended before");
    show(
        &stores,
        &mut writer,
        &of_uid("b", json!({"startTime": "1970-01-01T00:00:10Z"})),
    );
    show(
        &stores,
        &mut writer,
        &of_uid("b", complete("1970-01-01T00:01:10Z")),
    );
    assert_eq!(seconds(), [61.0, 301.0]);
    let end = stores.watch_only.all().remove(0).end.unwrap();
    assert!(end.is_complete, "its end is still to be taken note of");
    let failed = json!({"startTime": "1970-01-01T00:00:10Z", "conditions": [{"type": "Failed",
        "status": "True", "lastTransitionTime": "1970-01-01T00:01:10Z"}]});
    show(&stores, &mut writer, &of_uid("c", failed));
    assert_eq!(seconds().len(), 2, "a failed Job teaches nothing");
}

#[test]
fn a_job_that_is_gone_is_dropped_and_no_list_brings_it_back() {
    let (stores, mut writer) = stores("watch");
    let (old, new) = (job(&[]), job(&[("/metadata/resourceVersion", json!("9"))]));
    let count = || stores.watch_only.all().len();
    // The list of a namespace knows a Job that the watch has not shown.
    stores.note_listed(&sent(&old));
    assert_eq!(count(), 0);
    show(&stores, &mut writer, &new);
    stores.watch_only.remove("job-uid");
    stores.note_listed(&sent(&old));
    assert_eq!(count(), 0, "the watch has shown a newer version");
    stores.note_listed(&sent(&new));
    assert_eq!(count(), 1);
    stores.apply_batch_event(&mut writer, Event::Delete(sent(&new)));
    assert_eq!(count(), 0);
    stores.note_listed(&sent(&new));
    assert_eq!(count(), 0, "it is gone");
}

#[test]
fn a_new_list_drops_the_jobs_that_it_lacks() {
    let (stores, mut writer) = stores("watch");
    let named = |name: &str| {
        job(&[
            ("/metadata/uid", json!(name)),
            ("/metadata/name", json!(name)),
        ])
    };
    for name in ["a", "b"] {
        show(&stores, &mut writer, &named(name));
    }
    stores.apply_batch_event(&mut writer, Event::Init);
    stores.apply_batch_event(&mut writer, Event::InitApply(sent(&named("b"))));
    stores.apply_batch_event(&mut writer, Event::InitDone);
    let left = stores.watch_only.all();
    assert_eq!(left.iter().map(|job| &*job.name).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_large_job_takes_little_memory() {
    let (stores, _writer) = stores("watch");
    let args = json!(["x".repeat(1_000_000)]);
    let large = sent(&job(&[("/spec/template/spec/containers/0/args", args)]));
    let used = allocation_counter::measure(|| {
        let kept = stores.read_watch_only(&large).unwrap();
        stores.note_watch_only(kept);
    });
    assert!(used.bytes_current < 2000, "{}", used.bytes_current);
}

#[test]
fn without_adoption_no_job_is_watched() {
    let stores = Stores::for_tests(vec![], vec![], &[]);
    stores.show_namespaces(&[("team", LABEL_JOBS, "watch")]);
    stores.apply_batch_event(&mut store().1, Event::Apply(sent(&job(&[]))));
    assert!(stores.watch_only.all().is_empty());
    assert_eq!(stores.adopts(), AdoptJobs::None);
}
