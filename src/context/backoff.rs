//! Obstacles that keep the attempts of a job from starting, and the time for which shed launches
//! none for it.

use shed_core::time::{Instant, Span};

/// First wait after attempts were refused or could not start; doubles up to the last.
const BACKOFF_FIRST: Span = Span::from_seconds(10);
const BACKOFF_LAST: Span = Span::from_seconds(300);

/// Why attempts can't be created or can't start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// A reason of `AttemptsBlocked`.
    pub reason: &'static str,
    /// Message of the apiserver or the kubelet.
    pub message: String,
}

/// Attempts of the job can't start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Why.
    pub blocked: Blocked,
    /// How often in a row.
    pub count: u32,
    /// No launch before this, by the process's own clock.
    pub until: Instant,
}

impl Backoff {
    /// The next wait after `before`.
    pub fn next(before: Option<&Self>, blocked: Blocked, ticks: Instant) -> Self {
        let count = before.map_or(0, |before| before.count);
        let wait = Span(BACKOFF_FIRST.0 << count.min(8)).min(BACKOFF_LAST);
        Self {
            blocked,
            count: count + 1,
            until: ticks.plus(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let blocked = Blocked {
            reason: "QuotaExceeded",
            message: String::new(),
        };
        let mut backoff = None;
        let mut waits = Vec::new();
        for _ in 0..7 {
            let next = Backoff::next(backoff.as_ref(), blocked.clone(), Instant(0));
            waits.push(next.until.0 / 1000);
            backoff = Some(next);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
    }
}
