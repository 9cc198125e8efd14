//! How many events of its attempts and conditions a job may cause. Each is a write, and an object for an hour.

use shed_core::time::{Instant, Span};

use crate::token_bucket::TokenBucket;

/// Events that may come at once …
const BURST: u32 = 10;
/// … and how long it takes until one more may.
const REFILL: Span = Span::from_seconds(20);

/// Remaining budget of a job's events.
#[derive(Clone, Debug)]
pub struct EventBudget {
    bucket: TokenBucket,
    /// Events that were left out since the last one.
    omitted: u32,
}

impl Default for EventBudget {
    fn default() -> Self {
        Self {
            bucket: TokenBucket::new(BURST, REFILL),
            omitted: 0,
        }
    }
}

impl EventBudget {
    /// The note, if it may be published, with how many were left out before it.
    pub fn admit(&mut self, note: String, now: Instant) -> Option<String> {
        if !self.bucket.take(now) {
            self.omitted = self.omitted.saturating_add(1);
            return None;
        }
        match std::mem::take(&mut self.omitted) {
            0 => Some(note),
            omitted => Some(format!("{note} ({omitted} earlier events were omitted)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant(seconds * 1000)
    }

    #[test]
    fn a_burst_is_published_and_the_rest_is_counted() {
        let mut budget = EventBudget::default();
        let admitted = (0..100).filter_map(|_| budget.admit("x".into(), at(0)));
        assert_eq!(admitted.count(), 10);
        let next = budget.admit("y".into(), at(20)).unwrap();
        assert_eq!(next, "y (90 earlier events were omitted)");
        assert_eq!(budget.admit("z".into(), at(21)), None);
    }

    #[test]
    fn what_was_not_used_does_not_pile_up() {
        let mut budget = EventBudget::default();
        budget.admit("x".into(), at(0));
        let admitted = (0..100).filter_map(|_| budget.admit("x".into(), at(100_000)));
        assert_eq!(admitted.count(), 10);
        let (mut per_hour, mut second) = (0, 200_000);
        while second < 203_600 {
            per_hour += usize::from(budget.admit("x".into(), at(second)).is_some());
            second += 1;
        }
        assert!(per_hour <= 10 + 180, "{per_hour}");
    }

    #[test]
    fn a_clock_that_is_put_back_stops_no_event_for_long() {
        let mut budget = EventBudget::default();
        (0..100).for_each(|_| drop(budget.admit("x".into(), at(10_000))));
        assert_eq!(budget.admit("x".into(), at(0)), None);
        assert!(budget.admit("x".into(), at(20)).is_some());
    }
}
