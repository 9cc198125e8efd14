//! The jobs of a trace that are replayed, and their scaled durations.

use std::ops::RangeInclusive;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use shed_core::time::Span;
use shed_sim::model::{Model, Which};
use shed_sim::settings::Cluster;
use shed_sim::trace::cut::{Cut, Half};
use shed_sim::trace::{Demand, Job, Trace};
use shed_sim::workload::{Shaping, shape};

/// Tasks measure their time in hundredths of a second.
const TICK_MS: i64 = 10;
/// The duration of a clone is drawn from its job's other tasks, as in the simulator's presets on real traces.
pub const MODEL: Model = Model::Resample;

/// The rule by which an excerpt is taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// How many tasks there are in all.
    pub tasks: usize,
    /// Jobs with this many tasks count.
    pub per_job: RangeInclusive<usize>,
    /// Jobs whose median task takes this many seconds in the trace count.
    pub median_s: RangeInclusive<i64>,
    /// Draws the place in the trace, and what clones take.
    pub seed: u64,
    /// The tasks' times at full speed / (slots × time from the first arrival to the last).
    pub load: f64,
    /// From the first arrival to the last, in seconds of the replay.
    pub span_s: f64,
    /// k: a job has k × its median × ⌈tasks / (slots / 4)⌉ from its arrival.
    pub deadline_factor: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            tasks: 200,
            per_job: 3..=12,
            median_s: 150..=900,
            seed: 1,
            load: 0.6,
            span_s: 360.0,
            deadline_factor: 2.0,
        }
    }
}

impl Rule {
    /// Takes the excerpt: consecutive jobs that count, without those that would be more than is left to
    /// the number of tasks. Times are scaled by one factor, arrivals by another, so that `load` is
    /// reached within `span_s`; deadlines are whole seconds.
    pub fn take(&self, trace: Trace, slots: u32) -> Result<Trace> {
        let counted = self.cut(trace);
        let mut left = self.tasks;
        let mut jobs = Vec::new();
        for job in counted.jobs {
            let rest = left.checked_sub(job.tasks());
            // Nothing fits into less than the smallest job.
            if let Some(rest) = rest.filter(|rest| *rest == 0 || rest >= self.per_job.start()) {
                left = rest;
                jobs.push(job);
            }
        }
        if left > 0 {
            bail!(
                "the trace has {} tasks in jobs of one stage, {} to {} tasks and a median of {} to {} s from \
                 there on, and {} are asked for: take fewer (--tasks), another --seed or another --trace",
                self.tasks - left,
                self.per_job.start(),
                self.per_job.end(),
                self.median_s.start(),
                self.median_s.end(),
                self.tasks
            );
        }
        self.scale(&mut jobs, slots);
        let shaping = Shaping {
            load: Some(self.load),
            deadline_factor: Some(self.deadline_factor),
            seed: self.seed,
            ..Shaping::default()
        };
        let mut shaped = shape(Trace { jobs }, &shaping, &Cluster::Slots(slots))?;
        for deadline in shaped
            .jobs
            .iter_mut()
            .filter_map(|job| job.deadline.as_mut())
        {
            *deadline = Span::from_seconds((deadline.0 + 999) / 1000);
        }
        Ok(shaped)
    }

    fn cut(&self, mut trace: Trace) -> Trace {
        let longest = Span::from_seconds(*self.median_s.end());
        trace
            .jobs
            .retain(|job| job.stages.len() == 1 && job.median_duration() <= longest);
        let cut = Cut {
            split_stages: false,
            tasks: Some(self.per_job.clone()),
            min_median: Span::from_seconds(*self.median_s.start()),
            half: Half::Both,
            // Enough, were all of them the smallest.
            window: Some(self.tasks.div_ceil(*self.per_job.start())),
        };
        cut.apply(trace, self.seed)
    }

    fn scale(&self, jobs: &mut [Job], slots: u32) {
        let work: i64 = jobs
            .iter()
            .flat_map(Job::durations)
            .map(|span| span.0)
            .sum();
        let wanted = self.load * self.span_s * 1000.0 * f64::from(slots);
        let factor = wanted / work as f64;
        for job in jobs {
            job.deadline = None;
            for stage in &mut job.stages {
                // An attempt holds one slot, here and there.
                stage.demand = Demand::default();
                for time in &mut stage.durations {
                    let ticks = (time.0 as f64 * factor / TICK_MS as f64).round() as i64;
                    time.0 = ticks.max(1) * TICK_MS;
                }
            }
        }
    }
}

/// The same with all times this many times as long.
pub fn stretched(workload: &Trace, times: i64) -> Trace {
    let mut long = workload.clone();
    for job in &mut long.jobs {
        job.arrival.0 *= times;
        let work = job.stages.iter_mut().flat_map(|stage| &mut stage.durations);
        for span in work.chain(&mut job.deadline) {
            span.0 *= times;
        }
    }
    long
}

/// Durations of a task's attempts at full speed, in hundredths of a second, by their numbers: the
/// simulator's own samples.
pub fn ticks(workload: &Trace, job: usize, task: u32, attempts: u32, seed: u64) -> Vec<i64> {
    let drawn = &workload.jobs[job];
    let median = drawn.median_duration();
    let draw = |attempt| {
        let which = Which {
            job: job as u32,
            stage: 0,
            task,
            attempt,
        };
        MODEL.draw(seed, drawn, median, which).work.0 / TICK_MS
    };
    (0..attempts).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shed_core::time::Instant;
    use shed_sim::trace::Stage;
    use shed_sim::trace::setups::Setup;

    use super::*;

    /// Job i of `sizes` arrives at i × 100 s; its tasks take 200, 201, … seconds.
    fn trace(sizes: &[usize]) -> Trace {
        let job = |(number, &size): (usize, &usize)| Job {
            id: Arc::from(format!("j{number}")),
            arrival: Instant(number as i64 * 100_000),
            deadline: Some(Span(1)),
            weight: 1.0,
            class: None,
            tenant: None,
            usual: None,
            expected: None,
            stages: vec![Stage {
                durations: (0..size)
                    .map(|task| Span::from_seconds(200 + task as i64))
                    .collect(),
                ..Stage::default()
            }],
        };
        Trace {
            jobs: sizes.iter().enumerate().map(job).collect(),
        }
    }

    /// Its window is as long as the trace, so that the seed draws nothing.
    fn rule(tasks: usize) -> Rule {
        Rule {
            tasks,
            ..Rule::default()
        }
    }

    #[test]
    fn an_excerpt_fills_its_task_count_and_skips_what_does_not_fit() {
        let taken = rule(22).take(trace(&[2, 10, 40, 9, 5, 3, 7]), 24).unwrap();
        let ids: Vec<&str> = taken.jobs.iter().map(|job| &*job.id).collect();
        assert_eq!(
            ids,
            ["j1", "j3", "j5"],
            "2 and 40 are no sizes that count, 5 is more than is left"
        );
    }

    #[test]
    fn load_and_span_are_as_requested_and_deadlines_whole_seconds() {
        let rule = rule(30);
        let taken = rule.take(trace(&[10, 9, 8, 3]), 24).unwrap();
        let work: i64 = taken
            .jobs
            .iter()
            .flat_map(Job::durations)
            .map(|span| span.0)
            .sum();
        let span = taken
            .jobs
            .last()
            .unwrap()
            .arrival
            .since(taken.jobs[0].arrival);
        assert!((span.seconds() - rule.span_s).abs() < 1.0, "{span:?}");
        assert!((work as f64 / 1000.0 / (24.0 * span.seconds()) - rule.load).abs() < 0.01);
        let first = &taken.jobs[0];
        let deadline = first.deadline.unwrap();
        assert_eq!(deadline.0 % 1000, 0);
        // 10 tasks on a quarter of 24 slots are two waves.
        let exact = 2.0 * 2.0 * first.median_duration().seconds();
        assert!(
            (0.0..1.0).contains(&(deadline.seconds() - exact)),
            "{deadline:?} for {exact}"
        );
    }

    #[test]
    fn what_is_stretched_keeps_its_load() {
        let taken = rule(30).take(trace(&[10, 9, 8, 3]), 24).unwrap();
        let long = stretched(&taken, 10);
        let last = |trace: &Trace| trace.jobs.last().cloned().unwrap();
        assert_eq!(last(&long).arrival.0, 10 * last(&taken).arrival.0);
        assert_eq!(
            last(&long).deadline.unwrap().0,
            10 * last(&taken).deadline.unwrap().0
        );
        let work = |trace: &Trace| last(trace).durations().map(|span| span.0).sum::<i64>();
        assert_eq!(work(&long), 10 * work(&taken));
    }

    #[test]
    fn attempts_take_what_the_simulator_draws() {
        let taken = rule(30).take(trace(&[10, 9, 8, 3]), 24).unwrap();
        let own = |task: usize| taken.jobs[0].stages[0].durations[task].0 / TICK_MS;
        let drawn = ticks(&taken, 0, 3, 6, 1);
        assert_eq!(
            drawn[0],
            own(3),
            "the first attempt takes the task's own time"
        );
        assert!(
            drawn[1..]
                .iter()
                .all(|time| (0..10).any(|task| own(task) == *time))
        );
        assert_ne!(
            drawn[1..],
            ticks(&taken, 0, 3, 6, 2)[1..],
            "other seeds, other clones"
        );
    }

    #[test]
    fn the_made_up_workload_is_enough() {
        let setup: Setup = "A".parse().unwrap();
        let taken = Rule::default().take(setup.trace(1), 24).unwrap();
        let tasks: usize = taken.jobs.iter().map(Job::tasks).sum();
        assert_eq!(tasks, 200);
    }

    #[test]
    fn too_short_a_trace_says_what_there_is() {
        let error = rule(200).take(trace(&[10, 9]), 24).unwrap_err().to_string();
        assert!(
            error.contains("has 19 tasks") && error.contains("--tasks"),
            "{error}"
        );
    }
}
