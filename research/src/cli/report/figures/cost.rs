//! Costs of policies: the time for which attempts held a slot, split into winners and the rest.

use plotters::prelude::{Color, Rectangle};

use crate::cli::report::chart::{self, Area, Axis, ChartError, NAME_MAX, Rows};
use crate::cli::report::names::Names;
use crate::cli::report::results::{Estimate, Point, Workload};
use shed_sim::cli::CliError;

/// More bars are not legible in one figure; then only the largest load is shown.
const BARS_MAX: usize = 36;
const ROW: i32 = 20;
const SECONDS_PER_HOUR: f64 = 3600.0;

/// The figure.
pub(in crate::cli::report) fn cost(workload: &Workload, names: &Names) -> Result<String, CliError> {
    let shown = workload.best_policies(super::POLICIES_MAX);
    let mut points: Vec<&Point> = workload.points.iter().collect();
    points.retain(|point| shown.contains(&point.policy));
    if points.len() > BARS_MAX {
        let most = workload.loads().last().copied();
        points.retain(|point| Some(point.load) == most);
    }
    let hours = |estimate: Option<Estimate>| estimate.map_or(0.0, |e| e.mean / SECONDS_PER_HOUR);
    let most = points.iter().map(|point| hours(point.machine_seconds));
    let most = most.fold(0.0, f64::max);
    let axis = Axis::linear(
        "machine time (h), solid: of winners, light: wasted",
        0.0,
        most,
    );
    let height = chart::rows_height(points.len(), ROW);
    chart::svg(height, "Machine time by policy and load", |area| {
        let rows = chart::rows(area, &axis, ROW, 110.0)?;
        for (row, point) in points.iter().enumerate() {
            let (all, wasted) = (hours(point.machine_seconds), hours(point.wasted_seconds));
            bar(area, &rows, row, (all, wasted), names.rank(&point.policy))?;
            let load = point.load.0.map(|load| format!(" @ {load}"));
            let load = load.unwrap_or_default();
            let name = chart::shortened(
                names.name(&point.policy),
                NAME_MAX.saturating_sub(load.chars().count()),
            );
            rows.name(area, row, &format!("{name}{load}"))?;
        }
        Ok(())
    })
}

fn bar(
    area: &Area<'_>,
    rows: &Rows,
    row: usize,
    (all, wasted): (f64, f64),
    rank: usize,
) -> Result<(), ChartError> {
    let (y, half) = (rows.y(row), chart::px(6.0));
    let (start, middle, end) = (rows.x(0.0), rows.x(all - wasted), rows.x(all));
    let solid = chart::colour(rank).filled();
    let light = chart::colour(rank).mix(0.35).filled();
    area.draw(&Rectangle::new(
        [(start, y - half), (middle, y + half)],
        solid,
    ))?;
    area.draw(&Rectangle::new(
        [(middle, y - half), (end, y + half)],
        light,
    ))?;
    let share = if all > 0.0 { 100.0 * wasted / all } else { 0.0 };
    let text = format!("{} h, {share:.0} % wasted", chart::number(all.round()));
    chart::text_right(area, (end + chart::px(6.0), y), &text)
}
