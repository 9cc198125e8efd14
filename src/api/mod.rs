//! The Kubernetes API of shed: what users write, what they read, and the ledger.

mod batch;
mod bounded;
mod conditions;
mod deadline_job;
pub mod kept;
mod ledger;
mod names;
mod once;
pub mod read;
pub mod renamed;
pub mod trimmed;

pub use batch::*;
pub use conditions::*;
pub use deadline_job::*;
pub use ledger::*;
pub use names::*;
