//! Reports as noisy observations of an attempt's time: ln T̂ = ln T + error, where ln T varies around that of the job.
//!
//! Most attempts of a job take about as long as each other, so a report that says otherwise is doubted as far as reports
//! err. A time that lies far out is that of a straggler, and counts as it was reported.

use super::JobEstimate;
use crate::estimate::sample::median;
use crate::round::estimates::{REPORTS_MIN, TaskEstimate};
use crate::snapshot::JobSnapshot;

/// The weight of the usual error of reports against those that the job has shown, in attempts.
const ERROR_WEIGHT: f64 = 8.0;

/// Bounds of the error that a job shows.
const ERROR_MIN: f64 = 0.01;
const ERROR_MAX: f64 = 1.0;

/// An attempt shows the error of its first report once it has done this share of the task more.
const PASSED: f64 = 0.1;

/// A time counts as reported if it lies more than this many standard deviations from the job's.
const OUTLIER: f64 = 3.0;

/// The standard deviation of a normal distribution over its median absolute deviation.
const DEVIATION_OF_MEDIAN: f64 = 1.482_602_218_505_602;

/// Draws each reported time towards the job's, and sets how much the prediction may err.
pub(super) fn weigh(job: &JobSnapshot, estimate: &mut JobEstimate, usual: f64) {
    let (error, of_job) = error(job, usual);
    estimate.report_error = of_job;
    let center = Center::of(estimate, error);
    for attempt in estimate
        .tasks
        .iter_mut()
        .flat_map(|task| &mut task.attempts)
    {
        let (Some(total), Some(remaining)) = (attempt.total, attempt.remaining) else {
            continue;
        };
        attempt.deviation = Some(error * remaining);
        let own = 1.0 - attempt.start_progress;
        let left = remaining / (total * own);
        let Some(center) = &center else { continue };
        let variance = (error * left).powi(2);
        let distance = libm::log(total) - center.ln_time;
        let whole = center.variance + variance;
        if distance * distance > OUTLIER * OUTLIER * whole || variance <= 0.0 {
            continue;
        }
        let weight = center.variance / whole;
        let drawn = total * libm::exp((weight - 1.0) * distance);
        let elapsed = total * own - remaining;
        attempt.total = Some(drawn);
        attempt.remaining = Some((drawn * own - elapsed).max(0.0));
        attempt.deviation = Some(drawn * own * libm::sqrt(weight * variance));
    }
}

/// The usual time of the job's attempts, and how much it varies.
struct Center {
    ln_time: f64,
    variance: f64,
}

impl Center {
    /// By medians, which stragglers do not move; none with too few times.
    fn of(estimate: &JobEstimate, error: f64) -> Option<Self> {
        let of_task = |task: &TaskEstimate| {
            let attempts = task.attempts.iter();
            let shown = attempts.filter_map(|attempt| {
                let (total, remaining) = (attempt.total?, attempt.remaining?);
                let own = total * (1.0 - attempt.start_progress);
                Some((libm::log(total), error * remaining / own))
            });
            // It stays while the slower attempts of the task are stopped.
            shown.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let shown = estimate.tasks.iter().filter_map(of_task);
        let ended = estimate
            .ended
            .iter()
            .filter(|time| **time > 0.0)
            .map(|time| (libm::log(*time), 0.0));
        let times: Vec<(f64, f64)> = shown.chain(ended).collect();
        if times.len() < REPORTS_MIN {
            return None;
        }
        let ln_time = median(times.iter().map(|(time, _)| *time).collect())?;
        let apart = median(
            times
                .iter()
                .map(|(time, _)| (time - ln_time).abs())
                .collect(),
        )?;
        let noise = median(times.iter().map(|(_, error)| error * error).collect())?;
        let seen = (DEVIATION_OF_MEDIAN * apart).powi(2);
        Some(Self {
            ln_time,
            variance: (seen - noise).max(0.0),
        })
    }
}

/// The standard deviation of a predicted remaining time as a share of it, from the difference between the rates that
/// attempts had at their first report and have now: with the usual one as its prior, and of the job alone. It is a
/// median, so a few attempts whose rates have really changed do not count.
fn error(job: &JobSnapshot, usual: f64) -> (f64, Option<f64>) {
    let mut errors = Vec::new();
    for attempt in job.tasks.iter().flat_map(|task| task.live()) {
        let (Some(progress), Some(started)) = (attempt.progress, attempt.started) else {
            continue;
        };
        let whole = 1.0 - attempt.start_progress;
        let first = (progress.first - attempt.start_progress) / whole;
        let last = (progress.last - attempt.start_progress) / whole;
        let rate_first = first / progress.first_at.since(started).seconds();
        let rate_last = last / progress.last_at.since(started).seconds();
        let error = libm::log(rate_first / rate_last) / (last - first);
        if last - first >= PASSED && error.is_finite() {
            errors.push(error.abs());
        }
    }
    let seen = errors.len() as f64;
    let shown = median(errors).filter(|_| seen >= REPORTS_MIN as f64);
    let Some(shown) = shown else {
        return (usual, None);
    };
    let of_job = (DEVIATION_OF_MEDIAN * shown).clamp(ERROR_MIN, ERROR_MAX);
    let ln_error = ERROR_WEIGHT * libm::log(usual) + seen * libm::log(of_job);
    (libm::exp(ln_error / (ERROR_WEIGHT + seen)), Some(of_job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{AttemptBuilder, at, attempt, job};
    use crate::round::AttemptEstimate;

    /// Launched at −1 s, so started at 0 s: the reported progress at 10 s and at 20 s.
    fn reports(early: f64, now: f64) -> AttemptBuilder {
        let attempt = attempt(0).launched(-1.0).progress(now, 20.0);
        attempt.first_report(early, 10.0)
    }

    /// The attempts of a job at 20 s, one per task, with the usual error of reports 0.1, and the error that it shows.
    fn weighed(
        all: impl IntoIterator<Item = AttemptBuilder>,
    ) -> (Vec<AttemptEstimate>, Option<f64>) {
        let tasks = all.into_iter().zip(0..);
        let job = tasks.fold(job("a").tasks(20), |job, (attempt, index)| {
            job.task(index, [attempt])
        });
        let job = job.build();
        let mut estimate = JobEstimate::new(at(20.0), &job);
        for task in &job.tasks {
            estimate.note_running(at(20.0), 1.0, &job, task);
        }
        weigh(&job, &mut estimate, 0.1);
        let attempts = estimate.tasks.iter().flat_map(|task| &task.attempts);
        (attempts.cloned().collect(), estimate.report_error)
    }

    #[test]
    fn a_job_shows_how_far_its_reports_err() {
        // Each first report says a fifth of the task. At 20 s the same rate would have made two fifths of it.
        let steady = || reports(0.2, 0.4);
        assert_eq!(weighed([steady(), steady()]).1, None);
        assert_eq!(weighed([steady(), steady(), steady()]).1, Some(ERROR_MIN));
        // The rates differ by a tenth, and the attempts have done less than a fifth of the task in between.
        let wrong = || reports(0.22, 0.4);
        let (attempts, error) = weighed([wrong(), wrong(), wrong()]);
        let expected = DEVIATION_OF_MEDIAN * libm::log(1.1) / 0.18;
        assert!((error.unwrap() - expected).abs() < 1e-9, "{error:?}");
        // The usual error counts as eight attempts.
        let mixed = (8.0 * libm::log(0.1) + 3.0 * libm::log(expected)) / 11.0;
        let deviation = attempts[0].deviation.unwrap();
        assert!(
            (deviation / 30.0 - libm::exp(mixed)).abs() < 0.2,
            "{deviation}"
        );
    }

    #[test]
    fn a_time_near_the_jobs_is_drawn_to_it_and_a_stragglers_is_not() {
        let usual = (0..9).map(|_| reports(0.2, 0.4));
        let others = [reports(0.19, 0.38), reports(0.05, 0.1)];
        let (attempts, _) = weighed(usual.chain(others));
        let total = |index: usize| attempts[index].total.unwrap();
        assert!((total(0) - 50.0).abs() < 1e-6, "{}", total(0));
        // It predicts 52.6 s, and reports err by more than that.
        assert!((total(9) - 50.0).abs() < 0.1, "{}", total(9));
        assert!(attempts[9].remaining.unwrap() < 30.1);
        assert!((total(10) - 200.0).abs() < 1e-6, "{}", total(10));
    }

    #[test]
    fn two_times_tell_nothing_about_a_third() {
        let (attempts, _) = weighed([reports(0.2, 0.4), reports(0.19, 0.38)]);
        assert!((attempts[1].total.unwrap() - 20.0 / 0.38).abs() < 1e-6);
        // A tenth of what is left.
        let (deviation, left) = (attempts[1].deviation, attempts[1].remaining);
        assert!((deviation.unwrap() / left.unwrap() - 0.1).abs() < 1e-9);
    }
}
