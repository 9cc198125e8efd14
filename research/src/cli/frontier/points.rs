//! Points of the frontier: one per policy, preset and load.

use serde::Serialize;

use super::noninferiority::Estimated;
use super::runs::{FROZEN, OWN, Workload, figures, percents};
use crate::cli::clone_counts::CloneCounts;
use crate::cli::preset_cells::value;
use shed_sim::cli::CliError;
use shed_sim::cli::lists::Cell;
use shed_sim::cli::sweep::ResultsFile;
use shed_sim::outcome::Figures;

/// One policy on one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) preset: String,
    pub(super) load: String,
    /// The policy as it was typed; `shed-prime@frozen` is that of the frozen program.
    pub(super) policy: String,
    /// Price per clone in expected deadlines met; absent for other policies.
    pub(super) clone_price: Option<f64>,
    pub(super) seeds: usize,
    pub(super) met_percent: f64,
    /// Half of the 95 % interval; absent with one seed.
    pub(super) met_half95: Option<f64>,
    /// Clones per task with a winner.
    pub(super) clones_per_task: Option<f64>,
    /// Clones per task that a clone won; absent if a clone won none.
    pub(super) clones_per_win: Option<f64>,
    /// Per run.
    pub(super) slot_seconds: f64,
    /// Per run, of attempts that did not win.
    pub(super) slot_seconds_not_won: f64,
    /// Paired by seed; absent if the frozen program was not run.
    pub(super) points_to_frozen: Option<f64>,
    pub(super) points_half95: Option<f64>,
    /// Whether no other policy of the cell meets as many deadlines with fewer clones per task, or more with as many.
    pub(super) is_efficient: bool,
}

/// The runs of one workload.
pub(super) struct Measured {
    pub(super) workload: Workload,
    /// Of each policy its cells, by seed.
    pub(super) policies: Vec<Vec<Cell>>,
}

/// The policy of a price.
pub(super) fn at_price(price: f64) -> String {
    format!("{OWN}{{clone_price={price}}}")
}

/// The points of a workload, in the order of its policies; `prices` have the names of [`at_price`].
pub(super) fn of(
    measured: &Measured,
    prices: &[f64],
    results: &ResultsFile,
) -> Result<Vec<Point>, CliError> {
    let mut rows = Vec::new();
    for cells in &measured.policies {
        let Some(cell) = cells.first() else {
            continue;
        };
        rows.push((value(&cell.name, "--policy"), figures(results, cells)?));
    }
    let frozen = rows.iter().find(|(policy, _)| policy == FROZEN);
    let frozen = frozen.map(|(_, runs)| percents(runs)).transpose()?;
    let point = |(policy, runs): &(String, Vec<&Figures>)| {
        let price = prices.iter().find(|price| at_price(**price) == *policy);
        point(
            &measured.workload,
            (policy, price.copied()),
            runs,
            frozen.as_deref(),
        )
    };
    let points: Result<Vec<Point>, CliError> = rows.iter().map(point).collect();
    let mut points = points?;
    mark_efficient(&mut points);
    Ok(points)
}

fn point(
    workload: &Workload,
    (policy, clone_price): (&str, Option<f64>),
    runs: &[&Figures],
    frozen: Option<&[f64]>,
) -> Result<Point, CliError> {
    let met = percents(runs)?;
    let estimated = Estimated::of(&met);
    let to_frozen = frozen.map(|frozen| Estimated::of(&differences(&met, frozen)));
    let counts = CloneCounts::of(runs.iter().copied());
    Ok(Point {
        preset: workload.preset.clone(),
        load: workload.load.clone(),
        policy: policy.to_owned(),
        clone_price,
        seeds: runs.len(),
        met_percent: estimated.mean,
        met_half95: estimated.half_width,
        clones_per_task: counts.per_task(),
        clones_per_win: counts.per_win(),
        slot_seconds: counts.slot_seconds_per_run(),
        slot_seconds_not_won: counts.lost_per_run(),
        points_to_frozen: to_frozen.map(|estimated| estimated.mean),
        points_half95: to_frozen.and_then(|estimated| estimated.half_width),
        is_efficient: false,
    })
}

/// Differences of values that belong to the same seeds.
pub(super) fn differences(own: &[f64], other: &[f64]) -> Vec<f64> {
    own.iter()
        .zip(other)
        .map(|(own, other)| own - other)
        .collect()
}

/// Marks the points that no other one dominates. A point without clones per task is on no frontier.
fn mark_efficient(points: &mut [Point]) {
    let places: Vec<Option<(f64, f64)>> = points
        .iter()
        .map(|point| Some((point.clones_per_task?, point.met_percent)))
        .collect();
    let dominates = |(clones, met): (f64, f64), (of_clones, of_met): (f64, f64)| {
        clones <= of_clones && met >= of_met && (clones < of_clones || met > of_met)
    };
    for (point, place) in points.iter_mut().zip(&places) {
        point.is_efficient =
            place.is_some_and(|own| !places.iter().flatten().any(|other| dominates(*other, own)));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::cli::frontier) fn at(policy: &str, clones: f64, met: f64) -> Point {
        Point {
            preset: "A".to_owned(),
            load: "0.6".to_owned(),
            policy: policy.to_owned(),
            clone_price: None,
            seeds: 20,
            met_percent: met,
            met_half95: Some(0.5),
            clones_per_task: Some(clones),
            clones_per_win: Some(2.0),
            slot_seconds: 1000.0 + 100.0 * clones,
            slot_seconds_not_won: 100.0,
            points_to_frozen: None,
            points_half95: None,
            is_efficient: false,
        }
    }

    #[test]
    fn points_that_another_one_dominates_are_not_efficient() {
        let mut points = [
            at("none", 0.0, 50.0),
            at("cheap", 0.1, 90.0),
            at("wasteful", 0.5, 90.0),
            at("worse", 0.1, 80.0),
            at("equal", 0.1, 90.0),
            at("dear", 0.9, 95.0),
        ];
        points[3].clones_per_win = None;
        mark_efficient(&mut points);
        let efficient = points.iter().filter(|point| point.is_efficient);
        let names: Vec<&str> = efficient.map(|point| point.policy.as_str()).collect();
        assert_eq!(names, ["none", "cheap", "equal", "dear"]);
    }

    #[test]
    fn without_a_task_with_a_winner_a_point_is_on_no_frontier() {
        let mut points = [at("a", 0.0, 0.0), at("b", 0.3, 0.0)];
        points[0].clones_per_task = None;
        mark_efficient(&mut points);
        assert_eq!(points.map(|point| point.is_efficient), [false, true]);
    }

    #[test]
    fn differences_are_paired_by_seed() {
        assert_eq!(differences(&[90.0, 80.0], &[88.0, 85.0]), [2.0, -5.0]);
    }
}
