//! The operator: the only code of shed that talks to Kubernetes.

pub mod api;
pub mod args;
