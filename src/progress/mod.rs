//! Asks running attempts for their progress, as a probe does: pulled, bounded, never trusted.
//! Silent is unknown, not zero; a refused report keeps the last good value and is counted.

mod ask;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use shed_agent::signed::SigningKey;
use shed_agent::{Observed, Report, ReportError, Series, Units};
use shed_core::snapshot::{Progress, ResumePoint};
use shed_core::time::{Instant, Span};
use tokio::sync::Semaphore;

use crate::api::DeadlineJob;
use crate::clock;
use crate::metrics::{Metrics, Why};
use crate::observe::job::Reported;
use crate::observe::pod::{PodFacts, Stage};
use crate::stores::Stores;
use crate::validate::{self, ProgressRule};

/// Questions under way at once.
const ASKED_AT_ONCE_MAX: usize = 64;
/// How often it is looked whom to ask next.
const TICK: Duration = Duration::from_millis(200);
/// Unanswered questions in a row after which an attempt counts as unreachable.
const UNANSWERED_MAX: u32 = 3;
/// An attempt that does not know yet where its part ends is asked, and told, this often.
const TELL_AGAIN: Span = Span(500);

/// What attempts reported, by pod uid.
#[derive(Default)]
pub struct ProgressTable {
    entries: Mutex<HashMap<String, Entry>>,
    overhead: Mutex<Overhead>,
}

struct Entry {
    job: Arc<str>,
    series: Series,
    /// What the last good report said in whole units.
    units: Option<Units>,
    launched: Option<Instant>,
    next: Instant,
    /// When it was asked last.
    asked: Instant,
    /// Where the attempt knows its part to end.
    told: Option<u64>,
    unanswered: u32,
    asking: bool,
}

/// Running mean of the time from launch to first report.
#[derive(Default)]
struct Overhead {
    total: i64,
    count: i64,
}

/// One answer, judged.
pub enum Answer {
    /// The attempt answered; what it said may still be refused.
    Said(Result<Option<Report>, ReportError>),
    /// Nothing usable came back.
    Nothing,
}

impl ProgressTable {
    /// The reports of a job's attempts by pod uid.
    #[must_use]
    pub fn reports_of(&self, job: &str) -> BTreeMap<String, Reported> {
        let entries = self.lock();
        let own = entries.iter().filter(|(_, entry)| &*entry.job == job);
        own.filter_map(|(uid, entry)| Some((uid.clone(), entry.reported()?)))
            .collect()
    }

    /// How many of a job's asked attempts don't answer, and how many are asked.
    #[must_use]
    pub fn unreachable(&self, job: &str) -> (usize, usize) {
        let entries = self.lock();
        let own = entries.values().filter(|entry| &*entry.job == job);
        own.fold((0, 0), |(silent, asked), entry| {
            let is_silent = entry.unanswered >= UNANSWERED_MAX;
            (silent + usize::from(is_silent), asked + 1)
        })
    }

    /// Mean time from launch to first report, once one was measured.
    #[must_use]
    pub fn launch_overhead(&self) -> Option<Span> {
        let overhead = self.overhead.lock().unwrap_or_else(PoisonError::into_inner);
        (overhead.count > 0).then(|| Span(overhead.total / overhead.count))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in an answer; true if something new is known.
    fn take(&self, uid: &str, answer: Answer, now: Instant, metrics: &Metrics) -> bool {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(uid) else {
            return false;
        };
        entry.asking = false;
        let said = match answer {
            Answer::Said(said) => said,
            Answer::Nothing => {
                entry.unanswered += 1;
                metrics.progress_unanswered.inc();
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
            let why = Why { reason };
            metrics.progress_refused.get_or_create(&why).inc();
        }
        if was_silent && entry.series.first().is_some() {
            self.measure(entry.launched, now);
        }
        matches!(observed, Observed::Accepted)
    }

    /// The attempt knows where its part ends.
    fn is_told(&self, uid: &str, ends_at: Option<u64>) {
        if let Some(entry) = self.lock().get_mut(uid) {
            entry.told = ends_at;
        }
    }

    fn measure(&self, launched: Option<Instant>, now: Instant) {
        let Some(launched) = launched else { return };
        let mut overhead = self.overhead.lock().unwrap_or_else(PoisonError::into_inner);
        overhead.total += now.since(launched).0.max(0);
        overhead.count += 1;
    }
}

impl Entry {
    fn reported(&self) -> Option<Reported> {
        let (first_at, first) = self.series.first()?;
        // The last answer, not the last rise: an attempt that answers without getting further
        // has a falling rate, and so becomes the straggler that it is.
        let (last_at, last) = self.series.last()?;
        let checkpoint = self
            .series
            .checkpoint()
            .map(|(progress, text)| ResumePoint {
                progress,
                checkpoint: text.into(),
            });
        Some(Reported {
            progress: Progress {
                first_at: Instant(first_at),
                first,
                last_at: Instant(last_at),
                last,
            },
            checkpoint,
            units: self.units,
        })
    }
}

/// Asks for ever.
pub async fn run(
    table: Arc<ProgressTable>,
    stores: Arc<Stores>,
    metrics: Arc<Metrics>,
    key: Arc<SigningKey>,
) {
    let client = ask::client();
    let places = Arc::new(Semaphore::new(ASKED_AT_ONCE_MAX));
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for question in due(&table, &stores, clock::now()) {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let (table, stores, metrics) = (
                Arc::clone(&table),
                Arc::clone(&stores),
                Arc::clone(&metrics),
            );
            let (client, key) = (client.clone(), Arc::clone(&key));
            tokio::spawn(async move {
                let ask::Reply { answer, stop } = ask::ask(&client, &question).await;
                if ask::tell(&client, &question, &key, stop.as_ref()).await {
                    table.is_told(&question.uid, question.ends_at);
                }
                if table.take(&question.uid, answer, clock::now(), &metrics) {
                    stores.changed.notify_one();
                }
                drop(place);
            });
        }
    }
}

/// Forgets attempts that are gone, takes in new ones, and says whom to ask now.
fn due(table: &ProgressTable, stores: &Stores, now: Instant) -> Vec<ask::Question> {
    let mut questions = Vec::new();
    let mut present = Vec::new();
    let mut entries = table.lock();
    for job in stores.jobs.state() {
        let Some(uid) = job.metadata.uid.as_deref() else {
            continue;
        };
        let Ok(Some(rule)) = validate::progress_rule(&job.spec) else {
            continue;
        };
        for pod in stores.pods_of(uid).values() {
            present.push(pod.uid.clone());
            if let Some(question) = question(&mut entries, &job, pod, &rule, now) {
                questions.push(question);
            }
        }
    }
    present.sort_unstable();
    entries.retain(|uid, _| present.binary_search(uid).is_ok());
    questions
}

fn question(
    entries: &mut HashMap<String, Entry>,
    job: &DeadlineJob,
    pod: &PodFacts,
    rule: &ProgressRule,
    now: Instant,
) -> Option<ask::Question> {
    let attempt = pod.attempt.as_ref()?;
    if attempt.stage != Stage::Running || attempt.deleting {
        return None;
    }
    let ip = attempt.ip.as_deref()?;
    let entry = entries
        .entry(pod.uid.clone())
        .or_insert_with(|| new_entry(job, pod, now));
    let ends_at = ends_at(job, attempt.task);
    // An original must know where it stops before it is there.
    let is_to_be_told = ends_at.is_some() && entry.told != ends_at;
    let due = match is_to_be_told {
        true => entry.next.min(entry.asked.plus(TELL_AGAIN)),
        false => entry.next,
    };
    if entry.asking || due > now {
        return None;
    }
    entry.asking = true;
    entry.asked = now;
    entry.next = now.plus(rule.period);
    Some(ask::Question::new(&rule.source, ip, pod, ends_at))
}

/// Where the ledger, which is durable as the watch shows it, says that a part ends.
fn ends_at(job: &DeadlineJob, index: u32) -> Option<u64> {
    let segments = &job.status.as_ref()?.ledger.as_ref()?.segments;
    let found = segments.binary_search_by_key(&index, |part| part.index);
    found.ok().map(|at| segments[at].end)
}

fn new_entry(job: &DeadlineJob, pod: &PodFacts, now: Instant) -> Entry {
    let recorded = pod.attempt.as_ref().and_then(|attempt| {
        let ledger = job.status.as_ref()?.ledger.as_ref()?;
        let task = ledger
            .tasks
            .iter()
            .find(|task| task.index == attempt.task)?;
        task.attempts
            .iter()
            .find(|entry| entry.number == attempt.number)
    });
    let start = recorded
        .and_then(|entry| entry.resume.as_ref())
        .map_or(0.0, |point| point.progress);
    Entry {
        job: job.uid().unwrap_or_default().into(),
        series: Series::new(start),
        units: None,
        launched: recorded.map(|entry| clock::micro_instant(&entry.launched)),
        next: now,
        asked: Instant(0),
        told: None,
        unanswered: 0,
        asking: false,
    }
}

#[cfg(test)]
impl ProgressTable {
    /// The attempt answered so.
    pub fn answer_for_tests(&self, job: &str, pod_uid: &str, answers: &[(Instant, &str)]) {
        let mut entry = Entry {
            job: job.into(),
            series: Series::new(0.0),
            units: None,
            launched: None,
            next: Instant(i64::MAX),
            asked: Instant(0),
            told: None,
            unanswered: 0,
            asking: false,
        };
        for (at, text) in answers {
            let report = shed_agent::parse_report(text.as_bytes());
            entry.units = report
                .as_ref()
                .ok()
                .and_then(|report| report.as_ref()?.units());
            entry.series.observe(at.0, report);
        }
        self.lock().insert(pod_uid.to_owned(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(job: &str, uid: &str) -> ProgressTable {
        let table = ProgressTable::default();
        let entry = Entry {
            job: job.into(),
            series: Series::new(0.0),
            units: None,
            launched: Some(Instant(1000)),
            next: Instant(0),
            asked: Instant(0),
            told: None,
            unanswered: 0,
            asking: true,
        };
        table.lock().insert(uid.to_owned(), entry);
        table
    }

    fn said(content: &str) -> Answer {
        Answer::Said(shed_agent::parse_report(content.as_bytes()))
    }

    #[test]
    fn hostile_reports_are_counted_and_the_last_good_value_stays() {
        let (table, metrics) = (table("j", "p"), Metrics::new());
        table.take("p", said("0.4"), Instant(4000), &metrics);
        for content in ["NaN", "-1", "7", "text", "0.1"] {
            table.take("p", said(content), Instant(5000), &metrics);
        }
        let reports = table.reports_of("j");
        assert!((reports["p"].progress.last - 0.4).abs() < 1e-12);
        assert!(
            metrics
                .page()
                .unwrap()
                .contains("shed_progress_refused_total")
        );
    }

    #[test]
    fn silence_is_unknown_and_only_silence_of_all_is_unreachable() {
        let (table, metrics) = (table("j", "p"), Metrics::new());
        for _ in 0..UNANSWERED_MAX {
            table.take("p", Answer::Nothing, Instant(2000), &metrics);
        }
        assert!(table.reports_of("j").is_empty());
        assert_eq!(table.unreachable("j"), (1, 1));
        table.take("p", said("0.1"), Instant(3000), &metrics);
        assert_eq!(table.unreachable("j"), (0, 1));
    }

    #[test]
    fn the_launch_overhead_is_measured_to_the_first_report() {
        let (table, metrics) = (table("j", "p"), Metrics::new());
        assert_eq!(table.launch_overhead(), None);
        table.take("p", said("0.1"), Instant(3500), &metrics);
        table.take("p", said("0.2"), Instant(9500), &metrics);
        assert_eq!(table.launch_overhead(), Some(Span(2500)));
    }
}
