//! The earliest deadline that reaches a PoCD: the search for the value that shed reports at submission.

/// The search considers no deadline further away than this many seconds (a year).
pub const SLACK_MAX: f64 = 366.0 * 86_400.0;

/// The result is at most by this share above the smallest slack that reaches the target …
const PRECISION: f64 = 1.0 / 256.0;
/// … or by this many seconds.
const PRECISION_SECONDS: f64 = 0.1;

/// The most often that the search evaluates the PoCD.
pub const EVALUATIONS_MAX: u32 = DOUBLINGS_MAX + HALVINGS_MAX + 1;
/// From a tenth of a second to more than [`SLACK_MAX`].
const DOUBLINGS_MAX: u32 = 30;
/// From [`SLACK_MAX`] to less than a tenth of a second.
const HALVINGS_MAX: u32 = 30;

/// The smallest time in seconds from now at which a deadline would reach the target. `ln_pocd` is the job's ln PoCD
/// with a deadline so far away, and must not fall with its argument. The result then reaches the target, and is at
/// most 0.4 % or a tenth of a second more than the smallest that does. `guess` is the start of the search, in
/// seconds. `None` if [`SLACK_MAX`] does not reach the target, or if the target is not a number.
pub fn earliest_slack(ln_target: f64, guess: f64, ln_pocd: impl Fn(f64) -> f64) -> Option<f64> {
    earliest_slack_finer(1.0, ln_target, guess, ln_pocd)
}

/// The same, this many times as exact.
pub(crate) fn earliest_slack_finer(
    finer: f64,
    ln_target: f64,
    guess: f64,
    ln_pocd: impl Fn(f64) -> f64,
) -> Option<f64> {
    let reaches = |slack: f64| ln_pocd(slack) >= ln_target;
    if reaches(0.0) {
        return Some(0.0);
    }
    let mut high = if guess > PRECISION_SECONDS {
        guess.min(SLACK_MAX)
    } else {
        // Also for a guess that is not a number.
        PRECISION_SECONDS
    };
    let mut low = 0.0;
    for _ in 0..DOUBLINGS_MAX {
        if reaches(high) {
            return Some(between(low, high, finer, reaches));
        }
        if high >= SLACK_MAX {
            return None;
        }
        (low, high) = (high, (high * 2.0).min(SLACK_MAX));
    }
    None
}

/// `high` reaches the target, `low` does not.
fn between(mut low: f64, mut high: f64, finer: f64, reaches: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS_MAX {
        if high - low <= (high * PRECISION).max(PRECISION_SECONDS) / finer {
            break;
        }
        let middle = f64::midpoint(low, high);
        if reaches(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::estimate::pareto::ParetoDistribution;
    use crate::estimate::pocd::Waves;
    use proptest::prelude::*;

    fn distribution() -> ParetoDistribution {
        ParetoDistribution {
            t_min: 100.0,
            beta: 2.0,
        }
    }

    fn earliest(target: f64, tasks: u32, width: u32) -> Option<f64> {
        let waves = Waves {
            at_once: width,
            width,
            period: 200.0,
        };
        earliest_slack(libm::log(target), 200.0, |slack| {
            waves.ln_pocd(&distribution(), [], tasks, slack)
        })
    }

    #[test]
    fn one_task_needs_the_quantile_of_its_distribution() {
        // P(T > t) = (100 / t)², so that 0.99 takes 1000 s.
        let slack = earliest(0.99, 1, 1).unwrap();
        assert!((1000.0..=1004.0).contains(&slack), "{slack}");
    }

    #[test]
    fn waves_wait_for_each_other() {
        let (together, one_by_one) = (earliest(0.9, 4, 4), earliest(0.9, 4, 1));
        // The last of four starts three mean times later, the others have more time then.
        let (together, one_by_one) = (together.unwrap(), one_by_one.unwrap());
        assert!(one_by_one > together && one_by_one < together + 3.0 * 200.0);
    }

    #[test]
    fn an_unreachable_deadline_is_none_and_a_certain_one_is_zero() {
        assert_eq!(earliest_slack(0.0, 10.0, |_| -1e-9), None);
        assert_eq!(earliest_slack(f64::NAN, 10.0, |_| 0.0), None);
        assert_eq!(earliest_slack(-0.1, f64::NAN, |_| 0.0), Some(0.0));
        assert_eq!(
            earliest_slack(0.0, 10.0, |slack| slack - SLACK_MAX),
            Some(SLACK_MAX)
        );
    }

    proptest! {
        #[test]
        fn the_search_is_right_and_bounded(threshold in 1e-3..SLACK_MAX, guess in 0.0..2e7f64) {
            let asked = Cell::new(0);
            let found = earliest_slack(0.0, guess, |slack| {
                asked.set(asked.get() + 1);
                if slack >= threshold { 0.0 } else { -1.0 }
            });
            let found = found.unwrap();
            prop_assert!(found >= threshold);
            prop_assert!(found <= threshold + (found * PRECISION).max(PRECISION_SECONDS) + 1e-6);
            prop_assert!(asked.get() <= EVALUATIONS_MAX);
        }

        #[test]
        fn more_width_is_never_later_and_more_certainty_never_earlier(
            tasks in 1u32..300,
            width in 1u32..50,
            more in 1u32..50,
            target in 0.01..0.99f64,
            surer in 0.0..1.0f64,
        ) {
            let here = earliest(target, tasks, width).unwrap();
            let wider = earliest(target, tasks, width + more).unwrap();
            let surer = earliest(target + surer * (0.999 - target), tasks, width).unwrap();
            let rounding = |slack: f64| (slack * PRECISION).max(PRECISION_SECONDS) + 1e-6;
            prop_assert!(wider <= here + rounding(here), "{wider} above {here}");
            prop_assert!(surer >= here - rounding(here), "{surer} below {here}");
        }
    }
}
