//! What must hold of any plan, whoever made it. Tests and simulated steps expect no
//! violation at all; the operator refuses the slice of a job that has one. This module
//! repeats no decision: it knows the facts and the rules, not the formulas.

use std::fmt;

use crate::ids::{AttemptNumber, JobKey, TaskIndex};
use crate::snapshot::{AttemptSnapshot, JobSnapshot, TaskSnapshot};

mod planned;
mod settled;

pub use planned::plan_check;
pub use settled::settle_check;

/// The rule that a plan broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The action's job, task or attempt is not in the snapshot.
    UnknownTarget,
    /// `settle` says what `decide` must say, or the reverse.
    WrongSource,
    /// An attempt is killed twice, or one that does not live.
    KillTarget,
    /// The kill breaks the rule of its kind.
    KillRule,
    /// A task's winner, counts and end are recorded exactly once.
    Accounting,
    /// The job's end does not follow from its facts.
    JobEnd,
    /// Wins and counts come first, then the job's end, then kills, then first attempts, then
    /// clones.
    Order,
    /// A launch takes use above usable capacity.
    Capacity,
    /// A launch names a node that is none of its job's or has no room.
    Placement,
    /// More first attempts wait beyond capacity than the policy allows, or a clone does.
    Surge,
    /// More tasks run at a time than the job allows.
    Parallelism,
    /// A clone without a live sibling, or a first attempt or retry with one.
    LaunchKind,
    /// A task gets more clones than it may.
    CloneCount,
    /// A launch for a task or job that must not get any (any more, or yet).
    LaunchTarget,
    /// Clones are launched or attempts pruned where the user or the policy wants none.
    Speculation,
    /// An attempt makes way where the user or the policy does not let it.
    Preemption,
    /// Two copies of a task of which there must never be two.
    NeverTwo,
    /// An unfinished task loses its last live attempt, other than by a restart or a preemption.
    LastAttempt,
}

impl Rule {
    /// The value of the metric label `rule`.
    #[must_use]
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
            Self::Placement => "placement",
            Self::Surge => "surge",
            Self::Parallelism => "parallelism",
            Self::LaunchKind => "launch_kind",
            Self::CloneCount => "clone_count",
            Self::LaunchTarget => "launch_target",
            Self::Speculation => "speculation",
            Self::Preemption => "preemption",
            Self::NeverTwo => "never_two",
            Self::LastAttempt => "last_attempt",
        }
    }
}

/// One broken rule, and whose slice of the plan to refuse for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The job.
    pub job: JobKey,
    /// The rule.
    pub rule: Rule,
    /// What is wrong, for a log line.
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
