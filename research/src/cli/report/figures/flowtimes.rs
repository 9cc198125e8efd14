//! Distribution functions of flow times, policy by policy.

use std::collections::BTreeMap;

use crate::cli::report::chart::{self, Axis, Series};
use crate::cli::report::details::FlowTimes;
use crate::cli::report::names::{Names, PolicyKey};
use shed_sim::cli::CliError;

/// A step function with this many steps looks like one with a million.
const STEPS: usize = 400;
/// Times that differ by a larger factor get a logarithmic axis.
const LINEAR_FACTOR: f64 = 30.0;
/// Where lines have markers, in percent.
const MARKED: [f64; 4] = [25.0, 50.0, 75.0, 90.0];
const HEIGHT: i32 = 360;

/// The figure; `None` if no job was completed. Jobs that never were count: their line ends below
/// 100 %.
pub(in crate::cli::report) fn flowtimes(
    policies: &BTreeMap<PolicyKey, FlowTimes>,
    names: &Names,
) -> Result<Option<String>, CliError> {
    let shown = policies
        .iter()
        .filter(|(_, times)| !times.completed.is_empty())
        .take(super::POLICIES_MAX);
    let series: Vec<Series> = shown
        .map(|(policy, times)| {
            let points = steps(times);
            Series {
                name: names.name(policy).to_owned(),
                rank: names.rank(policy),
                marked: marked(&points),
                points,
                whiskers: Vec::new(),
            }
        })
        .collect();
    let xs = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.0)
    };
    let positive = xs().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let most = xs().fold(0.0, f64::max);
    if !positive.is_finite() {
        return Ok(None);
    }
    let name = "flow time (s), from arrival to completion";
    let across = if most > LINEAR_FACTOR * positive {
        Axis::log(name, positive * 0.9, most * 1.1)
    } else {
        Axis::linear(name, 0.0, most)
    };
    let series: Vec<Series> = series
        .into_iter()
        .map(|mut one| {
            for point in one.points.iter_mut().chain(&mut one.marked) {
                // A job with a time of 0 is drawn at the edge of the logarithmic axis.
                point.0 = point.0.max(across.low);
            }
            one
        })
        .collect();
    let up = Axis::linear("share of jobs completed (%)", 0.0, 100.0);
    let what = "Distribution of flow times, by policy";
    chart::lines(HEIGHT, what, (&across, &up), &series).map(Some)
}

/// The first corners at or above some shares, and the end.
fn marked(corners: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let at = |percent: &f64| corners.iter().find(|corner| corner.1 >= *percent);
    let shares = MARKED.iter().filter_map(at);
    shares.chain(corners.last()).copied().collect()
}

/// The corners of the step function in percent.
fn steps(times: &FlowTimes) -> Vec<(f64, f64)> {
    let mut sorted = times.completed.clone();
    sorted.sort_by(f64::total_cmp);
    let percent = 100.0 / (sorted.len() + times.open) as f64;
    let steps = sorted.len().min(STEPS);
    let mut corners = Vec::with_capacity(2 * steps);
    let mut below = 0.0;
    for step in 1..=steps {
        let passed = sorted.len() * step / steps;
        let (at, share) = (sorted[passed - 1], percent * passed as f64);
        corners.push((at, below));
        corners.push((at, share));
        below = share;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_were_never_completed_keep_the_line_below_all() {
        let times = FlowTimes {
            completed: vec![3.0, 1.0],
            open: 2,
        };
        let corners = [(1.0, 0.0), (1.0, 25.0), (3.0, 25.0), (3.0, 50.0)];
        assert_eq!(steps(&times), corners);
    }

    #[test]
    fn a_million_times_make_few_corners_and_end_at_all() {
        let times = FlowTimes {
            completed: (1..=1_000_000).map(f64::from).collect(),
            open: 0,
        };
        let corners = steps(&times);
        assert_eq!(corners.len(), 2 * STEPS);
        assert_eq!(corners.last(), Some(&(1_000_000.0, 100.0)));
    }
}
