//! Shed Algorithm 1: every task of a job gets the same number of clones.

use crate::estimate::pocd::ln_job_pocd_uniform;
use crate::optimize::room::Room;
use crate::optimize::tournament::{ABSENT, Tournament};

/// One job, where all tasks are assumed to be like its slowest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobLevelJob {
    /// N, the job's tasks.
    pub tasks: u32,
    /// ln P(one attempt of the slowest task misses), see [`crate::estimate::pareto::ln_miss`].
    pub ln_miss_attempt: f64,
}

/// The capacity and the jobs that compete for it. Jobs past their deadline are not among `jobs` (step 1 kills them).
#[derive(Debug, Clone, PartialEq)]
pub struct JobLevelInput {
    /// κ, see [`crate::optimize::capacity::room_for_clones`].
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

crate::word!(
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
    let room = Room::slots(input.kappa);
    alloc_job_within(&input.jobs, input.max_clones, room, mode)
}

/// As [`alloc_job`], with attempts that take different amounts of several resources.
pub fn alloc_job_within(
    jobs: &[JobLevelJob],
    max_clones: u32,
    mut room: Room,
    mode: JobLevelMode,
) -> JobLevelOutcome {
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
        if needed > room.times(index) {
            waiting.remove(index);
            continue;
        }
        room.take(index, needed);
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
mod tests {
    use super::*;
    use crate::estimate::pareto::ln_miss;

    fn single(kappa: i64, max_clones: u32, tasks: u32) -> u32 {
        let ln_miss_attempt = ln_miss(0.0, 120.0, 500.0, 1.5);
        let input = JobLevelInput {
            kappa,
            max_clones,
            jobs: vec![JobLevelJob {
                tasks,
                ln_miss_attempt,
            }],
        };
        alloc_job(&input, JobLevelMode::Paper).clones[0]
    }

    #[test]
    fn a_single_job_gets_what_the_closed_form_says() {
        for kappa in -3..60 {
            for tasks in 1..7 {
                let closed = (kappa / i64::from(tasks)).clamp(0, 5);
                assert_eq!(i64::from(single(kappa, 5, tasks)), closed);
            }
        }
    }

    #[test]
    fn a_job_without_tasks_or_without_a_cap_ends_the_loop() {
        assert_eq!(single(100, u32::MAX, 0), 0);
        assert_eq!(single(100, u32::MAX, 3), 33);
        assert_eq!(single(100, 0, 3), 0);
    }

    #[test]
    fn a_hopeless_job_is_served_first_as_printed_and_not_at_all_when_guarded() {
        let input = JobLevelInput {
            kappa: 12,
            max_clones: 5,
            jobs: vec![
                JobLevelJob {
                    tasks: 2,
                    ln_miss_attempt: -1.0,
                },
                JobLevelJob {
                    tasks: 2,
                    ln_miss_attempt: 0.0,
                },
            ],
        };
        assert_eq!(alloc_job(&input, JobLevelMode::Paper).clones, [1, 5]);
        assert_eq!(alloc_job(&input, JobLevelMode::Paper).omega, 12);
        let guarded = alloc_job(&input, JobLevelMode::Guarded);
        assert_eq!((guarded.clones, guarded.omega), (vec![5, 0], 10));
    }
}
