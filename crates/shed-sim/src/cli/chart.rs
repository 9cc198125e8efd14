//! What all figures share: size, text, colours, markers, axes, and labels that keep apart.
//!
//! Colours are those of Okabe and Ito, which people with any colour vision can tell apart, without
//! their yellow, which is faint on paper. Nothing is shown by color alone: lines have markers and
//! names at their ends, bars have words.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::CliError;

/// Where figures are drawn.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Why a figure can't be drawn.
pub type ChartError = DrawingAreaErrorKind<std::io::Error>;

/// The backend rounds positions to whole units; one pixel has this many units.
pub const FINE: i32 = 4;
/// Width of every figure in pixels: that of a printed page's text.
pub const WIDTH: i32 = 720;
/// What the backend divides sizes of fonts by.
pub const FONT_FACTOR: f64 = 1.24;

/// Names of this many characters fit next to a chart.
pub const NAME_MAX: usize = 26;

/// Text and axes that matter.
pub const INK: RGBColor = RGBColor(34, 34, 34);
/// What is less important than [`INK`].
pub const GREY: RGBColor = RGBColor(110, 110, 110);
/// Lines of the grid.
pub const LIGHT: RGBColor = RGBColor(224, 224, 224);

/// By rank, over and over.
pub const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// Seven colours and five markers repeat together only after 35 ranks.
const MARKERS: usize = 5;

/// Pixels → units.
pub fn px(pixels: f64) -> i32 {
    (pixels * f64::from(FINE)).round() as i32
}

/// Draws a figure of that height in pixels; `what` is read out to those who can't see it.
pub fn svg(
    height: i32,
    what: &str,
    draw: impl FnOnce(&Area<'_>) -> Result<(), ChartError>,
) -> Result<String, CliError> {
    let size = ((WIDTH * FINE) as u32, (height * FINE) as u32);
    let mut text = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area).and_then(|()| area.present())
    };
    drawn.map_err(|error| CliError::Write {
        what: "a figure".into(),
        error: std::io::Error::other(error.to_string()),
    })?;
    // The page's style says how wide it is; the view box keeps its proportions.
    let fixed = format!("<svg width=\"{}\" height=\"{}\"", size.0, size.1);
    let free = format!("<svg role=\"img\" aria-label=\"{}\"", escape(what));
    Ok(text.replacen(&fixed, &free, 1))
}

/// Text as HTML and SVG show it.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no other control characters.
            control if control.is_control() && !"\t\n".contains(control) => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A style of text: size in pixels, colour, and which of its points is put in place.
pub fn style(size: f64, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    let size = size * f64::from(FINE) * FONT_FACTOR;
    TextStyle {
        font: ("sans-serif", size).into_font(),
        color: colour.to_backend_color(),
        pos: Pos::new(h, v),
    }
}

/// Text to the right of a point.
pub fn text_right(area: &Area<'_>, at: (i32, i32), text: &str) -> Result<(), ChartError> {
    let style = style(12.0, INK, HPos::Left, VPos::Center);
    area.draw(&Text::new(text.to_owned(), at, style))
}

/// The same on white, where lines may pass behind it.
pub fn text_on_white(area: &Area<'_>, (x, y): (i32, i32), text: &str) -> Result<(), ChartError> {
    // A letter of this size is about half as wide as it is high.
    let width = px(6.2 * text.chars().count() as f64);
    let corners = [(x - px(2.0), y - px(6.0)), (x + width, y + px(6.0))];
    area.draw(&Rectangle::new(corners, WHITE.filled()))?;
    text_right(area, (x, y), text)
}

/// Text to the left of a point.
pub fn text_left(area: &Area<'_>, at: (i32, i32), text: &str) -> Result<(), ChartError> {
    let style = style(12.0, INK, HPos::Right, VPos::Center);
    area.draw(&Text::new(text.to_owned(), at, style))
}

/// A line through points, `width` pixels wide.
pub fn line(
    area: &Area<'_>,
    points: Vec<(i32, i32)>,
    colour: RGBColor,
    width: f64,
) -> Result<(), ChartError> {
    let style = colour.stroke_width(px(width) as u32);
    area.draw(&PathElement::new(points, style))
}

/// The colour of a rank.
pub fn colour(rank: usize) -> RGBColor {
    PALETTE[rank % PALETTE.len()]
}

/// The marker of a rank.
pub fn marker(area: &Area<'_>, at: (i32, i32), rank: usize) -> Result<(), ChartError> {
    let (x, y) = at;
    let (filled, r) = (colour(rank).filled(), px(4.0));
    let polygon = |points: Vec<(i32, i32)>| area.draw(&Polygon::new(points, filled));
    match rank % MARKERS {
        0 => area.draw(&Circle::new(at, r, filled)),
        1 => polygon(vec![(x, y - r), (x + r, y + r), (x - r, y + r)]),
        2 => area.draw(&Rectangle::new([(x - r, y - r), (x + r, y + r)], filled)),
        3 => polygon(vec![
            (x, y - r - 2),
            (x + r + 2, y),
            (x, y + r + 2),
            (x - r - 2, y),
        ]),
        _ => polygon(vec![(x, y + r), (x + r, y - r), (x - r, y - r)]),
    }
}

/// An axis of numbers.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows, with its unit.
    pub name: String,
    /// Its first number.
    pub low: f64,
    /// Its last number.
    pub high: f64,
    /// Numbers with a mark.
    pub ticks: Vec<f64>,
    /// Whether equal factors are equally long.
    pub is_log: bool,
}

impl Axis {
    /// From `low` to a round number at or above `high`.
    pub fn linear(name: &str, low: f64, high: f64) -> Self {
        let step = round_step((high - low).max(1e-9) / 5.0);
        let first = (low / step).ceil() as i64;
        let last = (high / step - 1e-9).ceil() as i64;
        Self {
            name: name.to_owned(),
            low,
            high: last as f64 * step,
            ticks: (first..=last).map(|tick| tick as f64 * step).collect(),
            is_log: false,
        }
    }

    /// Powers of ten times 1, 2 and 5 as ticks; times 1 alone over more than three decades.
    pub fn log(name: &str, low: f64, high: f64) -> Self {
        let decades = (high / low).log10();
        let digits: &[f64] = if decades > 3.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let all = (first..=last).flat_map(|exponent| {
            let power = 10.0_f64.powi(exponent);
            digits.iter().map(move |digit| digit * power)
        });
        Self {
            name: name.to_owned(),
            low,
            high,
            ticks: all.filter(|tick| (low..=high).contains(tick)).collect(),
            is_log: true,
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let scale = |value: f64| if self.is_log { value.log10() } else { value };
        let (low, high) = (scale(self.low), scale(self.high));
        let share = (scale(*value) - low) / (high - low).max(f64::MIN_POSITIVE);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light points make lines between those at ticks.
        if hint.weight().allow_light_points() {
            Vec::new()
        } else {
            self.ticks.clone()
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// The least 1, 2 or 5 times a power of ten at or above a number.
fn round_step(least: f64) -> f64 {
    let power = 10.0_f64.powf(least.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0];
    let found = digits
        .iter()
        .find(|digit| *digit * power >= least * (1.0 - 1e-9));
    found.unwrap_or(&10.0) * power
}

/// A number with as many digits as it needs, thousands apart.
pub fn number(value: f64) -> String {
    if value.abs() < 1000.0 {
        let text = format!("{value:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return if text == "-0" {
            "0".into()
        } else {
            text.into()
        };
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            // A narrow space that does not break.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// One line of a chart.
pub struct Series {
    /// What stands at its end.
    pub name: String,
    /// Its colour and marker.
    pub rank: usize,
    /// The line.
    pub points: Vec<(f64, f64)>,
    /// (x, low, high): intervals.
    pub whiskers: Vec<(f64, f64, f64)>,
    /// Points of the line that have a marker.
    pub marked: Vec<(f64, f64)>,
}

/// Height of the axis below a chart, in pixels.
pub const BELOW: f64 = 40.0;
/// Width of the names to the right of a chart, in pixels.
const NAMES: f64 = 180.0;

/// A chart of lines, each with its name at its end.
pub fn lines(
    height: i32,
    what: &str,
    (x, y): (&Axis, &Axis),
    series: &[Series],
) -> Result<String, CliError> {
    svg(height, what, |area| draw_lines(area, (x, y), series))
}

fn draw_lines(
    area: &Area<'_>,
    (x, y): (&Axis, &Axis),
    series: &[Series],
) -> Result<(), ChartError> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(12.0))
        .margin_left(px(6.0))
        .margin_right(px(NAMES))
        .x_label_area_size(px(BELOW))
        .y_label_area_size(px(58.0))
        .build_cartesian_2d(x.clone(), y.clone())?;
    let words = style(12.0, INK, HPos::Center, VPos::Center);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LIGHT.stroke_width(px(0.75) as u32))
        .axis_style(GREY.stroke_width(px(1.0) as u32))
        .x_labels(x.ticks.len())
        .y_labels(y.ticks.len())
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .label_style(("sans-serif", 12.0 * f64::from(FINE) * FONT_FACTOR))
        .axis_desc_style(words)
        .x_desc(x.name.clone())
        .y_desc(y.name.clone())
        .draw()?;
    let mut ends = Vec::new();
    for one in series {
        let wide = colour(one.rank).stroke_width(px(2.0) as u32);
        chart.draw_series(LineSeries::new(one.points.iter().copied(), wide))?;
        let place = |point: &(f64, f64)| chart.backend_coord(point);
        for &(at, low, high) in &one.whiskers {
            whisker(area, place(&(at, low)), place(&(at, high)), one.rank)?;
        }
        for point in &one.marked {
            marker(area, place(point), one.rank)?;
        }
        if let Some(last) = one.points.last() {
            ends.push((place(last), one));
        }
    }
    name_ends(area, &ends, chart.plotting_area().get_pixel_range())
}

/// An interval that stands upright, or lies.
pub fn whisker(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    rank: usize,
) -> Result<(), ChartError> {
    let cap = px(3.0);
    let (dx, dy) = if from.0 == to.0 { (cap, 0) } else { (0, cap) };
    line(area, vec![from, to], colour(rank), 1.5)?;
    for (x, y) in [from, to] {
        let ends = vec![(x - dx, y - dy), (x + dx, y + dy)];
        line(area, ends, colour(rank), 1.5)?;
    }
    Ok(())
}

/// Names at the ends of lines, without overlap.
fn name_ends(
    area: &Area<'_>,
    ends: &[((i32, i32), &Series)],
    (across, down): (Range<i32>, Range<i32>),
) -> Result<(), ChartError> {
    let wanted: Vec<i32> = ends.iter().map(|((_, y), _)| *y).collect();
    let places = spread(&wanted, px(16.0), down.start..down.end);
    let x = across.end + px(22.0);
    for (((end_x, end_y), one), y) in ends.iter().zip(places) {
        let lead = vec![(end_x + px(6.0), *end_y), (x - px(10.0), y)];
        line(area, lead, GREY, 0.5)?;
        marker(area, (x - px(5.0), y), one.rank)?;
        text_right(area, (x + px(4.0), y), &shortened(&one.name, NAME_MAX))?;
    }
    Ok(())
}

/// The text, cut to at most `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Positions near the wanted ones, in the same order, at least `gap` apart, and inside the range if all of them
/// fit.
fn spread(wanted: &[i32], gap: i32, within: Range<i32>) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&at| (wanted[at], at));
    let mut places = wanted.to_vec();
    let mut least = within.start;
    for &at in &order {
        places[at] = places[at].max(least);
        least = places[at] + gap;
    }
    let mut most = within.end;
    for &at in order.iter().rev() {
        places[at] = places[at].min(most);
        most = places[at] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_in_their_order_and_stay_inside() {
        assert_eq!(spread(&[10, 11, 50], 5, 0..100), [10, 15, 50]);
        assert_eq!(spread(&[99, 98, 97], 5, 0..100), [100, 95, 90]);
        assert_eq!(spread(&[], 5, 0..100), [0; 0]);
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::linear("x", 0.0, 0.93);
        assert_eq!(axis.high, 1.0);
        assert_eq!(axis.ticks.len(), 6);
        let axis = Axis::log("x", 30.0, 2500.0);
        assert_eq!(axis.ticks, [50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]);
    }

    #[test]
    fn numbers_have_no_idle_digits() {
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(100.0), "100");
        assert_eq!(number(-0.0), "0");
        assert_eq!(number(1_234_567.0), "1\u{202f}234\u{202f}567");
    }
}
