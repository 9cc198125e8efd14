//! The bytes of the jobs that are kept whole. Together they take at most three eighths of the operator's memory, which
//! namespaces share as they share places ([`crate::fair_places`]). Large jobs leave a third of that to small ones.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use parking_lot::Mutex;

use crate::fair_places::RATIO;
use crate::memory_limit;

/// The share of the memory limit. With the chart's limit one namespace may have 10 000 jobs with templates of 5 KB.
const SHARE: f64 = 0.375;
/// Jobs of more bytes are large.
const SMALL_MAX: usize = 32 * 1024;
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
        Self::of_limit(limit.unwrap_or(USUAL_LIMIT))
    }
}

impl WholeBytes {
    fn of_limit(limit: f64) -> Self {
        Self::new((limit * SHARE) as usize)
    }

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
        let is_kept = was_kept || has_begun || taken.has_capacity(self.most, namespace, bytes);
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
    fn has_capacity(&self, most: usize, namespace: &str, bytes: usize) -> bool {
        let most = if bytes > SMALL_MAX {
            most / 3 * 2
        } else {
            most
        };
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
    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use serde_json::json;

    use super::*;
    use crate::cluster::batch::whole_batch_bytes;
    use crate::cluster::watched_job::whole_bytes;
    use crate::fixtures;

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
    fn a_namespace_keeps_10_000_jobs_with_templates_of_5_kb() {
        let template: PodTemplateSpec =
            serde_json::from_value(json!({"spec": {"restartPolicy": "Never",
            "containers": [{"name": "task", "image": "task", "args": ["x".repeat(4_900)]}]}}))
            .unwrap();
        let mut batch = fixtures::batch_job("completions: 1");
        batch.spec.as_mut().unwrap().template = template.clone();
        let mut deadline = fixtures::job("");
        deadline.spec.template = template;
        for bytes in [whole_bytes(&deadline), whole_batch_bytes(&batch)] {
            let budget = WholeBytes::of_limit(USUAL_LIMIT);
            let jobs = (0..10_000).map(|number| job("team", number));
            let kept = jobs.filter(|job| budget.keep(Kind::Deadline, job, bytes, false));
            assert_eq!(kept.count(), 10_000, "of {bytes} bytes");
        }
    }

    #[test]
    fn large_jobs_leave_a_third_of_the_bytes_to_small_ones() {
        let budget = WholeBytes::of_limit(USUAL_LIMIT);
        let fills = |bytes: usize| {
            let namespaces = (0..10_000).map(|number| job(&format!("{bytes}-{number}"), 0));
            let kept = namespaces.take_while(|job| budget.keep(Kind::Deadline, job, bytes, false));
            kept.count() * bytes / 1_000_000
        };
        assert_eq!((fills(1_000_000), fills(SMALL_MAX)), (134, 67));
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
