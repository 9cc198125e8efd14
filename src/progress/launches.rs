//! How long launches take, from the record of an attempt to its first report, namespace by
//! namespace. Each namespace uses its own measurements, and the launches of one do not affect
//! another's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use shed_core::time::{Instant, Span};

/// How many launches of a namespace count, the latest.
const LATEST: usize = 32;

/// A first report later than this depends on the task, not on the launch.
const LONGEST: Span = Span::from_seconds(600);

/// Minimum number of namespaces for an estimate for another one. With fewer, a single false
/// namespace could decide it.
const NAMESPACES_MIN: usize = 3;

/// Maximum number of remembered namespaces. The one with the oldest launch is forgotten first.
const NAMESPACES_MAX: usize = 1024;

/// Measured durations of launches.
#[derive(Default)]
pub(super) struct Launches(BTreeMap<Arc<str>, Recent>);

#[derive(Default)]
struct Recent {
    /// Oldest first.
    latest: VecDeque<Span>,
    noted: Instant,
}

impl Launches {
    /// An attempt of the namespace has reported for the first time.
    pub(super) fn note(&mut self, namespace: &Arc<str>, took: Span, now: Instant) {
        let recent = self.0.entry(Arc::clone(namespace)).or_default();
        recent.latest.push_back(took.clamp(Span(0), LONGEST));
        recent.noted = now;
        if recent.latest.len() > LATEST {
            recent.latest.pop_front();
        }
        if self.0.len() > NAMESPACES_MAX {
            let oldest = self.0.iter().min_by_key(|(_, recent)| recent.noted);
            if let Some(oldest) = oldest.map(|(namespace, _)| Arc::clone(namespace)) {
                self.0.remove(&oldest);
            }
        }
    }

    /// The mean of each namespace.
    pub(super) fn means(&self) -> BTreeMap<Arc<str>, Span> {
        let all = self.0.iter();
        all.map(|(namespace, recent)| (Arc::clone(namespace), recent.mean()))
            .collect()
    }

    /// The launch overhead to expect in a namespace without a launch so far: the median over the
    /// others. Absent while there are too few of them.
    pub(super) fn usual(&self) -> Option<Span> {
        let mut means: Vec<Span> = self.0.values().map(Recent::mean).collect();
        means.sort_unstable();
        let middle = means.len().checked_sub(1)? / 2;
        means
            .get(middle)
            .copied()
            .filter(|_| means.len() >= NAMESPACES_MIN)
    }
}

impl Recent {
    fn mean(&self) -> Span {
        let total: i64 = self.latest.iter().map(|took| took.0).sum();
        let count = i64::try_from(self.latest.len()).unwrap_or(i64::MAX);
        Span(total / count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Span {
        Span::from_seconds(seconds)
    }

    /// Each namespace and the durations of its launches.
    fn launches(all: &[(&str, &[i64])]) -> Launches {
        let mut launches = Launches::default();
        for (namespace, took) in all {
            for &took in *took {
                launches.note(&(*namespace).into(), seconds(took), Instant(0));
            }
        }
        launches
    }

    #[test]
    fn each_namespace_has_its_own_mean() {
        let launches = launches(&[("blue", &[2, 4]), ("red", &[600, 600, 600])]);
        let means = launches.means();
        assert_eq!(means[&Arc::from("blue")], seconds(3));
        assert_eq!(launches.usual(), None, "one of the two may lie");
    }

    #[test]
    fn no_single_namespace_decides_what_others_expect() {
        let honest = launches(&[("a", &[2]), ("b", &[3]), ("c", &[4])]).usual();
        assert_eq!(honest, Some(seconds(3)));
        for lie in [0, 600] {
            let lies = [lie; 100];
            let usual = launches(&[("a", &[2]), ("b", &[3]), ("liar", &lies)]).usual();
            assert!(
                (seconds(2)..=seconds(3)).contains(&usual.unwrap()),
                "{usual:?}"
            );
        }
    }

    #[test]
    fn what_was_long_ago_is_forgotten_and_what_took_hours_is_cut() {
        let mut slow_once = vec![600; 50];
        slow_once.extend([2; LATEST]);
        let launches = launches(&[("a", &slow_once), ("late", &[3600])]);
        let means = launches.means();
        assert_eq!(means[&Arc::from("a")], seconds(2));
        assert_eq!(means[&Arc::from("late")], LONGEST);
    }

    #[test]
    fn namespaces_without_end_are_not_remembered() {
        let mut launches = Launches::default();
        for number in 0..2000 {
            let namespace = format!("ns-{number}").into();
            launches.note(&namespace, seconds(1), Instant(number));
        }
        let means = launches.means();
        assert_eq!(means.len(), NAMESPACES_MAX);
        assert!(means.contains_key("ns-1999") && !means.contains_key("ns-0"));
    }
}
