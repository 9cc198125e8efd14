//! The figure of a bench: a panel per metric, with a row per size and kind of jobs.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use shed_sim::cli::chart::{self, Area, Axis, ChartError, GREY, INK, LIGHT, number, px};

use super::load::{Kind, Size};
use super::ratios::{Derived, METRICS, Metric, Spread, ratios};
use super::results::Key;

/// Panels next to each other.
const COLUMNS: usize = 3;
/// Widths in pixels: of the names of rows, of a panel with the gap to the next one.
const NAMES: f64 = 176.0;
const PANEL: f64 = 178.0;
const GAP: f64 = 14.0;
/// Heights in pixels: of a row, above the rows, below them.
const ROW: f64 = 16.0;
const ABOVE: f64 = 26.0;
const BELOW: f64 = 24.0;
/// Size of text in pixels.
const SMALL: f64 = 10.0;
/// Ratios that every axis shows.
const ALWAYS: (f64, f64) = (0.5, 2.0);
/// Margin of an axis, as a factor.
const MARGIN: f64 = 1.15;

/// The rows of a panel: name, rank of the kind, ratio.
type Rows = Vec<(String, usize, Option<Spread>)>;

/// The figure as SVG; absent if no ratio was measured.
pub fn svg(runs: &BTreeMap<Key, Derived>) -> Result<Option<String>> {
    let panels: Vec<(Metric, Rows)> = METRICS
        .into_iter()
        .map(|metric| (metric, rows(runs, metric)))
        .collect();
    let all = panels.iter().flat_map(|(_, rows)| rows);
    let all: Vec<Spread> = all.filter_map(|(.., spread)| *spread).collect();
    let Some((_, first)) = panels.first().filter(|_| !all.is_empty()) else {
        return Ok(None);
    };
    let low = all.iter().map(|own| own.least).fold(ALWAYS.0, f64::min);
    let high = all.iter().map(|own| own.most).fold(ALWAYS.1, f64::max);
    // A ratio of nothing has no place on a logarithmic axis.
    let axis = Axis::log("", low.max(0.01) / MARGIN, high * MARGIN);
    let block = ABOVE + ROW * first.len() as f64 + BELOW;
    let height = block * panels.len().div_ceil(COLUMNS) as f64;
    let what = "Ratios of shed to the built-in Job controller, by load and kind of jobs";
    let drawn = chart::svg(height.ceil() as i32, what, |area| {
        for (at, (metric, rows)) in panels.iter().enumerate() {
            let left = NAMES + (at % COLUMNS) as f64 * PANEL;
            let top = ABOVE + (at / COLUMNS) as f64 * block;
            if at % COLUMNS == 0 {
                draw_names(area, rows, top)?;
            }
            draw_panel(area, (left, top), metric.name, rows, &axis)?;
        }
        Ok(())
    });
    drawn.map(Some).map_err(|error| anyhow!("{error}"))
}

fn rows(runs: &BTreeMap<Key, Derived>, metric: Metric) -> Rows {
    let loads: BTreeSet<(Size, Kind)> = runs.keys().map(|key| (key.size, key.kind)).collect();
    let compared = loads.into_iter().filter(|(_, kind)| !kind.is_builtin());
    let row = |(size, kind): (Size, Kind)| {
        let name = format!("{} {}", size.name(), kind.title());
        (name, kind as usize, ratios(runs, size, kind, metric))
    };
    compared.map(row).collect()
}

/// The middle of a row.
fn middle(top: f64, row: usize) -> i32 {
    px(top + ROW * (row as f64 + 0.5))
}

fn draw_names(area: &Area<'_>, rows: &Rows, top: f64) -> Result<(), ChartError> {
    let style = chart::style(SMALL, INK, HPos::Right, VPos::Center);
    for (row, (name, ..)) in rows.iter().enumerate() {
        let at = (px(NAMES - 8.0), middle(top, row));
        area.draw(&Text::new(name.clone(), at, style.clone()))?;
    }
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    (left, top): (f64, f64),
    name: &str,
    rows: &Rows,
    axis: &Axis,
) -> Result<(), ChartError> {
    let extent = (px(left), px(left + PANEL - GAP));
    let bottom = px(top + ROW * rows.len() as f64);
    let across = |value: f64| axis.map(&value.max(axis.low), extent);
    let title = chart::style(SMALL + 1.0, INK, HPos::Left, VPos::Center);
    area.draw(&Text::new(
        name.to_owned(),
        (extent.0, px(top - 12.0)),
        title,
    ))?;
    let words = chart::style(SMALL - 1.0, GREY, HPos::Center, VPos::Center);
    for tick in &axis.ticks {
        let (x, is_one) = (across(*tick), *tick == 1.0);
        let colour = if is_one { INK } else { LIGHT };
        chart::line(area, vec![(x, px(top)), (x, bottom)], colour, 0.75)?;
        let at = (x, bottom + px(9.0));
        area.draw(&Text::new(number(*tick), at, words.clone()))?;
    }
    for (row, (_, rank, spread)) in rows.iter().enumerate() {
        if let Some(spread) = spread {
            let y = middle(top, row);
            let ends = [(across(spread.least), y), (across(spread.most), y)];
            chart::whisker(area, ends[0], ends[1], *rank)?;
            chart::marker(area, (across(spread.median), y), *rank)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::ratios::derived;
    use super::super::ratios::tests::lines;
    use super::*;

    #[test]
    fn a_figure_has_every_metric_and_row() {
        let figure = svg(&derived(&lines())).unwrap().unwrap();
        for text in [
            "\nwrites per task\n",
            "\nmemory growth\n",
            "\n1x1000 DeadlineJob, no clones\n",
        ] {
            assert!(figure.contains(text), "{text} is not in the figure");
        }
    }

    #[test]
    fn no_ratio_no_figure() {
        let mut lines = lines();
        lines.retain(|key, _| key.kind == Kind::Job);
        assert!(svg(&derived(&lines)).unwrap().is_none());
    }
}
