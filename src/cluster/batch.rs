//! The watch of batch/v1 Jobs. Unknown fields of their templates are kept, because their pods get
//! them unchanged.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::sync::Notify;

use crate::adopt::{self, AdoptJobs, BatchRest, WatchedBatchJob, translate};
use crate::api::managed_fields::{Parts, essentials, stands_for};
use crate::cluster::whole_bytes::Kind;
use crate::cluster::{JobStore, Stores, Touched, Versioned, WatchedJob, config, version};
use crate::size;
use crate::validate::template_extras::{self, TemplateExtras};

/// A Job in a list or a watch event.
#[derive(Clone, Debug)]
pub(super) struct BatchObject {
    metadata: ObjectMeta,
    /// The Job and the fields it hands on to its pods, or the undecodable field and the error.
    read: Result<(Arc<Job>, TemplateExtras), String>,
}

impl<'de> Deserialize<'de> for BatchObject {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parts = Parts::<Value, Value>::deserialize(from)?;
        let (metadata, _) = parts.metadata.split();
        let spec = parts.spec.unwrap_or_default();
        let status = parts.status.unwrap_or_default();
        let identity = essentials(&metadata);
        let read = template_extras::read(metadata, &spec, &status);
        Ok(Self {
            metadata: identity,
            read: read.map(|(job, template_extras)| (Arc::new(job), template_extras)),
        })
    }
}

impl BatchObject {
    pub(super) fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The Job, if it could be decoded.
    pub(super) fn job(&self) -> Option<&Job> {
        self.read.as_ref().ok().map(|(job, _)| &**job)
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

stands_for!(BatchObject, Job);

/// Bytes of a Job that is kept whole. Its validation keeps a copy of the template.
pub(super) fn whole_batch_bytes(job: &Job) -> usize {
    2 * size::bytes(&job.spec) + size::bytes(&job.metadata)
}

/// Watches the Jobs.
pub(super) async fn watch_batch(
    stores: Arc<Stores>,
    client: Client,
    mut writer: Writer<WatchedBatchJob>,
    touched: Touched,
) {
    let mut events = watcher(Api::<BatchObject>::all(stores.reader(&client)), config())
        .default_backoff()
        .boxed();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = stores.jobs.batch_notices.raised.notified() => {
                let changed = stores.jobs.take_notices(&mut writer);
                changed.iter().for_each(|job| touch(&touched, job.meta()));
                continue;
            }
        };
        match event {
            None => return,
            Some(Ok(event)) => {
                for job in stores.apply_batch_event(&mut writer, event) {
                    touch(&touched, job.meta());
                }
                stores.changed.notify_one();
            }
            Some(Err(error)) => tracing::warn!(%error, "watch of Jobs"),
        }
    }
}

/// What the watch of Jobs takes in besides its own events.
#[derive(Default)]
pub(super) struct BatchNotices {
    queue: Mutex<Vec<BatchNotice>>,
    raised: Notify,
}

enum BatchNotice {
    /// The companion of a Job may need it whole no longer.
    Idle(ObjectRef<WatchedBatchJob>),
    /// A Job was read, because the memory budget may admit it now.
    Read(Box<BatchObject>),
}

impl BatchNotices {
    fn raise(&self, notice: BatchNotice) {
        self.queue.lock().push(notice);
        self.raised.notify_one();
    }
}

fn touch(touched: &Touched, job: &ObjectMeta) {
    let (Some(name), Some(uid)) = (&job.name, &job.uid) else {
        return;
    };
    let namespace = job.namespace.as_deref().unwrap_or_default();
    // A closed channel means that the process is ending.
    let _ = touched.batch.send(ObjectRef::new(name).within(namespace));
    let companion = translate::companion_name_of(name, uid);
    let companion = ObjectRef::new(&companion).within(namespace);
    let _ = touched.jobs.send(companion);
}

#[cfg(test)]
impl Stores {
    /// The watch lists Jobs, as the apiserver would send them.
    pub(super) fn list_batch(&self, writer: &mut Writer<WatchedBatchJob>, jobs: Vec<Job>) {
        self.apply_batch_event(writer, Event::Init);
        for job in jobs {
            self.apply_batch_event(writer, Event::InitApply(super::fixtures::sent(&job)));
        }
        self.apply_batch_event(writer, Event::InitDone);
    }
}

impl JobStore {
    /// Whether the companion of a Job has something to do.
    pub(super) fn needs_whole(&self, job: &ObjectMeta) -> bool {
        let name = job.name.as_deref().unwrap_or_default();
        let uid = job.uid.as_deref().unwrap_or_default();
        let namespace = job.namespace.as_deref().unwrap_or_default();
        let companion = translate::companion_name_of(name, uid);
        let companion = self
            .store
            .get(&ObjectRef::new(&companion).within(namespace));
        companion.is_some_and(|companion| companion.live().is_some())
    }

    /// A companion changed: its Job may not be needed whole any more.
    pub(super) fn note_companion(&self, companion: &WatchedJob) {
        let jobs = self.batch().filter(|_| companion.is_companion());
        let Some(job) = jobs.and_then(|jobs| jobs.present(companion.meta())) else {
            return;
        };
        if job.whole().is_some() && !self.needs_whole(job.meta()) {
            let idle = ObjectRef::from_obj(&*job);
            self.batch_notices.raise(BatchNotice::Idle(idle));
        }
    }

    /// Reads a Job that is kept as a skeleton, for the watch to take it in. False if it is gone.
    pub async fn read_whole(&self, client: &Client, job: &ObjectMeta) -> Result<bool, kube::Error> {
        let namespace = job.namespace.as_deref().unwrap_or_default();
        let api: Api<BatchObject> = Api::namespaced(client.clone(), namespace);
        let whole = api.get_opt(job.name.as_deref().unwrap_or_default()).await?;
        let whole = whole.filter(|whole| whole.metadata.uid == job.uid);
        let is_there = whole.is_some();
        if let Some(whole) = whole {
            self.batch_notices.raise(BatchNotice::Read(Box::new(whole)));
        }
        Ok(is_there)
    }

    /// Takes the notices in; returns the Jobs that were read.
    fn take_notices(&self, writer: &mut Writer<WatchedBatchJob>) -> Vec<Arc<WatchedBatchJob>> {
        let notices = std::mem::take(&mut *self.batch_notices.queue.lock());
        let mut changed = Vec::new();
        for notice in notices {
            match notice {
                BatchNotice::Idle(job) => self.let_rest(writer, &job),
                BatchNotice::Read(object) => {
                    let known = self.batch().and_then(|jobs| jobs.known(&object.metadata));
                    let is_older = |known: &Arc<WatchedBatchJob>| {
                        version(&object.metadata) < version(known.meta())
                    };
                    if known.is_some_and(|known| !is_older(&known)) {
                        changed.extend(self.take_batch_job(writer, *object, Event::Apply));
                    }
                }
            }
        }
        if !changed.is_empty() {
            self.note_batch_change();
        }
        changed
    }

    fn let_rest(&self, writer: &mut Writer<WatchedBatchJob>, job: &ObjectRef<WatchedBatchJob>) {
        let Some((batch, known)) = self
            .batch()
            .and_then(|jobs| Some((jobs, jobs.store.get(job)?)))
        else {
            return;
        };
        if let Some(whole) = known.whole() {
            let job = self.kept_batch(batch.mode, (**whole).clone());
            if job.whole().is_none() {
                batch
                    .template_extras
                    .note(job.meta(), TemplateExtras::default());
            }
            writer.apply_watcher_event(&Event::Apply(job));
        }
    }

    /// The Job as it is kept: one that has not begun is kept whole only if the memory budget admits it.
    pub(super) fn kept_batch(&self, mode: AdoptJobs, job: Job) -> WatchedBatchJob {
        let is_needed = self.needs_whole(&job.metadata);
        let kept = WatchedBatchJob::new(mode, job, is_needed);
        let bytes = Arc::clone(&self.table.read().bytes);
        let Some(whole) = kept.whole() else {
            let uid = kept.meta().uid.as_deref().unwrap_or_default();
            bytes.forget(Kind::Batch, uid);
            return kept;
        };
        let taken = whole_batch_bytes(whole);
        match bytes.keep(Kind::Batch, &whole.metadata, taken, adopt::has_begun(whole)) {
            true => kept,
            false => WatchedBatchJob::resting(whole, BatchRest::Crowded(taken)),
        }
    }

    fn take_batch_job(
        &self,
        writer: &mut Writer<WatchedBatchJob>,
        object: BatchObject,
        event: fn(WatchedBatchJob) -> Event<WatchedBatchJob>,
    ) -> Vec<Arc<WatchedBatchJob>> {
        let Some(batch) = self.batch() else {
            return vec![];
        };
        let job = match object.read {
            Ok((job, template_extras)) => {
                let job = self.kept_batch(batch.mode, Arc::unwrap_or_clone(job));
                // The pods of another controller's get nothing from shed.
                let template_extras = job
                    .whole()
                    .map_or_else(TemplateExtras::default, |_| template_extras);
                batch.template_extras.note(job.meta(), template_extras);
                job
            }
            Err(problem) => {
                let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
                tracing::warn!(?namespace, job = ?name, problem, "a Job that can't be read");
                // The recorded facts stay, because shed would otherwise treat its pods as orphans.
                match batch.known(&object.metadata) {
                    Some(known) => (*known).clone(),
                    None => return vec![],
                }
            }
        };
        writer.apply_watcher_event(&event(job.clone()));
        vec![Arc::new(job)]
    }
}

impl Stores {
    /// Takes a notice of the watch in; returns the Jobs that it is about.
    pub(super) fn apply_batch_event(
        &self,
        writer: &mut Writer<WatchedBatchJob>,
        event: Event<BatchObject>,
    ) -> Vec<Arc<WatchedBatchJob>> {
        if let Event::Apply(job) | Event::InitApply(job) | Event::Delete(job) = &event {
            self.note_version(Versioned::Jobs, &job.metadata);
        }
        let watch_only = match &event {
            Event::Apply(object) | Event::InitApply(object) => self.read_watch_only(object),
            _ => None,
        };
        let jobs = match event {
            Event::Init => {
                writer.apply_watcher_event(&Event::Init);
                vec![]
            }
            Event::InitApply(object) => self.jobs.take_batch_job(writer, object, Event::InitApply),
            Event::Apply(object) => self.jobs.take_batch_job(writer, object, Event::Apply),
            Event::InitDone => {
                writer.apply_watcher_event(&Event::InitDone);
                let Some(batch) = self.jobs.batch() else {
                    return vec![];
                };
                batch.forget_handed_on();
                let jobs = batch.store.state();
                let uids = jobs.iter().filter_map(|job| job.meta().uid.as_deref());
                let uids: HashSet<&str> = uids.collect();
                let bytes = Arc::clone(&self.jobs.table.read().bytes);
                bytes.retain(Kind::Batch, |uid| uids.contains(uid));
                self.watch_only.retain(|job| {
                    let is_there = uids.contains(&*job.uid);
                    if !is_there {
                        self.leave_run(job);
                    }
                    is_there
                });
                batch.store.state()
            }
            Event::Delete(object) => {
                let Some(batch) = self.jobs.batch() else {
                    return vec![];
                };
                let uid = object.metadata.uid.as_deref().unwrap_or_default();
                batch.template_extras.forget(uid);
                self.jobs.table.read().bytes.forget(Kind::Batch, uid);
                let known = batch.known(&object.metadata);
                if let Some(known) = &known {
                    writer.apply_watcher_event(&Event::Delete((**known).clone()));
                }
                if let Some(gone) = self.watch_only.remove(uid) {
                    self.leave_run(&gone);
                }
                known.into_iter().collect()
            }
        };
        if let Some(job) = watch_only {
            self.note_watch_only(job);
        }
        self.jobs.note_batch_change();
        for job in &jobs {
            self.news.batch_job_changed(job.meta());
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::runtime::reflector::store;
    use serde_json::json;

    use super::*;
    use crate::adopt::Jobs;
    use crate::api::DeadlineJob;
    use crate::clock::Clock;
    use crate::cluster::JobObject;
    use crate::cluster::whole_bytes::WholeBytes;
    use crate::fixtures;
    use crate::validate::template_extras::TemplateExtrasTable;

    fn jobs() -> (Jobs, Writer<WatchedBatchJob>) {
        let (reader, writer) = store();
        let jobs = Jobs {
            mode: AdoptJobs::All,
            store: reader,
            template_extras: TemplateExtrasTable::default(),
            lent: Mutex::default(),
        };
        (jobs, writer)
    }

    fn stores() -> (Stores, Writer<WatchedBatchJob>) {
        let (jobs, writer) = jobs();
        (
            Stores::new(store().0, Some(jobs), Clock::for_tests()),
            writer,
        )
    }

    fn object(change: impl FnOnce(&mut Value)) -> BatchObject {
        named("pi", change)
    }

    fn named(name: &str, change: impl FnOnce(&mut Value)) -> BatchObject {
        let mut whole = serde_json::to_value(fixtures::batch_job("completions: 3")).unwrap();
        whole["metadata"]["name"] = json!(name);
        change(&mut whole["spec"]);
        serde_json::from_value(whole).unwrap()
    }

    /// Number of fields that only the Job hands on to its pods.
    fn template_extras(stores: &Stores, job: &WatchedBatchJob) -> usize {
        let job = job.whole().unwrap();
        let uid = job.metadata.uid.as_deref().unwrap();
        let template_extras = stores.jobs.batch().unwrap().template_extras.of(uid);
        let pod = Pod {
            spec: job.spec.as_ref().unwrap().template.spec.clone(),
            ..Pod::default()
        };
        let whole = template_extras.on(&pod).unwrap();
        usize::from(whole.data["spec"].get("hardened").is_some())
    }

    #[test]
    fn what_is_not_known_of_a_template_is_kept_as_long_as_its_job() {
        let (stores, mut writer) = stores();
        let hardened = object(|spec| spec["template"]["spec"]["hardened"] = json!(true));
        let mut apply = |event| stores.apply_batch_event(&mut writer, event);
        apply(Event::Init);
        apply(Event::InitApply(hardened.clone()));
        let job = apply(Event::InitDone).remove(0);
        assert_eq!(template_extras(&stores, &job), 1);
        apply(Event::Apply(object(|_| {})));
        assert_eq!(template_extras(&stores, &job), 0);
        apply(Event::Apply(hardened.clone()));
        assert_eq!(template_extras(&stores, &job), 1);
        apply(Event::Delete(hardened));
        assert_eq!(template_extras(&stores, &job), 0);
    }

    /// A Job of 1 MB with this specification and status.
    fn large(spec: &Value, status: &Value) -> BatchObject {
        let mut whole = serde_json::to_value(fixtures::batch_job("completions: 3")).unwrap();
        let args = json!(["x".repeat(1_000_000)]);
        whole["spec"]["template"]["spec"]["containers"][0]["args"] = args;
        for (key, value) in spec.as_object().unwrap() {
            whole["spec"][key] = value.clone();
        }
        whole["status"] = status.clone();
        serde_json::from_value(whole).unwrap()
    }

    /// Bytes that stay allocated of a list of this Job.
    fn kept(stores: &Stores, writer: &mut Writer<WatchedBatchJob>, job: BatchObject) -> i64 {
        let mut kept = 0;
        let used = allocation_counter::measure(|| {
            stores.apply_batch_event(writer, Event::Init);
            stores.apply_batch_event(writer, Event::InitApply(job));
            kept = stores.apply_batch_event(writer, Event::InitDone).len() as i64;
        });
        assert_eq!(kept, 1);
        used.bytes_current
    }

    #[test]
    fn little_is_kept_of_a_job_that_launches_no_pods() {
        let true_ = |type_: &str| json!({"conditions": [{"type": type_, "status": "True"}]});
        let suspended = json!({"suspend": true});
        let with_pods = json!({"conditions": [{"type": "Suspended", "status": "True"}], "active": 1,
                "startTime": "2026-01-01T00:00:00Z"});
        let started = json!({"startTime": "2026-01-01T00:00:00Z"});
        for (spec, status, is_whole) in [
            (json!({}), started, true),
            // Too large to be carried out.
            (json!({}), json!({}), false),
            (json!({}), true_("Complete"), false),
            (json!({}), true_("Failed"), false),
            (suspended.clone(), true_("Suspended"), false),
            (suspended.clone(), json!({}), false),
            (suspended, with_pods, true),
            (json!({"managedBy": "example.com/other"}), json!({}), false),
        ] {
            let (stores, mut writer) = stores();
            let job = large(&spec, &status);
            // The Job itself was allocated before.
            let bytes = 1_000_000 + kept(&stores, &mut writer, job);
            assert_eq!(bytes > 900_000, is_whole, "{spec} {status}: {bytes}");
            assert!(is_whole || bytes < 16_000, "{spec} {status}: {bytes}");
        }
    }

    #[test]
    fn a_job_that_finds_no_capacity_is_whole_once_it_was_read() {
        let (stores, mut writer) = stores();
        let sized = |name: &str| {
            named(name, |spec| {
                let args = json!(["x".repeat(100_000)]);
                spec["template"]["spec"]["containers"][0]["args"] = args;
            })
        };
        let with_uid = |name: &str| {
            let mut object = sized(name);
            object.metadata.uid = Some(name.to_owned());
            if let Ok((job, _)) = &mut object.read {
                Arc::make_mut(job).metadata.uid = Some(name.to_owned());
            }
            object
        };
        stores.jobs.table.write().bytes = Arc::new(WholeBytes::new(600_000));
        let apply = |writer: &mut _, event| drop(stores.apply_batch_event(writer, event));
        apply(&mut writer, Event::Apply(with_uid("first")));
        apply(&mut writer, Event::Apply(with_uid("second")));
        let metadata = with_uid("second").metadata;
        let known = || stores.jobs.batch().unwrap().known(&metadata).unwrap();
        let waiting = known();
        let WatchedBatchJob::Skeleton(_, BatchRest::Crowded(bytes)) = &*waiting else {
            panic!("{waiting:?}");
        };
        assert!(!stores.jobs.reserve(Kind::Batch, &metadata, *bytes));
        apply(&mut writer, Event::Delete(with_uid("first")));
        assert!(stores.jobs.reserve(Kind::Batch, &metadata, *bytes));
        let read = BatchNotice::Read(Box::new(with_uid("second")));
        stores.jobs.batch_notices.raise(read);
        assert_eq!(stores.jobs.take_notices(&mut writer).len(), 1);
        assert!(known().whole().is_some());
    }

    #[test]
    fn a_job_is_whole_until_its_companion_has_nothing_to_do() {
        let (reader, mut companions) = store();
        let (jobs, mut writer) = jobs();
        let stores = Stores::new(reader, Some(jobs), Clock::for_tests());
        let whole = fixtures::batch_job("suspend: true");
        let mut companion = fixtures::companion(&whole);
        let mut show = |companion: &DeadlineJob| {
            let job = WatchedJob::new(companion.clone(), 0);
            let unknown_fields = Vec::new();
            let event = Event::Apply(JobObject::Read {
                job,
                unknown_fields,
            });
            let (shown, _) = stores.apply_job_event(&mut companions, event);
            shown.iter().for_each(|job| stores.jobs.note_companion(job));
        };
        let is_whole = || {
            let known = stores.jobs.batch().unwrap().known(&whole.metadata);
            known.unwrap().whole().is_some()
        };
        show(&companion);
        let mut object = json!(whole);
        object["status"] = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
        let object = serde_json::from_value(object).unwrap();
        stores.apply_batch_event(&mut writer, Event::Apply(object));
        assert!(is_whole(), "its companion has not reported the suspension");
        let conditions = json!([{"type": "Suspended", "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z"}]);
        companion.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
        show(&companion);
        stores.jobs.take_notices(&mut writer);
        assert!(!is_whole());
    }

    #[test]
    fn an_unreadable_job_stays_as_it_was_and_blocks_no_other() {
        let (stores, mut writer) = stores();
        let mut apply = |event| stores.apply_batch_event(&mut writer, event);
        let many = |spec: &mut Value| spec["parallelism"] = json!("many");
        let unreadable = |name| named(name, many);
        apply(Event::Apply(object(|_| {})));
        apply(Event::Init);
        let other = named("other", |_| {});
        let stays = apply(Event::InitApply(unreadable("pi")));
        assert_eq!(stays.len(), 1);
        apply(Event::InitApply(other));
        assert_eq!(apply(Event::InitDone).len(), 2);
        // A Job that was never decoded is left out.
        assert!(apply(Event::Apply(unreadable("never"))).is_empty());
    }
}
