//! The round of one slot of SCA (SCA/ESE Algorithm 1).

use shed_core::estimate::compare::sort_with_ties;
use shed_papers::formulas::sca::{CloneJob, Infeasible, P2, round_copies, solve_relaxed};

/// A job in a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotJob {
    /// The job.
    pub job: CloneJob,
    /// Whether a task of it was ever started.
    pub started: bool,
    /// Tasks without a copy.
    pub unassigned: u32,
    /// Tasks that run.
    pub running: Vec<RunningTask>,
}

/// A task that runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunningTask {
    /// Its position in the job.
    pub task: u32,
    /// Its copies.
    pub copies: u32,
    /// How long it will still take, in seconds.
    pub t_rem: f64,
}

/// First attempts that a slot starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// The job's id.
    pub job: u64,
    /// How many of its tasks start.
    pub tasks: u32,
    /// Copies of each.
    pub copies: u32,
}

/// How the jobs that had not started were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaMode {
    /// There were none, or no machine was left for them.
    None,
    /// All at once, with copies by P2.
    P2,
    /// Too many: the smallest first, one copy each.
    Srpt,
}

/// SCA's decisions in one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaRound {
    /// How new jobs were served.
    pub mode: ScaMode,
    /// Starts, in order.
    pub assigned: Vec<Assignment>,
    /// Machines that stay free.
    pub machines_left: u64,
}

/// One slot of SCA (SCA/ESE Algorithm 1). `p2.machines` is the number of idle machines.
///
/// Started jobs go first, those with the fewest unassigned tasks ahead. Then come the jobs without
/// a running task. If all their tasks fit with capacity to spare they start at once, with copies by
/// P2. Otherwise the one with the least m·E\[x\] starts first, one copy each. Ties go to the least
/// id.
pub fn sca_round(jobs: &[SlotJob], p2: &P2) -> ScaRound {
    let mut started: Vec<&SlotJob> = jobs.iter().filter(|job| job.started).collect();
    started.sort_by_key(|job| (job.unassigned, job.job.id));
    let mut free = p2.machines;
    let mut assigned = Vec::new();
    for job in started {
        free = assign_singly(job.job.id, job.unassigned, free, &mut assigned);
    }
    let mut new: Vec<CloneJob> = jobs
        .iter()
        .filter(|job| !job.started)
        .map(|job| job.job)
        .collect();
    new.sort_by_key(|job| job.id);
    let needed: u64 = new.iter().map(|job| u64::from(job.tasks)).sum();
    let left = P2 {
        machines: free,
        ..*p2
    };
    let solved = (needed < free).then(|| solve_relaxed(&new, &left));
    let mode = match solved {
        _ if free == 0 || new.is_empty() => ScaMode::None,
        Some(Ok(relaxed)) => {
            for (job, copies) in new.iter().zip(round_copies(&new, &left, &relaxed)) {
                free = free.saturating_sub(u64::from(job.tasks) * u64::from(copies));
                assigned.push(Assignment {
                    job: job.id,
                    tasks: job.tasks,
                    copies,
                });
            }
            ScaMode::P2
        }
        Some(Err(Infeasible { .. })) | None => {
            sort_with_ties(&mut new, CloneJob::work, |job| job.id);
            for job in &new {
                free = assign_singly(job.id, job.tasks, free, &mut assigned);
            }
            ScaMode::Srpt
        }
    };
    ScaRound {
        mode,
        assigned,
        machines_left: free,
    }
}

/// Starts one copy of as many of `tasks` tasks as there are free machines. Returns the remaining
/// machines.
pub(crate) fn assign_singly(
    job: u64,
    tasks: u32,
    free: u64,
    assigned: &mut Vec<Assignment>,
) -> u64 {
    let tasks = u64::from(tasks).min(free) as u32;
    if tasks > 0 {
        assigned.push(Assignment {
            job,
            tasks,
            copies: 1,
        });
    }
    free.saturating_sub(u64::from(tasks))
}

#[cfg(test)]
mod tests;
