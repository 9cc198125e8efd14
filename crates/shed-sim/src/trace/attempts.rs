//! `google2011_part0`: one row per attempt, with its outcome. Durations above the window are cut
//! off at its end.
//!
//! Readings: a task's own time is that of its finished attempt, or else of its longest. `KILL` (by the job's owner)
//! and `CENSORED` (the window ended) count as the end of the task's work if no attempt follows, and as an eviction if
//! one does.

use std::collections::BTreeMap;
use std::path::Path;

use shed_core::time::Span;

use super::build::{Builder, JobRow, TaskRow};
use super::table::{Column, Table};
use super::tasks::Columns;
use super::{Ending, Recorded, Trace};
use shed_record::InputError;

/// The columns that distinguish this format from one row per task.
pub(super) const TYPICAL_FIELDS: [&str; 2] = ["attempt", "outcome"];

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Finish,
    Fail,
    Evict,
    /// `KILL` or `CENSORED`.
    Stopped,
}

struct Task {
    job: JobRow,
    row: TaskRow,
    attempts: BTreeMap<u32, (Span, Outcome)>,
}

pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let columns = Columns::of(&table)?;
    let (attempt, outcome) = (table.column("attempt")?, table.column("outcome")?);
    let mut tasks: BTreeMap<(String, Box<str>), Task> = BTreeMap::new();
    while table.next()? {
        let (job, row) = (columns.job_row(&table)?, columns.task_row(&table)?);
        let number = table.number(attempt, 1.0, 1e6)? as u32;
        let ended = (row.duration, read_outcome(&table, outcome)?);
        let key = (table.name(columns.job)?.to_owned(), row.id.clone());
        let task = tasks.entry(key).or_insert_with(|| Task {
            job,
            row,
            attempts: BTreeMap::new(),
        });
        if task.attempts.insert(number, ended).is_some() {
            let message = format!("attempt {number} of this task occurs twice");
            return Err(table.error(attempt, message));
        }
    }
    let mut builder = Builder::new(path);
    for ((job, _), task) in tasks {
        builder.add(&job, task.job, whole(task.row, &task.attempts))?;
    }
    builder.finish()
}

fn read_outcome(table: &Table, column: Column) -> Result<Outcome, InputError> {
    match table.text(column)? {
        "FINISH" => Ok(Outcome::Finish),
        "FAIL" => Ok(Outcome::Fail),
        "EVICT" => Ok(Outcome::Evict),
        "KILL" | "CENSORED" => Ok(Outcome::Stopped),
        other => Err(table.error(
            column,
            format!("`{other}` is not one of FINISH, FAIL, EVICT, KILL, CENSORED"),
        )),
    }
}

/// The task with its history, if it has one that matters.
fn whole(mut row: TaskRow, attempts: &BTreeMap<u32, (Span, Outcome)>) -> TaskRow {
    let finished = attempts.values().find(|(_, how)| *how == Outcome::Finish);
    let longest = attempts.values().map(|(duration, _)| *duration).max();
    let own = finished.map(|(duration, _)| *duration).or(longest);
    row.duration = own.unwrap_or_default();
    let last = attempts.len().saturating_sub(1);
    let recorded = attempts.values().enumerate();
    let recorded: Vec<Recorded> = recorded
        .map(|(at, &(duration, outcome))| Recorded {
            duration,
            ending: match outcome {
                Outcome::Finish => Ending::Finished,
                Outcome::Fail => Ending::Failed,
                Outcome::Stopped if at == last => Ending::Finished,
                Outcome::Evict | Outcome::Stopped => Ending::Evicted,
            },
        })
        .collect();
    if recorded
        .iter()
        .any(|attempt| attempt.ending != Ending::Finished)
    {
        row.recorded = recorded;
    }
    row
}
