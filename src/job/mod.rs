//! One job as a pass reads it: from ledger, pods and reports to the core's facts. No client, no decision.

mod adopted;
pub mod claims;
pub(crate) mod ends;
pub mod facts;
pub mod leftover;
pub mod misfit;
pub mod notice;
mod range;
pub mod reach;
pub mod termination_proof;
pub mod troubled;
pub mod unconfirmed;
pub mod view;
