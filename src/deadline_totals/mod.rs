//! Deadlines met, missed and failed, by namespace and class, as totals that survive a failover.
//!
//! A total is the sum of two counts: the ended jobs that are gone, which the stored state holds, and the ended jobs that
//! exist, whose ledgers hold it. A job moves from the second count to the first when its object goes. A leader that
//! crashes loses the jobs that have gone since its last write; no deletion waits for that.

mod outcome;
mod stored;
mod table;

use parking_lot::Mutex;

pub use outcome::{DeadlineOutcome, JobWithDeadline};
pub use stored::{Counts, StoredTotals};

/// The totals in one term of leadership. The watch of jobs and the answers to shed's own writes fill them, and the stored
/// state restores them.
pub type DeadlineTotals = Mutex<table::Table>;

#[cfg(test)]
mod tests;
