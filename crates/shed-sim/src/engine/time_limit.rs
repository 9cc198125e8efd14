//! The processor time of a run, and a limit on it.

use std::time::{Duration, Instant};

/// How often the processor time is read. Reading it takes a system call, so it is not read at every event.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The time for which the present thread has had a processor since a moment. A machine's other work does not count.
#[derive(Debug, Clone, Copy)]
pub struct ThreadTime {
    began: Instant,
    had: Option<Duration>,
}

impl ThreadTime {
    /// Starts to count now.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            had: of_thread(),
        }
    }

    /// The processor time since the start; the time of the clock where the system does not report the former.
    pub fn elapsed(&self) -> Duration {
        match (self.had, of_thread()) {
            (Some(had), Some(has)) => has.saturating_sub(had),
            _ => self.began.elapsed(),
        }
    }
}

/// The processor time of this thread, from Linux.
fn of_thread() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Ends a run that takes longer.
pub(super) struct TimeLimit {
    pub(super) most: Duration,
    time: ThreadTime,
    next_look: Instant,
}

impl TimeLimit {
    pub(super) fn new(most: Duration) -> Self {
        Self {
            most,
            time: ThreadTime::start(),
            next_look: Instant::now(),
        }
    }

    /// Whether the run has had its time. The first call counts as a look.
    pub(super) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next_look {
            return false;
        }
        self.next_look = now + LOOK_EVERY;
        self.time.elapsed() >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_0_is_over_at_once_and_a_long_one_is_not() {
        assert!(TimeLimit::new(Duration::ZERO).is_over());
        assert!(!TimeLimit::new(Duration::from_secs(3600)).is_over());
    }
}
