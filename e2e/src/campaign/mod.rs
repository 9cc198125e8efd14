//! The campaign: reference workloads on a real control plane, each run once for every point at
//! which a fault can strike, with what must hold checked in every state of the history.

mod bloat;
mod check;
mod edits;
mod fault;
mod foreign;
mod ground;
mod history;
mod kubelet;
mod nodes;
mod operator;
mod passes;
mod plan;
mod proxy;
mod report;
mod run;
mod snapshot;
mod states;
mod tasks;
mod workload;

pub use self::fault::draw;
pub use self::plan::{Options, campaign};
