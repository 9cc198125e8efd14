//! SCA: how many copies of each task of the jobs that have not started, as a convex program
//! (P2 of SCA/ESE), and its rounding.
//!
//! A machine holds one copy. Times are in seconds, a slot is one.

use std::fmt;

use crate::formulas::copies::{
    fastest_mean, slowest_mean, slowest_mean_slope, task_machine_time, task_machine_time_slope,
};
use crate::formulas::first_largest;
use shed_core::estimate::pareto::ParetoDistribution;

/// A job of one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CloneJob {
    /// Identifies the job; ties go to the least.
    pub id: u64,
    /// m, its tasks.
    pub tasks: u32,
    /// The distribution of a copy's time: t_min is the paper's μ, the shape its α.
    pub distribution: ParetoDistribution,
}

impl CloneJob {
    /// U(c) = −E\[d(c)\] − γ·m·c·E\[min(c)\]: minus the job's mean time and the price of its machine
    /// time, with `copies` copies of each task. −∞ where the mean is infinite.
    pub fn utility(&self, copies: f64, gamma: f64) -> f64 {
        let time = slowest_mean(&self.distribution, self.tasks, copies);
        if time.is_infinite() {
            return f64::NEG_INFINITY;
        }
        -time - gamma * f64::from(self.tasks) * task_machine_time(&self.distribution, copies)
    }

    /// The derivative of −U(c) + `price`·c, which rises with `copies`.
    fn cost_slope(&self, copies: f64, gamma: f64, price: f64) -> f64 {
        let time = slowest_mean_slope(&self.distribution, self.tasks, copies);
        if time.is_infinite() {
            return f64::NEG_INFINITY;
        }
        let machine_time = task_machine_time_slope(&self.distribution, copies);
        time + gamma * f64::from(self.tasks) * machine_time + price
    }

    /// The number of copies in \[1, `most`\] that is best when one more costs `price`.
    pub fn best_copies(&self, gamma: f64, price: f64, most: f64) -> f64 {
        let slope = |copies: f64| self.cost_slope(copies, gamma, price);
        if slope(1.0) >= 0.0 {
            return 1.0;
        }
        if slope(most) <= 0.0 {
            return most;
        }
        bisect(1.0, most, |copies| slope(copies) < 0.0)
    }

    /// m·E\[x\], the mean machine time of one copy of each task.
    pub fn work(&self) -> f64 {
        f64::from(self.tasks) * fastest_mean(&self.distribution, 1.0)
    }
}

/// The point between `low` and `high` where `is_below` turns false, to the last digit; above it.
pub(super) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The parameters of P2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct P2 {
    /// γ, the price of a machine second against a second of flow time.
    pub gamma: f64,
    /// N, the machines that are free.
    pub machines: u64,
    /// r, the most copies of a task.
    pub copies_max: u32,
}

/// Not even one copy of each task has a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Infeasible {
    /// Σm, the machines that one copy of each task takes.
    pub needed: u64,
    /// N.
    pub machines: u64,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Infeasible { needed, machines } = self;
        write!(
            out,
            "one copy of each task takes {needed} machines, {machines} are free"
        )
    }
}

impl std::error::Error for Infeasible {}

/// The optimum of P2 with fractions of copies.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxed {
    /// Copies of each task, per job.
    pub copies: Vec<f64>,
    /// ν, the value of one more machine; 0 when some stay free.
    pub price: f64,
}

/// Σ U(c) over the jobs.
pub fn objective(jobs: &[CloneJob], copies: &[f64], gamma: f64) -> f64 {
    let pairs = jobs.iter().zip(copies);
    pairs.map(|(job, &copies)| job.utility(copies, gamma)).sum()
}

/// Solves P2: maximize Σ U(c) with Σ m·c ≤ N and 1 ≤ c ≤ r, all tasks of all jobs starting at
/// once.
///
/// The price ν of a machine is found by bisection, and for each price the copies of each job by
/// bisection. Both sums are convex in c (SCA/ESE Lemma 1), so that the optimum is the only one.
/// O(jobs · tasks) per pair of steps; there are some thousands of pairs.
///
/// # Errors
///
/// [`Infeasible`] when Σm > N.
pub fn solve_relaxed(jobs: &[CloneJob], p2: &P2) -> Result<Relaxed, Infeasible> {
    let needed = jobs.iter().map(|job| u64::from(job.tasks)).sum();
    if needed > p2.machines {
        return Err(Infeasible {
            needed,
            machines: p2.machines,
        });
    }
    let copies_at = |price: f64| -> Vec<f64> {
        let best = |job: &CloneJob| job.best_at(p2, price);
        jobs.iter().map(best).collect()
    };
    let is_short = |price: f64| machines_of(jobs, &copies_at(price)) > p2.machines as f64;
    if !is_short(0.0) {
        let copies = copies_at(0.0);
        return Ok(Relaxed { copies, price: 0.0 });
    }
    let mut enough = 1.0;
    while is_short(enough) && enough < f64::MAX / 2.0 {
        enough *= 2.0;
    }
    let price = bisect(0.0, enough, is_short);
    Ok(Relaxed {
        copies: copies_at(price),
        price,
    })
}

impl CloneJob {
    /// The copies that are best when a machine costs `price`.
    fn best_at(&self, p2: &P2, price: f64) -> f64 {
        let per_copy = price * f64::from(self.tasks);
        self.best_copies(p2.gamma, per_copy, f64::from(p2.copies_max))
    }
}

/// Σ m·c.
fn machines_of(jobs: &[CloneJob], copies: &[f64]) -> f64 {
    let pairs = jobs.iter().zip(copies);
    pairs
        .map(|(job, &copies)| f64::from(job.tasks) * copies)
        .sum()
}

/// Whole copies near the optimum of P2; the paper does not describe this step. The optimum is
/// rounded down. Then the job that gains most per machine gets one more copy, while a copy gains
/// and fits. Ties go to the least id. A job whose mean time is still infinite gains most.
pub fn round_copies(jobs: &[CloneJob], p2: &P2, relaxed: &Relaxed) -> Vec<u32> {
    let needed: f64 = jobs.iter().map(|job| f64::from(job.tasks)).sum();
    // 1.9999999 is 2; the sum over all tasks must stay below one machine.
    let snap = (0.5 / needed.max(1.0)).min(1e-6);
    let round = |&copies: &f64| (copies + snap).floor().max(1.0) as u32;
    let mut copies: Vec<u32> = relaxed.copies.iter().map(round).collect();
    let used: u64 = jobs
        .iter()
        .zip(&copies)
        .map(|(job, &copies)| u64::from(job.tasks) * u64::from(copies))
        .sum();
    let mut free = p2.machines.saturating_sub(used);
    let mut by_id: Vec<usize> = (0..jobs.len()).collect();
    by_id.sort_by_key(|&job| jobs[job].id);
    while let Some(job) = best_raise(jobs, p2, &copies, free, &by_id) {
        copies[job] += 1;
        free = free.saturating_sub(u64::from(jobs[job].tasks));
    }
    copies
}

/// The job to raise next.
fn best_raise(
    jobs: &[CloneJob],
    p2: &P2,
    copies: &[u32],
    free: u64,
    by_id: &[usize],
) -> Option<usize> {
    let gains = by_id.iter().filter_map(|&position| {
        let (job, held) = (&jobs[position], copies[position]);
        let may_grow = held < p2.copies_max && u64::from(job.tasks) <= free && job.tasks > 0;
        let gain = may_grow.then(|| gain_per_machine(job, held, p2.gamma))?;
        (gain > 1e-9).then_some((gain, position))
    });
    first_largest(gains)
}

fn gain_per_machine(job: &CloneJob, copies: u32, gamma: f64) -> f64 {
    let now = job.utility(f64::from(copies), gamma);
    if now.is_infinite() {
        return f64::INFINITY;
    }
    (job.utility(f64::from(copies) + 1.0, gamma) - now) / f64::from(job.tasks)
}

#[cfg(test)]
mod tests;
