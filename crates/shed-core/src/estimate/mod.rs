//! Estimates: how long attempts take, how much of that remains, and how probable it is that a task and a job end
//! before the deadline (PoCD).
//!
//! The functions depend only on numbers. Times are `f64` in seconds (any one unit works, because only ratios matter).
//! Probabilities are natural logarithms, because plain products underflow with a few hundred tasks and saturate at 1
//! with a few clones. `ln`, `exp` and similar functions come from the `libm` crate, so that a result is the same to
//! the bit on every machine.
//!
//! Equation and theorem numbers are those of the papers: *Shed* (ICC 2018, job-level cloning),
//! *Shed+* (TNSM 17(3), 2020, task-level speculation), *LASER* (ICCCN 2017), *DollyMP* (ICPP 2022)
//! and *SCA/ESE* (Infocom 2015).

pub mod compare;
pub mod distribution;
pub mod empirical;
pub mod expected_distribution;
pub mod feasibility;
pub mod fit;
pub mod forecast;
pub mod history;
pub mod log_normal;
pub mod log_tails;
pub mod pareto;
pub mod pareto_fit;
pub mod pocd;
pub mod progress;
pub mod sample;
pub mod weibull;
pub mod whole_run;
