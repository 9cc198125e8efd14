//! Deadlines met, missed and failed, by namespace and class, as totals that survive a failover.
//!
//! A total is the sum of two counts: the ended jobs that are gone, which the stored state holds, and the ended jobs that
//! exist, whose ledgers hold it. A job moves from the second count to the first when its object goes. A leader that
//! crashes loses the jobs that have gone since its last write; no deletion waits for that.

mod outcome;
mod stored;
mod table;

use std::sync::Arc;

use parking_lot::Mutex;

pub use outcome::{DeadlineOutcome, JobWithDeadline};
pub use stored::{Counts, StoredTotals};

use table::Table;

/// The totals in one term of leadership. The watch of jobs fills them, and the stored state restores them.
#[derive(Debug, Default)]
pub struct DeadlineTotals {
    table: Mutex<Table>,
}

impl DeadlineTotals {
    /// The watch shows that a job exists. Absent: a job without a deadline, or one that cannot be decoded. A job whose
    /// deletion has begun counts as gone.
    pub fn see(&self, uid: &Arc<str>, is_leaving: bool, job: Option<JobWithDeadline<'_>>) {
        match is_leaving {
            true => self.gone(uid),
            false => self.table.lock().see(uid, job),
        }
    }

    /// The watch shows that a job is gone, or that its deletion began.
    pub fn gone(&self, uid: &str) {
        self.table.lock().gone(uid);
    }

    /// The first list of jobs is complete.
    pub fn listed(&self) {
        self.table.lock().listed();
    }

    /// Adds what earlier leaders have stored, once.
    pub fn restore(&self, stored: StoredTotals) {
        self.table.lock().restore(stored);
    }

    /// What the next leader must know.
    pub fn to_store(&self) -> StoredTotals {
        self.table.lock().to_store()
    }

    /// The totals by namespace and class; absent until both counts are complete, so that no scrape sees a lower value.
    pub fn shown(&self) -> Option<Vec<(String, String, Counts)>> {
        self.table.lock().shown()
    }
}

#[cfg(test)]
mod tests;
