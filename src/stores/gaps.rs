//! The watch of jobs, some of which may not be understood: a newer operator or a newer schema was there.
//! Such a job is left alone, as if it were another's, but it is known to be there.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client};

use super::{Stores, Touched, Versioned, config};
use crate::adopt;
use crate::api::DeadlineJob;
use crate::api::read::{Read, read};
use crate::restored;

/// Namespace and name of a job.
type Key = (String, String);

/// What is not understood of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Whose it is.
    pub metadata: ObjectMeta,
    /// Why nothing of it can be read: the field, and what is wrong in it. Absent: it is read, but for
    /// `unheeded`.
    pub problem: Option<String>,
    /// Fields of its specification that are not known here.
    pub unheeded: Vec<String>,
}

/// Jobs that are not understood, or not wholly.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    known: BTreeMap<Key, Gap>,
    /// Those of the list that is coming in.
    incoming: BTreeMap<Key, Gap>,
    /// The newest version that the watch of jobs has shown; all up to it is taken in.
    pub(super) reached: u64,
}

fn key(object: &DynamicObject) -> Key {
    let metadata = &object.metadata;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

/// The job, and what is not understood.
fn parse(object: &DynamicObject) -> (Option<DeadlineJob>, Option<Gap>) {
    let gap = |problem, unheeded| Gap {
        metadata: object.metadata.clone(),
        problem,
        unheeded,
    };
    match read(object) {
        Ok(Read { job, unheeded }) if unheeded.is_empty() => (Some(job), None),
        Ok(Read { job, unheeded }) => (Some(job), Some(gap(None, unheeded))),
        Err(problem) => (None, Some(gap(Some(problem), Vec::new()))),
    }
}

fn keep(gaps: &mut BTreeMap<Key, Gap>, key: Key, gap: Option<Gap>) {
    match gap {
        Some(gap) => gaps.insert(key, gap),
        None => gaps.remove(&key),
    };
}

impl Stores {
    /// Takes a notice of the watch in; returns the jobs that it is about.
    pub(super) fn apply_job_event(
        &self,
        writer: &mut Writer<DeadlineJob>,
        event: Event<DynamicObject>,
    ) -> Vec<Arc<DeadlineJob>> {
        if let Event::Apply(job) | Event::InitApply(job) | Event::Delete(job) = &event {
            self.note_version(Versioned::DeadlineJobs, &job.metadata);
        }
        // Held until both are as they are to be: a job that is in neither passes for deleted.
        let mut gaps = self.gaps.write().unwrap_or_else(PoisonError::into_inner);
        if let Event::Apply(job) | Event::Delete(job) = &event {
            let version = restored::version(&job.metadata).unwrap_or(0);
            gaps.reached = gaps.reached.max(version);
        }
        let is_list = matches!(event, Event::InitDone);
        let changed = match event {
            Event::Init => {
                gaps.incoming.clear();
                writer.apply_watcher_event(&Event::Init);
                vec![]
            }
            Event::InitApply(object) => {
                let (job, gap) = parse(&object);
                keep(&mut gaps.incoming, key(&object), gap);
                let job = job.map(|job| {
                    writer.apply_watcher_event(&Event::InitApply(job.clone()));
                    Arc::new(job)
                });
                job.into_iter().collect()
            }
            Event::InitDone => {
                gaps.known = std::mem::take(&mut gaps.incoming);
                writer.apply_watcher_event(&Event::InitDone);
                let versions = self.versions_of_jobs(&gaps);
                let newest = versions.values().copied().max();
                gaps.reached = gaps.reached.max(newest.unwrap_or(0));
                self.jobs.state()
            }
            Event::Apply(object) => {
                let (job, gap) = parse(&object);
                keep(&mut gaps.known, key(&object), gap);
                match job {
                    Some(job) => {
                        writer.apply_watcher_event(&Event::Apply(job.clone()));
                        vec![Arc::new(job)]
                    }
                    None => self.drop_job(writer, &object),
                }
            }
            Event::Delete(object) => {
                gaps.known.remove(&key(&object));
                self.drop_job(writer, &object)
            }
        };
        self.news.jobs_changed(is_list, &changed);
        changed
    }

    /// The version of each job that is there, by uid.
    pub(super) fn versions_of_jobs(&self, gaps: &Gaps) -> BTreeMap<String, u64> {
        let mut versions = BTreeMap::new();
        let mut note = |metadata: &ObjectMeta| {
            if let (Some(uid), Some(version)) = (&metadata.uid, restored::version(metadata)) {
                versions.insert(uid.clone(), version);
            }
        };
        for job in self.jobs.state() {
            note(&job.metadata);
        }
        for gap in gaps.known.values() {
            note(&gap.metadata);
        }
        versions
    }

    /// Takes a job out of the store, where it is no more or can't be read.
    fn drop_job(
        &self,
        writer: &mut Writer<DeadlineJob>,
        object: &DynamicObject,
    ) -> Vec<Arc<DeadlineJob>> {
        let (namespace, name) = key(object);
        let known = self.jobs.get(&ObjectRef::new(&name).within(&namespace));
        if let Some(known) = &known {
            writer.apply_watcher_event(&Event::Delete((**known).clone()));
        }
        known.into_iter().collect()
    }

    pub(super) fn gaps_guard(&self) -> RwLockReadGuard<'_, Gaps> {
        self.gaps.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is not understood, in the order of namespaces and names.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        self.gaps_guard().known.values().cloned().collect()
    }

    /// Shows the metadata of each job that is there to stay, those that can't be read included.
    pub fn for_staying(&self, mut show: impl FnMut(&ObjectMeta)) {
        let stays = |metadata: &&ObjectMeta| metadata.deletion_timestamp.is_none();
        let jobs = self.jobs.state();
        let read = jobs.iter().filter(|job| !self.lacks_batch_job(job));
        read.map(|job| &job.metadata)
            .filter(stays)
            .for_each(&mut show);
        let gaps = self.gaps_guard();
        let unreadable = gaps.known.values().filter(|gap| gap.problem.is_some());
        unreadable
            .map(|gap| &gap.metadata)
            .filter(stays)
            .for_each(show);
    }
}

/// Watches the jobs.
pub(super) async fn watch_jobs(
    stores: Arc<Stores>,
    client: Client,
    mut writer: Writer<DeadlineJob>,
    touched: Touched,
) {
    let api = Api::<DynamicObject>::all_with(client, &ApiResource::erase::<DeadlineJob>(&()));
    let mut events = watcher(api, config()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                for job in stores.apply_job_event(&mut writer, event) {
                    touch(&touched, &job);
                }
                stores.changed.notify_one();
            }
            Err(error) => tracing::warn!(%error, "watch of DeadlineJobs"),
        }
    }
}

fn touch(touched: &Touched, job: &DeadlineJob) {
    if let Some(owner) = adopt::owner(job).filter(|_| job.spec.is_companion()) {
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let owner = ObjectRef::new(&owner.name).within(namespace);
        let _ = touched.batch.send(owner);
    }
    // A closed channel means that the process is ending.
    let _ = touched.jobs.send(ObjectRef::from_obj(job));
}

#[cfg(test)]
mod tests;
