//! Properties of `settle` for any job.

use proptest::prelude::*;

use crate::fixtures::{AttemptBuilder, at, attempt, job};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{Outcome, Settled};
use crate::plan_check::settle_check;
use crate::settle::{is_late, may_answer_a_kill, settle};
use crate::snapshot::{AttemptState, Conclusion, JobPhase, JobSnapshot, KillKind, TaskSnapshot};

/// The executor's effect of the actions, as far as the next pass depends on it.
fn apply(job: &mut JobSnapshot, actions: &[Settled]) {
    for action in actions {
        match action {
            Settled::Win { task, attempt, .. } => {
                job.done.insert(*task);
                entry(job, *task).winner = Some(*attempt);
                entry(job, *task).attempts.retain(|a| a.number != *attempt);
            }
            Settled::Count {
                task,
                attempt,
                outcome,
            } => {
                let task = entry(job, *task);
                task.failures += u32::from(*outcome == Outcome::Failed);
                task.attempts.retain(|a| a.number != *attempt);
            }
            Settled::FailTask { task } => {
                job.failed.insert(*task);
            }
            Settled::End(conclusion) => job.phase = JobPhase::Ending(*conclusion),
            Settled::Finish(_) => job.tasks.clear(),
            Settled::Kill(kill) => {
                let attempts = &mut entry(job, kill.task).attempts;
                let victim = attempts.iter_mut().find(|a| a.number == kill.attempt);
                victim.unwrap().kill = Some(kill.kind);
            }
        }
    }
}

fn entry(job: &mut JobSnapshot, index: TaskIndex) -> &mut TaskSnapshot {
    let found = job.tasks.iter_mut().find(|task| task.index == index);
    found.unwrap()
}

fn any_attempt() -> impl Strategy<Value = AttemptBuilder> {
    let kill = proptest::option::weighted(0.3, any_kill());
    let state = (0..10u8, any::<bool>());
    (state, 10..90u32, kill).prop_map(|((state, in_deletion), finished, kill)| {
        let finished = f64::from(finished);
        let built = match state {
            0 => attempt(0).launching(),
            1 => attempt(0).pending(),
            2 => attempt(0).stuck(finished),
            3 => attempt(0).succeeded(finished),
            4 => attempt(0).failed(finished),
            5 => attempt(0).disrupted(finished),
            6 => attempt(0).lost(),
            7 => attempt(0).out_of_reach(),
            _ => attempt(0),
        };
        let built = match in_deletion {
            true => built.in_deletion(),
            false => built,
        };
        match kill {
            Some(kind) => built.killed(kind, 50.0),
            None => built,
        }
    })
}

fn any_kill() -> impl Strategy<Value = KillKind> {
    prop_oneof![
        Just(KillKind::Settle),
        Just(KillKind::Prune),
        Just(KillKind::Evict),
        Just(KillKind::Replace),
        Just(KillKind::Suspend),
        Just(KillKind::JobEnd),
        Just(KillKind::Abandon),
    ]
}

fn any_job() -> impl Strategy<Value = JobSnapshot> {
    let tasks = proptest::collection::vec(
        (
            proptest::collection::vec(any_attempt(), 0..4),
            0..3u32,
            0..8u8,
        ),
        0..5,
    );
    let rules = (any::<bool>(), any::<bool>(), 0..3u32, 0..6u8);
    (tasks, rules, 0..100u32).prop_map(|(tasks, (hard, suspended, limit, phase), facts)| {
        let mut builder = job("any")
            .tasks(tasks.len() as u32)
            .backoff_limit_per_index(limit)
            .facts_as_of(f64::from(facts))
            .with(|job| job.rules.suspend = suspended);
        if hard {
            builder = builder.stops_at_deadline();
        }
        if phase == 0 {
            builder = builder.ending(Conclusion::DeadlineExceeded);
        }
        for (index, (attempts, failures, fate)) in (0u32..).zip(tasks) {
            builder = builder.task_with(index, attempts, |task| {
                for (number, attempt) in (0u32..).zip(&mut task.attempts) {
                    attempt.number = AttemptNumber(number);
                }
                task.failures = failures;
                task.winner = (fate == 0).then_some(AttemptNumber(9));
            });
            if fate == 1 {
                builder = builder.failed([index]);
            }
        }
        builder.build()
    })
}

proptest! {
    #[test]
    fn settle_obeys_its_rules_and_comes_to_rest(mut job in any_job(), now in 0..100u32) {
        let now = at(f64::from(now));
        for pass in 0..4 {
            let actions = settle(now, &job);
            prop_assert_eq!(settle_check(&job, &actions), vec![]);
            let finished = actions.iter().any(|a| matches!(a, Settled::Finish(_)));
            if actions.is_empty() || finished {
                return Ok(());
            }
            prop_assert!(pass < 3, "still acting: {:?}", actions);
            apply(&mut job, &actions);
        }
    }

    #[test]
    fn settle_loses_no_success_in_time(job in any_job(), now in 0..100u32) {
        let actions = settle(at(f64::from(now)), &job);
        for task in job.tasks.iter().filter(|task| !job.has_ended(task.index)) {
            let success = task.attempts.iter().any(|attempt| {
                matches!(attempt.state, AttemptState::Succeeded { finished }
                    if !is_late(&job, finished) && !may_answer_a_kill(attempt))
            });
            let wins = actions
                .iter()
                .filter(|a| matches!(a, Settled::Win { task: index, .. } if *index == task.index))
                .count();
            prop_assert_eq!(wins, usize::from(success));
        }
    }
}
