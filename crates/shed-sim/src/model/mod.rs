//! How long attempts take. Each model says what of it is real and what is drawn. A draw depends on
//! the seed, the task and the attempt's number alone, never on what a policy did.

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
    /// Real: every attempt of a task takes what the trace says, clones too. Drawn: nothing. The
    /// other extreme to `resample`: slowness is the task's own, and clones are useless.
    Trace,
    /// Real: the first attempt. Drawn: a clone or retry takes the time of any task of its stage.
    Resample,
    /// Real: the first attempt. Drawn: a clone or retry, from a Pareto law; but in a share of the
    /// tasks slowness is the task's own, and every attempt takes what the first one does.
    Redraw {
        /// Shape β.
        beta: f64,
        /// Minimum in seconds.
        t_min: f64,
        /// The share of tasks of which no attempt differs from the first.
        own: f64,
    },
    /// Real: nothing but each job's median. Drawn: every attempt, from a Pareto law with that
    /// median, or with the minimum given. `max` cuts the law off: times above never occur.
    Pareto {
        /// Shape β.
        beta: f64,
        /// Minimum in seconds; absent: such that the job's median stays what it was.
        t_min: Option<f64>,
        /// Longest time in seconds.
        max: Option<f64>,
    },
    /// Real: nothing but each job's median. Drawn: every attempt, log-normal around it.
    LogNormal {
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Real: every attempt's time and how it ended, as the trace recorded them. An attempt after
    /// the last recorded one takes the last one's time and finishes.
    Recorded,
}

/// What an attempt will do, if nobody kills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// How long the whole task takes on a node of speed 1.
    pub work: Span,
    /// It ends before its work is done: after that much time, in that way.
    pub cut: Option<(Span, Ending)>,
}

/// Which attempt a draw is for.
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
    /// How long the attempt takes; at least 0.
    #[must_use]
    pub fn draw(&self, seed: u64, job: &Job, median: Span, which: Which) -> Draw {
        let Some(stage) = job.stages.get(which.stage as usize) else {
            return plain(Span(0));
        };
        let own = stage.durations.get(which.task as usize).copied();
        let own = own.unwrap_or_default();
        match *self {
            Self::Trace => plain(own),
            Self::Resample if which.attempt == 0 => plain(own),
            Self::Redraw { own: share, .. }
                if which.attempt == 0 || which.unit_of_task(seed) < share =>
            {
                plain(own)
            }
            Self::Redraw { beta, t_min, .. } => plain(Span::from_seconds_f64(
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

/// Why a text names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; known models: {HELP}")]
pub struct ParseModelError(String);

/// For error messages and `--help`.
pub const HELP: &str = "`trace`, `resample`, `pareto{beta=1.5,t_min=120,max=600}` (beta above 0; \
    t_min and max in seconds, both optional), `redraw{beta=1.5,t_min=120,own=0}` (own: a share of \
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
            Self::Redraw { beta, t_min, own } => {
                write!(f, "redraw{{beta={beta},t_min={t_min},own={own}}}")
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
