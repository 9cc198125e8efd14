//! Whom to ask when: the most overdue first, within the budget of the whole operator, one question per
//! attempt at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use shed_agent::signed::SigningKey;
use shed_core::time::{Instant, Span};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ask::{self, HttpClient, Question, Reply};
use super::budget::Budget;
use super::period::{Outlook, jittered};
use super::reach::Reach;
use super::{Entry, ProgressTable};
use crate::api::DeadlineJob;
use crate::clock::{self, Clock};
use crate::metrics::Metrics;
use crate::observe::identity::Owner;
use crate::observe::job::JobPods;
use crate::observe::pod::{AttemptFacts, PodFacts, Stage};
use crate::restored::doubt::Doubt;
use crate::stores::Stores;
use crate::validate::{self, ProgressRule};

/// Questions under way at once.
const ASKED_AT_ONCE_MAX: usize = 256;
/// How often it is looked whom to ask next.
const TICK: Duration = Duration::from_millis(100);
/// An attempt that does not know yet where its part ends is asked, and told, this often.
const TELL_AGAIN: Span = Span(500);

/// What asking takes.
struct Poller {
    table: Arc<ProgressTable>,
    reach: Reach,
    metrics: Arc<Metrics>,
    key: Arc<SigningKey>,
    doubt: Arc<Doubt>,
    clock: Arc<Clock>,
    client: HttpClient,
}

/// Asks for ever, at most so often per second in all.
pub async fn run(
    table: Arc<ProgressTable>,
    reach: Reach,
    metrics: Arc<Metrics>,
    key: Arc<SigningKey>,
    doubt: Arc<Doubt>,
    clock: Arc<Clock>,
    per_second: u32,
) {
    let client = ask::client();
    let poller = Arc::new(Poller {
        table,
        reach,
        metrics,
        key,
        doubt,
        clock,
        client,
    });
    let places = Arc::new(Semaphore::new(ASKED_AT_ONCE_MAX));
    let mut budget = Budget::new(per_second, poller.clock.ticks());
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ticks = poller.clock.ticks();
        let allowed = budget.take(places.available_permits(), ticks);
        let questions = poller.due(allowed, ticks);
        budget.give_back(allowed - questions.len());
        for question in questions {
            // Only this loop takes places, and it has looked how many there are.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                return;
            };
            poller.metrics.progress_polls.inc();
            tokio::spawn(Arc::clone(&poller).exchange(question, place));
        }
    }
}

impl Poller {
    async fn exchange(self: Arc<Self>, question: Question, place: OwnedSemaphorePermit) {
        let Reply { answer, stop } = ask::ask(&self.client, &question).await;
        let (job, uid) = (&question.job, &question.uid);
        // The division may be of a ledger that was undone.
        let telling = ask::tell(&self.client, &question, &self.key, stop.as_ref());
        if self.doubt.unless_arisen(telling).await == Some(true) {
            self.table.is_told(job, uid, question.ends_at);
        }
        let is_news = self
            .table
            .take(job, uid, answer, self.clock.now(), &self.metrics);
        if is_news {
            self.reach.stores().changed.notify_one();
        }
        drop(place);
    }

    /// Forgets attempts that are gone, takes in new ones, and says whom to ask now: at most `most`.
    fn due(&self, most: usize, ticks: Instant) -> Vec<Question> {
        let now = self.clock.at(ticks);
        let stores = self.reach.stores();
        let jobs = asked_jobs(stores);
        let mut entries = self.table.lock();
        let mut due = Vec::new();
        for job in &jobs {
            let own = entries.entry(Arc::clone(&job.uid)).or_default();
            let pods = stores.attempts_of(&Owner::of(&job.watched.metadata));
            look(job, &pods, &self.reach, own, ticks, &mut due);
        }
        if entries.len() > jobs.len() {
            entries.retain(|uid, _| jobs.iter().any(|job| job.uid == *uid));
        }
        // Who waits longest is asked first, so that a budget that is too small starves nobody.
        due.sort_unstable_by(|a, b| (a.since, &a.pod.uid).cmp(&(b.since, &b.pod.uid)));
        let left = due.get(most).map_or(ticks, |due| due.since);
        self.metrics.progress_lag.set(ticks.since(left).seconds());
        due.truncate(most);
        let question = |due: &Due<'_>| {
            let entry = entries.get_mut(&due.job.uid)?.get_mut(&due.pod.uid)?;
            entry.note_asked(due, now, ticks);
            let (source, uid) = (&due.job.rule.source, &due.job.uid);
            Some(Question::new(
                source,
                uid,
                due.address,
                &due.pod,
                due.ends_at,
            ))
        };
        due.iter().filter_map(question).collect()
    }
}

/// A job whose attempts are asked.
struct AskedJob {
    uid: Arc<str>,
    watched: Arc<DeadlineJob>,
    rule: ProgressRule,
    deadline: Option<Instant>,
}

/// An attempt that is due.
struct Due<'a> {
    since: Instant,
    job: &'a AskedJob,
    pod: Arc<PodFacts>,
    address: IpAddr,
    ends_at: Option<u64>,
}

fn asked_jobs(stores: &Stores) -> Vec<AskedJob> {
    let asked = |watched: Arc<DeadlineJob>| {
        let uid = watched.metadata.uid.as_deref()?.into();
        let rule = validate::progress_rule(&watched.spec).ok()??;
        let deadline = watched.status.as_ref()?.deadline.as_ref();
        Some(AskedJob {
            uid,
            deadline: deadline.map(clock::instant),
            watched,
            rule,
        })
    };
    stores.live().into_iter().filter_map(asked).collect()
}

/// Brings the entries of one job up to date, and adds those that are due.
fn look<'a>(
    job: &'a AskedJob,
    pods: &JobPods,
    reach: &Reach,
    own: &mut BTreeMap<String, Entry>,
    ticks: Instant,
    due: &mut Vec<Due<'a>>,
) {
    for pod in pods.values() {
        let Some(attempt) = pod.attempt.as_ref() else {
            continue;
        };
        let is_asked = attempt.stage == Stage::Running && !attempt.deleting;
        let Some(address) = reach.address(pod).filter(|_| is_asked) else {
            continue;
        };
        if !own.contains_key(&pod.uid) {
            own.insert(pod.uid.clone(), new_entry(&job.watched, attempt, ticks));
        }
        let ends_at = ends_at(&job.watched, attempt.task);
        let since = own.get(&pod.uid).and_then(|entry| entry.due(ends_at));
        due.extend(since.filter(|&since| since <= ticks).map(|since| Due {
            since,
            job,
            pod: Arc::clone(pod),
            address,
            ends_at,
        }));
    }
    // What an attempt said last is wanted until its pod is gone.
    if own.len() > pods.len() {
        let present: BTreeSet<&str> = pods.values().map(|pod| pod.uid.as_str()).collect();
        own.retain(|uid, _| present.contains(uid.as_str()));
    }
}

impl Entry {
    /// Since when it should be asked; absent while it is being asked.
    fn due(&self, ends_at: Option<u64>) -> Option<Instant> {
        // An original must know where it stops before it is there.
        let is_to_be_told = ends_at.is_some() && self.told != ends_at;
        let due = match is_to_be_told {
            true => self.next.min(self.asked.plus(TELL_AGAIN)),
            false => self.next,
        };
        (!self.asking).then_some(due)
    }

    fn note_asked(&mut self, due: &Due<'_>, now: Instant, ticks: Instant) {
        let outlook = Outlook {
            slack: due.job.deadline.map(|deadline| deadline.since(now)),
            remaining: self.remaining(),
            unanswered: self.unanswered,
        };
        self.asking = true;
        self.asked = ticks;
        self.asked_times = self.asked_times.wrapping_add(1);
        let span = outlook.next(&due.job.rule);
        self.next = ticks.plus(jittered(span, &due.pod.uid, self.asked_times));
    }
}

/// Where the ledger, which is durable as the watch shows it, says that a part ends.
fn ends_at(job: &DeadlineJob, index: u32) -> Option<u64> {
    let segments = &job.status.as_ref()?.ledger.as_ref()?.segments;
    let found = segments.binary_search_by_key(&index, |part| part.index);
    found.ok().map(|at| segments[at].end)
}

fn new_entry(job: &DeadlineJob, attempt: &AttemptFacts, ticks: Instant) -> Entry {
    let ledger = job
        .status
        .as_ref()
        .and_then(|status| status.ledger.as_ref());
    let recorded = ledger.and_then(|ledger| {
        let tasks = &ledger.tasks;
        let found = tasks.binary_search_by_key(&attempt.task, |task| task.index);
        let mut attempts = tasks.get(found.ok()?)?.attempts.iter();
        attempts.find(|entry| entry.number == attempt.number)
    });
    let start = recorded.and_then(|entry| entry.resume.as_ref());
    let start = start.map_or(0.0, |point| point.progress);
    let launched = recorded.map(|entry| clock::micro_instant(&entry.launched));
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    Entry::new(namespace, start, launched, ticks)
}

#[cfg(test)]
mod tests;
