//! The chart of a job: its rows and the span of time that they need. Pure.

use jiff::Timestamp;
use shed::api::{AttemptRecord, AttemptState};
use shed_core::snapshot::AttemptKind;

use crate::record;
use crate::verbs::status::StatusView;

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
}

impl Chart {
    /// The chart of a job; absent if none of its attempts has started.
    pub fn new(view: &StatusView, now: Timestamp) -> Option<Self> {
        let record = view.record.as_ref()?;
        let present = now.as_second();
        let mut attempts: Vec<&AttemptRecord> = record.attempts.iter().collect();
        attempts.sort_by_key(|attempt| (attempt.task, attempt.attempt));
        let rows = attempts.iter().filter_map(|attempt| row(attempt, now));
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

fn row(attempt: &AttemptRecord, now: Timestamp) -> Option<Row> {
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
    })
}
