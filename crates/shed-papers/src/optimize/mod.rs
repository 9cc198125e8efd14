//! Optimizers: they allocate the free capacity to clones.
//!
//! They are pure functions from probabilities and a number of slots to numbers of clones. Other modules decide which
//! tasks are stragglers, estimate a clone's effect, and carry out the result. The papers' symbols: κ are the slots
//! for extra attempts, ω the clones handed out, MAX the bound per task, r the clones of a task.

pub mod alpha_fair;
mod best_task;
mod block_tree;
pub mod clone_capacity;
pub mod greedy;
mod job_state;
mod keys;
mod ln_sum;
pub mod tournament;
pub mod utility;
mod worst_job;
