//! Shed Algorithm 1: every task of a job gets the same number of clones.

use crate::optimize::tournament::{ABSENT, Tournament};
use shed_core::estimate::pocd::ln_job_pocd_uniform;
use shed_core::word;

/// One job, where all tasks are assumed to be like its slowest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobLevelJob {
    /// N, the job's tasks.
    pub tasks: u32,
    /// ln P(one attempt of the slowest task misses), see [`shed_core::estimate::pareto::ln_miss`].
    pub ln_miss_attempt: f64,
}

/// The capacity and the jobs that compete for it. Jobs past their deadline are not among `jobs` (step 1 kills them).
#[derive(Debug, Clone, PartialEq)]
pub struct JobLevelInput {
    /// κ, the slots for extra attempts.
    pub kappa: i64,
    /// MAX, the bound of r per job.
    pub max_clones: u32,
    /// The live jobs; ties go to the first.
    pub jobs: Vec<JobLevelJob>,
}

/// The treatment of jobs that no clone can rescue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobLevelMode {
    /// As printed: their PoCD of 0 is the lowest, so they are served first.
    Paper,
    /// They get none.
    Guarded,
}

word!(
    JobLevelMode,
    [JobLevelMode::Paper => "paper", JobLevelMode::Guarded => "guarded"]
);

/// The result of the allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLevelOutcome {
    /// r per job: extra attempts of each of its tasks.
    pub clones: Vec<u32>,
    /// ω: the total of extra attempts handed out.
    pub omega: i64,
    /// ln PoCD per job with its clones.
    pub ln_pocd: Vec<f64>,
}

/// Shed Algorithm 1, steps 2–4: the job with the lowest PoCD gets one more clone for each of its tasks, until none
/// fits. A job that does not fit is skipped in favor of smaller ones. For a single job the loop gives the closed
/// form, `min(MAX, ⌊(λm − N − 1)/N⌋)`.
///
/// At most κ + |J| rounds of O(log |J|). Max-min optimal among the jobs that are not hopeless.
pub fn alloc_job(input: &JobLevelInput, mode: JobLevelMode) -> JobLevelOutcome {
    let JobLevelInput {
        kappa,
        max_clones,
        ref jobs,
    } = *input;
    let mut clones = vec![0u32; jobs.len()];
    let mut omega = 0i64;
    let keys = jobs.iter().map(|job| {
        let refused = mode == JobLevelMode::Guarded && job.ln_miss_attempt >= 0.0;
        if job.tasks > 0 && max_clones > 0 && !refused {
            ln_pocd(job, 0)
        } else {
            ABSENT
        }
    });
    let mut waiting = Tournament::new(keys, jobs.len());
    while let Some(index) = waiting.best() {
        let (Some(job), Some(count)) = (jobs.get(index), clones.get_mut(index)) else {
            break;
        };
        let needed = i64::from(job.tasks);
        if needed > kappa - omega {
            waiting.remove(index);
            continue;
        }
        *count += 1;
        omega += needed;
        let key = if *count < max_clones {
            ln_pocd(job, *count)
        } else {
            ABSENT
        };
        waiting.set(index, key);
    }
    let ln_pocd = jobs
        .iter()
        .zip(&clones)
        .map(|(job, &count)| ln_pocd(job, count))
        .collect();
    JobLevelOutcome {
        clones,
        omega,
        ln_pocd,
    }
}

fn ln_pocd(job: &JobLevelJob, clones: u32) -> f64 {
    ln_job_pocd_uniform(job.ln_miss_attempt, clones.saturating_add(1), job.tasks)
}

#[cfg(test)]
mod tests;
