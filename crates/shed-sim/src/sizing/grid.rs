//! The smallest number of a range from which on every number that was tried is enough. More need
//! not be better: another slot changes which attempts start when, and a run may then meet fewer
//! deadlines. A number that fails therefore rules out all below it.

/// A range of whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The first; at least 1.
    pub least: u32,
    /// The last.
    pub most: u32,
    /// What is tried first.
    pub start: u32,
}

/// What follows from the numbers that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Try this one next.
    Try(u32),
    /// The smallest that is enough lies above the first, or is the second. The second is enough, and
    /// so is each larger one that was tried.
    Found(u32, u32),
    /// The last one is not enough.
    OutOfReach,
}

impl Grid {
    /// Brackets by factors of 3/2, then halves the bracket until it is that share of its upper end, or 1.
    pub fn step(&self, tried: impl Iterator<Item = (u32, bool)> + Clone, slack: f64) -> Step {
        let failed = tried.clone().filter(|(_, enough)| !enough);
        let failed = failed.map(|(number, _)| number).max();
        let above = tried.filter(|(number, enough)| *enough && Some(*number) > failed);
        let enough = above.map(|(number, _)| number).min();
        let is_narrow = |failed: u32, enough: u32| {
            enough - failed <= 1 || f64::from(enough - failed) <= slack * f64::from(enough)
        };
        match (failed, enough) {
            (None, None) => Step::Try(self.start.clamp(self.least, self.most)),
            (Some(failed), None) if failed >= self.most => Step::OutOfReach,
            (Some(failed), None) => Step::Try((failed.saturating_mul(3) / 2 + 1).min(self.most)),
            (None, Some(enough)) if enough <= self.least => Step::Found(enough - 1, enough),
            (None, Some(enough)) => Step::Try((enough / 3 * 2).clamp(self.least, enough - 1)),
            (Some(failed), Some(enough)) if is_narrow(failed, enough) => {
                Step::Found(failed, enough)
            }
            (Some(failed), Some(enough)) => Step::Try(failed + (enough - failed) / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Follows the steps; gives the last one and how many numbers were tried.
    fn follow(grid: Grid, slack: f64, enough: impl Fn(u32) -> bool) -> (Step, BTreeMap<u32, bool>) {
        let mut tried = BTreeMap::new();
        loop {
            match grid.step(
                tried.iter().map(|(number, enough)| (*number, *enough)),
                slack,
            ) {
                Step::Try(number) => {
                    assert!((grid.least..=grid.most).contains(&number));
                    assert_eq!(tried.insert(number, enough(number)), None, "tried twice");
                }
                last => return (last, tried),
            }
        }
    }

    proptest! {
        #[test]
        fn the_smallest_number_is_found_where_more_is_better(
            least in 1_u32..50,
            width in 0_u32..5000,
            start in 0_u32..6000,
            first in 0_u32..6000,
        ) {
            let most = least + width;
            let grid = Grid { least, most, start };
            let (step, tried) = follow(grid, 0.0, |number| number >= first);
            let first = first.max(least);
            let expected = if first > most {
                Step::OutOfReach
            } else {
                Step::Found(first - 1, first)
            };
            prop_assert_eq!(step, expected);
            prop_assert!(tried.len() <= 40);
            let (step, rough) = follow(grid, 0.05, |number| number >= first);
            prop_assert!(rough.len() <= tried.len());
            match step {
                Step::Found(below, enough) => {
                    prop_assert!(below < first && first <= enough);
                    prop_assert!(enough - below <= 1.max(enough / 20));
                }
                _ => prop_assert!(first > most),
            }
        }

        #[test]
        fn an_answer_is_enough_and_so_is_all_above_that_was_tried(seed: u64, most in 1_u32..2000) {
            let enough = |number: u32| {
                // Ever likelier, and never sure.
                let mixed = (u64::from(number) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                mixed % u64::from(most) < u64::from(number)
            };
            let (step, tried) = follow(Grid { least: 1, most, start: most / 2 }, 0.0, enough);
            match step {
                Step::Found(_, number) => {
                    prop_assert!(tried.range(number..).all(|(_, enough)| *enough));
                    prop_assert!(number == 1 || tried.get(&(number - 1)) == Some(&false));
                }
                _ => prop_assert_eq!(tried.get(&most), Some(&false)),
            }
        }
    }
}
