//! The figures of a report, each an SVG.

mod cost;
mod deadlines;
mod flowtimes;
mod gantt;

pub(super) use cost::cost;
pub(super) use deadlines::deadlines;
pub(in crate::cli) use deadlines::{AtLoad, LoadLine, met_over_load};
pub(super) use flowtimes::flowtimes;
pub(super) use gantt::{LANES_MAX, gantt};

/// More lines are not legible in one figure.
pub(in crate::cli) const POLICIES_MAX: usize = 7;
