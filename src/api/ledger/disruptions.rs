//! Back-off after disruptions. A node that refuses pods is the emptiest, so that the scheduler would
//! send every retry there: without a wait about one pod per task and second.

use shed_core::ids::TaskIndex;
use shed_core::snapshot::AttemptKind;
use shed_core::time::{Instant, Span};

use super::Ledger;

/// The wait after the second disruption in a row; it doubles up to `WAIT_LAST`. There is no wait
/// after the first, because drains and preemptions rarely repeat.
const WAIT_FIRST: Span = Span::from_seconds(1);
const WAIT_LAST: Span = Span::from_seconds(60);

/// Age from which an attempt ends the row: the next disruption counts as the first.
const ROW_ENDS: Span = Span::from_seconds(600);

impl Ledger {
    /// Records that an attempt of the task, launched then, ended without the task's fault. Clones
    /// have a wait of their own: the planner gives the task no clone for a while.
    pub(super) fn disrupted(
        &mut self,
        task: TaskIndex,
        kind: AttemptKind,
        launched: Instant,
        now: Instant,
    ) {
        let entry = self.entry(task);
        if kind == AttemptKind::Clone {
            entry.clone_disrupted = Some(now);
            return;
        }
        let before = match now.since(launched) >= ROW_ENDS {
            true => 0,
            false => entry.disruptions,
        };
        entry.disruptions = before.saturating_add(1);
        if let Some(wait) = wait(entry.disruptions) {
            let until = now.plus(wait);
            entry.retry_not_before = entry.retry_not_before.max(Some(until));
        }
    }
}

/// The wait after this number of disruptions in a row: none, 1 s, 2 s, 4 s … 60 s.
fn wait(disruptions: u32) -> Option<Span> {
    let doublings = disruptions.checked_sub(2)?;
    Some(Span(WAIT_FIRST.0 << doublings.min(16)).min(WAIT_LAST))
}

#[cfg(test)]
mod tests {
    use shed_core::ids::AttemptNumber;
    use shed_core::plan::{Move, Outcome};
    use shed_core::snapshot::KillKind;

    use super::*;
    use crate::api::RetryRule;
    use crate::reconcile::mock::launch;

    fn launched(ledger: &mut Ledger, kind: AttemptKind, now: Instant) -> AttemptNumber {
        let Move::Launch(launch) = launch(0, kind) else {
            unreachable!();
        };
        ledger.launch(&launch, now)
    }

    /// The attempt is launched and disrupted a second later; until when the task waits then.
    fn disrupt(ledger: &mut Ledger, kind: AttemptKind, now: Instant) -> Option<Instant> {
        let number = launched(ledger, kind, now);
        let later = now.plus(Span::from_seconds(1));
        ledger.count(
            TaskIndex(0),
            number,
            Outcome::Disrupted,
            RetryRule::PROMPT,
            later,
        );
        ledger.tasks[&0].retry_not_before
    }

    #[test]
    fn disruptions_in_a_row_wait_longer_and_longer() {
        let (mut ledger, mut now, mut waits) = (Ledger::default(), Instant(0), Vec::new());
        for _ in 0..9 {
            let until = disrupt(&mut ledger, AttemptKind::Retry, now);
            now = now.plus(Span::from_seconds(1));
            waits.push(until.map_or(0, |until| until.since(now).0 / 1000));
            now = until.unwrap_or(now);
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(ledger.counts.disrupted, 9);
        assert_eq!(ledger.tasks[&0].disruptions, 9);
        // An attempt that ran for long starts a new row.
        let number = launched(&mut ledger, AttemptKind::Retry, now);
        let lost = Outcome::Disrupted;
        let end = now.plus(ROW_ENDS);
        ledger.count(TaskIndex(0), number, lost, RetryRule::PROMPT, end);
        assert_eq!(ledger.tasks[&0].disruptions, 1);
        assert_eq!(ledger.tasks[&0].retry_not_before, None);
    }

    #[test]
    fn a_clone_that_is_disrupted_holds_up_clones_alone() {
        let mut ledger = Ledger::default();
        for second in 0..3 {
            disrupt(&mut ledger, AttemptKind::Clone, Instant(second * 1000));
        }
        let entry = &ledger.tasks[&0];
        assert_eq!((entry.disruptions, &entry.retry_not_before), (0, &None));
        assert_eq!(entry.clone_disrupted, Some(Instant(3000)));
        launched(&mut ledger, AttemptKind::Retry, Instant(4000));
        assert!(ledger.tasks[&0].clone_disrupted.is_some());
        launched(&mut ledger, AttemptKind::Clone, Instant(4000));
        assert!(ledger.tasks[&0].clone_disrupted.is_none());
    }

    #[test]
    fn abandoned_and_replaced_attempts_count_as_disruptions_once() {
        for (kind, disrupted) in [
            (KillKind::Abandon, 1),
            (KillKind::Replace, 1),
            (KillKind::Prune, 0),
            (KillKind::Suspend, 0),
        ] {
            let mut ledger = Ledger::default();
            let number = launched(&mut ledger, AttemptKind::Original, Instant(0));
            ledger.kill(TaskIndex(0), number, kind, Instant(1000));
            assert!(!ledger.kill(TaskIndex(0), number, kind, Instant(2000)));
            assert_eq!(ledger.tasks[&0].disruptions, disrupted, "{kind:?}");
            let lost = Outcome::Disrupted;
            let end = Instant(9000);
            ledger.count(TaskIndex(0), number, lost, RetryRule::PROMPT, end);
            assert_eq!(ledger.tasks[&0].disruptions, disrupted, "{kind:?}");
        }
    }

    #[test]
    fn an_undisturbed_task_costs_no_bytes_for_it() {
        let mut ledger = Ledger::default();
        launched(&mut ledger, AttemptKind::Original, Instant(0));
        let text = serde_json::to_string(&ledger).unwrap();
        assert!(!text.contains("isrupt"), "{text}");
    }
}
