//! Condition types and reasons that shed renamed before its first release. The status of an unfinished
//! job changes to the new names in its next write; a finished job keeps the names that it ended with.

use super::conditions::*;

/// Condition types: old name, new name.
pub const TYPES: &[(&str, &str)] = &[
    ("TasksWaiting", TASKS_PENDING),
    ("EndUnconfirmed", TERMINATION_UNCONFIRMED),
    ("CheckpointsLimited", CHECKPOINTS_NOT_DURABLE),
];

/// Reasons: old name, new name.
pub const REASONS: &[(&str, &str)] = &[
    ("AllConfirmed", reason::TERMINATION_CONFIRMED),
    ("AllDurable", reason::CHECKPOINTS_DURABLE),
    ("Answers", reason::PROGRESS_REACHABLE),
    ("AttemptEnding", reason::ATTEMPT_TERMINATING),
    ("AttemptsStart", reason::ATTEMPTS_STARTING),
    ("BookLost", reason::LEDGER_LOST),
    ("CapacityKept", reason::HEADROOM_RESERVED),
    ("CapacityShort", reason::INSUFFICIENT_CAPACITY),
    ("CompanionNotCreated", reason::COMPANION_CREATION_FAILED),
    ("DeadlineTooEarly", reason::DEADLINE_INFEASIBLE),
    ("FailedBefore", reason::FAILED_BEFORE_DEADLINE),
    ("FinishedInTime", reason::DEADLINE_MET),
    ("KubeletSilent", reason::TERMINATION_NOT_REPORTED),
    ("NoAnswer", reason::NO_RESPONSE),
    ("NoRoom", reason::INSUFFICIENT_CAPACITY),
    ("NodeSilent", reason::NODE_UNREACHABLE),
    ("ObjectSize", reason::OBJECT_SIZE_LIMIT),
    ("OneNodeAtATime", reason::SINGLE_NODE_ACCESS_MODE),
    ("ReconcileOverran", reason::RECONCILE_TIMED_OUT),
    ("SpecMended", reason::SPEC_CORRECTED),
    ("Straggler", reason::TASKS_STRAGGLING),
    ("TargetReached", reason::TARGET_REACHABLE),
    ("TasksRun", reason::NO_TASKS_PENDING),
    ("TimesUnknown", reason::DURATIONS_UNKNOWN),
];

/// Types that shed alone writes. Only their reasons are renamed: other controllers choose the reasons
/// of other types.
const OWN: &[&str] = &[
    ADOPTION_REFUSED,
    ATTEMPTS_BLOCKED,
    CHECKPOINTS_NOT_DURABLE,
    DEADLINE_AT_RISK,
    DEADLINE_FEASIBLE,
    DEADLINE_MISSED,
    PROGRESS_UNREACHABLE,
    QUARANTINED,
    TASKS_PENDING,
    TERMINATION_UNCONFIRMED,
    VOLUME_NOT_SHARED,
];

/// The present type of a condition.
#[must_use]
pub fn present_type(type_: &str) -> &str {
    present(TYPES, type_)
}

/// The present reason of a condition of this present type.
#[must_use]
pub fn present_reason<'a>(type_: &str, reason: &'a str) -> &'a str {
    let is_own = OWN.contains(&type_) || reason == "SpecMended" || reason == "FinishedInTime";
    match is_own {
        true => present(REASONS, reason),
        false => reason,
    }
}

fn present<'a>(table: &[(&str, &'static str)], name: &'a str) -> &'a str {
    let found = table.iter().find(|(old, _)| *old == name);
    found.map_or(name, |(_, new)| new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_renames_shows_these_tables() {
        let page = include_str!("../../docs/reference/renames.md");
        for (old, new) in TYPES.iter().chain(REASONS) {
            let row = format!("| `{old}` | `{new}` |\n");
            assert!(page.contains(&row), "docs/reference/renames.md lacks {row}");
        }
    }

    #[test]
    fn reasons_of_foreign_conditions_stay() {
        assert_eq!(present_reason("Evicted", "NoRoom"), "NoRoom");
        let ours = present_reason(DEADLINE_FEASIBLE, "NoRoom");
        assert_eq!(ours, reason::INSUFFICIENT_CAPACITY);
    }
}
