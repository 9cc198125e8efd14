//! Simulator of shed: runs traces on simulated nodes and lets the operator's own `settle` and
//! `decide` schedule them.
//!
//! - [`trace`]: files and generators → jobs.
//! - [`workload`]: load and deadlines.
//! - [`model`]: how long attempts take.
//! - [`settings`]: all that a run depends on beside its workload.
//! - [`engine`]: the simulation.
//! - [`cli`]: the command line, and what of it other programs share.
//! - [`outcome`]: what came of it.
//! - [`replay`]: recordings decided again.
//! - [`policies`]: which policies can be named.
//! - [`parallel`]: the same work on several threads.
//! - [`sizing`]: how much is needed for a share of deadlines.
//! - [`stats`]: means and confidence intervals.
//!
//! One seed is one run, bit-identical on every machine: integer milliseconds, events ordered by
//! (time, sequence), a portable random stream per thing, transcendental functions from `libm`.

pub mod cli;
pub mod engine;
pub mod event;
pub mod model;
pub mod outcome;
pub mod parallel;
pub mod policies;
pub mod random;
pub mod replay;
pub mod settings;
pub mod sizing;
pub mod stats;
pub mod trace;
pub mod workload;
