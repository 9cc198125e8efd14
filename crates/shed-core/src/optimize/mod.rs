//! Optimizers: who gets the room that is left for clones.
//!
//! Pure functions from probabilities and a number of slots to numbers of clones. Which tasks
//! are stragglers, what a clone of one would bring, and what of it is carried out is decided
//! elsewhere. The papers' notions: κ is the room for extra attempts, ω what was handed out,
//! MAX the bound per task, r the clones of a task.

pub mod alpha_fair;
mod best_task;
mod block_tree;
pub mod capacity;
pub mod greedy;
pub mod incremental;
pub mod job_level;
mod job_state;
mod keys;
mod ln_sum;
pub mod room;
mod tournament;
pub mod utility;
mod worst_job;
