//! The reports of one attempt over time, with the rules that a lying or restarted task
//! cannot break: progress never goes back, a refusal changes nothing but a counter.

use std::collections::BTreeMap;

use crate::report::{Report, ReportError};

/// The label under which a report below the last good one is counted.
pub const BACKWARDS: &str = "backwards";

/// The change by one observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// The report is now the last good one.
    Accepted,
    /// The task has not reported: this says nothing about its progress.
    Nothing,
    /// The report was ignored and counted under this label.
    Refused(&'static str),
}

/// The reports of one attempt. Times are the caller's, in milliseconds.
///
/// A value counts from when it was written, not from when it was polled: a task that reports where it
/// is once a minute is not slower when it is asked at the end of that minute.
#[derive(Clone, PartialEq)]
pub struct Series {
    start: f64,
    first: Option<(i64, f64)>,
    last: Option<(i64, f64)>,
    advanced: Option<(i64, f64)>,
    /// The longest time from one rise to the next.
    step_ms: Option<i64>,
    checkpoint: Option<(f64, String)>,
    refused: BTreeMap<&'static str, u64>,
}

impl Series {
    /// `start` is the progress of the point from which the attempt was to resume, 0 if none.
    /// A report below it is `backwards`: the work up to there is known to be done.
    pub fn new(start: f64) -> Self {
        let start = if start.is_nan() {
            0.0
        } else {
            start.clamp(0.0, 1.0)
        };
        Series {
            start,
            first: None,
            last: None,
            advanced: None,
            step_ms: None,
            checkpoint: None,
            refused: BTreeMap::new(),
        }
    }

    /// Takes in the answer to one poll. A poll without an answer is not an observation.
    pub fn observe(
        &mut self,
        now_ms: i64,
        answer: Result<Option<Report>, ReportError>,
    ) -> Observed {
        let report = match answer {
            Ok(Some(report)) => report,
            Ok(None) => return Observed::Nothing,
            Err(error) => return self.refuse(error.label()),
        };
        let progress = report.progress();
        if progress < self.progress() {
            return self.refuse(BACKWARDS);
        }
        // A clock that was set back must not turn a rate negative.
        let now_ms = self.last.map_or(now_ms, |(last_ms, _)| last_ms.max(now_ms));
        if self.first.is_none() || progress > self.progress() {
            self.rise(written_ms(now_ms, &report), progress);
        }
        self.last = Some((now_ms, progress));
        // A report without a checkpoint leaves the older one valid: its progress stays with it.
        if let Some(checkpoint) = report.checkpoint() {
            self.checkpoint = Some((progress, checkpoint.to_owned()));
        }
        Observed::Accepted
    }

    fn rise(&mut self, written_ms: i64, progress: f64) {
        let mut at_ms = written_ms;
        if let Some((before_ms, _)) = self.advanced {
            at_ms = at_ms.max(before_ms);
            let step_ms = at_ms.saturating_sub(before_ms);
            self.step_ms = Some(self.step_ms.map_or(step_ms, |longest| longest.max(step_ms)));
        }
        self.first.get_or_insert((at_ms, progress));
        self.advanced = Some((at_ms, progress));
    }

    fn refuse(&mut self, label: &'static str) -> Observed {
        let count = self.refused.entry(label).or_default();
        *count = count.saturating_add(1);
        Observed::Refused(label)
    }

    /// The progress that the attempt started with.
    pub fn start(&self) -> f64 {
        self.start
    }

    /// The best known progress: the last accepted one, before that the start.
    pub fn progress(&self) -> f64 {
        self.last.map_or(self.start, |(_, progress)| progress)
    }

    /// The first accepted report. `None` is unknown, not zero.
    pub fn first(&self) -> Option<(i64, f64)> {
        self.first
    }

    /// The last accepted report; one that repeats the progress counts.
    pub fn last(&self) -> Option<(i64, f64)> {
        self.last
    }

    /// Until when the last progress is all that was done, for a rate: since it was written, unless
    /// the next rise is overdue, which is then as slow as it has come to be. A rise is expected after
    /// the longest time that one took so far; the first took its time since `begun_ms`.
    pub fn rated_until(&self, begun_ms: Option<i64>) -> Option<i64> {
        let ((first_ms, _), (last_ms, _), (advanced_ms, _)) =
            (self.first?, self.last?, self.advanced?);
        let first_step_ms = || first_ms.saturating_sub(begun_ms.unwrap_or(first_ms));
        let step_ms = self.step_ms.unwrap_or_else(first_step_ms).max(0);
        Some(advanced_ms.max(last_ms.saturating_sub(step_ms)))
    }

    /// The report that last brought a new progress. A file whose writer has died is still read:
    /// then `last` goes on in time and this does not.
    pub fn advanced(&self) -> Option<(i64, f64)> {
        self.advanced
    }

    /// The last accepted checkpoint and the progress that came in the same report.
    pub fn checkpoint(&self) -> Option<(f64, &str)> {
        self.checkpoint
            .as_ref()
            .map(|(progress, text)| (*progress, text.as_str()))
    }

    /// How many reports were ignored, by reason.
    pub fn refused(&self) -> &BTreeMap<&'static str, u64> {
        &self.refused
    }
}

fn written_ms(now_ms: i64, report: &Report) -> i64 {
    now_ms.saturating_sub(i64::try_from(report.age_ms()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::parse_report;
    use proptest::prelude::*;

    fn observe(series: &mut Series, now_ms: i64, content: &str) -> Observed {
        series.observe(now_ms, parse_report(content.as_bytes()))
    }

    #[test]
    fn silence_is_unknown_and_not_zero() {
        let mut series = Series::new(0.4);
        assert_eq!(observe(&mut series, 5, ""), Observed::Nothing);
        assert_eq!((series.first(), series.last()), (None, None));
        assert_eq!(series.progress(), 0.4);
        assert!(series.refused().is_empty());
    }

    #[test]
    fn first_last_and_advanced_follow_the_reports() {
        let mut series = Series::new(0.0);
        observe(&mut series, 10, "0.1");
        observe(&mut series, 20, "0.3");
        assert_eq!(observe(&mut series, 30, "0.3"), Observed::Accepted);
        assert_eq!(series.first(), Some((10, 0.1)));
        assert_eq!(series.last(), Some((30, 0.3)));
        assert_eq!(series.advanced(), Some((20, 0.3)));
    }

    fn observe_old(series: &mut Series, now_ms: i64, age_ms: u64, content: &str) {
        let report = parse_report(content.as_bytes()).unwrap();
        series.observe(
            now_ms,
            Ok(report.map(|report| report.written_before(age_ms))),
        );
    }

    #[test]
    fn a_value_counts_from_when_it_was_written() {
        let mut series = Series::new(0.0);
        observe_old(&mut series, 1000, 300, "0");
        observe_old(&mut series, 1950, 250, "0.1");
        assert_eq!(series.first(), Some((700, 0.0)));
        assert_eq!(series.advanced(), Some((1700, 0.1)));
        assert_eq!(series.last(), Some((1950, 0.1)));
        observe_old(&mut series, 2000, 9_000, "0.2");
        assert_eq!(series.advanced(), Some((1700, 0.2)), "dates never go back");
        observe_old(&mut series, 2100, u64::MAX, "0.3");
        assert_eq!(series.advanced(), Some((1700, 0.3)));
    }

    #[test]
    fn only_an_overdue_rise_makes_an_attempt_slow() {
        let mut series = Series::new(0.0);
        assert_eq!(series.rated_until(Some(0)), None);
        observe(&mut series, 60, "0.1");
        observe(&mut series, 110, "0.1");
        assert_eq!(
            series.rated_until(Some(0)),
            Some(60),
            "as long as the first took"
        );
        assert_eq!(
            series.rated_until(None),
            Some(110),
            "unless that is unknown"
        );
        observe(&mut series, 130, "0.1");
        assert_eq!(series.rated_until(Some(0)), Some(70));
        observe(&mut series, 150, "0.2");
        observe(&mut series, 200, "0.3");
        observe(&mut series, 285, "0.3");
        assert_eq!(series.rated_until(Some(0)), Some(200), "the longest was 90");
        observe(&mut series, 300, "0.3");
        assert_eq!(series.rated_until(Some(0)), Some(210));
    }

    #[test]
    fn progress_never_goes_back_within_an_attempt() {
        let mut series = Series::new(0.0);
        observe(&mut series, 10, r#"{"progress":0.5,"checkpoint":"five"}"#);
        let answer = observe(&mut series, 20, r#"{"progress":0.2,"checkpoint":"two"}"#);
        assert_eq!(answer, Observed::Refused(BACKWARDS));
        assert_eq!(series.last(), Some((10, 0.5)));
        assert_eq!(series.checkpoint(), Some((0.5, "five")));
        assert_eq!(series.refused().get(BACKWARDS), Some(&1));
    }

    #[test]
    fn a_resumed_attempt_does_not_fall_below_its_start() {
        let mut series = Series::new(0.4);
        assert_eq!(
            observe(&mut series, 10, "0.1"),
            Observed::Refused(BACKWARDS)
        );
        assert_eq!(series.first(), None);
        assert_eq!(observe(&mut series, 20, "0.4"), Observed::Accepted);
        assert_eq!(series.first(), Some((20, 0.4)));
    }

    #[test]
    fn a_refusal_keeps_the_last_good_value_and_is_counted() {
        let mut series = Series::new(0.0);
        observe(&mut series, 10, r#"{"progress":0.5,"checkpoint":"five"}"#);
        for content in ["NaN", "7", "-1", "rubbish"] {
            observe(&mut series, 20, content);
        }
        assert_eq!(series.last(), Some((10, 0.5)));
        assert_eq!(series.checkpoint(), Some((0.5, "five")));
        let refused: Vec<_> = series.refused().iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(
            refused,
            [("not_a_number", 1), ("not_finite", 1), ("out_of_range", 2)]
        );
    }

    #[test]
    fn a_checkpoint_is_replaced_together_with_its_progress() {
        let mut series = Series::new(0.0);
        observe(&mut series, 10, r#"{"progress":0.5,"checkpoint":"five"}"#);
        observe(&mut series, 20, "0.6");
        assert_eq!(series.checkpoint(), Some((0.5, "five")));
        observe(&mut series, 30, r#"{"progress":0.7,"checkpoint":"seven"}"#);
        assert_eq!(series.checkpoint(), Some((0.7, "seven")));
        observe(&mut series, 40, r#"{"progress":0.7,"checkpoint":"again"}"#);
        assert_eq!(series.checkpoint(), Some((0.7, "again")));
    }

    #[test]
    fn time_never_goes_back() {
        let mut series = Series::new(0.0);
        observe(&mut series, 100, "0.1");
        observe(&mut series, 50, "0.2");
        assert_eq!(series.last(), Some((100, 0.2)));
    }

    #[test]
    fn a_start_out_of_range_is_brought_into_it() {
        assert_eq!(Series::new(f64::NAN).start(), 0.0);
        assert_eq!(Series::new(-1.0).start(), 0.0);
        assert_eq!(Series::new(7.0).start(), 1.0);
    }

    proptest! {
        #[test]
        fn progress_and_time_only_rise(
            start in 0.0..1.0f64, reports in prop::collection::vec((any::<i64>(), -0.5..1.5f64), 0..30),
        ) {
            let mut series = Series::new(start);
            let mut before = series.clone();
            for (now_ms, progress) in reports {
                series.observe(now_ms, parse_report(progress.to_string().as_bytes()));
                prop_assert!(series.progress() >= before.progress());
                prop_assert!(series.last() >= before.last());
                before = series.clone();
            }
        }
    }
}
