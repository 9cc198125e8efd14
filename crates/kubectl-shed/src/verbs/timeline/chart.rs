//! The chart of a job: its rows and the span of time that they need. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shed::api::AttemptRecord;
use shed_core::snapshot::AttemptKind;

use crate::verbs::status::StatusView;

/// A chart. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart<'a> {
    /// By task and attempt.
    pub rows: Vec<Row<'a>>,
    pub from: i64,
    /// The right edge, later than the left one.
    pub to: i64,
    /// The present, if the job has not finished.
    pub now: Option<i64>,
    pub deadline: Option<i64>,
}

/// An attempt that has started.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    pub attempt: &'a AttemptRecord,
    pub start: i64,
    /// When it ended, or the present.
    pub end: i64,
    /// When a live attempt should end.
    pub expected: Option<i64>,
}

impl<'a> Chart<'a> {
    /// The chart of a job; absent if none of its attempts has started.
    pub fn new(view: &'a StatusView, now: Timestamp) -> Option<Self> {
        let record = view.record.as_ref()?;
        let present = now.as_second();
        let rows = record.attempts.iter();
        let mut rows: Vec<Row> = rows.filter_map(|attempt| row(attempt, present)).collect();
        rows.sort_by_key(|row| (row.attempt.task, row.attempt.attempt));
        let now = (!view.is_last()).then_some(present);
        let from = rows.iter().map(|row| row.start).min()?;
        let ends = rows.iter().map(|row| row.expected.unwrap_or(row.end));
        let to = ends.chain(now).max()?;
        let deadline = view.job.deadline().map(Timestamp::as_second);
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

fn row(attempt: &AttemptRecord, present: i64) -> Option<Row<'_>> {
    let second = |time: &Time| time.0.as_second();
    let start = second(attempt.start_time.as_ref()?);
    let end = attempt.end_time.as_ref().map_or(present, second).max(start);
    let expected = attempt.estimated_end_time.as_ref().map(second);
    Some(Row {
        attempt,
        start,
        end,
        expected: expected.filter(|expected| attempt.state.is_live() && *expected > end),
    })
}

impl Row<'_> {
    /// Such as `3.1 c`.
    pub fn label(&self) -> String {
        let kind = if self.is_clone() { " c" } else { "" };
        format!("{}.{}{kind}", self.attempt.task, self.attempt.attempt)
    }

    pub fn is_clone(&self) -> bool {
        self.attempt.kind == AttemptKind::Clone
    }

    /// Whether it began with progress.
    pub fn is_resumed(&self) -> bool {
        let from = self.attempt.resumed_from;
        from.is_some_and(|from| from.value() > 0.0)
    }
}
