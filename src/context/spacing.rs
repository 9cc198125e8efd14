//! When a job's ledger may be written: each write carries the whole ledger, so writes are spaced by their
//! size. Stops, fates and commit grants are urgent: they wait for at most a quarter of a second behind the job's
//! last write, and go together. Everything else waits until the job's last write is paid for, and until the
//! bytes per second of all jobs are below their bound. Wins wait for more of their kind, as the Job controller's do.
//! Pure; instants are of the process's own clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shed_core::plan::Outcome;
use shed_core::time::{Instant, Span};

use crate::job::notice::Notice;

/// Ledger bytes per second that one job may write: a ledger of 200 KB is written five times a second.
const JOB_BYTES_PER_SECOND: usize = 1_000_000;
/// Smaller ledgers are not spaced, because their writes cost no more than any write.
const FREE_BYTES: usize = 16 * 1024;
/// Ledger bytes per second that all jobs may write, urgent writes apart; one second of it may be saved up.
/// etcd keeps each write until it compacts, five minutes later by default: 1.2 GB at most of its 2 GiB.
const ALL_BYTES_PER_SECOND: f64 = 4_000_000.0;
/// A namespace below this fraction of its share never waits for the others.
const SHARE_KEPT: f64 = 0.8;
/// Longest wait of an urgent write.
const URGENT_WAIT: Span = Span(250);
/// Longest wait of any write for the job's own last one, and for the writes of all jobs.
const WAIT_MAX: Span = Span::from_seconds(2);
/// How long a write that nothing follows waits for more of its kind, from the first pass that found it.
/// The pass itself has waited as long after calm news.
pub const MERGE_WAIT: Span = Span(500);
/// Up to this many writes per second of all jobs, such writes wait no longer than that; above, in proportion.
const CALM_WRITES: f64 = 10.0;
/// The longest such wait, in multiples of the usual one.
const MERGE_FACTOR_MAX: f64 = 4.0;

/// A job's last write of its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastWrite {
    /// When it was answered.
    pub at: Instant,
    /// How many bytes it carried.
    pub bytes: usize,
}

impl LastWrite {
    /// When the job may be written again.
    #[must_use]
    pub fn next(self, is_urgent: bool) -> Instant {
        if self.bytes < FREE_BYTES {
            return self.at;
        }
        let milliseconds = self.bytes.saturating_mul(1000) / JOB_BYTES_PER_SECOND;
        let paid = Span(i64::try_from(milliseconds).unwrap_or(i64::MAX)).min(WAIT_MAX);
        let wait = if is_urgent {
            paid.min(URGENT_WAIT)
        } else {
            paid
        };
        self.at.plus(wait)
    }
}

/// Whether the result of a step is urgent: attempts that must stop, a job's fate, a commit grant.
#[must_use]
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

/// Whether nothing follows from the result of a step but a status that users read. A launch, a failure that may be
/// retried, and all that is urgent are written at once.
#[must_use]
pub fn can_merge(notices: &[Notice]) -> bool {
    notices.iter().all(|notice| match notice {
        Notice::Won { .. } => true,
        Notice::Counted { outcome, .. } => *outcome == Outcome::Superseded,
        Notice::Launched { .. }
        | Notice::Killed { .. }
        | Notice::Granted { .. }
        | Notice::TaskFailed { .. }
        | Notice::Ending(_)
        | Notice::Finished(_)
        | Notice::Unrecorded { .. } => false,
    })
}

/// The bytes that all jobs write.
#[derive(Default)]
pub struct LedgerRate(Mutex<Rate>);

#[derive(Default)]
struct Rate {
    /// Bytes that were written and are not paid for yet; below zero: saved bytes.
    debt: f64,
    /// Recent bytes of each namespace: a sum that fades within a second.
    lately: HashMap<Arc<str>, f64>,
    /// Recent writes, as such a sum: the writes per second.
    writes: f64,
    at: Instant,
}

impl LedgerRate {
    /// Whether a write of the namespace that is not urgent may be sent now, and if not when to try
    /// it again. A namespace that wrote less than its share lately never waits for the others.
    #[must_use]
    pub fn wait(&self, namespace: &str, ticks: Instant) -> Option<Instant> {
        let mut rate = self.lock();
        rate.pass(ticks);
        let own = rate.lately.get(namespace).copied().unwrap_or_default();
        let others = rate.lately.len() - usize::from(rate.lately.contains_key(namespace));
        let share = ALL_BYTES_PER_SECOND / (others + 1) as f64;
        if rate.debt <= 0.0 || (others > 0 && own < share * SHARE_KEPT) {
            return None;
        }
        let wait = Span::from_seconds_f64(rate.debt / ALL_BYTES_PER_SECOND);
        Some(ticks.plus(wait.max(Span(10)).min(WAIT_MAX)))
    }

    /// How long a write waits for more of its kind while jobs write as often as they do now. Many small jobs that end
    /// together would otherwise take the apiserver's time from the pods of those that have not begun.
    #[must_use]
    pub fn merge_wait(&self, usual: Span, ticks: Instant) -> Span {
        let mut rate = self.lock();
        rate.pass(ticks);
        let factor = (rate.writes / CALM_WRITES).clamp(1.0, MERGE_FACTOR_MAX);
        Span::from_seconds_f64(usual.seconds() * factor)
    }

    /// A write was sent.
    pub fn note(&self, namespace: &str, bytes: usize, ticks: Instant) {
        let mut rate = self.lock();
        rate.pass(ticks);
        rate.writes += 1.0;
        let bytes = bytes as f64;
        rate.debt += bytes;
        match rate.lately.get_mut(namespace) {
            Some(own) => *own += bytes,
            None => {
                rate.lately.insert(namespace.into(), bytes);
            }
        }
    }

    // A panic while the lock was held leaves figures that fade.
    fn lock(&self) -> MutexGuard<'_, Rate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rate {
    fn pass(&mut self, ticks: Instant) {
        // A clock that was set back pays nothing.
        let seconds = ticks.since(self.at).seconds().max(0.0);
        self.at = ticks;
        let paid = seconds * ALL_BYTES_PER_SECOND;
        self.debt = (self.debt - paid).max(-ALL_BYTES_PER_SECOND);
        let stays = (-seconds).exp();
        self.writes *= stays;
        self.lately.retain(|_, bytes| {
            *bytes *= stays;
            *bytes >= 1.0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn writes_are_spaced_by_their_size_and_urgent_ones_by_a_quarter_second() {
        let next = |bytes, is_urgent| {
            let at = Instant(1000);
            LastWrite { at, bytes }.next(is_urgent).since(at).0
        };
        assert_eq!(next(2_000, false), 0);
        assert_eq!(next(200_000, false), 200);
        assert_eq!(next(200_000, true), 200);
        assert_eq!(next(MIB, false), 1048);
        assert_eq!(next(MIB, true), 250);
        assert_eq!(next(usize::MAX, false), 2000);
    }

    /// Bytes that one namespace writes in `seconds`, with writes of 1 MiB that are tried every 10
    /// ms.
    fn written(rate: &LedgerRate, namespace: &str, seconds: i64) -> usize {
        let tries = (0..seconds * 100).map(|try_| Instant(try_ * 10));
        let mut bytes = 0;
        for at in tries {
            if rate.wait(namespace, at).is_none() {
                rate.note(namespace, MIB, at);
                bytes += MIB;
            }
        }
        bytes
    }

    #[test]
    fn all_jobs_together_write_no_more_than_their_bound() {
        let bytes = written(&LedgerRate::default(), "n", 60);
        // One second is saved up, and one write may exceed it.
        let most = ALL_BYTES_PER_SECOND as usize * 61 + 2 * MIB;
        assert!(bytes <= most, "{bytes} of {most}");
        assert!(bytes >= most * 9 / 10, "{bytes} of {most}");
    }

    #[test]
    fn a_namespace_below_its_share_does_not_wait_for_the_others() {
        let rate = LedgerRate::default();
        let mut waited = 0;
        for at in (0..10_000).step_by(10).map(Instant) {
            if rate.wait("large", at).is_none() {
                rate.note("large", MIB, at);
            }
            if at.0 % 100 == 0 {
                waited += u32::from(rate.wait("small", at).is_some());
                rate.note("small", 10_000, at);
            }
        }
        assert_eq!(waited, 0);
        assert!(rate.wait("large", Instant(9_990)).is_some());
    }

    #[test]
    fn the_more_jobs_write_the_longer_a_write_waits_for_more_of_its_kind() {
        let wait_at = |writes_per_second: i64| {
            let rate = LedgerRate::default();
            let every = 1000 / writes_per_second;
            for write in 0..10 * writes_per_second {
                rate.note("n", 1000, Instant(write * every));
            }
            rate.merge_wait(MERGE_WAIT, Instant(10_000)).0
        };
        assert_eq!(wait_at(5), 500);
        let twice = wait_at(20);
        assert!((900..1100).contains(&twice), "{twice}");
        assert_eq!(wait_at(100), 2000);
        let rate = LedgerRate::default();
        assert_eq!(rate.merge_wait(Span(0), Instant(0)), Span(0));
    }

    #[test]
    fn a_namespace_that_writes_no_more_is_forgotten() {
        let rate = LedgerRate::default();
        rate.note("n", MIB, Instant(0));
        assert_eq!(rate.lock().lately.len(), 1);
        let _ = rate.wait("m", Instant(60_000));
        assert!(rate.lock().lately.is_empty());
    }
}
