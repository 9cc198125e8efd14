//! The operator: the only code of shed that talks to Kubernetes.

pub mod api;
pub mod args;
pub mod book;
pub mod clock;
pub mod controller;
#[cfg(test)]
pub mod fixtures;
pub mod observe;
pub mod validate;
