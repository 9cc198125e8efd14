//! One panel of a picture.

use std::collections::BTreeSet;

use plotters::prelude::{Color, Rectangle, Text};
use plotters::style::text_anchor::{HPos, VPos};
use shed_sim::cli::chart::{self, Area, ChartError, GREY, INK, colour, px, shortened};

use super::Frame;
use super::units::shown;
use crate::monitoring::dashboards::Panel;
use crate::monitoring::prometheus::{Series, Span};

/// Series of a panel that are drawn, and named.
const SERIES_MAX: usize = 10;
const NAMED_MAX: usize = 4;
/// Rows of a table.
const ROWS_MAX: usize = 8;
/// Columns of a heat map.
const CELLS: usize = 24;
/// A line breaks where no sample was for this share of the span.
const GAP: f64 = 0.035;

/// A named series.
type Named<'p> = (String, &'p Series);

/// Draws a panel into its frame.
pub(super) fn draw(
    area: &Area<'_>,
    frame: Frame,
    panel: &Panel,
    span: Span,
) -> Result<(), ChartError> {
    let all = named(panel);
    if all.is_empty() {
        return words(area, (frame.left, frame.top + px(8.0)), "no data", 11.0);
    }
    match &*panel.kind {
        "stat" => stat(area, frame, panel, &all),
        "table" => table(area, frame, panel),
        "heatmap" => heat_map(area, frame, &all, panel, span),
        _ => lines(area, frame, &all, panel, span),
    }
}

fn named(panel: &Panel) -> Vec<Named<'_>> {
    let queries = panel.queries.iter();
    let of_query = queries.flat_map(|query| query.series.iter().map(|one| (query.name(one), one)));
    of_query.filter(|(_, series)| series.has_number()).collect()
}

fn words(area: &Area<'_>, at: (i32, i32), text: &str, size: f64) -> Result<(), ChartError> {
    let style = chart::style(size, GREY, HPos::Left, VPos::Top);
    area.draw(&Text::new(text.to_owned(), at, style))
}

fn last(series: &Series) -> f64 {
    series.points.last().map_or(f64::NAN, |(_, value)| *value)
}

/// The last value, or the name where a series is counted by a label.
fn stat(area: &Area<'_>, frame: Frame, panel: &Panel, all: &[Named<'_>]) -> Result<(), ChartError> {
    let has_name = panel
        .queries
        .iter()
        .any(|query| query.legend.starts_with("{{"));
    let texts = all.iter().map(|(name, series)| match has_name {
        true => name.clone(),
        false => shown(last(series), &panel.unit),
    });
    let text = texts.collect::<Vec<_>>().join(", ");
    let style = chart::style(24.0, INK, HPos::Left, VPos::Top);
    let at = (frame.left, frame.top + px(30.0));
    area.draw(&Text::new(shortened(&text, 16), at, style))
}

/// A row for each series of the first query, with the values of all queries.
fn table(area: &Area<'_>, frame: Frame, panel: &Panel) -> Result<(), ChartError> {
    let rows = panel
        .queries
        .first()
        .into_iter()
        .flat_map(|query| &query.series);
    for (row, first) in rows.take(ROWS_MAX).enumerate() {
        let with_labels = |series: &&Series| series.labels == first.labels;
        let mut values = panel
            .queries
            .iter()
            .filter_map(|query| query.series.iter().find(with_labels));
        let name = first.labels.get("job_name").cloned().unwrap_or_default();
        let value = values
            .by_ref()
            .map(|series| chart::number((last(series) * 1000.0).round() / 1000.0));
        let text = format!(
            "{}  {}",
            shortened(&name, 14),
            value.collect::<Vec<_>>().join("  ")
        );
        let at = (frame.left, frame.top + px(2.0 + 13.0 * row as f64));
        words(area, at, &shortened(&text, 44), 9.0)?;
    }
    Ok(())
}

/// The space of a plot: what is left above the names and to the right of the labels.
fn plot(frame: Frame) -> Frame {
    Frame {
        left: frame.left + px(46.0),
        top: frame.top + px(2.0),
        right: frame.right,
        bottom: frame.bottom - px(28.0),
    }
}

fn place(value: f64, low: f64, high: f64, from: i32, to: i32) -> i32 {
    let share = ((value - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    from + (share * f64::from(to - from)).round() as i32
}

fn bounds(area: &Area<'_>, inner: Frame, low: &str, high: &str) -> Result<(), ChartError> {
    let style = |v| chart::style(9.0, GREY, HPos::Right, v);
    let x = inner.left - px(4.0);
    area.draw(&Text::new(
        high.to_owned(),
        (x, inner.top),
        style(VPos::Top),
    ))?;
    area.draw(&Text::new(
        low.to_owned(),
        (x, inner.bottom),
        style(VPos::Bottom),
    ))?;
    let axis = vec![
        (inner.left, inner.top),
        (inner.left, inner.bottom),
        (inner.right, inner.bottom),
    ];
    chart::line(area, axis, GREY, 0.75)
}

fn lines(
    area: &Area<'_>,
    frame: Frame,
    all: &[Named<'_>],
    panel: &Panel,
    span: Span,
) -> Result<(), ChartError> {
    let inner = plot(frame);
    let values = all.iter().flat_map(|(_, series)| &series.points);
    let values = values
        .map(|(_, value)| *value)
        .filter(|value| value.is_finite());
    let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let high = if high > low { high } else { low + 1.0 };
    bounds(
        area,
        inner,
        &shown(low, &panel.unit),
        &shown(high, &panel.unit),
    )?;
    let at = |(time, value): (f64, f64)| {
        let x = place(time, span.from, span.to, inner.left, inner.right);
        (x, place(value, low, high, inner.bottom, inner.top))
    };
    let gap = GAP * (span.to - span.from);
    for (rank, (_, series)) in all.iter().take(SERIES_MAX).enumerate() {
        for piece in pieces(&series.points, gap) {
            let mut points: Vec<(i32, i32)> = piece.into_iter().map(at).collect();
            if let [(x, y)] = points[..] {
                points.push((x + px(1.5), y));
            }
            chart::line(area, without_flat(points), colour(rank), 1.25)?;
        }
    }
    names(area, frame, all)
}

/// The parts of a line between gaps and values that are not finite.
fn pieces(points: &[(f64, f64)], gap: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    for point in points.iter().filter(|(_, value)| value.is_finite()) {
        match pieces.last_mut() {
            Some(piece) if piece.last().is_some_and(|last| point.0 - last.0 <= gap) => {
                piece.push(*point);
            }
            _ => pieces.push(vec![*point]),
        }
    }
    pieces
}

/// The line without the points within its level parts.
fn without_flat(points: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for point in points {
        if let [.., before, last] = kept[..]
            && before.1 == last.1
            && last.1 == point.1
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

fn names(area: &Area<'_>, frame: Frame, all: &[Named<'_>]) -> Result<(), ChartError> {
    for (rank, (name, _)) in all.iter().take(NAMED_MAX).enumerate() {
        let x = frame.left + (frame.right - frame.left) / 2 * (rank % 2) as i32;
        let y = frame.bottom - px(22.0) + px(11.0) * (rank / 2) as i32;
        let mark = vec![(x, y + px(4.5)), (x + px(8.0), y + px(4.5))];
        chart::line(area, mark, colour(rank), 2.0)?;
        let more = match (rank + 1 == NAMED_MAX, all.len() - rank - 1) {
            (true, more) if more > 0 => format!(", {more} more"),
            _ => String::new(),
        };
        let text = shortened(name, 20 - more.len()) + &more;
        words(area, (x + px(11.0), y), &text, 8.5)?;
    }
    Ok(())
}

/// Buckets from the lowest bound up, darker where more was observed.
fn heat_map(
    area: &Area<'_>,
    frame: Frame,
    all: &[Named<'_>],
    panel: &Panel,
    span: Span,
) -> Result<(), ChartError> {
    let inner = plot(frame);
    let mut buckets: Vec<(f64, &Series)> = all
        .iter()
        .filter_map(|(bound, series)| Some((bound.parse().ok()?, *series)))
        .collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let finite = buckets.iter().filter(|(bound, _)| bound.is_finite());
    let top = finite.map(|(bound, _)| *bound).fold(f64::NAN, f64::max);
    let bottom = buckets.first().map_or(f64::NAN, |(bound, _)| *bound);
    bounds(
        area,
        inner,
        &shown(bottom, &panel.unit),
        &shown(top, &panel.unit),
    )?;
    let cells = cells(&buckets, span);
    let most = cells.iter().map(|(_, _, count)| *count).fold(0.0, f64::max);
    let edge =
        |at: usize, of: usize, from: i32, to: i32| place(at as f64, 0.0, of as f64, from, to);
    for (column, row, count) in cells {
        let [left, right] = [column, column + 1].map(|at| edge(at, CELLS, inner.left, inner.right));
        let [low, high] = [row, row + 1].map(|at| edge(at, buckets.len(), inner.bottom, inner.top));
        let fill = colour(0).mix(0.15 + 0.85 * count / most).filled();
        area.draw(&Rectangle::new([(left, high), (right, low)], fill))?;
    }
    Ok(())
}

/// (column, bucket, observations) of a heat map, without empty cells.
fn cells(buckets: &[(f64, &Series)], span: Span) -> Vec<(usize, usize, f64)> {
    let width = (span.to - span.from) / CELLS as f64;
    let column = |time: f64| (((time - span.from) / width) as usize).min(CELLS - 1);
    let value = |series: &Series, wanted: usize| {
        let mut points = series.points.iter().rev();
        let found = points.find(|(time, value)| column(*time) == wanted && value.is_finite());
        found.map(|(_, value)| *value)
    };
    let times = buckets.iter().flat_map(|(_, series)| &series.points);
    let columns: BTreeSet<usize> = times.map(|(time, _)| column(*time)).collect();
    let mut cells = Vec::new();
    for wanted in columns {
        // Buckets are cumulative.
        let mut below = 0.0;
        for (row, (_, series)) in buckets.iter().enumerate() {
            let Some(up_to) = value(series, wanted) else {
                continue;
            };
            if up_to > below {
                cells.push((wanted, row, up_to - below));
            }
            below = up_to.max(below);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_gaps_and_at_values_that_are_no_numbers() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (5.0, 3.0)];
        assert_eq!(
            pieces(&points, 2.0),
            [vec![(0.0, 1.0), (1.0, 2.0)], vec![(5.0, 3.0)]]
        );
    }

    #[test]
    fn level_parts_keep_their_ends() {
        let line = [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)];
        assert_eq!(
            without_flat(line.to_vec()),
            [(0, 1), (2, 1), (3, 2), (5, 2)]
        );
    }

    #[test]
    fn cumulative_buckets_become_cells() {
        let series = |values: [f64; 2]| Series {
            points: vec![(0.0, values[0]), (100.0, values[1])],
            ..Series::default()
        };
        let (low, high) = (series([1.0, 0.0]), series([3.0, 2.0]));
        let span = Span {
            from: 0.0,
            to: 100.0,
        };
        let found = cells(&[(0.5, &low), (1.0, &high)], span);
        assert_eq!(found, [(0, 0, 1.0), (0, 1, 2.0), (CELLS - 1, 1, 2.0)]);
    }
}
