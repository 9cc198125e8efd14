//! Exact optima of small instances, to compare the greedy algorithms with.

use shed_core::estimate::pocd::{TaskMiss, probability};
use shed_papers::optimize::greedy::GreedyJob;

/// How the values of the jobs combine into the objective.
#[derive(Clone, Copy)]
pub enum Total {
    Sum,
    Least,
}

impl Total {
    fn none(self) -> f64 {
        match self {
            Total::Sum => 0.0,
            Total::Least => f64::INFINITY,
        }
    }

    fn with(self, total: f64, value: f64) -> f64 {
        match self {
            Total::Sum => total + value,
            Total::Least => total.min(value),
        }
    }
}

/// The value of a job with 0, 1, … clones of each unit, and the capacity that one clone takes.
pub struct Curve {
    pub values: Vec<f64>,
    pub weight: usize,
}

/// The largest total that clones within the capacity can give, by dynamic programming over
/// jobs.
pub fn knapsack(curves: &[Curve], capacity: usize, total: Total) -> f64 {
    let mut best = vec![total.none(); capacity + 1];
    for curve in curves {
        let with_job = |capacity: usize| {
            let choices = curve.values.iter().enumerate();
            let totals = choices.filter_map(|(clones, &value)| {
                let left = capacity.checked_sub(clones * curve.weight)?;
                Some(total.with(best[left], value))
            });
            totals.fold(f64::NEG_INFINITY, f64::max)
        };
        best = (0..=capacity).map(with_job).collect();
    }
    best[capacity]
}

/// The best of all allocations, and how many there are.
#[derive(Default)]
pub struct Optima {
    pub sum: f64,
    pub sum_ln: f64,
    pub least: f64,
    pub count: u64,
}

/// Tries every number of clones of every task within the capacity.
pub fn enumerate(jobs: &[&GreedyJob], capacity: u64) -> Optima {
    let mut optima = Optima {
        sum: f64::NEG_INFINITY,
        sum_ln: f64::NEG_INFINITY,
        least: f64::NEG_INFINITY,
        count: 0,
    };
    let tasks = jobs.iter().enumerate();
    let tasks: Vec<(usize, usize)> = tasks
        .flat_map(|(job, held)| (0..held.tasks.len()).map(move |task| (job, task)))
        .collect();
    let mut ln_pocds: Vec<f64> = jobs.iter().map(|job| job.ln_pocd_rest).collect();
    descend(jobs, &tasks, capacity, &mut ln_pocds, &mut optima);
    optima
}

fn descend(
    jobs: &[&GreedyJob],
    tasks: &[(usize, usize)],
    capacity: u64,
    ln_pocds: &mut Vec<f64>,
    optima: &mut Optima,
) {
    let Some((&(job, task), rest)) = tasks.split_first() else {
        let pocds = ln_pocds.iter().map(|&ln_pocd| probability(ln_pocd));
        let least = ln_pocds.iter().copied().fold(f64::INFINITY, f64::min);
        optima.sum = optima.sum.max(pocds.sum());
        optima.sum_ln = optima.sum_ln.max(ln_pocds.iter().sum());
        optima.least = optima.least.max(probability(least));
        optima.count += 1;
        return;
    };
    let before = ln_pocds[job];
    let held = &jobs[job].tasks[task];
    let most = capacity.min(jobs[job].max_clones.into()) as u32;
    for clones in 0..=most {
        let task = TaskMiss {
            ln_miss_present: held.ln_miss_present,
            ln_miss_per_clone: held.ln_miss_per_clone,
            clones,
        };
        ln_pocds[job] = before + task.ln_pocd();
        descend(jobs, rest, capacity - u64::from(clones), ln_pocds, optima);
    }
    ln_pocds[job] = before;
}
