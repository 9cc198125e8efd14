//! Progress of a job with many tasks: how many are in each tenth, and the slowest ten. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shed::api::{AttemptRecord, AttemptState, JobRecord};

use super::text;
use crate::model::JobView;
use crate::output::Canvas;
use crate::{record, words};

/// Tasks in the table of the slowest.
const SLOWEST: usize = 10;
/// Columns of a band's name and count.
const MARGIN: usize = 20;

/// Bands and the slowest ten.
#[must_use]
pub fn render(job: &JobView, record: &JobRecord, canvas: Canvas, now: Timestamp) -> String {
    let running = running_tasks(record);
    let mut bands = vec![("done".to_owned(), job.status.succeeded.max(0) as usize)];
    for tenth in (0..10).rev() {
        let tasks = running
            .values()
            .filter(|best| tenth_of(best) == Some(tenth));
        bands.push((
            format!("{:>2}-{} %", tenth * 10, tenth * 10 + 10),
            tasks.count(),
        ));
    }
    let silent = running.values().filter(|best| tenth_of(best).is_none());
    bands.push(("no report".to_owned(), silent.count()));
    let known: usize = bands.iter().map(|(_, tasks)| tasks).sum();
    let total = job.spec.completions.max(0) as usize;
    let failed = job.status.failed.max(0) as usize;
    bands.push(("other".to_owned(), total.saturating_sub(known + failed)));
    let mut shown = format!("Progress of {total} tasks\n");
    shown.push_str(&bars(&bands, canvas.width));
    let other = "other: without an attempt, or not in the record";
    shown.push_str(&words::wrap("  ", other, canvas.width));
    let slowest = slowest(&running);
    if !slowest.is_empty() {
        shown.push_str("\nSlowest tasks\n");
        shown.push_str(&text::attempts(&slowest, record.time.0, canvas, now));
    }
    shown
}

/// The live attempt of each task that is ahead of its siblings.
fn running_tasks(record: &JobRecord) -> BTreeMap<i32, &AttemptRecord> {
    let mut tasks: BTreeMap<i32, &AttemptRecord> = BTreeMap::new();
    let won = record
        .attempts
        .iter()
        .filter(|one| one.state == AttemptState::Won);
    let won: Vec<i32> = won.map(|one| one.task).collect();
    let live = record.attempts.iter().filter(|one| one.state.is_live());
    for attempt in live.filter(|one| !won.contains(&one.task)) {
        let best = tasks.entry(attempt.task).or_insert(attempt);
        if record::progress(attempt) > record::progress(best) {
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
    let room = width.saturating_sub(MARGIN).max(1);
    let lines = bands.iter().map(|(name, tasks)| {
        // A band with tasks is never empty.
        let length = (tasks * room).div_ceil(most.max(1));
        format!("  {name:>9} {tasks:>6} {}", "█".repeat(length))
            .trim_end()
            .to_owned()
            + "\n"
    });
    lines.collect()
}

/// The tasks that end last; without a forecast, those with the least progress.
fn slowest(running: &BTreeMap<i32, &AttemptRecord>) -> Vec<AttemptRecord> {
    let mut tasks: Vec<&AttemptRecord> = running.values().copied().collect();
    tasks.sort_by(|a, b| {
        let end = |one: &AttemptRecord| one.estimated_end_time.as_ref().map(|time| time.0);
        let progress = |one: &AttemptRecord| record::progress(one).unwrap_or(0.0);
        end(b)
            .cmp(&end(a))
            .then(progress(a).total_cmp(&progress(b)))
    });
    tasks.into_iter().take(SLOWEST).cloned().collect()
}
