//! The operator: the only code of shed that talks to Kubernetes.

pub mod adopt;
pub mod api;
pub mod args;
pub mod board;
pub mod bounds;
pub mod clock;
pub mod context;
pub mod controller;
pub mod fair;
pub mod fence;
#[cfg(test)]
pub mod fixtures;
pub mod forecast;
pub mod lease;
pub mod metrics;
pub mod observe;
pub mod operator;
pub mod planner;
mod polling;
pub mod progress;
pub mod recording;
pub mod restored;
pub mod server;
pub mod size;
pub mod stores;
pub mod validate;
pub mod watchdog;
