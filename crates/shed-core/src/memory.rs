//! The planner's memory from pass to pass. Everything else follows from the snapshot: a task was flagged as a
//! straggler if it has a clone, a prune is due while two attempts report, a retry is due while none lives.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::estimate::history::{History, JobTimes, Lesson};
use crate::estimate::sample::Sample;
use crate::float;
use crate::ids::{JobClass, JobKey, NodeName, Tenant};
use crate::snapshot::Snapshot;
use crate::time::{Instant, Span};

mod arrivals;
mod clone_gains;
mod experience;
mod restarts;
mod shown_times;
mod tenant_use;

pub use arrivals::{Arrival, Arrivals};
pub use clone_gains::{CloneGains, Pair};
pub use experience::{Durable, Experience, Invalid};
pub use restarts::Restarts;
pub use shown_times::{ShownSums, ShownTime, ShownTimes};
pub use tenant_use::{TenantRecord, TenantUse};

/// The memory of the planner; entries of jobs that are gone are dropped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Memory {
    jobs: BTreeMap<JobKey, JobMemory>,
    /// The policy's memory of jobs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    states: BTreeMap<JobKey, PolicyState>,
    /// Nodes that were slow recently. They need not survive a failover, because the next reports from a slow node
    /// show it again. (Recordings from before the reporting tenants were kept have `slow_nodes`, which is ignored.)
    #[serde(default)]
    slow_by_tenant: SlowNodes,
    /// What tenants have used of the capacity within the last hour. It need not survive a failover: a loss costs the
    /// credit of an hour.
    #[serde(default, skip_serializing_if = "TenantUse::is_none")]
    tenant_use: TenantUse,
    /// What was learned from past jobs. It survives a failover if the executor stores it ([`Memory::durable`]). If it
    /// is lost, the planner begins with its priors and with the times of the finished jobs that still exist.
    #[serde(flatten)]
    experience: Experience,
}

/// Nodes that were slow recently, by the tenant whose attempts show it.
pub type SlowNodes = BTreeMap<NodeName, BTreeMap<Tenant, NodeSlowness>>;

/// The observed slowness of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NodeSlowness {
    /// Mean ln(time of an attempt there over the median of its job).
    #[serde(with = "float")]
    pub ln_ratio: f64,
    /// The number of attempts behind that value.
    #[serde(with = "float")]
    pub weight: f64,
    /// When it was observed.
    pub seen: Instant,
}

/// The memory of one job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobMemory {
    /// When the policy last acted on the job. It need not survive a failover: a loss costs one run too early.
    #[serde(default)]
    pub last_optimized: Option<Instant>,
}

/// A policy's memory of one job, as text that only that policy can read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PolicyState {
    /// The durable part, in the job's ledger; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub durable: String,
    /// The part that may be lost: the policy then acts once too early, or too late.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub transient: String,
}

impl PolicyState {
    /// Whether the memory is empty.
    pub fn is_empty(&self) -> bool {
        self.durable.is_empty() && self.transient.is_empty()
    }
}

/// A finished job that still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastJob {
    /// When it ended.
    pub ended: Instant,
    /// The job.
    pub key: JobKey,
    /// The job's tenant.
    pub tenant: Tenant,
    /// The class in which the job recurs.
    pub class: JobClass,
    /// Times of the job's last winners.
    pub runs: Vec<Span>,
}

impl Memory {
    /// The memory of a planner that has just started: the experience of the planner before, the lessons of finished
    /// jobs that it does not have yet, in the order of their ends, and the durable state of unfinished jobs.
    pub fn restored(
        stored: Durable,
        mut past: Vec<PastJob>,
        durable: impl IntoIterator<Item = (JobKey, String)>,
    ) -> Self {
        past.retain(|job| job.ended > stored.as_of);
        past.sort_by(|a, b| (a.ended, &a.key).cmp(&(b.ended, &b.key)));
        let mut experience = stored.experience;
        let mut history = std::mem::take(&mut experience.history);
        for job in past {
            let runs: Vec<f64> = job.runs.iter().map(|run| run.seconds()).collect();
            let times = JobTimes::new(&Sample::new(&runs, &[]));
            let lesson = Lesson {
                tenant: job.tenant,
                class: job.class,
                times,
            };
            let seen = history.after(job.ended, [(job.key, lesson)]);
            // The job teaches once it is gone.
            history = seen.after(job.ended, []);
        }
        let states = durable.into_iter().map(|(key, durable)| {
            let state = PolicyState {
                durable,
                ..PolicyState::default()
            };
            (key, state)
        });
        Self {
            states: states.collect(),
            experience: Experience {
                history,
                ..experience
            },
            ..Self::default()
        }
    }

    /// The experience at `now`, the time of the last pass, for the planner of the next leader.
    pub fn durable(&self, now: Instant) -> Durable {
        Durable {
            as_of: now,
            experience: self.experience.of_past_jobs(),
        }
    }

    /// The jobs with a state of their policy that must survive a failover.
    pub fn durable_states(&self) -> impl Iterator<Item = (&JobKey, &str)> {
        let all = self.states.iter();
        let all = all.map(|(key, state)| (key, state.durable.as_str()));
        all.filter(|(_, durable)| !durable.is_empty())
    }

    /// The policy's memory of a job.
    pub fn state(&self, key: &JobKey) -> Option<&PolicyState> {
        self.states.get(key)
    }

    /// Stores the policy's memory of a job.
    pub fn set_state(&mut self, key: JobKey, state: PolicyState) {
        if state.is_empty() {
            self.states.remove(&key);
        } else {
            self.states.insert(key, state);
        }
    }

    /// The memory of a job.
    pub fn job(&self, key: &JobKey) -> JobMemory {
        self.jobs.get(key).cloned().unwrap_or_default()
    }

    /// Forgets jobs that are gone, and returns them.
    pub(crate) fn forget(&mut self, gone: Vec<JobKey>) -> Vec<JobKey> {
        for key in &gone {
            self.jobs.remove(key);
            self.states.remove(key);
        }
        self.experience.clone_gains.forget(|key| gone.contains(key));
        gone
    }

    /// Forgets all other jobs, and returns those that had lessons.
    pub(crate) fn keep_only(&mut self, present: &[&JobKey]) -> Vec<JobKey> {
        let present: BTreeSet<&JobKey> = present.iter().copied().collect();
        self.jobs.retain(|key, _| present.contains(key));
        self.states.retain(|key, _| present.contains(key));
        self.experience
            .clone_gains
            .forget(|key| !present.contains(key));
        let left = self.experience.history.under_way();
        left.filter(|key| !present.contains(key)).cloned().collect()
    }

    /// Learns the times of these jobs, and what the jobs that are gone have taught.
    pub(crate) fn teach(
        &mut self,
        now: Instant,
        jobs: Vec<(JobKey, Option<Lesson>)>,
        gone: &[JobKey],
    ) {
        self.experience.history.learn(now, jobs, gone);
    }

    /// Stores the memory of a job.
    pub fn set(&mut self, key: JobKey, job: JobMemory) {
        self.jobs.insert(key, job);
    }

    /// The node's slowness and the tenants whose attempts show it, if it is remembered as slow.
    pub fn slow_node(&self, name: &NodeName) -> Option<&BTreeMap<Tenant, NodeSlowness>> {
        self.slow_by_tenant.get(name)
    }

    /// What tenants have used of the capacity lately.
    pub fn tenant_use(&self) -> &TenantUse {
        &self.tenant_use
    }

    /// Replaces it.
    pub fn set_tenant_use(&mut self, tenant_use: TenantUse) {
        self.tenant_use = tenant_use;
    }

    /// Replaces the remembered slow nodes.
    pub fn set_slow_nodes(&mut self, slow_nodes: SlowNodes) {
        self.slow_by_tenant = slow_nodes;
    }

    /// Whether a remembered job is no longer in the snapshot.
    pub(crate) fn has_departed(&self, snapshot: &Snapshot) -> bool {
        let present: BTreeSet<&JobKey> = snapshot.jobs.iter().map(|job| &job.key).collect();
        self.jobs.keys().any(|key| !present.contains(key))
    }

    /// The times of earlier jobs.
    pub fn history(&self) -> &History {
        &self.experience.history
    }

    /// The results of attempts on nodes where slow ones were given up.
    pub fn restarts(&self) -> &Restarts {
        &self.experience.restarts
    }

    /// Replaces these results.
    pub fn set_restarts(&mut self, restarts: Restarts) {
        self.experience.restarts = restarts;
    }

    /// The demands of the jobs that arrived lately.
    pub fn arrivals(&self) -> &Arrivals {
        &self.experience.arrivals
    }

    /// Replaces these demands.
    pub fn set_arrivals(&mut self, arrivals: Arrivals) {
        self.experience.arrivals = arrivals;
    }

    /// What clones have gained.
    pub fn clone_gains(&self) -> &CloneGains {
        &self.experience.clone_gains
    }

    /// Replaces what clones have gained.
    pub fn set_clone_gains(&mut self, clone_gains: CloneGains) {
        self.experience.clone_gains = clone_gains;
    }

    /// The task times that recent jobs have shown.
    pub fn shown_times(&self) -> &ShownTimes {
        &self.experience.shown_times
    }

    /// Replaces these times.
    pub fn set_shown_times(&mut self, shown_times: ShownTimes) {
        self.experience.shown_times = shown_times;
    }

    /// The number of remembered jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether no job is remembered.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(key: &str, ended: i64, runs: &[i64]) -> PastJob {
        PastJob {
            ended: Instant(ended),
            key: JobKey::from(key),
            tenant: Tenant::from("ours"),
            class: JobClass::from("nightly"),
            runs: runs
                .iter()
                .map(|&seconds| Span::from_seconds(seconds))
                .collect(),
        }
    }

    #[test]
    fn memory_restored_from_finished_jobs_ignores_their_order() {
        let (a, b) = (past("a", 10, &[20, 40]), past("b", 5, &[30]));
        let nothing = Durable::default();
        let memory = Memory::restored(nothing.clone(), vec![a.clone(), b.clone()], []);
        let class = JobClass::from("nightly");
        let least = memory.history().least(Some(&class)).unwrap();
        // The geometric mean of 20 and 30.
        assert!((least - 600f64.sqrt()).abs() < 1e-9, "{least}");
        assert_eq!(memory, Memory::restored(nothing, vec![b, a], []));
    }

    fn stored() -> Durable {
        let mut memory = Memory::restored(Durable::default(), vec![past("a", 10, &[20])], []);
        let mut arrivals = Arrivals::default();
        for at in 0..10 {
            let arrival = Arrival {
                submitted: Instant(at),
                volume: 2.0,
            };
            arrivals.note(
                &JobKey::from(&*format!("j{at}")),
                &Tenant::from("ours"),
                arrival,
            );
        }
        memory.set_arrivals(arrivals);
        memory.durable(Instant(15))
    }

    #[test]
    fn a_finished_job_teaches_once_though_its_ledger_is_there() {
        let ended = vec![past("a", 10, &[20]), past("b", 20, &[80])];
        let memory = Memory::restored(stored(), ended, []);
        let least = memory.history().least(Some(&JobClass::from("nightly")));
        // The geometric mean of 20 and 80, each once.
        assert!((least.unwrap() - 40.0).abs() < 1e-9, "{least:?}");
        assert_eq!(memory.arrivals().iter().count(), 10);
    }

    #[test]
    fn jobs_that_have_not_ended_are_not_stored() {
        let (mut memory, key) = (Memory::default(), JobKey::from("a"));
        let lesson = Lesson {
            tenant: Tenant::from("ours"),
            class: JobClass::from("nightly"),
            times: JobTimes::new(&Sample::new(&[20.0], &[])),
        };
        memory.teach(Instant(0), vec![(key.clone(), Some(lesson))], &[]);
        assert!(memory.durable(Instant(0)).experience.is_empty());
        memory.teach(Instant(1), vec![], &[key]);
        // A tenant and a class.
        assert_eq!(memory.durable(Instant(1)).experience.len(), 2);
    }

    #[test]
    fn what_is_too_much_is_dropped_oldest_first() {
        let mut experience = stored().experience;
        experience.keep(1.0);
        assert_eq!(experience, stored().experience);
        experience.keep(0.55);
        assert_eq!(experience.arrivals.first(), Some(Instant(5)));
        assert_eq!(experience.len(), 5, "a single class is dropped");
        experience.keep(0.0);
        assert!(experience.is_empty());
    }

    #[test]
    fn the_stored_text_is_read_back_and_checked() {
        let text = serde_json::to_string(&stored()).unwrap();
        let read: Durable = serde_json::from_str(&text).unwrap();
        assert_eq!(read, stored());
        assert_eq!(read.experience.check(), Ok(()));
        for (field, from, to) in [
            ("history", "\"ended\":[20000]", "\"ended\":[-1]"),
            ("history", "\"excess\":", "\"excess\":-"),
            ("arrivals", "\"volume\":2.0", "\"volume\":\"NaN\""),
        ] {
            let edited = text.replacen(from, to, 1);
            assert_ne!(edited, text, "{from}");
            let read: Durable = serde_json::from_str(&edited).unwrap();
            assert_eq!(read.experience.check(), Err(Invalid(field)), "{to}");
        }
    }

    #[test]
    fn a_memory_of_before_is_read_and_its_text_has_not_changed() {
        let memory = Memory::restored(stored(), vec![], []);
        let text = serde_json::to_string(&memory).unwrap();
        assert!(
            text.contains(r#""slow_by_tenant":{},"history":{"tenants""#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
        let bare: Memory = serde_json::from_str(r#"{"jobs":{}}"#).unwrap();
        assert_eq!(bare, Memory::default());
    }

    #[test]
    fn durable_states_are_remembered_again() {
        let memory = Memory::restored(
            Durable::default(),
            vec![],
            [(JobKey::from("a"), "3".to_owned())],
        );
        let state = memory.state(&JobKey::from("a")).unwrap();
        assert_eq!((&*state.durable, &*state.transient), ("3", ""));
        let durable: Vec<_> = memory.durable_states().collect();
        assert_eq!(durable, [(&JobKey::from("a"), "3")]);
    }
}
