//! The campaign: reference workloads on a real control plane, each run once for every point at
//! which a fault can strike, with what must hold checked in every state of the history.

mod bloat;
pub(crate) mod check;
mod edits;
mod environment;
pub(crate) mod fault;
mod foreign;
pub(crate) mod history;
pub(crate) mod kubelet;
pub(crate) mod nodes;
pub(crate) mod operator;
pub(crate) mod passes;
mod plan;
pub(crate) mod proxy;
pub(crate) mod report;
mod run;
mod snapshot;
mod states;
pub(crate) mod tasks;
pub(crate) mod workload;

pub use self::fault::draw;
pub use self::plan::{Options, campaign};
