//! I11: while there is capacity for it, no launch waits for more than two planning passes. A wait
//! is counted in passes and not in seconds, so that a slow machine breaks nothing: a pass counts
//! only if the operator had been shown that there is capacity before it, and had recorded no
//! launch after it.
//!
//! I12: while a webhook of one namespace is slow, no launch and no kill of another one waits for it.
//! An operator that waits plans no more, so that passes tell nothing. Counted are the ticks
//! ([`super::super::environment`]) that it was shown, each a reason for a pass, as long as it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use shed::api::{DeadlineJob, Ledger};
use shed::size::{OBJECT_MAX, bytes};
use shed_core::ids::TaskIndex;

use super::{AttemptId, attempts, holds, id};
use crate::campaign::foreign::{self, is_foreign};
use crate::campaign::history::{Change, Entry};
use crate::campaign::passes::Sample;
use crate::campaign::states::is_refused;
use crate::jobs::node_of;
use crate::wait::{is_deleted, is_over, phase};

/// Passes that a launch may wait for.
const PASSES: u64 = 2;
/// One more may have been under way when capacity came free, and the one that launches is counted
/// as soon as it has decided.
const UNCERTAIN: u64 = 2;
/// Under a ResourceQuota the apiserver counts the end of a pod when it comes to it, and says no
/// until then.
const PASSES_UNDER_QUOTA: u64 = 10;
/// Ticks that an operator is shown in the time of as many passes: at least one pass in two.
const TICKS: u64 = 2 * (PASSES + UNCERTAIN);
/// Pods that cannot be placed or created are certainly known as such after this time.
const TROUBLE_KNOWN: Duration = Duration::from_secs(15);

/// The number of attempts that fit into the capacity.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// Attempts at once, in all.
    pub attempts: usize,
    /// The nodes of the run and how many pods each takes, if it has nodes of its own.
    pub nodes: Vec<(String, usize)>,
    /// A node that takes no more pods, and since which resourceVersion.
    pub unusable: Option<(String, u64)>,
    /// A namespace that may have this many pods.
    pub quota: Option<(String, usize)>,
    /// Jobs whose attempts can't be placed or created.
    pub troubled: BTreeSet<String>,
    /// The namespace whose webhook is slow: its own jobs may wait.
    pub slow: Option<String>,
}

/// When the operator knew of what, and what it did then.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// When a version was shown to it, or had been received by the history if it was not.
    pub shown: BTreeMap<u64, Instant>,
    /// When it sent the write that left this version.
    pub sent: BTreeMap<u64, Instant>,
    /// Its passes.
    pub passes: Vec<Sample>,
}

/// Due work by its owner, with a number that changes once it was done.
type Due = BTreeMap<String, i64>;

/// The longest wait of one job: passes, and the version at which they were counted.
type Longest = BTreeMap<String, (u64, u64)>;

/// The launches that waited for too many passes, in words.
pub fn waits(entries: &[Entry], capacity: &Capacity, evidence: &Evidence) -> Vec<String> {
    let due = |world: &World, now| world.launchable(capacity, now);
    let allowed = |world: &World, job: &str| world.allowed(job, capacity) + UNCERTAIN;
    let (broken, world) = too_long(entries, evidence, &evidence.passes, due, allowed);
    let reported = broken.into_iter().map(|(job, (passes, version))| {
        format!(
            "at {version}: I11: a launch of {} waited {} passes, and there was capacity",
            world.name_of(&job),
            passes - UNCERTAIN
        )
    });
    reported.collect()
}

/// The launches and kills that waited for another namespace's webhook, in words.
pub fn outlasted(entries: &[Entry], capacity: &Capacity, evidence: &Evidence) -> Vec<String> {
    if capacity.slow.is_none() {
        return vec![];
    }
    let ticks = ticks(entries, evidence);
    let due = |world: &World, now| {
        let mut due = Due::new();
        for (job, launched) in world.launchable(capacity, now) {
            due.insert(format!("a launch of {}", world.name_of(&job)), launched);
        }
        due.extend(world.kills_due(capacity));
        due
    };
    let (broken, _) = too_long(entries, evidence, &ticks, due, |_, _| TICKS);
    let reported = broken.into_iter().map(|(what, (count, version))| {
        format!(
            "at {version}: I12: {what} waited while {count} passes were due, though only another \
             namespace's webhook was slow"
        )
    });
    reported.collect()
}

/// Work that was due for more passes than allowed, and the world at the end.
fn too_long(
    entries: &[Entry],
    evidence: &Evidence,
    samples: &[Sample],
    due: impl Fn(&World, Instant) -> Due,
    allowed: impl Fn(&World, &str) -> u64,
) -> (Longest, World) {
    let (early, late) = times(entries, evidence);
    let (mut known, mut done) = (World::default(), World::default());
    let mut waiting: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    let mut broken = Longest::new();
    for pair in samples.windows(2) {
        let [before, after] = pair else { continue };
        known.advance(entries, &late, before.from);
        done.advance(entries, &early, after.to);
        let still = due(&done, after.to);
        let mut now = BTreeMap::new();
        for (what, mark) in due(&known, before.from) {
            if still.get(&what) != Some(&mark) {
                continue;
            }
            let earlier = waiting.remove(&what).filter(|(old, _)| *old == mark);
            let so_far = earlier.map_or(0, |(_, passes)| passes);
            let passes = so_far + after.count.saturating_sub(before.count);
            if passes > allowed(&known, &what) {
                broken.insert(what.clone(), (passes, known.version));
            }
            now.insert(what, (mark, passes));
        }
        waiting = now;
    }
    (broken, known)
}

/// When the operator was shown each tick. One between which it answered nothing does not count: the
/// machine stood still.
fn ticks(entries: &[Entry], evidence: &Evidence) -> Vec<Sample> {
    let ticks = entries.iter().filter(|entry| match &entry.change {
        Change::Pod(pod) => pod.name_any() == foreign::TICKER,
        _ => false,
    });
    let shown = ticks.filter_map(|entry| evidence.shown.get(&entry.version));
    let mut samples: Vec<Sample> = Vec::new();
    for &at in shown {
        let (since, so_far) = samples.last().map_or((at, 0), |last| (last.to, last.count));
        let mut answers = evidence.passes.iter();
        let answered = answers.any(|answer| answer.from >= since && answer.to <= at);
        samples.push(Sample {
            from: at,
            to: at,
            count: so_far + u64::from(answered),
        });
    }
    samples
}

/// For each entry the moment at which it was so at the earliest, and that at which the operator
/// knew of it and of all before it.
fn times(entries: &[Entry], evidence: &Evidence) -> (Vec<Option<Instant>>, Vec<Option<Instant>>) {
    let shown = |entry: &Entry| evidence.shown.get(&entry.version).copied();
    let mut late = Vec::with_capacity(entries.len());
    let mut latest = None;
    for entry in entries {
        latest = latest.max(shown(entry));
        late.push(latest);
    }
    let mut early = vec![None; entries.len()];
    let mut earliest: Option<Instant> = None;
    for (entry, early) in entries.iter().zip(&mut early).rev() {
        let sent = evidence.sent.get(&entry.version).copied();
        let own = sent.or(shown(entry));
        earliest = match (earliest, own) {
            (Some(earliest), Some(own)) => Some(earliest.min(own)),
            (earliest, own) => earliest.or(own),
        };
        *early = earliest;
    }
    (early, late)
}

/// Jobs and pods as they are at one moment.
#[derive(Default)]
struct World {
    next: usize,
    version: u64,
    jobs: BTreeMap<String, (DeadlineJob, Ledger)>,
    pods: BTreeMap<String, Pod>,
    /// When an attempt was first there.
    since: BTreeMap<AttemptId, Instant>,
    names: BTreeMap<String, String>,
}

impl World {
    /// Takes in what was so by `until`.
    fn advance(&mut self, entries: &[Entry], times: &[Option<Instant>], until: Instant) {
        while let (Some(entry), Some(at)) = (entries.get(self.next), times.get(self.next)) {
            if at.is_some_and(|at| at > until) {
                return;
            }
            self.next += 1;
            self.version = entry.version;
            self.take(&entry.change, at.unwrap_or(until));
        }
    }

    fn take(&mut self, change: &Change, at: Instant) {
        match change {
            Change::Job(job) => {
                let uid = job.uid().unwrap_or_default();
                let ledger = Ledger::from_status(job.status.as_ref()).unwrap_or_default();
                for (task, number) in attempts(&ledger).into_keys() {
                    self.since.entry((uid.clone(), task, number)).or_insert(at);
                }
                self.names.insert(uid.clone(), job.name_any());
                self.jobs.insert(uid, ((**job).clone(), ledger));
            }
            Change::JobGone(job) => drop(self.jobs.remove(&job.uid().unwrap_or_default())),
            Change::Pod(pod) => {
                self.pods
                    .insert(pod.uid().unwrap_or_default(), (**pod).clone());
            }
            Change::PodGone(pod) => drop(self.pods.remove(&pod.uid().unwrap_or_default())),
            Change::Batch(_) | Change::BatchGone(_) => {}
        }
    }

    fn name_of(&self, uid: &str) -> String {
        self.names.get(uid).cloned().unwrap_or_default()
    }

    fn allowed(&self, uid: &str, capacity: &Capacity) -> u64 {
        match self.is_under_quota(uid, capacity) {
            true => PASSES_UNDER_QUOTA,
            false => PASSES,
        }
    }

    fn is_under_quota(&self, uid: &str, capacity: &Capacity) -> bool {
        let namespace = self.jobs.get(uid).and_then(|(job, _)| job.namespace());
        let quota = capacity.quota.as_ref();
        quota.is_some_and(|(limited, _)| Some(limited) == namespace.as_ref())
    }

    /// Jobs that could launch an attempt at once, and how many each has launched.
    fn launchable(&self, capacity: &Capacity, now: Instant) -> Due {
        if self.free(capacity, now) == 0 {
            return BTreeMap::new();
        }
        let quota_left = self.quota_left(capacity);
        let jobs = self.jobs.iter().filter(|(uid, (job, ledger))| {
            let under_quota = self.is_under_quota(uid, capacity);
            !is_slow(job, capacity)
                && !capacity.troubled.contains(&job.name_any())
                // Launches must fit into the object, and a user has filled this one.
                && bytes(job) <= OBJECT_MAX
                && (!under_quota || quota_left > 0)
                && lacks_attempt(job, ledger, under_quota)
        });
        jobs.map(|(uid, (_, ledger))| (uid.clone(), ledger.counts.launched()))
            .collect()
    }

    /// Attempts that must die for a sibling that has succeeded, of jobs whose namespace is not slow.
    fn kills_due(&self, capacity: &Capacity) -> Due {
        let has_won = |attempt: &AttemptId| {
            let mut pods = self.pods.values().filter(|pod| !is_deleted(pod));
            pods.any(|pod| {
                let own = id(pod);
                let same = own.is_some_and(|own| (&own.0, own.1) == (&attempt.0, attempt.1));
                same && phase(pod) == "Succeeded"
            })
        };
        let losers = self.pods.values().filter(|pod| {
            let Some(attempt) = id(pod).filter(|_| holds(pod) && !is_deleted(pod)) else {
                return false;
            };
            let job = self.jobs.get(&attempt.0).map(|(job, _)| job);
            let is_there = |job: &&DeadlineJob| job.metadata.deletion_timestamp.is_none();
            job.filter(is_there)
                .is_some_and(|job| !is_slow(job, capacity) && has_won(&attempt))
        });
        losers
            .map(|pod| (format!("the kill of {}", pod.name_any()), 0))
            .collect()
    }

    fn quota_left(&self, capacity: &Capacity) -> usize {
        let Some((namespace, most)) = &capacity.quota else {
            return usize::MAX;
        };
        let counted = self
            .pods
            .values()
            .filter(|pod| pod.namespace().as_ref() == Some(namespace) && !is_over(pod));
        most.saturating_sub(counted.count())
    }

    /// How many attempts there is capacity for at once.
    fn free(&self, capacity: &Capacity, now: Instant) -> usize {
        let (mut on, mut unplaced) = (BTreeMap::new(), 0);
        for (attempt, node) in self.holders() {
            match node {
                Some(node) => *on.entry(node).or_default() += 1,
                None if self.is_harmless(&attempt, capacity, now) => {}
                None => unplaced += 1,
            }
        }
        if capacity.nodes.is_empty() {
            let placed: usize = on.into_values().sum();
            return capacity.attempts.saturating_sub(placed + unplaced);
        }
        let usable = capacity.nodes.iter().filter(|(name, _)| {
            let unusable = capacity.unusable.as_ref();
            unusable.is_none_or(|(node, since)| node != name || self.version < *since)
        });
        let left = usable.map(|(name, takes)| {
            let held: usize = on.get(name.as_str()).copied().unwrap_or(0);
            takes.saturating_sub(held)
        });
        left.sum::<usize>().saturating_sub(unplaced)
    }

    /// Attempts that hold capacity, each with the node where it does: those in ledgers, and those
    /// whose pods are not gone or have not ended.
    fn holders(&self) -> BTreeMap<AttemptId, Option<&str>> {
        let mut holders = BTreeMap::new();
        for (uid, (_, ledger)) in &self.jobs {
            for (task, number) in attempts(ledger).into_keys() {
                holders.insert((uid.clone(), task, number), None);
            }
        }
        for pod in self.pods.values().filter(|pod| !is_foreign(pod)) {
            let Some(attempt) = id(pod) else { continue };
            if holds(pod) || is_deleted(pod) || holders.contains_key(&attempt) {
                holders.insert(attempt, node_of(pod));
            }
        }
        holders
    }

    /// Whether an attempt without a node is known to be one that can't be placed or created.
    fn is_harmless(&self, attempt: &AttemptId, capacity: &Capacity, now: Instant) -> bool {
        let is_troubled = capacity.troubled.contains(&self.name_of(&attempt.0));
        let since = self.since.get(attempt);
        is_troubled && since.is_some_and(|since| now.duration_since(*since) >= TROUBLE_KNOWN)
    }
}

fn is_slow(job: &DeadlineJob, capacity: &Capacity) -> bool {
    capacity.slow.is_some() && job.namespace() == capacity.slow
}

/// Whether a job has a task that no attempt was launched for, and nothing in its own state keeps
/// it from that. Companions have their tasks in another object and are left out.
fn lacks_attempt(job: &DeadlineJob, ledger: &Ledger, retries_too: bool) -> bool {
    let spec = &job.spec;
    let is_over = ledger.ending.is_some() || ledger.finished || is_refused(job);
    let is_leaving = job.metadata.deletion_timestamp.is_some();
    if is_over || is_leaving || spec.is_companion() || spec.suspend {
        return false;
    }
    let completions = u32::try_from(spec.completions).unwrap_or(0);
    let open = attempts(ledger).len();
    let most = spec
        .parallelism
        .map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
    let is_waiting = |index: u32| {
        let task = ledger.tasks.get(&index);
        let is_new = task.is_none_or(|task| task.next_attempt == 0);
        let may_retry =
            retries_too && task.is_none_or(|task| task.attempts.is_empty() && task.failures == 0);
        let is_settled =
            ledger.done.contains(TaskIndex(index)) || ledger.failed.contains(TaskIndex(index));
        !is_settled && (is_new || may_retry)
    };
    open < most && (0..completions).any(is_waiting)
}

#[cfg(test)]
mod tests;
