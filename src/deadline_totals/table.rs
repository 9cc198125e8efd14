//! The table behind the totals. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::stored::{CLASSES_MAX, Counts, FOLDED_MAX, NAMESPACES_MAX, OTHER, StoredTotals};
use super::{DeadlineOutcome, JobWithDeadline};

/// After this many failed writes in a row, five minutes, jobs expire although their count may be lost.
const FAILED_WRITES_MAX: u32 = 10;
/// Jobs that are remembered while the stored totals are unknown and their objects are gone.
const DEPARTED_MAX: usize = 10_000;

/// Namespace and class of a series.
type Key = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
struct Series {
    /// Jobs that are counted for good.
    folded: Counts,
    /// Ended jobs that exist.
    present: Counts,
}

/// A job that is counted for good and whose object exists.
#[derive(Clone, Copy, Debug)]
struct Fold {
    is_stored: bool,
    /// Whether this leader has seen the object.
    is_seen: bool,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    series: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Series>>,
    /// Ended jobs that exist and are not folded.
    present: HashMap<Arc<str>, (Key, DeadlineOutcome)>,
    folded: HashMap<Arc<str>, Fold>,
    is_listed: bool,
    /// What was seen before the stored totals are known; absent from then on.
    early: Option<Box<Early>>,
    is_restored: bool,
    failed_writes: u32,
}

/// What the watch has shown before the stored totals are known.
#[derive(Debug, Default)]
struct Early {
    there: HashSet<Arc<str>>,
    /// Namespaces and classes of jobs with deadlines.
    keys: BTreeSet<Key>,
    /// Ended jobs that exist.
    ended: BTreeMap<Arc<str>, (Key, DeadlineOutcome)>,
    /// Ended jobs that were seen and are gone.
    departed: BTreeMap<Arc<str>, (Key, DeadlineOutcome)>,
}

impl Table {
    /// A job exists.
    pub(super) fn see(&mut self, uid: &Arc<str>, job: Option<JobWithDeadline<'_>>) {
        if !self.is_restored {
            return self.early.get_or_insert_default().see(uid, job);
        }
        if let Some(fold) = self.folded.get_mut(uid) {
            fold.is_seen = true;
            return;
        }
        let Some(job) = job.filter(|_| !self.present.contains_key(uid)) else {
            return;
        };
        // The series of an unfinished job begins at 0: Prometheus sees no increase in one that begins at 1.
        let key = self.key(job.namespace, job.class);
        if let Some(outcome) = job.outcome {
            self.count(uid, key, outcome);
        }
    }

    /// A job does not exist any more. Returns whether the stored totals changed.
    pub(super) fn gone(&mut self, uid: &str) -> bool {
        if let Some(early) = self.early.as_mut() {
            early.gone(uid);
        }
        self.folded.remove(uid);
        self.fold(uid)
    }

    pub(super) fn listed(&mut self) {
        if !self.is_listed {
            self.is_listed = true;
            self.folded.retain(|_, fold| fold.is_seen);
        }
    }

    pub(super) fn restore(&mut self, stored: StoredTotals) {
        if self.is_restored {
            return;
        }
        self.is_restored = true;
        for (namespace, classes) in stored.series {
            let classes = classes.into_iter().map(|(class, folded)| {
                let present = Counts::default();
                (class.into(), Series { folded, present })
            });
            self.series.insert(namespace.into(), classes.collect());
        }
        let early = self.early.take().unwrap_or_default();
        for uid in &stored.folded {
            let is_seen = early.there.contains(uid.as_str());
            if is_seen || !self.is_listed {
                let is_stored = true;
                self.folded
                    .insert(uid.as_str().into(), Fold { is_stored, is_seen });
            }
        }
        let is_new = |uid: &Arc<str>| !stored.folded.contains(&**uid);
        for (uid, (key, outcome)) in early.ended.iter().filter(|(uid, _)| is_new(uid)) {
            let key = self.key(&key.0, &key.1);
            self.count(uid, key, *outcome);
        }
        for (_, (key, outcome)) in early.departed.iter().filter(|(uid, _)| is_new(uid)) {
            let key = self.key(&key.0, &key.1);
            self.at(&key).folded.add(*outcome);
        }
        for (namespace, class) in &early.keys {
            self.key(namespace, class);
        }
    }

    pub(super) fn to_store(&self) -> StoredTotals {
        let series = self.series.iter().map(|(namespace, classes)| {
            let classes = classes
                .iter()
                .map(|(class, series)| (class.to_string(), series.folded));
            (namespace.to_string(), classes.collect())
        });
        StoredTotals {
            series: series.collect(),
            folded: self.folded.keys().map(|uid| uid.to_string()).collect(),
        }
    }

    pub(super) fn stored(&mut self, totals: &StoredTotals) {
        self.failed_writes = 0;
        for (uid, fold) in &mut self.folded {
            fold.is_stored |= totals.folded.contains(&**uid);
        }
    }

    pub(super) fn not_stored(&mut self) {
        self.failed_writes = self.failed_writes.saturating_add(1);
    }

    /// Whether a job may be deleted, and whether the stored totals changed.
    pub(super) fn may_expire(&mut self, uid: &str) -> (bool, bool) {
        let cannot_wait = self.failed_writes >= FAILED_WRITES_MAX;
        if let Some(fold) = self.folded.get(uid) {
            return (fold.is_stored || cannot_wait, false);
        }
        let known = self.present.get_key_value(uid);
        let Some(known) = known.map(|(uid, _)| Arc::clone(uid)) else {
            // The watch has not shown its end yet.
            return (cannot_wait, false);
        };
        if self.folded.len() >= FOLDED_MAX {
            return (cannot_wait, false);
        }
        let is_news = self.fold(uid);
        let fold = Fold {
            is_stored: false,
            is_seen: true,
        };
        self.folded.insert(known, fold);
        (cannot_wait, is_news)
    }

    pub(super) fn shown(&self) -> Option<Vec<(String, String, Counts)>> {
        if !self.is_listed || !self.is_restored {
            return None;
        }
        let all = self.series.iter().flat_map(|(namespace, classes)| {
            classes.iter().map(move |(class, series)| {
                let total = series.folded.plus(series.present);
                (namespace.to_string(), class.to_string(), total)
            })
        });
        Some(all.collect())
    }

    fn count(&mut self, uid: &Arc<str>, key: Key, outcome: DeadlineOutcome) {
        self.at(&key).present.add(outcome);
        self.present.insert(Arc::clone(uid), (key, outcome));
    }

    /// Counts an ended job for good. Returns whether it is one.
    fn fold(&mut self, uid: &str) -> bool {
        let Some((key, outcome)) = self.present.remove(uid) else {
            return false;
        };
        let series = self.at(&key);
        series.present.remove(outcome);
        series.folded.add(outcome);
        true
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

impl Early {
    fn see(&mut self, uid: &Arc<str>, job: Option<JobWithDeadline<'_>>) {
        self.there.insert(Arc::clone(uid));
        let Some(job) = job.filter(|_| !self.ended.contains_key(uid)) else {
            return;
        };
        let key: Key = (job.namespace.into(), job.class.into());
        self.keys.insert(key.clone());
        if let Some(outcome) = job.outcome {
            self.ended.insert(Arc::clone(uid), (key, outcome));
        }
    }

    fn gone(&mut self, uid: &str) {
        self.there.remove(uid);
        let known = self.ended.remove_entry(uid);
        if let Some((uid, job)) = known.filter(|_| self.departed.len() < DEPARTED_MAX) {
            self.departed.insert(uid, job);
        }
    }
}
