//! Metrics of attempts: launches, ends, stops, clones, commit grants, refused pods.

use prometheus::{Histogram, IntCounter, Result, exponential_buckets};
use shed_core::plan::{Outcome, RefusalReason};
use shed_core::snapshot::{AttemptKind, KillKind};

use super::disowned_reasons;
use crate::api::reason;
use crate::registrar::{Counters, Registrar};

const KINDS: [AttemptKind; 3] = [
    AttemptKind::Original,
    AttemptKind::Clone,
    AttemptKind::Retry,
];
const OUTCOMES: [Outcome; 5] = [
    Outcome::Superseded,
    Outcome::Failed,
    Outcome::CloneFailed,
    Outcome::Disrupted,
    Outcome::Late,
];
const KILLS: [KillKind; 10] = [
    KillKind::Settle,
    KillKind::Prune,
    KillKind::Evict,
    KillKind::Replace,
    KillKind::Suspend,
    KillKind::JobEnd,
    KillKind::Restart,
    KillKind::Preempt,
    KillKind::Abandon,
    KillKind::Surplus,
];
const REFUSALS: [RefusalReason; 13] = [
    RefusalReason::Capacity,
    RefusalReason::NoNode,
    RefusalReason::Hopeless,
    RefusalReason::Maximum,
    RefusalReason::CloneFailures,
    RefusalReason::Disrupted,
    RefusalReason::NotIdempotent,
    RefusalReason::Observe,
    RefusalReason::Budget,
    RefusalReason::Work,
    RefusalReason::Target,
    RefusalReason::Stopped,
    RefusalReason::JobBudget,
];
const POD_REFUSALS: [&str; 4] = [
    reason::QUOTA_EXCEEDED,
    reason::POD_FORBIDDEN,
    reason::POD_INVALID,
    reason::POD_CREATION_FAILED,
];
/// Outcome label of an attempt that won.
pub const WON: &str = "won";

/// Metrics of attempts.
pub struct AttemptMetrics {
    /// Attempts launched, by kind.
    pub launched: Counters<1>,
    /// Attempts finished, by kind and outcome.
    pub ended: Counters<2>,
    /// Attempts stopped, by rule.
    pub kills: Counters<1>,
    /// Time from the observation that an attempt must stop to the answer to its delete.
    pub stop_seconds: Histogram,
    /// Tasks won by a clone.
    pub clone_wins: IntCounter,
    /// Clones that the policy requested and did not get, by reason.
    pub clones_refused: Counters<1>,
    /// Attempts that received a commit grant.
    pub grants: IntCounter,
    /// Polls and grants to which a fenced attempt's agent did not respond.
    pub fence_unanswered: IntCounter,
    /// Pods that the apiserver refused, by reason.
    pub pods_refused: Counters<1>,
    /// Pods that carry a job's label but are not its attempts, by reason.
    pub pods_disowned: Counters<1>,
}

impl AttemptMetrics {
    /// Registers everything. A counter that first appears with 1 never shows an increase, so the known series start
    /// at 0.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let metrics = Self {
            launched: registrar.counters(
                "shed_attempts_launched_total",
                "Attempts launched, by kind",
                ["kind"],
            )?,
            ended: registrar.counters(
                "shed_attempts_finished_total",
                "Attempts finished, by kind and outcome",
                ["kind", "outcome"],
            )?,
            kills: registrar.counters(
                "shed_attempts_stopped_total",
                "Attempts that shed stopped, by rule",
                ["reason"],
            )?,
            stop_seconds: registrar.histogram(
                "shed_attempt_stop_duration_seconds",
                "Time from the observation that attempts must stop to the apiserver's answers to their deletes",
                // 1 ms to about 33 s.
                &exponential_buckets(0.001, 2.0, 16)?,
            )?,
            clone_wins: registrar.counter("shed_clone_wins_total", "Tasks won by a clone")?,
            clones_refused: registrar.counters(
                "shed_clones_refused_total",
                "Clones that the policy requested and shed did not launch, by reason",
                ["reason"],
            )?,
            grants: registrar.counter(
                "shed_commit_grants_total",
                "Attempts that received a commit grant",
            )?,
            fence_unanswered: registrar.counter(
                "shed_fence_requests_unanswered_total",
                "Polls and commit grants to which a fenced attempt's agent did not respond",
            )?,
            pods_refused: registrar.counters(
                "shed_pods_refused_total",
                "Attempt pods that the apiserver refused to create, by reason",
                ["reason"],
            )?,
            pods_disowned: registrar.counters(
                "shed_pods_disowned_total",
                "Pods that carry a job's label but are not its attempts, by reason",
                ["reason"],
            )?,
        };
        metrics.show_zeros();
        Ok(metrics)
    }

    fn show_zeros(&self) {
        for kind in KINDS.map(AttemptKind::label) {
            let _ = self.launched.with([kind]);
            for outcome in OUTCOMES.map(Outcome::label).into_iter().chain([WON]) {
                let _ = self.ended.with([kind, outcome]);
            }
        }
        for reason in KILLS.map(KillKind::label) {
            let _ = self.kills.with([reason]);
        }
        for reason in REFUSALS.map(RefusalReason::label) {
            let _ = self.clones_refused.with([reason]);
        }
        for reason in POD_REFUSALS {
            let _ = self.pods_refused.with([reason]);
        }
        for reason in disowned_reasons::ALL {
            let _ = self.pods_disowned.with([reason]);
        }
    }
}
