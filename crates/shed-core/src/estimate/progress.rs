//! Estimates from an attempt's progress: its remaining time, the shape β that fits it, whether it is a straggler,
//! where a clone should resume, and when the next optimization is due.

/// β when an attempt is so fast that [`beta_from_remaining`] has no finite answer.
pub const BETA_MAX: f64 = 1000.0;

/// The remaining time of an attempt by linear extrapolation, in the unit of `elapsed`.
///
/// `phi` is its progress now, `phi_start` the progress it resumed from (0 for one that started over), `elapsed` the
/// time since it started to process. `(1−φ)·elapsed / (φ−φ_start)`. Shed+ does not define the estimator; LASER uses
/// the same rule. `None` if nothing was done yet.
pub fn remaining_time(phi: f64, phi_start: f64, elapsed: f64) -> Option<f64> {
    if phi >= 1.0 {
        return Some(0.0);
    }
    let done = phi - phi_start;
    (done > 0.0 && elapsed > 0.0).then(|| (1.0 - phi) * elapsed / done)
}

/// Shed+ (14): the β for which the mean of Pareto((1−φ)·t_min, β), the model of the remaining time, is `t_rem`; above
/// 1, small for a slow attempt.
///
/// `None` when φ ≥ 1, because a finished task needs none. `beta_max` when the attempt is at least as fast as t_min
/// allows (the formula gives ∞ or a negative), and as an upper bound. An unknown `t_rem` gives 1, the limit for t_rem
/// → ∞. If a job's prior β is known, use that with [`crate::estimate::pareto::ln_miss_silent`] instead.
pub fn beta_from_remaining(t_rem: Option<f64>, phi: f64, t_min: f64, beta_max: f64) -> Option<f64> {
    if phi >= 1.0 {
        return None;
    }
    let Some(t_rem) = t_rem.filter(|t_rem| t_rem.is_finite()) else {
        return Some(1.0);
    };
    let surplus = t_rem - (1.0 - phi) * t_min;
    if surplus > 0.0 {
        Some((t_rem / surplus).min(beta_max))
    } else {
        Some(beta_max)
    }
}

/// Whether an attempt is a straggler: its remaining time strictly exceeds the time left. An attempt with an unknown
/// remaining time is not a straggler.
pub fn is_straggler(t_rem: Option<f64>, slack: f64) -> bool {
    t_rem.is_some_and(|t_rem| t_rem > slack)
}

/// The processed input of one attempt, for eqs. (15)–(16) of Shed+: offsets in bytes (or any unit
/// of work), instants in one unit of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessedRange {
    /// Where the attempt's input starts.
    pub b_start: f64,
    /// The amount processed since `b_start`.
    pub b_proc: f64,
    /// Where the attempt's input ends.
    pub b_end: f64,
    /// When the attempt was launched.
    pub t_launch: f64,
    /// When the attempt started to process.
    pub t_process: f64,
    /// When the attempt's first progress report came.
    pub t_first_report: f64,
    /// Now.
    pub t_now: f64,
}

/// The time over which the processing rate is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateReading {
    /// Shed (14): since processing started.
    Shed,
    /// Shed+ (15): since the first progress report.
    #[default]
    ShedPlus,
}

/// Where the clones of an attempt start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResumeOffset {
    /// The amount that the original will process while the clones launch.
    pub b_extra: f64,
    /// Where the clones start, at most `b_end`.
    pub b_new: f64,
    /// Whether any work remains for the clones: if not, do not launch (or stop) them.
    pub launch: bool,
}

/// Shed+ (15), (16): the clones take over where the original will be once they have started. That is its rate times
/// the launch time it needed itself, ahead of its processed amount.
///
/// If no time has passed since the rate's origin, the extra is 0.
pub fn resume_offset(range: &ProcessedRange, reading: RateReading) -> ResumeOffset {
    let since = match reading {
        RateReading::Shed => range.t_now - range.t_process,
        RateReading::ShedPlus => range.t_now - range.t_first_report,
    };
    let launch_time = (range.t_first_report - range.t_launch).max(0.0);
    let b_extra = if since > 0.0 {
        range.b_proc / since * launch_time
    } else {
        0.0
    };
    let b_new = range.b_start + range.b_proc + b_extra;
    ResumeOffset {
        b_extra,
        b_new: b_new.min(range.b_end),
        launch: b_new < range.b_end,
    }
}

/// Shed+ (17): the time from one optimization to the next, `(D − t_avg)·θ' + t_avg`, where
/// `t_avg` is the mean launch overhead; at least `t_avg` while D ≥ t_avg. With several jobs the
/// earliest counts.
pub fn optimization_interval(deadline: f64, t_avg: f64, theta_prime: f64) -> f64 {
    (deadline - t_avg) * theta_prime + t_avg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_resumed_is_judged_by_what_it_did_itself() {
        assert_eq!(remaining_time(0.5, 0.0, 100.0), Some(100.0));
        assert_eq!(remaining_time(0.5, 0.25, 100.0), Some(200.0));
    }

    #[test]
    fn without_progress_the_remaining_time_is_unknown() {
        assert_eq!(remaining_time(0.0, 0.0, 100.0), None);
        assert_eq!(remaining_time(0.25, 0.25, 100.0), None);
        assert_eq!(remaining_time(0.5, 0.0, 0.0), None);
        assert_eq!(remaining_time(1.0, 0.0, 0.0), Some(0.0));
    }

    #[test]
    fn the_fitted_beta_gives_the_remaining_time_as_mean() {
        let (phi, t_min, t_rem) = (0.4, 120.0, 300.0);
        let beta = beta_from_remaining(Some(t_rem), phi, t_min, BETA_MAX).unwrap();
        let mean = (1.0 - phi) * t_min * beta / (beta - 1.0);
        assert!((mean - t_rem).abs() < 1e-9);
    }

    #[test]
    fn a_steady_attempt_keeps_its_beta_while_it_advances() {
        let at = |phi: f64| {
            let t_rem = remaining_time(phi, 0.0, 400.0 * phi);
            beta_from_remaining(t_rem, phi, 120.0, BETA_MAX).unwrap()
        };
        assert!((at(0.1) - at(0.9)).abs() < 1e-9);
    }

    #[test]
    fn an_attempt_faster_than_the_least_time_has_the_largest_beta() {
        assert_eq!(beta_from_remaining(Some(10.0), 0.5, 120.0, 7.0), Some(7.0));
        assert_eq!(beta_from_remaining(Some(60.01), 0.5, 120.0, 7.0), Some(7.0));
    }

    #[test]
    fn an_unknown_remaining_time_is_no_straggler() {
        assert!(!is_straggler(None, 1.0));
        assert!(!is_straggler(Some(150.0), 150.0));
        assert!(is_straggler(Some(150.1), 150.0));
    }

    #[test]
    fn clones_are_not_launched_when_the_original_ends_meanwhile() {
        let range = ProcessedRange {
            b_start: 100.0,
            b_proc: 90.0,
            b_end: 200.0,
            t_launch: 0.0,
            t_process: 8.0,
            t_first_report: 10.0,
            t_now: 40.0,
        };
        let late = resume_offset(&range, RateReading::ShedPlus);
        assert_eq!(
            (late.b_extra, late.b_new, late.launch),
            (30.0, 200.0, false)
        );
        let early = resume_offset(
            &ProcessedRange {
                b_proc: 30.0,
                ..range
            },
            RateReading::ShedPlus,
        );
        assert_eq!(
            (early.b_extra, early.b_new, early.launch),
            (10.0, 140.0, true)
        );
    }

    #[test]
    fn clones_resume_where_the_original_will_be_when_they_start() {
        let range = ProcessedRange {
            b_start: 100.0,
            b_proc: 30.0,
            b_end: 200.0,
            t_launch: 2.0,
            t_process: 8.0,
            t_first_report: 10.0,
            t_now: 40.0,
        };
        // A launch of 8 s at a rate of 30 in 30 s, or in the 32 s since processing started.
        assert_eq!(resume_offset(&range, RateReading::ShedPlus).b_extra, 8.0);
        assert_eq!(resume_offset(&range, RateReading::Shed).b_extra, 7.5);
        let just_reported = ProcessedRange {
            t_now: 10.0,
            ..range
        };
        let offset = resume_offset(&just_reported, RateReading::ShedPlus);
        assert_eq!((offset.b_new, offset.launch), (130.0, true));
    }

    #[test]
    fn where_nothing_would_be_left_no_clone_is_launched() {
        let range = ProcessedRange {
            b_start: 100.0,
            b_proc: 75.0,
            b_end: 200.0,
            t_launch: 0.0,
            t_process: 8.0,
            t_first_report: 10.0,
            t_now: 40.0,
        };
        let offset = resume_offset(&range, RateReading::ShedPlus);
        assert_eq!((offset.b_new, offset.launch), (200.0, false));
    }

    #[test]
    fn the_papers_deadlines_give_their_known_intervals() {
        let pairs = [
            (350.0, 74.5),
            (460.0, 80.0),
            (500.0, 82.0),
            (560.0, 85.0),
            (620.0, 88.0),
        ];
        for (deadline, theta) in pairs {
            assert!((optimization_interval(deadline, 60.0, 0.05) - theta).abs() < 1e-12);
        }
    }
}
