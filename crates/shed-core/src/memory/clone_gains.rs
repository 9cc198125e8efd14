//! What clones have gained: whether a clone draws a time of its own, or takes as long as the attempt next to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{JobClass, JobKey, Tenant};
use crate::tenant_fairness::keep_newest;
use crate::time::{Instant, Span};

/// The weight of what is known without a level's own pairs: two pairs of full weight.
const FIRMNESS: f64 = 2.0;

/// All pairs of another tenant weigh at most as much as one. Those of all others together weigh at most as much as
/// the prior.
const FOREIGN_MAX: f64 = 1.0;

/// Half of what was seen is forgotten after this time. So where clones gained nothing, a rare one tests whether that
/// has changed.
const HALF_LIFE: Span = Span::from_seconds(24 * 3600);

/// A pair weighs as much as it would show if the times were independent, and at most this.
const WEIGHT_MAX: f64 = 1.0;

/// One pair counts for at most this many times what independent attempts would show.
const RATIO_MAX: f64 = 4.0;

/// From this estimate on all clones are taken to draw times of their own: on traces where they do, it is 0.85 to 1.06.
const ALL: f64 = 0.7;

/// Tenants that are remembered, and classes of each; those seen least recently are forgotten first.
const TENANTS_MAX: usize = 256;
const CLASSES_MAX: usize = 64;

/// Two attempts of one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// ln(time of one / time of the other)².
    pub seen: f64,
    /// What that would be on average if the times were independent.
    pub expected: f64,
}

/// How independent the times of a task's attempts are, by tenant and class.
///
/// Two attempts of a task with times a and b show ln(a / b)². If slowness belongs to the task, that is near 0. If the
/// times are independent, it is on average as for attempts of two tasks. So the ratio of what pairs show to what would
/// be expected estimates the share of clones that draw a time of their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CloneGains {
    // Each pass has a copy, so both are shared until they change.
    tenants: Arc<BTreeMap<Tenant, OfTenant>>,
    /// The jobs whose pairs were counted, and when the last ones were.
    counted: Arc<BTreeMap<JobKey, Instant>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct OfTenant {
    all: Pairs,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    classes: BTreeMap<JobClass, Pairs>,
}

/// Pairs of attempts of one task.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Pairs {
    /// Σ weight · seen / expected.
    #[serde(with = "float")]
    sum: f64,
    /// Σ weight.
    #[serde(with = "float")]
    weight: f64,
    /// When the last one was seen. Older ones count less.
    seen: Instant,
}

impl Pairs {
    fn at(self, now: Instant) -> Self {
        let age = now.since(self.seen).seconds().max(0.0);
        let left = libm::exp2(-age / HALF_LIFE.seconds());
        Self {
            sum: self.sum * left,
            weight: self.weight * left,
            seen: now.max(self.seen),
        }
    }

    fn add(&mut self, now: Instant, weight: f64, ratio: f64) {
        *self = self.at(now);
        self.sum += weight * ratio;
        self.weight += weight;
    }

    fn is_sound(&self) -> bool {
        let is_sum = |sum: f64| sum.is_finite() && sum >= 0.0;
        is_sum(self.sum) && is_sum(self.weight)
    }

    /// The mean ratio, with a prior of [`FIRMNESS`] with this mean.
    fn mean(self, prior: f64) -> f64 {
        (self.sum + FIRMNESS * prior) / (self.weight + FIRMNESS)
    }
}

impl CloneGains {
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn len(&self) -> usize {
        let classes = self.tenants.values().map(|own| own.classes.len());
        self.tenants.len() + self.counted.len() + classes.sum::<usize>()
    }

    /// Keeps as many tenants as `kept` returns for their number, and as many classes of each, those seen last.
    pub(super) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        let tenants = Arc::make_mut(&mut self.tenants);
        let count = kept(tenants.len());
        keep_newest(tenants, count, |own| own.all.seen);
        for own in tenants.values_mut() {
            let count = kept(own.classes.len());
            keep_newest(&mut own.classes, count, |pairs| pairs.seen);
        }
        let count = kept(self.counted.len());
        keep_newest(Arc::make_mut(&mut self.counted), count, |until| *until);
    }

    /// Whether the sums are those of numbers, and there are not more entries than are remembered.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |own: &OfTenant| {
            let mut pairs = own.classes.values().chain([&own.all]);
            own.classes.len() <= CLASSES_MAX && pairs.all(Pairs::is_sound)
        };
        self.tenants.len() <= TENANTS_MAX && self.tenants.values().all(is_sound)
    }

    /// When pairs of the job were counted last.
    pub fn last_counted(&self, key: &JobKey) -> Option<Instant> {
        self.counted.get(key).copied()
    }

    /// Pairs of the job are counted now.
    pub fn count(&mut self, key: &JobKey, now: Instant) {
        Arc::make_mut(&mut self.counted).insert(key.clone(), now);
    }

    /// Forgets the jobs that are gone.
    pub(super) fn forget(&mut self, is_gone: impl Fn(&JobKey) -> bool) {
        if self.counted.keys().any(&is_gone) {
            Arc::make_mut(&mut self.counted).retain(|key, _| !is_gone(key));
        }
    }

    /// Records a pair of attempts of a job.
    pub fn note(&mut self, tenant: &Tenant, class: Option<&JobClass>, now: Instant, pair: Pair) {
        let ratio = pair.seen / pair.expected;
        if ratio.is_nan() || !pair.expected.is_finite() || pair.expected <= 0.0 {
            return;
        }
        let (weight, ratio) = (pair.expected.min(WEIGHT_MAX), ratio.min(RATIO_MAX));
        let tenants = Arc::make_mut(&mut self.tenants);
        let own = tenants.entry(tenant.clone()).or_default();
        own.all.add(now, weight, ratio);
        if let Some(class) = class {
            let of_class = own.classes.entry(class.clone()).or_default();
            of_class.add(now, weight, ratio);
            keep_newest(&mut own.classes, CLASSES_MAX, |pairs| pairs.seen);
        }
        keep_newest(tenants, TENANTS_MAX, |own| own.all.seen);
    }

    /// The share of clones of such a job that draw a time of their own, in [0, 1]: by the pairs of its class, those of
    /// its tenant, and those of other tenants.
    pub fn share(&self, tenant: &Tenant, class: Option<&JobClass>, now: Instant) -> f64 {
        let of_tenant = self.of_tenant(tenant, now);
        let own = self.tenants.get(tenant);
        let of_class = own
            .zip(class)
            .and_then(|(own, class)| own.classes.get(class));
        let estimate = of_class.map_or(of_tenant, |pairs| pairs.at(now).mean(of_tenant));
        (estimate / ALL).clamp(0.0, 1.0)
    }

    fn of_tenant(&self, tenant: &Tenant, now: Instant) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (_, foreign) in self.tenants.iter().filter(|(other, _)| *other != tenant) {
            let pairs = foreign.all.at(now);
            if pairs.weight > 0.0 {
                let counted = pairs.weight.min(FOREIGN_MAX);
                sum += counted * pairs.sum / pairs.weight;
                weight += counted;
            }
        }
        if weight > FIRMNESS {
            (sum, weight) = (sum * (FIRMNESS / weight), FIRMNESS);
        }
        let cluster = (sum + FIRMNESS) / (weight + FIRMNESS);
        let own = self.tenants.get(tenant);
        own.map_or(cluster, |own| own.all.at(now).mean(cluster))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Instant {
        Instant(hours * 3_600_000)
    }

    fn see(gains: &mut CloneGains, tenant: &str, class: Option<&str>, times: usize, seen: f64) {
        let class = class.map(JobClass::from);
        for _ in 0..times {
            let pair = Pair {
                seen,
                expected: 1.0,
            };
            gains.note(&Tenant::from(tenant), class.as_ref(), at(0), pair);
        }
    }

    fn share(gains: &CloneGains, tenant: &str, class: Option<&str>, hours: i64) -> f64 {
        let class = class.map(JobClass::from);
        gains.share(&Tenant::from(tenant), class.as_ref(), at(hours))
    }

    #[test]
    fn clones_that_repeat_their_siblings_gain_little_for_a_while() {
        let mut gains = CloneGains::default();
        assert_eq!(share(&gains, "a", None, 0), 1.0);
        see(&mut gains, "a", None, 30, 0.01);
        assert!(share(&gains, "a", None, 0) < 0.12);
        assert!(share(&gains, "a", None, 4 * 24) < 0.75);
        assert_eq!(share(&gains, "a", None, 7 * 24), 1.0);
        see(&mut gains, "a", None, 60, 1.0);
        assert!(share(&gains, "a", None, 0) > 0.9, "but new pairs count");
    }

    #[test]
    fn a_class_overrides_its_tenant_and_tenants_count_once_each() {
        let mut gains = CloneGains::default();
        see(&mut gains, "a", Some("fixed"), 100, 0.0);
        see(&mut gains, "a", Some("free"), 300, 1.0);
        assert!(share(&gains, "a", Some("fixed"), 0) < 0.05);
        assert_eq!(share(&gains, "a", Some("free"), 0), 1.0);
        assert_eq!(share(&gains, "a", None, 0), 1.0);
        let mut gains = CloneGains::default();
        see(&mut gains, "b", None, 1000, 0.0);
        // (2 · 1 + 1 · 0) / 3 over 0.7.
        assert!((share(&gains, "a", None, 0) - 2.0 / 3.0 / ALL).abs() < 1e-9);
        for tenant in ["c", "d", "e"] {
            see(&mut gains, tenant, None, 1000, 0.0);
        }
        // At most as much as the prior.
        assert!((share(&gains, "a", None, 0) - 0.5 / ALL).abs() < 1e-9);
    }

    #[test]
    fn pairs_that_say_nothing_are_not_counted_and_memory_is_bounded() {
        let mut gains = CloneGains::default();
        let infinite = (0.0, f64::INFINITY);
        let nothing = [
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (0.0, -1.0),
            infinite,
        ];
        for (seen, expected) in nothing {
            let pair = Pair { seen, expected };
            gains.note(&Tenant::from("a"), None, at(0), pair);
        }
        assert!(gains.are_none());
        let pair = Pair {
            seen: 1.0,
            expected: 1.0,
        };
        for number in 0..2 * TENANTS_MAX {
            let now = at(number as i64);
            let another = Tenant::from(format!("t{number}").as_str());
            gains.note(&another, None, now, pair);
            let class = JobClass::from(format!("c{number}").as_str());
            gains.note(&Tenant::from("a"), Some(&class), now, pair);
        }
        assert_eq!(gains.tenants.len(), TENANTS_MAX);
        let classes = gains.tenants.values().map(|own| own.classes.len());
        assert_eq!(classes.max(), Some(CLASSES_MAX));
    }
}
