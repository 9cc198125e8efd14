//! The figure of the bench: the histogram of each latency at one load.

use anyhow::{Result, anyhow};
use shed_sim::cli::chart::{Axis, Series, lines as draw};

use super::load::Load;
use super::page::{LATENCIES, steady};
use super::quantiles::{Sample, begin};
use super::timeline::Latencies;
use crate::bench::results::Lines;

/// Height of a figure in pixels.
const HEIGHT: i32 = 320;
/// Milliseconds that every axis of latencies shows.
const ALWAYS: (f64, f64) = (1.0, 100.0);

/// The histogram as SVG, at the highest load below the limit or else at the lowest load; absent without a load.
pub fn histogram(lines: &Lines<Load, Latencies>) -> Result<Option<String>> {
    let below = steady(lines).rfind(|line| line.is_below_limit());
    let Some(line) = below.or(steady(lines).next()) else {
        return Ok(None);
    };
    let samples = LATENCIES
        .iter()
        .map(|(name, of)| (*name, of(&line.figures)));
    let filled = samples
        .enumerate()
        .filter(|(_, (_, sample))| sample.count > 0);
    let series: Vec<Series> = filled
        .map(|(rank, (name, sample))| Series {
            name: name.to_owned(),
            rank,
            marked: Vec::new(),
            points: steps(sample),
            whiskers: Vec::new(),
        })
        .collect();
    let ends = series.iter().flat_map(|one| &one.points);
    let (low, high) = ends.fold(ALWAYS, |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let most = series.iter().flat_map(|one| &one.points);
    let most = most.map(|(_, y)| *y).fold(1.0, f64::max);
    let x = Axis::log(
        &format!("ms, at {} jobs per second", line.load.rate),
        low,
        high,
    );
    let y = Axis::linear("% of all, in bins of factor 1.4", 0.0, most);
    let what = "Histograms of latencies";
    let drawn = draw(HEIGHT, what, (&x, &y), &series);
    drawn.map(Some).map_err(|error| anyhow!("{error}"))
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
    use super::super::page::tests::line;
    use super::*;

    #[test]
    fn a_figure_names_every_latency_that_was_measured() {
        let all = [line("0.5", 0, 5.0, 25.0), line("2", 0, 30.0, 500.0)];
        let lines = all.map(|line| (line.load, line)).into();
        let figure = histogram(&lines).unwrap().unwrap();
        assert!(figure.contains("new job to first pod"), "{figure}");
        assert!(!figure.contains("straggler to clone"), "it has no samples");
        assert!(
            figure.contains("at 0.5 jobs per second"),
            "2 is beyond the limit"
        );
        assert!(histogram(&Lines::new()).unwrap().is_none());
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
