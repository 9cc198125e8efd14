//! Weighted max-min fairness over several resources, by progressive filling: the dominant shares of all tenants grow at
//! the rate of their weights. A tenant stops at its demand, or when a resource that it demands is used up.

use super::Fractions;

/// A tenant's demand and weight.
pub(super) struct Demand {
    /// The fraction of each resource.
    pub(super) fractions: Fractions,
    pub(super) weight: f64,
}

impl Demand {
    fn dominant(&self) -> f64 {
        self.fractions.iter().copied().fold(0.0, f64::max)
    }

    /// The level of the filling at which the tenant has all that it demands.
    fn end(&self) -> f64 {
        self.dominant() / self.weight
    }

    /// The fraction of a resource that the tenant takes per unit of the level.
    fn rate(&self, resource: usize) -> f64 {
        let fraction = self.fractions.get(resource).copied().unwrap_or(0.0);
        fraction * self.weight / self.dominant()
    }
}

/// The dominant share that each tenant is entitled to.
pub(super) fn entitled(demands: &[Demand]) -> Vec<f64> {
    let mut shares: Vec<f64> = demands.iter().map(Demand::dominant).collect();
    let resources = demands.iter().map(|it| it.fractions.len()).max();
    let mut filling = Filling {
        left: (0..resources.unwrap_or(0)).map(|_| 1.0).collect(),
        level: 0.0,
    };
    let mut growing: Vec<(usize, &Demand)> = demands.iter().enumerate().collect();
    growing.retain(|(_, demand)| demand.dominant() > 0.0);
    growing.sort_by(|a, b| a.1.end().total_cmp(&b.1.end()));
    // Each round but the last one uses up a resource.
    while let Some((served, full)) = filling.fill(&growing) {
        growing.drain(..served);
        growing.retain(|&(at, demand)| {
            let stops = demand.rate(full) > 0.0;
            if let Some(share) = shares.get_mut(at).filter(|_| stops) {
                *share = demand.weight * filling.level;
            }
            !stops
        });
    }
    shares
}

struct Filling {
    /// The fraction of each resource that is left.
    left: Fractions,
    level: f64,
}

impl Filling {
    /// Raises the level until a resource is used up. Returns how many tenants have all that they demand by then, and
    /// the resource; `None` if all have.
    fn fill(&mut self, growing: &[(usize, &Demand)]) -> Option<(usize, usize)> {
        let rates = self.rates(growing);
        for (at, ((_, demand), rates)) in growing.iter().zip(&rates).enumerate() {
            let until = |(left, rate): (&f64, &f64)| match *rate > 0.0 {
                true => self.level + left.max(0.0) / rate,
                false => f64::INFINITY,
            };
            let levels = self.left.iter().zip(rates).map(until).enumerate();
            let (full, until) = levels.min_by(|a, b| a.1.total_cmp(&b.1))?;
            let end = demand.end();
            let rise = until.min(end) - self.level;
            for (left, rate) in self.left.iter_mut().zip(rates) {
                *left -= rate * rise.max(0.0);
            }
            self.level = self.level.max(until.min(end));
            if until < end {
                return Some((at, full));
            }
        }
        None
    }

    /// The rates of the tenants from each one on, summed from the last one, so that a large weight costs no precision.
    fn rates(&self, growing: &[(usize, &Demand)]) -> Vec<Fractions> {
        let mut sum: Fractions = self.left.iter().map(|_| 0.0).collect();
        let mut rates: Vec<Fractions> = Vec::with_capacity(growing.len());
        for (_, demand) in growing.iter().rev() {
            for (resource, sum) in sum.iter_mut().enumerate() {
                *sum += demand.rate(resource);
            }
            rates.push(sum.clone());
        }
        rates.reverse();
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(demands: &[(&[f64], f64)]) -> Vec<f64> {
        let demands = demands.iter().map(|&(fractions, weight)| Demand {
            fractions: fractions.iter().copied().collect(),
            weight,
        });
        entitled(&demands.collect::<Vec<_>>())
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        let all = found.iter().zip(expected).all(is_near);
        assert!(all && found.len() == expected.len(), "{found:?}");
    }

    #[test]
    fn what_one_tenant_does_not_demand_is_divided_again() {
        assert_near(&shares(&[(&[0.1], 1.0), (&[9.0], 1.0)]), &[0.1, 0.9]);
        let three = [(&[0.2][..], 1.0), (&[0.5], 1.0), (&[2.0], 1.0)];
        assert_near(&shares(&three), &[0.2, 0.4, 0.4]);
        assert_near(&shares(&[(&[0.0], 1.0), (&[0.4], 1.0)]), &[0.0, 0.4]);
        assert_near(&shares(&[]), &[]);
    }

    #[test]
    fn weights_count() {
        assert_near(&shares(&[(&[5.0], 3.0), (&[5.0], 1.0)]), &[0.75, 0.25]);
        // A weight of 10⁹ leaves what it does not demand to the others, in equal parts.
        let heavy = [(&[0.5][..], 1e9), (&[1.0], 1.0), (&[1.0], 1.0)];
        assert_near(&shares(&heavy), &[0.5, 0.25, 0.25]);
    }

    #[test]
    fn a_resource_that_others_leave_may_be_used_up() {
        // The example of the DRF paper: 3 CPU-heavy tasks and 2 memory-heavy ones become shares of two thirds each.
        let drf = [(&[1.0, 4.0 / 18.0 * 9.0][..], 1.0), (&[3.0, 0.5], 1.0)];
        let [a, b] = shares(&drf)[..] else { panic!() };
        assert!(
            (a - b).abs() < 1e-9 && (a - 2.0 / 3.0).abs() < 0.2,
            "{a} {b}"
        );
        // Tenants without a resource in common do not share.
        assert_near(
            &shares(&[(&[2.0, 0.0], 1.0), (&[0.0, 2.0], 1.0)]),
            &[1.0, 1.0],
        );
        // The second resource is left to the tenant that demands it alone.
        let mixed = [
            (&[2.0, 0.0][..], 1.0),
            (&[2.0, 0.0], 1.0),
            (&[0.0, 0.7], 1.0),
        ];
        assert_near(&shares(&mixed), &[0.5, 0.5, 0.7]);
    }

    proptest! {
        #[test]
        fn no_resource_is_divided_twice_and_none_is_left_in_demand(
            tenants in prop::collection::vec((0.0..2.0f64, 0.0..2.0f64, 0.1..10.0f64), 1..12),
        ) {
            let demands: Vec<Demand> = tenants
                .iter()
                .map(|&(a, b, weight)| Demand { fractions: [a, b].into_iter().collect(), weight })
                .collect();
            let found = entitled(&demands);
            let weights: f64 = tenants.iter().map(|it| it.2).sum();
            let used = |resource: usize| -> f64 {
                let parts = demands.iter().zip(&found).filter(|(it, _)| it.dominant() > 0.0);
                parts.map(|(it, share)| share / it.weight * it.rate(resource)).sum()
            };
            prop_assert!(used(0) <= 1.0 + 1e-9 && used(1) <= 1.0 + 1e-9);
            for (demand, share) in demands.iter().zip(&found) {
                prop_assert!(*share <= demand.dominant() + 1e-9);
                // The part by weight is guaranteed.
                let part = (demand.weight / weights).min(demand.dominant());
                prop_assert!(*share >= part - 1e-9, "{share} below {part}");
            }
        }
    }
}
