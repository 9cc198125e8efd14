//! The campaign: reference workloads on a real control plane, each run once for every point at
//! which a fault can strike, with what must hold checked in every state of the history.

mod bloat;
mod check;
mod edits;
mod fault;
mod foreign;
mod ground;
mod history;
pub(crate) mod kubelet;
mod nodes;
pub(crate) mod operator;
pub(crate) mod passes;
mod plan;
mod proxy;
mod report;
mod run;
mod snapshot;
mod states;
pub(crate) mod tasks;
pub(crate) mod workload;

pub use self::fault::draw;
pub use self::plan::{Options, campaign};
