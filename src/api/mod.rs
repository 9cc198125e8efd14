//! The Kubernetes API of shed: what users write, what they read, and the ledger.

mod batch;
mod conditions;
mod deadline;
mod deadline_job;
mod decimal;
pub mod decoding;
mod index_lists;
mod job_status;
pub mod ledger;
pub mod managed_fields;
mod names;
mod pocd;
mod progress_source;
mod record;
mod rule_schemas;
mod tasks;
mod template_bounds;
pub mod unknown_fields;

pub use batch::*;
pub use conditions::*;
pub use deadline::*;
pub use deadline_job::*;
pub use decimal::Decimal;
pub use job_status::*;
pub use ledger::*;
pub use names::*;
pub use pocd::Pocd;
pub use progress_source::*;
pub use record::*;
pub use tasks::*;
