//! The operator: the only code of shed that talks to Kubernetes.

pub mod adopt;
pub mod answer_layer;
pub mod answers;
pub mod api;
pub mod args;
pub mod attempt_pod;
pub mod bounds;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod completion_history;
pub mod conditions;
pub mod context;
pub mod deadline_totals;
pub mod durable_state;
pub mod fair_places;
pub mod fence;
#[cfg(test)]
pub mod fixtures;
pub mod forecast;
pub mod job;
#[cfg(test)]
mod layers;
pub mod leader_api;
pub mod lease;
pub mod memory_limit;
pub mod metrics;
pub mod observed_clones;
pub mod operator;
pub mod page;
pub mod plan_slices;
pub mod planner;
pub mod planner_copies;
pub mod pod_names;
pub mod polling;
pub mod progress;
pub mod quarantine;
pub mod reconcile;
pub mod recording;
pub mod registrar;
pub mod restore_check;
pub mod server;
pub mod size;
#[cfg(feature = "otel")]
pub mod span_export;
pub mod token_bucket;
pub mod uninstall_check;
pub mod validate;
pub mod watch_age;
pub mod watchdog;
