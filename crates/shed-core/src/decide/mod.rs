//! Decisions that need the whole cluster: the order of first attempts and retries, evictions of clones for them,
//! prunes, and clones for stragglers. It is a pure function of its arguments. It uses no random numbers, and the same
//! snapshot, memory and policy give the same plan.

use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::{KeptBeliefs, Policy};
pub use admission::next_attempts;
pub use ageing::may_be_served;

pub use crate::round::slow_nodes::{NodePace, Witness};
pub use crate::round::{Appointment, Changed, News};
use crate::round::{FURTHER_ATTEMPTS, FindingsCache, MemoryUpdate, Round, Terms, slow_nodes};
use crate::snapshot::Snapshot;
use crate::time::{Instant, Span};
use crate::validate::sound;

mod admission;
mod ageing;
mod evict;
pub mod feasibility;
mod order;
pub mod queue_positions;
mod take_back;

/// The time until jobs that were cut short are examined again.
const CUT_SHORT_LOOK: Span = Span::from_seconds(1);

/// Decides pass after pass, and judges in each one only the jobs that have changed or whose time has come: see
/// [`Changed`].
#[derive(Debug, Default)]
pub struct Planner {
    jobs: FindingsCache,
    beliefs: Option<KeptBeliefs>,
    queue: Option<Vec<(usize, u32)>>,
    /// Whether reports have the likely ends of jobs. Decisions are the same without.
    pub(crate) reports_ranges: bool,
}

impl Planner {
    /// One pass. The memory changes only once the pass has succeeded; after a panic the planner knows no job.
    ///
    /// Jobs that `settle` has not finished with are left to it: a task with an end that is not accounted for yet gets
    /// nothing in this pass.
    pub fn decide(
        &mut self,
        snapshot: &Snapshot,
        memory: &mut Memory,
        policy: &Policy,
        changed: Changed<'_>,
    ) -> Plan {
        let past = std::mem::take(self);
        let (plan, update, kept) = past.pass(snapshot, memory, policy, changed);
        *self = kept;
        update.enter(memory);
        plan
    }

    /// When each job of the last pass must be looked at, by position.
    pub fn appointments(&self) -> impl Iterator<Item = Appointment> {
        self.jobs.appointments()
    }

    /// Whether the last pass, which was made at `now`, looked at each job, by position.
    pub fn looked(&self, now: Instant) -> impl Iterator<Item = bool> {
        let appointments = self.jobs.appointments();
        appointments.map(move |appointment| appointment.looked == now)
    }

    /// The jobs whose tasks still wait after the last pass, by position and in the order of service, with the number
    /// of attempts that each could still get. It is absent for orders that change with each attempt.
    pub fn queue(&self) -> Option<&[(usize, u32)]> {
        self.queue.as_deref()
    }

    fn pass(
        self,
        snapshot: &Snapshot,
        memory: &Memory,
        policy: &Policy,
        changed: Changed<'_>,
    ) -> (Plan, MemoryUpdate, Self) {
        let rule = policy.speculation.rule();
        let reports_ranges = self.reports_ranges;
        let mut round = opened(snapshot, memory, policy, self.jobs, changed);
        let mut session = rule.open(memory, &round, self.beliefs);
        session.before(&mut round);
        take_back::take_back(&mut round);
        admission::admit(&mut round, policy);
        let (gains, now) = (&round.clone_gains, snapshot.now);
        for state in &mut round.jobs {
            let job = state.job;
            state.predict(now, || gains.share(&job.tenant, job.class.as_ref(), now));
            if reports_ranges {
                state.predict_range(now);
            }
        }
        feasibility::weigh(&mut round);
        session.after(&mut round);
        let again = snapshot.now.plus(CUT_SHORT_LOOK);
        for state in round
            .jobs
            .iter_mut()
            .filter(|state| state.draft.is_cut_short)
        {
            state.judge_at(Some(again));
        }
        let states = session.states(&round);
        let queue = round.queue.take();
        let (plan, mut update, jobs) = round.finish();
        update.add_states(snapshot, states);
        let kept = Self {
            jobs,
            beliefs: Some(session.keep()),
            queue,
            reports_ranges,
        };
        (plan, update, kept)
    }
}

/// The estimates of all nodes, in the snapshot's order, as the policy has them in a pass that looks at every job.
pub fn node_paces(snapshot: &Snapshot, memory: &Memory, policy: &Policy) -> Vec<NodePace> {
    let (snapshot, _) = sound(snapshot);
    let round = opened(
        &snapshot,
        memory,
        policy,
        FindingsCache::default(),
        Changed::All,
    );
    slow_nodes::paces(&round)
}

/// The pass in its initial state.
fn opened<'a>(
    snapshot: &'a Snapshot,
    memory: &'a Memory,
    policy: &Policy,
    kept: FindingsCache,
    changed: Changed<'_>,
) -> Round<'a> {
    let rule = policy.speculation.rule();
    let terms = Terms {
        launch_overhead: rule.launch_overhead(),
        looks_at_all: rule.looks_at_all(),
        report_error: rule.report_error(),
        clone_rest: &|limit, overhead| rule.clone_rest(limit, overhead),
        further_attempts: rule.max_clones().min(FURTHER_ATTEMPTS),
        distribution: policy.distribution,
        capacity_share: policy.capacity_share,
        work_max: policy.work_max,
    };
    Round::new(snapshot, memory, &terms, kept, changed)
}

/// Decides on one snapshot alone, by looking at every job.
pub fn decide(snapshot: &Snapshot, mut memory: Memory, policy: &Policy) -> (Plan, Memory) {
    let mut planner = Planner::default();
    let plan = planner.decide(snapshot, &mut memory, policy, Changed::All);
    (plan, memory)
}

#[cfg(test)]
mod tests;
