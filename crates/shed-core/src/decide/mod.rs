//! Decisions that need the whole cluster: the order of first attempts and retries, evictions of clones for them,
//! prunes, and clones for stragglers. It is a pure function of its arguments. It uses no random numbers, and the same
//! snapshot, memory and policy give the same plan.

use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::round::{JobView, Round, Terms};
use crate::snapshot::Snapshot;
use crate::time::Span;

mod admission;
mod ageing;
mod evict;
pub mod feasibility;
mod order;
pub mod shed_plus_lookahead;

/// The time until jobs that were cut short are examined again.
const CUT_SHORT_LOOK: Span = Span::from_seconds(1);

/// The pass in its initial state.
fn opened<'a>(snapshot: &'a Snapshot, memory: &'a Memory, policy: &Policy) -> Round<'a> {
    let rule = policy.speculation.rule();
    let terms = Terms {
        launch_overhead: rule.launch_overhead(),
        slow_half_life: rule.slow_half_life(),
        rate_prior: rule.rate_prior(),
        clone_rest: &|limit, overhead| rule.clone_rest(limit, overhead),
        law: policy.law,
        capacity_share: policy.capacity_share,
        work_max: policy.work_max,
    };
    Round::new(snapshot, memory, &terms)
}

/// Decides. Jobs that `settle` has not finished with are left to it: a task with an end that is not accounted for yet
/// gets nothing in this pass.
#[must_use]
pub fn decide(snapshot: &Snapshot, memory: Memory, policy: &Policy) -> (Plan, Memory) {
    let mut round = opened(snapshot, &memory, policy);
    let mut session = policy.speculation.rule().open(&memory, snapshot);
    session.before(&mut round);
    admission::admit(&mut round, policy);
    round.jobs.iter_mut().for_each(JobView::predict);
    feasibility::weigh(&mut round);
    session.after(&mut round);
    if round.jobs.iter().any(|state| state.is_cut_short) {
        round.wake_at(Some(snapshot.now.plus(CUT_SHORT_LOOK)));
    }
    let (plan, mut remembered) = round.finish();
    for (job, state) in snapshot.jobs.iter().zip(session.states()) {
        remembered.set_state(job.key.clone(), state);
    }
    (plan, remembered)
}

#[cfg(test)]
mod tests;
