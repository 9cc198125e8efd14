//! How long a whole job runs, for a job whose attempts are not seen. The job counts as one attempt: it is silent, or
//! it reports the share of its tasks that are done.
//!
//! A silent run may be stuck. So one run in [`ODD_RUNS`] counts as unlike the others: its time has the heavy tail of the
//! model's attempts. Otherwise a run that takes twice as long as all others would be expected to end at any moment.

use std::f64::consts::LN_2;

use crate::estimate::distribution::{AttemptDistribution, Distribution, Evidence};
use crate::estimate::expected_distribution::{self, Z90};
use crate::estimate::feasibility::{SLACK_MAX, earliest_slack_finer};
use crate::estimate::log_normal::LogNormalDistribution;
use crate::estimate::pareto::ParetoDistribution;
use crate::estimate::pareto_fit::ShapePrior;
use crate::estimate::sample::median;
use crate::snapshot::ExpectedDuration;
use crate::time::Span;

/// Among this number of runs one is unlike the others.
const ODD_RUNS: f64 = 20.0;

/// The median is this many times as exact as the deadlines that shed reports.
const FINER: f64 = 256.0;

/// A job by its numbers of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WholeRun {
    /// All tasks.
    pub tasks: u32,
    /// Tasks that may run at a time.
    pub width: u32,
    /// Tasks that are done.
    pub done: u32,
    /// Tasks that run.
    pub running: u32,
}

/// What is known of the time of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEstimate {
    /// Seconds until the run ends with a probability of one half; at most [`SLACK_MAX`].
    pub remaining: f64,
    /// The probability that it ends within the slack; absent without a slack.
    pub pocd: Option<f64>,
}

impl WholeRun {
    /// The estimate of a run that started `elapsed` seconds ago, by the user's expectation of a task and the times of
    /// earlier runs in seconds. `None` if there is neither.
    pub fn estimate(
        &self,
        (expected, earlier): (Option<&ExpectedDuration>, &[f64]),
        elapsed: f64,
        slack: Option<f64>,
    ) -> Option<RunEstimate> {
        let distribution = self.distribution(expected, earlier)?;
        let usual = distribution.quantile(-LN_2);
        let evidence = self.evidence(elapsed.max(0.0));
        let miss = |wait: f64| match evidence {
            Evidence::Silent { age } => miss_of_silent(&distribution, usual, age, wait),
            _ => libm::exp(distribution.ln_miss(evidence, wait)),
        };
        Some(RunEstimate {
            remaining: earliest_slack_finer(FINER, -LN_2, usual, |wait| libm::log1p(-miss(wait)))
                .unwrap_or(SLACK_MAX),
            pocd: slack.map(|slack| 1.0 - miss(slack)),
        })
    }

    /// The distribution of the whole run. The expectation counts as two earlier runs, as that of a task counts as two
    /// attempts. Without an expectation the median of the earlier runs takes its place, so that one run gives no
    /// certainty.
    fn distribution(
        &self,
        expected: Option<&ExpectedDuration>,
        earlier: &[f64],
    ) -> Option<Distribution> {
        let whole = match expected {
            Some(expected) => self.expected_whole(expected)?,
            None => ExpectedDuration::new(Span::from_seconds_f64(median(earlier.to_vec())?), None)
                .ok()?,
        };
        expected_distribution::updated(&whole, earlier, &[])
    }

    /// The quantiles of the whole run for this expectation of a task: full waves of the mean time, then the slowest task
    /// of the last wave. The spread stays that of a task, because most of it is an error that all tasks have in common.
    fn expected_whole(&self, expected: &ExpectedDuration) -> Option<ExpectedDuration> {
        let task = expected_distribution::distribution(expected)?;
        let whole: Distribution = task.into();
        let common = expected_distribution::common(&whole);
        let own = libm::sqrt((task.sigma() * task.sigma() - common * common).max(0.0));
        let own = LogNormalDistribution::new(task.mu(), own)?;
        let (tasks, width) = (self.tasks.max(1), self.width.max(1));
        let waves_before = (tasks - 1) / width;
        let last = tasks - waves_before * width;
        let slowest = own.quantile(libm::log(-libm::expm1(-LN_2 / f64::from(last))));
        let median = f64::from(waves_before) * own.mean() + slowest;
        let high = median * libm::exp(Z90 * task.sigma());
        let seconds = Span::from_seconds_f64;
        ExpectedDuration::new(seconds(median), Some(seconds(high))).ok()
    }

    /// What the run shows of its time. Tasks that run at once say little until the last one ends. So their number counts
    /// only once a whole wave is over, and as long as other tasks wait: then all places are taken, and the run's pace is
    /// its own. A running task counts as half.
    fn evidence(&self, elapsed: f64) -> Evidence {
        let waiting = self
            .tasks
            .saturating_sub(self.done)
            .saturating_sub(self.running);
        let has_pace = self.done > 0 && self.done >= self.width && waiting > 0 && elapsed > 0.0;
        if !has_pace {
            return Evidence::Silent { age: elapsed };
        }
        let phi = (f64::from(self.done) + f64::from(self.running) / 2.0) / f64::from(self.tasks);
        Evidence::Predicted {
            phi,
            t_rem: elapsed * (1.0 - phi) / phi,
        }
    }
}

/// P(a run that is still silent at this age does not end within `wait`), if it is a usual one or an odd one.
fn miss_of_silent(distribution: &Distribution, usual: f64, age: f64, wait: f64) -> f64 {
    if wait <= 0.0 {
        return 1.0;
    }
    let odd = ParetoDistribution {
        t_min: usual,
        beta: ShapePrior::with_t_min(usual).beta,
    };
    let share = 1.0 / ODD_RUNS;
    let alive = (1.0 - share) * libm::exp(distribution.ln_survival(age));
    let odd_alive = share * libm::exp(odd.ln_survival(age));
    let is_odd = odd_alive / (alive + odd_alive);
    let miss = libm::exp(distribution.ln_residual_survival(age, wait));
    let odd_miss = libm::exp(odd.ln_residual_survival(age, wait));
    miss + is_odd * (odd_miss - miss)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single() -> WholeRun {
        WholeRun {
            tasks: 1,
            width: 1,
            ..WholeRun::default()
        }
    }

    fn expected(p50: i64) -> ExpectedDuration {
        ExpectedDuration::new(Span::from_seconds(p50), None).unwrap()
    }

    fn by_runs(earlier: &[f64], elapsed: f64, slack: f64) -> f64 {
        let estimate = single().estimate((None, earlier), elapsed, Some(slack));
        estimate.unwrap().pocd.unwrap()
    }

    #[test]
    fn nothing_is_known_without_runs_and_expectation() {
        assert_eq!(single().estimate((None, &[]), 10.0, Some(60.0)), None);
    }

    #[test]
    fn an_expected_single_task_is_the_whole_run() {
        let expected = expected(100);
        let at = |elapsed, slack| {
            let known = (Some(&expected), &[][..]);
            single().estimate(known, elapsed, Some(slack)).unwrap()
        };
        let pocd = |elapsed, slack| at(elapsed, slack).pocd.unwrap();
        // Of the odd runs, one in twenty, none is over by then.
        assert!((pocd(0.0, 100.0) - 0.95 * 0.5).abs() < 1e-6);
        assert!((at(0.0, 1.0).remaining - 100.0).abs() < 5.0);
        assert!(pocd(0.0, 200.0) > 0.95);
        assert!(pocd(130.0, 5.0) < 0.3, "{}", pocd(130.0, 5.0));
        assert_eq!(pocd(50.0, 0.0), 0.0);
    }

    #[test]
    fn one_run_gives_an_estimate_and_many_make_it_sharp() {
        let (one, many) = ([100.0], [100.0; 50]);
        let (first, later) = (by_runs(&one, 0.0, 130.0), by_runs(&many, 0.0, 130.0));
        assert!(0.75 < first && first < 0.87, "{first}");
        assert!(later > 0.96, "{later}");
        // A run that is older than all earlier ones were is late, and may be stuck.
        assert!(by_runs(&many, 120.0, 3.0) < 0.2);
        let stuck = by_runs(&many, 300.0, 300.0);
        assert!((stuck - 0.75).abs() < 0.01, "{stuck}");
    }

    #[test]
    fn half_of_the_probability_is_before_the_expected_end() {
        for (elapsed, earlier) in [(0.0, 60.0), (50.0, 60.0), (200.0, 60.0), (9e5, 3.0)] {
            let estimate = |slack| single().estimate((None, &[earlier]), elapsed, slack);
            let remaining = estimate(None).unwrap().remaining;
            let pocd = estimate(Some(remaining)).unwrap().pocd.unwrap();
            assert!((pocd - 0.5).abs() < 1e-3, "{elapsed} {remaining} {pocd}");
        }
    }

    #[test]
    fn runs_outweigh_a_wrong_expectation() {
        let expected = expected(100);
        let known = (Some(&expected), &[400.0; 10][..]);
        let estimate = single().estimate(known, 0.0, Some(300.0)).unwrap();
        assert!(estimate.pocd.unwrap() < 0.5);
        assert!(estimate.remaining > 300.0, "{}", estimate.remaining);
    }

    #[test]
    fn tasks_in_waves_take_longer_than_one() {
        let expected = expected(60);
        let remaining = |tasks, width| {
            let run = WholeRun {
                tasks,
                width,
                ..WholeRun::default()
            };
            let known = (Some(&expected), &[][..]);
            run.estimate(known, 0.0, None).unwrap().remaining
        };
        assert!(remaining(20, 20) > remaining(1, 1));
        let (one, five) = (remaining(20, 20), remaining(100, 20));
        assert!((five - one - 4.0 * 60.0).abs() < 20.0, "{one} {five}");
        assert_eq!(remaining(0, 0), remaining(1, 1));
    }

    #[test]
    fn a_slow_pace_shows_before_the_usual_time_is_over() {
        let run = |done, running| WholeRun {
            tasks: 100,
            width: 10,
            done,
            running,
        };
        let earlier = [600.0; 10];
        let estimate = |run: WholeRun| run.estimate((None, &earlier), 300.0, Some(600.0)).unwrap();
        // A quarter is done after half of the usual time.
        let slow = estimate(run(20, 10));
        assert!(
            (slow.remaining / 900.0 - 1.0).abs() < 0.02,
            "{}",
            slow.remaining
        );
        assert!(slow.pocd.unwrap() < 0.1);
        let usual = estimate(run(45, 10));
        assert!((usual.remaining / 300.0 - 1.0).abs() < 0.02);
        assert!(usual.pocd.unwrap() > 0.99);
        // Less than a wave, or nothing that waits, is no pace.
        for none in [run(9, 10), run(95, 5), run(99, 1)] {
            assert_eq!(none.evidence(300.0), Evidence::Silent { age: 300.0 });
        }
    }
}
