//! One job at a time: facts → step → writes.

pub mod build;
pub mod status;
pub mod step;
