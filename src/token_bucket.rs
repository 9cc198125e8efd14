//! A token bucket: a burst at once, then tokens at a steady rate.

use shed_core::time::{Instant, Span};

/// A token bucket. Its instants are of the process's own clock.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    /// A token in units of the level.
    token: i64,
    /// Units that come in each millisecond.
    rate: i64,
    /// The level of a full bucket.
    full: i64,
    level: i64,
    /// Until when what came in is counted.
    at: Option<Instant>,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens, which gets one more each period.
    pub fn new(burst: u32, period: Span) -> Self {
        Self::with(burst, period.0.max(1), 1)
    }

    /// A full bucket of the tokens of one second.
    pub fn per_second(tokens: u32) -> Self {
        Self::with(tokens, 1000, i64::from(tokens))
    }

    fn with(burst: u32, token: i64, rate: i64) -> Self {
        let full = i64::from(burst).saturating_mul(token);
        Self {
            token,
            rate,
            full,
            level: full,
            at: None,
        }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        self.take_up_to(1, now) == 1
    }

    /// Takes the tokens that there are, at most `most`.
    pub fn take_up_to(&mut self, most: usize, now: Instant) -> usize {
        self.refill(now);
        let tokens = (self.level / self.token).min(i64::try_from(most).unwrap_or(i64::MAX));
        self.level -= tokens * self.token;
        usize::try_from(tokens).unwrap_or(0)
    }

    /// Returns unused tokens.
    pub fn give_back(&mut self, unused: usize) {
        let unused = i64::try_from(unused).unwrap_or(i64::MAX);
        let level = self.level.saturating_add(unused.saturating_mul(self.token));
        self.level = level.min(self.full);
    }

    /// Whether no token is missing, so that the bucket is like a new one.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.level == self.full
    }

    fn refill(&mut self, now: Instant) {
        // A clock that was set back gives nothing.
        let passed = self.at.map_or(0, |at| now.since(at).0.max(0));
        self.at = Some(now);
        let level = self.level.saturating_add(passed.saturating_mul(self.rate));
        self.level = level.min(self.full);
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

    #[test]
    fn no_second_has_more_than_its_share_and_what_was_saved() {
        let mut budget = TokenBucket::per_second(100);
        assert_eq!(budget.take_up_to(1000, Instant(0)), 100);
        assert_eq!(budget.take_up_to(1000, Instant(5)), 0);
        assert_eq!(budget.take_up_to(1000, Instant(15)), 1);
        let ticks = (1..=100).map(|tick| budget.take_up_to(1000, Instant(15 + tick * 100)));
        assert_eq!(ticks.sum::<usize>(), 1000);
        assert_eq!(
            budget.take_up_to(1000, Instant(60_000)),
            100,
            "one second is saved"
        );
    }

    #[test]
    fn what_is_not_used_stays_and_a_clock_set_back_gives_nothing() {
        let mut budget = TokenBucket::per_second(10);
        assert_eq!(budget.take_up_to(4, Instant(1000)), 4);
        budget.give_back(3);
        assert_eq!(budget.take_up_to(100, Instant(0)), 9);
        assert_eq!(budget.take_up_to(100, Instant(0)), 0);
    }
}
