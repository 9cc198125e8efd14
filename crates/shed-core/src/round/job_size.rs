//! The size of a job as DollyMP, SRPT, SVF and Tetris define it. A job here is one phase. Where the other phases of its
//! run are known, they count too.

use crate::estimate::distribution::AttemptDistribution;
use crate::round::levels::{LevelItem, Levels, levels};
use crate::round::{JobView, Round};
use crate::snapshot::PhaseTime;

/// The size of a job's remaining work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JobSize {
    /// e = (θ + ρσ)/slot: the effective time of its tasks, and for a run the longest chain of unfinished phases. It is
    /// 0 while nothing is known of the job. Such a job is served early, so that something becomes known.
    pub(crate) time: f64,
    /// v = n·e·d: its volume, n being the tasks that have not ended and d the dominant share; for a run the sum over its
    /// phases, all with the share of this one.
    pub(crate) volume: f64,
}

impl Round<'_> {
    /// DollyMP (14)–(17), with ρ standard deviations added to the mean and times in slots of `slot` seconds.
    pub(crate) fn job_size(&self, position: usize, rho: f64, slot: f64) -> JobSize {
        let Some(state) = self.jobs.get(position) else {
            return JobSize {
                time: 0.0,
                volume: 0.0,
            };
        };
        let own = task_time(state);
        let mut time = own.effective(rho) / slot;
        let mut tasks_time = f64::from(state.unfinished()) * time;
        if let Some(phases) = &state.job.phases {
            let chains = [own.plus(phases.after), phases.other_chain];
            let [through, other_chain] = chains.map(|chain| chain.effective(rho));
            time = through.max(other_chain) / slot;
            tasks_time += phases.volume.effective(rho) / slot;
        }
        let volume = tasks_time * self.capacity.dominant_share(position);
        JobSize {
            time,
            volume: if volume.is_finite() { volume } else { f64::MAX },
        }
    }

    /// For how many seconds the phase can wait without a later end of its run, if each phase takes its mean time: the
    /// longest chain of the run less the longest one through this phase; 0 where no other phase is known.
    pub(crate) fn phase_slack(&self, position: usize) -> f64 {
        let state = self.jobs.get(position);
        let of = |state: &JobView<'_>| {
            let phases = state.job.phases.as_ref()?;
            let through = task_time(state).plus(phases.after);
            Some((phases.other_chain.mean - through.mean).max(0.0))
        };
        state.and_then(of).unwrap_or(0.0)
    }

    /// DollyMP Algorithm 1: the level of each job, by position; 1 is served first. Submission breaks ties. The paper
    /// computes the levels when a job arrives; here each pass does.
    pub(crate) fn levels(&self, rho: f64, slot: f64) -> Vec<u32> {
        let order = self.by_submission();
        let items = order.iter().zip(0..).map(|(&position, id)| {
            let JobSize { time, volume } = self.job_size(position, rho, slot);
            LevelItem { id, volume, time }
        });
        let items: Vec<LevelItem> = items.collect();
        let Levels { top, priority, .. } = levels(&items);
        let mut result = vec![top.saturating_add(1); self.jobs.len()];
        for (&position, id) in order.iter().zip(0u64..) {
            if let (Some(slot), Some(&level)) = (result.get_mut(position), priority.get(&id)) {
                *slot = level;
            }
        }
        result
    }
}

/// θ and σ of a task of the job: from what has been seen of it, else from its run's phases.
fn task_time(state: &JobView<'_>) -> PhaseTime {
    let known = state.job.ended_runs.iter().map(|run| run.seconds());
    let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
    let times: Vec<f64> = known.chain(attempts.filter_map(|a| a.total)).collect();
    let expected = || {
        let distribution = state.estimate.distribution.as_ref();
        distribution.map(AttemptDistribution::mean)
    };
    let mean = state.estimate.mean_run.or_else(expected);
    let mean = mean.filter(|mean| mean.is_finite());
    if let (None, Some(phases)) = (mean, &state.job.phases) {
        return phases.own;
    }
    let mean = mean.unwrap_or(0.0);
    let squares: f64 = times.iter().map(|time| (time - mean) * (time - mean)).sum();
    PhaseTime {
        mean,
        deviation: (squares / times.len().max(1) as f64).sqrt(),
    }
}
