//! The results of restarting a slow attempt: whether the next one on the same node is slow too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{NodeName, Tenant};
use crate::time::Instant;

/// The results of attempts on nodes where a slow one was given up. They tell whether slowness belongs to the node and
/// stays, or to the attempt and ends with it. Each tenant learns from its own; another tenant counts as one witness
/// at most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Restarts {
    /// (Recordings from before tenants learned separately have none; their data is ignored.)
    #[serde(default)]
    tenants: BTreeMap<Tenant, TenantRestarts>,
}

/// The results of one tenant's attempts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct TenantRestarts {
    /// Σ x², where x is ln(time of the attempt that was given up over the median of its job).
    #[serde(with = "float")]
    squares: f64,
    /// Σ x·y, where y is the same of the next attempt there, whatever its job.
    #[serde(with = "float")]
    products: f64,
    /// The nodes where the next attempt is still awaited.
    places: BTreeMap<NodeName, GivenUp>,
}

/// An attempt that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct GivenUp {
    at: Instant,
    #[serde(with = "float")]
    ln_ratio: f64,
}

/// The share of the slowness that the next attempt is assumed to keep before any observation …
const KEPT_BEFORE: f64 = 0.5;

/// … and its weight: that of two attempts after ones that took three times the median.
const FIRMNESS: f64 = 2.4;

/// Another tenant's results weigh at most as one such attempt. Those of all others together weigh at most as much as
/// the prior.
const FOREIGN_MAX: f64 = FIRMNESS / 2.0;

/// Tenants that are remembered; the one with the fewest results is forgotten first.
const TENANTS_MAX: usize = 256;

impl Restarts {
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Records that an attempt of the tenant there, with this ln(its time over the median of its job), is given up.
    /// An attempt that was not slow is no evidence.
    pub fn give_up(&mut self, tenant: &Tenant, node: &NodeName, at: Instant, ln_ratio: f64) {
        if ln_ratio <= 0.0 {
            return;
        }
        let own = self.tenants.entry(tenant.clone()).or_default();
        own.places.insert(node.clone(), GivenUp { at, ln_ratio });
        if self.tenants.len() > TENANTS_MAX {
            let others = self.tenants.iter().filter(|(other, _)| *other != tenant);
            let least = others.min_by(|(_, a), (_, b)| a.squares.total_cmp(&b.squares));
            if let Some(least) = least.map(|(tenant, _)| tenant.clone()) {
                self.tenants.remove(&least);
            }
        }
    }

    /// Whether an attempt of the tenant that was launched there `since_launch` seconds ago is the first since one was
    /// given up.
    pub fn awaits(
        &self,
        tenant: &Tenant,
        node: &NodeName,
        now: Instant,
        since_launch: f64,
    ) -> bool {
        let own = self.tenants.get(tenant);
        let given_up = own.and_then(|own| own.places.get(node));
        given_up.is_some_and(|given_up| since_launch <= now.since(given_up.at).seconds())
    }

    /// Records the speed of the tenant's next attempt there.
    pub fn note(&mut self, tenant: &Tenant, node: &NodeName, ln_ratio: f64) {
        let Some(own) = self.tenants.get_mut(tenant) else {
            return;
        };
        if let Some(before) = own.places.remove(node) {
            own.squares += before.ln_ratio * before.ln_ratio;
            own.products += before.ln_ratio * ln_ratio;
        }
    }

    /// Whether no attempt is awaited.
    pub fn is_idle(&self) -> bool {
        self.tenants.values().all(|own| own.places.is_empty())
    }

    /// Forgets nodes that are gone.
    pub fn retain(&mut self, exists: impl Fn(&NodeName) -> bool) {
        for own in self.tenants.values_mut() {
            own.places.retain(|node, _| exists(node));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tenants.len()
    }

    /// Keeps as many tenants as `kept` returns for their number, those with the most results.
    pub(super) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        let surplus = self.tenants.len().saturating_sub(kept(self.tenants.len()));
        let mut by_results: Vec<(f64, Tenant)> = self
            .tenants
            .iter()
            .map(|(tenant, own)| (own.squares, tenant.clone()))
            .collect();
        by_results.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (_, tenant) in by_results.into_iter().take(surplus) {
            self.tenants.remove(&tenant);
        }
    }

    /// Whether the sums are those of numbers, and each awaited attempt follows a slow one.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |own: &TenantRestarts| {
            let is_slow =
                |given_up: &GivenUp| given_up.ln_ratio.is_finite() && given_up.ln_ratio > 0.0;
            own.squares.is_finite()
                && own.squares >= 0.0
                && own.products.is_finite()
                && own.places.values().all(is_slow)
        };
        self.tenants.len() <= TENANTS_MAX && self.tenants.values().all(is_sound)
    }

    /// The tenant's estimate of the share of ln(slowness) that stays with the node, in [0, 1]: the slope of y on x,
    /// shrunk.
    pub fn kept(&self, tenant: &Tenant) -> f64 {
        let (mut squares, mut products) = (0.0, 0.0);
        for (_, foreign) in self.tenants.iter().filter(|(other, _)| *other != tenant) {
            if foreign.squares > 0.0 {
                let slope = (foreign.products / foreign.squares).clamp(0.0, 1.0);
                let weight = foreign.squares.min(FOREIGN_MAX);
                squares += weight;
                products += weight * slope;
            }
        }
        if squares > FIRMNESS {
            (squares, products) = (FIRMNESS, products * (FIRMNESS / squares));
        }
        if let Some(own) = self.tenants.get(tenant) {
            squares += own.squares;
            products += own.products;
        }
        let slope = (products + FIRMNESS * KEPT_BEFORE) / (squares + FIRMNESS);
        slope.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This many slow attempts of the tenant were followed by attempts of this ratio.
    fn followed(restarts: &mut Restarts, tenant: &str, times: usize, ln_ratio: f64) {
        let (tenant, node) = (Tenant::from(tenant), NodeName::from("n"));
        for _ in 0..times {
            restarts.give_up(&tenant, &node, Instant(0), 2.0);
            restarts.note(&tenant, &node, ln_ratio);
        }
    }

    #[test]
    fn what_another_tenant_has_seen_counts_as_one_witness() {
        let mut restarts = Restarts::default();
        let ours = Tenant::from("ours");
        assert!((restarts.kept(&ours) - 0.5).abs() < 1e-12);
        followed(&mut restarts, "theirs", 1000, 2.0);
        let reported = restarts.kept(&ours);
        assert!(reported > 0.6 && reported < 0.7, "{reported}");
        for tenant in ["b", "c", "d", "e"] {
            followed(&mut restarts, tenant, 1000, 2.0);
        }
        let by_many = restarts.kept(&ours);
        assert!((by_many - 0.75).abs() < 1e-9, "{by_many}");
        followed(&mut restarts, "ours", 10, 0.0);
        assert!(restarts.kept(&ours) < 0.1, "its own attempts rule");
        assert!(restarts.kept(&Tenant::from("theirs")) > 0.9);
    }

    #[test]
    fn only_the_tenants_own_next_attempt_tells() {
        let mut restarts = Restarts::default();
        let (ours, theirs) = (Tenant::from("ours"), Tenant::from("theirs"));
        let node = NodeName::from("n");
        restarts.give_up(&ours, &node, Instant(0), 1.0);
        assert!(restarts.awaits(&ours, &node, Instant(5000), 3.0));
        assert!(!restarts.awaits(&theirs, &node, Instant(5000), 3.0));
        restarts.note(&theirs, &node, 9.0);
        assert!(!restarts.is_idle());
    }

    #[test]
    fn tenants_without_end_are_not_remembered() {
        let mut restarts = Restarts::default();
        for number in 0..2 * TENANTS_MAX {
            followed(&mut restarts, &format!("t{number}"), 1, 1.0);
        }
        assert_eq!(restarts.tenants.len(), TENANTS_MAX);
    }

    #[test]
    fn what_was_known_before_tenants_learned_apart_is_read() {
        let text = r#"{"squares":4.0,"products":2.0,"places":{}}"#;
        let restarts: Restarts = serde_json::from_str(text).unwrap();
        assert!(restarts.are_none());
    }
}
