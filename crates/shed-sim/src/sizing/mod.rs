//! How much is needed for a share of deadlines: how many nodes or slots, what share of them, or
//! how much time.
//!
//! - [`grid`]: the smallest number that is enough, where more need not be better.
//! - [`share`]: shares of deadlines met, with intervals.
//! - [`search`]: the search for one policy, and its answer with an interval.
//! - [`shape`]: clusters of any size that are made like a given one.
//! - [`limits`]: what no cluster of that shape can do.

pub mod grid;
pub mod limits;
pub mod search;
pub mod shape;
pub mod share;
