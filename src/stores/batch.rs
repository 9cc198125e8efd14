//! The watch of batch/v1 Jobs. They are read with what is not known here of their templates, which
//! their pods get as it is.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client};

use super::{Stores, Touched, Versioned, config};
use crate::adopt::{handed_on, translate};

/// Watches the Jobs.
pub(super) async fn watch_batch(
    stores: Arc<Stores>,
    client: Client,
    mut writer: Writer<Job>,
    touched: Touched,
) {
    let api = Api::<DynamicObject>::all_with(client, &ApiResource::erase::<Job>(&()));
    let mut events = watcher(api, config()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                for job in stores.apply_batch_event(&mut writer, event) {
                    touch(&touched, &job);
                }
                stores.changed.notify_one();
            }
            Err(error) => tracing::warn!(%error, "watch of Jobs"),
        }
    }
}

fn touch(touched: &Touched, job: &Job) {
    // A closed channel means that the process is ending.
    let _ = touched.batch.send(ObjectRef::from_obj(job));
    if let Some(name) = translate::companion_name(job) {
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let _ = touched.jobs.send(ObjectRef::new(&name).within(namespace));
    }
}

impl Stores {
    /// Takes a notice of the watch in; returns the Jobs that it is about.
    fn apply_batch_event(
        &self,
        writer: &mut Writer<Job>,
        event: Event<DynamicObject>,
    ) -> Vec<Arc<Job>> {
        if let Event::Apply(job) | Event::InitApply(job) | Event::Delete(job) = &event {
            self.note_version(Versioned::Jobs, &job.metadata);
        }
        match event {
            Event::Init => {
                writer.apply_watcher_event(&Event::Init);
                vec![]
            }
            Event::InitApply(object) => self.take_batch_job(writer, &object, Event::InitApply),
            Event::Apply(object) => self.take_batch_job(writer, &object, Event::Apply),
            Event::InitDone => {
                writer.apply_watcher_event(&Event::InitDone);
                let Some(batch) = self.batch() else {
                    return vec![];
                };
                batch.forget_handed_on();
                batch.store.state()
            }
            Event::Delete(object) => {
                let Some(batch) = self.batch() else {
                    return vec![];
                };
                let uid = object.metadata.uid.as_deref().unwrap_or_default();
                batch.handed_on.forget(uid);
                let known = batch.known(&object);
                if let Some(known) = &known {
                    writer.apply_watcher_event(&Event::Delete((**known).clone()));
                }
                known.into_iter().collect()
            }
        }
    }

    fn take_batch_job(
        &self,
        writer: &mut Writer<Job>,
        object: &DynamicObject,
        event: fn(Job) -> Event<Job>,
    ) -> Vec<Arc<Job>> {
        let Some(batch) = self.batch() else {
            return vec![];
        };
        let job = match handed_on::read(object) {
            Ok((job, handed_on)) => {
                batch.handed_on.note(&job, handed_on);
                job
            }
            Err(problem) => {
                let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
                tracing::warn!(?namespace, job = ?name, problem, "a Job that can't be read");
                // What is known of it stays, or its pods would pass for orphans.
                match batch.known(object) {
                    Some(known) => (*known).clone(),
                    None => return vec![],
                }
            }
        };
        writer.apply_watcher_event(&event(job.clone()));
        vec![Arc::new(job)]
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::runtime::reflector::store;
    use serde_json::{Value, json};

    use super::*;
    use crate::adopt::handed_on::HandedOnTable;
    use crate::adopt::{AdoptJobs, Jobs};
    use crate::clock::Clock;
    use crate::fixtures;

    fn stores() -> (Stores, Writer<Job>) {
        let (reader, writer) = store();
        let jobs = Jobs {
            mode: AdoptJobs::All,
            store: reader,
            handed_on: HandedOnTable::default(),
        };
        (
            Stores::new(store().0, Some(jobs), Clock::for_tests()),
            writer,
        )
    }

    fn object(change: impl FnOnce(&mut Value)) -> DynamicObject {
        let mut whole = serde_json::to_value(fixtures::batch_job("completions: 3")).unwrap();
        change(&mut whole["spec"]);
        serde_json::from_value(whole).unwrap()
    }

    /// The fields of pods of the Job that it alone knows.
    fn handed_on(stores: &Stores, job: &Job) -> usize {
        let uid = job.metadata.uid.as_deref().unwrap();
        let handed_on = stores.batch().unwrap().handed_on.of(uid);
        let pod = Pod {
            spec: job.spec.as_ref().unwrap().template.spec.clone(),
            ..Pod::default()
        };
        let whole = handed_on.on(&pod).unwrap();
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
        assert_eq!(handed_on(&stores, &job), 1);
        apply(Event::Apply(object(|_| {})));
        assert_eq!(handed_on(&stores, &job), 0);
        apply(Event::Apply(hardened.clone()));
        assert_eq!(handed_on(&stores, &job), 1);
        apply(Event::Delete(hardened));
        assert_eq!(handed_on(&stores, &job), 0);
    }

    #[test]
    fn a_job_that_can_not_be_read_stays_as_it_was_and_blocks_no_other() {
        let (stores, mut writer) = stores();
        let mut apply = |event| stores.apply_batch_event(&mut writer, event);
        let unreadable = || object(|spec| spec["parallelism"] = json!("many"));
        apply(Event::Apply(object(|_| {})));
        apply(Event::Init);
        let mut other = object(|_| {});
        other.metadata.name = Some("other".to_owned());
        let stays = apply(Event::InitApply(unreadable()));
        assert_eq!(stays.len(), 1);
        apply(Event::InitApply(other));
        assert_eq!(apply(Event::InitDone).len(), 2);
        // One that was never known is left out.
        let mut never = unreadable();
        never.metadata.name = Some("never".to_owned());
        assert!(apply(Event::Apply(never)).is_empty());
    }
}
