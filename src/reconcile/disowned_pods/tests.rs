use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::cluster::Stores;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

type Change = fn(&mut Pod);

/// A copy of an attempt of the job of the fixtures, changed so.
fn copy(uid: &str, change: Change) -> Pod {
    let mut pod = fixtures::attempt_pod(&fixtures::job(""), (0, 0), "node-1", "Running");
    pod.metadata.uid = Some(uid.to_owned());
    pod.metadata.name = Some(uid.to_owned());
    change(&mut pod);
    pod
}

fn process(pods: Vec<Pod>) -> (Apiserver, Process) {
    let job = fixtures::job("");
    let api = Apiserver::new(job.clone());
    let stores = Stores::for_tests(vec![job], pods, &[]);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

/// The notes of a check in each of these seconds.
fn notes(process: &Process, strangers: &mut Strangers, seconds: &[i64]) -> Vec<String> {
    let mut notes = Vec::new();
    for &second in seconds {
        let said = look(&process.context, strangers, Instant(second * 1000));
        notes.extend(said.into_iter().map(|(_, note)| note));
    }
    notes
}

fn counted(process: &Process, reason: &'static str) -> u64 {
    let counters = &process.context.metrics.attempts.pods_disowned;
    counters.with([reason]).get()
}

#[tokio::test]
async fn each_pod_is_counted_once_and_reported_only_in_its_namespace() {
    let cases: [(&str, Change, bool); 5] = [
        (NO_JOB, |pod| set_label(pod, "made-up"), false),
        (
            NAMESPACE,
            |pod| pod.metadata.namespace = Some("evil".to_owned()),
            false,
        ),
        (OWNER, |pod| pod.metadata.owner_references = None, true),
        (
            OWNER,
            |pod| pod.metadata.owner_references.as_mut().unwrap()[0].kind = "Job".to_owned(),
            true,
        ),
        (NAME, |_| {}, true),
    ];
    for (reason, change, is_said) in cases {
        let (_api, process) = process(vec![copy("copy", change)]);
        let mut strangers = Strangers::default();
        assert!(
            notes(&process, &mut strangers, &[0, 1]).is_empty(),
            "it may be taken in"
        );
        let said = notes(&process, &mut strangers, &[2, 3, 100]);
        assert_eq!(said.len(), usize::from(is_said), "{reason}: {said:?}");
        assert!(
            said.iter().all(|note| note.contains("pod copy ")),
            "{said:?}"
        );
        assert_eq!(counted(&process, reason), 1, "{reason}");
    }
}

fn set_label(pod: &mut Pod, uid: &str) {
    let labels = pod.metadata.labels.as_mut().unwrap();
    labels.insert(api::LABEL_JOB_UID.to_owned(), uid.to_owned());
}

#[tokio::test]
async fn many_pods_make_one_event_a_minute() {
    let pods = |from: u32| (from..from + 50).map(|number| copy(&format!("copy-{number}"), |_| {}));
    let (_api, process) = process(pods(0).collect());
    let mut strangers = Strangers::default();
    assert_eq!(notes(&process, &mut strangers, &[0, 2, 3]).len(), 1);
    process
        .context
        .stores
        .show(pods(0).chain(pods(50)).collect());
    assert!(notes(&process, &mut strangers, &[10, 12]).is_empty());
    assert_eq!(counted(&process, NAME), 100);
    process.context.stores.show(pods(100).collect());
    assert_eq!(notes(&process, &mut strangers, &[70, 72]).len(), 1);
    assert_eq!(strangers.seen.len(), 50, "those that went are forgotten");
}

#[tokio::test]
async fn attempts_are_not_disowned() {
    let attempt = fixtures::attempt_pod(&fixtures::job(""), (0, 0), "node-1", "Running");
    let (_api, process) = process(vec![attempt]);
    let mut strangers = Strangers::default();
    assert!(notes(&process, &mut strangers, &[0, 5]).is_empty());
    assert!(
        crate::metrics::disowned_reasons::ALL
            .iter()
            .all(|reason| counted(&process, reason) == 0)
    );
}
