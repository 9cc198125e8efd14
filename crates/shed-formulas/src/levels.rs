//! DollyMP §4: the measures of a job, and the priority levels that Algorithm 1 derives from them.

use std::collections::BTreeMap;

use crate::cluster::CpuMem;
use crate::dag::{DagError, Job, Phase};
use shed_core::estimate::compare::sort_with_ties;
pub use shed_core::round::levels::{
    LEVELS_MAX, LevelItem, Levels, level_length, levels, top_level,
};

/// e = (θ + ρσ)/slot, the effective time of a task in slots of `slot` seconds.
///
/// The printed formula lacks the factor that the sentence before it describes; the paper calls
/// it r and sets it to 1.5.
pub fn effective_time(phase: &Phase, rho: f64, slot: f64) -> f64 {
    (phase.theta + rho * phase.sigma) / slot
}

/// d = max(c/ΣC, m/ΣM), the dominant share of one copy of a task (DollyMP (9), (15)).
pub fn dominant_share(demand: &CpuMem, total: &CpuMem) -> f64 {
    demand.share_of(total).largest()
}

/// v(t) = Σ n(t)·e·d over the phases, the volume of a job in slots (DollyMP (14), (16)).
///
/// The work that running tasks have already done is not deducted.
pub fn volume(job: &Job, total: &CpuMem, rho: f64, slot: f64) -> f64 {
    let of_phase = |phase: &Phase| {
        let share = dominant_share(&phase.demand, total);
        phase.unfinished() as f64 * effective_time(phase, rho, slot) * share
    };
    job.phases.iter().map(of_phase).sum()
}

/// e(t), the longest chain of effective times over unfinished phases, in slots (DollyMP (14),
/// (17)).
///
/// # Errors
///
/// [`DagError`] if the phases are no partial order.
pub fn remaining_time(job: &Job, rho: f64, slot: f64) -> Result<f64, DagError> {
    let chains = job.chains(|phase| effective_time(phase, rho, slot))?;
    Ok(chains.longest)
}

/// A job of one task, for the transient use of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransientJob {
    /// The job's id.
    pub id: u64,
    /// Demand of a copy of its task.
    pub demand: CpuMem,
    /// θ, its time in slots.
    pub theta: f64,
}

/// Starts of Algorithm 1 on one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Transient {
    /// Algorithm 1's levels.
    pub priority: BTreeMap<u64, u32>,
    /// The ids of all jobs in the order of their priority, volume and id.
    pub order: Vec<u64>,
    /// Ids of the jobs that start, and with how many copies.
    pub launched: Vec<(u64, u32)>,
    /// Remaining capacity of the server.
    pub free: CpuMem,
}

/// Algorithm 1, steps 11–16: jobs that are all there at the start, on one server of `capacity`.
///
/// They start in the order of priority, volume and id, up to the first that does not fit. When the
/// next job does not fit, or the last has started, a second copy of the job just started gets the
/// remaining capacity if it fits. At most one job is cloned.
pub fn transient(jobs: &[TransientJob], capacity: &CpuMem) -> Transient {
    let items = transient_items(jobs, capacity);
    let priority = levels(&items).priority;
    let level_of = |item: &LevelItem| priority.get(&item.id).copied();
    let mut ordered = items;
    sort_with_ties(&mut ordered, |item| item.volume, |item| item.id);
    // A stable sort keeps the order by volume inside a level.
    ordered.sort_by_key(level_of);
    let order: Vec<u64> = ordered.iter().map(|item| item.id).collect();
    let (launched, free) = start_in_order(jobs, &order, *capacity);
    Transient {
        priority,
        order,
        launched,
        free,
    }
}

fn transient_items(jobs: &[TransientJob], capacity: &CpuMem) -> Vec<LevelItem> {
    let item = |job: &TransientJob| LevelItem {
        id: job.id,
        volume: job.theta * dominant_share(&job.demand, capacity),
        time: job.theta,
    };
    jobs.iter().map(item).collect()
}

fn start_in_order(
    jobs: &[TransientJob],
    order: &[u64],
    mut free: CpuMem,
) -> (Vec<(u64, u32)>, CpuMem) {
    let demands: BTreeMap<u64, CpuMem> = jobs.iter().map(|job| (job.id, job.demand)).collect();
    let mut launched: Vec<(u64, u32)> = Vec::new();
    let mut last = None;
    for (id, demand) in order.iter().filter_map(|id| Some((*id, *demands.get(id)?))) {
        if !demand.fits(&free) {
            break;
        }
        free = free.minus(&demand);
        launched.push((id, 1));
        last = Some(demand);
    }
    if let (Some(demand), Some((_, copies))) = (last, launched.last_mut())
        && demand.fits(&free)
    {
        free = free.minus(&demand);
        *copies += 1;
    }
    (launched, free)
}

/// The number of levels as printed, with base 2: log₂(Σv/(1 − max d)). `None` where that is
/// undefined, because a job's dominant share is 1 or there is no volume.
pub fn printed_top_level(jobs: &[TransientJob], capacity: &CpuMem) -> Option<f64> {
    let items = transient_items(jobs, capacity);
    let volume: f64 = items.iter().map(|item| item.volume).sum();
    let share = jobs
        .iter()
        .map(|job| dominant_share(&job.demand, capacity))
        .fold(0.0, f64::max);
    (share < 1.0 && volume > 0.0).then(|| libm::log2(volume / (1.0 - share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::tests::{job, phase};

    fn item(id: u64, volume: f64, time: f64) -> LevelItem {
        LevelItem { id, volume, time }
    }

    #[test]
    fn every_job_gets_a_level_however_long_or_small() {
        let items = [item(1, 1e-9, 1e9), item(2, 300.0, 1.0), item(3, 0.0, 0.0)];
        assert_eq!(levels(&items).priority.len(), 3);
        assert_eq!(levels(&[]), Levels::default());
        let endless = [item(1, f64::INFINITY, 1.0)];
        assert_eq!(top_level(&endless), LEVELS_MAX);
    }

    #[test]
    fn more_levels_than_needed_change_no_priority() {
        let mut items = vec![item(1, 1.0, 2.0), item(2, 3.0, 9.0), item(3, 2.0, 1.0)];
        let before = levels(&items).priority;
        items.push(item(4, 1000.0, 1000.0));
        let mut after = levels(&items).priority;
        after.remove(&4);
        assert_eq!(before, after);
    }

    #[test]
    fn the_order_of_the_input_does_not_matter() {
        let mut items = vec![item(3, 1.0, 2.0), item(1, 1.0, 2.0), item(2, 1.0, 2.0)];
        let before = levels(&items);
        items.reverse();
        assert_eq!(levels(&items), before);
    }

    #[test]
    fn a_job_that_fills_the_server_gets_no_clone() {
        let full = CpuMem { cpu: 1.0, mem: 0.5 };
        let jobs = [TransientJob {
            id: 1,
            demand: full,
            theta: 3.0,
        }];
        let capacity = CpuMem { cpu: 1.0, mem: 1.0 };
        assert_eq!(transient(&jobs, &capacity).launched, [(1, 1)]);
        assert_eq!(printed_top_level(&jobs, &capacity), None);
        let none = CpuMem::default();
        assert_eq!(transient(&jobs, &none).launched, []);
    }

    #[test]
    fn a_job_measures_what_is_unfinished() {
        let total = CpuMem { cpu: 4.0, mem: 8.0 };
        let mut chain = job(1, vec![phase(10.0, &[], 2), phase(6.0, &[0], 1)]);
        chain.phases[1].sigma = 2.0;
        assert_eq!(volume(&chain, &total, 1.5, 2.0), (20.0 + 9.0) / 2.0 / 4.0);
        assert_eq!(remaining_time(&chain, 1.5, 2.0), Ok(9.5));
        chain.phases[0].parents = vec![1];
        assert!(remaining_time(&chain, 1.5, 2.0).is_err());
    }
}
