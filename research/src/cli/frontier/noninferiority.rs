//! Non-inferiority by paired differences, with as many seeds as the interval needs.

use shed_sim::cli::CliError;
use shed_sim::stats;

/// How many seeds a cell gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeedPlan {
    /// At first.
    pub(super) first: u64,
    /// At most.
    pub(super) most: u64,
    /// Half of the 95 % interval, in points, at which a cell has enough.
    pub(super) half_width: f64,
}

/// The fewest seeds that a cell gets in addition, so that rounds are few.
const LEAST_STEP: u64 = 10;

impl SeedPlan {
    /// How many seeds a cell with these differences has next; absent if it has enough.
    fn next(&self, differences: &[f64]) -> Option<u64> {
        let seeds = differences.len() as u64;
        let half = stats::half_width_95(differences).unwrap_or(f64::INFINITY);
        if half <= self.half_width || seeds >= self.most {
            return None;
        }
        // The half-width shrinks with the root of the number of seeds.
        let ratio = half / self.half_width;
        let needed = (seeds as f64 * ratio * ratio).ceil().min(self.most as f64) as u64;
        Some(needed.clamp((seeds + LEAST_STEP).min(self.most), self.most))
    }
}

/// Paired differences of each cell, in points, by seed. `run` gets cells with their numbers of seeds, and returns the
/// differences of all these seeds.
pub(super) fn differences(
    cells: usize,
    plan: SeedPlan,
    mut run: impl FnMut(&[(usize, u64)]) -> Result<Vec<Vec<f64>>, CliError>,
) -> Result<Vec<Vec<f64>>, CliError> {
    let mut differences = vec![Vec::new(); cells];
    let mut open: Vec<(usize, u64)> = (0..cells).map(|cell| (cell, plan.first)).collect();
    while !open.is_empty() {
        for ((cell, _), of_cell) in open.iter().zip(run(&open)?) {
            differences[*cell] = of_cell;
        }
        let next = |(cell, _): &(usize, u64)| Some((*cell, plan.next(&differences[*cell])?));
        open = open.iter().filter_map(next).collect();
    }
    Ok(differences)
}

/// What differences must reach, in points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margins {
    /// The least estimate of a cell.
    pub(super) estimate: f64,
    /// The least upper end of a cell's interval.
    pub(super) upper_end: f64,
    /// The least mean over cells.
    pub(super) mean: f64,
}

/// The differences of one cell, as an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimated {
    pub(super) mean: f64,
    /// Absent with one seed.
    pub(super) half_width: Option<f64>,
}

impl Estimated {
    pub(super) fn of(differences: &[f64]) -> Self {
        Self {
            mean: stats::mean(differences),
            half_width: stats::half_width_95(differences),
        }
    }

    /// Whether the cell is not inferior by more than the margins.
    pub(super) fn holds(&self, margins: &Margins) -> bool {
        let upper = self.mean + self.half_width.unwrap_or(f64::INFINITY);
        self.mean >= margins.estimate && upper >= margins.upper_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: SeedPlan = SeedPlan {
        first: 20,
        most: 400,
        half_width: 1.0,
    };

    /// Differences that alternate between −spread and +spread.
    fn alternating(spread: f64, seeds: u64) -> Vec<f64> {
        (0..seeds)
            .map(|seed| if seed % 2 == 0 { spread } else { -spread })
            .collect()
    }

    #[test]
    fn a_cell_gets_seeds_until_its_interval_is_narrow_enough() {
        // t·s/√20 = 0.47 s: a spread of 2 is narrow at once, 5 needs about 100 seeds, 40 more than 400.
        let spreads = [2.0, 5.0, 40.0];
        let mut rounds = Vec::new();
        let found = differences(3, PLAN, |open| {
            rounds.push(open.to_vec());
            Ok(open
                .iter()
                .map(|&(cell, seeds)| alternating(spreads[cell], seeds))
                .collect())
        });
        let found = found.expect("differences");
        let half = |cell: usize| stats::half_width_95(&found[cell]).expect("an interval");
        assert_eq!((found[0].len(), found[2].len()), (20, 400));
        assert!(half(0) <= 1.0 && half(1) <= 1.0 && half(2) > 1.0);
        assert!((80..=130).contains(&found[1].len()), "{}", found[1].len());
        assert_eq!(rounds[0], [(0, 20), (1, 20), (2, 20)]);
        assert_eq!(rounds[1][1], (2, 400));
        assert!(rounds[1..].iter().flatten().all(|(cell, _)| *cell != 0));
        assert!(rounds.len() <= 4, "{rounds:?}");
    }

    #[test]
    fn an_error_of_a_run_ends_the_rounds() {
        let failed = differences(1, PLAN, |_| Err(CliError::Usage("no run".to_owned())));
        assert_eq!(failed.expect_err("an error").to_string(), "no run");
    }

    #[test]
    fn a_cell_holds_by_its_estimate_and_its_interval_upper_end() {
        let margins = Margins {
            estimate: -1.0,
            upper_end: -0.5,
            mean: -0.2,
        };
        let holds = |mean: f64, half: f64| {
            let half_width = Some(half);
            Estimated { mean, half_width }.holds(&margins)
        };
        assert!(holds(0.3, 0.1) && holds(-1.0, 0.5) && holds(-0.9, 0.9));
        assert!(!holds(-1.1, 5.0), "the estimate is too low");
        assert!(!holds(-0.9, 0.3), "the whole interval is below −0.5");
    }

    #[test]
    fn differences_are_estimated_with_their_interval() {
        // s = √2.5, t = 2.776, n = 5: 2.776·√0.5 = 1.963.
        let estimated = Estimated::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(estimated.mean, 3.0);
        assert!((estimated.half_width.expect("an interval") - 1.963).abs() < 1e-3);
    }
}
