//! PoCD over time, as few points as show its course.

use shed_core::time::Instant;

use crate::api::PocdPoint;
use crate::clock;
use crate::job::record::Input;

/// A curve has at most this number of points.
const POINTS_MAX: usize = 32;
/// Of a record that another client has edited, no more points are read.
const OLD_MAX: usize = 2 * POINTS_MAX;

/// The curve of the record before and the PoCD of now.
pub(super) fn continued(input: &Input<'_>) -> Vec<PocdPoint> {
    let old = input.old.map_or(&[][..], |old| &old.pocd);
    let mut points = old[old.len().saturating_sub(OLD_MAX)..].to_vec();
    if let Some(pocd) = input.pocd {
        let time = clock::time(input.now());
        // The clock of an earlier leader may have been ahead.
        points.retain(|point| point.time < time);
        points.push(PocdPoint { time, pocd });
    }
    points.sort_by(|a, b| a.time.cmp(&b.time));
    thin(&mut points, POINTS_MAX);
    points
}

/// Leaves out points until at most `most` are left, and all that lie on the line between their neighbors.
fn thin(points: &mut Vec<PocdPoint>, most: usize) {
    while points.len() > most || least(points).is_some_and(|(_, area)| area <= 0.0) {
        let _ = drop_least(points);
    }
}

/// Takes out the point that the curve needs least: the one that spans the smallest triangle with its neighbors
/// (Visvalingam and Whyatt 1993). The first point and the last one go last, the first one before the last.
pub(super) fn drop_least(points: &mut Vec<PocdPoint>) -> Option<PocdPoint> {
    let at = least(points).map_or(0, |(at, _)| at);
    (at < points.len()).then(|| points.remove(at))
}

/// The point between two others that spans the smallest triangle with them, and twice the area of that.
fn least(points: &[PocdPoint]) -> Option<(usize, f64)> {
    let triangles = points.windows(3).map(area).zip(1..);
    let smallest = triangles.min_by(|(a, _), (b, _)| a.total_cmp(b));
    smallest.map(|(area, at)| (at, area))
}

/// Twice the area of the triangle of three points, 0 for others.
fn area(points: &[PocdPoint]) -> f64 {
    let [a, b, c] = points else {
        return 0.0;
    };
    let at = |point: &PocdPoint| {
        let Instant(milliseconds) = clock::instant(&point.time);
        (milliseconds as f64 / 1000.0, point.pocd.value())
    };
    let ((ax, ay), (bx, by), (cx, cy)) = (at(a), at(b), at(c));
    let area = ((bx - ax) * (cy - ay) - (cx - ax) * (by - ay)).abs();
    // Rounding of points on a line.
    if area < 1e-6 { 0.0 } else { area }
}
