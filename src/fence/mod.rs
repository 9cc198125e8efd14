//! Polls the agents of jobs with `idempotency: Fenced` for commit requests, and sends them the
//! grant once the ledger holds it. shed can lose everything here: after a restart the agents still
//! wait, and the ledger holds the grants.

mod request;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::reflector::ObjectRef;
use parking_lot::{Mutex, MutexGuard};
use shed_agent::fence::CommitGrant;
use shed_core::time::{Instant, Span};
use tokio::sync::{Notify, mpsc};

use crate::adopt::Jobs;
use crate::agent_keys::AgentKeys;
use crate::api::{AGENT_PORT, DeadlineJob, Idempotency};
use crate::clock::Clock;
use crate::cluster::pod::{AttemptFacts, AttemptId};
use crate::fair_places::{FairPlaces, Place};
use crate::metrics::Metrics;
use crate::polling::poll_addresses::PollAddresses;
use crate::polling::{self, Follower, Key, Rules, Table};
use crate::progress::{self, HttpClient, Ordered};

/// Maximum number of concurrent polls. An agent holds its poll while the task requests no grant.
const POLLED_AT_ONCE_MAX: usize = 1024;
/// Time between two looks at what is due.
const TICK: Duration = Duration::from_millis(200);
/// Wait before the next poll of an agent that did not answer.
const RETRY_AFTER: Span = Span::from_seconds(1);
/// The same of an agent that accepts none of the operator's keys.
const REFUSED_RETRY_AFTER: Span = Span::from_seconds(60);
/// An agent that waits for a grant is polled again after this long, because shed must not grant a
/// commit to an agent that no longer answers.
const WAITED_AT_MOST: Duration = Duration::from_secs(2);
/// An agent whose task still requests a grant is polled before others of its namespace that have
/// waited less than this.
const HEAD_START: Span = Span::from_seconds(60);

/// Commit requests of attempts.
#[derive(Default)]
pub struct FenceTable {
    entries: Mutex<Table<FenceRules>>,
}

/// How attempts are polled for commit requests.
struct FenceRules;

struct Entry {
    /// The request, while the agent upholds it.
    asked: Option<Asked>,
    /// The ledger's grant, to be sent to the agent.
    grant: Option<CommitGrant>,
    /// Raised when there is a grant.
    granted: Arc<Notify>,
    /// Since when the next poll is due.
    next: Instant,
}

impl Entry {
    fn new(next: Instant) -> Self {
        Self {
            asked: None,
            grant: None,
            granted: Arc::default(),
            next,
        }
    }
}

impl Rules for FenceRules {
    type Job = ObjectRef<DeadlineJob>;
    type Attempt = Entry;
    // A stopped attempt publishes nothing.
    const OUTLASTS: bool = false;

    fn job(job: &Arc<DeadlineJob>, _: Option<&Jobs>) -> Option<Self::Job> {
        let is_fenced = job.spec.idempotency == Idempotency::Fenced;
        is_fenced.then(|| ObjectRef::from_obj(job.as_ref()))
    }

    fn moves(_: &Self::Job, _: &Self::Job) -> bool {
        false
    }

    fn attempt(_: &DeadlineJob, _: &AttemptFacts, now: Instant) -> Entry {
        Entry::new(now)
    }

    fn due(_: &Self::Job, _: AttemptId, entry: &Entry) -> Instant {
        entry.next
    }
}

struct Asked {
    since: Instant,
    nonce: String,
}

impl FenceTable {
    /// The job's pods that request a commit grant, and since when by the process's own clock.
    pub fn asking(&self, job: &str) -> HashMap<String, Instant> {
        let entries = self.lock();
        let own = entries.of(job);
        own.filter_map(|(uid, entry)| Some((uid.to_owned(), entry.asked.as_ref()?.since)))
            .collect()
    }

    /// Records that the durable ledger grants the pod its commit.
    pub fn allow(&self, pod_uid: &str, grant: CommitGrant) {
        let attempt = Key {
            job: grant.job.as_str().into(),
            pod: pod_uid.into(),
        };
        self.change(&attempt, |entry| {
            entry.grant = Some(grant);
            entry.granted.notify_one();
        });
    }

    /// Takes in the answer to a poll; true if its job must be looked at for it.
    fn take(&self, attempt: &Key, nonce: Option<String>, now: Instant) -> bool {
        let taken = self.change(attempt, |entry| {
            let Some(nonce) = nonce else {
                entry.asked = None;
                return false;
            };
            let known = entry.asked.as_ref();
            if known.is_some_and(|asked| asked.nonce == nonce) {
                return false;
            }
            entry.asked = Some(Asked { since: now, nonce });
            true
        });
        taken.unwrap_or(false)
    }

    /// The agent did not answer, or shed may not send the grant. shed must no longer assume that
    /// this attempt still wants to publish. It is polled again at `next`.
    fn is_silent(&self, attempt: &Key, next: Instant) {
        self.change(attempt, |entry| {
            entry.asked = None;
            entry.next = next;
        });
    }

    /// Waits for a grant to the pod. Returns it with the pod's nonce.
    async fn reported(&self, attempt: &Key) -> Option<(CommitGrant, String)> {
        let granted = Arc::clone(&self.lock().get(attempt)?.granted);
        let look = || {
            let entries = self.lock();
            let entry = entries.get(attempt)?;
            let nonce = entry.asked.as_ref()?.nonce.clone();
            Some((entry.grant.clone()?, nonce))
        };
        if let Some(found) = look() {
            return Some(found);
        }
        // A timeout needs no handling, because the agent is polled again.
        let _ = tokio::time::timeout(WAITED_AT_MOST, granted.notified()).await;
        look()
    }

    /// The agent has the grant. If it requests again, the ledger is checked again.
    fn is_answered(&self, attempt: &Key) {
        self.change(attempt, |entry| {
            entry.asked = None;
            entry.grant = None;
        });
    }

    fn is_polled(&self, attempt: &Key, now: Instant) {
        self.lock().end_poll(attempt, |_, entry| {
            let next = match entry.asked {
                Some(_) => now.plus(Span(-HEAD_START.0)),
                None => now,
            };
            // A silent agent is left alone for longer.
            if entry.next <= now {
                entry.next = next;
            }
        });
    }

    fn change<T>(&self, attempt: &Key, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.lock().change(attempt, |_, entry| change(entry))
    }

    fn lock(&self) -> MutexGuard<'_, Table<FenceRules>> {
        polling::lock(&self.entries)
    }
}

/// State that the polls share.
pub struct Fence {
    /// Commit requests of attempts.
    pub table: Arc<FenceTable>,
    /// Where agents may be polled.
    pub addresses: PollAddresses,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// Sign grants, and know the agents' answers.
    pub keys: Arc<AgentKeys>,
    /// Times the polls.
    pub clock: Arc<Clock>,
    /// Receives every job with a commit request.
    pub touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
}

/// Polls without end.
pub async fn run(fence: Fence) {
    let poller = Arc::new(Poller::new(fence));
    let client = progress::client(request::PATIENCE);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for (target, place) in poller.due(poller.fence.clock.ticks()) {
            let (poller, client) = (Arc::clone(&poller), client.clone());
            tokio::spawn(async move {
                let fence = &poller.fence;
                attend(fence, &client, &target).await;
                fence.table.is_polled(&target.attempt, fence.clock.ticks());
                drop(place);
            });
        }
    }
}

struct Poller {
    fence: Fence,
    follower: Follower,
    /// By namespace.
    places: Arc<FairPlaces<Arc<str>>>,
}

/// An agent to poll.
struct Target {
    job: ObjectRef<DeadlineJob>,
    attempt: Key,
    pod_name: Arc<str>,
    /// Host and port.
    agent: String,
}

impl Poller {
    fn new(fence: Fence) -> Self {
        Self {
            follower: Follower::new(fence.addresses.clone()),
            places: FairPlaces::new(POLLED_AT_ONCE_MAX),
            fence,
        }
    }

    /// Takes in the changes, and begins the due polls while places are free. A namespace without a
    /// free place delays no other.
    fn due(&self, now: Instant) -> Vec<(Target, Place<Arc<str>>)> {
        self.follower.follow(&self.fence.table.entries, now);
        let mut table = self.fence.table.lock();
        let place = |namespace: &Arc<str>| self.places.try_acquire(namespace);
        let begun = table.begin_polls(now, usize::MAX, place);
        let begin = |(attempt, place)| match self.target(&table, &attempt) {
            Some(target) => Some((target, place)),
            None => {
                table.suspend(&attempt);
                None
            }
        };
        begun.into_iter().filter_map(begin).collect()
    }

    /// Address of an attempt's agent; absent if it may not be polled any more.
    fn target(&self, table: &Table<FenceRules>, attempt: &Key) -> Option<Target> {
        let (pod, job) = table.target(attempt)?;
        // The address may have become a node's since the pod was visited.
        let address = self.follower.addresses().address(&pod)?;
        Some(Target {
            job: job.clone(),
            attempt: attempt.clone(),
            pod_name: Arc::clone(&pod.name),
            agent: SocketAddr::new(address, AGENT_PORT).to_string(),
        })
    }
}

/// One poll, and the grant if there is one by then.
async fn attend(fence: &Fence, client: &HttpClient, target: &Target) {
    let (table, attempt) = (&fence.table, &target.attempt);
    let later = |wait: Span| fence.clock.ticks().plus(wait);
    match request::poll(client, &fence.keys, target).await {
        Some(nonce) => {
            let is_asking = nonce.is_some();
            if table.take(attempt, nonce, fence.clock.ticks()) {
                // A closed channel means that the process is ending.
                let _ = fence.touched.send(target.job.clone());
            }
            if !is_asking {
                return;
            }
        }
        None => {
            fence.metrics.attempts.fence_unanswered.inc();
            return table.is_silent(attempt, later(RETRY_AFTER));
        }
    }
    let Some((grant, nonce)) = table.reported(attempt).await else {
        return;
    };
    let grants = fence.keys.signed(&attempt.pod, &nonce, &grant);
    let wait = match request::leave(client, &target.agent, grants).await {
        Ordered::Taken => return table.is_answered(attempt),
        Ordered::Silent => RETRY_AFTER,
        Ordered::Refused => {
            tracing::warn!(
                job = %target.job,
                pod = &*target.pod_name,
                "the agent accepts no key of the operator, so its task cannot publish: put its key back into the \
                 Secret of the signing keys, or delete the pod"
            );
            REFUSED_RETRY_AFTER
        }
    };
    fence.metrics.attempts.fence_unanswered.inc();
    table.is_silent(attempt, later(wait));
}

#[cfg(test)]
impl FenceTable {
    /// A poll found the attempt's task asking.
    pub fn ask_for_tests(&self, job: &str, pod_uid: &str, since: Instant) {
        let asked = Asked {
            since,
            nonce: "nonce".to_owned(),
        };
        let entry = Entry {
            asked: Some(asked),
            ..Entry::new(since)
        };
        let attempt = Key::for_tests(job, pod_uid);
        self.lock().seed(&attempt, ObjectRef::new("count"), entry);
    }

    /// The grant that the attempt would receive now.
    pub fn reported_for_tests(&self, job: &str, pod_uid: &str) -> Option<CommitGrant> {
        let attempt = Key::for_tests(job, pod_uid);
        self.lock().get(&attempt)?.grant.clone()
    }
}

#[cfg(test)]
mod tests;
