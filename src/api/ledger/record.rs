//! Records events of attempts in the ledger. No client.

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{Launch, Outcome};
use shed_core::snapshot::{AttemptKind, KillKind, ResumePoint};
use shed_core::time::{Instant, Span};

use super::{
    AttemptEntry, GrantEntry, LEDGER_FORM, Ledger, NodeEntry, RetryRule, SegmentEntry, TaskEntry,
};
use crate::api::DeadlineJobStatus;

/// How many execution times of winners are kept for the estimate of t_min and β.
const ENDED_RUNS_MAX: usize = 32;

/// A newer operator wrote the ledger, in a form that this version does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ledger form {0} is newer than form {LEDGER_FORM}, the newest that this version supports")]
pub struct NewerForm(pub u32);

impl TaskEntry {
    /// Whether an attempt of it was launched, and neither stopped nor counted.
    pub fn lives(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.kill.is_none())
    }
}

impl Ledger {
    /// The ledger of a job, as the next write has it; one without a status has an empty ledger.
    pub fn from_status(status: Option<&DeadlineJobStatus>) -> Result<Self, NewerForm> {
        let ledger = status.and_then(|status| status.ledger.as_ref());
        let Some(ledger) = ledger else {
            return Ok(Self {
                counts: status.map(|status| status.attempts).unwrap_or_default(),
                ..Self::default()
            });
        };
        if ledger.form > LEDGER_FORM {
            return Err(NewerForm(ledger.form));
        }
        Ok(Self {
            form: LEDGER_FORM,
            ..ledger.clone()
        })
    }

    /// Whether anything of the job was recorded: an attempt, or an outcome.
    pub fn has_begun(&self) -> bool {
        self.started.is_some() || !self.tasks.is_empty() || self.ending.is_some()
    }

    /// Counts the time of a job with a time limit from its start. A suspension resets the count.
    pub fn keep_time(&mut self, runs: bool, now: Instant) {
        self.active_since = runs.then(|| self.active_since.unwrap_or(now));
    }

    /// The attempt's entry, if its end is not counted yet.
    pub fn attempt(&self, task: u32, number: u32) -> Option<&AttemptEntry> {
        let entry = self.tasks.get(&task)?;
        entry
            .attempts
            .iter()
            .find(|attempt| attempt.number == number)
    }

    /// Whether this attempt number was ever given out.
    pub fn knows(&self, task: u32, number: u32) -> bool {
        self.done.contains(TaskIndex(task))
            || self.failed.contains(TaskIndex(task))
            || self.is_dropped(task)
            || self
                .tasks
                .get(&task)
                .is_some_and(|entry| number < entry.next_attempt)
    }

    /// Records a launch: the number is durable before the pod exists.
    pub fn launch(&mut self, launch: &Launch, now: Instant) -> AttemptNumber {
        let entry = self.entry(launch.task);
        let number = entry.next_attempt;
        entry.next_attempt += 1;
        entry.retry_not_before = None;
        if launch.kind == AttemptKind::Clone {
            entry.clone_disrupted = None;
        }
        let resume = launch.resume.clone().map(Box::new);
        let further = |progress| is_further(entry.resume.as_deref(), progress);
        if let Some(point) = resume.as_ref().filter(|point| further(point.progress)) {
            entry.resume = Some(point.clone());
        }
        entry.attempts.push(AttemptEntry {
            number,
            kind: launch.kind,
            launched: now,
            resume,
            avoid: launch.avoid.iter().map(ToString::to_string).collect(),
            node: None,
            kill: None,
            killed_at: None,
            unknown: Vec::new(),
        });
        self.started.get_or_insert(now);
        match launch.kind {
            AttemptKind::Original => self.counts.originals += 1,
            AttemptKind::Clone => self.counts.clones += 1,
            AttemptKind::Retry => self.counts.retries += 1,
        }
        AttemptNumber(number)
    }

    /// Records why an attempt must stop; false if it has already ended.
    pub fn kill(
        &mut self,
        task: TaskIndex,
        number: AttemptNumber,
        kind: KillKind,
        now: Instant,
    ) -> bool {
        let Some(attempt) = self.attempt_mut(task.0, number.0) else {
            return false;
        };
        if attempt.kill.is_some() {
            return false;
        }
        attempt.kill = Some(kind);
        attempt.killed_at = Some(now);
        if matches!(kind, KillKind::Replace | KillKind::Abandon) {
            let (kind, launched) = (attempt.kind, attempt.launched);
            self.disrupted(task, kind, launched, now);
        }
        true
    }

    /// A clone of the task could not be placed: after two such failures it gets no more.
    pub fn count_vain_clone(&mut self, task: TaskIndex) {
        self.entry(task).clone_failures += 1;
    }

    fn attempt_mut(&mut self, task: u32, number: u32) -> Option<&mut AttemptEntry> {
        let attempts = &mut self.tasks.get_mut(&task)?.attempts;
        attempts.iter_mut().find(|attempt| attempt.number == number)
    }

    /// Grants the commit to an attempt, unless another attempt holds the grant. Returns the token
    /// of a new grant.
    pub fn grant(&mut self, task: u32, number: u32, now: Instant) -> Option<i64> {
        self.attempt(task, number)?;
        let entry = self.tasks.get_mut(&task)?;
        if entry.grant.is_some() {
            return None;
        }
        self.fence_token += 1;
        entry.grant = Some(Box::new(GrantEntry {
            attempt: number,
            token: self.fence_token,
            at: now,
        }));
        Some(self.fence_token)
    }

    /// Records where an attempt runs.
    pub fn place(&mut self, task: u32, number: u32, node: &NodeEntry) {
        if let Some(attempt) = self.attempt_mut(task, number) {
            attempt.node.get_or_insert_with(|| Box::new(node.clone()));
        }
    }

    /// Records a winner; false if the task has one already.
    pub fn win(
        &mut self,
        task: TaskIndex,
        number: AttemptNumber,
        finished: Instant,
        run: Option<Span>,
    ) -> bool {
        if self.done.contains(task) {
            return false;
        }
        let Some(attempt) = self.take(task, number) else {
            return false;
        };
        self.done.insert(task);
        self.entry(task).winner = Some(number.0);
        let part = |part: &mut SegmentEntry| part.winner = Some(number.0);
        self.segments.change(task.0, part);
        self.last_win = self.last_win.max(Some(finished));
        self.counts.won += 1;
        if attempt.kind == AttemptKind::Clone {
            self.counts.clone_wins += 1;
        }
        if let Some(run) = run {
            self.ended_runs.push(run);
            let surplus = self.ended_runs.len().saturating_sub(ENDED_RUNS_MAX);
            self.ended_runs.drain(..surplus);
        }
        true
    }

    /// Counts an ended attempt in its bucket, once. Returns the kind of its launch, or None if it
    /// was counted before.
    pub fn count(
        &mut self,
        task: TaskIndex,
        number: AttemptNumber,
        outcome: Outcome,
        retries: RetryRule,
        now: Instant,
    ) -> Option<AttemptKind> {
        let AttemptEntry {
            kind,
            kill,
            launched,
            ..
        } = self.take(task, number)?;
        // The kill record already had its consequences.
        if outcome == Outcome::Disrupted && kill.is_none() {
            self.disrupted(task, kind, launched, now);
        }
        let entry = self.entry(task);
        match outcome {
            Outcome::Failed => {
                entry.failures += 1;
                let wait = retries.wait(entry.failures);
                entry.retry_not_before = Some(now.plus(wait));
            }
            Outcome::CloneFailed => entry.clone_failures += 1,
            Outcome::Superseded | Outcome::Disrupted | Outcome::Late => {}
        }
        match outcome {
            Outcome::Superseded => self.counts.superseded += 1,
            Outcome::Failed => self.counts.failed += 1,
            Outcome::CloneFailed => self.counts.clone_failed += 1,
            Outcome::Disrupted => self.counts.disrupted += 1,
            Outcome::Late => self.counts.late += 1,
        }
        Some(kind)
    }

    /// Removes an attempt whose pod the apiserver refused. It counts as never launched.
    pub fn refuse(&mut self, task: TaskIndex, number: AttemptNumber) -> bool {
        let taken = self.take(task, number).is_some();
        if taken {
            self.counts.refused += 1;
        }
        taken
    }

    /// Removes an attempt whose pod was never requested from the apiserver. Its number is not
    /// reused.
    pub fn withdraw(&mut self, task: TaskIndex, number: AttemptNumber) -> bool {
        let Some(attempt) = self.take(task, number) else {
            return false;
        };
        let launched = match attempt.kind {
            AttemptKind::Original => &mut self.counts.originals,
            AttemptKind::Clone => &mut self.counts.clones,
            AttemptKind::Retry => &mut self.counts.retries,
        };
        *launched -= 1;
        true
    }

    /// Keeps a reported checkpoint if it is ahead of the durable one.
    pub fn keep_checkpoint(&mut self, task: TaskIndex, point: &ResumePoint) {
        if let Some(entry) = self.tasks.get_mut(&task.0) {
            // Each step checks all tasks, and few of them have progressed.
            if is_further(entry.resume.as_deref(), point.progress) {
                entry.resume = Some(Box::new(point.clone()));
            }
        }
    }

    /// Drops entries without information: ended tasks whose attempts are all counted.
    pub fn fold(&mut self) {
        let (done, failed, segments) = (&self.done, &self.failed, &self.segments);
        self.tasks.retain(|&index, entry| {
            let ended = done.contains(TaskIndex(index))
                || failed.contains(TaskIndex(index))
                || segments.get(&index).is_some_and(|part| part.dropped);
            !(ended && entry.attempts.is_empty())
        });
    }

    pub(super) fn entry(&mut self, task: TaskIndex) -> &mut TaskEntry {
        self.tasks.entry(task.0).or_insert_with(|| TaskEntry {
            index: task.0,
            ..TaskEntry::default()
        })
    }

    fn take(&mut self, task: TaskIndex, number: AttemptNumber) -> Option<AttemptEntry> {
        let entry = self.tasks.get_mut(&task.0)?;
        let position = entry
            .attempts
            .iter()
            .position(|attempt| attempt.number == number.0)?;
        // An attempt that ended cannot publish any more, so the next one may.
        entry.grant.take_if(|grant| grant.attempt == number.0);
        Some(entry.attempts.remove(position))
    }
}

fn is_further(kept: Option<&ResumePoint>, progress: f64) -> bool {
    kept.is_none_or(|kept| progress > kept.progress)
}

#[cfg(test)]
mod tests;
