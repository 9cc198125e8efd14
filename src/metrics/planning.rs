//! Metrics of planning passes.

use prometheus::{Histogram, IntCounter, Result, exponential_buckets};
use shed_core::plan_check::Rule;

use crate::registrar::{Counters, Registrar};

const RULES: [Rule; 20] = [
    Rule::UnknownTarget,
    Rule::WrongSource,
    Rule::KillTarget,
    Rule::KillRule,
    Rule::Accounting,
    Rule::JobEnd,
    Rule::Order,
    Rule::Capacity,
    Rule::Placement,
    Rule::Surge,
    Rule::Parallelism,
    Rule::LaunchKind,
    Rule::CloneCount,
    Rule::CloneStop,
    Rule::CloneBudget,
    Rule::LaunchTarget,
    Rule::Speculation,
    Rule::Preemption,
    Rule::NeverTwo,
    Rule::LastAttempt,
];

/// Metrics of planning passes.
pub struct PlanningMetrics {
    /// Time of one whole pass.
    pub pass_seconds: Histogram,
    /// Time of one decision.
    pub decide_seconds: Histogram,
    /// Slices that `plan_check` refused, by rule.
    pub refused: Counters<1>,
    /// Decisions that panicked.
    pub panics: IntCounter,
    /// Job snapshots that were rejected; such jobs get no clones.
    pub jobs_rejected: IntCounter,
    /// Jobs that a planning pass skipped because its work budget was used up.
    pub jobs_cut_short: IntCounter,
}

impl PlanningMetrics {
    /// Registers everything; the series of known rules start at 0.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        // 10 µs to about 5 s.
        let buckets = exponential_buckets(1e-5, 3.0, 13)?;
        let metrics = Self {
            pass_seconds: registrar.histogram(
                "shed_planning_pass_duration_seconds",
                "Duration of one planning pass: observe, decide, check and publish",
                &buckets,
            )?,
            decide_seconds: registrar.histogram(
                "shed_planning_decision_duration_seconds",
                "Duration of the decision in one planning pass",
                &buckets,
            )?,
            refused: registrar.counters(
                "shed_plan_check_refusals_total",
                "Jobs whose part of a plan failed the safety check, by rule",
                ["reason"],
            )?,
            panics: registrar.counter(
                "shed_planning_panics_total",
                "Planning passes that panicked; they launched no clones",
            )?,
            jobs_rejected: registrar.counter(
                "shed_job_snapshots_rejected_total",
                "Inconsistent job snapshots; shed launches no clones for such a job",
            )?,
            jobs_cut_short: registrar.counter(
                "shed_jobs_over_planning_budget_total",
                "Jobs that a planning pass skipped because its work budget was used up",
            )?,
        };
        for rule in RULES {
            let _ = metrics.refused.with([rule.label()]);
        }
        Ok(metrics)
    }
}
