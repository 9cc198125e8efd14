//! The apiserver's clock, which decides whether a deadline has passed, and this process's own
//! timers. Both run on the monotonic clock, so a step of this machine's wall clock moves neither.
//! Their difference is learned from the `Date` header of the apiserver's answers. Each header
//! proves that the apiserver's clock was in a certain second between request and answer.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use shed_core::time::{Instant, Span};

/// No job is ended for its deadline or a time limit while the apiserver's time is not known to within
/// this.
pub const UNCERTAINTY_MAX: Span = Span::from_seconds(2);

/// A date is exact only to the second.
const DATE: Span = Span::from_seconds(1);
/// Answers that agree within this time form one bound.
const BOUND: Span = Span::from_seconds(10);
/// A bound counts for this time after its last answer. One apiserver out of service, or one step of
/// its clock, makes the time uncertain no longer than that.
const KEPT: Span = Span::from_seconds(60);
/// Most bounds: two apiservers that disagree and answer by turns make one with each answer.
const BOUNDS_MAX: usize = 16;
/// The maximum drift between clocks is one second in this many.
const DRIFT: i64 = 1000;

/// The apiserver's clock as far as it is known, and this process's own.
pub struct Clock {
    /// Where the process's own clock begins.
    began: std::time::Instant,
    /// The wall clock's reading at that moment, taken once.
    base: Instant,
    heard: Mutex<Heard>,
    /// Time that tests skip.
    #[cfg(test)]
    skipped: std::sync::atomic::AtomicI64,
    /// Whether no other time passes.
    #[cfg(test)]
    frozen: std::sync::atomic::AtomicBool,
}

impl Clock {
    /// A clock without any answer. Until the first answer the wall clock of this moment replaces
    /// the apiserver's.
    pub fn new() -> Arc<Self> {
        Self::showing(super::wall())
    }

    fn showing(base: Instant) -> Arc<Self> {
        Arc::new(Self {
            began: std::time::Instant::now(),
            base,
            heard: Mutex::default(),
            #[cfg(test)]
            skipped: std::sync::atomic::AtomicI64::new(0),
            #[cfg(test)]
            frozen: std::sync::atomic::AtomicBool::new(false),
        })
    }

    /// The process's own clock, for timers: nothing ever sets it. Its instants can be compared with each
    /// other and with nothing else.
    pub fn ticks(&self) -> Instant {
        let passed = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        #[cfg(test)]
        let passed = match self.frozen.load(std::sync::atomic::Ordering::Relaxed) {
            true => 0,
            false => passed,
        };
        #[cfg(test)]
        let passed = passed + self.skipped.load(std::sync::atomic::Ordering::Relaxed);
        self.base.plus(Span(passed))
    }

    /// The apiserver's time, as far as it is known.
    pub fn now(&self) -> Instant {
        self.at(self.ticks())
    }

    /// The apiserver's time when the process's own clock showed this.
    pub fn at(&self, ticks: Instant) -> Instant {
        ticks.plus(self.heard.lock().offset)
    }

    /// The maximum error of the apiserver's time as reported here; absent while it is unknown.
    pub fn uncertainty(&self) -> Option<Span> {
        self.heard.lock().uncertainty(self.ticks())
    }

    /// The same, unless it is more than may be for a job to be ended.
    pub fn certainty(&self) -> Option<Span> {
        self.uncertainty()
            .filter(|&uncertainty| uncertainty <= UNCERTAINTY_MAX)
    }

    /// The reading that the apiserver's clock had certainly reached when the process's own clock
    /// showed this. Absent if the clock is too uncertain to fail a job.
    pub fn certainly(&self, ticks: Instant) -> Option<Instant> {
        let uncertainty = self.certainty()?;
        Some(self.at(ticks).plus(Span(-uncertainty.0)))
    }

    /// How far the apiserver's clock is ahead of this machine's current wall clock.
    pub fn offset(&self) -> Span {
        self.now().since(super::wall())
    }

    /// A note for people while the clock is too uncertain to fail a job.
    pub fn note(&self) -> Option<String> {
        let uncertainty = self.uncertainty();
        let how_well = match uncertainty {
            Some(uncertainty) if uncertainty <= UNCERTAINTY_MAX => return None,
            Some(uncertainty) => format!("known to within {:.0} s only", uncertainty.seconds()),
            None => "not known yet".to_owned(),
        };
        Some(format!(
            "the apiserver's time is {how_well}: shed stops no job at its deadline or time limit\n"
        ))
    }

    /// Records an answer with this date, which was made between these two instants of the process's
    /// own clock.
    pub fn hear(&self, sent: Instant, answered: Instant, date: Timestamp) {
        let date = Instant(date.as_millisecond());
        let offsets = Bound {
            from: answered,
            to: answered,
            low: date.since(answered),
            high: date.plus(DATE).since(sent),
        };
        self.heard.lock().take(offsets);
    }
}

/// Evidence of the answers so far.
#[derive(Debug, Default)]
struct Heard {
    bounds: VecDeque<Bound>,
    /// How far the apiserver's clock is ahead of the process's own.
    offset: Span,
    /// The bounds' maximum difference between the true offset and that.
    error: Span,
}

/// Range of the offset, from consistent answers between two instants.
#[derive(Debug, Clone, Copy)]
struct Bound {
    from: Instant,
    to: Instant,
    low: Span,
    high: Span,
}

impl Bound {
    fn contains(&self, offset: Span) -> bool {
        self.low <= offset && offset <= self.high
    }

    /// How far outside of it an offset lies.
    fn distance(&self, offset: Span) -> Span {
        let outside = (self.low.0 - offset.0).max(offset.0 - self.high.0);
        Span(outside.max(0))
    }

    fn joined(&self, other: &Self) -> Option<Self> {
        let joined = Self {
            from: self.from,
            to: other.to,
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        };
        (joined.low <= joined.high).then_some(joined)
    }
}

impl Heard {
    fn take(&mut self, new: Bound) {
        let now = new.to;
        self.bounds.retain(|bound| now.since(bound.to) < KEPT);
        let last = self.bounds.back_mut();
        let joined = last
            .filter(|last| now.since(last.from) < BOUND)
            .and_then(|last| Some((last.joined(&new)?, last)));
        match joined {
            Some((joined, last)) => *last = joined,
            None => self.bounds.push_back(new),
        }
        if self.bounds.len() > BOUNDS_MAX {
            self.bounds.pop_front();
        }
        self.weigh();
    }

    /// The interval on which most bounds agree, by Marzullo's algorithm; of two equal ones the
    /// newer. The offset moves no further than it must, and bounds that disagree make it uncertain.
    fn weigh(&mut self) {
        let agreeing = |offset: Span| self.bounds.iter().filter(move |b| b.contains(offset));
        let lows = self.bounds.iter().map(|bound| bound.low);
        let Some(agreed) = lows.max_by_key(|&low| agreeing(low).count()) else {
            return;
        };
        let low = agreeing(agreed).map(|bound| bound.low).max();
        let high = agreeing(agreed).map(|bound| bound.high).min();
        let (low, high) = (low.unwrap_or(agreed), high.unwrap_or(agreed));
        // The first answer replaces the initial offset without regard to their difference.
        let is_first = self.bounds.len() == 1 && self.error == Span(0);
        let offset = match is_first {
            true => Span(low.0.midpoint(high.0)),
            false => self.offset.clamp(low, high),
        };
        let others = self.bounds.iter().map(|bound| bound.distance(offset));
        let within = Span((high.0 - offset.0).max(offset.0 - low.0));
        self.error = Span(within.0 + others.max().unwrap_or_default().0);
        self.offset = offset;
    }

    fn uncertainty(&self, now: Instant) -> Option<Span> {
        let last = self.bounds.back()?;
        let silent = now.since(last.to).0.max(0);
        Some(Span(self.error.0.saturating_add(silent / DRIFT)))
    }
}

#[cfg(test)]
impl Clock {
    /// A clock that shows the wall clock's time and is known.
    pub fn for_tests() -> Arc<Self> {
        let clock = Self::new();
        clock.learn_for_tests(Span(0));
        clock
    }

    /// Forgets earlier answers, and records that the apiserver is this far ahead.
    pub fn learn_for_tests(&self, ahead: Span) {
        *self.heard.lock() = Heard::default();
        let now = self.ticks();
        let half = Span(-DATE.0 / 2);
        let date = now.plus(ahead).plus(half);
        self.hear(now, now, super::timestamp(date));
    }

    /// Adds an answer of an apiserver that is this far ahead to the recorded ones.
    pub fn disturb_for_tests(&self, ahead: Span) {
        let now = self.ticks();
        self.hear(now, now, super::timestamp(now.plus(ahead)));
    }

    /// No time passes any more, except what the test skips.
    pub fn freeze_for_tests(&self) {
        let frozen = &self.frozen;
        frozen.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Lets this time pass.
    pub fn skip_for_tests(&self, span: Span) {
        let skipped = &self.skipped;
        skipped.fetch_add(span.0, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of an apiserver that is `ahead` ms ahead, each some ms after the last, with its round trip.
    fn hears(heard: &mut Heard, ahead: i64, answers: &[(i64, i64)]) {
        let mut sent = heard.bounds.back().map_or(0, |bound| bound.to.0);
        for (after, round_trip) in answers {
            sent += after;
            let dated = (sent + round_trip / 2 + ahead).div_euclid(1000) * 1000;
            let answered = sent + round_trip;
            heard.take(Bound {
                from: Instant(answered),
                to: Instant(answered),
                low: Span(dated - answered),
                high: Span(dated + 1000 - sent),
            });
        }
    }

    fn now(heard: &Heard) -> Instant {
        heard.bounds.back().map_or(Instant(0), |bound| bound.to)
    }

    fn error(heard: &Heard) -> i64 {
        heard.uncertainty(now(heard)).expect("an answer").0
    }

    #[test]
    fn one_answer_gives_the_time_to_half_a_second_and_round_trip() {
        let mut heard = Heard::default();
        assert_eq!(heard.uncertainty(Instant(0)), None);
        hears(&mut heard, 300_000, &[(100, 40)]);
        assert!((heard.offset.0 - 300_000).abs() <= 520, "{heard:?}");
        assert_eq!(error(&heard), 520);
    }

    #[test]
    fn many_answers_improve_the_offset_and_slow_ones_keep_it() {
        let mut heard = Heard::default();
        hears(&mut heard, -7300, &[(130, 30); 60]);
        assert!((heard.offset.0 + 7300).abs() <= 100, "{heard:?}");
        assert!(error(&heard) <= 200, "{heard:?}");
        let before = heard.offset;
        hears(&mut heard, -7300, &[(5000, 4000); 3]);
        assert_eq!(heard.offset, before, "slow answers move nothing");
    }

    #[test]
    fn apiservers_that_disagree_make_it_uncertain() {
        let mut heard = Heard::default();
        for _ in 0..10 {
            hears(&mut heard, 0, &[(200, 20)]);
            hears(&mut heard, 5000, &[(200, 20)]);
        }
        assert!(error(&heard) >= 3900, "{heard:?}");
        // By less than the bound, each may be believed.
        let mut heard = Heard::default();
        for _ in 0..10 {
            hears(&mut heard, 0, &[(200, 20)]);
            hears(&mut heard, 1500, &[(200, 20)]);
        }
        assert!(error(&heard) <= UNCERTAINTY_MAX.0, "{heard:?}");
    }

    #[test]
    fn a_step_of_the_apiservers_clock_is_doubted_and_then_followed() {
        let mut heard = Heard::default();
        hears(&mut heard, 0, &[(1000, 20); 30]);
        hears(&mut heard, -600_000, &[(1000, 20)]);
        assert!(error(&heard) > 500_000, "{heard:?}");
        hears(&mut heard, -600_000, &[(1000, 20); 65]);
        assert!((heard.offset.0 + 600_000).abs() <= 1100, "{heard:?}");
        assert!(error(&heard) <= 1100, "{heard:?}");
    }

    #[test]
    fn silence_makes_it_uncertain_only_slowly() {
        let mut heard = Heard::default();
        hears(&mut heard, 0, &[(1000, 20)]);
        let after = |minutes: i64| {
            let at = now(&heard).plus(Span::from_seconds(60 * minutes));
            heard.uncertainty(at).expect("an answer")
        };
        assert!(after(10) <= UNCERTAINTY_MAX);
        assert!(after(60) > UNCERTAINTY_MAX);
    }

    #[test]
    fn deadlines_go_by_the_earliest_that_the_apiservers_time_may_be() {
        let clock = Clock::for_tests();
        let ticks = clock.ticks();
        let certainly = clock.certainly(ticks).expect("it is known");
        assert_eq!(clock.at(ticks).since(certainly).0, 500);
        clock.disturb_for_tests(Span::from_seconds(60));
        assert_eq!(clock.certainly(ticks), None);
        assert!(clock.uncertainty().is_some_and(|by| by > UNCERTAINTY_MAX));
    }

    #[test]
    fn the_wall_clock_is_read_once() {
        // It was five minutes ahead then, and later changes of the clock do not matter.
        let five_minutes = Span::from_seconds(300);
        let clock = Clock::showing(crate::clock::wall().plus(five_minutes));
        clock.learn_for_tests(Span(-five_minutes.0));
        assert!(clock.offset().0.abs() <= 600, "{:?}", clock.offset());
        let (ticks, now) = (clock.ticks(), clock.now());
        clock.learn_for_tests(Span::from_seconds(-900));
        assert!(clock.now() < now, "the apiserver's clock was set back");
        assert!(clock.ticks() >= ticks, "timers go on");
    }
}
