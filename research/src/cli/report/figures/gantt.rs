//! The attempts of one job, a lane each.

use plotters::prelude::{Color, RGBColor, Rectangle};

use crate::cli::report::chart::{self, Area, Axis, ChartError, GREY, INK, PALETTE, Rows};
use crate::cli::report::details::{Attempt, History};
use shed_sim::cli::CliError;

/// More lanes are not legible in one figure.
pub(in crate::cli::report) const LANES_MAX: usize = 60;
const ROW: i32 = 15;

const WON: RGBColor = PALETTE[0];
const LOST: RGBColor = PALETTE[4];
const FAILED: RGBColor = PALETTE[1];

/// The figure.
pub(in crate::cli::report) fn gantt(history: &History) -> Result<String, CliError> {
    let lanes = lanes(history);
    let ends = lanes.iter().map(|attempt| attempt.ended);
    let most = ends.chain(history.deadline).fold(1.0, f64::max);
    let axis = Axis::linear("time since the job's arrival (s)", 0.0, most);
    let height = chart::rows_height(lanes.len(), ROW) + 6;
    chart::svg(height, "Attempts of one job over time", |area| {
        let rows = chart::rows(area, &axis, ROW, 110.0)?;
        if let Some(deadline) = history.deadline {
            let (x, top) = (rows.x(deadline), rows.top());
            let bottom = rows.y(lanes.len()) - chart::px(f64::from(ROW) / 2.0);
            chart::line(area, vec![(x, top), (x, bottom)], INK, 1.5)?;
            let style = chart::style(
                11.0,
                INK,
                plotters::style::text_anchor::HPos::Center,
                plotters::style::text_anchor::VPos::Bottom,
            );
            let at = (x, top - chart::px(1.0));
            area.draw(&plotters::prelude::Text::new("deadline", at, style))?;
        }
        for (row, attempt) in lanes.iter().enumerate() {
            lane(area, &rows, row, attempt)?;
        }
        Ok(())
    })
}

/// All attempts, or those of the tasks with the most attempts, in the order of tasks.
fn lanes(history: &History) -> Vec<&Attempt> {
    let tasks = history
        .attempts
        .chunk_by(|a, b| (a.stage, a.task) == (b.stage, b.task));
    let mut tasks: Vec<&[Attempt]> = tasks.collect();
    let end = |task: &[Attempt]| task.iter().map(|a| a.ended).fold(0.0, f64::max);
    tasks.sort_by(|a, b| {
        let more = b.len().cmp(&a.len());
        more.then_with(|| end(b).total_cmp(&end(a)))
    });
    let mut left_lanes = LANES_MAX;
    tasks.retain(|task| match left_lanes.checked_sub(task.len()) {
        Some(left) => {
            left_lanes = left;
            true
        }
        None => false,
    });
    let mut lanes: Vec<&Attempt> = tasks.into_iter().flatten().collect();
    lanes.sort_by_key(|attempt| (attempt.stage, attempt.task, attempt.number));
    lanes
}

fn lane(area: &Area<'_>, rows: &Rows, row: usize, attempt: &Attempt) -> Result<(), ChartError> {
    let y = rows.y(row);
    let placed = attempt.placed.unwrap_or(attempt.ended);
    let started = attempt.started.unwrap_or(attempt.ended);
    let (colour, word) = fate(attempt);
    if placed > attempt.launched {
        let waits = vec![(rows.x(attempt.launched), y), (rows.x(placed), y)];
        chart::line(area, waits, GREY, 1.0)?;
    }
    for (from, to, colour) in [
        (placed, started, colour.mix(0.35)),
        (started, attempt.ended, colour.mix(1.0)),
    ] {
        let half = chart::px(4.5);
        let corners = [(rows.x(from), y - half), (rows.x(to), y + half)];
        if to > from {
            area.draw(&Rectangle::new(corners, colour.filled()))?;
        }
    }
    let stage = match attempt.stage {
        0 => String::new(),
        stage => format!("stage {stage} "),
    };
    let name = match attempt.kind.as_str() {
        "original" => format!("{stage}task {}", attempt.task),
        kind => format!("{stage}task {} · {kind} {}", attempt.task, attempt.number),
    };
    rows.name(area, row, &name)?;
    let begun = match attempt.begin {
        begin if begin > 0.0 => format!("{word}, from {:.0} %", 100.0 * begin),
        _ => word,
    };
    chart::text_on_white(area, (rows.x(attempt.ended) + chart::px(5.0), y), &begun)
}

/// Color and words for how an attempt ended.
fn fate(attempt: &Attempt) -> (RGBColor, String) {
    match (attempt.outcome.as_str(), &attempt.kill) {
        ("won", _) => (WON, "won".to_owned()),
        ("superseded", Some(kill)) if kill == "settle" => (LOST, "beaten".to_owned()),
        ("superseded", Some(kill)) => (LOST, format!("killed ({kill})")),
        (outcome, _) => (FAILED, outcome.replace('_', " ")),
    }
}
