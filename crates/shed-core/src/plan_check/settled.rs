//! Properties that the actions of `settle` must have.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{Kill, Outcome, Settled};
use crate::plan_check::{Rule, Violation, find_attempt};
use crate::settle::may_be_abandoned;
use crate::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, FailureRule, Idempotency, JobPhase,
    JobSnapshot, KillKind, TaskSnapshot,
};

/// The faults in the actions of `settle` for a job.
pub fn settle_check(job: &JobSnapshot, actions: &[Settled]) -> Vec<Violation> {
    let mut check = SettleCheck {
        job,
        winners: BTreeMap::new(),
        accounted: BTreeSet::new(),
        killed: BTreeSet::new(),
        failed: BTreeSet::new(),
        end: None,
        runs_too_many: runs_too_many(job),
        step: 0,
        violations: Vec::new(),
    };
    for task in &job.tasks {
        check
            .winners
            .extend(task.winner.map(|number| (task.index, number)));
    }
    for action in actions {
        check.action(action);
    }
    check.violations
}

struct SettleCheck<'a> {
    job: &'a JobSnapshot,
    winners: BTreeMap<TaskIndex, AttemptNumber>,
    /// Attempts that won or were counted.
    accounted: BTreeSet<(TaskIndex, AttemptNumber)>,
    killed: BTreeSet<(TaskIndex, AttemptNumber)>,
    failed: BTreeSet<TaskIndex>,
    end: Option<Conclusion>,
    /// Whether more tasks run than the job allows, or more attempts than its quota.
    runs_too_many: bool,
    /// 0 wins and counts, 1 the job's end, 2 stops.
    step: u8,
    violations: Vec<Violation>,
}

fn runs_too_many(job: &JobSnapshot) -> bool {
    let tasks = job.tasks.iter();
    let running = tasks.filter(|task| task.live().next().is_some()).count();
    let live: usize = job.tasks.iter().map(|task| task.live().count()).sum();
    let admitted = job.attempts_admitted();
    let exceeds = |admitted: u32| live > admitted as usize;
    running > job.rules.parallelism as usize || admitted.is_some_and(exceeds)
}

impl<'a> SettleCheck<'a> {
    fn action(&mut self, action: &Settled) {
        let step = match action {
            Settled::Win { .. } | Settled::Count { .. } | Settled::FailTask { .. } => 0,
            Settled::End(_) | Settled::Finish(_) => 1,
            Settled::Kill(_) => 2,
        };
        if step < self.step {
            self.report(Rule::Order, format!("{action:?} comes too late"));
        }
        self.step = self.step.max(step);
        match action {
            Settled::Kill(kill) => self.kill(kill),
            Settled::Win { task, attempt, .. } => self.win(*task, *attempt),
            Settled::Count {
                task,
                attempt,
                outcome,
            } => self.count(*task, *attempt, *outcome),
            Settled::FailTask { task } => self.fail_task(*task),
            Settled::End(conclusion) => self.end(*conclusion),
            Settled::Finish(_) => self.finish(),
        }
    }

    fn report(&mut self, rule: Rule, message: String) {
        self.violations.push(Violation {
            job: self.job.key.clone(),
            rule,
            message,
        });
    }

    fn find(
        &mut self,
        index: TaskIndex,
        number: AttemptNumber,
    ) -> Option<(&'a TaskSnapshot, &'a AttemptSnapshot)> {
        let found = find_attempt(self.job, index, number);
        if found.is_none() {
            let message = format!("task {index} has no attempt {number}");
            self.report(Rule::UnknownTarget, message);
        }
        found
    }

    fn win(&mut self, index: TaskIndex, number: AttemptNumber) {
        let Some((task, attempt)) = self.find(index, number) else {
            return;
        };
        if self.is_fenced() && task.granted_at(number).is_none() {
            let message = format!("task {index} attempt {number} had no commit grant");
            self.report(Rule::Accounting, message);
        }
        let had_fate = self.job.has_ended(index) || self.failed.contains(&index);
        if had_fate || self.winners.insert(index, number).is_some() {
            self.report(Rule::Accounting, format!("task {index} wins twice"));
        }
        if !matches!(attempt.state, AttemptState::Succeeded { .. }) {
            let message = format!("task {index} attempt {number} has not succeeded");
            self.report(Rule::Accounting, message);
        }
        self.account(index, number);
    }

    fn is_fenced(&self) -> bool {
        self.job.rules.idempotency == Idempotency::Fenced
    }

    fn account(&mut self, index: TaskIndex, number: AttemptNumber) {
        if !self.accounted.insert((index, number)) {
            let message = format!("task {index} attempt {number} is counted twice");
            self.report(Rule::Accounting, message);
        }
    }

    fn count(&mut self, index: TaskIndex, number: AttemptNumber, outcome: Outcome) {
        let Some((task, attempt)) = self.find(index, number) else {
            return;
        };
        self.account(index, number);
        let is_abandoned = attempt.kill == Some(KillKind::Abandon);
        let is_given_up = attempt.kill.is_some() && !is_abandoned;
        let superseded = is_given_up || self.winners.contains_key(&index);
        let right = match outcome {
            Outcome::Superseded => superseded || self.job.has_ended(index),
            Outcome::Failed | Outcome::CloneFailed => {
                let failed = match attempt.state {
                    AttemptState::Failed { .. } => true,
                    AttemptState::Succeeded { .. } => {
                        self.is_fenced() && task.granted_at(number).is_none()
                    }
                    _ => false,
                };
                !superseded && !is_abandoned && failed
            }
            Outcome::Disrupted => {
                let failed = matches!(attempt.state, AttemptState::Failed { .. });
                let is_lost = attempt.state == AttemptState::Lost;
                !superseded && (failed || is_lost || is_abandoned)
            }
            Outcome::Late => !superseded && matches!(attempt.state, AttemptState::Succeeded { .. }),
        };
        if !right || attempt.holds_capacity() || task.winner == Some(number) {
            let message = format!(
                "task {index} attempt {number} cannot be {}",
                outcome.label()
            );
            self.report(Rule::Accounting, message);
        }
    }

    fn fail_task(&mut self, index: TaskIndex) {
        let had_fate = self.job.has_ended(index) || self.winners.contains_key(&index);
        if had_fate || !self.failed.insert(index) {
            self.report(
                Rule::Accounting,
                format!("task {index} has a result already"),
            );
        }
        let task = self.job.task(index);
        let by_rule = |attempt: &AttemptSnapshot| {
            attempt.failure_rule == Some(FailureRule::FailTask)
                && matches!(attempt.state, AttemptState::Failed { .. })
        };
        let may_win = |task: &TaskSnapshot| {
            let attempts = &task.attempts;
            let awaited = |attempt: &AttemptSnapshot| {
                attempt.holds_capacity() && attempt.kill != Some(KillKind::Abandon)
            };
            !attempts.iter().any(by_rule) && attempts.iter().any(awaited)
        };
        if task.is_none_or(may_win) {
            let message = format!("task {index} fails while an attempt may still win");
            self.report(Rule::Accounting, message);
        }
    }

    fn end(&mut self, conclusion: Conclusion) {
        let won = self.winners.keys().filter(|&&i| !self.job.done.contains(i));
        let done = self.job.done.len() as usize + won.count();
        let ended = done + self.job.failed.len() as usize + self.failed.len();
        let total = self.job.rules.completions as usize;
        let rules = &self.job.rules.ending;
        let follows = match conclusion {
            Conclusion::Complete => done >= total,
            Conclusion::SuccessPolicy => done < total && !rules.success.is_empty() && done > 0,
            Conclusion::MaxFailedIndexes => rules
                .failed_tasks_max
                .is_some_and(|max| ended - done > max as usize),
            Conclusion::BackoffLimit => done < total && rules.backoff_limit.is_some(),
            Conclusion::PodFailurePolicy => self.job.tasks.iter().any(|task| {
                let mut attempts = task.attempts.iter();
                attempts.any(|attempt| attempt.failure_rule == Some(FailureRule::FailJob))
            }),
            Conclusion::TimeLimit => ended < total && self.job.time_limit.is_some(),
            Conclusion::FailedIndexes => done < total && ended >= total,
            Conclusion::DeadlineExceeded | Conclusion::DeadlineInPast => {
                ended < total && self.job.deadline.is_some_and(|d| d <= self.job.facts_as_of)
            }
        };
        if !follows || self.job.phase != JobPhase::Active || self.end.is_some() {
            let message = format!("{conclusion:?} with {done} of {total} tasks done");
            self.report(Rule::JobEnd, message);
        }
        self.end = Some(conclusion);
    }

    fn finish(&mut self) {
        let attempts = self.job.tasks.iter().flat_map(|task| {
            let others = move |a: &&AttemptSnapshot| Some(a.number) != task.winner;
            task.attempts
                .iter()
                .filter(others)
                .map(|a| (task.index, a.number))
        });
        let left = attempts.filter(|id| !self.accounted.contains(id)).count();
        let has_ended = self.end.is_some() || self.job.phase != JobPhase::Active;
        if left > 0 || !has_ended {
            self.report(Rule::JobEnd, format!("finishes with {left} attempts left"));
        }
    }

    fn kill(&mut self, kill: &Kill) {
        let Some((task, attempt)) = self.find(kill.task, kill.attempt) else {
            return;
        };
        let name = format!("task {} attempt {}", kill.task, kill.attempt);
        if !attempt.lives() || !self.killed.insert((kill.task, kill.attempt)) {
            self.report(Rule::KillTarget, format!("{name} is not live"));
        }
        let ending = self.end.is_some() || self.job.phase != JobPhase::Active;
        let winner = self.winners.get(&kill.task).copied();
        let right = match kill.kind {
            KillKind::Settle => {
                winner.is_some() && winner != Some(kill.attempt) && kill.survivor == winner
            }
            KillKind::JobEnd => ending && winner.is_none(),
            KillKind::Suspend => self.job.rules.suspend && winner.is_none(),
            KillKind::Replace => {
                let is_given_up = attempt.kind == AttemptKind::Clone && attempt.unplaceable;
                matches!(attempt.state, AttemptState::Stuck { .. }) || is_given_up
            }
            KillKind::Abandon => attempt.out_of_reach && may_be_abandoned(self.job, task, attempt),
            KillKind::Surplus => {
                let is_unwanted = self.job.has_ended(kill.task) || self.failed.contains(&kill.task);
                winner.is_none() && (is_unwanted || self.runs_too_many)
            }
            KillKind::Prune | KillKind::Evict | KillKind::Restart | KillKind::Preempt => false,
        };
        if !right {
            let message = format!("{name} must not be killed as {}", kill.kind.label());
            self.report(Rule::KillRule, message);
        }
    }
}
