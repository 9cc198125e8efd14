//! How long news of a job waits for its write. There are at most two delays: one merge wait, before the pass, and the
//! spacing of the job's writes, because each write carries the whole ledger. `docs/reference/ledger.md` has the table,
//! which a test compares with the constants.
//! Pure; instants are of the process's own clock.

use parking_lot::Mutex;

use shed_core::time::{Instant, Span};

use crate::job::notice::Notice;

/// How long a pass waits after news that nothing must follow soon, such as a win, for more of the kind.
pub const MERGE_WAIT: Span = Span::from_seconds(1);
/// Longest pause of the planner because of what a pass costs. A job waits that long for its first pod, and a straggler
/// for its clone. Reconcilers see ends and stop losers meanwhile.
pub const PLAN_PAUSE_MAX: Span = Span(500);
/// Longest wait of an urgent write for the job's last one.
const URGENT_WAIT: Span = Span(250);
/// Longest wait of any other write for the job's last one.
const SPACING_MAX: Span = Span::from_seconds(5);
/// Figures that change all the time (phase, readiness, PoCD) are written with other writes, and alone this long after
/// the job's last write at the earliest: most pods are ready soon after the first one, and the two share a write.
pub const FIGURES_WAIT: Span = Span::from_seconds(5);
/// While attempts are live, PoCD in the status is looked at this often.
pub const STATUS_PERIOD: Span = Span::from_seconds(10);

/// Ledger bytes per second that one job may write: a ledger of 200 KB is written five times a second.
const JOB_BYTES_PER_SECOND: f64 = 1_000_000.0;
/// Smaller ledgers are not spaced, because their writes cost no more than any write.
const FREE_BYTES: usize = 16 * 1024;
/// Ledger bytes per second that all jobs may write; one second of it may be saved up. etcd keeps each write until it
/// compacts, five minutes later by default: 1.2 GB at most of its 2 GiB.
const ALL_BYTES_PER_SECOND: f64 = 4_000_000.0;

/// A job's last write of its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastWrite {
    /// When it was answered.
    pub at: Instant,
    /// When its bytes are paid for.
    pub paid: Instant,
}

impl LastWrite {
    /// When the job may be written again.
    pub fn next(self, is_urgent: bool) -> Instant {
        let longest = if is_urgent { URGENT_WAIT } else { SPACING_MAX };
        self.paid.min(self.at.plus(longest))
    }
}

/// Whether the result of a step is urgent: attempts that must stop, a job's fate, a commit grant.
pub fn is_urgent(notices: &[Notice]) -> bool {
    notices.iter().any(|notice| match notice {
        Notice::Killed { .. }
        | Notice::Granted { .. }
        | Notice::Ending(_)
        | Notice::Finished(_) => true,
        Notice::Launched { .. }
        | Notice::Won { .. }
        | Notice::Counted { .. }
        | Notice::TaskFailed { .. }
        | Notice::Unrecorded { .. } => false,
    })
}

/// The bytes that all jobs write.
#[derive(Default)]
pub struct LedgerRate(Mutex<Debt>);

/// Bytes that were written and are not paid for yet; below zero: saved bytes.
#[derive(Default)]
struct Debt {
    bytes: f64,
    at: Instant,
}

impl LedgerRate {
    /// A write was sent. Its job pays for its bytes, and waits until all that was written is paid for.
    pub fn note(&self, bytes: usize, ticks: Instant) -> LastWrite {
        // A panic while the lock was held leaves figures that fade.
        let mut debt = self.0.lock();
        // A clock that was set back pays nothing.
        let seconds = ticks.since(debt.at).seconds().max(0.0);
        let left = debt.bytes - seconds * ALL_BYTES_PER_SECOND;
        *debt = Debt {
            bytes: left.max(-ALL_BYTES_PER_SECOND) + bytes as f64,
            at: ticks,
        };
        let own = bytes as f64 / JOB_BYTES_PER_SECOND;
        let all = debt.bytes / ALL_BYTES_PER_SECOND;
        let wait = if bytes < FREE_BYTES {
            0.0
        } else {
            own.max(all)
        };
        LastWrite {
            at: ticks,
            paid: ticks.plus(Span::from_seconds_f64(wait)),
        }
    }
}

#[cfg(test)]
mod tests;
