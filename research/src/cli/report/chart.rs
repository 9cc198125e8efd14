//! What the report adds to the simulator's charts: charts of rows with names.

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

pub(super) use shed_sim::cli::chart::*;

/// A chart whose rows have names: the positions of its rows, and of its numbers.
pub(super) struct Rows {
    tops: i32,
    height: i32,
    across: (i32, i32),
    axis: Axis,
}

/// Names to the left of rows, in pixels.
const ROW_NAMES: f64 = 190.0;
/// The height of a chart of rows, in pixels.
pub(super) fn rows_height(count: usize, row: i32) -> i32 {
    count as i32 * row + BELOW as i32 + 14
}

/// Draws the axis of a chart of rows; `right` pixels are left free behind it.
pub(super) fn rows(area: &Area<'_>, x: &Axis, row: i32, right: f64) -> Result<Rows, ChartError> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(14.0))
        .margin_left(px(ROW_NAMES))
        .margin_right(px(right))
        .x_label_area_size(px(BELOW))
        .build_cartesian_2d(x.clone(), 0.0..1.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LIGHT.stroke_width(px(0.75) as u32))
        .axis_style(GREY.stroke_width(px(1.0) as u32))
        .x_labels(x.ticks.len())
        .x_label_formatter(&|value| number(*value))
        .label_style(("sans-serif", 12.0 * f64::from(FINE) * FONT_FACTOR))
        .axis_desc_style(style(12.0, INK, HPos::Center, VPos::Center))
        .x_desc(x.name.clone())
        .draw()?;
    let (across, down) = chart.plotting_area().get_pixel_range();
    Ok(Rows {
        tops: down.start,
        height: px(f64::from(row)),
        across: (across.start, across.end),
        axis: x.clone(),
    })
}

impl Rows {
    /// Where a number is.
    pub(super) fn x(&self, value: f64) -> i32 {
        let inside = value.clamp(self.axis.low, self.axis.high);
        self.axis.map(&inside, self.across)
    }

    /// The middle of a row.
    pub(super) fn y(&self, row: usize) -> i32 {
        self.tops + row as i32 * self.height + self.height / 2
    }

    /// Above the first row.
    pub(super) fn top(&self) -> i32 {
        self.tops
    }

    /// Writes a row's name.
    pub(super) fn name(&self, area: &Area<'_>, row: usize, name: &str) -> Result<(), ChartError> {
        let at = (self.across.0 - px(8.0), self.y(row));
        text_left(area, at, name)
    }
}
