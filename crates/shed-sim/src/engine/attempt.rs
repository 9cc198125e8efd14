//! The true state of one attempt, which no policy sees: its end and its progress. Its reports are computed on demand,
//! so that reports after the first cost no event.

use shed_core::snapshot::{AttemptKind, Progress};
use shed_core::time::{Instant, Span};

use crate::event::AttemptRef;
use crate::model::Draw;
use crate::trace::Ending;

/// An attempt.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) group: u32,
    pub(super) task: u32,
    pub(super) number: u32,
    /// The index of its task's entry when it was launched.
    pub(super) position: usize,
    pub(super) kind: AttemptKind,
    pub(super) node: Option<u32>,
    pub(super) launched: Instant,
    /// When the attempt took its node; its use of capacity is counted from then on.
    pub(super) placed: Instant,
    pub(super) started: Option<Instant>,
    pub(super) ended: bool,
    pub(super) start_progress: f64,
    /// Its policy starts it at zero although others are further.
    pub(super) starts_over: bool,
    pub(super) draw: Draw,
    /// Relative error of the attempt's reports at its start.
    pub(super) error: f64,
    /// The attempt's time and progress when its speed last changed.
    base: (Instant, f64),
    /// When the attempt's work will be done at its present speed.
    completes: Instant,
    /// The attempt's reports when its speed last changed; few attempts have such a change.
    reported: Option<Box<ReportedProgress>>,
}

#[derive(Debug, Clone, Copy)]
struct ReportedProgress {
    progress: Progress,
    /// The true progress at the attempt's last report.
    reached: f64,
}

/// When a group's attempts report.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportTimes {
    pub(super) first: Span,
    pub(super) every: Span,
}

impl Attempt {
    pub(super) fn new(
        (group, task, number): (u32, u32, u32),
        kind: AttemptKind,
        launched: Instant,
        start_progress: f64,
        draw: Draw,
        error: f64,
    ) -> Self {
        Self {
            group,
            task,
            number,
            position: 0,
            kind,
            node: None,
            launched,
            placed: launched,
            started: None,
            ended: false,
            start_progress,
            starts_over: false,
            draw,
            error,
            base: (launched, start_progress),
            completes: launched,
            reported: None,
        }
    }

    /// The attempt starts to process on a node of that speed.
    pub(super) fn start(&mut self, now: Instant, speed: f64) {
        self.started = Some(now);
        self.base = (now, self.start_progress);
        self.completes = self.completion(now, speed);
    }

    fn completion(&self, now: Instant, speed: f64) -> Instant {
        let left = (1.0 - self.base.1) * self.draw.work.0 as f64 / speed;
        now.plus(Span(left.ceil() as i64))
    }

    /// When and how the attempt ends by itself.
    pub(super) fn end(&self) -> (Instant, Ending) {
        let cut = self.draw.cut.zip(self.started);
        match cut.map(|((after, ending), started)| (started.plus(after), ending)) {
            Some((at, ending)) if at <= self.completes => (at, ending),
            _ => (self.completes, Ending::Finished),
        }
    }

    /// Changes the speed of the attempt's node from now on.
    pub(super) fn change_speed(&mut self, now: Instant, speed: f64, times: Option<ReportTimes>) {
        if self.started.is_none() || self.ended {
            return;
        }
        self.reported = times
            .and_then(|times| self.last_report(now, times))
            .map(Box::new);
        self.base = (now, self.progress(now));
        self.completes = self.completion(now, speed);
    }

    /// The true progress: the share of the whole task.
    pub(super) fn progress(&self, now: Instant) -> f64 {
        let (at, begin) = self.base;
        if now >= self.completes && self.started.is_some() {
            1.0
        } else if now <= at {
            begin
        } else {
            let share = now.since(at).0 as f64 / self.completes.since(at).0 as f64;
            begin + (1.0 - begin) * share
        }
    }

    /// The attempt's reports, and its true progress at the last one.
    pub(super) fn reported(&self, now: Instant, times: ReportTimes) -> Option<(Progress, f64)> {
        self.last_report(now, times)
            .map(|reported| (reported.progress, reported.reached))
    }

    fn last_report(&self, now: Instant, times: ReportTimes) -> Option<ReportedProgress> {
        let first_at = self.started?.plus(times.first);
        if now < first_at {
            return None;
        }
        let passed = now.since(first_at).0.checked_div(times.every.0);
        let last_at = first_at.plus(Span(passed.unwrap_or(0).saturating_mul(times.every.0)));
        let before = self.reported.as_deref();
        if let Some(reported) = before.filter(|_| last_at <= self.base.0) {
            return Some(*reported);
        }
        let reached = self.progress(last_at);
        let first = before.map_or_else(
            || self.claim(self.progress(first_at)),
            |reported| reported.progress.first,
        );
        let progress = Progress {
            first_at,
            first,
            last_at,
            last: self.claim(reached),
        };
        Some(ReportedProgress { progress, reached })
    }

    /// The attempt's report at that progress. The reported value of its own part has the error `error`, which shrinks
    /// with progress, and never decreases.
    fn claim(&self, progress: f64) -> f64 {
        let own = progress - self.start_progress;
        let whole = 1.0 - self.start_progress;
        if own <= 0.0 || whole <= 0.0 {
            return self.start_progress;
        }
        let share = own / whole;
        self.start_progress + own * (1.0 + self.error * (1.0 - share))
    }
}

/// All attempts that exist, by slot.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    slots: Vec<(u32, Attempt)>,
    free: Vec<u32>,
}

impl Attempts {
    pub(super) fn add(&mut self, attempt: Attempt) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].1 = attempt;
            return slot;
        }
        self.slots.push((0, attempt));
        (self.slots.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.forget_events(slot);
        self.free.push(slot);
    }

    /// Invalidates the pending events of the attempt: they name an old generation from now on.
    pub(super) fn forget_events(&mut self, slot: u32) {
        self.slots[slot as usize].0 = self.slots[slot as usize].0.wrapping_add(1);
    }

    pub(super) fn name(&self, slot: u32) -> AttemptRef {
        AttemptRef {
            slot,
            generation: self.slots[slot as usize].0,
        }
    }

    /// Whether an event about the attempt is still valid.
    pub(super) fn is_current(&self, name: AttemptRef) -> bool {
        self.slots[name.slot as usize].0 == name.generation
    }

    pub(super) fn get(&self, slot: u32) -> &Attempt {
        &self.slots[slot as usize].1
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Attempt {
        &mut self.slots[slot as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(work: i64, begin: f64, error: f64) -> Attempt {
        let draw = Draw {
            work: Span(work),
            cut: None,
        };
        let id = (0, 0, 0);
        let mut attempt = Attempt::new(id, AttemptKind::Original, Instant(0), begin, draw, error);
        attempt.start(Instant(1000), 1.0);
        attempt
    }

    const TIMES: ReportTimes = ReportTimes {
        first: Span(2000),
        every: Span(3000),
    };

    #[test]
    fn a_report_shows_where_it_was_at_its_last_report_only() {
        let attempt = running(10_000, 0.0, 0.0);
        assert_eq!(attempt.reported(Instant(2999), TIMES), None);
        let (progress, reached) = attempt.reported(Instant(8999), TIMES).unwrap();
        assert_eq!(
            (progress.first_at, progress.last_at),
            (Instant(3000), Instant(6000))
        );
        assert_eq!((progress.first, progress.last, reached), (0.2, 0.5, 0.5));
    }

    #[test]
    fn a_node_at_half_speed_doubles_only_the_remaining_time() {
        let mut attempt = running(10_000, 0.0, 0.0);
        attempt.change_speed(Instant(6000), 0.5, Some(TIMES));
        assert_eq!(attempt.end(), (Instant(16_000), Ending::Finished));
        let (progress, _) = attempt.reported(Instant(8000), TIMES).unwrap();
        assert_eq!((progress.first, progress.last), (0.2, 0.5));
        let (progress, _) = attempt.reported(Instant(9000), TIMES).unwrap();
        assert_eq!((progress.first, progress.last), (0.2, 0.65));
    }

    #[test]
    fn a_resumed_attempt_runs_only_the_rest_and_reports_from_there() {
        let attempt = running(10_000, 0.75, 0.4);
        assert_eq!(attempt.end().0, Instant(3500));
        let (progress, reached) = attempt.reported(Instant(3200), TIMES).unwrap();
        assert_eq!(reached, 0.95);
        assert!(progress.last > reached && progress.last < 1.0);
    }
}
