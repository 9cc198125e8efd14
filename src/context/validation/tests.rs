use kube::runtime::reflector::store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use shed_core::time::Instant;

use super::*;
use crate::adopt::AdoptJobs;
use crate::api::{DeadlineJobStatus, Ledger};
use crate::cluster::Stores;
use crate::fixtures;
use crate::job::view;
use crate::planner::observation;
use crate::reconcile::mock::{Apiserver, Process};
use crate::validate::counted::VALIDATIONS;
use crate::validate::template_extras::TemplateExtrasTable;

fn job(number: u32, generation: i64) -> DeadlineJob {
    let mut job = fixtures::job(&format!("completions: {}", 4 + generation));
    job.metadata.uid = Some(format!("uid-{number}"));
    job.metadata.name = Some(format!("job-{number}"));
    job.metadata.generation = Some(generation);
    job
}

#[tokio::test]
async fn planning_passes_validate_each_job_once_per_generation() {
    let api = Apiserver::new(fixtures::job(""));
    let jobs = (0..50).map(|number| job(number, 1)).collect();
    let process = Process::with_stores(&api, Stores::for_tests(jobs, vec![], &[]));
    let passes = |passes: usize| {
        VALIDATIONS.set(0);
        for _ in 0..passes {
            assert_eq!(
                observation::view(&process.context.shared)
                    .snapshot
                    .jobs
                    .len(),
                50
            );
        }
        VALIDATIONS.get()
    };
    assert_eq!(passes(100), 50);
    assert_eq!(passes(100), 0);
    let edited = Some(Arc::new(job(7, 2)));
    let job_memories = &process.context.job_memories;
    job_memories.with(&"uid-7".into(), |memory| memory.planned.newest = edited);
    assert_eq!(passes(100), 1);
    let jobs = observation::view(&process.context.shared).snapshot.jobs;
    let edited = jobs.iter().filter(|job| job.rules.completions == 6);
    assert_eq!(edited.count(), 1);
    // A job's memory is dropped as a whole.
    job_memories.forget("uid-3");
    assert_eq!(passes(1), 1);
}

#[tokio::test]
async fn reconciler_and_planner_share_one_validation() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    VALIDATIONS.set(0);
    for _ in 0..10 {
        process.look(&api).await.unwrap();
        let _ = observation::view(&process.context.shared);
    }
    assert_eq!(VALIDATIONS.get(), 1);
}

#[test]
fn an_invalid_specification_is_validated_only_once() {
    let job_memories = JobMemories::default();
    VALIDATIONS.set(0);
    let read = |job: &DeadlineJob| read(&job_memories, job, None);
    let invalid = fixtures::job("completions: 0");
    for _ in 0..3 {
        assert!(matches!(read(&invalid), Err(Unfit::Invalid(_))));
    }
    assert_eq!(VALIDATIONS.get(), 1);
    let mut finished = fixtures::job("");
    finished.metadata.generation = Some(2);
    assert!(read(&finished).is_ok());
    finished.status = Some(DeadlineJobStatus {
        ledger: Some(Ledger {
            finished: true,
            ..Ledger::default()
        }),
        ..DeadlineJobStatus::default()
    });
    assert!(read(&finished).is_ok());
    assert_eq!(VALIDATIONS.get(), 2, "kept until then");
    assert!(read(&finished).is_ok());
    assert_eq!(VALIDATIONS.get(), 3);
    // Without a generation there is no telling.
    let mut uncounted = fixtures::job("");
    uncounted.metadata.generation = None;
    assert!(read(&uncounted).is_ok() && read(&uncounted).is_ok());
    assert_eq!(VALIDATIONS.get(), 5);
}

/// An adopted Job, its companion, and the operator's memory.
struct World {
    job: Value,
    companion: DeadlineJob,
    jobs: Jobs,
    writer: Writer<crate::adopt::WatchedBatchJob>,
    job_memories: JobMemories,
}

impl World {
    fn new() -> Self {
        let mut job = fixtures::batch_job("completions: 3, completionMode: Indexed");
        job.metadata.generation = Some(1);
        let mut companion = fixtures::companion(&job);
        companion.metadata.generation = Some(1);
        let (store, writer) = store();
        let mut world = Self {
            job: serde_json::to_value(job).unwrap(),
            companion,
            jobs: Jobs {
                mode: AdoptJobs::Managed,
                store,
                template_extras: TemplateExtrasTable::default(),
                lent: parking_lot::Mutex::default(),
            },
            writer,
            job_memories: JobMemories::default(),
        };
        world.show(0);
        world
    }

    fn show(&mut self, generations: i64) {
        let generation = self.job["metadata"]["generation"].as_i64().unwrap();
        self.job["metadata"]["generation"] = json!(generation + generations);
        let job: Job = serde_json::from_value(self.job.clone()).unwrap();
        let kept = crate::adopt::WatchedBatchJob::new(self.jobs.mode, job, false);
        self.writer.apply_watcher_event(&Event::Apply(kept));
    }

    fn text(&self, job_memories: &JobMemories) -> String {
        format!(
            "{:?}",
            read(job_memories, &self.companion, Some(&self.jobs))
        )
    }

    /// Checks the cached result against a new validation. Returns the number of validations so far.
    #[track_caller]
    fn check(&self) -> usize {
        VALIDATIONS.set(0);
        let read = [self.text(&self.job_memories), self.text(&self.job_memories)];
        let validations = VALIDATIONS.get();
        let of_now = self.text(&JobMemories::default());
        assert_eq!(read, [of_now.clone(), of_now]);
        validations
    }
}

#[test]
fn an_adopted_job_is_read_as_it_is_after_any_edit() {
    let mut world = World::new();
    assert_eq!((world.check(), world.check()), (1, 0));
    for (pointer, value) in [
        ("/spec/suspend", json!(true)),
        ("/spec/parallelism", json!(2)),
        ("/spec/template/spec/priorityClassName", json!("high")),
        ("/spec/podReplacementPolicy", json!("Failed")),
        ("/spec/suspend", json!(false)),
        ("/spec/completionMode", json!("unheard-of")),
    ] {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        world.job.pointer_mut(parent).unwrap()[field] = value;
        world.show(1);
        assert_eq!((world.check(), world.check()), (1, 0), "{pointer}");
    }
}

#[test]
fn a_job_that_has_begun_keeps_its_last_valid_specification() {
    let mut world = World::new();
    let too_many = |world: &mut World| {
        world.job["spec"]["parallelism"] = json!(200_000);
        world.show(1);
    };
    too_many(&mut world);
    let read = |world: &World, job_memories: &JobMemories| {
        read(job_memories, &world.companion, Some(&world.jobs))
    };
    assert!(
        read(&world, &world.job_memories).is_err(),
        "it has not begun"
    );
    let mut world = World::new();
    world.companion.status = Some(DeadlineJobStatus {
        ledger: Some(Ledger {
            started: Some(Instant(1)),
            ..Ledger::default()
        }),
        ..DeadlineJobStatus::default()
    });
    let valid = read(&world, &world.job_memories).unwrap();
    too_many(&mut world);
    let kept = read(&world, &world.job_memories).unwrap();
    assert_eq!(kept.rules.parallelism, valid.rules.parallelism);
    let fault = kept.fault.clone().unwrap();
    assert!(
        fault.message.starts_with("spec.parallelism: 200000"),
        "{fault:?}"
    );
    assert!(!kept.launches_nothing());
    // The next leader does not know the specification before the edit.
    let unknown = read(&world, &JobMemories::default()).unwrap();
    assert!(unknown.launches_nothing());
    assert_eq!(
        unknown.adopted.as_ref().unwrap().uid,
        kept.adopted.as_ref().unwrap().uid
    );
}

#[test]
fn a_restored_job_waits_for_its_ledger() {
    let memories = JobMemories::default();
    let mut restored = job(1, 1);
    let labels = restored.metadata.labels.get_or_insert_default();
    labels.insert(api::LABEL_RESTORED.to_owned(), "monday".to_owned());
    let is_held = |job: &DeadlineJob| {
        let read = read(&memories, job, None).unwrap();
        assert_eq!(read.rules.suspend, read.lacks_ledger);
        read.lacks_ledger
    };
    assert!(is_held(&restored));
    // Without the label it is a new job. With the ledger it goes on.
    assert!(!is_held(&job(1, 1)));
    assert!(is_held(&restored));
    let ledger = Ledger {
        started: Some(Instant(1)),
        ..Ledger::default()
    };
    restored.status = Some(DeadlineJobStatus {
        ledger: Some(ledger),
        ..DeadlineJobStatus::default()
    });
    assert!(!is_held(&restored));
}

#[test]
fn annotations_count_though_they_raise_no_generation() {
    let mut world = World::new();
    world.check();
    let annotation = |value: &str| json!({"shed.dev/idempotency": value});
    world.job["metadata"]["annotations"] = annotation("None");
    world.show(0);
    assert_eq!(world.check(), 1);
    // The annotation takes effect with the companion's specification, or is refused.
    world.job["metadata"]["annotations"] = annotation("Safe");
    world.show(0);
    assert_eq!(world.check(), 1);
    world.companion.spec.idempotency = api::Idempotency::None;
    world.companion.metadata.generation = Some(2);
    assert_eq!(world.check(), 1);
    let class = (api::LABEL_CLASS.to_owned(), "nightly".to_owned());
    world.companion.metadata.labels = Some([class].into());
    assert_eq!(world.check(), 1);
}

#[test]
fn a_job_that_shed_no_longer_adopts_is_absent_at_once() {
    let mut world = World::new();
    world.check();
    let mut object = world.job.clone();
    object["spec"]["template"]["spec"]["hardened"] = json!(3);
    let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
    let (spec, status) = (&object["spec"], &object["status"]);
    let (job, template_extras) =
        crate::validate::template_extras::read(metadata, spec, status).unwrap();
    world
        .jobs
        .template_extras
        .note(&job.metadata, template_extras);
    assert_eq!(world.check(), 0);
    assert!(world.text(&world.job_memories).contains("hardened"));
    world.jobs.mode = AdoptJobs::None;
    world.show(0);
    assert_eq!(world.check(), 0);
    assert!(world.text(&world.job_memories).contains("Absent"));
}

#[test]
fn a_poller_reads_the_deadline_of_a_companion_as_a_pass_does() {
    let mut world = World::new();
    let within = serde_json::from_value(json!({"within": "5m"})).unwrap();
    world.companion.spec.deadline = Some(within);
    // The clock starts with the Job, not with its companion.
    world.job["metadata"]["creationTimestamp"] = json!("1970-01-01T00:01:00Z");
    world.show(1);
    let validated = read(&world.job_memories, &world.companion, Some(&world.jobs)).unwrap();
    let polled = view::deadline(&world.companion, Some(&world.jobs));
    assert_eq!(polled, Some(Instant(360_000)));
    assert_eq!(
        polled,
        validated.deadline_by(&crate::api::Ledger::default())
    );
}

#[test]
fn a_job_of_a_cron_job_counts_from_its_scheduled_time() {
    let mut world = World::new();
    let within = serde_json::from_value(json!({"within": "5m"})).unwrap();
    world.companion.spec.deadline = Some(within);
    world.job["metadata"]["creationTimestamp"] = json!("1970-01-01T00:01:00Z");
    let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": true}]);
    world.job["metadata"]["ownerReferences"] = owner;
    world.show(1);
    let deadline = |world: &World| {
        let validated = read(&world.job_memories, &world.companion, Some(&world.jobs)).unwrap();
        let polled = view::deadline(&world.companion, Some(&world.jobs));
        assert_eq!(
            polled,
            validated.deadline_by(&crate::api::Ledger::default())
        );
        polled
    };
    assert_eq!(deadline(&world), Some(Instant(360_000)));
    world.job["metadata"]["annotations"] = json!({crate::adopt::SCHEDULED: "1970-01-01T00:00:30Z"});
    world.show(1);
    assert_eq!(deadline(&world), Some(Instant(330_000)));
}
