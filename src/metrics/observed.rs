//! What shed would have done for jobs that only observe.

use prometheus::{Counter, IntCounter};

use crate::observed_clones::Figures;
use crate::registrar::metrics;

metrics! {
    /// Totals over all jobs since this process started.
    pub struct ObservedMetrics {
        clones: IntCounter = "shed_observed_clones_total",
            "Clones that shed would have started for jobs with speculation.mode Observe";
        slot_seconds: Counter = "shed_observed_clone_slot_seconds_total",
            "Expected work of the clones that shed would have started in mode Observe";
        price: Counter = "shed_observed_price_total",
            "Sum of the least gains, in expected deadlines met, at which the policy starts these clones";
        gain: Counter = "shed_observed_gain_total",
            "Expected deadlines that these clones would have gained, as the model estimates";
    }
}

impl ObservedMetrics {
    /// Counts clones that are new.
    pub fn add(&self, fresh: &Figures) {
        self.clones.inc_by(u64::from(fresh.clones));
        let sums = [
            (&self.slot_seconds, Some(fresh.slot_seconds)),
            (&self.price, fresh.price),
            (&self.gain, Some(fresh.gain)),
        ];
        for (sum, amount) in sums {
            // A counter refuses less.
            if let Some(amount) = amount.filter(|amount| amount.is_finite() && *amount >= 0.0) {
                sum.inc_by(amount);
            }
        }
    }
}
