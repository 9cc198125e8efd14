//! The attempts that a poller polls, and the times of the polls. Entries come and go with changes
//! that the watches report. A tick without changes and without a due poll visits no entry.

mod follower;
pub mod poll_addresses;
mod schedule;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use shed_core::time::Instant;

pub(crate) use self::follower::{Follower, lock};
use self::schedule::Schedule;
use crate::adopt::Jobs;
use crate::api::DeadlineJob;
use crate::cluster::identity::Owner;
use crate::cluster::pod::{AttemptFacts, AttemptId, PodFacts};

/// The rules of one kind of poll.
pub(crate) trait Rules {
    /// How the attempts of a job are polled.
    type Job;
    /// State of an attempt.
    type Attempt;
    /// Whether that is wanted after the attempt has stopped, until its pod is gone.
    const OUTLASTS: bool;

    /// How the job's attempts are polled; absent if they are not. `batch` holds the Jobs of companions.
    fn job(job: &Arc<DeadlineJob>, batch: Option<&Jobs>) -> Option<Self::Job>;

    /// Whether this change of a job may move the polls of its attempts.
    fn moves(before: &Self::Job, after: &Self::Job) -> bool;

    /// Initial state of an attempt.
    fn attempt(job: &DeadlineJob, attempt: &AttemptFacts, now: Instant) -> Self::Attempt;

    /// Since when the attempt should be polled.
    fn due(job: &Self::Job, id: AttemptId, attempt: &Self::Attempt) -> Instant;
}

/// An attempt, by the uids of its job and its pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Of the DeadlineJob.
    pub(crate) job: Arc<str>,
    /// Of the pod.
    pub(crate) pod: Arc<str>,
}

/// The attempts that are polled.
pub(crate) struct Table<R: Rules> {
    jobs: HashMap<Arc<str>, PolledJob<R>>,
    /// Uids of the jobs by the owner of their attempts.
    owners: HashMap<Owner, Arc<str>>,
    /// Attempts that may be polled and are not being polled.
    schedule: Schedule<Key>,
}

struct PolledJob<R: Rules> {
    owner: Owner,
    rule: R::Job,
    /// Uids of the pods that `attempts` has.
    pods: BTreeMap<AttemptId, Arc<str>>,
    attempts: BTreeMap<Arc<str>, Polled<R::Attempt>>,
}

struct Polled<A> {
    id: AttemptId,
    /// Its pod, while it may be polled.
    target: Option<Arc<PodFacts>>,
    /// Its time in the schedule.
    at: Option<Instant>,
    /// Whether a poll is under way.
    polling: bool,
    known: A,
}

impl<R: Rules> Default for Table<R> {
    fn default() -> Self {
        Self {
            jobs: HashMap::new(),
            owners: HashMap::new(),
            schedule: Schedule::new(),
        }
    }
}

impl<R: Rules> Table<R> {
    /// States of a job's attempts, by pod uid.
    pub(crate) fn of(&self, job: &str) -> impl Iterator<Item = (&str, &R::Attempt)> {
        let attempts = self.jobs.get(job).map(|job| &job.attempts);
        let attempts = attempts.into_iter().flatten();
        attempts.map(|(uid, polled)| (&**uid, &polled.known))
    }

    /// State of an attempt.
    pub(crate) fn get(&self, key: &Key) -> Option<&R::Attempt> {
        let polled = self.jobs.get(&key.job)?.attempts.get(&key.pod)?;
        Some(&polled.known)
    }

    /// Reads or changes the state of an attempt, by the rule of its job.
    pub(crate) fn change<T>(
        &mut self,
        key: &Key,
        change: impl FnOnce(&R::Job, &mut R::Attempt) -> T,
    ) -> Option<T> {
        self.touch(key, |rule, polled| change(rule, &mut polled.known))
    }

    /// Records that a poll has ended, and changes the state of the attempt.
    pub(crate) fn end_poll<T>(
        &mut self,
        key: &Key,
        change: impl FnOnce(&R::Job, &mut R::Attempt) -> T,
    ) -> Option<T> {
        self.touch(key, |rule, polled| {
            polled.polling = false;
            change(rule, &mut polled.known)
        })
    }

    /// Begins at most this many polls that are due, each with the place that its namespace gets.
    pub(crate) fn begin_polls<P>(
        &mut self,
        now: Instant,
        most: usize,
        place: impl FnMut(&Arc<str>) -> Option<P>,
    ) -> Vec<(Key, P)> {
        let taken = self.schedule.take(now, most, place);
        for (key, _) in &taken {
            let attempts = self.jobs.get_mut(&key.job).map(|job| &mut job.attempts);
            if let Some(polled) = attempts.and_then(|attempts| attempts.get_mut(&key.pod)) {
                polled.at = None;
                polled.polling = true;
            }
        }
        taken
    }

    /// When the first poll is due that is not under way.
    pub(crate) fn first_due(&self) -> Option<Instant> {
        self.schedule.first()
    }

    /// The pod of an attempt that may be polled, and its job's rule.
    pub(crate) fn target(&self, key: &Key) -> Option<(Arc<PodFacts>, &R::Job)> {
        let job = self.jobs.get(&key.job)?;
        let target = job.attempts.get(&key.pod)?.target.as_ref()?;
        Some((Arc::clone(target), &job.rule))
    }

    /// Ends a poll that could not be made. The attempt is not polled before its pod changes.
    pub(crate) fn suspend(&mut self, key: &Key) {
        self.touch(key, |_, polled| {
            polled.polling = false;
            polled.target = None;
        });
    }

    /// Changes an entry and moves it in the schedule.
    fn touch<T>(
        &mut self,
        key: &Key,
        change: impl FnOnce(&R::Job, &mut Polled<R::Attempt>) -> T,
    ) -> Option<T> {
        let job = self.jobs.get_mut(&key.job)?;
        let polled = job.attempts.get_mut(&key.pod)?;
        let changed = change(&job.rule, polled);
        let is_waiting = polled.target.is_some() && !polled.polling;
        let at = is_waiting.then(|| R::due(&job.rule, polled.id, &polled.known));
        if at != polled.at {
            let namespace = &job.owner.namespace;
            if let Some(before) = polled.at {
                self.schedule.remove(namespace, before, key.clone());
            }
            if let Some(at) = at {
                self.schedule.insert(namespace, at, key.clone());
            }
            polled.at = at;
        }
        Some(changed)
    }

    /// Takes a job's rule in. Returns whether each of its attempts must be visited.
    fn put_job(&mut self, owner: &Owner, uid: &Arc<str>, rule: R::Job) -> bool {
        // Another companion of the same Job, or the same job under another owner.
        if self.owners.get(owner).is_some_and(|known| known != uid) {
            self.forget_job(owner);
        }
        let before = self.jobs.get(uid).map(|job| job.owner.clone());
        if let Some(before) = before.filter(|before| before != owner) {
            self.forget_job(&before);
        }
        if let Some(job) = self.jobs.get_mut(uid) {
            let moves = R::moves(&job.rule, &rule);
            job.rule = rule;
            return moves;
        }
        self.owners.insert(owner.clone(), Arc::clone(uid));
        let job = PolledJob {
            owner: owner.clone(),
            rule,
            pods: BTreeMap::new(),
            attempts: BTreeMap::new(),
        };
        self.jobs.insert(Arc::clone(uid), job);
        true
    }

    /// Takes in the view of an attempt's pod, if there is a pod. `target` is the pod if it may be polled.
    fn put_attempt(
        &mut self,
        job: &Arc<str>,
        id: AttemptId,
        pod: Option<&PodFacts>,
        target: Option<Arc<PodFacts>>,
        known: impl FnOnce() -> Option<R::Attempt>,
    ) {
        let Some(own) = self.jobs.get_mut(job) else {
            return;
        };
        let before = own.pods.get(&id).cloned();
        let stays = pod.is_some() && (R::OUTLASTS || target.is_some());
        let uid: Option<Arc<str>> = match (&before, pod.filter(|_| stays)) {
            (Some(before), Some(pod)) if **before == *pod.uid => Some(Arc::clone(before)),
            (_, pod) => pod.map(|pod| pod.uid.as_str().into()),
        };
        if before != uid
            && let Some(pod) = before
        {
            let job = Arc::clone(job);
            self.forget_attempt(&Key { job, pod });
        }
        let (Some(pod), Some(own)) = (uid, self.jobs.get_mut(job)) else {
            return;
        };
        if !own.attempts.contains_key(&pod) {
            let Some(known) = target.as_ref().and_then(|_| known()) else {
                return;
            };
            own.pods.insert(id, Arc::clone(&pod));
            let polled = Polled {
                id,
                target: None,
                at: None,
                polling: false,
                known,
            };
            own.attempts.insert(Arc::clone(&pod), polled);
        }
        let job = Arc::clone(job);
        self.touch(&Key { job, pod }, |_, polled| polled.target = target);
    }

    fn forget_attempt(&mut self, key: &Key) {
        self.touch(key, |_, polled| polled.target = None);
        if let Some(job) = self.jobs.get_mut(&key.job)
            && let Some(polled) = job.attempts.remove(&key.pod)
        {
            job.pods.remove(&polled.id);
        }
    }

    /// Forgets a job and its attempts, and visits no other.
    fn forget_job(&mut self, owner: &Owner) {
        let Some(uid) = self.owners.remove(owner) else {
            return;
        };
        let Some(job) = self.jobs.remove(&uid) else {
            return;
        };
        for (pod, polled) in job.attempts {
            if let Some(at) = polled.at {
                let job = Arc::clone(&uid);
                let namespace = &owner.namespace;
                self.schedule.remove(namespace, at, Key { job, pod });
            }
        }
    }
}

#[cfg(test)]
impl<R: Rules> Table<R> {
    /// Everything that is known.
    pub(crate) fn all(&self) -> impl Iterator<Item = &R::Attempt> {
        let attempts = self.jobs.values().flat_map(|job| job.attempts.values());
        attempts.map(|polled| &polled.known)
    }

    /// An attempt that was polled, and no longer is.
    pub(crate) fn seed(&mut self, key: &Key, rule: R::Job, known: R::Attempt) {
        let owner = Owner {
            kind: crate::cluster::identity::OwnerKind::DeadlineJob,
            namespace: "n".into(),
            name: Arc::clone(&key.job),
            uid: Arc::clone(&key.job),
        };
        self.put_job(&owner, &key.job, rule);
        let Some(job) = self.jobs.get_mut(&key.job) else {
            return;
        };
        let id = (u32::try_from(job.attempts.len()).unwrap_or(u32::MAX), 0);
        job.pods.insert(id, Arc::clone(&key.pod));
        let polled = Polled {
            id,
            target: None,
            at: None,
            polling: false,
            known,
        };
        job.attempts.insert(Arc::clone(&key.pod), polled);
    }
}

#[cfg(test)]
impl Key {
    pub(crate) fn for_tests(job: &str, pod: &str) -> Self {
        Self {
            job: job.into(),
            pod: pod.into(),
        }
    }
}

#[cfg(test)]
mod tests;
