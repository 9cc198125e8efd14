//! A token bucket, as client-go's event correlator has one: a burst at once, then one per period.

use shed_core::time::{Instant, Span};

/// A token bucket. Its instants are of the process's own clock.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    burst: u32,
    period: Span,
    left: u32,
    /// Since when the next token is on its way.
    since: Option<Instant>,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens, which gets one more each period.
    pub fn new(burst: u32, period: Span) -> Self {
        Self {
            burst,
            period,
            left: burst,
            since: None,
        }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    /// Whether no token is missing, so that the bucket is like a new one.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left == self.burst
    }

    fn refill(&mut self, now: Instant) {
        // The clock may have been put back.
        let since = self.since.map_or(now, |since| since.min(now));
        let refilled = now.since(since).0.max(0) / self.period.0.max(1);
        let tokens = u32::try_from(refilled).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(tokens).min(self.burst);
        self.since = Some(since.plus(Span(refilled * self.period.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_per_period() {
        let mut bucket = TokenBucket::new(3, Span(100));
        let taken =
            |bucket: &mut TokenBucket, at| (0..9).filter(|_| bucket.take(Instant(at))).count();
        assert!(bucket.is_full(Instant(0)));
        assert_eq!(taken(&mut bucket, 0), 3);
        assert_eq!(taken(&mut bucket, 99), 0);
        assert_eq!(taken(&mut bucket, 250), 2);
        assert!(!bucket.is_full(Instant(300)));
        assert!(bucket.is_full(Instant(10_000)));
        assert_eq!(taken(&mut bucket, 10_000), 3, "no more than the burst");
    }
}
