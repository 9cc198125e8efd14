//! Metrics of planning passes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::Why;

/// Metrics of planning passes.
pub struct PlanningMetrics {
    /// Time of one decision.
    pub decide_seconds: Histogram,
    /// Slices that `plan_check` refused.
    pub refused: Family<Why, Counter>,
    /// Decisions that panicked.
    pub panics: Counter,
    /// Job snapshots that were rejected; such jobs get no clones.
    pub jobs_rejected: Counter,
    /// Jobs that a planning pass skipped because its work budget was used up.
    pub jobs_cut_short: Counter,
}

impl PlanningMetrics {
    /// Registers everything.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            // 10 µs to about 5 s.
            decide_seconds: Histogram::new(exponential_buckets(1e-5, 3.0, 13)),
            refused: Family::default(),
            panics: Counter::default(),
            jobs_rejected: Counter::default(),
            jobs_cut_short: Counter::default(),
        };
        registry.register(
            "planning_decision_duration_seconds",
            "Duration of the decision in one planning pass",
            metrics.decide_seconds.clone(),
        );
        registry.register(
            "plan_check_refusals",
            "Jobs whose part of a plan failed the safety check, by rule",
            metrics.refused.clone(),
        );
        registry.register(
            "planning_panics",
            "Planning passes that panicked; they launched no clones",
            metrics.panics.clone(),
        );
        registry.register(
            "job_snapshots_rejected",
            "Inconsistent job snapshots; shed launches no clones for such a job",
            metrics.jobs_rejected.clone(),
        );
        registry.register(
            "jobs_over_planning_budget",
            "Jobs that a planning pass skipped because its work budget was used up",
            metrics.jobs_cut_short.clone(),
        );
        metrics
    }
}
