//! What a pass has learned, for the planner's memory.

use crate::estimate::history::Lesson;
use crate::ids::JobKey;
use crate::memory::{
    Arrivals, CloneGains, JobMemory, Memory, PolicyState, Restarts, ShownTimes, SlowNodes,
    TenantUse,
};
use crate::round::job_distribution::lesson;
use crate::round::{JobView, Round};
use crate::snapshot::Snapshot;
use crate::time::Instant;

/// What a pass has learned.
pub(crate) struct MemoryUpdate {
    now: Instant,
    slow_nodes: SlowNodes,
    restarts: Restarts,
    arrivals: Arrivals,
    clone_gains: CloneGains,
    shown_times: ShownTimes,
    tenant_use: TenantUse,
    /// The jobs that the pass looked at, and those of a class whose facts have changed.
    jobs: Vec<(JobKey, Option<Lesson>)>,
    /// Those that the policy acted on.
    acted: Vec<(JobKey, JobMemory)>,
    states: Vec<(JobKey, PolicyState)>,
    /// The jobs of the pass before that are gone; absent if every job was looked at, so that all others are.
    gone: Option<Vec<JobKey>>,
}

impl MemoryUpdate {
    /// Those about the cluster.
    pub(super) fn of(round: &mut Round<'_>) -> Self {
        Self {
            now: round.snapshot.now,
            slow_nodes: std::mem::take(&mut round.beliefs.remembered),
            restarts: std::mem::take(&mut round.restarts),
            arrivals: std::mem::take(&mut round.arrivals),
            clone_gains: std::mem::take(&mut round.clone_gains),
            shown_times: std::mem::take(&mut round.shown_times),
            tenant_use: std::mem::take(&mut round.shares).records(round.snapshot.now),
            jobs: Vec::new(),
            acted: Vec::new(),
            states: Vec::new(),
            gone: std::mem::take(&mut round.gone),
        }
    }

    /// Those of a job that the pass looked at. A changed job of a class teaches without a look, because it may be gone
    /// before the next one.
    pub(super) fn add(&mut self, now: Instant, state: &JobView<'_>) {
        let is_taught = state.has_changed() && state.job.class.is_some();
        if !state.is_looked_at() && !is_taught {
            return;
        }
        let key = &state.job.key;
        let lesson = lesson(state.job, &state.estimate);
        self.jobs.push((key.clone(), lesson));
        if state.is_looked_at() && state.has_run() {
            let job = JobMemory {
                last_optimized: Some(now),
            };
            self.acted.push((key.clone(), job));
        }
    }

    /// The policy's memory of jobs, by position.
    pub(crate) fn add_states(&mut self, snapshot: &Snapshot, states: Vec<(usize, PolicyState)>) {
        let named = states.into_iter().filter_map(|(position, state)| {
            let job = snapshot.jobs.get(position)?;
            Some((job.key.clone(), state))
        });
        self.states.extend(named);
    }

    /// Writes it into the memory.
    pub(crate) fn enter(self, memory: &mut Memory) {
        memory.set_slow_nodes(self.slow_nodes);
        memory.set_restarts(self.restarts);
        memory.set_arrivals(self.arrivals);
        memory.set_clone_gains(self.clone_gains);
        memory.set_shown_times(self.shown_times);
        memory.set_tenant_use(self.tenant_use);
        for (key, job) in self.acted {
            memory.set(key, job);
        }
        for (key, state) in self.states {
            memory.set_state(key, state);
        }
        let gone = match self.gone {
            Some(gone) => memory.forget(gone),
            None => {
                let present: Vec<&JobKey> = self.jobs.iter().map(|(key, _)| key).collect();
                memory.keep_only(&present)
            }
        };
        memory.teach(self.now, self.jobs, &gone);
    }
}
