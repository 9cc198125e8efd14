//! Deadlines met, over load; with one load, policy by policy.

use std::collections::BTreeMap;

use crate::cli::CliError;
use crate::cli::report::chart::{self, Axis, Series};
use crate::cli::report::names::{NAME_MAX, Names, PolicyKey};
use crate::cli::report::results::{Point, Workload};

const PERCENT: f64 = 100.0;
const HEIGHT: i32 = 360;
const ROW: i32 = 24;
/// How far lines stand apart at the same load, so that no interval hides another: a share of the
/// axis.
const APART: f64 = 0.01;

/// The figure; `None` if no run has deadlines.
pub(in crate::cli::report) fn deadlines(
    workload: &Workload,
    names: &Names,
) -> Result<Option<String>, CliError> {
    let shown = workload.best_policies(super::POLICIES_MAX);
    let points = workload.points.iter();
    let points: Vec<&Point> = points
        .filter(|point| point.pocd.is_some() && shown.contains(&point.policy))
        .collect();
    if points.is_empty() {
        return Ok(None);
    }
    let loads = workload.loads();
    let figure = match loads.as_slice() {
        [one] => by_policy(&points, &loads_text(one.0), names),
        _ => over_load(&points, names),
    };
    figure.map(Some)
}

fn loads_text(load: Option<f64>) -> String {
    load.map_or_else(String::new, |load| format!(", load {load}"))
}

/// Percent of the middle, and of both ends of its interval.
fn percents(point: &Point) -> (f64, Option<(f64, f64)>) {
    let Some(pocd) = point.pocd else {
        return (0.0, None);
    };
    let ends = pocd.half_width.map(|half| {
        let (low, high) = (pocd.mean - half, pocd.mean + half);
        (PERCENT * low.max(0.0), PERCENT * high.min(1.0))
    });
    (PERCENT * pocd.mean, ends)
}

fn over_load(points: &[&Point], names: &Names) -> Result<String, CliError> {
    let mut by_policy: BTreeMap<&PolicyKey, Vec<&Point>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.load.0.is_some()) {
        by_policy.entry(&point.policy).or_default().push(point);
    }
    let loads = points.iter().filter_map(|point| point.load.0);
    let (least, most) = loads.fold((f64::INFINITY, 0.0_f64), |(low, high), load| {
        (low.min(load), high.max(load))
    });
    let count = by_policy.len() as f64;
    let series = by_policy.iter().enumerate().map(|(at, (policy, points))| {
        let aside = APART * (most - least) * (at as f64 - (count - 1.0) / 2.0);
        one_line(points, aside, names.name(policy), names.rank(policy))
    });
    let series: Vec<Series> = series.collect();
    let mut across = Axis::linear("load (originals' time / slots × span)", 0.0, most);
    // Room on both sides, and a tick at each load alone where there are few.
    let margin = 0.06 * (most - least);
    (across.low, across.high) = (least - margin, most + margin);
    across.ticks = round_loads(points);
    let up = Axis::linear("deadlines met (%)", 0.0, PERCENT);
    chart::lines(
        HEIGHT,
        "Deadlines met over load, by policy",
        (&across, &up),
        &series,
    )
}

fn one_line(points: &[&Point], aside: f64, name: &str, rank: usize) -> Series {
    let x = |point: &Point| point.load.0.unwrap_or(0.0) + aside;
    let middles: Vec<(f64, f64)> = points.iter().map(|p| (x(p), percents(p).0)).collect();
    let intervals = points.iter().filter_map(|p| Some((x(p), percents(p).1?)));
    Series {
        name: name.to_owned(),
        rank,
        whiskers: intervals.map(|(x, (low, high))| (x, low, high)).collect(),
        marked: middles.clone(),
        points: middles,
    }
}

/// Up to eight of the loads.
fn round_loads(points: &[&Point]) -> Vec<f64> {
    let mut loads: Vec<f64> = points.iter().filter_map(|point| point.load.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let every = loads.len().div_ceil(8).max(1);
    loads.into_iter().step_by(every).collect()
}

fn by_policy(points: &[&Point], load: &str, names: &Names) -> Result<String, CliError> {
    let axis = Axis::linear(&format!("deadlines met (%){load}"), 0.0, PERCENT);
    let height = chart::rows_height(points.len(), ROW);
    chart::svg(height, "Deadlines met by policy", |area| {
        let rows = chart::rows(area, &axis, ROW, 70.0)?;
        for (row, point) in points.iter().enumerate() {
            let (middle, ends) = percents(point);
            let (rank, y) = (names.rank(&point.policy), rows.y(row));
            let mut right = rows.x(middle);
            if let Some((low, high)) = ends {
                chart::whisker(area, (rows.x(low), y), (rows.x(high), y), rank)?;
                right = rows.x(high);
            }
            chart::marker(area, (rows.x(middle), y), rank)?;
            let name = chart::shortened(names.name(&point.policy), NAME_MAX);
            rows.name(area, row, &name)?;
            let at = (right + chart::px(10.0), y);
            chart::text_right(area, at, &format!("{middle:.1} %"))?;
        }
        Ok(())
    })
}
