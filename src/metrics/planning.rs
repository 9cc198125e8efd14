//! Metrics of planning passes.

use prometheus::{Histogram, IntCounter, Result, exponential_buckets};
use shed_core::plan_check::Rule;
use shed_core::policy::Policy;

use crate::registrar::{Counters, Gauges, metrics};

const RULES: [Rule; 22] = [
    Rule::UnknownTarget,
    Rule::WrongSource,
    Rule::KillTarget,
    Rule::KillRule,
    Rule::Accounting,
    Rule::JobEnd,
    Rule::Order,
    Rule::Capacity,
    Rule::Share,
    Rule::Placement,
    Rule::Surge,
    Rule::Parallelism,
    Rule::Quota,
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

metrics! {
    /// Metrics of planning passes.
    pub struct PlanningMetrics {
        policy: Gauges<2> = "shed_policy_info",
            "1, with the policy that decides about clones, and the order of first attempts", ["policy", "order"];
        pub pass_seconds: Histogram = "shed_planning_pass_duration_seconds",
            "Duration of one planning pass: observe, decide, check and publish", pass_buckets()?;
        pub decide_seconds: Histogram = "shed_planning_decision_duration_seconds",
            "Duration of the decision in one planning pass", pass_buckets()?;
        pub refused: Counters<1> = "shed_plan_check_refusals_total",
            "Jobs whose part of a plan failed the safety check, by rule", ["reason"];
        pub panics: IntCounter = "shed_planning_panics_total",
            "Planning passes that panicked; they launched no clones";
        pub jobs_rejected: IntCounter = "shed_job_snapshots_rejected_total",
            "Inconsistent job snapshots; shed launches no clones for such a job";
        pub jobs_cut_short: IntCounter = "shed_jobs_over_planning_budget_total",
            "Jobs that a planning pass skipped because its work budget was used up";
    } => Self::show_zeros
}

impl PlanningMetrics {
    /// The operator decides by this policy.
    pub fn show_policy(&self, policy: &Policy) {
        let (name, order) = (policy.speculation.name(), policy.order.to_string());
        self.policy.with([name, &order]).set(1.0);
    }

    fn show_zeros(&self) {
        for rule in RULES {
            let _ = self.refused.with([rule.label()]);
        }
    }
}

/// 10 µs to about 5 s.
fn pass_buckets() -> Result<Vec<f64>> {
    exponential_buckets(1e-5, 3.0, 13)
}
