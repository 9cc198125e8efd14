//! The watch of jobs. Some jobs may be undecodable, because a newer operator or a newer schema
//! wrote them. shed leaves such a job alone, as if it were another controller's, but keeps a record
//! of it.

use std::sync::Arc;

use futures::StreamExt;
use kube::api::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client, Resource};

use crate::adopt;
use crate::api::managed_fields::essentials;
use crate::cluster::jobs::key;
use crate::cluster::status_only_changes::is_status_only_job;
use crate::cluster::watched_job::{JobObject, WatchedJob};
use crate::cluster::{Stores, Touched, Versioned, config, version};

/// The undecodable fields of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFault {
    /// Its identity and owners.
    pub metadata: ObjectMeta,
    /// The field that makes the job undecodable, and its error. Absent: the job is decodable except
    /// for `unknown_fields`.
    pub problem: Option<String>,
    /// Fields of its specification that are not known here.
    pub unknown_fields: Vec<String>,
}

impl JobFault {
    pub(super) fn unknown_fields(job: &WatchedJob, unknown_fields: Vec<String>) -> Self {
        Self {
            metadata: essentials(job.meta()),
            problem: None,
            unknown_fields,
        }
    }

    pub(super) fn undecodable(metadata: ObjectMeta, problem: String) -> Self {
        Self {
            metadata,
            problem: Some(problem),
            unknown_fields: Vec::new(),
        }
    }
}

impl Stores {
    /// Takes a notice of the watch in; returns the jobs that it is about, and whether only the status follows.
    pub(crate) fn apply_job_event(
        &self,
        writer: &mut Writer<WatchedJob>,
        event: Event<JobObject>,
    ) -> (Vec<WatchedJob>, bool) {
        // Held until both tables agree, because a job that is in neither looks deleted.
        let mut table = self.jobs.table.write();
        if let Event::Apply(job) | Event::InitApply(job) | Event::Delete(job) = &event {
            let (metadata, is_deleted) = (job.meta(), matches!(event, Event::Delete(_)));
            let uid = metadata.uid.as_deref().unwrap_or_default();
            self.compare_versions(table.version(uid), version(metadata));
            self.newest_versions
                .note(Versioned::DeadlineJobs, metadata, is_deleted);
        }
        let is_list = matches!(event, Event::InitDone);
        let mut is_status_only = false;
        let changed = match event {
            Event::Init => {
                table.incoming.clear();
                writer.apply_watcher_event(&Event::Init);
                vec![]
            }
            Event::InitApply(object) => {
                let object = table.within_bounds(object);
                let job = match &object {
                    JobObject::Read { job, .. } => Some(job.clone()),
                    JobObject::Undecodable { .. } => None,
                };
                if let Some(job) = &job {
                    writer.apply_watcher_event(&Event::InitApply(job.clone()));
                }
                table.incoming.push(object);
                job.into_iter().collect()
            }
            Event::InitDone => {
                table.replace_all();
                writer.apply_watcher_event(&Event::InitDone);
                let jobs = self.jobs.store.state();
                jobs.iter().map(|job| (**job).clone()).collect()
            }
            Event::Apply(object) => {
                let reference = reference(object.meta());
                let before = self.jobs.store.get(&reference);
                let object = table.within_bounds(object);
                match table.put(object) {
                    Some(job) => {
                        is_status_only = is_status_only_job(before.as_deref(), &job);
                        writer.apply_watcher_event(&Event::Apply(job.clone()));
                        vec![job]
                    }
                    None => self.jobs.drop_job(writer, &reference),
                }
            }
            Event::Delete(object) => {
                table.remove(&key(object.meta()));
                self.jobs.drop_job(writer, &reference(object.meta()))
            }
        };
        self.news.jobs_changed(is_list, &changed);
        (changed, is_status_only)
    }
}

fn reference(metadata: &ObjectMeta) -> ObjectRef<WatchedJob> {
    let (namespace, name) = key(metadata);
    ObjectRef::new(&name).within(&namespace)
}

/// Watches the jobs.
pub(super) async fn watch_jobs(
    stores: Arc<Stores>,
    client: Client,
    mut writer: Writer<WatchedJob>,
    touched: Touched,
) {
    let mut events = watcher(Api::<JobObject>::all(stores.reader(&client)), config())
        .default_backoff()
        .boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let (jobs, is_status_only) = stores.apply_job_event(&mut writer, event);
                for job in jobs {
                    stores.jobs.note_companion(&job);
                    touch(&touched, &job, is_status_only);
                }
                stores.changed.notify_one();
            }
            Err(error) => tracing::warn!(%error, "watch of DeadlineJobs"),
        }
    }
}

fn touch(touched: &Touched, job: &WatchedJob, is_status_only: bool) {
    let metadata = job.meta();
    if let Some(owner) = adopt::controller(metadata).filter(|_| job.is_companion()) {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let owner = ObjectRef::new(&owner.name).within(namespace);
        let _ = touched.batch.send(owner);
    }
    let (namespace, name) = key(metadata);
    touched.touch(ObjectRef::new(&name).within(&namespace), is_status_only);
}

#[cfg(test)]
mod tests;
