//! A part of a trace: jobs of a size, stages on their own, a window of consecutive jobs.

use std::ops::RangeInclusive;
use std::sync::Arc;

use shed_core::time::Span;

use super::{Job, Trace};
use crate::random::{Purpose, Stream};

/// The selected part of a trace; the fields apply in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Each stage becomes a job of its own, without parents.
    pub split_stages: bool,
    /// Jobs with this number of tasks.
    pub tasks: Option<RangeInclusive<usize>>,
    /// Jobs whose median task takes at least this.
    pub min_median: Span,
    /// The half of the jobs, by arrival.
    pub half: Half,
    /// This many consecutive jobs, from a random position that depends on the seed; arrivals count from the first.
    pub window: Option<usize>,
}

/// A half of a trace: a design made on one half can be checked on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Half {
    /// The whole trace.
    Both,
    /// The jobs that arrive first.
    First,
    /// The others.
    Second,
}

impl Cut {
    /// Cuts the trace.
    pub fn apply(&self, mut trace: Trace, seed: u64) -> Trace {
        if self.split_stages {
            trace.jobs = trace.jobs.into_iter().flat_map(stages_alone).collect();
        }
        trace.jobs.retain(|job| self.keeps(job));
        let middle = trace.jobs.len() / 2;
        match self.half {
            Half::Both => {}
            Half::First => trace.jobs.truncate(middle),
            Half::Second => trace.jobs = trace.jobs.split_off(middle),
        }
        if let Some(window) = self.window {
            let places = trace.jobs.len().saturating_sub(window) + 1;
            let mut stream = Stream::new(seed, Purpose::Workload, [3, 0, 0]);
            trace.jobs = trace.jobs.split_off(stream.index(places));
            trace.jobs.truncate(window);
        }
        let first = trace.jobs.first().map(|job| job.arrival);
        for job in &mut trace.jobs {
            job.arrival.0 -= first.map_or(0, |first| first.0);
        }
        trace
    }

    fn keeps(&self, job: &Job) -> bool {
        let of_size = self.tasks.as_ref();
        of_size.is_none_or(|tasks| tasks.contains(&job.tasks()))
            && (self.min_median.0 == 0 || job.median_duration() >= self.min_median)
    }
}

fn stages_alone(job: Job) -> Vec<Job> {
    if job.stages.len() == 1 {
        return vec![job];
    }
    let mut jobs = Vec::with_capacity(job.stages.len());
    for (position, stage) in job.stages.iter().enumerate() {
        let mut stage = stage.clone();
        stage.parents.clear();
        jobs.push(Job {
            id: Arc::from(format!("{}.{position}", job.id)),
            stages: vec![stage],
            ..job.clone()
        });
    }
    jobs
}

#[cfg(test)]
mod tests {
    use shed_core::time::Instant;

    use super::*;
    use crate::trace::Stage;

    /// Job i has i tasks in each of its two stages, of i seconds, and arrives at i seconds.
    fn trace(count: usize) -> Trace {
        let jobs = (1..=count).map(|number| {
            let stage = Stage {
                durations: vec![Span::from_seconds(number as i64); number],
                ..Stage::default()
            };
            let mut second = stage.clone();
            second.parents = vec![0];
            Job {
                id: Arc::from(format!("j{number}")),
                arrival: Instant(number as i64 * 1000),
                deadline: None,
                weight: 1.0,
                class: None,
                usual: None,
                tenant: None,
                expected: None,
                stages: vec![stage, second],
            }
        });
        Trace {
            jobs: jobs.collect(),
        }
    }

    fn whole() -> Cut {
        Cut {
            split_stages: false,
            tasks: None,
            min_median: Span(0),
            half: Half::Both,
            window: None,
        }
    }

    fn ids(trace: &Trace) -> Vec<&str> {
        trace.jobs.iter().map(|job| &*job.id).collect()
    }

    #[test]
    fn jobs_of_a_size_and_of_a_length_are_kept() {
        let cut = Cut {
            tasks: Some(4..=8),
            min_median: Span::from_seconds(3),
            ..whole()
        };
        let kept = cut.apply(trace(6), 0);
        assert_eq!(ids(&kept), ["j3", "j4"]);
        assert_eq!(kept.jobs[0].arrival, Instant(0), "time counts from there");
    }

    #[test]
    fn halves_share_no_job_and_lose_none() {
        let half = |half| Cut { half, ..whole() }.apply(trace(5), 0);
        assert_eq!(ids(&half(Half::First)), ["j1", "j2"]);
        assert_eq!(ids(&half(Half::Second)), ["j3", "j4", "j5"]);
    }

    #[test]
    fn a_window_is_consecutive_and_lies_elsewhere_with_another_seed() {
        let cut = Cut {
            window: Some(3),
            ..whole()
        };
        let mut first = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let kept = cut.apply(trace(9), seed);
            let arrivals: Vec<i64> = kept.jobs.iter().map(|job| job.arrival.0).collect();
            assert_eq!(arrivals, [0, 1000, 2000]);
            first.insert(kept.jobs[0].id.to_string());
        }
        assert!(first.len() > 4, "{first:?}");
        assert_eq!(cut.apply(trace(2), 1).jobs.len(), 2);
    }

    #[test]
    fn stages_on_their_own_wait_for_nobody() {
        let cut = Cut {
            split_stages: true,
            ..whole()
        };
        let split = cut.apply(trace(2), 0);
        assert_eq!(ids(&split), ["j1.0", "j1.1", "j2.0", "j2.1"]);
        assert!(
            split
                .jobs
                .iter()
                .all(|job| job.stages[0].parents.is_empty())
        );
    }
}
