//! The size of a job as DollyMP, SRPT, SVF and Tetris define it. Jobs here have one phase.

use crate::estimate::distribution::AttemptDistribution;
use crate::round::Round;
use crate::round::levels::{LevelItem, Levels, levels};

/// The size of a job's remaining work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JobSize {
    /// e = (θ + ρσ)/slot: the effective time of its tasks. It is 0 while nothing is known of the job. Such a job is
    /// served early, so that something becomes known.
    pub(crate) time: f64,
    /// v = n·e·d: its volume, n being the tasks that have not ended and d the dominant share.
    pub(crate) volume: f64,
}

impl Round<'_> {
    /// DollyMP (14)–(17) for a job of one phase, with ρ standard deviations added to the mean and
    /// times in slots of `slot` seconds.
    pub(crate) fn job_size(&self, position: usize, rho: f64, slot: f64) -> JobSize {
        let Some(state) = self.jobs.get(position) else {
            return JobSize {
                time: 0.0,
                volume: 0.0,
            };
        };
        let known = state.job.ended_runs.iter().map(|run| run.seconds());
        let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
        let times: Vec<f64> = known.chain(attempts.filter_map(|a| a.total)).collect();
        let mean = state.estimate.mean_run;
        let mean = mean.or_else(|| {
            state
                .estimate
                .distribution
                .as_ref()
                .map(AttemptDistribution::mean)
        });
        let mean = mean.filter(|mean| mean.is_finite()).unwrap_or(0.0);
        let squares: f64 = times.iter().map(|time| (time - mean) * (time - mean)).sum();
        let deviation = (squares / times.len().max(1) as f64).sqrt();
        let time = (mean + rho * deviation) / slot;
        let share = self.capacity.dominant_share(position);
        let volume = f64::from(state.unfinished()) * time * share;
        JobSize {
            time,
            volume: if volume.is_finite() { volume } else { f64::MAX },
        }
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
