//! The limit on polls per second for all attempts together: a token bucket. Pure.

use shed_core::time::Instant;

/// Polls per second. Those of one second may be saved up.
#[derive(Debug, Clone)]
pub struct Budget {
    per_second: f64,
    tokens: f64,
    at: Instant,
}

impl Budget {
    /// A full second's worth at `now`.
    pub fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            tokens: per_second,
            at: now,
        }
    }

    /// How many polls may start now, at most `most`; they count as started.
    pub fn take(&mut self, most: usize, now: Instant) -> usize {
        // A clock that was set back gives nothing.
        let seconds = now.since(self.at).seconds().max(0.0);
        self.at = now;
        self.tokens = (self.tokens + seconds * self.per_second).min(self.per_second);
        // Floored; there are never more than of one second.
        let allowed = (self.tokens as usize).min(most);
        self.tokens -= allowed as f64;
        allowed
    }

    /// Returns the unused polls.
    pub fn give_back(&mut self, unused: usize) {
        self.tokens = (self.tokens + unused as f64).min(self.per_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_its_share_and_what_was_saved() {
        let mut budget = Budget::new(100, Instant(0));
        assert_eq!(budget.take(1000, Instant(0)), 100);
        assert_eq!(budget.take(1000, Instant(5)), 0);
        assert_eq!(budget.take(1000, Instant(15)), 1);
        let ticks = (1..=100).map(|tick| budget.take(1000, Instant(15 + tick * 100)));
        assert_eq!(ticks.sum::<usize>(), 1000);
        assert_eq!(
            budget.take(1000, Instant(60_000)),
            100,
            "one second is saved"
        );
    }

    #[test]
    fn what_is_not_used_stays_and_a_clock_set_back_gives_nothing() {
        let mut budget = Budget::new(10, Instant(1000));
        assert_eq!(budget.take(4, Instant(1000)), 4);
        budget.give_back(3);
        assert_eq!(budget.take(100, Instant(0)), 9);
        assert_eq!(budget.take(100, Instant(0)), 0);
    }
}
