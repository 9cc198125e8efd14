//! The optimal allocation of clones, by dynamic programming, for small instances.

use shed_core::estimate::pocd::ln_task_pocd;
use shed_papers::optimize::greedy::{GreedyJob, GreedyTask};
use shed_papers::optimize::utility::alpha_fair;

/// An instance with two resources; slots are the first one alone.
pub struct Instance {
    pub jobs: Vec<GreedyJob>,
    pub free: [usize; 2],
    /// The demand of one attempt per job.
    pub demands: Vec<[usize; 2]>,
}

/// The number of further clones that a task may get.
pub fn clones_allowed(job: &GreedyJob, task: &GreedyTask) -> u32 {
    if task.may_receive_clones {
        job.max_clones.saturating_sub(task.clones_alive)
    } else {
        0
    }
}

pub fn ln_pocd(task: &GreedyTask, clones: u32) -> f64 {
    let mut ln_miss = task.ln_miss_present;
    for _ in 0..clones {
        ln_miss += task.ln_miss_per_clone;
    }
    ln_task_pocd(ln_miss)
}

/// A job's best ln PoCD with exactly 0, 1, 2, … further clones, as many as it may get.
fn curve(job: &GreedyJob) -> Vec<f64> {
    let mut best = vec![job.ln_pocd_rest];
    for task in &job.tasks {
        let allowed = clones_allowed(job, task) as usize;
        let mut with_task = vec![f64::NEG_INFINITY; best.len() + allowed];
        for (others, &sum) in best.iter().enumerate() {
            for clones in 0..=allowed {
                let total = sum + ln_pocd(task, clones as u32);
                let held = &mut with_task[others + clones];
                *held = held.max(total);
            }
        }
        best = with_task;
    }
    best
}

/// The utility of all jobs together: the sum of U_α, or the least PoCD for α = ∞.
pub fn joined(alpha: f64, one: f64, other: f64) -> f64 {
    if alpha.is_infinite() {
        one.min(other)
    } else {
        one + other
    }
}

/// Of no jobs.
pub fn neutral(alpha: f64) -> f64 {
    if alpha.is_infinite() {
        f64::INFINITY
    } else {
        0.0
    }
}

/// The largest utility: each job's best PoCD for every number of clones, and a knapsack over
/// the jobs.
pub fn optimum(instance: &Instance, alpha: f64) -> f64 {
    let [first, second] = instance.free;
    let cell = |a: usize, b: usize| a * (second + 1) + b;
    let mut best = vec![neutral(alpha); (first + 1) * (second + 1)];
    for (job, &[a_each, b_each]) in instance.jobs.iter().zip(&instance.demands) {
        let values: Vec<f64> = curve(job)
            .iter()
            .map(|&ln_pocd| alpha_fair(libm::exp(ln_pocd), alpha))
            .collect();
        let mut with_job = vec![f64::NEG_INFINITY; best.len()];
        for a in 0..=first {
            for b in 0..=second {
                for (clones, &value) in values.iter().enumerate() {
                    let (a_taken, b_taken) = (clones * a_each, clones * b_each);
                    if a_taken > a || b_taken > b {
                        break;
                    }
                    let total = joined(alpha, best[cell(a - a_taken, b - b_taken)], value);
                    let held = &mut with_job[cell(a, b)];
                    *held = held.max(total);
                }
            }
        }
        best = with_job;
    }
    best[cell(first, second)]
}

/// The same by exhaustive search.
pub fn tried(instance: &Instance, alpha: f64) -> f64 {
    let tasks: Vec<(usize, &GreedyTask, u32)> = instance
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(job, inputs)| {
            let tasks = inputs.tasks.iter();
            tasks.map(move |task| (job, task, clones_allowed(inputs, task)))
        })
        .collect();
    let mut clones = vec![0u32; tasks.len()];
    let mut best = f64::NEG_INFINITY;
    loop {
        best = best.max(utility_if_it_fits(instance, alpha, &tasks, &clones));
        let Some(place) = (0..tasks.len()).find(|&at| clones[at] < tasks[at].2) else {
            return best;
        };
        clones[place] += 1;
        clones[..place].fill(0);
    }
}

fn utility_if_it_fits(
    instance: &Instance,
    alpha: f64,
    tasks: &[(usize, &GreedyTask, u32)],
    clones: &[u32],
) -> f64 {
    let mut taken = [0; 2];
    let mut ln_pocds: Vec<f64> = instance.jobs.iter().map(|job| job.ln_pocd_rest).collect();
    for (&(job, task, _), &clones) in tasks.iter().zip(clones) {
        ln_pocds[job] += ln_pocd(task, clones);
        for (taken, demand) in taken.iter_mut().zip(instance.demands[job]) {
            *taken += clones as usize * demand;
        }
    }
    if taken[0] > instance.free[0] || taken[1] > instance.free[1] {
        return f64::NEG_INFINITY;
    }
    let utilities = ln_pocds.into_iter();
    utilities
        .map(|ln_pocd| alpha_fair(libm::exp(ln_pocd), alpha))
        .fold(neutral(alpha), |one, other| joined(alpha, one, other))
}
