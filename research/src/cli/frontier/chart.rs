//! Figures of the frontier: a panel per preset, with the curve of prices per load and the other policies as points.

use std::ops::Range;

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::points::Point;
use super::runs::FROZEN;
use shed_sim::cli::CliError;
use shed_sim::cli::chart::{
    self, Area, Axis, ChartError, FINE, FONT_FACTOR, GREY, INK, LIGHT, colour, number, px,
};

/// What deadlines met are drawn against.
pub(super) struct Metric {
    /// The figure's file without its ending.
    pub(super) file: &'static str,
    /// The axis, with its unit.
    pub(super) name: &'static str,
    /// Where the axis begins; absent if it begins near the least value.
    low: Option<f64>,
    of: fn(&Point) -> Option<f64>,
}

pub(super) const METRICS: &[Metric] = &[
    Metric {
        file: "clones",
        name: "clones per task",
        low: Some(0.0),
        of: |point| point.clones_per_task,
    },
    Metric {
        file: "slot-seconds",
        name: "slot-seconds per run, thousands",
        low: None,
        of: |point| Some(point.slot_seconds / 1000.0),
    },
];

/// Panels in a row.
const COLUMNS: usize = 3;
/// Heights in pixels: of a panel, of the only panel, of the legend.
const PANEL: i32 = 190;
const ONLY_PANEL: i32 = 380;
const LEGEND: i32 = 44;
/// Sizes of text in pixels.
const SMALL: f64 = 9.0;
const WORDS: f64 = 11.0;
/// Policies whose points have a shape of their own.
const BASE: &str = "shed-plus";
const RIVAL: &str = "s-resume-event";

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Disc,
    Diamond,
    Triangle,
    Square,
    Ring,
}

fn shape(point: &Point) -> Shape {
    match point.policy.as_str() {
        _ if point.clone_price.is_some() => Shape::Disc,
        FROZEN => Shape::Diamond,
        BASE => Shape::Triangle,
        RIVAL => Shape::Square,
        _ => Shape::Ring,
    }
}

/// The figure of all presets.
pub(super) fn svg(metric: &Metric, points: &[Point]) -> Result<String, CliError> {
    let panels: Vec<&[Point]> = points.chunk_by(|a, b| a.preset == b.preset).collect();
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let height = if panels.len() == 1 { ONLY_PANEL } else { PANEL };
    let what = format!("Deadlines met over {}, by preset and price", metric.name);
    chart::svg(LEGEND + rows as i32 * height, &what, |area| {
        legend(area, metric, &loads(points))?;
        let (_, below) = area.split_vertically(px(f64::from(LEGEND)));
        let areas = below.split_evenly((rows, columns));
        for (panel_area, panel) in areas.iter().zip(&panels) {
            draw_panel(area, panel_area, metric, panel)?;
        }
        Ok(())
    })
}

/// In the order of the points.
fn loads(points: &[Point]) -> Vec<&str> {
    let mut loads: Vec<&str> = Vec::new();
    for point in points {
        if !loads.contains(&point.load.as_str()) {
            loads.push(&point.load);
        }
    }
    loads
}

fn legend(area: &Area<'_>, metric: &Metric, loads: &[&str]) -> Result<(), ChartError> {
    let axes = format!("up: deadlines met (%); across: {}", metric.name);
    words(area, (px(8.0), px(12.0)), &axes, INK)?;
    let mut x = 8.0;
    for (rank, load) in loads.iter().enumerate() {
        mark(area, (px(x + 4.0), px(32.0)), Shape::Disc, colour(rank))?;
        let text = format!("price curve at load {load}");
        words(area, (px(x + 12.0), px(32.0)), &text, INK)?;
        x += 20.0 + 5.6 * text.len() as f64;
    }
    for (shape, text) in [
        (Shape::Diamond, "without prices"),
        (Shape::Triangle, BASE),
        (Shape::Square, RIVAL),
        (Shape::Ring, "other"),
    ] {
        mark(area, (px(x + 4.0), px(32.0)), shape, GREY)?;
        words(area, (px(x + 12.0), px(32.0)), text, INK)?;
        x += 24.0 + 5.6 * text.len() as f64;
    }
    Ok(())
}

/// Margin around the curves, as a share of their extent.
const MARGIN: f64 = 0.15;
/// Height of a label, as a share of a panel's.
const LABEL: f64 = 0.08;

/// The axes that show the curves and the frozen version. Other points may lie outside.
fn axes(metric: &Metric, panel: &[Point]) -> Option<(Axis, Axis)> {
    let own = panel
        .iter()
        .filter(|point| matches!(shape(point), Shape::Disc | Shape::Diamond));
    let places: Vec<(f64, f64)> = own
        .filter_map(|point| Some(((metric.of)(point)?, point.met_percent)))
        .collect();
    let extent = |of: fn(&(f64, f64)) -> f64| {
        let values = || places.iter().map(of);
        let low = values().fold(f64::INFINITY, f64::min);
        (low, values().fold(f64::NEG_INFINITY, f64::max))
    };
    let ((left, right), (bottom, top)) = (extent(|place| place.0), extent(|place| place.1));
    if !left.is_finite() {
        return None;
    }
    let left = metric.low.unwrap_or(left - MARGIN * (right - left));
    let right = right + (MARGIN * (right - left)).max(0.02);
    // A flat curve looks flat.
    let pad = (2.0 * MARGIN * (top - bottom)).max(2.0);
    let mut x = Axis::linear("", left.max(0.0), right);
    x.ticks.retain(|tick| *tick <= right);
    x.high = right;
    let mut y = Axis::linear("", (bottom - pad).max(0.0), (top + pad).min(100.0));
    y.ticks.retain(|tick| *tick <= 100.0);
    // Labels of points at 100 % stay below the panel's title.
    y.high = y.high.min(100.0) + LABEL * (y.high - y.low);
    Some((x, y))
}

/// Where a panel's points are.
struct Panel<'a> {
    metric: &'a Metric,
    axes: (Axis, Axis),
    across: Range<i32>,
    down: Range<i32>,
}

impl Panel<'_> {
    /// The place of a point; absent if it lies outside the axes.
    fn place(&self, point: &Point) -> Option<(i32, i32)> {
        let (x, y) = &self.axes;
        let (at, met) = ((self.metric.of)(point)?, point.met_percent);
        let is_inside = (x.low..=x.high).contains(&at) && (y.low..=y.high).contains(&met);
        // Pixels count downwards.
        is_inside.then(|| {
            let across = x.map(&at, (self.across.start, self.across.end));
            (across, y.map(&met, (self.down.end, self.down.start)))
        })
    }

    /// Draws the points of one load with its curve, and returns how many lie outside.
    fn draw_load(
        &self,
        root: &Area<'_>,
        points: &[&Point],
        colour: RGBColor,
        labels: &mut Labels,
    ) -> Result<usize, ChartError> {
        let curve = || {
            let own = points.iter().filter(|point| shape(point) == Shape::Disc);
            own.filter_map(|point| Some((self.place(point)?, point.clone_price?)))
        };
        chart::line(root, curve().map(|(at, _)| at).collect(), colour, 1.5)?;
        let places = points
            .iter()
            .filter_map(|point| Some((self.place(point)?, shape(point))));
        let mut shown = 0;
        for (at, shape) in places {
            mark(root, at, shape, colour)?;
            shown += 1;
        }
        for (at, price) in curve() {
            labels.add(root, at, &number(price), colour)?;
        }
        Ok(points.len() - shown)
    }
}

fn draw_panel(
    root: &Area<'_>,
    area: &Area<'_>,
    metric: &Metric,
    points: &[Point],
) -> Result<(), ChartError> {
    let (Some(axes), Some(first)) = (axes(metric, points), points.first()) else {
        return Ok(());
    };
    let (across, down) = draw_axes(area, &axes)?;
    let title = (across.start, down.start - px(9.0));
    let right = across.end;
    let panel = Panel {
        metric,
        axes,
        across,
        down,
    };
    let (mut outside, mut labels) = (0, Labels::default());
    for (rank, load) in loads(points).into_iter().enumerate() {
        let of_load = points.iter().filter(|point| point.load == load);
        let of_load: Vec<&Point> = of_load.collect();
        outside += panel.draw_load(root, &of_load, colour(rank), &mut labels)?;
    }
    words(root, title, &first.preset, INK)?;
    if outside > 0 {
        let points = if outside == 1 { "point" } else { "points" };
        let style = chart::style(SMALL, GREY, HPos::Right, VPos::Center);
        let text = format!("{outside} {points} outside");
        root.draw(&Text::new(text, (right, title.1), style))?;
    }
    Ok(())
}

/// Draws the axes and the grid, and returns the extent of the plot across and down.
fn draw_axes(
    area: &Area<'_>,
    (x, y): &(Axis, Axis),
) -> Result<(Range<i32>, Range<i32>), ChartError> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(18.0))
        .margin_right(px(12.0))
        .x_label_area_size(px(20.0))
        .y_label_area_size(px(34.0))
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LIGHT.stroke_width(px(0.75) as u32))
        .axis_style(GREY.stroke_width(px(1.0) as u32))
        .x_labels(x.ticks.len())
        .y_labels(y.ticks.len())
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .label_style(("sans-serif", SMALL * f64::from(FINE) * FONT_FACTOR))
        .draw()?;
    Ok(chart.plotting_area().get_pixel_range())
}

/// Labels of prices that keep apart; those without a free place are left out.
#[derive(Default)]
struct Labels {
    taken: Vec<(i32, i32)>,
}

impl Labels {
    fn add(
        &mut self,
        area: &Area<'_>,
        (x, y): (i32, i32),
        text: &str,
        colour: RGBColor,
    ) -> Result<(), ChartError> {
        let at = (x, y - px(8.0));
        let is_near = |other: &(i32, i32)| {
            (other.0 - at.0).abs() < px(22.0) && (other.1 - at.1).abs() < px(9.0)
        };
        if self.taken.iter().any(is_near) {
            return Ok(());
        }
        self.taken.push(at);
        let style = chart::style(SMALL - 1.0, colour, HPos::Center, VPos::Center);
        area.draw(&Text::new(text.to_owned(), at, style))
    }
}

fn words(area: &Area<'_>, at: (i32, i32), text: &str, colour: RGBColor) -> Result<(), ChartError> {
    let style = chart::style(WORDS, colour, HPos::Left, VPos::Center);
    area.draw(&Text::new(text.to_owned(), at, style))
}

fn mark(
    area: &Area<'_>,
    (x, y): (i32, i32),
    shape: Shape,
    colour: RGBColor,
) -> Result<(), ChartError> {
    let r = px(3.5);
    let outline = |points: Vec<(i32, i32)>| chart::line(area, points, colour, 1.25);
    match shape {
        Shape::Disc => area.draw(&Circle::new((x, y), px(2.75), colour.filled())),
        Shape::Ring => {
            let stroke = colour.mix(0.6).stroke_width(px(1.0) as u32);
            area.draw(&Circle::new((x, y), px(2.25), stroke))
        }
        Shape::Diamond => outline(vec![
            (x, y - r - FINE),
            (x + r + FINE, y),
            (x, y + r + FINE),
            (x - r - FINE, y),
            (x, y - r - FINE),
        ]),
        Shape::Triangle => outline(vec![(x, y - r), (x + r, y + r), (x - r, y + r), (x, y - r)]),
        Shape::Square => outline(vec![
            (x - r, y - r),
            (x + r, y - r),
            (x + r, y + r),
            (x - r, y + r),
            (x - r, y - r),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::points::tests::at;
    use super::*;

    fn priced(price: f64, clones: f64, met: f64) -> Point {
        Point {
            clone_price: Some(price),
            ..at("shed-prime", clones, met)
        }
    }

    #[test]
    fn axes_show_every_price_and_frozen_but_not_far_policies() {
        let panel = [
            priced(0.0, 1.2, 99.0),
            priced(0.1, 0.3, 96.5),
            at(FROZEN, 1.5, 99.5),
            at("hadoop-ns", 0.0, 8.0),
        ];
        let (x, y) = axes(&METRICS[0], &panel).expect("axes");
        assert!(x.low == 0.0 && x.high >= 1.5);
        assert!(
            y.low < 96.5 && y.low > 90.0 && y.high <= 101.0 && y.high >= 99.5,
            "{y:?}"
        );
        assert!(
            axes(&METRICS[0], &panel[3..]).is_none(),
            "no curve, no panel"
        );
    }

    #[test]
    fn a_figure_has_a_panel_per_preset_and_counts_what_lies_outside() {
        let mut points = vec![
            priced(0.0, 1.2, 99.0),
            priced(0.02, 0.6, 98.0),
            at("hadoop-ns", 0.0, 8.0),
        ];
        let other: Vec<Point> = points[..2]
            .iter()
            .map(|point| Point {
                preset: "T".to_owned(),
                ..point.clone()
            })
            .collect();
        points.extend(other);
        let figure = svg(&METRICS[0], &points).expect("a figure");
        for text in [
            "\nA\n",
            "\nT\n",
            "\n0.02\n",
            "1 point outside",
            "price curve at load 0.6",
        ] {
            assert!(figure.contains(text), "{text} is not in the figure");
        }
    }
}
