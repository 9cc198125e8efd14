//! The chart of a job: its rows and the span of time that they need. Pure.

use jiff::Timestamp;
use shed::api::{AttemptRecord, AttemptState};
use shed_core::snapshot::AttemptKind;

use crate::record;
use crate::verbs::status::StatusView;
use crate::words;

/// A chart. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// By task and attempt.
    pub rows: Vec<Row>,
    /// The left edge.
    pub from: i64,
    /// The right edge, later than the left one.
    pub to: i64,
    /// The present, if the job has not finished.
    pub now: Option<i64>,
    pub deadline: Option<i64>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Such as `3.1`.
    pub label: String,
    pub is_clone: bool,
    pub state: AttemptState,
    /// When it started.
    pub start: i64,
    /// When it ended, or the present.
    pub end: i64,
    /// When a live attempt should end.
    pub expected: Option<i64>,
    /// Progress at which it began, if that is not zero.
    pub resumed_from: Option<f64>,
    /// The attempt in words.
    pub words: String,
}

impl Chart {
    /// The chart of a job; absent if none of its attempts has started.
    pub fn new(view: &StatusView, now: Timestamp) -> Option<Self> {
        let record = view.record.as_ref()?;
        let present = now.as_second();
        let mut attempts: Vec<&AttemptRecord> = record.attempts.iter().collect();
        attempts.sort_by_key(|attempt| (attempt.task, attempt.attempt));
        let rows = attempts
            .iter()
            .filter_map(|attempt| row(attempt, record.time.0, now));
        let rows: Vec<Row> = rows.collect();
        let is_finished = view.job.is_finished();
        let deadline = view.job.deadline().map(Timestamp::as_second);
        let now = (!is_finished).then_some(present);
        let from = rows.iter().map(|row| row.start).min()?;
        let ends = rows.iter().map(|row| row.expected.unwrap_or(row.end));
        let to = ends.chain(now).max()?;
        // A deadline that is very far away would leave no columns for the bars.
        let near = deadline.filter(|deadline| *deadline <= to + (to - from) * 2);
        let to = near.map_or(to, |deadline| to.max(deadline)).max(from + 1);
        Some(Self {
            rows,
            from,
            to,
            now,
            deadline,
        })
    }

    /// A time as a share of the chart's width; absent if it is outside.
    pub fn share(&self, time: i64) -> Option<f64> {
        let share = (time - self.from) as f64 / (self.to - self.from) as f64;
        (0.0..=1.0).contains(&share).then_some(share)
    }
}

fn row(attempt: &AttemptRecord, time: Timestamp, now: Timestamp) -> Option<Row> {
    let start = attempt.start_time.as_ref()?.0.as_second();
    let end = attempt
        .end_time
        .as_ref()
        .map_or(now, |end| end.0)
        .as_second()
        .max(start);
    let expected = attempt
        .estimated_end_time
        .as_ref()
        .map(|end| end.0.as_second());
    Some(Row {
        label: record::label(attempt),
        is_clone: attempt.kind == AttemptKind::Clone,
        state: attempt.state,
        start,
        end,
        expected: expected.filter(|expected| attempt.state.is_live() && *expected > end),
        resumed_from: attempt
            .resumed_from
            .map(|from| from.value())
            .filter(|from| *from > 0.0),
        words: described(attempt, time, now),
    })
}

/// Such as `task 3, attempt 1: Clone on worker-4, Running at 58 %, resumed from 30 %, 07:31:30Z to 07:56:30Z`.
fn described(attempt: &AttemptRecord, time: Timestamp, now: Timestamp) -> String {
    let mut text = format!(
        "task {}, attempt {}: {:?}",
        attempt.task, attempt.attempt, attempt.kind
    );
    if let Some(node) = &attempt.node {
        text.push_str(&format!(" on {}", words::printable(node)));
    }
    text.push_str(&format!(", {:?}", attempt.state));
    if let Some(progress) = record::progress(attempt) {
        text.push_str(&format!(" at {}", words::percent(progress)));
    }
    if let Some(from) = attempt.resumed_from {
        text.push_str(&format!(", resumed from {}", words::percent(from.value())));
    }
    if let Some(pace) = record::pace(attempt, time) {
        text.push_str(&format!(", {pace}"));
    }
    if let Some(start) = &attempt.start_time {
        text.push_str(&format!(", from {}", words::clock(now, start.0)));
    }
    match (&attempt.end_time, &attempt.estimated_end_time) {
        (Some(end), _) => text.push_str(&format!(" to {}", words::clock(now, end.0))),
        (None, Some(end)) => text.push_str(&format!(
            ", expected to end at {}",
            words::clock(now, end.0)
        )),
        (None, None) => {}
    }
    text
}
