//! Asks the agents of jobs with `idempotency: Fenced` whether their tasks want to publish, and
//! brings them the grant once the ledger holds it. Everything here can be lost: after a restart
//! the agents still wait, and the ledger says what they are to be told.

mod ask;
mod key;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::runtime::reflector::ObjectRef;
use shed_agent::fence::CommitGrant;
use shed_agent::signed::SigningKey;
use shed_core::time::{Instant, Span};
use tokio::sync::{Notify, Semaphore, mpsc};

pub use self::key::load as load_key;
use crate::api::{AGENT_PORT, DeadlineJob, Idempotency};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::observe::identity::Owner;
use crate::observe::pod::{PodFacts, Stage};
use crate::progress::reach::Reach;
use crate::restored::doubt::Doubt;

/// Polls under way at once; each is held by its agent while the task does not ask.
const POLLED_AT_ONCE_MAX: usize = 1024;
/// How often it is looked whom to poll next.
const TICK: Duration = Duration::from_millis(200);
/// An agent that did not answer is left alone for so long.
const RETRY_AFTER: Span = Span::from_seconds(1);
/// An agent that waits for a grant is asked again after this long: one that has gone silent since
/// must not be given what others wait for.
const WAITED_AT_MOST: Duration = Duration::from_secs(2);

/// What attempts ask for, by pod uid.
#[derive(Default)]
pub struct FenceTable {
    entries: Mutex<HashMap<String, Entry>>,
}

#[derive(Default)]
struct Entry {
    job: Arc<str>,
    /// The question, while the agent upholds it.
    asked: Option<Asked>,
    /// What the ledger says, to be told.
    grant: Option<CommitGrant>,
    /// Raised when there is a grant.
    granted: Arc<Notify>,
    polling: bool,
    next: Option<Instant>,
}

struct Asked {
    since: Instant,
    nonce: String,
}

impl FenceTable {
    /// The job's pods that ask for leave to publish, and since when by the process's own clock.
    #[must_use]
    pub fn asking(&self, job: &str) -> HashMap<String, Instant> {
        let entries = self.lock();
        let own = entries.iter().filter(|(_, entry)| &*entry.job == job);
        own.filter_map(|(uid, entry)| Some((uid.clone(), entry.asked.as_ref()?.since)))
            .collect()
    }

    /// The ledger durably says that the pod may publish.
    pub fn allow(&self, pod_uid: &str, grant: CommitGrant) {
        if let Some(entry) = self.lock().get_mut(pod_uid) {
            entry.grant = Some(grant);
            entry.granted.notify_one();
        }
    }

    /// Takes in the answer to a poll; true if its job must be looked at for it.
    fn take(&self, pod_uid: &str, nonce: Option<String>, now: Instant) -> bool {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(pod_uid) else {
            return false;
        };
        let Some(nonce) = nonce else {
            entry.asked = None;
            return false;
        };
        if entry
            .asked
            .as_ref()
            .is_some_and(|asked| asked.nonce == nonce)
        {
            return false;
        }
        entry.asked = Some(Asked { since: now, nonce });
        true
    }

    /// Nothing came back, or nothing may be said: nobody may count on it that this attempt still wants to publish.
    fn is_silent(&self, pod_uid: &str, now: Instant) {
        if let Some(entry) = self.lock().get_mut(pod_uid) {
            entry.asked = None;
            entry.next = Some(now.plus(RETRY_AFTER));
        }
    }

    /// What the pod is to be told, with its nonce, as soon as there is something.
    async fn told(&self, pod_uid: &str) -> Option<(CommitGrant, String)> {
        let granted = Arc::clone(&self.lock().get(pod_uid)?.granted);
        let look = || {
            let entries = self.lock();
            let entry = entries.get(pod_uid)?;
            let nonce = entry.asked.as_ref()?.nonce.clone();
            Some((entry.grant.clone()?, nonce))
        };
        if let Some(found) = look() {
            return Some(found);
        }
        // Running out of time is no matter: the agent is asked again.
        let _ = tokio::time::timeout(WAITED_AT_MOST, granted.notified()).await;
        look()
    }

    /// The agent knows. Should it ask again, the ledger is asked again too.
    fn is_answered(&self, pod_uid: &str) {
        if let Some(entry) = self.lock().get_mut(pod_uid) {
            entry.asked = None;
            entry.grant = None;
        }
    }

    fn is_polled(&self, pod_uid: &str) {
        if let Some(entry) = self.lock().get_mut(pod_uid) {
            entry.polling = false;
        }
    }

    // A panic while the lock was held leaves what the next poll mends.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the polls share.
pub struct Fence {
    /// What attempts ask for.
    pub table: Arc<FenceTable>,
    /// Where agents may be polled.
    pub reach: Reach,
    /// Whether the ledger still says what it said.
    pub doubt: Arc<Doubt>,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// Signs grants.
    pub key: Arc<SigningKey>,
    /// Times the polls.
    pub clock: Arc<Clock>,
    /// Gets every job that somebody asks in.
    pub touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
}

/// Polls for ever.
pub async fn run(fence: Fence) {
    let fence = Arc::new(fence);
    let client = ask::client();
    let places = Arc::new(Semaphore::new(POLLED_AT_ONCE_MAX));
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for target in due(&fence.table, &fence.reach, fence.clock.ticks()) {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let (fence, client) = (Arc::clone(&fence), client.clone());
            tokio::spawn(async move {
                attend(&fence, &client, &target).await;
                fence.table.is_polled(&target.pod_uid);
                drop(place);
            });
        }
    }
}

/// An agent to poll.
struct Target {
    job: ObjectRef<DeadlineJob>,
    pod_uid: String,
    /// Host and port.
    agent: String,
}

/// One poll, and the grant if there is one by then.
async fn attend(fence: &Fence, client: &ask::HttpClient, target: &Target) {
    let (table, uid) = (&fence.table, &target.pod_uid);
    match ask::poll(client, &target.agent, uid).await {
        Some(nonce) => {
            let is_asking = nonce.is_some();
            if table.take(uid, nonce, fence.clock.ticks()) {
                // A closed channel means that the process is ending.
                let _ = fence.touched.send(target.job.clone());
            }
            if !is_asking {
                return;
            }
        }
        None => {
            fence.metrics.fence_unanswered.inc();
            return table.is_silent(uid, fence.clock.ticks());
        }
    }
    let Some((grant, nonce)) = table.told(uid).await else {
        return;
    };
    let Ok(message) = fence.key.sign(uid, &nonce, &grant) else {
        return;
    };
    // The grant may be of a ledger that was undone: then this process ends, else the agent is asked anew.
    let leaving = ask::leave(client, &target.agent, message);
    match fence.doubt.unless_arisen(leaving).await {
        Some(true) => table.is_answered(uid),
        Some(false) => {
            fence.metrics.fence_unanswered.inc();
            table.is_silent(uid, fence.clock.ticks());
        }
        None => table.is_silent(uid, fence.clock.ticks()),
    }
}

/// Forgets attempts that are gone, takes in new ones, and says whom to poll now.
fn due(table: &FenceTable, reach: &Reach, now: Instant) -> Vec<Target> {
    let stores = reach.stores();
    let mut targets = Vec::new();
    let mut present = Vec::new();
    let mut entries = table.lock();
    for job in stores.live() {
        let Some(uid) = job.metadata.uid.as_deref() else {
            continue;
        };
        if job.spec.idempotency != Idempotency::Fenced {
            continue;
        }
        for pod in stores.attempts_of(&Owner::of(&job.metadata)).values() {
            let Some(agent) = address(reach, pod) else {
                continue;
            };
            present.push(pod.uid.clone());
            let entry = entries.entry(pod.uid.clone()).or_insert_with(|| Entry {
                job: uid.into(),
                ..Entry::default()
            });
            if entry.polling || entry.next.is_some_and(|next| now < next) {
                continue;
            }
            entry.polling = true;
            targets.push(Target {
                job: ObjectRef::from_obj(job.as_ref()),
                pod_uid: pod.uid.clone(),
                agent,
            });
        }
    }
    present.sort_unstable();
    entries.retain(|uid, _| present.binary_search(uid).is_ok());
    targets
}

/// Where to reach the agent of an attempt that may still publish.
fn address(reach: &Reach, pod: &PodFacts) -> Option<String> {
    let attempt = pod.attempt.as_ref()?;
    let runs = attempt.stage == Stage::Running && !attempt.deleting;
    let address = reach.address(pod).filter(|_| runs)?;
    Some(SocketAddr::new(address, AGENT_PORT).to_string())
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
            job: job.into(),
            asked: Some(asked),
            ..Entry::default()
        };
        self.lock().insert(pod_uid.to_owned(), entry);
    }

    /// What the attempt would be told now.
    pub fn told_for_tests(&self, pod_uid: &str) -> Option<CommitGrant> {
        self.lock().get(pod_uid)?.grant.clone()
    }
}

#[cfg(test)]
mod tests;
