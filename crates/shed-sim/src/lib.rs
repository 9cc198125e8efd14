//! Simulator of shed: runs traces on simulated nodes and lets the operator's own `settle` and
//! `decide` schedule them.
//!
//! - [`trace`]: files and generators → jobs.
//! - [`workload`]: load and deadlines.
//! - [`model`]: how long attempts take.
//! - [`settings`]: all that a run depends on beside its workload.
//! - [`bound`]: how many deadlines can be met at most.
//! - [`calibration`]: predicted PoCDs against what happened.
//! - [`forecast`]: what earlier jobs say about a PoCD.
//! - [`engine`]: the simulation.
//! - [`cli`]: the command line.
//! - [`outcome`]: what came of it.
//! - [`replay`]: recordings decided again.
//! - [`reproduce`]: the papers' figures run again.
//! - [`stats`]: means and confidence intervals.
//!
//! One seed is one run, bit-identical on every machine: integer milliseconds, events ordered by
//! (time, sequence), a portable random stream per thing, transcendental functions from `libm`.

pub mod bound;
pub mod calibration;
pub mod cli;
pub mod engine;
pub mod event;
pub mod forecast;
mod learn;
pub mod model;
pub mod outcome;
mod parallel;
pub mod random;
pub mod replay;
pub mod reproduce;
pub mod settings;
pub mod stats;
pub mod trace;
pub mod workload;
