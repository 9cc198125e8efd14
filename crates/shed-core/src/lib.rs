//! Pure scheduling core of shed: facts in, decisions out.
//!
//! - [`snapshot`]: everything that a decision may look at.
//! - [`settle`](settle::settle): what one job's facts alone force, at once.
//! - [`decide`](decide::decide): what the whole cluster's view decides.
//! - [`estimate`]: how long attempts take, and the probability that a job is in time.
//! - [`optimize`]: who gets the room that is left for clones.
//! - [`formulas`]: the papers' formulas and scheduling rounds, each on its own.
//! - [`plan`]: the actions and the report that explains them.
//! - [`explain`]: a plan's words and numbers for one job.
//! - [`plan_check`]: what must hold of any plan.
//! - [`validate`]: what no snapshot may hold.
//! - [`policy`]: what the operator's user may choose; Shed+ on live jobs.
//!
//! No Kubernetes, no async, no clock, no files, no environment, no logging, no hash order, and
//! transcendental functions from `libm` alone: a run is bit-identical on every machine.

pub mod capacity;
pub mod decide;
pub mod estimate;
pub mod explain;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod formulas;
pub mod ids;
pub mod index_set;
pub mod memory;
pub mod optimize;
pub mod plan;
pub mod plan_check;
pub mod policy;
pub mod resources;
pub mod settle;
pub mod snapshot;
pub mod time;
pub mod validate;
