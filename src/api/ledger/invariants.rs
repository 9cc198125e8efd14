//! Invariants of every write of a ledger. Tests, the model and the fault campaign check them for
//! each pair of consecutive ledgers.

use std::collections::BTreeSet;

use shed_core::ids::TaskIndex;
use shed_core::snapshot::KillKind;

use super::{AttemptEntry, Ledger};
use crate::api::AttemptCounts;

/// An invariant that a write breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerFault {
    /// The number of launched attempts differs from that of open and counted attempts.
    Unbalanced,
    /// The counts of winners and of tasks done differ.
    Winners,
    /// A count is lower than before.
    CountsWentBack,
    /// A task that was done or had failed is open again, or a final end is no longer final.
    EndTakenBack,
    /// A task has another winner than before.
    WinnerChanged,
    /// A recorded kill has another kind, or is gone while its attempt is open.
    KillChanged,
    /// An attempt must die for a winner or an end of the job that the ledger does not have.
    KillWithoutCause,
    /// A grant has moved before its holder was counted, or a new one has no higher token.
    GrantMoved,
    /// A deadline that is computed once has another instant than before.
    DeadlineChanged,
}

impl LedgerFault {
    /// Description of the fault.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unbalanced => "an attempt is in no bucket or in two",
            Self::Winners => "winners and done tasks differ",
            Self::CountsWentBack => "counts went back",
            Self::EndTakenBack => "an end is taken back",
            Self::WinnerChanged => "a winner changes",
            Self::KillChanged => "a recorded kill changes",
            Self::KillWithoutCause => "a loser is killed before there is a winner",
            Self::GrantMoved => "one attempt of a task may publish at a time",
            Self::DeadlineChanged => "a deadline that is computed once changes",
        }
    }
}

impl AttemptCounts {
    /// Attempts that were launched.
    pub fn launched(&self) -> i64 {
        self.originals + self.clones + self.retries
    }

    /// Attempts whose end is counted.
    pub fn ended(&self) -> i64 {
        let Self {
            originals: _,
            clones: _,
            retries: _,
            clone_wins: _,
            won,
            superseded,
            failed,
            clone_failed,
            disrupted,
            late,
            refused,
        } = self;
        won + superseded + failed + clone_failed + disrupted + late + refused
    }
}

impl Ledger {
    /// The attempts whose end is not counted yet, by task and number.
    pub fn open_attempts(&self) -> impl Iterator<Item = ((u32, u32), &AttemptEntry)> {
        self.tasks.values().flat_map(|task| {
            let attempts = task.attempts.iter();
            attempts.map(|attempt| ((task.index, attempt.number), attempt))
        })
    }
}

/// Invariants that the write of `new` over `old` violates.
pub fn faults(old: &Ledger, new: &Ledger) -> BTreeSet<LedgerFault> {
    let checks = [
        (is_balanced(new), LedgerFault::Unbalanced),
        (
            new.counts.won == i64::from(new.done.len()),
            LedgerFault::Winners,
        ),
        (grew(old, new), LedgerFault::CountsWentBack),
        (ends_stay(old, new), LedgerFault::EndTakenBack),
        (winners_stay(old, new), LedgerFault::WinnerChanged),
        (kills_stay(old, new), LedgerFault::KillChanged),
        (kills_have_causes(new), LedgerFault::KillWithoutCause),
        (grants_hold(old, new), LedgerFault::GrantMoved),
        (deadline_stays(old, new), LedgerFault::DeadlineChanged),
    ];
    let broken = checks.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, fault)| fault).collect()
}

/// Only another rule gives another instant.
fn deadline_stays(old: &Ledger, new: &Ledger) -> bool {
    let both = old.fixed_deadline.as_ref().zip(new.fixed_deadline.as_ref());
    both.is_none_or(|(old, new)| old.rule != new.rule || old.at == new.at)
}

fn is_balanced(ledger: &Ledger) -> bool {
    let open = i64::try_from(ledger.open_attempts().count()).unwrap_or(i64::MAX);
    ledger.counts.launched() == ledger.counts.ended() + open
}

fn grew(old: &Ledger, new: &Ledger) -> bool {
    let (before, after) = (&old.counts, &new.counts);
    let (spent, spends) = (old.slot_time, new.slot_time);
    let time_grew = spent.own <= spends.own && spent.clones <= spends.clones;
    time_grew && before.won <= after.won && before.ended() <= after.ended()
}

/// Only a segment that was taken over needs no attempt, so it has not failed.
fn ends_stay(old: &Ledger, new: &Ledger) -> bool {
    let is_kept = |task: TaskIndex| new.failed.contains(task) || new.is_dropped(task.0);
    old.done.iter().all(|task| new.done.contains(task))
        && old.failed.iter().all(is_kept)
        && (!old.finished || new.finished)
}

fn winners_stay(old: &Ledger, new: &Ledger) -> bool {
    old.tasks.values().all(|before| {
        let after = new.tasks.get(&before.index).and_then(|task| task.winner);
        let pair = before.winner.zip(after);
        pair.is_none_or(|(before, after)| before == after)
    })
}

fn kills_stay(old: &Ledger, new: &Ledger) -> bool {
    let killed = old
        .open_attempts()
        .filter(|(_, entry)| entry.kill.is_some());
    killed.into_iter().all(|((task, number), before)| {
        let after = new.attempt(task, number);
        after.is_none_or(|after| after.kill == before.kill)
    })
}

fn kills_have_causes(ledger: &Ledger) -> bool {
    ledger
        .open_attempts()
        .all(|((task, _), attempt)| match attempt.kill {
            Some(KillKind::Settle) => {
                ledger.done.contains(TaskIndex(task)) || ledger.is_dropped(task)
            }
            Some(KillKind::JobEnd) => ledger.ending.is_some(),
            _ => true,
        })
}

/// A grant stays where it is while its holder's end is not counted, and a new one has a token
/// higher than all before.
fn grants_hold(old: &Ledger, new: &Ledger) -> bool {
    let grant =
        |ledger: &Ledger, task: u32| ledger.tasks.get(&task).and_then(|task| task.grant.clone());
    let tasks = old.tasks.keys().chain(new.tasks.keys());
    let mut kept = tasks.map(|&task| (task, grant(old, task), grant(new, task)));
    new.fence_token >= old.fence_token
        && kept.all(|(task, before, after)| match (before, after) {
            (Some(before), after) if after.as_ref() == Some(&before) => true,
            (before, after) => {
                let is_counted =
                    before.is_none_or(|grant| new.attempt(task, grant.attempt).is_none());
                is_counted && after.is_none_or(|grant| grant.token > old.fence_token)
            }
        })
}

#[cfg(test)]
mod tests {
    use shed_core::fixtures::launch;
    use shed_core::ids::AttemptNumber;
    use shed_core::plan::Outcome;
    use shed_core::snapshot::{AttemptKind, Conclusion};
    use shed_core::time::Instant;

    use super::*;
    use crate::api::RetryRule;

    const TASK: TaskIndex = TaskIndex(0);

    /// Task 0 with an original, a clone, and the commit grant for the original.
    fn race() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.launch(&launch(0, AttemptKind::Original), Instant(0));
        ledger.launch(&launch(0, AttemptKind::Clone), Instant(1));
        ledger.grant(0, 0, Instant(2));
        ledger
    }

    /// The same once the original has won and the clone must die.
    fn won() -> Ledger {
        let mut ledger = race();
        ledger.win(TASK, AttemptNumber(0), Instant(3), None);
        ledger.kill(TASK, AttemptNumber(1), KillKind::Settle, Instant(3));
        ledger
    }

    fn only(old: &Ledger, change: impl FnOnce(&mut Ledger)) -> LedgerFault {
        let mut new = old.clone();
        change(&mut new);
        let faults = faults(old, &new);
        assert_eq!(faults.len(), 1, "{faults:?}");
        *faults.first().unwrap()
    }

    #[test]
    fn a_life_without_faults_has_none() {
        let mut ended = won();
        let retries = RetryRule::PROMPT;
        let bucket = Outcome::Superseded;
        ended.count(TASK, AttemptNumber(1), bucket, retries, Instant(9));
        ended.ending = Some(Conclusion::Complete);
        let mut refused = race();
        refused.refuse(TASK, AttemptNumber(1));
        for (old, new) in [
            (Ledger::default(), race()),
            (race(), won()),
            (won(), ended),
            (race(), refused),
        ] {
            assert_eq!(faults(&old, &new), BTreeSet::new());
        }
    }

    #[test]
    fn each_fault_is_named() {
        let lost = |ledger: &mut Ledger| {
            ledger.tasks.remove(&0);
        };
        assert_eq!(only(&race(), lost), LedgerFault::Unbalanced);
        let twice = |ledger: &mut Ledger| {
            ledger.done.insert(TaskIndex(7));
        };
        assert_eq!(only(&race(), twice), LedgerFault::Winners);
        let back = |ledger: &mut Ledger| {
            ledger.counts.won = 0;
            ledger.counts.superseded = 1;
            ledger.done.remove(TASK);
            ledger.kill(TASK, AttemptNumber(1), KillKind::Settle, Instant(3));
        };
        let mut new = won();
        back(&mut new);
        assert!(faults(&won(), &new).contains(&LedgerFault::CountsWentBack));
        assert!(faults(&won(), &new).contains(&LedgerFault::EndTakenBack));
        let other = |ledger: &mut Ledger| ledger.tasks.get_mut(&0).unwrap().winner = Some(1);
        assert_eq!(only(&won(), other), LedgerFault::WinnerChanged);
        let spared = |ledger: &mut Ledger| {
            ledger.tasks.get_mut(&0).unwrap().attempts[0].kill = None;
        };
        assert_eq!(only(&won(), spared), LedgerFault::KillChanged);
        let early = |ledger: &mut Ledger| {
            ledger.kill(TASK, AttemptNumber(1), KillKind::Settle, Instant(3));
        };
        assert_eq!(only(&race(), early), LedgerFault::KillWithoutCause);
        let moved = |ledger: &mut Ledger| {
            ledger
                .tasks
                .get_mut(&0)
                .unwrap()
                .grant
                .as_mut()
                .unwrap()
                .attempt = 1;
        };
        assert_eq!(only(&race(), moved), LedgerFault::GrantMoved);
    }
}
