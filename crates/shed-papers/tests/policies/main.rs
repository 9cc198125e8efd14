//! The policies of the papers; each test shows the feature that distinguishes one.

mod admission;
mod clone_limits;
mod cloners;
mod laser;
mod preemption;
mod shed_plus;
mod speculators;
