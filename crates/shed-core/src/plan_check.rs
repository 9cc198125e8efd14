//! Properties that any plan must have, from any source. Tests and simulated steps require that no violation occurs;
//! the operator refuses the slice of a job that has one. This module repeats no decision: it uses the facts and the
//! rules, not the formulas.

use std::fmt;

use crate::ids::{AttemptNumber, JobKey, TaskIndex};
use crate::snapshot::{AttemptSnapshot, JobSnapshot, TaskSnapshot};

mod budget;
mod planned;
mod settled;
mod shares;

pub use planned::plan_check;
pub use settled::settle_check;

/// The rule that a plan broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The action's job, task or attempt is not in the snapshot.
    UnknownTarget,
    /// `settle` returns an action that `decide` must return, or the reverse.
    WrongSource,
    /// An attempt is stopped twice, or is not live.
    KillTarget,
    /// The stop breaks the rule of its kind.
    KillRule,
    /// A task's winner, counts and end are recorded exactly once.
    Accounting,
    /// The job's end does not follow from its facts.
    JobEnd,
    /// Wins and counts come first, then the job's end, then stops, then first attempts, then clones.
    Order,
    /// A launch raises use above usable capacity.
    Capacity,
    /// A tenant borrows capacity that a waiting attempt of a tenant below its share could have had.
    Share,
    /// A launch names a node that is not eligible for its job or lacks the capacity.
    Placement,
    /// More first attempts wait beyond capacity than the policy allows, or a clone does.
    Surge,
    /// More tasks run at a time than the job allows.
    Parallelism,
    /// More attempts live than a quota outside shed has admitted.
    Quota,
    /// A clone without a live sibling, or a first attempt or retry with one.
    LaunchKind,
    /// A task gets more clones than its limit.
    CloneCount,
    /// A clone is launched although an administrator stopped new clones.
    CloneStop,
    /// Clones exceed the budget of their job.
    CloneBudget,
    /// A launch for a task or job that must not get one at this time.
    LaunchTarget,
    /// Clones are launched or attempts pruned although the user or the policy forbids it.
    Speculation,
    /// An attempt is preempted although the user or the policy forbids it.
    Preemption,
    /// Two copies of a task that must never have two.
    NeverTwo,
    /// An unfinished task loses its last live attempt, other than by a restart or a preemption.
    LastAttempt,
}

impl Rule {
    /// The value of the metric label `rule`.
    pub fn label(self) -> &'static str {
        match self {
            Self::UnknownTarget => "unknown_target",
            Self::WrongSource => "wrong_source",
            Self::KillTarget => "kill_target",
            Self::KillRule => "kill_rule",
            Self::Accounting => "accounting",
            Self::JobEnd => "job_end",
            Self::Order => "order",
            Self::Capacity => "capacity",
            Self::Share => "share",
            Self::Placement => "placement",
            Self::Surge => "surge",
            Self::Parallelism => "parallelism",
            Self::Quota => "quota",
            Self::LaunchKind => "launch_kind",
            Self::CloneCount => "clone_count",
            Self::CloneStop => "clone_stop",
            Self::CloneBudget => "clone_budget",
            Self::LaunchTarget => "launch_target",
            Self::Speculation => "speculation",
            Self::Preemption => "preemption",
            Self::NeverTwo => "never_two",
            Self::LastAttempt => "last_attempt",
        }
    }
}

/// One broken rule, and the job whose slice of the plan is refused for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The job.
    pub job: JobKey,
    /// The rule.
    pub rule: Rule,
    /// The fault, for a log line.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.job, self.rule.label(), self.message)
    }
}

fn find_attempt(
    job: &JobSnapshot,
    index: TaskIndex,
    number: AttemptNumber,
) -> Option<(&TaskSnapshot, &AttemptSnapshot)> {
    let task = job.task(index)?;
    let attempt = task
        .attempts
        .iter()
        .find(|attempt| attempt.number == number)?;
    Some((task, attempt))
}

#[cfg(test)]
mod tests;
