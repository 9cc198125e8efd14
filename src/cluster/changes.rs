//! The changes that the watches reported since the last poll, so that a poller visits only what
//! changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use parking_lot::{Mutex, RwLock};

use crate::cluster::Stores;
use crate::cluster::identity::Owner;
use crate::cluster::pod::{AttemptId, PodFacts};
use crate::cluster::watched_job::WatchedJob;

/// Changes that are kept apart. Beyond this everything counts as changed, so that memory is bounded.
const CHANGES_MAX: usize = 16_384;

/// Passes changes on to all subscribers.
#[derive(Default)]
pub(super) struct News(RwLock<Vec<Arc<Inbox>>>);

/// Changes that wait for one reader.
#[derive(Default)]
pub struct Inbox(Mutex<Changes>);

/// A set of changes.
#[derive(Debug, Default)]
pub struct Changes {
    /// Whether anything may have changed.
    pub all: bool,
    /// Jobs that changed themselves or by an attempt, and their attempts with a changed pod. Empty
    /// if `all`.
    pub jobs: BTreeMap<Owner, BTreeSet<AttemptId>>,
    /// Jobs and attempts.
    count: usize,
}

impl Inbox {
    /// The changes since the last call.
    pub fn drain(&self) -> Changes {
        std::mem::take(&mut *self.0.lock())
    }

    fn note(&self, owner: &Owner, attempt: Option<AttemptId>) {
        let mut changes = self.0.lock();
        if changes.all {
            return;
        }
        if changes.count >= CHANGES_MAX {
            *changes = Changes::everything();
            return;
        }
        let known = changes.jobs.len();
        let attempts = match changes.jobs.get_mut(owner) {
            Some(attempts) => attempts,
            None => changes.jobs.entry(owner.clone()).or_default(),
        };
        let is_new = attempt.is_some_and(|attempt| attempts.insert(attempt));
        changes.count += usize::from(is_new) + (changes.jobs.len() - known);
    }

    fn note_all(&self) {
        *self.0.lock() = Changes::everything();
    }
}

impl Changes {
    fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }
}

impl News {
    fn each(&self, note: impl FnMut(&Arc<Inbox>)) {
        let inboxes = self.0.read();
        inboxes.iter().for_each(note);
    }

    /// Anything may have changed.
    pub(super) fn all_changed(&self) {
        self.each(|inbox| inbox.note_all());
    }

    /// These pods changed, appeared or went; with a new list any may have.
    pub(super) fn pods_changed(&self, is_list: bool, pods: &[Arc<PodFacts>]) {
        if is_list {
            return self.all_changed();
        }
        for pod in pods {
            let identity = &pod.identity;
            if let Some(owner) = &identity.owner {
                self.each(|inbox| inbox.note(owner, identity.attempt));
            }
        }
    }

    /// This batch/v1 Job changed, appeared or went.
    pub(super) fn batch_job_changed(&self, job: &ObjectMeta) {
        let owner = Owner::of_batch_job(job);
        self.each(|inbox| inbox.note(&owner, None));
    }

    /// These jobs changed, appeared or went; with a new list any may have.
    pub(super) fn jobs_changed(&self, is_list: bool, jobs: &[WatchedJob]) {
        if is_list {
            return self.all_changed();
        }
        for job in jobs {
            let owner = Owner::of(job.meta());
            self.each(|inbox| inbox.note(&owner, None));
        }
    }
}

impl Stores {
    /// Changes from now on; at first anything counts as changed.
    pub fn subscribe(&self) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::default());
        inbox.note_all();
        self.news.0.write().push(Arc::clone(&inbox));
        inbox
    }
}

#[cfg(test)]
impl Stores {
    /// Takes an event of the pod watch.
    pub fn see_pod(&self, event: kube::runtime::watcher::Event<k8s_openapi::api::core::v1::Pod>) {
        use kube::runtime::watcher::Event;
        self.apply_pod_event(match event {
            Event::Apply(pod) => Event::Apply(pod.into()),
            Event::Delete(pod) => Event::Delete(pod.into()),
            Event::InitApply(pod) => Event::InitApply(pod.into()),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        });
    }

    /// Takes an event of the job watch.
    pub fn see_job(
        &self,
        writer: &mut kube::runtime::reflector::store::Writer<WatchedJob>,
        event: kube::runtime::watcher::Event<crate::cluster::JobObject>,
    ) {
        self.apply_job_event(writer, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn changes_are_reported_once_and_their_number_is_bounded() {
        let stores = Stores::for_tests(vec![], vec![], &[]);
        let (inbox, other) = (stores.subscribe(), stores.subscribe());
        assert!(inbox.drain().all, "at first");
        let owner = Owner::of(&fixtures::job("").metadata);
        for number in [0, 0, 1] {
            inbox.note(&owner, Some((number, 0)));
        }
        let changes = inbox.drain();
        assert!(!changes.all && changes.jobs[&owner].len() == 2);
        assert!(inbox.drain().jobs.is_empty());
        for number in 0..=u32::try_from(CHANGES_MAX).unwrap() {
            inbox.note(&owner, Some((number, 0)));
        }
        let changes = inbox.drain();
        assert!(changes.all && changes.jobs.is_empty(), "too many");
        assert!(other.drain().all, "each has its own");
    }

    #[test]
    fn a_finished_job_is_not_live() {
        let mut job = fixtures::job("");
        let owner = Owner::of(&job.metadata);
        let stores = Stores::for_tests(vec![job.clone()], vec![], &[]);
        assert!(stores.jobs.live_job_of(&owner).is_some());
        let finished = serde_json::json!({"observedGeneration": 1, "ledger": {"finished": true}});
        job.status = Some(serde_json::from_value(finished).unwrap());
        let stores = Stores::for_tests(vec![job], vec![], &[]);
        assert!(stores.jobs.live_job_of(&owner).is_none());
    }
}
