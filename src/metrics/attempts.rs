//! Metrics of attempts: launches, ends, stops, clones, commit grants, refused pods.

use prometheus::{Histogram, IntCounter, exponential_buckets};
use shed_core::plan::{Outcome, RefusalReason};
use shed_core::snapshot::{AttemptKind, KillKind};

use super::disowned_reasons;
use crate::api::reason;
use crate::registrar::{Counters, metrics};

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
const REFUSALS: [RefusalReason; 14] = [
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
    RefusalReason::Queue,
];
const POD_REFUSALS: [&str; 4] = [
    reason::QUOTA_EXCEEDED,
    reason::POD_FORBIDDEN,
    reason::POD_INVALID,
    reason::POD_CREATION_FAILED,
];
/// Outcome label of an attempt that won.
pub const WON: &str = "won";

metrics! {
    /// Metrics of attempts.
    pub struct AttemptMetrics {
        pub launched: Counters<1> = "shed_attempts_launched_total",
            "Attempts launched, by kind", ["kind"];
        pub ended: Counters<2> = "shed_attempts_finished_total",
            "Attempts finished, by kind and outcome", ["kind", "outcome"];
        pub kills: Counters<1> = "shed_attempts_stopped_total",
            "Attempts that shed stopped, by rule", ["reason"];
        // 1 ms to about 33 s.
        pub stop_seconds: Histogram = "shed_attempt_stop_duration_seconds",
            "Time from the observation that attempts must stop to the apiserver's answers to their deletes",
            exponential_buckets(0.001, 2.0, 16)?;
        pub clone_wins: IntCounter = "shed_clone_wins_total",
            "Tasks won by a clone";
        pub clones_refused: Counters<1> = "shed_clones_refused_total",
            "Clones that the policy requested and shed did not launch, by reason", ["reason"];
        pub grants: IntCounter = "shed_commit_grants_total",
            "Attempts that received a commit grant";
        pub fence_unanswered: IntCounter = "shed_fence_requests_unanswered_total",
            "Polls and commit grants to which a fenced attempt's agent did not respond";
        pub pods_refused: Counters<1> = "shed_pods_refused_total",
            "Attempt pods that the apiserver refused to create, by reason", ["reason"];
        pub pods_disowned: Counters<1> = "shed_pods_disowned_total",
            "Pods that carry a job's label but are not its attempts, by reason", ["reason"];
    } => Self::show_zeros
}

impl AttemptMetrics {
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
