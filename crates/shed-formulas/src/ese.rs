//! The cost of duplicates, and the round of one slot of ESE (SCA/ESE §V and §VI).

use shed_core::estimate::compare::{is_less, sort_with_ties};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_papers::formulas::copies::fastest_mean;
use shed_papers::formulas::ese::{best_whole_copies, straggler_factor};
use shed_papers::formulas::sca::CloneJob;

use crate::sca::{Assignment, SlotJob, assign_singly};

/// E\[R\]/E\[x\], the mean machine time of a task over that of one copy, when it is looked at once,
/// at a uniformly random time of its run, and duplicated if more than `sigma`·E\[x\] remains
/// (equations (22)–(25)). Finite for every α > 1; `None` for α ≤ 1.
pub fn duplication_cost(alpha: f64, sigma: f64) -> Option<f64> {
    if alpha.is_nan() || alpha <= 1.0 {
        return None;
    }
    // E[R] = E[x] + ∫_a^∞ (2·E[min(s, t_new)] − s)·Q(s) ds with Q(s) = ∫_s^∞ dF(t)/t, all in
    // units of t_min: a power of s beyond 1, a constant below, where E[min(s, t_new)] is s.
    let a = sigma * mean_over_least(alpha);
    let density = 1.0 / (1.0 + 1.0 / alpha);
    let below = (1.0 - a * a).max(0.0) / 2.0;
    let beyond = saved_beyond(alpha, a.max(1.0));
    Some(1.0 + density * (below - beyond) / mean_over_least(alpha))
}

/// E\[x\]/t_min.
fn mean_over_least(alpha: f64) -> f64 {
    fastest_mean(
        &ParetoDistribution {
            t_min: 1.0,
            beta: alpha,
        },
        1.0,
    )
}

/// ∫_a^∞ (s − 2·E\[min(s, t_new)\])·s^(−α−1) ds, for a ≥ 1.
fn saved_beyond(alpha: f64, a: f64) -> f64 {
    if alpha.is_infinite() {
        return 0.0;
    }
    let kept = libm::pow(a, -alpha) - libm::pow(a, 1.0 - 2.0 * alpha) / (2.0 * alpha - 1.0);
    (libm::pow(a, 1.0 - alpha) - 2.0 * kept) / (alpha - 1.0)
}

/// The parameters of a slot. η and ξ are "tuned" in the paper, which gives no values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ese {
    /// γ, the price of machine time.
    pub gamma: f64,
    /// r, the most copies of a task.
    pub copies_max: u32,
    /// η: a new job is small if it has fewer tasks than η times its equal share of the machines.
    pub eta: f64,
    /// ξ: a new job is small if its tasks take less on average, in seconds.
    pub xi: f64,
    /// σ, the straggler's factor; `None` for each job's own [`straggler_factor`].
    pub sigma: Option<f64>,
}

impl Default for Ese {
    fn default() -> Self {
        Self {
            gamma: 0.05,
            copies_max: 8,
            eta: 1.0,
            xi: 300.0,
            sigma: None,
        }
    }
}

/// ESE's decisions in one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EseRound {
    /// Duplicates, as (job id, task), in order.
    pub backups: Vec<(u64, u32)>,
    /// First attempts, in order.
    pub assigned: Vec<Assignment>,
    /// Machines that stay free.
    pub machines_left: u64,
}

/// One slot of ESE with `machines` idle machines (SCA/ESE Algorithm 2).
///
/// 1. Running tasks with one copy and a remaining time above σ·E\[x\] get a duplicate, the longest
///    first.
/// 2. Started jobs get one copy of each unassigned task, the least remaining work first.
/// 3. New jobs start, the least m·E\[x\] first: a small job starts all tasks with the best number
///    of copies, another as many single copies as fit. Ties go to the least id.
pub fn ese_round(jobs: &[SlotJob], machines: u64, ese: &Ese) -> EseRound {
    let mut round = EseRound {
        backups: Vec::new(),
        assigned: Vec::new(),
        machines_left: machines,
    };
    let stragglers = stragglers(jobs, ese.sigma);
    let served = usize::try_from(machines).unwrap_or(usize::MAX);
    round.backups = stragglers.into_iter().take(served).collect();
    round.machines_left -= round.backups.len() as u64;

    let is_waiting = |job: &&SlotJob| job.started && job.unassigned > 0;
    let mut started: Vec<&SlotJob> = jobs.iter().filter(is_waiting).collect();
    sort_with_ties(&mut started, |job| remaining_work(job), |job| job.job.id);
    for job in started {
        let SlotJob {
            job, unassigned, ..
        } = job;
        round.machines_left = assign_singly(
            job.id,
            *unassigned,
            round.machines_left,
            &mut round.assigned,
        );
    }
    let mut new: Vec<CloneJob> = jobs
        .iter()
        .filter(|job| !job.started)
        .map(|job| job.job)
        .collect();
    sort_with_ties(&mut new, CloneJob::work, |job| job.id);
    for job in &new {
        start_new(job, new.len(), ese, &mut round);
    }
    round
}

/// The tasks to duplicate, the longest remaining time first.
fn stragglers(jobs: &[SlotJob], sigma: Option<f64>) -> Vec<(u64, u32)> {
    let mut found: Vec<(f64, (u64, u32))> = Vec::new();
    for SlotJob { job, running, .. } in jobs {
        let mean = fastest_mean(&job.distribution, 1.0);
        let Some(factor) = sigma.or_else(|| straggler_factor(job.distribution.beta)) else {
            continue;
        };
        let late = running
            .iter()
            .filter(|task| task.copies == 1 && is_less(factor * mean, task.t_rem));
        found.extend(late.map(|task| (task.t_rem, (job.id, task.task))));
    }
    sort_with_ties(&mut found, |late| -late.0, |late| late.1);
    found.into_iter().map(|(_, task)| task).collect()
}

/// (unassigned + running tasks)·E\[x\].
fn remaining_work(job: &SlotJob) -> f64 {
    let tasks = f64::from(job.unassigned) + job.running.len() as f64;
    tasks * fastest_mean(&job.job.distribution, 1.0)
}

fn start_new(job: &CloneJob, new_jobs: usize, ese: &Ese, round: &mut EseRound) {
    let free = round.machines_left;
    let tasks = u64::from(job.tasks);
    let share = ese.eta * free as f64 / new_jobs as f64;
    let is_small =
        is_less(tasks as f64, share) && is_less(fastest_mean(&job.distribution, 1.0), ese.xi);
    if !is_small || tasks > free || tasks == 0 {
        round.machines_left = assign_singly(job.id, job.tasks, free, &mut round.assigned);
        return;
    }
    let most = (free / tasks).min(u64::from(ese.copies_max)) as u32;
    let copies = best_whole_copies(job, ese.gamma, most);
    round.machines_left -= tasks * u64::from(copies);
    round.assigned.push(Assignment {
        job: job.id,
        tasks: job.tasks,
        copies,
    });
}

#[cfg(test)]
mod tests;
