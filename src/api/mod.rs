//! The Kubernetes API of shed: what users write, what they read, and the ledger.

mod batch;
mod bounded;
mod conditions;
mod deadline_job;
pub mod decode;
mod index_lists;
pub mod ledger;
mod names;
mod pocd;
pub mod renamed;
pub mod trimmed;
pub mod unknown_fields;
mod words;

pub use batch::*;
pub use conditions::*;
pub use deadline_job::*;
pub use ledger::*;
pub use names::*;
pub use pocd::Pocd;
