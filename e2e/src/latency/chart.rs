//! The figures of a bench: the p99 of each latency over the load, and the histogram of each at one load.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use shed_sim::cli::chart::{Axis, Series, lines as draw};

use super::load::Rate;
use super::page::LATENCIES;
use super::results::Line;
use super::spread::{Sample, begin};

/// Height of a figure in pixels.
const HEIGHT: i32 = 320;
/// Milliseconds that every axis of latencies shows.
const ALWAYS: (f64, f64) = (1.0, 100.0);

/// The curves as SVG; absent without a load.
pub fn curves(lines: &BTreeMap<Rate, Line>) -> Result<Option<String>> {
    let Some(highest) = lines.keys().last() else {
        return Ok(None);
    };
    let mut series: Vec<Series> = LATENCIES
        .iter()
        .enumerate()
        .map(|(rank, (name, of))| {
            let measured = lines.iter().filter(|(_, line)| of(line).count > 0);
            let points = measured.map(|(rate, line)| (rate.per_second(), at_least(of(line).p99)));
            curve(name, rank, points.collect())
        })
        .collect();
    let bars = lines.values().filter(|line| line.is_below_limit());
    let bars = bars.map(|line| (line.rate.per_second(), line.bar()));
    series.push(curve("bar of deletes", LATENCIES.len(), bars.collect()));
    series.retain(|one| !one.points.is_empty());
    let x = Axis::linear("jobs per second", 0.0, highest.per_second());
    let y = axis("p99 in ms", &series);
    let what = "p99 of latencies over the arrival rate of jobs";
    let drawn = draw(HEIGHT, what, (&x, &y), &series);
    drawn.map(Some).map_err(|error| anyhow!("{error}"))
}

/// The histogram as SVG, at the highest load below the limit or else at the lowest load; absent without a load.
pub fn histogram(lines: &BTreeMap<Rate, Line>) -> Result<Option<String>> {
    let mut below = lines.values().rev().filter(|line| line.is_below_limit());
    let Some(line) = below.next().or(lines.values().next()) else {
        return Ok(None);
    };
    let samples = LATENCIES.iter().map(|(name, of)| (*name, of(line)));
    let filled = samples
        .enumerate()
        .filter(|(_, (_, sample))| sample.count > 0);
    let series: Vec<Series> = filled
        .map(|(rank, (name, sample))| Series {
            marked: Vec::new(),
            ..curve(name, rank, steps(sample))
        })
        .collect();
    let ends = series.iter().flat_map(|one| &one.points);
    let (low, high) = ends.fold(ALWAYS, |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let most = series.iter().flat_map(|one| &one.points);
    let most = most.map(|(_, y)| *y).fold(1.0, f64::max);
    let x = Axis::log(&format!("ms, at {} jobs per second", line.rate), low, high);
    let y = Axis::linear("% of all, in bins of factor 1.4", 0.0, most);
    let what = "Histograms of latencies";
    let drawn = draw(HEIGHT, what, (&x, &y), &series);
    drawn.map(Some).map_err(|error| anyhow!("{error}"))
}

fn curve(name: &str, rank: usize, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.to_owned(),
        rank,
        marked: points.clone(),
        points,
        whiskers: Vec::new(),
    }
}

/// A logarithmic axis has no place for 0.
fn at_least(millis: f64) -> f64 {
    millis.max(ALWAYS.0)
}

fn axis(name: &str, series: &[Series]) -> Axis {
    let values = series.iter().flat_map(|one| &one.points);
    let high = values.map(|(_, y)| *y).fold(ALWAYS.1, f64::max);
    Axis::log(name, ALWAYS.0, high * 1.15)
}

/// The outline of the histogram: per cent of all over milliseconds.
fn steps(sample: &Sample) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (end, count) in &sample.histogram {
        let (begin, share) = (begin(*end), 100.0 * *count as f64 / sample.count as f64);
        let last = points.last().copied();
        // Empty bins are left out of the histogram, and the outline is on the ground there.
        if let Some((at, _)) = last.filter(|(at, _)| *at < begin * 0.99) {
            points.extend([(at, 0.0), (begin, 0.0)]);
        } else if last.is_none() {
            points.push((begin, 0.0));
        }
        points.extend([(begin, share), (*end, share)]);
    }
    if let Some((at, _)) = points.last().copied() {
        points.push((at, 0.0));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::line;
    use super::*;

    fn measured() -> BTreeMap<Rate, Line> {
        let all = [line("0.5", 5.0, 25.0), line("2", 30.0, 500.0)];
        all.map(|line| (line.rate, line)).into()
    }

    #[test]
    fn figures_name_every_latency_that_was_measured() {
        let figures = [curves(&measured()), histogram(&measured())];
        for figure in figures.map(|figure| figure.unwrap().unwrap()) {
            assert!(figure.contains("new job to first pod"), "{figure}");
            assert!(!figure.contains("straggler to clone"), "it has no samples");
        }
        assert!(curves(&BTreeMap::new()).unwrap().is_none());
        let figure = histogram(&measured()).unwrap().unwrap();
        assert!(
            figure.contains("at 0.5 jobs per second"),
            "2 is beyond the limit"
        );
        assert!(histogram(&BTreeMap::new()).unwrap().is_none());
    }

    #[test]
    fn an_outline_is_on_the_ground_where_bins_are_empty() {
        let sample = Sample::of(vec![1.0, 1.0, 100.0, 100.0]);
        let points = steps(&sample);
        let grounded = points.iter().filter(|(_, y)| *y == 0.0).count();
        assert_eq!(grounded, 4);
        assert!(points.iter().all(|(_, y)| *y == 0.0 || *y == 50.0));
    }
}
