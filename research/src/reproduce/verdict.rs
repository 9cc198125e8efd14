//! The rule of the verdicts. Pure functions of a mean, its interval, and what the paper prints.

/// How ours is held against the printed value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// At most so far from it.
    Within(f64),
    /// At most that share of it away.
    Relative(f64),
    /// At least this, independent of the printed value.
    AtLeast(f64),
    /// At most this, independent of the printed value.
    AtMost(f64),
}

/// The widest interval that a bound can be compared with, in points. All bounds are on percentages.
const BOUND_NEEDS: f64 = 10.0;

/// Values that agree with the paper, and how narrow an interval the comparison needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accepted {
    /// From this on.
    pub low: f64,
    /// Up to this.
    pub high: f64,
    /// Half of the widest interval that still compares.
    pub needs: f64,
}

impl Check {
    /// The values that agree with a printed one.
    pub fn accepted(self, printed: f64) -> Accepted {
        let around = |tolerance: f64| Accepted {
            low: printed - tolerance,
            high: printed + tolerance,
            needs: tolerance,
        };
        match self {
            Self::Within(tolerance) => around(tolerance),
            Self::Relative(share) => around(share * printed.abs()),
            Self::AtLeast(low) => Accepted {
                low,
                high: f64::INFINITY,
                needs: BOUND_NEEDS,
            },
            Self::AtMost(high) => Accepted {
                low: f64::NEG_INFINITY,
                high,
                needs: BOUND_NEEDS,
            },
        }
    }
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Ours agrees.
    Holds,
    /// The interval of ours excludes the paper's value with its tolerance.
    Differs,
    /// The interval is wider than the comparison needs, or there is no value of ours.
    CannotBeMade,
}

impl Verdict {
    /// For tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "**differs**",
            Self::CannotBeMade => "cannot be made",
        }
    }
}

/// The verdict on a mean with half of its interval. A closed form has none.
///
/// 1. Nothing was measured, or nothing is printed: the comparison cannot be made.
/// 2. The mean agrees: it holds.
/// 3. No value of the interval agrees: it differs.
/// 4. Some do, and the interval is as narrow as the comparison needs: it holds, otherwise it cannot be made.
pub fn judge(accepted: Accepted, mean: f64, half: Option<f64>) -> Verdict {
    let Accepted { low, high, needs } = accepted;
    let half = half.unwrap_or(0.0);
    if [low, high, mean, half].iter().any(|value| value.is_nan()) {
        Verdict::CannotBeMade
    } else if low <= mean && mean <= high {
        Verdict::Holds
    } else if mean + half < low || mean - half > high {
        Verdict::Differs
    } else if half <= needs {
        Verdict::Holds
    } else {
        Verdict::CannotBeMade
    }
}

/// The verdict on an ordering: the mean of the difference is at least the margin, or below it with its whole interval.
/// Between the two the seeds do not decide the ordering.
pub fn judge_order(margin: f64, mean: f64, half: Option<f64>) -> Verdict {
    let accepted = Accepted {
        low: margin,
        high: f64::INFINITY,
        needs: 0.0,
    };
    judge(accepted, mean, half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_follows_from_tolerance_mean_and_interval() {
        use Verdict::{CannotBeMade, Differs, Holds};
        let within = Check::Within(5.0);
        for (check, mean, half, verdict) in [
            // The mean is within the tolerance, at its edge too.
            (within, 86.0, Some(1.0), Holds),
            (within, 85.0, Some(0.0), Holds),
            (within, 86.0, Some(30.0), Holds),
            // The interval reaches the tolerance, and is narrow enough.
            (within, 81.0, Some(4.0), Holds),
            (within, 99.0, Some(5.0), Holds),
            // It reaches it, but says too little.
            (within, 80.0, Some(5.1), CannotBeMade),
            (within, 54.0, Some(58.7), CannotBeMade),
            // It excludes it, from both sides and however wide it is.
            (within, 80.0, Some(4.9), Differs),
            (within, 101.0, Some(4.0), Differs),
            (within, 20.0, Some(50.0), Differs),
            // Closed forms.
            (within, 84.9, None, Differs),
            (Check::Relative(0.1), 82.0, None, Holds),
            (Check::Relative(0.1), 80.0, None, Differs),
            // Bounds.
            (Check::AtLeast(95.0), 95.0, None, Holds),
            (Check::AtLeast(95.0), 88.0, Some(7.0), Holds),
            (Check::AtLeast(95.0), 88.0, Some(6.9), Differs),
            (Check::AtLeast(95.0), 84.0, Some(11.0), CannotBeMade),
            (Check::AtMost(94.0), 95.0, None, Differs),
            (Check::AtMost(94.0), 90.0, Some(99.0), Holds),
            // Nothing was measured.
            (within, f64::NAN, None, CannotBeMade),
            (Check::AtLeast(0.0), f64::NAN, None, CannotBeMade),
        ] {
            let found = judge(check.accepted(90.0), mean, half);
            assert_eq!(found, verdict, "{check:?} {mean} ± {half:?}");
        }
    }

    #[test]
    fn an_order_holds_by_its_mean_and_differs_by_its_interval() {
        for (margin, mean, half, verdict) in [
            (0.0, 0.0, Some(0.0), Verdict::Holds),
            (0.0, 0.2, Some(9.0), Verdict::Holds),
            (0.0, -0.2, Some(0.3), Verdict::CannotBeMade),
            (0.0, -0.4, Some(0.3), Verdict::Differs),
            (15.0, 14.0, Some(0.5), Verdict::Differs),
            (0.0, f64::NAN, None, Verdict::CannotBeMade),
        ] {
            assert_eq!(
                judge_order(margin, mean, half),
                verdict,
                "{mean} ± {half:?}"
            );
        }
    }

    #[test]
    fn a_value_that_is_not_printed_agrees_with_nothing() {
        let accepted = Check::Within(1e9).accepted(f64::NAN);
        assert_ne!(judge(accepted, 1.0, Some(2.0)), Verdict::Holds);
    }
}
