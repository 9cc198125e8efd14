//! When an attempt is expected to end, for schedulers and people. Pure.

use shed_core::estimate::progress::remaining_time;
use shed_core::plan::JobReport;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, TaskSnapshot};
use shed_core::time::{Instant, Span};

/// The expected end of a running attempt: the planner's estimate where the report has one, else by the rate of the
/// attempt's progress, else by the mean time of the job's attempts. Absent while nothing is known, and once that mean
/// time is over.
pub fn of(
    report: &JobReport,
    task: &TaskSnapshot,
    attempt: &AttemptSnapshot,
    now: Instant,
) -> Option<Instant> {
    if !attempt.lives() || attempt.state != AttemptState::Running {
        return None;
    }
    let mut ends = report.ends.iter();
    let reported = ends.find(|end| (end.task, end.attempt) == (task.index, attempt.number));
    if let Some(end) = reported {
        return Some(end.at.max(now));
    }
    let started = attempt.started?;
    let after = |from: Instant, seconds: f64| from.plus(Span::from_seconds_f64(seconds));
    match attempt.progress {
        Some(progress) => {
            let worked = progress.last_at.since(started).seconds();
            let left = remaining_time(progress.last, attempt.start_progress, worked)?;
            Some(after(progress.last_at, left).max(now))
        }
        None => {
            let whole = report.attempt_slot_seconds?;
            let end = after(started, whole * (1.0 - attempt.start_progress));
            (end > now).then_some(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use shed_core::fixtures::{AttemptBuilder, at, attempt, job};
    use shed_core::ids::{AttemptNumber, TaskIndex};
    use shed_core::plan::ExpectedEnd;

    use super::*;

    fn end(attempt: AttemptBuilder, change: impl FnOnce(&mut JobReport)) -> Option<Instant> {
        let job = job("a").task(0, [attempt]).build();
        let mut report = crate::fixtures::report("a");
        change(&mut report);
        of(&report, &job.tasks[0], &job.tasks[0].attempts[0], at(50.0))
    }

    #[test]
    fn the_planner_knows_best_then_the_rate_then_the_mean() {
        // Started at 1 s.
        let half = || attempt(0).launched(0.0).progress(0.5, 41.0);
        assert_eq!(end(half(), |_| {}), Some(at(81.0)));
        let planned = |report: &mut JobReport| {
            report.ends = vec![ExpectedEnd {
                task: TaskIndex(0),
                attempt: AttemptNumber(0),
                at: at(70.0),
            }];
        };
        assert_eq!(end(half(), planned), Some(at(70.0)));
        let mean =
            |seconds| move |report: &mut JobReport| report.attempt_slot_seconds = Some(seconds);
        let silent = || attempt(0).launched(0.0);
        assert_eq!(end(silent(), mean(60.0)), Some(at(61.0)));
        assert_eq!(end(silent(), mean(40.0)), None, "it is over");
        assert_eq!(end(silent(), |_| {}), None);
        assert_eq!(end(half().pending(), |_| {}), None);
    }
}
