//! One stage of one job, which is a job to the core: the facts about it in the form of the operator's ledger and
//! stores. It also has the data that only the simulator knows.

use std::cell::Cell;
use std::sync::Arc;

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::Outcome;
use shed_core::snapshot::{AttemptSnapshot, JobSnapshot, ResumePoint, TaskSnapshot};
use shed_core::time::{Instant, Span};

use super::attempt::ReportTimes;
use super::incremental_passes::Attention;
use super::job_queue::Entry;

/// As in the operator's ledger: the number of execution times of winners that are kept.
pub(super) const ENDED_RUNS_MAX: usize = 32;
/// As in the operator's ledger: back-off before the first retry of a failed task; it doubles
/// with each failure.
const RETRY_BACKOFF: Span = Span::from_seconds(1);
/// As in the operator's ledger: no retry waits longer than this.
const RETRY_BACKOFF_MAX: Span = Span::from_seconds(60);

/// The most entries that memory is allocated for at once.
const RESERVED_MAX: usize = 1024;

/// Entries of ended tasks are dropped when their number reaches this value and that of the other entries.
const STALE_MIN: usize = 64;

/// A stage of a job that has arrived.
#[derive(Debug)]
pub(super) struct Group {
    /// Position of the job in the trace.
    pub(super) job: u32,
    /// Position of the stage in the job.
    pub(super) stage: u32,
    /// The planner's facts; absent while a pass has them and once the group is finished.
    pub(super) facts: Option<JobSnapshot>,
    /// Whether only the planner has still to see its end.
    pub(super) is_finished: bool,
    /// Parallel to `facts.tasks`.
    pub(super) truths: Vec<TaskTruth>,
    /// The index of the last task found, because an event looks up its task several times.
    hint: Cell<usize>,
    /// The number of entries that have no information any more.
    stale: usize,
    /// Tasks that have not ended and have no live attempt.
    pub(super) waiting: u32,
    /// Attempts that hold capacity.
    pub(super) held: u32,
    pub(super) attention: Attention,
    pub(super) entry: Entry,
    pub(super) launch_overhead: Span,
    /// When the stage became available.
    pub(super) opened: Instant,
    /// Median task time of the group's job.
    pub(super) median: Span,
    /// Absent if its attempts report nothing.
    pub(super) reports: Option<ReportTimes>,
}

/// The data of a task that only the simulator knows.
#[derive(Debug, Default, Clone)]
pub(super) struct TaskTruth {
    pub(super) next_number: u32,
    /// Slots of the task's attempts, parallel to `TaskSnapshot::attempts`.
    pub(super) slots: Vec<u32>,
    /// The segments of the task that ended attempts have done, from and to.
    pub(super) segments: Vec<(f64, f64)>,
}

impl Group {
    pub(super) fn new(job: u32, stage: u32, facts: JobSnapshot) -> Self {
        Self {
            job,
            stage,
            opened: facts.facts_as_of,
            waiting: facts.rules.completions,
            facts: Some(facts),
            is_finished: false,
            truths: Vec::new(),
            hint: Cell::new(0),
            stale: 0,
            held: 0,
            attention: Attention::default(),
            entry: Entry::default(),
            launch_overhead: Span(0),
            median: Span(0),
            reports: None,
        }
    }

    /// Position of the task's entry.
    pub(super) fn position(&self, task: TaskIndex) -> Option<usize> {
        let tasks = &self.facts.as_ref()?.tasks;
        let hint = self.hint.get();
        if tasks.get(hint).is_some_and(|entry| entry.index == task) {
            return Some(hint);
        }
        // Most lookups without a result are for new tasks, and tasks are launched in order.
        if tasks.last().is_none_or(|last| last.index < task) {
            return None;
        }
        let found = tasks
            .binary_search_by_key(&task, |entry| entry.index)
            .ok()?;
        self.hint.set(found);
        Some(found)
    }

    /// Notes where the task's entry was when it was last looked up; a wrong position only costs time.
    pub(super) fn look_at(&self, position: usize) {
        self.hint.set(position);
    }

    /// The task's entry and truth, created if absent.
    pub(super) fn entry(&mut self, task: TaskIndex) -> Option<(&mut TaskSnapshot, &mut TaskTruth)> {
        let found = self.position(task);
        let facts = self.facts.as_mut()?;
        let completions = facts.rules.completions as usize;
        let tasks = &mut facts.tasks;
        let at = found.unwrap_or_else(|| {
            // Tasks are launched in ascending order, mostly.
            let at = match tasks.last() {
                Some(last) if last.index > task => tasks.partition_point(|e| e.index < task),
                _ => tasks.len(),
            };
            if tasks.is_empty() {
                // Most jobs eventually have an entry for each of their tasks.
                tasks.reserve_exact(completions.min(RESERVED_MAX));
                self.truths.reserve_exact(completions.min(RESERVED_MAX));
            }
            tasks.insert(at, TaskSnapshot::untouched(task));
            self.truths.insert(at, TaskTruth::default());
            self.hint.set(at);
            at
        });
        Some((&mut tasks[at], &mut self.truths[at]))
    }

    /// An attempt's facts.
    pub(super) fn attempt_mut(&mut self, task: u32, number: u32) -> Option<&mut AttemptSnapshot> {
        let at = self.position(TaskIndex(task))?;
        let attempts = &mut self.facts.as_mut()?.tasks[at].attempts;
        attempts.iter_mut().find(|a| a.number.0 == number)
    }

    /// Removes an attempt whose end is accounted for from the facts.
    pub(super) fn take(
        &mut self,
        task: TaskIndex,
        number: AttemptNumber,
    ) -> Option<(AttemptSnapshot, u32)> {
        let at = self.position(task)?;
        let attempts = &mut self.facts.as_mut()?.tasks[at].attempts;
        let of_task = attempts.iter().position(|a| a.number == number)?;
        let attempt = attempts.remove(of_task);
        Some((attempt, self.truths[at].slots.remove(of_task)))
    }

    /// Records a winner's time.
    pub(super) fn add_ended_run(&mut self, run: Span) {
        if let Some(facts) = &mut self.facts {
            facts.ended_runs.push(run);
            let surplus = facts.ended_runs.len().saturating_sub(ENDED_RUNS_MAX);
            facts.ended_runs.drain(..surplus);
        }
    }

    /// Counts an end other than a win.
    pub(super) fn add_outcome(&mut self, task: TaskIndex, outcome: Outcome, now: Instant) {
        let Some((entry, _)) = self.entry(task) else {
            return;
        };
        match outcome {
            Outcome::Failed => {
                entry.failures += 1;
                let doublings = entry.failures.saturating_sub(1).min(16);
                let wait = Span(RETRY_BACKOFF.0 << doublings).min(RETRY_BACKOFF_MAX);
                entry.retry_not_before = Some(now.plus(wait));
            }
            Outcome::CloneFailed => entry.clone_failures += 1,
            Outcome::Superseded | Outcome::Disrupted | Outcome::Late => {}
        }
    }

    /// Drops the entry if it has no information any more.
    pub(super) fn fold(&mut self, task: TaskIndex) {
        let Some(at) = self.position(task) else {
            return;
        };
        let Some(facts) = &mut self.facts else {
            return;
        };
        if !(facts.has_ended(task) && facts.tasks[at].attempts.is_empty()) {
            return;
        }
        self.stale += 1;
        if self.stale >= STALE_MIN && self.stale * 2 >= facts.tasks.len() {
            self.stale = 0;
            let (done, failed) = (&facts.done, &facts.failed);
            let says_more = |entry: &TaskSnapshot| {
                let has_ended = done.contains(entry.index) || failed.contains(entry.index);
                !has_ended || !entry.attempts.is_empty()
            };
            let mut kept = facts.tasks.iter().map(says_more);
            self.truths.retain(|_| kept.next().unwrap_or(true));
            drop(kept);
            facts.tasks.retain(says_more);
        }
    }
}

/// Lists that ended tasks no longer need. Most tasks have one attempt, and a heap allocation for each would be made
/// and freed at every event.
#[derive(Debug, Default)]
pub(super) struct Spare {
    attempts: Vec<Vec<AttemptSnapshot>>,
    slots: Vec<Vec<u32>>,
}

impl Spare {
    /// Provides lists for an attempt of the task.
    pub(super) fn provide(&mut self, entry: &mut TaskSnapshot, truth: &mut TaskTruth) {
        if entry.attempts.capacity() == 0 {
            // The default would allocate space for four.
            let attempts = self.attempts.pop();
            entry.attempts = attempts.unwrap_or_else(|| Vec::with_capacity(1));
        }
        if truth.slots.capacity() == 0 {
            let slots = self.slots.pop();
            truth.slots = slots.unwrap_or_else(|| Vec::with_capacity(1));
        }
    }

    /// Takes the lists of a task without attempts.
    pub(super) fn reclaim(&mut self, entry: &mut TaskSnapshot, truth: &mut TaskTruth) {
        if entry.attempts.is_empty() && truth.slots.is_empty() {
            self.attempts.push(std::mem::take(&mut entry.attempts));
            self.slots.push(std::mem::take(&mut truth.slots));
        }
    }
}

/// Keeps the point with more progress.
pub(super) fn keep_best(kept: &mut Option<ResumePoint>, progress: f64, text: &Arc<str>) {
    let further = kept.as_ref().is_none_or(|kept| progress > kept.progress);
    if further && progress > 0.0 {
        *kept = Some(ResumePoint {
            progress,
            checkpoint: Arc::clone(text),
        });
    }
}

/// The end of the part from 0 on that segments cover without a gap.
pub(super) fn covered(segments: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut segments: Vec<(f64, f64)> = segments.collect();
    segments.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut reached = 0.0_f64;
    for (begin, end) in segments {
        // A report and the truth may differ by rounding.
        if begin > reached + 1e-9 {
            break;
        }
        reached = reached.max(end);
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_ends_what_is_covered() {
        assert_eq!(covered([(0.0, 0.3), (0.5, 0.9)].into_iter()), 0.3);
        assert_eq!(covered([(0.2, 0.9), (0.0, 0.3)].into_iter()), 0.9);
        assert_eq!(covered(std::iter::empty()), 0.0);
    }
}
