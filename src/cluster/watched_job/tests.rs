use kube::core::ObjectList;
use kube::runtime::watcher::Event;
use serde_json::json;
use shed_core::time::Span;

use kube::Resource;

use super::*;
use crate::adopt::{AdoptJobs, WatchedBatchJob};
use crate::api::Ledger;
use crate::api::managed_fields::Trimmed;
use crate::cluster::{Kind, Stores};
use crate::fixtures;
use crate::job::facts;

const KIB: i64 = 1024;

/// The job of the fixtures as users write it: a template of 3 KB, `managedFields` of 6 KB,
/// conditions, and the annotation of `kubectl apply`.
fn realistic(name: &str, spec: &Value, ledger: &Ledger) -> Value {
    let mut object = json!(fixtures::job(""));
    let env: Vec<Value> = (0..30)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": "a value of sixty characters, as many settings of jobs have it"}))
        .collect();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!(format!("11111111-2222-3333-4444-{name}"));
    object["spec"]["template"]["spec"]["containers"][0]["env"] = json!(env);
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "Because", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "m".repeat(200)})
    };
    let conditions = ["Complete", "SuccessCriteriaMet", "DeadlineFeasible"].map(condition);
    object["status"] = json!({"observedGeneration": 1, "phase": "Running", "ledger": ledger,
        "conditions": conditions});
    let applied = object["spec"].to_string();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    object["metadata"]["annotations"] = json!({annotation: applied});
    let field = |n: i32| (format!("f:field-{n}"), json!({".": {}, "f:value": {}}));
    let fields: serde_json::Map<String, Value> = (0..160).map(field).collect();
    object["metadata"]["managedFields"] = json!([{"manager": "kubectl", "fieldsV1": fields}]);
    object
}

fn finished() -> Ledger {
    Ledger {
        finished: true,
        done: "0-999".parse().unwrap(),
        ended: Some(Instant(9000)),
        ended_runs: vec![Span(30_000); 32],
        ..Ledger::default()
    }
}

/// Bytes that stay allocated after `build`, and the most that were while it ran.
fn held<T>(build: impl FnOnce() -> T) -> (T, i64, i64) {
    let mut built = None;
    let used = allocation_counter::measure(|| built = Some(build()));
    let most = i64::try_from(used.bytes_max).unwrap();
    (built.unwrap(), used.bytes_current, most)
}

/// Bytes that stay of each of these jobs once the watch has shown them.
fn per_job(objects: &[Value]) -> i64 {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    let (stores, mut writer) = Stores::of_objects(vec![], vec![]);
    let ((), bytes, _) = held(|| {
        for text in &texts {
            let object = serde_json::from_str(text).unwrap();
            stores.apply_job_event(&mut writer, Event::Apply(object));
        }
    });
    bytes / i64::try_from(objects.len()).unwrap()
}

#[test]
fn little_is_kept_of_a_job_that_has_ended() {
    let spec = json!({"completions": 1000});
    let job = |n: i32| realistic(&format!("job-{n}"), &spec, &finished());
    let jobs: Vec<Value> = (0..100).map(job).collect();
    assert!(jobs[0].to_string().len() > 12_000, "as large as in life");
    let bytes = per_job(&jobs);
    assert!(bytes <= 8 * KIB, "{bytes}");
}

#[test]
fn little_is_kept_of_a_job_of_another_controller() {
    let spec = json!({"managedBy": "example.com/other"});
    let job = |n: i32| realistic(&format!("job-{n}"), &spec, &Ledger::default());
    let bytes = per_job(&(0..100).map(job).collect::<Vec<_>>());
    assert!(bytes <= 8 * KIB, "{bytes}");
}

#[test]
fn a_live_job_costs_its_template_and_a_little_per_attempt() {
    const ATTEMPTS: u32 = 1000;
    let mut ledger = crate::api::Ledger::default();
    for action in crate::reconcile::mock::originals(ATTEMPTS) {
        let shed_core::plan::Move::Launch(launch) = action else {
            continue;
        };
        ledger.launch(&launch, Instant(1000));
    }
    let live =
        |name: &str, ledger: &Ledger| realistic(name, &json!({"completions": ATTEMPTS}), ledger);
    let jobs: Vec<Value> = (0..20)
        .map(|n| live(&format!("job-{n}"), &Ledger::default()))
        .collect();
    let bytes = per_job(&jobs);
    assert!(bytes <= 64 * KIB, "{bytes}");
    let object = live("job", &ledger.clone());
    let job: DeadlineJob = serde_json::from_value(object.clone()).unwrap();
    let pods =
        (0..ATTEMPTS).map(|task| fixtures::attempt_pod(&job, (task, 0), "node-1", "Running"));
    let uid = |n: usize| Some(format!("11111111-2222-3333-4444-{n:012}"));
    let pods: Vec<_> = pods
        .enumerate()
        .map(|(n, mut pod)| {
            pod.metadata.uid = uid(n);
            Trimmed::from(pod)
        })
        .collect();
    let (stores, mut writer) = Stores::of_objects(vec![], vec![]);
    let (_traces, bytes, _) = held(|| {
        let object = serde_json::from_value(object.clone()).unwrap();
        stores.apply_job_event(&mut writer, Event::Apply(object));
        for pod in &pods {
            stores.apply_pod_event(Event::Apply(pod.clone()));
        }
        let mut traces = facts::Traces::default();
        let own = stores
            .pods
            .attempts_of(&crate::cluster::identity::Owner::of(&job.metadata));
        facts::note(&mut traces, &own, Instant(0));
        traces
    });
    let each = bytes / i64::from(ATTEMPTS);
    assert!(each <= KIB, "{each}");
}

/// A pod of 8 KB that has nothing to do with shed.
fn foreign_pod(n: usize) -> Value {
    let env: Vec<Value> = (0..60)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": "a value of sixty characters, as many settings of pods have it"}))
        .collect();
    json!({"metadata": {"name": format!("web-6d4cf56db6-{n:05}"), "namespace": "storefront",
            "uid": format!("11111111-2222-3333-4444-{n:012}"), "resourceVersion": format!("{n}"),
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web", "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4cf56db6",
                "uid": "aaaaaaaa-2222-3333-4444-555555555555", "controller": true}],
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"x": "y".repeat(2000)}}}]},
        "spec": {"nodeName": format!("ip-10-0-0-{}.eu-central-1.compute.internal", n % 10), "containers":
            [{"name": "web", "image": "web", "env": env, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

#[test]
fn little_is_kept_of_a_pod_of_another() {
    let texts: Vec<String> = (0..500).map(|n| foreign_pod(n).to_string()).collect();
    assert!(texts[0].len() > 7000, "{}", texts[0].len());
    let (stores, _writer) = Stores::of_objects(vec![], vec![]);
    let ((), bytes, _) = held(|| {
        for text in &texts {
            let pod = serde_json::from_str(text).unwrap();
            stores.apply_pod_event(Event::Apply(pod));
        }
    });
    let each = bytes / i64::try_from(texts.len()).unwrap();
    assert!(each <= KIB, "{each}");
}

/// A job with a megabyte of arguments, as text.
fn oversized(n: usize) -> String {
    let args = json!(["x".repeat(1_000_000)]);
    let mut job = json!(fixtures::job(""));
    job["metadata"]["name"] = json!(format!("large-{n}"));
    job["metadata"]["uid"] = json!(format!("large-{n}"));
    job["spec"]["template"]["spec"]["containers"][0]["args"] = args;
    job.to_string()
}

#[test]
fn of_a_page_of_large_objects_one_at_a_time_is_held() {
    const PAGE: usize = crate::cluster::PAGE as usize;
    let items: Vec<String> = (0..PAGE).map(oversized).collect();
    let page = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"metadata\": {{}}, \"items\": [{}]}}",
        items.join(",")
    );
    drop(items);
    let (list, kept, most) = held(|| serde_json::from_str::<ObjectList<JobObject>>(&page).unwrap());
    assert_eq!(list.items.len(), PAGE);
    assert!(most < 8 * KIB * KIB, "{most}");
    // A thousand of them are fifty such pages.
    assert!(kept * 50 <= 8 * KIB * KIB, "{kept}");
    let is_oversized = |object: &JobObject| match object {
        JobObject::Read { job, .. } => job
            .skeleton()
            .is_some_and(|skeleton| matches!(skeleton.rest, Rest::Oversized { refusal: Some(_) })),
        JobObject::Undecodable { .. } => false,
    };
    assert!(list.items.iter().all(is_oversized));
}

#[test]
fn a_job_is_kept_whole_unless_it_has_nothing_to_do() {
    let job = |spec: Value, ledger: &Ledger| {
        let object = realistic("job", &spec, ledger);
        let JobObject::Read { job, .. } = serde_json::from_value(object).unwrap() else {
            panic!("undecodable");
        };
        job
    };
    let none = Ledger::default();
    assert!(job(json!({}), &none).live().is_some());
    assert!(
        job(json!({"managedBy": "example.com/other"}), &none)
            .live()
            .is_none()
    );
    let ended = job(json!({"ttlSecondsAfterFinished": 5}), &finished());
    let Rest::Finished(ended) = &ended.skeleton().unwrap().rest else {
        panic!("{ended:?}");
    };
    assert_eq!(ended.expiry, Some(Instant(14_000)));
    assert_eq!(ended.runs.len(), 32);
    // A ledger in a newer format, or with a quarantine, is for the reconciler.
    let newer = Ledger {
        form: api::LEDGER_FORM + 1,
        ..finished()
    };
    assert!(job(json!({}), &newer).live().is_some());
    let quarantined = Ledger {
        quarantine: Some(api::QuarantineEntry {
            reason: "ReconcilePanicked".to_owned(),
            count: 1,
            until: Instant(0),
        }),
        ..finished()
    };
    assert!(job(json!({}), &quarantined).live().is_some());
    // A specification that the status is not about yet.
    let mut edited = realistic("job", &json!({}), &finished());
    edited["metadata"]["generation"] = json!(2);
    let JobObject::Read { job, .. } = serde_json::from_value(edited).unwrap() else {
        panic!("undecodable");
    };
    assert!(job.live().is_some());
}

#[test]
fn skipped_bytes_still_count_toward_the_object_size() {
    let object = realistic("job", &json!({}), &Ledger::default());
    let managed = object["metadata"]["managedFields"].to_string().len();
    let whole: DeadlineJob = serde_json::from_value(object.clone()).unwrap();
    let object = serde_json::from_value(object).unwrap();
    let (stores, _writer) = Stores::of_objects(vec![object], vec![]);
    let kept = stores.jobs.live().remove(0);
    let annotations = crate::size::bytes(&whole.metadata.annotations);
    let skipped = stores.jobs.skipped_bytes(&kept);
    // The name of the field is not kept either.
    assert!(
        (managed + annotations..managed + annotations + 20).contains(&skipped),
        "{skipped}"
    );
    assert_eq!(kept.metadata.annotations, None);
    assert_eq!(
        stores.jobs.skipped_bytes(&whole),
        0,
        "the answer to a write has them"
    );
    assert_eq!(kept.metadata.managed_fields, None);
}

#[test]
fn of_a_batch_job_of_another_controller_its_metadata_stays() {
    let mut job = fixtures::batch_job("completions: 1");
    job.spec.as_mut().unwrap().managed_by = None;
    let foreign = WatchedBatchJob::new(AdoptJobs::Managed, job.clone(), false);
    assert!(foreign.whole().is_none());
    assert_eq!(foreign.meta().uid, job.metadata.uid);
}

#[test]
fn jobs_beyond_capacity_are_kept_whole_once_others_are_gone() {
    let job = |number: usize| {
        let mut job = fixtures::job("");
        job.metadata.name = Some(format!("job-{number}"));
        job.metadata.uid = Some(format!("uid-{number}"));
        let template = job.spec.template.spec.as_mut().unwrap();
        template.containers[0].args = Some(vec!["x".repeat(100_000)]);
        job
    };
    let object = |job: &DeadlineJob| serde_json::from_value::<JobObject>(json!(job)).unwrap();
    let (stores, mut writer) = Stores::of_objects(vec![], vec![]);
    stores.jobs.table.write().bytes =
        Arc::new(crate::cluster::whole_bytes::WholeBytes::new(1_500_000));
    for number in 0..10 {
        stores.apply_job_event(&mut writer, Event::Apply(object(&job(number))));
    }
    // Each counts twice, and a quarter is for other namespaces.
    let live = || stores.jobs.live().len();
    assert_eq!(live(), 3);
    let waiting = stores.jobs.skeletons();
    let bytes = match &waiting[0].rest {
        Rest::Crowded(crowded) => {
            assert!(crowded.status.is_some() && !crowded.is_reported);
            crowded.bytes
        }
        rest => panic!("{rest:?}"),
    };
    let finds_capacity = |number: usize| {
        stores
            .jobs
            .reserve(Kind::Deadline, &job(number).metadata, bytes)
    };
    assert!(!finds_capacity(9));
    assert!(stores.jobs.admit(object(&job(9))).is_none());
    stores.apply_job_event(&mut writer, Event::Delete(object(&job(0))));
    assert_eq!(live(), 2);
    assert!(finds_capacity(9) && !finds_capacity(8));
    assert!(stores.jobs.admit(object(&job(9))).is_some());
    assert!(stores.jobs.admit(object(&job(8))).is_none());
    // Later news of it find it whole.
    stores.apply_job_event(&mut writer, Event::Apply(object(&job(9))));
    assert_eq!(live(), 3);
    // One that is ending does not wait.
    let mut begun = job(7);
    begun.status = Some(DeadlineJobStatus {
        ledger: Some(Ledger {
            ending: Some(Conclusion::Complete),
            ..Ledger::default()
        }),
        ..DeadlineJobStatus::default()
    });
    stores.apply_job_event(&mut writer, Event::Apply(object(&begun)));
    assert_eq!(live(), 4);
}
