//! Simulator of shed: runs traces on simulated nodes, scheduled by the operator's own `settle` and `decide`.
//!
//! - [`trace`]: files and generators → jobs.
//! - [`workload`]: load and deadlines.
//! - [`model`]: how long attempts take.
//! - [`settings`]: the settings of a run, without its workload.
//! - [`engine`]: the simulation.
//! - [`cli`]: the command line, and the parts that other programs share.
//! - [`outcome`]: the results of a run.
//! - [`replay`]: recordings decided again.
//! - [`policies`]: the policies that can be named.
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
pub mod tenants;
pub mod trace;
pub mod workload;
