//! What is left of a call once it is sent.

use super::call::{Call, Watched};

/// The facts of a call that its response depends on.
pub struct About {
    /// The call, for the log.
    pub words: String,
    /// Whether it changes anything.
    pub is_write: bool,
    /// The kind that it watches.
    pub watched: Option<Watched>,
    /// Whether it writes the status of a batch/v1 Job.
    pub mirrors: bool,
    /// Whether it records a ledger.
    pub records: bool,
    /// Whether the answer tells of more namespaces than the operator may see.
    pub is_wide: bool,
    /// The job for which it creates an attempt.
    pub creates_for: Option<String>,
}

impl About {
    /// Of a call that is about to be sent.
    pub fn of(call: &Call) -> Self {
        Self {
            words: call.words(),
            is_write: call.is_write(),
            watched: call.watched(),
            mirrors: call.mirrors(),
            records: call.records(),
            is_wide: call.is_wide(),
            creates_for: call.creates_for().map(str::to_owned),
        }
    }
}
