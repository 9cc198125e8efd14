//! The status as text. Pure.

use jiff::Timestamp;
use shed::adopt::annotation_names::by_annotations;
use shed::api::{AttemptRecord, AttemptState, DEADLINE_AT_RISK, JobRecord};
use shed_core::snapshot::AttemptKind;

use super::{StatusView, bands};
use crate::model::JobView;
use crate::output::{self, Canvas};
use crate::record;
use crate::table::{Cell, Column, fixed, ranked, tinted};
use crate::words::{self, Tint};

/// A job with more tasks is shown in bands of progress.
const TABLE_MAX: i32 = 50;
/// Where the values of the head begin.
const VALUES_AT: usize = 13;

pub fn render(view: &StatusView, canvas: Canvas, now: Timestamp) -> String {
    let mut text = head(&view.job, view.record.as_ref(), canvas, now);
    if let Some(record) = &view.record {
        text.push('\n');
        match view.job.spec.completions > TABLE_MAX {
            true => text.push_str(&bands::render(&view.job, record, canvas, now)),
            false => text.push_str(&attempts(&record.attempts, record.time.0, canvas, now)),
        }
    }
    text.push_str(&output::notes(&view.notes, canvas));
    text
}

pub fn line(name: &str, value: &str, canvas: Canvas) -> String {
    canvas.wrap(&format!("{name:<VALUES_AT$}"), value)
}

/// Name, deadline, PoCD, tasks and conditions of a job.
pub fn head(job: &JobView, record: Option<&JobRecord>, canvas: Canvas, now: Timestamp) -> String {
    let mut lines = vec![
        line(job.kind, &format!("{}/{}", job.namespace, job.name), canvas),
        line("Phase", job.phase(), canvas),
        line("Deadline", &deadline(job, now), canvas),
    ];
    lines.extend(end(job, now).map(|(name, value)| line(name, &value, canvas)));
    lines.push(pocd(job, record, canvas));
    lines.push(line("Tasks", &tasks(job, record), canvas));
    let run = job.status.workflow.as_ref();
    lines.extend(run.map(|run| line("Run", &format!("workflow/{}", run.run), canvas)));
    let conditions = shown_conditions(job);
    lines.extend(conditions.into_iter().map(|(type_, message)| {
        let tint = if type_ == "DeadlineMissed" {
            Tint::Red
        } else {
            Tint::Yellow
        };
        let (type_, message) = (canvas.wrap("", &type_), canvas.wrap("  ", &message));
        format!("{}\n{message}", tint.paint(canvas.color, type_.trim_end()))
    }));
    lines.concat()
}

fn deadline(job: &JobView, now: Timestamp) -> String {
    match job.deadline() {
        Some(time) => format!("{}, {}", words::instant(time), words::relative(now, time)),
        None if job.phase() == "New" => "not known yet: no operator has read the job".to_owned(),
        None => "none".to_owned(),
    }
}

/// A time against the deadline.
pub fn slack(seconds: Option<i64>) -> String {
    match seconds {
        Some(slack @ 0..) => format!(": slack {}", words::span(slack)),
        Some(slack) => format!(": {} after the deadline", words::span(slack)),
        None => String::new(),
    }
}

/// The end of the job, or the forecast of it, against its deadline.
fn end(job: &JobView, now: Timestamp) -> Option<(&'static str, String)> {
    let end = job.end()?;
    let name = match job.status.completion_time {
        Some(_) => "Complete",
        None => "Expected",
    };
    let slack = slack(job.slack());
    let range = job.status.completion_range.as_ref();
    let range = range.filter(|_| job.status.completion_time.is_none());
    let range = range.map(|range| format!("; by {} with 90 %", words::clock(now, range.p90.0)));
    let range = range.unwrap_or_default();
    Some((name, format!("{}{slack}{range}", words::clock(now, end))))
}

fn pocd(job: &JobView, record: Option<&JobRecord>, canvas: Canvas) -> String {
    let status = &job.status;
    let now = match &status.pocd {
        Some(pocd) => pocd.as_str(),
        None => return line("PoCD", &unknown_pocd(job), canvas),
    };
    let calibrated = status.calibrated_pocd.as_ref();
    let calibrated = calibrated.map(|pocd| format!(", calibrated {pocd}"));
    let value = words::printable(&format!("{now}{}", calibrated.unwrap_or_default()));
    let tint = Tint::of_pocd(job.pocd());
    let mut text = format!("{:<VALUES_AT$}{}", "PoCD", tint.paint(canvas.color, &value));
    let points = record.map_or(&[][..], |record| &record.pocd);
    let used = VALUES_AT + value.chars().count() + 2;
    if points.len() > 1 && used + points.len() <= canvas.width {
        text.push_str("  ");
        text.push_str(
            &points
                .iter()
                .map(|point| bar(point.pocd.value()))
                .collect::<String>(),
        );
    }
    text.push('\n');
    text
}

/// Why there is no PoCD. The condition of a companion names fields of the companion.
fn unknown_pocd(job: &JobView) -> String {
    let mut conditions = job.status.conditions.iter();
    let unknown = conditions.find(|one| one.type_ == DEADLINE_AT_RISK && one.status == "Unknown");
    match unknown {
        Some(condition) if job.kind == "Job" => {
            format!("unknown: {}", by_annotations(&condition.message))
        }
        Some(condition) => format!("unknown: {}", condition.message),
        None if job.deadline().is_none() => "unknown: no deadline".to_owned(),
        None => "unknown yet".to_owned(),
    }
}

/// A probability as a bar of one character.
fn bar(share: f64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    // From 0 to 7: `as` saturates.
    BARS[((share * 7.99) as usize).min(7)]
}

fn tasks(job: &JobView, record: Option<&JobRecord>) -> String {
    let (status, total) = (&job.status, job.spec.completions);
    let mut parts = vec![format!("{} of {total} done", status.succeeded)];
    let counts = [
        (status.active, "attempts live"),
        (status.clones, "of them clones"),
        (status.terminating, "terminating"),
        (status.failed, "failed for good"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    parts.extend(counts.map(|(count, what)| format!("{count} {what}")));
    let waiting = record.and_then(|record| record.waiting.as_ref());
    parts.extend(waiting.map(|waiting| format!("{} waiting ({})", waiting.tasks, waiting.reason)));
    parts.join(", ")
}

/// Conditions that tell of a problem, in a fixed order.
fn shown_conditions(job: &JobView) -> Vec<(String, String)> {
    const GOOD: [&str; 4] = [
        "Complete",
        "SuccessCriteriaMet",
        "DeadlineFeasible",
        "FailureTarget",
    ];
    let conditions = job.status.conditions.iter();
    let problems = conditions.filter(|condition| {
        let is_infeasible = condition.type_ == "DeadlineFeasible"
            && condition.status == "False"
            && !job.is_finished();
        is_infeasible || condition.status == "True" && !GOOD.contains(&condition.type_.as_str())
    });
    let problems = problems.map(|condition| {
        let type_ = match condition.type_.as_str() {
            "DeadlineFeasible" => "Deadline not feasible".to_owned(),
            type_ => type_.to_owned(),
        };
        (
            format!("{type_} ({})", condition.reason),
            condition.message.clone(),
        )
    });
    problems.collect()
}

const COLUMNS: [Column; 9] = [
    fixed("TASK").number(),
    fixed("ATTEMPT"),
    ranked("NODE", 5),
    fixed("PROGRESS").number(),
    ranked("FROM", 1).number(),
    ranked("RESUME", 2).number(),
    ranked("PACE", 3).number(),
    ranked("ENDS AT", 6),
    fixed("STATE"),
];

pub fn attempts(
    attempts: &[AttemptRecord],
    time: Timestamp,
    canvas: Canvas,
    now: Timestamp,
) -> String {
    if attempts.is_empty() {
        return "No attempt has been launched.\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = attempts.iter().map(|one| row(one, time, now)).collect();
    // Columns that are empty in every row tell nothing.
    let is_used = |index: usize| rows.iter().any(|row| row[index] != Cell::from(""));
    let used: Vec<usize> = (0..COLUMNS.len())
        .filter(|&index| COLUMNS[index].rank == 0 || is_used(index))
        .collect();
    let columns: Vec<Column> = used.iter().map(|&index| COLUMNS[index]).collect();
    let rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .map(|row| used.iter().map(|&index| row[index].clone()).collect())
        .collect();
    canvas.table(&columns, &rows)
}

fn row(attempt: &AttemptRecord, time: Timestamp, now: Timestamp) -> Vec<Cell> {
    let share = |share: Option<f64>| share.map(words::percent).unwrap_or_default();
    let ends = attempt
        .end_time
        .as_ref()
        .or(attempt.estimated_end_time.as_ref());
    let kind = match attempt.kind {
        AttemptKind::Original => String::new(),
        kind => format!(" {}", kind.label()),
    };
    vec![
        attempt.task.to_string().into(),
        format!("{}{kind}", attempt.attempt).into(),
        attempt.node.clone().unwrap_or_default().into(),
        share(record::progress(attempt)).into(),
        share(attempt.resumed_from.map(|from| from.value())).into(),
        share(attempt.resume_point.map(|point| point.value())).into(),
        record::pace(attempt, time).unwrap_or_default().into(),
        ends.map(|end| words::clock(now, end.0))
            .unwrap_or_default()
            .into(),
        tinted(state_tint(attempt), format!("{:?}", attempt.state)),
    ]
}

pub fn state_tint(attempt: &AttemptRecord) -> Tint {
    match attempt.state {
        AttemptState::Won => Tint::Green,
        AttemptState::Failed | AttemptState::Late => Tint::Red,
        AttemptState::Stopped | AttemptState::Disrupted => Tint::Dim,
        AttemptState::Running if attempt.kind == AttemptKind::Clone => Tint::Yellow,
        AttemptState::Running | AttemptState::Pending => Tint::Plain,
    }
}
