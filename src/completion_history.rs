//! How long the last completed jobs of each class took. `deadline.history` takes its quantiles from here.
//!
//! The watches of jobs fill it, also with Jobs that shed only watches, and the stored state restores it. A completed job may be shown any number of times, by
//! both, and counts once.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shed_core::snapshot::Conclusion;
use shed_core::tenant_fairness::keep_fair;
use shed_core::time::{Instant, Span};

use crate::api::{Ledger, Quantile};
use crate::pod_names::fnv1a;

/// Completion times of a class that are kept.
pub const RUNS_MAX: usize = 50;
/// Classes that are kept.
pub const CLASSES_MAX: usize = 200;
/// Without as many completion times a class has no quantile.
pub const RUNS_MIN: usize = 5;

/// The completion of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// When its last task finished, as its pod says.
    pub at: Instant,
    /// The time until then from the first planning pass in which the job was not suspended. Later suspensions count, as
    /// the clock of a deadline does not stop for them either. Kubelets round the end of
    /// a container down to a second, so the time lasts until that second is over: a deadline that is computed from
    /// short jobs leaves at least the time that they took.
    pub took: Span,
}

/// What a kubelet rounds the end of a container down to.
const SECOND: Span = Span(1000);

impl Completion {
    /// The completion of the job with this ledger. A failed job has none.
    pub fn of(ledger: &Ledger) -> Option<Self> {
        let is_complete = ledger.finished && ledger.ending.is_some_and(Conclusion::is_success);
        let at = ledger.last_win.filter(|_| is_complete)?;
        Some(Self::between(ledger.first_pass?, at))
    }

    /// The completion of a job that ran from `start` to `at`.
    pub fn between(start: Instant, at: Instant) -> Self {
        let is_rounded = at.0.rem_euclid(SECOND.0) == 0;
        let end = if is_rounded { at.plus(SECOND) } else { at };
        Self {
            at,
            took: end.since(start).max(SECOND),
        }
    }
}

/// One completion time as the stored state has it: when (s), how long (ms), and a hash of the job's uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Run(i64, i64, u16);

/// No job took longer than a thousand years, in milliseconds.
const TOOK_MAX: i64 = 1000 * 366 * 24 * 3600 * 1000;

impl Run {
    fn is_sound(&self) -> bool {
        (1..=TOOK_MAX).contains(&self.1)
    }
}

/// Completion times by class (`namespace/class`), oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredCompletions(BTreeMap<String, Vec<Run>>);

/// The completion times of a class in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassFigures {
    /// The class, without its namespace.
    pub class: String,
    /// Completion times that are known.
    pub runs: usize,
    /// Their quantiles, in the order of [`Quantile::ALL`].
    pub quantiles: [Span; 5],
}

impl StoredCompletions {
    /// Whether no class has a completion time.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is what shed writes.
    pub fn is_sound(&self) -> bool {
        self.len() <= CLASSES_MAX
            && self.0.values().all(|runs| {
                let count = 1..=RUNS_MAX;
                count.contains(&runs.len()) && runs.is_sorted() && runs.iter().all(Run::is_sound)
            })
    }

    /// Keeps this share of the classes: the least recently used ones of the namespaces with the most are dropped.
    pub fn keep(&mut self, share: f64) {
        self.keep_most((self.len() as f64 * share) as usize);
    }

    fn keep_most(&mut self, max: usize) {
        keep_fair(
            &mut self.0,
            max,
            |class, _| namespace(class),
            |runs| runs.last().copied(),
        );
    }

    fn add(&mut self, class: &str, run: Run) {
        let runs = match self.0.get_mut(class) {
            Some(runs) => runs,
            None => self.0.entry(class.to_owned()).or_default(),
        };
        if let Err(place) = runs.binary_search(&run) {
            runs.insert(place, run);
        }
        if runs.len() > RUNS_MAX {
            runs.remove(0);
        }
        self.keep_most(CLASSES_MAX);
    }
}

fn namespace(class: &str) -> &str {
    class.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// The quantile by nearest rank of durations in ascending order.
fn quantile(ascending: &[Span], which: Quantile) -> Option<Span> {
    let percent = match which {
        Quantile::P50 => 50,
        Quantile::P90 => 90,
        Quantile::P95 => 95,
        Quantile::P99 => 99,
        Quantile::Max => 100,
    };
    let rank = (ascending.len() * percent).div_ceil(100);
    ascending.get(rank.checked_sub(1)?).copied()
}

fn ascending(runs: &[Run]) -> Vec<Span> {
    let mut spans: Vec<Span> = runs.iter().map(|run| Span(run.1)).collect();
    spans.sort_unstable();
    spans
}

/// What is known of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// Completion times that are known.
    pub runs: usize,
    /// Their quantile, if they are at least [`RUNS_MIN`].
    pub quantile: Option<Span>,
}

/// The completion times of all classes, in one term of leadership.
#[derive(Debug, Default)]
pub struct CompletionHistory(Mutex<StoredCompletions>);

impl CompletionHistory {
    /// The watch shows that a job is complete. `class` is `namespace/class`.
    pub fn see(&self, uid: &str, class: &str, completion: Completion) {
        let seconds = completion.at.0.div_euclid(1000);
        // With the time it tells the jobs of a class apart.
        let hash = fnv1a(uid.as_bytes());
        let folded = (hash >> 16) as u16 ^ (hash & 0xffff) as u16;
        let run = Run(seconds, completion.took.0, folded);
        self.0.lock().add(class, run);
    }

    /// Adds what earlier leaders have stored.
    pub fn restore(&self, stored: &StoredCompletions) {
        let mut own = self.0.lock();
        if *own == *stored {
            return;
        }
        for (class, runs) in &stored.0 {
            for run in runs {
                own.add(class, *run);
            }
        }
    }

    /// What the next leader must know.
    pub fn to_store(&self) -> StoredCompletions {
        self.0.lock().clone()
    }

    /// What is known of a class (`namespace/class`).
    pub fn known(&self, class: &str, which: Quantile) -> Known {
        let own = self.0.lock();
        let runs = own.0.get(class).map_or(&[][..], Vec::as_slice);
        let enough = (runs.len() >= RUNS_MIN).then(|| ascending(runs));
        Known {
            runs: runs.len(),
            quantile: enough.and_then(|spans| quantile(&spans, which)),
        }
    }

    /// The completion times of a class (`namespace/class`), in seconds.
    pub fn seconds(&self, class: &str) -> Vec<f64> {
        let own = self.0.lock();
        let runs = own.0.get(class).into_iter().flatten();
        runs.map(|run| Span(run.1).seconds()).collect()
    }

    /// The classes of a namespace in figures, or one of them. A class with fewer than [`RUNS_MIN`] completion times has
    /// figures too.
    pub fn figures(&self, namespace: &str, class: Option<&str>) -> Vec<ClassFigures> {
        let prefix = format!("{namespace}/");
        let own = self.0.lock();
        let of_namespace = own.0.iter().filter_map(|(name, runs)| {
            let name = name.strip_prefix(&prefix)?;
            class
                .is_none_or(|class| class == name)
                .then_some((name, runs))
        });
        let figures = of_namespace.map(|(name, runs)| {
            let spans = ascending(runs);
            ClassFigures {
                class: name.to_owned(),
                runs: spans.len(),
                quantiles: Quantile::ALL.map(|which| quantile(&spans, which).unwrap_or_default()),
            }
        });
        figures.collect()
    }
}

#[cfg(test)]
mod tests;
