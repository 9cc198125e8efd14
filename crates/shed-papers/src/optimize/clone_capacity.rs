//! The free capacity for clones and the demand of each clone.

use std::collections::BTreeSet;

use shed_core::resources::Resources;

/// The free capacity for clones: slots, as the papers count, or amounts of cpu, memory and any other resource that
/// the attempts request.
#[derive(Debug, Clone, PartialEq)]
pub struct CloneCapacity {
    /// The free amount per resource.
    free: Vec<i64>,
    /// The demand of an attempt, per resource: one row for each job, or one for all.
    demands: Vec<Vec<i64>>,
    /// A clone's price, per row of `demands`.
    prices: Vec<f64>,
}

impl CloneCapacity {
    /// κ slots; an attempt of any job takes one. Zero or less means no capacity.
    pub fn slots(kappa: i64) -> Self {
        Self {
            free: vec![kappa],
            demands: vec![vec![1]],
            prices: vec![1.0],
        }
    }

    /// Amounts by resource. `demands` has the demand of one attempt for each job, in the input's order. A negative
    /// demand counts as 0.
    pub fn vector(free: &Resources, demands: &[&Resources]) -> Self {
        let all = demands.iter().flat_map(|demand| demand.iter());
        let names: BTreeSet<&str> = all.map(|(name, _)| name).collect();
        let row = |amounts: &Resources| names.iter().map(|name| amounts.get(name)).collect();
        let free: Vec<i64> = row(free);
        let demands: Vec<Vec<i64>> = demands.iter().map(|demand| row(demand)).collect();
        let prices = demands.iter().map(|row| dominant_share(&free, row));
        Self {
            prices: prices.collect(),
            free,
            demands,
        }
    }

    /// The number of attempts of the job that fit; `i64::MAX` if they take nothing.
    pub fn times(&self, job: usize) -> i64 {
        let Some(demand) = self.demands.get(self.row(job)) else {
            return 0;
        };
        let amounts = self.free.iter().zip(demand);
        let times = amounts.filter(|&(_, &amount)| amount > 0);
        // A division takes longer than everything else here, and slots need none.
        let fitting = |free: i64, amount| if amount == 1 { free } else { free / amount };
        times
            .map(|(&free, &amount)| fitting(free.max(0), amount))
            .min()
            .unwrap_or(i64::MAX)
    }

    /// Whether no job's attempt fits any more: known only if all jobs have the same demand.
    pub(super) fn is_exhausted(&self) -> bool {
        self.demands.len() == 1 && self.times(0) == 0
    }

    pub(super) fn take(&mut self, job: usize, attempts: i64) {
        let row = self.row(job);
        let Some(demand) = self.demands.get(row) else {
            return;
        };
        for (free, amount) in self.free.iter_mut().zip(demand) {
            *free = free.saturating_sub(amount.max(&0).saturating_mul(attempts));
        }
    }

    /// The price that divides a gain: 1 for slots. Otherwise it is the largest share of the free amount at the start
    /// that an attempt takes of any resource (its dominant share, as in DRF and DollyMP). It is 0 if the attempt
    /// takes nothing, and +∞ if it takes a resource without any free amount.
    pub fn price(&self, job: usize) -> f64 {
        let price = self.prices.get(self.row(job)).copied();
        price.unwrap_or(f64::INFINITY)
    }

    fn row(&self, job: usize) -> usize {
        if self.demands.len() == 1 { 0 } else { job }
    }
}

fn dominant_share(free: &[i64], demand: &[i64]) -> f64 {
    let amounts = free.iter().zip(demand).filter(|&(_, &amount)| amount > 0);
    amounts
        .map(|(&free, &amount)| amount as f64 / free.max(0) as f64)
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, i64)]) -> Resources {
        Resources::from_pairs(pairs.iter().copied())
    }

    #[test]
    fn slots_are_the_same_for_every_job() {
        let mut capacity = CloneCapacity::slots(3);
        assert_eq!((capacity.times(0), capacity.times(7)), (3, 3));
        assert_eq!((capacity.price(0), capacity.price(7)), (1.0, 1.0));
        capacity.take(7, 2);
        assert!(!capacity.is_exhausted());
        capacity.take(0, 1);
        assert!(capacity.is_exhausted());
        assert_eq!(CloneCapacity::slots(-4).times(0), 0);
    }

    #[test]
    fn the_scarcest_resource_bounds_and_prices_a_job() {
        let free = of(&[("cpu", 4000), ("gpu", 3), ("memory", 1000)]);
        let small = of(&[("cpu", 500), ("memory", 100)]);
        let large = of(&[("cpu", 500), ("gpu", 1)]);
        let mut capacity = CloneCapacity::vector(&free, &[&small, &large]);
        assert_eq!((capacity.times(0), capacity.times(1)), (8, 3));
        assert_eq!((capacity.price(0), capacity.price(1)), (0.125, 1.0 / 3.0));
        capacity.take(1, 3);
        assert_eq!((capacity.times(0), capacity.times(1)), (5, 0));
        assert!(!capacity.is_exhausted());
        assert_eq!(capacity.price(0), 0.125);
        assert_eq!(capacity.times(2), 0);
    }

    #[test]
    fn nothing_asked_costs_nothing_and_what_is_missing_has_no_price() {
        let free = of(&[("cpu", 4000)]);
        let (none, gpu, odd) = (of(&[]), of(&[("gpu", 1)]), of(&[("cpu", -5)]));
        let mut capacity = CloneCapacity::vector(&free, &[&none, &gpu, &odd]);
        assert_eq!(capacity.times(0), i64::MAX);
        assert_eq!(capacity.times(1), 0);
        assert_eq!(capacity.times(2), i64::MAX);
        assert_eq!((capacity.price(0), capacity.price(1)), (0.0, f64::INFINITY));
        capacity.take(2, 9);
        assert_eq!(capacity, CloneCapacity::vector(&free, &[&none, &gpu, &odd]));
    }
}
