//! What the operator has learned from past jobs, and its totals of deadlines, in one ConfigMap, so that the next leader goes
//! on from there. It belongs to no job, so no ledger holds it. If it is lost, the next leader begins with priors.
//!
//! `format` has the text, `store` reads and writes the ConfigMap, and `writer` decides when.

mod format;
pub mod metrics;
mod store;
mod writer;

use parking_lot::Mutex;

use shed_core::memory::Durable;

pub use format::{Fault, State, decode, encode};
pub use store::Store;
pub use writer::{Counted, HandOver, HandOverRequests, hand_over, run};

/// The planner's experience as the last pass left it, or as the term began with it.
#[derive(Default)]
pub struct LatestExperience(Mutex<Durable>);

impl LatestExperience {
    /// The experience that a term begins with.
    pub fn new(stored: Durable) -> Self {
        Self(Mutex::new(stored))
    }

    /// The latest experience.
    pub fn get(&self) -> Durable {
        self.0.lock().clone()
    }

    /// A pass has ended.
    pub fn set(&self, durable: Durable) {
        *self.0.lock() = durable;
    }
}

#[cfg(test)]
mod tests;
