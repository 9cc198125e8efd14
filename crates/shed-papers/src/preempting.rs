//! Preemption from checkpoints, shared by the policies that serve jobs in an order of their own: attempts of jobs that
//! are served later stop for jobs that wait, where the victim's user allows it.

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::policy::{Desk, PolicyRule};
use shed_core::round::{AttemptEstimate, JobView, Number};
use shed_core::snapshot::Preemption;

/// An attempt is not preempted within this many launches of its launch.
const LAUNCHES_OF_RUN: f64 = 3.0;

/// Attempts that one pass preempts at most.
const PREEMPTIONS_MAX: usize = 256;

/// The rank of a job in service; the least is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceRank {
    /// Whether the job preempts no other, and is served after all that do.
    pub(crate) is_last: bool,
    /// Seconds to its deadline, or those that it can wait.
    pub(crate) seconds: Number,
}

/// Seconds until a task with these attempts may be preempted.
pub(crate) fn yields_in(job: &JobView<'_>, attempts: &[AttemptEstimate]) -> Option<f64> {
    let rules = &job.job.rules;
    let may = rules.preemption == Preemption::WhenCheckpointed
        && rules.resume.keeps_checkpoints()
        && !rules.waits_until_gone();
    let [attempt] = attempts else {
        return None;
    };
    let run = LAUNCHES_OF_RUN * job.t_avg.max(job.launch_time());
    may.then(|| (run - attempt.since_launch).max(0.0))
}

/// A running attempt that may be preempted.
struct Victim {
    rank: ServiceRank,
    position: usize,
    id: (TaskIndex, AttemptNumber),
    share: f64,
}

/// Stops attempts of jobs that are served later, for jobs that wait. `ranks` has the ranks of all jobs, by position, and
/// `as_victims` those with which their attempts compare, which may be earlier.
pub(crate) fn preempt<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    ranks: &[ServiceRank],
    as_victims: &[ServiceRank],
) {
    let mut victims = victims(desk, as_victims);
    let mut waiters: Vec<(ServiceRank, usize)> = Vec::new();
    for ((position, job), &rank) in desk.jobs().iter().enumerate().zip(ranks) {
        if !rank.is_last && job.waiting_now() > 0 && job.may_launch(desk.now()) {
            waiters.push((rank, position));
        }
    }
    waiters.sort();
    let mut free = 1.0
        - desk
            .jobs()
            .iter()
            .enumerate()
            .map(|(at, job)| held(desk, at, job))
            .sum::<f64>();
    let mut left = PREEMPTIONS_MAX;
    for (rank, position) in waiters {
        let share = desk.capacity().dominant_share(position);
        let tasks = desk.job(position).map_or(0, JobView::waiting_now);
        for _ in 0..tasks {
            if free + 1e-9 >= share {
                free -= share;
                continue;
            }
            let is_later = |victim: &Victim| {
                let is_large = victim.share + 1e-9 >= share;
                victim.rank > rank && is_large && desk.may_displace(position, victim.position)
            };
            let Some(at) = victims.iter().rposition(is_later).filter(|_| left > 0) else {
                break;
            };
            let victim = victims.remove(at);
            left -= 1;
            free += victim.share - share;
            let time = desk.job(position).and_then(|job| job.estimate.mean_run);
            desk.preempt(victim.position, victim.id, (position, time.unwrap_or(0.0)));
        }
    }
}

/// The share of the capacity that the job's live attempts hold. What is being stopped is as good as free.
fn held<R: PolicyRule>(desk: &Desk<'_, '_, R>, position: usize, job: &JobView<'_>) -> f64 {
    let attempts: usize = job
        .estimate
        .tasks
        .iter()
        .map(|task| task.attempts.len())
        .sum();
    match attempts {
        0 => 0.0,
        attempts => attempts as f64 * desk.capacity().dominant_share(position),
    }
}

/// The preemptible attempts in the order of service.
fn victims<R: PolicyRule>(desk: &Desk<'_, '_, R>, ranks: &[ServiceRank]) -> Vec<Victim> {
    let mut victims = Vec::new();
    for ((position, job), &rank) in desk.jobs().iter().enumerate().zip(ranks) {
        for task in &job.estimate.tasks {
            let yields = yields_in(job, &task.attempts).is_some_and(|seconds| seconds <= 0.0);
            let is_durable = task.begin() > 0.0;
            if let [attempt] = &*task.attempts
                && yields
                && is_durable
                && job.may_launch(desk.now())
            {
                victims.push(Victim {
                    rank,
                    position,
                    id: (task.index, attempt.number),
                    share: desk.capacity().dominant_share(position),
                });
            }
        }
    }
    victims.sort_by_key(|victim| (victim.rank, victim.position, victim.id));
    victims
}
