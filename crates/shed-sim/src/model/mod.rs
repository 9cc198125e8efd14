//! Attempt durations. Each model states which of them are real and which are sampled. A sample depends only on the
//! seed, the task and the attempt's number, never on the actions of a policy.

use std::fmt;
use std::str::FromStr;

use shed_core::time::Span;

use crate::random::{Purpose, Stream};
use crate::trace::{Ending, Job};

mod parse;
pub mod slowdown;

/// An attempt-time model, chosen by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// Real: every attempt of a task takes the time in the trace, including clones. Sampled: nothing. It is the
    /// opposite extreme of `resample`: slowness belongs to the task, and clones are useless.
    Trace,
    /// Real: the first attempt. Sampled: a clone or retry takes the time of any task of its stage.
    Resample,
    /// Real: the first attempt. Sampled: a clone or retry, from a Pareto distribution. In a share of the tasks
    /// slowness belongs to the task, and every attempt takes the time of the first.
    Fresh {
        /// Shape β.
        beta: f64,
        /// Minimum in seconds.
        t_min: f64,
        /// The share of tasks whose attempts all take the time of the first.
        own: f64,
    },
    /// Real: only each job's median. Sampled: every attempt, from a Pareto distribution with that median, or with the
    /// given minimum. `max` truncates the distribution: longer times never occur.
    Pareto {
        /// Shape β.
        beta: f64,
        /// Minimum in seconds. If absent, it keeps the job's median unchanged.
        t_min: Option<f64>,
        /// Longest time in seconds.
        max: Option<f64>,
    },
    /// Real: only each job's median. Sampled: every attempt, log-normal around it.
    LogNormal {
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Real: every attempt's time and ending, as recorded in the trace. An attempt after the last recorded one takes
    /// that one's time and finishes.
    Recorded,
}

/// The course of an attempt without a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// The time of the whole task on a node of speed 1.
    pub work: Span,
    /// The attempt ends before its work is done: after this time, in this way.
    pub cut: Option<(Span, Ending)>,
}

/// The attempt that a sample is for.
#[derive(Debug, Clone, Copy)]
pub struct Which {
    /// Position of the job in the workload.
    pub job: u32,
    /// Position of the stage in the job.
    pub stage: u32,
    /// Position of the task in the stage.
    pub task: u32,
    /// Number of the attempt.
    pub attempt: u32,
}

impl Which {
    fn stream(self, seed: u64) -> Stream {
        let stage = (u64::from(self.stage) << 32) | u64::from(self.task);
        let thing = [u64::from(self.job), stage, u64::from(self.attempt)];
        Stream::new(seed, Purpose::AttemptTime, thing)
    }
}

impl Which {
    /// The same number in (0, 1) for all attempts of a task.
    fn unit_of_task(self, seed: u64) -> f64 {
        let task = Self {
            attempt: u32::MAX,
            ..self
        };
        task.stream(seed).unit()
    }
}

impl Model {
    /// The attempt's time; at least 0.
    pub fn draw(&self, seed: u64, job: &Job, median: Span, which: Which) -> Draw {
        let Some(stage) = job.stages.get(which.stage as usize) else {
            return plain(Span(0));
        };
        let own = stage.durations.get(which.task as usize).copied();
        let own = own.unwrap_or_default();
        match *self {
            Self::Trace => plain(own),
            Self::Resample if which.attempt == 0 => plain(own),
            Self::Fresh { own: share, .. }
                if which.attempt == 0 || which.unit_of_task(seed) < share =>
            {
                plain(own)
            }
            Self::Fresh { beta, t_min, .. } => plain(Span::from_seconds_f64(
                which.stream(seed).pareto(t_min, beta),
            )),
            Self::Resample => {
                let at = which.stream(seed).index(stage.durations.len());
                plain(stage.durations.get(at).copied().unwrap_or(own))
            }
            Self::Pareto { beta, t_min, max } => {
                // The median of Pareto(t, β) is t·2^(1/β).
                let of_median = || median.seconds() / libm::pow(2.0, 1.0 / beta);
                let t_min = t_min.unwrap_or_else(of_median);
                let mut stream = which.stream(seed);
                let seconds = match max.filter(|max| *max > t_min) {
                    Some(max) => stream.truncated_pareto(t_min, beta, max),
                    None => stream.pareto(t_min, beta),
                };
                plain(Span::from_seconds_f64(seconds))
            }
            Self::LogNormal { sigma } => {
                let normal = which.stream(seed).normal();
                plain(Span::from_seconds_f64(
                    median.seconds() * libm::exp(sigma * normal),
                ))
            }
            Self::Recorded => {
                let attempts = stage.recorded.get(&which.task);
                let recorded = attempts.and_then(|all| all.get(which.attempt as usize));
                match recorded {
                    Some(attempt) if attempt.ending != Ending::Finished => Draw {
                        work: own.max(attempt.duration),
                        cut: Some((attempt.duration, attempt.ending)),
                    },
                    Some(attempt) => plain(attempt.duration),
                    None => plain(own),
                }
            }
        }
    }
}

fn plain(work: Span) -> Draw {
    Draw { work, cut: None }
}

/// The error for a text that names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; known models: {HELP}")]
pub struct ParseModelError(String);

/// For error messages and `--help`.
pub const HELP: &str = "`trace`, `resample`, `pareto{beta=1.5,t_min=120,max=600}` (beta above 0; \
    t_min and max in seconds, both optional), `fresh{beta=1.5,t_min=120,own=0}` (own: a share of \
    the tasks), `lognormal{sigma=0.5}` (sigma 0 to 5), `recorded`";

impl FromStr for Model {
    type Err = ParseModelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::model(text).map_err(ParseModelError)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace => f.write_str("trace"),
            Self::Resample => f.write_str("resample"),
            Self::Fresh { beta, t_min, own } => {
                write!(f, "fresh{{beta={beta},t_min={t_min},own={own}}}")
            }
            Self::Pareto { beta, t_min, max } => {
                write!(f, "pareto{{beta={beta}")?;
                for (name, value) in [("t_min", t_min), ("max", max)] {
                    if let Some(value) = value {
                        write!(f, ",{name}={value}")?;
                    }
                }
                f.write_str("}")
            }
            Self::LogNormal { sigma } => write!(f, "lognormal{{sigma={sigma}}}"),
            Self::Recorded => f.write_str("recorded"),
        }
    }
}
