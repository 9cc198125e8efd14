//! Validation of the simulator: against real traces that others have simulated, against queueing theory and the
//! papers' theorems, and against itself.

mod closed_forms;
mod common;
mod engine;
mod fallback;
mod fifo;
mod incremental;
mod no_harm;
#[path = "../common/traces.rs"]
mod shared;
mod traces;
