//! The search for one policy.
//!
//! The answer is the smallest size whose share of deadlines met reaches the target, the share being
//! that over all seeds. Its interval has the sizes whose 95 % interval contains the target: it goes
//! from the smallest size whose upper end reaches the target to the smallest whose lower end does.
//! All three are found on one set of sizes that were tried, each on all seeds ([`super::grid`]), the
//! ends to 5 %, rounded outwards. Then sizes around the answer are tried. If one above the answer fails, the search goes on
//! above that.

use std::collections::{BTreeMap, BTreeSet};

use super::grid::{Grid, Step};
use super::share::{Share, needed};

/// Sizes around an answer that a curve has, in shares of the answer, unless one as near as
/// [`NEAR`] was tried.
const AROUND: [f64; 6] = [0.7, 0.8, 0.9, 1.1, 1.25, 1.5];
const NEAR: f64 = 0.04;

/// The ends of an interval are as exact as that, rounded outwards.
const SLACK: f64 = 0.05;

/// A search that goes on until nothing is left to try.
#[derive(Debug, Clone)]
pub struct Search {
    grid: Grid,
    target: f64,
    can_be_met: bool,
    points: BTreeMap<u32, Share>,
    around: Option<Vec<u32>>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The smallest size that reaches the target; absent if the largest does not.
    pub size: Option<u32>,
    /// The smallest size that may reach it; absent if the largest does not.
    pub low: Option<u32>,
    /// The smallest size that surely reaches it; absent if the largest does not.
    pub high: Option<u32>,
    /// Smaller sizes that reached it too, although one between failed.
    pub also: Vec<u32>,
}

/// Which number has to reach the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Share,
    Upper,
    Lower,
}

const SIDES: [Side; 3] = [Side::Share, Side::Upper, Side::Lower];

impl Side {
    fn of(self, share: &Share) -> f64 {
        match self {
            Self::Share => share.value(),
            Self::Upper => share.high,
            Self::Lower => share.low,
        }
    }
}

impl Search {
    /// `reachable` is the share that no size can exceed.
    pub fn new(grid: Grid, target: f64, reachable: f64) -> Self {
        Self {
            grid,
            target,
            can_be_met: reachable >= target,
            points: BTreeMap::new(),
            around: None,
        }
    }

    /// Sizes to try next, ascending; empty at the end.
    pub fn wanted(&mut self) -> Vec<u32> {
        let wanted: BTreeSet<u32> = if self.can_be_met {
            let sides = SIDES.into_iter().filter(|side| self.is_sought(*side));
            let steps = sides.map(|side| self.step(side));
            let open = steps.filter_map(|step| match step {
                Step::Try(size) => Some(size),
                Step::Found(..) | Step::OutOfReach => None,
            });
            open.collect()
        } else {
            // The shares at the largest size and at the given one help to see what is missing.
            let start = self.grid.start.clamp(self.grid.least, self.grid.most);
            BTreeSet::from([start, self.grid.most])
        };
        let wanted = self.untried(wanted);
        if !wanted.is_empty() {
            return wanted;
        }
        let Step::Found(_, size) = self.step(Side::Share) else {
            return Vec::new();
        };
        // Those of the first answer, so that the search comes to an end if they move it.
        if self.around.is_none() {
            self.around = Some(self.around(size));
        }
        self.untried(self.around.iter().flatten().copied().collect())
    }

    fn around(&self, size: u32) -> Vec<u32> {
        let near = f64::from(size) * NEAR;
        let is_known = |at: u32| {
            let mut known = self.points.keys();
            known.any(|known| f64::from(known.abs_diff(at)) <= near)
        };
        let sizes = AROUND.iter().map(|share| (f64::from(size) * share).round());
        let sizes = sizes.map(|size| size as u32);
        let inside = sizes.filter(|at| (self.grid.least..=self.grid.most).contains(at));
        inside.filter(|at| !is_known(*at)).collect()
    }

    /// The result of a size.
    pub fn take(&mut self, size: u32, share: Share) {
        self.points.insert(size, share);
    }

    /// All sizes that were tried.
    pub fn points(&self) -> &BTreeMap<u32, Share> {
        &self.points
    }

    /// The largest size that failed, and the smallest above it that reached the target: where the
    /// search is.
    pub fn bracket(&self) -> (Option<u32>, Option<u32>) {
        let fails = |point: &(&u32, &Share)| point.1.value() < self.target;
        let failed = self
            .points
            .iter()
            .filter(fails)
            .map(|(size, _)| *size)
            .max();
        let mut above = self.points.keys().copied();
        (failed, above.find(|size| Some(*size) > failed))
    }

    /// What was found; final once nothing is left to try.
    pub fn answer(&self) -> Answer {
        let found = |side: Side| match self.step(side) {
            Step::Found(below, enough) if self.can_be_met && self.is_sought(side) => {
                Some((below, enough))
            }
            _ => None,
        };
        let size = found(Side::Share).map(|(_, enough)| enough);
        let low = found(Side::Upper).map(|(below, _)| below + 1);
        let high = found(Side::Lower).map(|(_, enough)| enough);
        let reached = self
            .points
            .iter()
            .filter(|(_, share)| share.value() >= self.target);
        let below = reached.filter(|(at, _)| size.is_none_or(|size| **at < size));
        Answer {
            size,
            low,
            high,
            also: below.map(|(at, _)| *at).collect(),
        }
    }

    fn step(&self, side: Side) -> Step {
        let slack = match side {
            Side::Share => 0.0,
            Side::Upper | Side::Lower => SLACK,
        };
        let points = self.points.iter();
        let tried = points.map(|(size, share)| (*size, side.of(share) >= self.target));
        self.grid.step(tried, slack)
    }

    /// Too few deadlines can't show with confidence that the target is reached, however many are met.
    fn is_sought(&self, side: Side) -> bool {
        let is_enough = |share: &Share| needed(self.target).is_some_and(|n| share.sample >= n);
        side != Side::Lower || self.points.values().next().is_none_or(is_enough)
    }

    fn untried(&self, sizes: BTreeSet<u32>) -> Vec<u32> {
        let sizes = sizes.into_iter();
        sizes
            .filter(|size| !self.points.contains_key(size))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::share::Deadlines;

    const GRID: Grid = Grid {
        least: 1,
        most: 400,
        start: 100,
    };

    /// Deadlines met of 1000 at each size.
    fn searched(target: f64, reachable: f64, met: impl Fn(u32) -> usize) -> Search {
        let mut search = Search::new(GRID, target, reachable);
        loop {
            let wanted = search.wanted();
            if wanted.is_empty() {
                return search;
            }
            for size in wanted {
                let run = Deadlines {
                    all: 1000,
                    met: met(size),
                };
                search.take(size, Share::of(&[run], false));
            }
        }
    }

    #[test]
    fn the_interval_has_the_sizes_that_may_be_the_answer() {
        let search = searched(0.9, 1.0, |size| 800 + (size as usize).min(200));
        let answer = search.answer();
        assert_eq!(answer.size, Some(100));
        // By Wilson's formula 882 and 919 of 1000 are the first whose ends reach 0.9.
        let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
        assert!((77..=82).contains(&low), "{low}");
        assert!((119..=125).contains(&high), "{high}");
        assert!(answer.also.is_empty());
        for size in [70, 80, 90, 110, 125, 150] {
            let mut near = search.points().range(size - 4..=size + 4);
            assert!(near.next().is_some(), "{size}");
        }
        assert!(search.points().len() <= 20);
    }

    #[test]
    fn a_size_that_fails_above_the_answer_moves_it() {
        let search = searched(0.9, 1.0, |size| match size {
            150 => 0,
            100.. => 1000,
            _ => 0,
        });
        let answer = search.answer();
        assert_eq!(answer.size, Some(151));
        assert!(answer.also.contains(&100), "{answer:?}");
    }

    #[test]
    fn what_cannot_be_met_is_not_searched() {
        let search = searched(0.9, 0.89, |_| 890);
        let sizes: Vec<u32> = search.points().keys().copied().collect();
        assert_eq!(sizes, [100, 400]);
        assert_eq!(search.answer().size, None);
    }

    #[test]
    fn too_few_deadlines_leave_the_upper_end_open() {
        let search = searched(0.9999, 1.0, |size| if size < 50 { 0 } else { 1000 });
        let answer = search.answer();
        assert_eq!((answer.size, answer.high), (Some(50), None));
        assert!(!search.points().contains_key(&400), "in vain");
    }
}
