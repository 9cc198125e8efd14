//! Workloads made up from the papers' descriptions of their experiments: sizes, arrivals, deadlines and Pareto times.
//! `setup:P-1{tasks=10,load=0.4}` on the command line.
//!
//! Arrivals are Poisson with the mean gap that the paper gives, or the one at which the tasks' mean times add up to
//! the load. Deadlines and t_min are the papers' (seconds). If a paper varies a quantity or does not give it, the
//! value here is a starting point and a parameter changes it. These are the deadline in P-2 and P-5, the load in P-3
//! and P-5, and the load of L-1 and L-2.

use std::str::FromStr;
use std::sync::Arc;

use shed_core::settings::Parsed;
use shed_core::time::{Instant, Span};

use super::{Job, Stage, Trace};
use crate::random::{Purpose, Stream};

/// A made-up workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Sizes, with the number of jobs of each.
    mix: Vec<(usize, usize)>,
    gap: Gap,
    deadline: f64,
    t_min: f64,
    beta: f64,
    max: Option<f64>,
    /// Times are not Pareto but uniform within this share of t_min.
    spread: Option<f64>,
    /// Slots of the paper's cluster.
    pub slots: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Gap {
    Seconds(f64),
    Load(f64),
}

/// For `--help` and messages.
pub const HELP: &str = "`setup:NAME` with NAME one of S-1, S-2, S-3, P-1 to P-6, L-1, L-2, SCA, A, C, \
    and optionally {tasks=,jobs=,deadline=,load=,gap=,beta=,t_min=,max=,slots=}";

impl Setup {
    fn named(name: &str) -> Option<Self> {
        let thirds = |jobs: usize| vec![(5, jobs / 3), (10, jobs / 3), (20, jobs / 3)];
        let base = |mix, gap, deadline, slots| Self {
            mix,
            gap,
            deadline,
            t_min: 120.0,
            beta: 2.0,
            max: None,
            spread: None,
            slots,
        };
        Some(match name {
            "S-1" => base(vec![(10, 100)], Gap::Seconds(300.0), 620.0, 120),
            "S-2" => base(
                vec![(5, 50), (10, 30), (20, 20)],
                Gap::Seconds(300.0),
                500.0,
                120,
            ),
            "S-3" => base(vec![(10, 100)], Gap::Seconds(300.0), 500.0, 120),
            "P-1" => base(thirds(99), Gap::Load(0.4), 450.0, 138),
            // Deadlines up to the median time without Shed+, about 450 s with these times.
            "P-2" => base(thirds(99), Gap::Load(0.4), 400.0, 138),
            // One deadline, the load varied.
            "P-3" => base(thirds(99), Gap::Load(0.4), 450.0, 138),
            // "Higher rate": more than twice that of P-1.
            "P-5" => base(vec![(20, 100)], Gap::Load(0.9), 560.0, 120),
            "P-4" | "P-6" => base(vec![(10, 100)], Gap::Load(0.4), 400.0, 138),
            "L-1" | "L-2" => Self {
                beta: 1.7,
                t_min: 60.0,
                ..base(
                    vec![(10, 100)],
                    Gap::Load(0.1),
                    if name == "L-1" { 250.0 } else { 180.0 },
                    640,
                )
            },
            // The mean number of tasks per job and their mean time are those of the trace of SCA and ESE; a fiftieth
            // of its 12 000 machines.
            "SCA" => Self {
                t_min: 589.85,
                ..base(
                    vec![(1, 24), (10, 23), (100, 13)],
                    Gap::Load(0.448),
                    0.0,
                    240,
                )
            },
            // The set of the policy exploration: many stragglers, mixed sizes.
            "A" => Self {
                beta: 1.5,
                ..base(thirds(150), Gap::Load(0.8), 0.0, 138)
            },
            // The same sizes with tasks that differ little, so that slowness comes from the machine.
            "C" => Self {
                spread: Some(0.15),
                ..base(thirds(150), Gap::Load(0.8), 0.0, 138)
            },
            _ => return None,
        })
    }

    fn set(&mut self, name: &str, value: f64) -> Option<()> {
        let jobs: usize = self.mix.iter().map(|(_, jobs)| jobs).sum();
        match name {
            "tasks" => self.mix = vec![(value as usize, jobs)],
            "jobs" => {
                for (_, count) in &mut self.mix {
                    *count = (*count as f64 * value / jobs as f64).round() as usize;
                }
            }
            "deadline" => self.deadline = value,
            "load" => self.gap = Gap::Load(value),
            "gap" => self.gap = Gap::Seconds(value),
            "beta" => self.beta = value,
            "t_min" => self.t_min = value,
            "max" => self.max = Some(value),
            "slots" => self.slots = value as u32,
            _ => return None,
        }
        Some(())
    }

    /// The attempt-time model of the set-up.
    pub fn model(&self) -> crate::model::Model {
        if self.spread.is_some() {
            return crate::model::Model::Trace;
        }
        crate::model::Model::Pareto {
            beta: self.beta,
            t_min: Some(self.t_min),
            max: self.max,
        }
    }

    /// Generates the workload.
    pub fn trace(&self, seed: u64) -> Trace {
        let mut sizes: Vec<usize> = Vec::new();
        for &(tasks, jobs) in &self.mix {
            sizes.extend(std::iter::repeat_n(tasks, jobs));
        }
        let mut stream = Stream::new(seed, Purpose::Workload, [1, 0, 0]);
        shuffle(&mut sizes, &mut stream);
        let mut at = 0.0;
        let mut jobs = Vec::with_capacity(sizes.len());
        let mean_size = sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64;
        let gap = match self.gap {
            Gap::Seconds(gap) => gap,
            Gap::Load(load) => mean_size * self.mean_time() / (load * f64::from(self.slots)),
        };
        // Where deadlines are the paper's, launches of a share of the median differ from job to job.
        let usual = Some(Span::from_seconds_f64(self.median_time()));
        for (number, tasks) in sizes.into_iter().enumerate() {
            let durations = (0..tasks).map(|_| self.time(&mut stream)).collect();
            jobs.push(Job {
                id: Arc::from(format!("j{number}")),
                arrival: Instant(Span::from_seconds_f64(at).0),
                deadline: (self.deadline > 0.0).then(|| Span::from_seconds_f64(self.deadline)),
                weight: 1.0,
                class: None,
                usual: usual.filter(|_| self.deadline <= 0.0),
                tenant: None,
                expected: None,
                stages: vec![Stage {
                    durations,
                    ..Stage::default()
                }],
            });
            at += stream.exponential(gap);
        }
        Trace { jobs }
    }

    fn mean_time(&self) -> f64 {
        let (t, b) = (self.t_min, self.beta);
        if self.spread.is_some() {
            return t;
        }
        match self.max {
            // E[T | T ≤ max]: the integral of t·density over [t_min, max].
            Some(max) if max > t => {
                let tail = libm::pow(t / max, b);
                let whole = if (b - 1.0).abs() < 1e-9 {
                    t * libm::log(max / t)
                } else {
                    b * t / (b - 1.0) * (1.0 - libm::pow(t / max, b - 1.0))
                };
                whole / (1.0 - tail)
            }
            _ if b > 1.0 => b * t / (b - 1.0),
            // Without a mean the load is undefined; the median replaces the mean.
            _ => t * libm::pow(2.0, 1.0 / b),
        }
    }

    fn median_time(&self) -> f64 {
        let (t, b) = (self.t_min, self.beta);
        if self.spread.is_some() {
            return t;
        }
        // Half of the distribution below the truncation.
        let below = self.max.filter(|max| *max > t);
        let below = below.map_or(1.0, |max| 1.0 - libm::pow(t / max, b));
        t * libm::pow(1.0 - below / 2.0, -1.0 / b)
    }

    fn time(&self, stream: &mut Stream) -> Span {
        if let Some(spread) = self.spread {
            let seconds = self.t_min * stream.between(1.0 - spread, 1.0 + spread);
            return Span::from_seconds_f64(seconds);
        }
        Span::from_seconds_f64(match self.max.filter(|max| *max > self.t_min) {
            Some(max) => stream.truncated_pareto(self.t_min, self.beta, max),
            None => stream.pareto(self.t_min, self.beta),
        })
    }
}

fn shuffle(sizes: &mut [usize], stream: &mut Stream) {
    for last in (1..sizes.len()).rev() {
        sizes.swap(last, stream.index(last + 1));
    }
}

impl FromStr for Setup {
    type Err = String;

    /// Reads the text after `setup:`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = Parsed::new(text).map_err(|fault| format!("{fault}; {HELP}"))?;
        let unknown = || format!("unknown set-up `{}`; {HELP}", parsed.name);
        let mut setup = Self::named(parsed.name).ok_or_else(unknown)?;
        for (name, value) in &parsed.pairs {
            let number = value.parse::<f64>().ok();
            let number = number.filter(|number| *number > 0.0 && *number <= 1e6);
            let set = number.and_then(|number| setup.set(name, number));
            set.ok_or_else(|| format!("`{name}={value}` is not parameter=number above 0; {HELP}"))?;
        }
        Ok(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(text: &str) -> Setup {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_set_up_of_the_papers_is_there_and_has_its_jobs() {
        for (name, jobs, sizes, slots) in [
            ("S-1", 100, &[10][..], 120),
            ("S-2", 100, &[5, 10, 20], 120),
            ("S-3", 100, &[10], 120),
            ("P-1", 99, &[5, 10, 20], 138),
            ("P-2", 99, &[5, 10, 20], 138),
            ("P-3", 99, &[5, 10, 20], 138),
            ("P-4", 100, &[10], 138),
            ("P-5", 100, &[20], 120),
            ("P-6", 100, &[10], 138),
            ("L-1", 100, &[10], 640),
            ("L-2", 100, &[10], 640),
            ("SCA", 60, &[1, 10, 100], 240),
        ] {
            let setup = setup(name);
            let trace = setup.trace(7);
            assert_eq!((trace.jobs.len(), setup.slots), (jobs, slots), "{name}");
            let mut found: Vec<usize> = trace.jobs.iter().map(Job::tasks).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, sizes, "{name}");
            let is_bound = trace.jobs.iter().all(|job| job.deadline.is_some());
            // SCA and ESE have no deadlines.
            assert_eq!(is_bound, name != "SCA", "{name}");
        }
    }

    #[test]
    fn the_mean_gap_is_the_one_that_gives_the_load() {
        // N·E[T]/(load·m) with E[T] = 240 s: 21.7, 43.5 and 87.0 s.
        for (tasks, gap) in [(5, 21.7), (10, 43.5), (20, 87.0)] {
            let setup = setup(&format!("P-3{{tasks={tasks},jobs=20000,load=0.4}}"));
            let trace = setup.trace(1);
            let last = trace.jobs.last().map(|job| job.arrival.0 as f64 / 1000.0);
            let mean = last.unwrap_or(0.0) / (trace.jobs.len() - 1) as f64;
            // The mean of 20 000 exponential gaps has a relative error of 0.7 %.
            assert!((mean / gap - 1.0).abs() < 0.03, "{tasks} tasks: {mean} s");
        }
    }

    #[test]
    fn what_a_paper_varies_can_be_set() {
        let trace = setup("P-2{deadline=350}").trace(1);
        let deadline = Some(Span::from_seconds(350));
        assert!(trace.jobs.iter().all(|job| job.deadline == deadline));
        let near = |load: &str| setup(&format!("P-5{{load={load}}}")).trace(1);
        let end = |trace: Trace| trace.jobs.last().map(|job| job.arrival);
        assert!(end(near("0.9")) < end(near("0.45")));
    }

    #[test]
    fn unknown_setups_and_parameters_are_refused_with_valid_ones() {
        for (text, fault) in [
            ("P-7", "unknown set-up `P-7`"),
            (
                "P-2{deadline=0}",
                "`deadline=0` is not parameter=number above 0",
            ),
            ("P-2{speed=2}", "`speed=2` is not"),
            ("P-2{load", "lacks its `}`"),
        ] {
            let message = text.parse::<Setup>().unwrap_err();
            assert!(message.contains(fault), "{message}");
            assert!(message.contains("P-1 to P-6"), "{message}");
        }
    }
}
