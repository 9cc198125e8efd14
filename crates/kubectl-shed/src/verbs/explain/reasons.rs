//! Reasons of decisions, in words, with what would change them. Pure.

use serde::Serialize;
use shed::api::{DecisionRecord, TASKS_PENDING, Verdict};
use shed::conditions::messages::{self, NAMED};
use shed_core::plan::RefusalReason;
use shed_core::snapshot::KillKind;

/// Why, and what would change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub why: String,
    /// Absent if nothing needs to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Reason {
    /// With both texts changed.
    pub fn map(self, change: impl Fn(String) -> String) -> Self {
        Self {
            why: change(self.why),
            advice: self.advice.map(change),
        }
    }
}

/// A reason; the advice is absent if it is empty.
pub fn reason(why: impl Into<String>, advice: &str) -> Reason {
    Reason {
        why: why.into(),
        advice: (!advice.is_empty()).then(|| advice.to_owned()),
    }
}

/// The reason of a decision. A reason of a newer operator is shown as it is.
pub fn of(decision: &DecisionRecord) -> Reason {
    let name = decision.reason.as_str();
    let known = match decision.verdict {
        Verdict::Refused => named(name).map(refusal),
        Verdict::Stopped => named(name).map(stop),
        Verdict::Granted => grant(name).map(|why| reason(why, "")),
        Verdict::Observed => Some(reason(
            "spec.speculation.mode is Observe, so shed only reports this clone",
            "set spec.speculation.mode to Enabled",
        )),
    };
    known.unwrap_or_else(|| reason(name, ""))
}

/// The variant of an enum of the core with this name.
fn named<T: serde::de::DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(name.into()).ok()
}

fn grant(name: &str) -> Option<&'static str> {
    Some(match name {
        "Straggler" => "the task was late, and a clone raised the job's PoCD",
        "Admitted" => "capacity was free",
        "EndsLater" => "the task was expected to end later than a new attempt would",
        "Saves" => "one more attempt was likely to save machine time",
        "Overdue" => "the rest of the attempt was long, compared with the mean of an attempt",
        "Copies" => "the policy runs copies of each task",
        "Late" => "the task was late, and one more attempt made a miss less likely",
        _ => return None,
    })
}

/// Every reason for which a straggler gets no clone.
pub fn refusal(why: RefusalReason) -> Reason {
    match why {
        RefusalReason::Capacity => reason(
            "no capacity was left for a clone",
            "add nodes, raise the operator's --capacity-share, or wait until other attempts finish",
        ),
        RefusalReason::NoNode => reason(
            "no node that the job may use had enough free capacity for a clone",
            "request less in the pod template, allow more nodes, or add one",
        ),
        RefusalReason::Hopeless => reason(
            "no clone could finish before the deadline",
            "move the deadline, or let tasks report checkpoints and set spec.resume: Checkpoint, so that clones start later in \
             the task",
        ),
        RefusalReason::Maximum => reason(
            "the task had the maximum number of clones",
            "raise spec.speculation.maxClonesPerTask",
        ),
        RefusalReason::CloneFailures => reason(
            "two clones of the task failed",
            "read the logs of the failed clones; a task that cannot run twice needs spec.idempotency: None",
        ),
        RefusalReason::Disrupted => reason(
            "a clone of the task was evicted or lost recently",
            "nothing: shed tries again a little later. Give clones a higher priority if they are preempted often",
        ),
        RefusalReason::NotIdempotent => reason(
            "spec.idempotency: None declares that two copies of a task do harm",
            "create the job with spec.idempotency: Safe if copies are harmless, or Fenced to let one of them publish",
        ),
        RefusalReason::Observe => reason(
            "spec.speculation.mode is Observe",
            "set spec.speculation.mode to Enabled",
        ),
        RefusalReason::Budget => reason(
            "the policy's own limit of clones was reached",
            "nothing: the limit frees itself when clones end. An administrator can raise it in the operator's --policy",
        ),
        RefusalReason::Work => reason(
            "the planning pass ran out of its work budget",
            "nothing: the next pass begins with this job. If it lasts, the operator needs more CPU",
        ),
        RefusalReason::Target => reason(
            "the job's PoCD has reached spec.targetPoCD",
            "raise spec.targetPoCD",
        ),
        RefusalReason::Stopped => reason(
            "an administrator stopped new clones",
            "remove the annotation shed.dev/clones: stop of the job's namespace or of shed's namespace",
        ),
        RefusalReason::JobBudget => reason(
            "the limit of the job's clones was used up: the lowest of its own, its namespace's and the cluster's",
            "raise spec.speculation.budget, or ask an administrator to raise shed.dev/clone-budget of the Namespace or cloneBudget of the chart",
        ),
        RefusalReason::Queue => reason(
            "the job's queue has admitted one attempt for each task, and none for clones",
            "nothing: shed starts no clones of a Job that Kueue admits",
        ),
    }
}

/// Every reason for which shed stops an attempt.
pub fn stop(why: KillKind) -> Reason {
    match why {
        KillKind::Prune => reason(
            "a sibling of it was kept, and this attempt would have gained too little",
            "",
        ),
        KillKind::Evict => reason(
            "a first attempt needed the slot of this clone; a sibling continues",
            "",
        ),
        KillKind::Replace => reason(
            "the attempt could not start: its image, its configuration or its node",
            "read the condition AttemptsBlocked",
        ),
        KillKind::Restart => reason(
            "it was so slow that a new attempt was expected to finish earlier",
            "",
        ),
        KillKind::Preempt => reason(
            "a more urgent job needed its slot; the task resumes from its checkpoint",
            "set spec.preemption to Never",
        ),
        KillKind::Abandon => reason(
            "its node does not report its end, so another attempt replaces it",
            "",
        ),
        KillKind::Settle => reason("a sibling won the task", ""),
        KillKind::Suspend => reason("the job was suspended", "set spec.suspend to false"),
        KillKind::JobEnd => reason("the job ended", ""),
        KillKind::Surplus => reason(
            "its task is not needed any more, or spec.parallelism was lowered",
            "",
        ),
    }
}

/// Why tasks wait for an attempt.
pub fn waiting(name: &str) -> Reason {
    match messages::row(TASKS_PENDING, name) {
        // The details of this job are in its conditions.
        Some(row) => reason(
            row.message.replace("{}", "…"),
            if row.help == NAMED { "" } else { row.help },
        ),
        None => reason(name, ""),
    }
}
