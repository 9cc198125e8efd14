//! The bytes of the jobs that are kept whole. Together they take at most a quarter of the operator's memory, which
//! namespaces share as they share places ([`crate::fair_places`]).

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use parking_lot::Mutex;

use crate::fair_places::RATIO;
use crate::memory_limit;

/// The share of the memory limit.
const SHARE: f64 = 0.25;
/// The limit in bytes where the cgroup has no limit: the chart's.
const USUAL_LIMIT: f64 = 512.0 * 1024.0 * 1024.0;

/// Kinds of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A DeadlineJob.
    Deadline,
    /// A batch/v1 Job.
    Batch,
}

/// The bytes that are taken.
#[derive(Debug)]
pub(super) struct WholeBytes {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_namespace: BTreeMap<String, usize>,
    /// Namespace and bytes by uid.
    jobs: BTreeMap<(Kind, String), (String, usize)>,
}

impl Default for WholeBytes {
    fn default() -> Self {
        let limit = Some(memory_limit::own()).filter(|limit| limit.is_finite());
        Self::new((limit.unwrap_or(USUAL_LIMIT) * SHARE) as usize)
    }
}

impl WholeBytes {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Mutex::default(),
        }
    }

    /// Whether a job of this many bytes is kept whole: if it has begun, was kept before, or fits the budget.
    pub(super) fn keep(&self, kind: Kind, job: &ObjectMeta, bytes: usize, has_begun: bool) -> bool {
        let (namespace, uid) = (text(&job.namespace), text(&job.uid));
        let mut taken = self.taken.lock();
        let was_kept = taken.give_back(kind, uid);
        let is_kept = was_kept || has_begun || taken.has_room(self.most, namespace, bytes);
        if is_kept {
            taken.all += bytes;
            *taken.by_namespace.entry(namespace.to_owned()).or_default() += bytes;
            let entry = (namespace.to_owned(), bytes);
            taken.jobs.insert((kind, uid.to_owned()), entry);
        }
        is_kept
    }

    /// The job is not kept whole any more.
    pub(super) fn forget(&self, kind: Kind, uid: &str) {
        self.taken.lock().give_back(kind, uid);
    }

    /// Forgets jobs that are gone.
    pub(super) fn retain(&self, kind: Kind, exists: impl Fn(&str) -> bool) {
        let mut taken = self.taken.lock();
        let jobs = taken.jobs.keys().filter(|(other, _)| *other == kind);
        let gone = jobs.filter(|(_, uid)| !exists(uid)).cloned();
        for (kind, uid) in gone.collect::<Vec<_>>() {
            taken.give_back(kind, &uid);
        }
    }
}

fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

impl Taken {
    fn has_room(&self, most: usize, namespace: &str, bytes: usize) -> bool {
        let free = most.saturating_sub(self.all);
        let own = self.by_namespace.get(namespace).copied().unwrap_or(0);
        bytes <= free && own <= RATIO * (free - bytes)
    }

    /// Whether the job had bytes.
    fn give_back(&mut self, kind: Kind, uid: &str) -> bool {
        let Some((namespace, bytes)) = self.jobs.remove(&(kind, uid.to_owned())) else {
            return false;
        };
        self.all -= bytes;
        if let Some(own) = self.by_namespace.get_mut(&namespace) {
            *own -= bytes;
            if *own == 0 {
                self.by_namespace.remove(&namespace);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(namespace: &str, number: usize) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(namespace.to_owned()),
            uid: Some(format!("{namespace}-{number}")),
            ..ObjectMeta::default()
        }
    }

    fn kept(bytes: &WholeBytes, namespace: &str) -> usize {
        let jobs = (0..100).filter(|number| {
            let job = job(namespace, *number);
            bytes.keep(Kind::Deadline, &job, 10, false)
        });
        jobs.count()
    }

    #[test]
    fn a_namespace_leaves_a_quarter_of_the_bytes_to_others() {
        let bytes = WholeBytes::new(400);
        assert_eq!(kept(&bytes, "first"), 30);
        assert_eq!(kept(&bytes, "second"), 7);
        assert_eq!(kept(&bytes, "first"), 30, "they stay");
        assert!(!bytes.keep(Kind::Deadline, &job("first", 100), 10, false));
    }

    #[test]
    fn jobs_that_have_begun_are_kept_whatever_they_take() {
        let bytes = WholeBytes::new(400);
        for number in 0..100 {
            assert!(bytes.keep(Kind::Batch, &job("a", number), 10, true));
        }
        assert_eq!(kept(&bytes, "b"), 0);
        bytes.retain(Kind::Batch, |_| false);
        assert_eq!(kept(&bytes, "b"), 30);
        bytes.forget(Kind::Deadline, "b-0");
        assert!(bytes.keep(Kind::Deadline, &job("b", 100), 10, false));
    }
}
