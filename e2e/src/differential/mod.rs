//! The built-in Job controller as an oracle: random batch/v1 Jobs, and random acts of users and kubelets on
//! them, run twice on the same control plane, once under each controller. The outcomes must be equal.

mod campaign;
mod case;
mod case_run;
mod compare;
mod explained;
mod generate;
mod kubelet;
mod outcome;
mod report;
mod shrink;
mod view;

pub use self::campaign::{Options, differential};
