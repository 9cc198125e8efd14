//! Segments of tasks (`resume: Range`) as the core's facts. To the core a segment is a task of its
//! own that begins late. Its start is the share of the whole task that it leaves out, so its end is
//! the core's 1 and its rate is that of the whole task.

use std::collections::BTreeMap;

use shed_agent::Units;
use shed_core::estimate::progress::{ProcessedRange, RateReading, resume_offset};
use shed_core::ids::TaskIndex;
use shed_core::index_set::IndexSet;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobRules, ResumePoint, TaskSnapshot};
use shed_core::time::Instant;

use crate::api::{Ledger, SegmentEntry, TaskEntry};
use crate::job::view::JobView;
use crate::validate::ValidatedJob;

/// The job's rules, with its segments counted as tasks. Concurrent segments of one task take one
/// place of `parallelism`.
pub(super) fn rules(job: &ValidatedJob, ledger: &Ledger) -> JobRules {
    let mut rules = job.rules.clone();
    if ledger.segments.is_empty() {
        return rules;
    }
    rules.completions = ledger.indexes(rules.completions);
    let runs = |part: &&SegmentEntry| {
        let entry = ledger.tasks.get(&part.index);
        entry.is_some_and(TaskEntry::lives)
    };
    let mut running: BTreeMap<u32, u32> = BTreeMap::new();
    for part in ledger.segments.values().filter(runs) {
        *running.entry(part.task).or_default() += 1;
    }
    let beside: u32 = running.values().map(|count| count - 1).sum();
    rules.parallelism = rules.parallelism.saturating_add(beside);
    rules
}

/// Tasks and segments that no attempt needs to process any more.
pub(super) fn done(ledger: &Ledger) -> IndexSet {
    let mut done = ledger.done.clone();
    for part in ledger.segments.values().filter(|part| part.dropped) {
        done.insert(TaskIndex(part.index));
    }
    done
}

/// Turns the facts about a whole task into those about its segment.
pub(super) fn as_a_part(task: &mut TaskSnapshot, part: Option<&SegmentEntry>, view: &JobView) {
    task.resume_point = part.map(|part| ResumePoint {
        progress: begin(part, part.start),
        checkpoint: "".into(),
    });
    for attempt in &mut task.attempts {
        let pod = view.pods.get(&(task.index.0, attempt.number.0));
        let facts = pod.and_then(|pod| pod.attempt.as_ref());
        let reported = pod.and_then(|pod| view.reports.get(&pod.uid));
        if let Some(part) = part {
            move_into(attempt, part);
            attempt.state = judged(attempt.state, facts.and_then(|facts| facts.reached), part);
        }
        let units = reported.and_then(|reported| reported.units);
        attempt.checkpoint = units.and_then(|units| handover(attempt, units, part, view.now));
    }
}

/// A number of units as a share of the task. Both are below 2^53, where every whole number is exact.
fn share(units: u64, total: u64) -> f64 {
    exact(units) / exact(total)
}

fn exact(units: u64) -> f64 {
    units as f64
}

/// The start progress of an attempt that processes the segment from this unit on.
fn begin(part: &SegmentEntry, from: u64) -> f64 {
    1.0 - share(part.end.saturating_sub(from), part.total)
}

fn move_into(attempt: &mut AttemptSnapshot, part: &SegmentEntry) {
    let start = begin(part, part.start);
    let left_out = 1.0 - share(part.end, part.total);
    attempt.start_progress = start;
    if let Some(progress) = &mut attempt.progress {
        for value in [&mut progress.first, &mut progress.last] {
            *value = (*value + left_out).clamp(start, 1.0);
        }
    }
}

/// A successful attempt that ended before or after its segment's end has not done its segment.
fn judged(state: AttemptState, reached: Option<Units>, part: &SegmentEntry) -> AttemptState {
    match state {
        AttemptState::Succeeded { finished } if !is_end(reached, part) => AttemptState::Failed {
            finished,
            disrupted: false,
        },
        state => state,
    }
}

fn is_end(reached: Option<Units>, part: &SegmentEntry) -> bool {
    reached.is_some_and(|reached| (reached.done, reached.total) == (part.end, part.total))
}

/// Eqs. (15), (16) of Shed+: the unit that the attempt will have reached once a clone has started.
/// None if that is not inside its segment, or if its rate is unknown.
fn handover(
    attempt: &AttemptSnapshot,
    units: Units,
    part: Option<&SegmentEntry>,
    now: Instant,
) -> Option<ResumePoint> {
    let progress = attempt.progress?;
    let (start, end) = part.map_or((0, units.total), |part| (part.start, part.end));
    let is_of_part = part.is_none_or(|part| part.total == units.total);
    let runs = attempt.lives() && attempt.state == AttemptState::Running;
    if !runs || !is_of_part || units.done <= start {
        return None;
    }
    let seconds = |at: Instant| at.since(attempt.launched).seconds();
    let started = attempt.started.unwrap_or(attempt.launched);
    // The work since its last report counts as time that its clone needs to start.
    let stale = now.since(progress.last_at).seconds().max(0.0);
    let range = ProcessedRange {
        b_start: exact(start),
        b_proc: exact(units.done - start),
        b_end: exact(end),
        t_launch: -stale,
        t_process: seconds(started),
        t_first_report: seconds(progress.first_at),
        t_now: seconds(progress.last_at),
    };
    let since_report = progress.last_at.since(progress.first_at);
    // (15) counts the work before the first report, but not its time, so its result is too large at
    // first.
    let reading = if since_report >= progress.first_at.since(started) {
        RateReading::ShedPlus
    } else {
        RateReading::Shed
    };
    let at = whole(resume_offset(&range, reading).b_new.ceil())?.max(units.done + 1);
    (at < end).then(|| ResumePoint {
        progress: 1.0 - share(end - at, units.total),
        checkpoint: Units { done: at, ..units }.to_string().into(),
    })
}

/// A number of units. None for a value that is not a number or too large.
fn whole(value: f64) -> Option<u64> {
    format!("{value:.0}").parse().ok()
}

#[cfg(test)]
mod tests;
