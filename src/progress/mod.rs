//! Polls running attempts for their progress, as a probe does: pulled, bounded, never trusted. The
//! progress of a silent attempt is unknown, not zero. A refused report keeps the last good value
//! and is counted.

mod launches;
#[cfg(test)]
mod load_test;
mod period;
mod poller;
mod request;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use shed_agent::{Observed, Report, ReportError, Series, Units};
use shed_core::snapshot::{Progress, ResumePoint};
use shed_core::time::{Instant, Span};

use crate::job::facts::Reported;
use crate::metrics::Metrics;
use crate::polling::{self, Key, Table};
use launches::Launches;
pub(crate) use period::jittered;
use poller::ProgressRules;
pub use poller::run;
pub(crate) use request::{AgentQuestion, HttpClient, Ordered, ask_agent, client, order};

/// Unanswered polls in a row after which an attempt counts as unreachable.
const UNANSWERED_MAX: u32 = 3;
/// Reports of attempts, by job and by pod uid.
pub struct ProgressTable {
    entries: Mutex<Table<ProgressRules>>,
    launches: Mutex<Launches>,
    /// Jobs whose attempts have answered since the planner last asked.
    touched: Mutex<HashSet<Arc<str>>>,
    /// Start of polling.
    begun: Instant,
}

struct Entry {
    /// Namespace of its job.
    namespace: Arc<str>,
    series: Series,
    /// The units in the last good report.
    units: Option<Units>,
    launched: Option<Instant>,
    next: Instant,
    /// When it was last polled.
    asked: Instant,
    /// End of the attempt's segment, as acknowledged by the attempt.
    reported: Option<u64>,
    unanswered: u32,
    /// Number of its polls.
    asked_times: u32,
}

/// One answer, judged.
pub enum Answer {
    /// The attempt answered; shed may still refuse the answer.
    Said(Result<Option<Report>, ReportError>),
    /// No usable answer.
    Nothing,
}

impl ProgressTable {
    /// For attempts that are polled from `begun` on.
    pub fn new(begun: Instant) -> Self {
        Self {
            entries: Mutex::default(),
            launches: Mutex::default(),
            touched: Mutex::default(),
            begun,
        }
    }

    /// The reports of a job's attempts by pod uid.
    pub fn reports_of(&self, job: &str) -> BTreeMap<String, Reported> {
        let entries = self.lock();
        let own = entries.of(job);
        own.filter_map(|(uid, entry)| Some((uid.to_owned(), entry.reported()?)))
            .collect()
    }

    /// The jobs whose attempts have answered since the last call.
    pub fn take_touched(&self) -> HashSet<Arc<str>> {
        std::mem::take(&mut *self.touched.lock())
    }

    /// The number of polled attempts of a job that do not answer, and the number of polled
    /// attempts.
    pub fn unreachable(&self, job: &str) -> (usize, usize) {
        let entries = self.lock();
        entries.of(job).fold((0, 0), |(silent, asked), (_, entry)| {
            let is_silent = entry.unanswered >= UNANSWERED_MAX;
            (silent + usize::from(is_silent), asked + 1)
        })
    }

    /// The time from launch to first report to expect in a namespace without a launch so far.
    /// Absent while too few other namespaces have samples.
    pub fn launch_overhead(&self) -> Option<Span> {
        self.launches.lock().usual()
    }

    /// Mean time from launch to first report of each namespace that has shown it.
    pub fn launch_overheads(&self) -> BTreeMap<Arc<str>, Span> {
        self.launches.lock().means()
    }

    fn lock(&self) -> MutexGuard<'_, Table<ProgressRules>> {
        polling::lock(&self.entries)
    }

    /// Takes in an answer; true if something new is known.
    fn take(&self, attempt: &Key, answer: Answer, now: Instant, metrics: &Metrics) -> bool {
        let taken = self.lock().end_poll(attempt, |_, entry| {
            self.observe(entry, answer, now, metrics)
        });
        self.touched.lock().insert(Arc::clone(&attempt.job));
        taken.unwrap_or(false)
    }

    fn observe(&self, entry: &mut Entry, answer: Answer, now: Instant, metrics: &Metrics) -> bool {
        let said = match answer {
            Answer::Said(said) => said,
            Answer::Nothing => {
                entry.unanswered += 1;
                metrics.progress.failures.inc();
                return false;
            }
        };
        entry.unanswered = 0;
        let was_silent = entry.series.first().is_none();
        let units = said.as_ref().ok().and_then(Option::as_ref);
        let units = units.and_then(Report::units);
        let observed = entry.series.observe(now.0, said);
        if observed == Observed::Accepted {
            entry.units = units;
        }
        if let Observed::Refused(reason) = &observed {
            metrics.progress.refused.with([reason]).inc();
        }
        if was_silent && let Some(progress) = entry.progress() {
            self.measure(entry, progress.first_at, now);
        }
        matches!(observed, Observed::Accepted)
    }

    /// Records that the attempt has acknowledged the end of its segment.
    fn is_reported(&self, attempt: &Key, ends_at: Option<u64>) {
        self.lock()
            .change(attempt, |_, entry| entry.reported = ends_at);
    }

    fn measure(&self, entry: &Entry, first_report: Instant, now: Instant) {
        // An attempt that was launched before this process may have reported to an earlier process.
        // Its age at this process's first poll is not its launch overhead, and would make clones
        // look too late to launch.
        let launched = entry.launched.filter(|launched| *launched >= self.begun);
        if let Some(launched) = launched {
            let took = first_report.since(launched);
            self.launches.lock().note(&entry.namespace, took, now);
        }
    }
}

impl Entry {
    fn new(namespace: &str, start: f64, launched: Option<Instant>, now: Instant) -> Self {
        Self {
            namespace: namespace.into(),
            series: Series::new(start),
            units: None,
            launched,
            next: now,
            asked: Instant(0),
            reported: None,
            unanswered: 0,
            asked_times: 0,
        }
    }

    /// The remaining time of the attempt at its measured rate.
    fn remaining(&self) -> Option<Span> {
        let Progress {
            first_at,
            first,
            last_at,
            last,
        } = self.progress()?;
        let remaining = (1.0 - last) * last_at.since(first_at).seconds() / (last - first);
        (last > first && remaining.is_finite()).then(|| Span::from_seconds_f64(remaining))
    }

    /// The progress, never dated before its launch, whatever the date of a file.
    fn progress(&self) -> Option<Progress> {
        let (first_at, first) = self.series.first()?;
        let launched = self.launched.map(|launched| launched.0);
        let dated = |at: i64| Instant(launched.map_or(at, |launched| launched.max(at)));
        Some(Progress {
            first_at: dated(first_at),
            first,
            last_at: dated(self.series.rated_until(launched)?),
            last: self.series.progress(),
        })
    }

    fn reported(&self) -> Option<Reported> {
        let checkpoint = self
            .series
            .checkpoint()
            .map(|(progress, text)| ResumePoint {
                progress,
                checkpoint: text.into(),
            });
        Some(Reported {
            progress: self.progress()?,
            checkpoint,
            units: self.units,
        })
    }
}

#[cfg(test)]
impl ProgressTable {
    /// How often each attempt was polled.
    fn asked_times(&self) -> Vec<u32> {
        self.lock().all().map(|entry| entry.asked_times).collect()
    }

    /// The attempt answered so.
    pub fn answer_for_tests(&self, job: &str, pod_uid: &str, answers: &[(Instant, &str)]) {
        let mut entry = Entry::new("n", 0.0, None, Instant(i64::MAX));
        for (at, text) in answers {
            let report = shed_agent::parse_report(text.as_bytes());
            entry.units = report
                .as_ref()
                .ok()
                .and_then(|report| report.as_ref()?.units());
            entry.series.observe(at.0, report);
        }
        self.seed(&Key::for_tests(job, pod_uid), entry);
        self.touched.lock().insert(job.into());
    }

    fn seed(&self, attempt: &Key, entry: Entry) {
        let job = crate::fixtures::job("progress: {file: {}}");
        let rule = poller::AskedJob::of(&job, None).expect("it is polled");
        self.lock().seed(attempt, rule, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(job: &str, uid: &str) -> (ProgressTable, Key) {
        let table = ProgressTable::new(Instant(500));
        let key = Key::for_tests(job, uid);
        table.seed(&key, Entry::new("n", 0.0, Some(Instant(1000)), Instant(0)));
        (table, key)
    }

    fn said(content: &str) -> Answer {
        Answer::Said(shed_agent::parse_report(content.as_bytes()))
    }

    #[test]
    fn hostile_reports_are_counted_and_the_last_good_value_stays() {
        let ((table, pod), metrics) = (table("j", "p"), Metrics::new().unwrap());
        table.take(&pod, said("0.4"), Instant(4000), &metrics);
        for content in ["NaN", "-1", "7", "text", "0.1"] {
            table.take(&pod, said(content), Instant(5000), &metrics);
        }
        let reports = table.reports_of("j");
        assert!((reports["p"].progress.last - 0.4).abs() < 1e-12);
        assert!(
            metrics
                .page()
                .unwrap()
                .contains("shed_progress_reports_refused_total")
        );
    }

    #[test]
    fn silence_is_unknown_and_only_silence_of_all_is_unreachable() {
        let ((table, pod), metrics) = (table("j", "p"), Metrics::new().unwrap());
        for _ in 0..UNANSWERED_MAX {
            table.take(&pod, Answer::Nothing, Instant(2000), &metrics);
        }
        assert!(table.reports_of("j").is_empty());
        assert_eq!(table.unreachable("j"), (1, 1));
        table.take(&pod, said("0.1"), Instant(3000), &metrics);
        assert_eq!(table.unreachable("j"), (0, 1));
    }

    #[test]
    fn the_launch_overhead_is_measured_to_the_first_report() {
        let ((table, pod), metrics) = (table("j", "p"), Metrics::new().unwrap());
        assert!(table.launch_overheads().is_empty());
        table.take(&pod, said("0.1"), Instant(3500), &metrics);
        table.take(&pod, said("0.2"), Instant(9500), &metrics);
        assert_eq!(table.launch_overheads(), [("n".into(), Span(2500))].into());
    }

    #[test]
    fn an_attempt_launched_earlier_gives_no_launch_overhead() {
        let ((table, pod), metrics) = (table("j", "p"), Metrics::new().unwrap());
        let after_restart = ProgressTable {
            begun: Instant(1001),
            ..table
        };
        after_restart.take(&pod, said("0.1"), Instant(37_000), &metrics);
        assert!(after_restart.launch_overheads().is_empty());
        assert!(after_restart.reports_of("j").contains_key("p"));
    }
}
