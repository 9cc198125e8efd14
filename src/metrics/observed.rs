//! What shed would have done for jobs that only observe.

use prometheus::{Counter, IntCounter, Result};

use super::JobLabels;
use crate::observed_clones::Figures;
use crate::registrar::{Gauges, Registrar};

/// Totals over all jobs since this process started.
pub struct ObservedMetrics {
    clones: IntCounter,
    slot_seconds: Counter,
    price: Counter,
    gain: Counter,
}

impl ObservedMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            clones: registrar.counter(
                "shed_observed_clones_total",
                "Clones that shed would have started for jobs with speculation.mode Observe",
            )?,
            slot_seconds: registrar.sum(
                "shed_observed_clone_slot_seconds_total",
                "Expected work of the clones that shed would have started in mode Observe",
            )?,
            price: registrar.sum(
                "shed_observed_price_total",
                "Expected deadlines that other jobs would have lost to these clones",
            )?,
            gain: registrar.sum(
                "shed_observed_gain_total",
                "Expected deadlines that these clones would have gained, as the model estimates",
            )?,
        })
    }

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

/// Series of the jobs most at risk.
pub(super) struct ObservedSeries {
    clones: Gauges<2>,
    slot_seconds: Gauges<2>,
    price: Gauges<2>,
    gain: Gauges<2>,
}

impl ObservedSeries {
    pub(super) fn register(
        mut gauges: impl FnMut(&'static str, &'static str) -> Result<Gauges<2>>,
    ) -> Result<Self> {
        Ok(Self {
            clones: gauges(
                "shed_job_observed_clones",
                "Clones that shed would have started so far for a job with speculation.mode Observe",
            )?,
            slot_seconds: gauges(
                "shed_job_observed_clone_slot_seconds",
                "Expected work of these clones",
            )?,
            price: gauges(
                "shed_job_observed_price",
                "Expected deadlines that other jobs would have lost to these clones",
            )?,
            gain: gauges(
                "shed_job_observed_gain",
                "By how much these clones would have raised PoCD, as the model estimates",
            )?,
        })
    }

    pub(super) fn show(&self, job: &JobLabels, total: &Figures) {
        for (family, value) in [
            (&self.clones, Some(f64::from(total.clones))),
            (&self.slot_seconds, Some(total.slot_seconds)),
            (&self.price, total.price),
            (&self.gain, Some(total.gain)),
        ] {
            if let Some(value) = value {
                family.with([&job.job_namespace, &job.job_name]).set(value);
            }
        }
    }

    pub(super) fn clear(&self) {
        for family in [&self.clones, &self.slot_seconds, &self.price, &self.gain] {
            family.clear();
        }
    }
}
