//! When each attempt is polled: the most overdue first, one poll per attempt at a time. Namespaces share
//! the operator's budget and its places, so that slow answers delay polls of their own namespace only.

use std::sync::Arc;
use std::time::Duration;

use shed_core::time::{Instant, Span};

use crate::adopt::Jobs;
use crate::agent_keys::AgentKeys;
use crate::api::DeadlineJob;
use crate::clock::Clock;
use crate::cluster::pod::{AttemptFacts, AttemptId};
use crate::fair_places::{FairPlaces, Place};
use crate::job::view;
use crate::metrics::Metrics;
use crate::polling::poll_addresses::PollAddresses;
use crate::polling::{Follower, Key, Rules, Table};
use crate::progress::period::{Outlook, jittered};
use crate::progress::request::{self, HttpClient, Question, Reply};
use crate::progress::{Entry, ProgressTable};
use crate::token_bucket::TokenBucket;
use crate::validate::{self, ProgressRule};

/// Polls under way at once.
const ASKED_AT_ONCE_MAX: usize = 256;
/// Time between two checks for due polls.
const TICK: Duration = Duration::from_millis(100);
/// Poll interval of an attempt that has not acknowledged the end of its segment yet. Each poll
/// repeats the end.
const ANNOUNCE_AGAIN: Span = Span(500);

/// Dependencies of the polls.
struct Poller {
    table: Arc<ProgressTable>,
    follower: Follower,
    /// By namespace.
    places: Arc<FairPlaces<Arc<str>>>,
    metrics: Arc<Metrics>,
    keys: Arc<AgentKeys>,
    clock: Arc<Clock>,
    client: HttpClient,
}

/// A poll, and the place that it holds.
type Asking = (Question, Place<Arc<str>>);

/// Polls without end, at most this often per second in all.
pub async fn run(
    table: Arc<ProgressTable>,
    addresses: PollAddresses,
    metrics: Arc<Metrics>,
    keys: Arc<AgentKeys>,
    clock: Arc<Clock>,
    per_second: u32,
) {
    let poller = Arc::new(Poller {
        table,
        follower: Follower::new(addresses),
        places: FairPlaces::new(ASKED_AT_ONCE_MAX),
        metrics,
        keys,
        clock,
        client: request::client(request::PATIENCE),
    });
    let mut budget = TokenBucket::per_second(per_second);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for asking in poller.due(&mut budget, poller.clock.ticks()) {
            tokio::spawn(Arc::clone(&poller).exchange(asking));
        }
    }
}

impl Poller {
    async fn exchange(self: Arc<Self>, (question, place): Asking) {
        let timer = self.metrics.progress.poll_seconds.start_timer();
        let Reply { answer, stop } = request::ask(&self.client, &self.keys, &question).await;
        timer.observe_duration();
        if request::announce(&self.client, &question, &self.keys, stop.as_ref()).await {
            self.table.is_reported(&question.attempt, question.ends_at);
        }
        let now = self.clock.now();
        if self
            .table
            .take(&question.attempt, answer, now, &self.metrics)
        {
            self.follower.addresses().stores().changed.notify_one();
        }
        drop(place);
    }

    /// Takes in the changes, and begins the due polls as far as budget and places allow.
    fn due(&self, budget: &mut TokenBucket, ticks: Instant) -> Vec<Asking> {
        self.follower.follow(&self.table.entries, ticks);
        let now = self.clock.at(ticks);
        let allowed = budget.take_up_to(ASKED_AT_ONCE_MAX, ticks);
        let mut table = self.table.lock();
        let place = |namespace: &Arc<str>| self.places.try_acquire(namespace);
        let begun = table.begin_polls(ticks, allowed, place);
        let left = table.first_due().unwrap_or(ticks).min(ticks);
        let begin = |(attempt, place)| match self.question(&mut table, &attempt, now, ticks) {
            Some(question) => Some((question, place)),
            None => {
                table.suspend(&attempt);
                None
            }
        };
        let asking: Vec<Asking> = begun.into_iter().filter_map(begin).collect();
        self.metrics.progress.delay.set(ticks.since(left).seconds());
        self.metrics.progress.polls.inc_by(asking.len() as u64);
        budget.give_back(allowed - asking.len());
        asking
    }

    /// The poll of an attempt, recorded as started; absent if it may not be polled any more.
    fn question(
        &self,
        table: &mut Table<ProgressRules>,
        attempt: &Key,
        now: Instant,
        ticks: Instant,
    ) -> Option<Question> {
        let (pod, job) = table.target(attempt)?;
        // The address may have become a node's since the pod was visited.
        let address = self.follower.addresses().address(&pod)?;
        let ends_at = job.ends_at(pod.attempt.as_ref()?.task);
        let source = job.rule.source.clone();
        table.change(attempt, |job, entry| {
            entry.note_asked(job, &attempt.pod, now, ticks);
        })?;
        Some(Question::new(
            &source,
            attempt.clone(),
            address,
            &pod,
            ends_at,
        ))
    }
}

/// How attempts are polled for progress.
pub(super) struct ProgressRules;

/// A job whose attempts are polled.
pub(super) struct AskedJob {
    rule: ProgressRule,
    deadline: Option<Instant>,
    /// Ends of segments in the durable ledger that the watch shows. By index.
    ends: Vec<(u32, u64)>,
}

impl Rules for ProgressRules {
    type Job = AskedJob;
    type Attempt = Entry;
    // The last report of an attempt is kept until its pod is gone.
    const OUTLASTS: bool = true;

    fn job(job: &Arc<DeadlineJob>, batch: Option<&Jobs>) -> Option<AskedJob> {
        // A job without a status has no ledger that an attempt could be in.
        job.status.as_ref()?;
        AskedJob::of(job, batch)
    }

    fn moves(before: &AskedJob, after: &AskedJob) -> bool {
        before.ends != after.ends
    }

    fn attempt(job: &DeadlineJob, attempt: &AttemptFacts, now: Instant) -> Entry {
        new_entry(job, attempt, now)
    }

    fn due(job: &AskedJob, (task, _): AttemptId, entry: &Entry) -> Instant {
        entry.due(job.ends_at(task))
    }
}

impl AskedJob {
    pub(super) fn of(job: &DeadlineJob, batch: Option<&Jobs>) -> Option<Self> {
        let rule = validate::progress_rule(&job.spec).ok()??;
        let ledger = job.ledger();
        let segments = ledger.iter().flat_map(|ledger| ledger.segments.values());
        Some(Self {
            rule,
            deadline: view::deadline(job, batch),
            ends: segments.map(|part| (part.index, part.end)).collect(),
        })
    }

    fn ends_at(&self, index: u32) -> Option<u64> {
        let found = self.ends.binary_search_by_key(&index, |&(index, _)| index);
        found.ok().map(|at| self.ends[at].1)
    }
}

impl Entry {
    /// When its next poll is due.
    fn due(&self, ends_at: Option<u64>) -> Instant {
        // An original must know where it stops before it is there.
        match ends_at.is_some() && self.reported != ends_at {
            true => self.next.min(self.asked.plus(ANNOUNCE_AGAIN)),
            false => self.next,
        }
    }

    fn note_asked(&mut self, job: &AskedJob, uid: &str, now: Instant, ticks: Instant) {
        let outlook = Outlook {
            slack: job.deadline.map(|deadline| deadline.since(now)),
            remaining: self.remaining(),
            unanswered: self.unanswered,
        };
        self.asked = ticks;
        self.asked_times = self.asked_times.wrapping_add(1);
        let span = outlook.next(&job.rule);
        self.next = ticks.plus(jittered(span, uid, self.asked_times));
    }
}

fn new_entry(job: &DeadlineJob, attempt: &AttemptFacts, ticks: Instant) -> Entry {
    let ledger = job.ledger();
    let recorded = ledger.and_then(|ledger| {
        let mut attempts = ledger.tasks.get(&attempt.task)?.attempts.iter();
        attempts.find(|entry| entry.number == attempt.number)
    });
    let start = recorded.and_then(|entry| entry.resume.as_ref());
    let start = start.map_or(0.0, |point| point.progress);
    let launched = recorded.map(|entry| entry.launched);
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    Entry::new(namespace, start, launched, ticks)
}

#[cfg(test)]
mod tests;
