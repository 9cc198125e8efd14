//! Applies the changes of the watches to a table. Views are read without the table's lock, which is
//! held for a bounded number of entries at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use shed_core::time::Instant;

use crate::api::DeadlineJob;
use crate::cluster::Inbox;
use crate::cluster::identity::Owner;
use crate::cluster::pod::{AttemptId, PodFacts, Stage};
use crate::polling::poll_addresses::PollAddresses;
use crate::polling::{Rules, Table};

/// Attempts that are visited while the lock is held.
const CHUNK: usize = 256;

/// Follows the watches.
pub(crate) struct Follower {
    inbox: Arc<Inbox>,
    addresses: PollAddresses,
}

/// The number of jobs and attempts that a table was compared with.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visits {
    pub(crate) jobs: usize,
    pub(crate) attempts: usize,
}

impl Follower {
    /// Follows from now on; the first call visits everything.
    pub(crate) fn new(addresses: PollAddresses) -> Self {
        Self {
            inbox: addresses.stores().subscribe(),
            addresses,
        }
    }

    /// Where attempts may be polled.
    pub(crate) fn addresses(&self) -> &PollAddresses {
        &self.addresses
    }

    /// Takes in the changes since the last call.
    pub(crate) fn follow<R: Rules>(&self, table: &Mutex<Table<R>>, now: Instant) -> Visits {
        let changes = self.inbox.drain();
        let mut visits = Visits::default();
        if changes.all {
            for owner in self.everything(table) {
                self.follow_job(table, &owner, None, now, &mut visits);
            }
        }
        for (owner, attempts) in &changes.jobs {
            self.follow_job(table, owner, Some(attempts), now, &mut visits);
        }
        visits
    }

    /// Owners of attempts of jobs that exist or existed.
    fn everything<R: Rules>(&self, table: &Mutex<Table<R>>) -> BTreeSet<Owner> {
        let live = self.addresses.stores().jobs.live();
        let mut owners: BTreeSet<Owner> = live.iter().map(|job| Owner::of(&job.metadata)).collect();
        owners.extend(lock(table).owners.keys().cloned());
        owners
    }

    /// Visits these attempts of a job, or all.
    fn follow_job<R: Rules>(
        &self,
        table: &Mutex<Table<R>>,
        owner: &Owner,
        attempts: Option<&BTreeSet<AttemptId>>,
        now: Instant,
        visits: &mut Visits,
    ) {
        visits.jobs += 1;
        let stores = self.addresses.stores();
        let polled = stores.jobs.live_job_of(owner).and_then(|job| {
            let rule = R::job(&job, stores.jobs.batch())?;
            Some((job.metadata.uid.as_deref()?.into(), rule, job))
        });
        let Some((uid, rule, job)) = polled else {
            return lock(table).forget_job(owner);
        };
        let is_whole = lock(table).put_job(owner, &uid, rule);
        let ids: Vec<AttemptId> = match attempts.filter(|_| !is_whole) {
            Some(attempts) => attempts.iter().copied().collect(),
            None => self.all_attempts(table, owner, &uid),
        };
        for chunk in ids.chunks(CHUNK) {
            visits.attempts += chunk.len();
            self.visit(table, owner, (&uid, &job), chunk, now);
        }
    }

    /// Attempts with a pod, and those in the table.
    fn all_attempts<R: Rules>(
        &self,
        table: &Mutex<Table<R>>,
        owner: &Owner,
        job: &str,
    ) -> Vec<AttemptId> {
        let pods = self.addresses.stores().pods.attempts_of(owner);
        let mut ids: BTreeSet<AttemptId> = pods.into_keys().collect();
        let table = lock(table);
        let known = table.jobs.get(job).map(|job| job.pods.keys().copied());
        ids.extend(known.into_iter().flatten());
        ids.into_iter().collect()
    }

    fn visit<R: Rules>(
        &self,
        table: &Mutex<Table<R>>,
        owner: &Owner,
        (uid, job): (&Arc<str>, &DeadlineJob),
        ids: &[AttemptId],
        now: Instant,
    ) {
        let pods = self.addresses.stores().pods.of_attempts(owner, ids);
        let targets: Vec<bool> = pods
            .iter()
            .map(|pod| self.is_target(pod.as_deref()))
            .collect();
        let mut table = lock(table);
        for ((&id, pod), is_target) in ids.iter().zip(&pods).zip(targets) {
            let known = || {
                let attempt = pod.as_ref()?.attempt.as_ref()?;
                Some(R::attempt(job, attempt, now))
            };
            let target = pod.as_ref().filter(|_| is_target).cloned();
            table.put_attempt(uid, id, pod.as_deref(), target, known);
        }
    }

    /// Whether the attempt runs where it may be polled.
    fn is_target(&self, pod: Option<&PodFacts>) -> bool {
        let attempt = pod.and_then(|pod| pod.attempt.as_ref());
        let runs = attempt.is_some_and(|at| at.stage == Stage::Running && !at.deleting);
        runs && pod.and_then(|pod| self.addresses.address(pod)).is_some()
    }
}

// A panic while the lock was held leaves entries that the next change of their pods mends.
pub(crate) fn lock<R: Rules>(table: &Mutex<Table<R>>) -> MutexGuard<'_, Table<R>> {
    table.lock()
}
