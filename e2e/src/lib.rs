//! Harness that the end-to-end tests and the demo share: a cluster to run on, with the operator
//! installed, and waiting for what should come true there.

pub mod bench;
pub mod bench_scale;
pub mod campaign;
pub mod cluster;
pub mod command;
pub mod concurrency;
pub mod demo;
pub mod differential;
pub mod failure_report;
pub mod frozen;
pub mod host_operator;
pub mod jobs;
pub mod kueue;
pub mod large;
pub mod latency;
pub mod manifests;
pub mod monitoring;
pub mod operator;
pub mod patches;
pub mod process;
pub mod proxy;
pub mod quality;
pub mod replicas;
pub mod rights;
pub mod scale;
pub mod scenario;
pub mod sightings;
pub mod signals;
pub mod table;
pub mod target;
pub mod versions;
pub mod wait;

/// Fields that the harness owns in objects it applies.
pub const FIELD_MANAGER: &str = "shed-e2e";
