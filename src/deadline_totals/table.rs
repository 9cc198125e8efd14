//! The table behind the totals. Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::stored::{CLASSES_MAX, Counts, NAMESPACES_MAX, OTHER, StoredTotals};
use super::{DeadlineOutcome, JobWithDeadline};

/// Jobs that are remembered while the stored totals are unknown and their objects are gone.
const DEPARTED_MAX: usize = 10_000;

/// Namespace and class of a series.
type Key = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
struct Series {
    /// Ended jobs that are gone.
    gone: Counts,
    /// Ended jobs that exist.
    present: Counts,
}

/// The totals in one term of leadership.
#[derive(Debug, Default)]
pub struct Table {
    series: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Series>>,
    /// Ended jobs that exist.
    present: HashMap<Arc<str>, (Key, DeadlineOutcome)>,
    is_listed: bool,
    is_restored: bool,
    /// What was seen before the stored totals are known.
    early: Early,
}

/// What the watch has shown before the stored totals are known.
#[derive(Debug, Default)]
struct Early {
    /// Jobs with deadlines that exist.
    there: BTreeMap<Arc<str>, (Key, Option<DeadlineOutcome>)>,
    /// Ended jobs that were seen and are gone.
    departed: Vec<(Key, DeadlineOutcome)>,
}

impl Table {
    /// The watch shows that a job exists. Absent: a job without a deadline, or one that cannot be decoded. A job whose
    /// deletion has begun counts as gone.
    pub fn see(&mut self, uid: &Arc<str>, is_leaving: bool, job: Option<JobWithDeadline<'_>>) {
        if is_leaving {
            return self.gone(uid);
        }
        let Some(job) = job else {
            return;
        };
        if !self.is_restored {
            let key = (job.namespace.into(), job.class.into());
            self.early.there.insert(Arc::clone(uid), (key, job.outcome));
        } else if !self.present.contains_key(uid) {
            self.put(uid, job.namespace, job.class, job.outcome);
        }
    }

    /// The watch shows that a job is gone, or that its deletion began.
    pub fn gone(&mut self, uid: &str) {
        if let Some((key, Some(outcome))) = self.early.there.remove(uid)
            && self.early.departed.len() < DEPARTED_MAX
        {
            self.early.departed.push((key, outcome));
        }
        if let Some((key, outcome)) = self.present.remove(uid) {
            let series = self.at(&key);
            series.present.remove(outcome);
            series.gone.add(outcome);
        }
    }

    /// The first list of jobs is complete.
    pub fn listed(&mut self) {
        self.is_listed = true;
    }

    /// Adds what earlier leaders have stored, once.
    pub fn restore(&mut self, stored: StoredTotals) {
        if self.is_restored {
            return;
        }
        self.is_restored = true;
        for (namespace, classes) in stored.series {
            let classes = classes.into_iter().map(|(class, gone)| {
                let present = Counts::default();
                (class.into(), Series { gone, present })
            });
            self.series.insert(namespace.into(), classes.collect());
        }
        let early = std::mem::take(&mut self.early);
        for ((namespace, class), outcome) in early.departed {
            let key = self.key(&namespace, &class);
            self.at(&key).gone.add(outcome);
        }
        for (uid, ((namespace, class), outcome)) in early.there {
            self.put(&uid, &namespace, &class, outcome);
        }
    }

    /// What the next leader must know.
    pub fn to_store(&self) -> StoredTotals {
        let series = self.series.iter().map(|(namespace, classes)| {
            let classes = classes
                .iter()
                .map(|(class, series)| (class.to_string(), series.gone));
            (namespace.to_string(), classes.collect())
        });
        StoredTotals {
            series: series.collect(),
        }
    }

    /// The totals by namespace and class; absent until both counts are complete, so that no scrape sees a lower value.
    pub fn shown(&self) -> Option<Vec<(String, String, Counts)>> {
        if !self.is_listed || !self.is_restored {
            return None;
        }
        let all = self.series.iter().flat_map(|(namespace, classes)| {
            classes.iter().map(move |(class, series)| {
                let total = series.gone.plus(series.present);
                (namespace.to_string(), class.to_string(), total)
            })
        });
        Some(all.collect())
    }

    fn put(
        &mut self,
        uid: &Arc<str>,
        namespace: &str,
        class: &str,
        outcome: Option<DeadlineOutcome>,
    ) {
        // The series of an unfinished job begins at 0: Prometheus sees no increase in one that begins at 1.
        let key = self.key(namespace, class);
        if let Some(outcome) = outcome {
            self.at(&key).present.add(outcome);
            self.present.insert(Arc::clone(uid), (key, outcome));
        }
    }

    fn at(&mut self, key: &Key) -> &mut Series {
        let classes = self.series.entry(Arc::clone(&key.0)).or_default();
        classes.entry(Arc::clone(&key.1)).or_default()
    }

    /// The series that counts jobs of this namespace and class. First come, first served: a series that counted a job
    /// counts it for good.
    fn key(&mut self, namespace: &str, class: &str) -> Key {
        let is_full = own(&self.series) >= NAMESPACES_MAX;
        let (namespace, class) = match self.series.get(namespace) {
            None if is_full => (OTHER, OTHER),
            None => (namespace, class),
            Some(classes) if classes.contains_key(class) => (namespace, class),
            Some(classes) if own(classes) >= CLASSES_MAX => (namespace, OTHER),
            Some(_) => (namespace, class),
        };
        let shared = self.series.get_key_value(namespace);
        let shared_class = shared.and_then(|(_, classes)| classes.get_key_value(class));
        let key = (
            shared.map_or_else(|| namespace.into(), |(name, _)| Arc::clone(name)),
            shared_class.map_or_else(|| class.into(), |(name, _)| Arc::clone(name)),
        );
        self.at(&key);
        key
    }
}

/// Entries with a name of their own.
fn own<V>(entries: &BTreeMap<Arc<str>, V>) -> usize {
    entries.len() - usize::from(entries.contains_key(OTHER))
}
