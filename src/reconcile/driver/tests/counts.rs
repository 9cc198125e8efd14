//! Requests of a job's whole life, by kind. The floor is one create and one release per pod.

use std::collections::BTreeMap;

use shed_core::time::Span;

use super::*;
use crate::context::spacing::LastWrite;

/// No write of figures alone, however slowly the test runs.
fn patient(process: &Process, job: &DeadlineJob) {
    let ticks = process.context.clock.ticks();
    let later = ticks.plus(Span::from_seconds(3600));
    let uid: Arc<str> = job.metadata.uid.as_deref().unwrap().into();
    let job_memories = &process.context.job_memories;
    let last_write = LastWrite {
        at: later,
        paid: ticks,
    };
    job_memories.with(&uid, |memory| {
        memory.reconcile.last_write = Some(last_write)
    });
}

/// Requests since the last call, by verb and kind of object; events are not counted.
fn by_kind(api: &Apiserver) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for words in api.said() {
        let kind: Vec<_> = words.split(' ').take(2).collect();
        if kind[1] != "event" {
            *counts.entry(kind.join(" ")).or_default() += 1;
        }
    }
    counts
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let owned = expected
        .iter()
        .map(|(words, count)| ((*words).to_owned(), *count));
    owned.collect()
}

#[tokio::test]
async fn a_task_costs_two_pod_writes_and_a_job_two_status_writes() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 10"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(10));
    process.look(&api).await.unwrap();
    patient(&process, &api.job());
    for task in 0..10 {
        api.run((task, 0));
        process.look(&api).await.unwrap();
    }
    // Wins that come soon after each other share a pass, and so the write of the job's end.
    for task in 0..10 {
        api.exit((task, 0), 0, clock::now());
    }
    process.look(&api).await.unwrap();
    assert_eq!(api.condition(api::COMPLETE).unwrap().0, "True");
    assert_eq!(
        by_kind(&api),
        counts(&[("PATCH pod", 10), ("POST pod", 10), ("PUT job", 2)])
    );
}

#[tokio::test]
async fn a_clone_costs_a_create_a_delete_and_a_release() {
    let (api, process) = two_running("").await;
    process.plan(&api.job(), vec![launch(1, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    api.run((1, 1));
    process.look(&api).await.unwrap();
    api.exit((1, 0), 0, clock::now());
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    api.kill_deleted();
    for _ in 0..3 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(api.condition(api::COMPLETE).unwrap().0, "True");
    // Three pods are released, one of them the clone's. The ledger has the clone, its stop, and the end.
    assert_eq!(
        by_kind(&api),
        counts(&[
            ("DELETE pod", 1),
            ("PATCH pod", 3),
            ("POST pod", 1),
            ("PUT job", 3)
        ])
    );
}
