//! Deadlines met, over load; with one load, policy by policy.

use std::collections::BTreeMap;

use crate::cli::report::chart::{self, Axis, NAME_MAX, Series};
use crate::cli::report::names::{Names, PolicyKey};
use crate::cli::report::results::{Point, Workload};
use shed_sim::cli::CliError;

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
    let line = |(policy, points): (&&PolicyKey, &Vec<&Point>)| LoadLine {
        name: names.name(policy).to_owned(),
        rank: names.rank(policy),
        points: points.iter().map(|point| at_load(point)).collect(),
    };
    let lines: Vec<LoadLine> = by_policy.iter().map(line).collect();
    met_over_load(&lines)
}

fn at_load(point: &Point) -> AtLoad {
    let (met, interval) = percents(point);
    AtLoad {
        load: point.load.0.unwrap_or(0.0),
        met,
        interval,
    }
}

/// A line of a figure of deadlines met over load.
pub(in crate::cli) struct LoadLine {
    pub(in crate::cli) name: String,
    /// Rank that selects its color and marker.
    pub(in crate::cli) rank: usize,
    pub(in crate::cli) points: Vec<AtLoad>,
}

/// Percent of deadlines met at a load.
pub(in crate::cli) struct AtLoad {
    pub(in crate::cli) load: f64,
    pub(in crate::cli) met: f64,
    pub(in crate::cli) interval: Option<(f64, f64)>,
}

/// Deadlines met over load, a line each.
pub(in crate::cli) fn met_over_load(lines: &[LoadLine]) -> Result<String, CliError> {
    let points = lines.iter().flat_map(|line| &line.points);
    let loads: Vec<f64> = points.map(|point| point.load).collect();
    let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let most = loads.iter().copied().fold(0.0, f64::max);
    let count = lines.len() as f64;
    let series = lines.iter().enumerate().map(|(at, line)| {
        let aside = APART * (most - least) * (at as f64 - (count - 1.0) / 2.0);
        one_line(line, aside)
    });
    let series: Vec<Series> = series.collect();
    let mut across = Axis::linear("load (originals' time / slots × span)", 0.0, most);
    // A margin on both sides, and a tick at each load alone if there are few.
    let margin = 0.06 * (most - least);
    (across.low, across.high) = (least - margin, most + margin);
    across.ticks = round_loads(loads);
    let up = Axis::linear("deadlines met (%)", 0.0, PERCENT);
    chart::lines(
        HEIGHT,
        "Deadlines met over load, by policy",
        (&across, &up),
        &series,
    )
}

fn one_line(line: &LoadLine, aside: f64) -> Series {
    let x = |point: &AtLoad| point.load + aside;
    let points = line.points.iter();
    let middles: Vec<(f64, f64)> = points.clone().map(|p| (x(p), p.met)).collect();
    let intervals = points.filter_map(|p| Some((x(p), p.interval?)));
    Series {
        name: line.name.clone(),
        rank: line.rank,
        whiskers: intervals.map(|(x, (low, high))| (x, low, high)).collect(),
        marked: middles.clone(),
        points: middles,
    }
}

/// Up to eight of the loads.
fn round_loads(mut loads: Vec<f64>) -> Vec<f64> {
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
