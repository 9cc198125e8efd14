//! One job at a time: facts → step → writes.

pub mod build;
