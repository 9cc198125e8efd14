//! Preemption: a task that has to start soon takes the slot of a running attempt that has time to spare. It happens
//! only if the victim's user allows it and its checkpoint is durable.

use crate::capacity::{FreeCapacity, fits};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::policy::PREEMPTION_LAUNCHES;
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{remaining, task_time, usual_share};
use crate::policy::shed_prime::value_density::surging;
use crate::round::{JobView, Number};
use crate::snapshot::{AttemptKind, NodeIndex};

/// Attempts that one pass preempts at most.
const PREEMPTIONS_MAX: usize = 256;

/// The cost of a preemption to the victim, in launches.
const LAUNCHES_LOST: f64 = 2.0;

/// A waiting task may preempt a running attempt once its own slack is below this many task times.
const WITHIN: f64 = 0.4;

/// The victim's slack must exceed this many task times of the waiting task: the waiting task takes
/// its slot for one of them, and a victim with little slack left would soon preempt another.
const APART: f64 = 3.0;

/// A running attempt that may be preempted.
struct Victim {
    position: usize,
    id: (TaskIndex, AttemptNumber),
    node: Option<NodeIndex>,
    /// The slack of the attempt's task after the cost of a relaunch, in seconds; infinite for one of a hopeless job.
    slack: f64,
}

/// A job with tasks that wait.
struct Waiter {
    position: usize,
    /// The tasks that may start, and the pods beyond capacity.
    tasks: u32,
    slack: f64,
    /// Seconds that one of its tasks takes.
    time: f64,
    /// Below this slack the job may preempt others.
    within: f64,
    /// Attempts with less slack than this are not preempted.
    apart: f64,
}

/// Preempts attempts for tasks that would otherwise start too late.
pub(super) fn preempt(desk: &mut PrimeDesk<'_, '_>) {
    let waiters = waiters(desk);
    if waiters.is_empty() {
        return;
    }
    let mut victims = victims(desk);
    let mut room = desk.capacity().free_after_kills.clone();
    let mut clones = clones_alive(desk);
    let (mut left, mut soonest) = (PREEMPTIONS_MAX, f64::INFINITY);
    for waiter in waiters {
        for _ in 0..waiter.tasks {
            if take_free(desk, &mut room, waiter.position) {
                continue;
            }
            // `admit` evicts clones for first attempts.
            if clones > 0 {
                clones -= 1;
                continue;
            }
            if waiter.slack > waiter.within {
                soonest = soonest.min(waiter.slack - waiter.within);
                break;
            }
            let Some(at) = pick(desk, &victims, &waiter).filter(|_| left > 0) else {
                break;
            };
            let victim = victims.remove(at);
            left -= 1;
            desk.preempt(victim.position, victim.id, (waiter.position, waiter.time));
        }
    }
    if soonest.is_finite() {
        let wait = crate::time::Span::from_seconds_f64(soonest.max(0.1));
        desk.wake_at(desk.now().plus(wait));
    }
}

/// In service order. Hopeless jobs never preempt.
fn waiters(desk: &PrimeDesk<'_, '_>) -> Vec<Waiter> {
    let now = desk.now();
    let mut waiters = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        let surging = surging(desk, position);
        let tasks = state.launchable_now().saturating_add(surging);
        if let Some((false, slack)) = state.rank
            && tasks > 0
            && state.may_launch(now)
        {
            let worth = state.waiting_value_density();
            let rank = (Number(-worth), slack, state.job.submitted, &state.job.key);
            let time = task_time(state, usual_share(desk, position));
            waiters.push((
                rank,
                Waiter {
                    position,
                    tasks,
                    slack: slack as f64 / 1000.0,
                    time,
                    within: WITHIN * time,
                    apart: APART * time,
                },
            ));
        }
    }
    waiters.sort_by(|a, b| a.0.cmp(&b.0));
    waiters.into_iter().map(|(_, waiter)| waiter).collect()
}

/// Whether the job's attempts may be preempted.
pub(super) fn may_yield(desk: &PrimeDesk<'_, '_>, state: &JobView<'_>) -> bool {
    state.job.rules.is_preemptible()
        // A preempted attempt must be launched again.
        && state.may_launch(desk.now())
}

/// The preemptible attempts, most slack last.
fn victims(desk: &PrimeDesk<'_, '_>) -> Vec<Victim> {
    let mut victims = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        if !may_yield(desk, state) {
            continue;
        }
        let is_hopeless = state.rank.is_some_and(|(is_hopeless, _)| is_hopeless);
        let time = task_time(state, usual_share(desk, position));
        let overhead = state.launch_time();
        let least_run = PREEMPTION_LAUNCHES * overhead.max(state.t_avg);
        for task in &state.estimate.tasks {
            let [attempt] = &*task.attempts else {
                continue;
            };
            let id = (task.index, attempt.number);
            let is_durable = task.begin() > 0.0;
            // The slot of an attempt on an unusable node cannot be taken.
            let has_place = !desk.capacity().unusable.has(attempt.node);
            let is_young = attempt.since_launch < least_run;
            if !is_durable || !has_place || is_young || state.draft.doomed.contains(&id) {
                continue;
            }
            let slack = state.estimate.slack.unwrap_or(f64::INFINITY);
            let needed = remaining(task, time, overhead) + LAUNCHES_LOST * overhead;
            victims.push(Victim {
                position,
                id,
                node: attempt.node,
                slack: if is_hopeless {
                    f64::INFINITY
                } else {
                    slack - needed
                },
            });
        }
    }
    let key = |victim: &Victim| desk.job(victim.position).map(|state| &state.job.key);
    victims.sort_by(|a, b| {
        let by_slack = a.slack.total_cmp(&b.slack);
        by_slack.then_with(|| (key(a), a.id).cmp(&(key(b), b.id)))
    });
    victims
}

/// Whether the capacity that is or will be free holds one more attempt, which then takes it.
fn take_free(desk: &PrimeDesk<'_, '_>, room: &mut FreeCapacity, position: usize) -> bool {
    let Some(demand) = desk.capacity().demands.get(position) else {
        return false;
    };
    let state = desk.job(position);
    state.is_some_and(|state| room.take_from(&state.job.eligible_nodes, demand))
}

/// Of the attempts whose slot the waiter can take, the one with the most slack, if that is well above the waiter's.
fn pick(desk: &PrimeDesk<'_, '_>, victims: &[Victim], waiter: &Waiter) -> Option<usize> {
    let demands = &desk.capacity().demands;
    let demand = demands.get(waiter.position)?;
    let job = desk.job(waiter.position)?.job;
    let holds = |victim: &Victim| {
        let freed = demands.get(victim.position);
        let node = victim.node;
        victim.position != waiter.position
            && desk.may_displace(waiter.position, victim.position)
            && freed.is_some_and(|freed| fits(freed, demand))
            && node.is_none_or(|node| job.eligible_nodes.binary_search(&node).is_ok())
    };
    let at = victims.iter().rposition(holds)?;
    let least = waiter.within.max(waiter.slack).max(waiter.apart);
    (victims.get(at)?.slack > least).then_some(at)
}

fn clones_alive(desk: &PrimeDesk<'_, '_>) -> u32 {
    let mut clones = 0;
    for state in desk.jobs() {
        for task in state.estimate.cloned() {
            let attempts = task.attempts.iter();
            let may_go = attempts.filter(|attempt| {
                let id = (task.index, attempt.number);
                attempt.kind == AttemptKind::Clone
                    && !state.draft.doomed.contains(&id)
                    && !desk.capacity().unusable.has(attempt.node)
            });
            clones += may_go.count() as u32;
        }
    }
    clones
}
