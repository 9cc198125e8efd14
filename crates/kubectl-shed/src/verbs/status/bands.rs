//! A job with many tasks: how many are done, how many are in each tenth, and so on, and the slowest ten. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use shed::api::{AttemptRecord, AttemptState, JobRecord};

use super::text;
use crate::model::JobView;
use crate::output::Canvas;
use crate::record;

/// Tasks in the table of the slowest.
const SLOWEST: usize = 10;
/// Columns of a band's name and count.
const MARGIN: usize = 20;
/// The band of tasks that the record does not list.
const OTHER: &str = "other";

/// Bands and the slowest ten.
pub fn render(job: &JobView, record: &JobRecord, canvas: Canvas, now: Timestamp) -> String {
    let live = live_tasks(record);
    let bands = bands(job, record, &live);
    let mut shown = format!("Progress of {} tasks\n", job.spec.completions);
    shown.push_str(&bars(&bands, canvas.width));
    if bands.iter().any(|(name, _)| name == OTHER) {
        let other = "other: their attempts are not in the record";
        shown.push_str(&canvas.wrap("  ", other));
    }
    let slowest = slowest(&live);
    if !slowest.is_empty() {
        shown.push_str("\nSlowest tasks\n");
        shown.push_str(&text::attempts(&slowest, record.time.0, canvas, now));
    }
    shown
}

/// Names and numbers of tasks. Each task is in one band, and bands without tasks are left out, except between others
/// of progress.
fn bands(
    job: &JobView,
    record: &JobRecord,
    live: &BTreeMap<i32, &AttemptRecord>,
) -> Vec<(String, usize)> {
    let counted = |count: i32| usize::try_from(count).unwrap_or(0);
    let mut tenths = [0; 10];
    let (mut silent, mut pending) = (0, 0);
    for best in live.values() {
        match tenth_of(best) {
            Some(tenth) => tenths[tenth] += 1,
            None if best.state == AttemptState::Pending => pending += 1,
            None => silent += 1,
        }
    }
    let used = |tenth: &usize| tenths[*tenth] > 0;
    let lowest = (0..10).find(used).unwrap_or(10);
    let highest = (0..10).rfind(used).map_or(0, |tenth| tenth + 1);
    let shown = (lowest..highest).rev();
    let shown = shown.map(|at| (format!("{:>2}-{} %", at * 10, at * 10 + 10), tenths[at]));
    let mut bands = vec![("done".to_owned(), counted(job.status.succeeded))];
    bands.extend(shown);
    let waiting = record.waiting.as_ref();
    let rest = [
        ("no report", silent),
        ("pending", pending),
        (
            "waiting",
            waiting.map_or(0, |waiting| counted(waiting.tasks)),
        ),
        ("failed", counted(job.status.failed)),
    ];
    let rest = rest.into_iter().filter(|(_, tasks)| *tasks > 0);
    bands.extend(rest.map(|(name, tasks)| (name.to_owned(), tasks)));
    let known: usize = bands.iter().map(|(_, tasks)| tasks).sum();
    let other = counted(job.spec.completions).saturating_sub(known);
    bands.extend((other > 0).then(|| (OTHER.to_owned(), other)));
    bands
}

/// The live attempt of each task that is ahead of its siblings.
fn live_tasks(record: &JobRecord) -> BTreeMap<i32, &AttemptRecord> {
    let won = record
        .attempts
        .iter()
        .filter(|one| one.state == AttemptState::Won);
    let won: BTreeSet<i32> = won.map(|one| one.task).collect();
    let mut tasks: BTreeMap<i32, &AttemptRecord> = BTreeMap::new();
    let live = record.attempts.iter().filter(|one| one.state.is_live());
    let lead = |one: &AttemptRecord| (record::progress(one), one.state == AttemptState::Running);
    for attempt in live.filter(|one| !won.contains(&one.task)) {
        let best = tasks.entry(attempt.task).or_insert(attempt);
        if lead(attempt) > lead(best) {
            *best = attempt;
        }
    }
    tasks
}

fn tenth_of(attempt: &AttemptRecord) -> Option<usize> {
    let progress = record::progress(attempt)?;
    // `as` saturates at 0.
    Some(((progress * 10.0) as usize).min(9))
}

fn bars(bands: &[(String, usize)], width: usize) -> String {
    let most = bands.iter().map(|(_, tasks)| *tasks).max().unwrap_or(0);
    let space = width.saturating_sub(MARGIN).max(1);
    let lines = bands.iter().map(|(name, tasks)| {
        // A band with tasks is never empty.
        let length = (tasks * space).div_ceil(most.max(1));
        format!("  {name:>9} {tasks:>6} {}", "█".repeat(length))
            .trim_end()
            .to_owned()
            + "\n"
    });
    lines.collect()
}

/// The tasks that end last; without a forecast, those with the least progress.
fn slowest(live: &BTreeMap<i32, &AttemptRecord>) -> Vec<AttemptRecord> {
    let mut tasks: Vec<&AttemptRecord> = live.values().copied().collect();
    tasks.sort_by(|a, b| {
        let end = |one: &AttemptRecord| one.estimated_end_time.as_ref().map(|time| time.0);
        let progress = |one: &AttemptRecord| record::progress(one).unwrap_or(0.0);
        end(b)
            .cmp(&end(a))
            .then(progress(a).total_cmp(&progress(b)))
    });
    tasks.into_iter().take(SLOWEST).cloned().collect()
}
