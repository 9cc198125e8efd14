//! Deadlines met over size, one line per policy.

use super::By;
use super::output::{SizeRow, unit};
use super::plan::Plan;
use crate::cli::CliError;
use crate::cli::chart::{Axis, Series, lines};

const HEIGHT: i32 = 360;

/// Percents between the lowest point and the end of the axis are a multiple of this.
const STEP: f64 = 5.0;

pub(super) fn svg(plan: &Plan, rows: &[SizeRow]) -> Result<String, CliError> {
    let points = || rows.iter().flat_map(|row| &row.curve);
    let sizes = || points().map(|point| point.size);
    let (low, high) = (
        sizes().fold(f64::INFINITY, f64::min),
        sizes().fold(0.0, f64::max),
    );
    let least = points()
        .map(|point| 100.0 * point.met_low)
        .fold(100.0, f64::min);
    let across = match plan.by {
        By::Nodes => unit(plan).to_owned(),
        By::Lambda => "λ, the share of the cluster that attempts may use".to_owned(),
        By::Deadline => "factor on all deadlines".to_owned(),
    };
    let x = Axis::linear(&across, low, high.max(low + 0.01));
    let y = Axis::linear("deadlines met, %", (least / STEP).floor() * STEP, 100.0);
    let mut series: Vec<Series> = rows.iter().enumerate().map(series_of).collect();
    if let Some(row) = rows.first() {
        let percent = 100.0 * row.target;
        series.push(Series {
            name: format!("target {percent} %"),
            rank: rows.len(),
            points: vec![(low, percent), (x.high, percent)],
            whiskers: Vec::new(),
            marked: Vec::new(),
        });
    }
    let what = format!("Deadlines met over {across}");
    lines(HEIGHT, &what, (&x, &y), &series)
}

/// A policy's curve with the intervals of its points; the answer is marked.
fn series_of((rank, row): (usize, &SizeRow)) -> Series {
    let curve = row.curve.iter();
    let points = curve.map(|point| (point.size, 100.0 * point.met)).collect();
    let whiskers = row.curve.iter();
    let whiskers = whiskers.map(|p| (p.size, 100.0 * p.met_low, 100.0 * p.met_high));
    let answer = row
        .curve
        .iter()
        .filter(|point| Some(point.size) == row.size);
    let name = match row.size {
        Some(size) => format!("{}: {size}", row.name),
        None => format!("{}: none", row.name),
    };
    Series {
        name,
        rank,
        points,
        whiskers: whiskers.collect(),
        marked: answer
            .map(|point| (point.size, 100.0 * point.met))
            .collect(),
    }
}
