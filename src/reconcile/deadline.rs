//! When shed evaluates a deadline, by which clock, and when it reports the result.
//!
//! shed fails a job for its deadline by the apiserver's clock, and only after a live read of its
//! pods. An end reaches the apiserver with some seconds of delay, because a kubelet inspects its
//! containers once a second and then sends the changes. An end that the kubelet had not sent when
//! shed stopped the attempts would be lost. On a node whose clock is behind, it looks like a task's
//! answer to SIGTERM. So shed waits for reports before it stops anything. The cost is some seconds
//! of the attempts of jobs that miss.

use shed_core::index_set::IndexSet;
use shed_core::settle::{COMMIT_GRACE, DEADLINE_GRACE};
use shed_core::snapshot::{AttemptSnapshot, Conclusion, JobSnapshot, OnMiss};
use shed_core::time::{Instant, Span};

use crate::api::{self, DeadlineJobStatus, Ledger, TaskEntry};
use crate::clock::Clock;
use crate::cluster::pod::JobPods;
use crate::job::view::JobView;
use crate::reconcile::step::Step;
use crate::validate::ValidatedJob;

/// By when a kubelet has reported an end.
pub const REPORTED_WITHIN: Span = Span::from_seconds(4);
/// How long a fate that may turn is kept back for the deletion of the last attempts to be seen.
const FATE_KEPT_BACK: Span = Span::from_seconds(30);
/// Time until the next check if the deadline is due but cannot be evaluated yet.
const LOOK_AGAIN: Span = Span::from_seconds(1);

/// A job whose deadline is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    job: &'a ValidatedJob,
    ledger: &'a Ledger,
    deadline: Option<Instant>,
}

impl<'a> Case<'a> {
    /// As it was read.
    pub(super) fn of(view: &'a JobView) -> Self {
        Self {
            job: &view.job,
            ledger: &view.ledger,
            deadline: view.deadline,
        }
    }

    /// After a step.
    pub(super) fn after(view: &'a JobView, step: &'a Step) -> Self {
        Self {
            job: &view.job,
            ledger: &step.ledger,
            deadline: step.deadline,
        }
    }

    /// When to evaluate the deadline, unless that has happened.
    fn judged_at(self, status: Option<&DeadlineJobStatus>) -> Option<Instant> {
        let is_open = self.ledger.ending.is_none()
            && match self.job.rules.on_miss {
                OnMiss::Fail => true,
                OnMiss::Continue => {
                    !status.is_some_and(|status| status.is_true(api::DEADLINE_MISSED))
                }
            };
        let deadline = self.deadline.filter(|_| is_open)?;
        let grace = match self.is_publishing(deadline) {
            true => COMMIT_GRACE,
            false => DEADLINE_GRACE,
        };
        Some(deadline.plus(grace).plus(REPORTED_WITHIN))
    }

    /// Whether the deadline stops nothing yet, because every task that has not ended has an attempt with a commit grant
    /// in time. Until the grace for that is over, the watch shows all that can happen.
    fn is_publishing(self, deadline: Instant) -> bool {
        let total = self.job.rules.completions;
        let skipped = self.job.skipped.as_ref().map_or(0, IndexSet::len);
        let ended = self.ledger.done_tasks(total).len() + self.ledger.failed_tasks(total).len();
        let publishes = |task: &&TaskEntry| {
            task.grant.as_ref().is_some_and(|grant| {
                let mut attempts = task.attempts.iter();
                grant.at <= deadline
                    && attempts.any(|one| one.number == grant.attempt && one.kill.is_none())
            })
        };
        self.job.rules.on_miss == OnMiss::Fail
            && ended + skipped + self.ledger.tasks.values().filter(publishes).count() as u32
                >= total
    }

    /// Whether the deadline requires a live read of the pods now, because shed must stop the job or
    /// report a miss. False while the apiserver's time is too uncertain.
    pub(super) fn is_due(
        self,
        clock: &Clock,
        status: Option<&DeadlineJobStatus>,
        ticks: Instant,
    ) -> bool {
        let due = self.judged_at(status);
        let now = clock.certainly(ticks);
        now.zip(due).is_some_and(|(now, due)| now >= due)
    }

    /// Whether the deadline or the time limit would end the job now if the time were certain.
    pub(super) fn is_held_back(self, clock: &Clock, now: Instant) -> bool {
        clock.certainty().is_none() && self.ledger.ending.is_none() && {
            let fails = self.job.rules.on_miss == OnMiss::Fail;
            let deadline = self.deadline.filter(|_| fails);
            let limit = self.job.time_limit.zip(self.ledger.active_since);
            let limit = limit.map(|(limit, since)| since.plus(limit));
            deadline.into_iter().chain(limit).any(|due| due <= now)
        }
    }

    /// When the job must be looked at again for its deadline or its time limit.
    pub(super) fn next_look(
        self,
        clock: &Clock,
        status: Option<&DeadlineJobStatus>,
        now: Instant,
    ) -> Option<Instant> {
        let soon = now.plus(LOOK_AGAIN);
        let judged = self.judged_at(status).map(|at| at.max(soon));
        let held = self.is_held_back(clock, now).then_some(soon);
        judged.into_iter().chain(held).min()
    }
}

/// The instant up to which a live read that began at `ticks` contains every end. Later answers may
/// have corrected the time.
pub(super) fn facts_as_of(clock: &Clock, ticks: Instant) -> Instant {
    clock
        .certainly(ticks)
        .map_or(Instant(0), |read| read.plus(Span(-REPORTED_WITHIN.0)))
}

/// Time limits too fail no job while the time is too uncertain, nor before the limit has certainly
/// passed.
pub(super) fn hold_limit(clock: &Clock, facts: &mut JobSnapshot) {
    let certainty = clock.certainty();
    facts.time_limit = facts
        .time_limit
        .zip(certainty)
        .map(|(limit, within)| limit.plus(within));
}

/// Whether a miss may still turn out to be a success. That is possible while an attempt that was
/// stopped at the deadline is not yet seen as deleted, because its success counts if it came in
/// time. shed reports the job's fate after that, but does not wait without end.
pub(super) fn may_turn(ledger: &Ledger, facts: &JobSnapshot, pods: &JobPods, now: Instant) -> bool {
    if ledger.ending != Some(Conclusion::DeadlineExceeded) || ledger.finished {
        return false;
    }
    let is_open = |task: u32, attempt: &AttemptSnapshot| {
        let number = attempt.number.0;
        let entry = ledger.attempt(task, number);
        let killed_at = entry.and_then(|entry| entry.killed_at);
        let waits = killed_at.is_some_and(|at| now.since(at) < FATE_KEPT_BACK);
        let pod = pods.get(&(task, number));
        let is_deleted = pod
            .and_then(|pod| pod.attempt.as_ref())
            .is_some_and(|attempt| attempt.deleting);
        waits && attempt.holds_capacity() && !is_deleted
    };
    let mut tasks = facts.tasks.iter();
    tasks.any(|task| {
        let mut attempts = task.attempts.iter();
        attempts.any(|attempt| is_open(task.index.0, attempt))
    })
}
