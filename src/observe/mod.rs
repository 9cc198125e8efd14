//! From Kubernetes' objects to the core's facts. No client, no decision.

mod adopted;
pub mod ends;
pub mod failure;
pub mod gone;
pub mod identity;
pub mod job;
pub mod leftover;
pub mod misfit;
pub mod node;
pub mod pod;
mod range;
pub mod reach;
pub mod requests;
pub mod scheduling;
pub mod troubled;
pub mod unconfirmed;
pub mod view;
