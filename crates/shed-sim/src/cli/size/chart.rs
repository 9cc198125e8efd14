//! Deadlines met over size, one line per policy.

use super::By;
use super::output::{Point, SizeRow, target, unit};
use super::plan::Plan;
use crate::cli::CliError;
use crate::cli::chart::{Axis, Series, lines};

const HEIGHT: i32 = 360;

/// Percents between the lowest point and the end of the axis are a multiple of this.
const STEP: f64 = 5.0;

/// The chart ends at that many times the largest answer: a policy without an answer is tried far
/// beyond.
const BEYOND: f64 = 1.6;

pub(super) fn svg(plan: &Plan, rows: &[SizeRow]) -> Result<String, CliError> {
    let last = last_shown(rows);
    let points = || rows.iter().flat_map(|row| shown(row, last));
    let low = points().map(|point| point.size).fold(last, f64::min);
    let high = points().map(|point| point.size).fold(low, f64::max);
    let least = points().map(|point| 100.0 * point.met_low);
    let least = (least.fold(100.0, f64::min) / STEP).floor() * STEP;
    let across = match plan.by {
        By::Nodes => unit(plan).to_owned(),
        By::Lambda => "λ, the share of the cluster that attempts may use".to_owned(),
        By::Deadline => "factor on all deadlines".to_owned(),
    };
    let x = Axis::linear(&across, low, high.max(low + 0.01));
    let y = Axis::linear("deadlines met, %", least.min(95.0), 100.0);
    let of_rows = rows.iter().enumerate();
    let mut series: Vec<Series> = of_rows
        .map(|(rank, row)| series_of(rank, row, last))
        .collect();
    if let Some(row) = rows.first() {
        series.push(Series {
            name: format!("target {} %", target(row.target)),
            rank: rows.len(),
            points: [low, x.high].map(|at| (at, 100.0 * row.target)).into(),
            whiskers: Vec::new(),
            marked: Vec::new(),
        });
    }
    lines(
        HEIGHT,
        &format!("Deadlines met over {across}"),
        (&x, &y),
        &series,
    )
}

/// The largest size of the chart: everything where no policy meets the target.
fn last_shown(rows: &[SizeRow]) -> f64 {
    let answers = rows.iter().filter_map(|row| row.size);
    let last = answers.map(|size| BEYOND * size).fold(0.0, f64::max);
    let today = rows.iter().filter_map(|row| row.today);
    match last > 0.0 {
        true => today.fold(last, f64::max),
        false => rows.iter().map(|row| row.most).fold(0.0, f64::max),
    }
}

fn shown(row: &SizeRow, last: f64) -> impl Iterator<Item = &Point> {
    row.curve.iter().filter(move |point| point.size <= last)
}

/// A policy's curve with the intervals of its points; the answer is marked.
fn series_of(rank: usize, row: &SizeRow, last: f64) -> Series {
    let points = shown(row, last).map(|p| (p.size, 100.0 * p.met));
    let whiskers = shown(row, last).map(|p| (p.size, 100.0 * p.met_low, 100.0 * p.met_high));
    let answer = shown(row, last).filter(|point| Some(point.size) == row.size);
    Series {
        name: match row.size {
            Some(size) => format!("{}: {size}", row.name),
            None => format!("{}: none", row.name),
        },
        rank,
        points: points.collect(),
        whiskers: whiskers.collect(),
        marked: answer.map(|p| (p.size, 100.0 * p.met)).collect(),
    }
}
