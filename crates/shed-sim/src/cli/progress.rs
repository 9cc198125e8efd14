//! How far long work is, on standard error: a bar on a terminal, elsewhere a line now and then.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// Time between two lines where standard error is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(20);

/// The progress of work whose amount is known.
pub struct Progress {
    bar: ProgressBar,
    what: String,
    begun: Instant,
    lines: Mutex<Lines>,
}

struct Lines {
    done: usize,
    all: usize,
    last: Instant,
}

impl Progress {
    /// Work on that many things; `what` is their plural.
    #[must_use]
    pub fn new(all: usize, what: &str) -> Self {
        let bar = ProgressBar::new(all as u64);
        let template =
            format!("{{bar:30}} {{pos}}/{{len}} {what}  {{elapsed}} passed, {{eta}} to go");
        let style = ProgressStyle::with_template(&template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.tick();
        let now = Instant::now();
        let lines = Lines {
            done: 0,
            all,
            last: now,
        };
        Self {
            bar,
            what: what.to_owned(),
            begun: now,
            lines: Mutex::new(lines),
        }
    }

    /// One more is done.
    pub fn advance(&self) {
        self.bar.inc(1);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.done += 1;
        if self.bar.is_hidden() && lines.last.elapsed() >= BETWEEN_LINES {
            lines.last = Instant::now();
            eprintln!("{}", self.line(&lines));
        }
    }

    /// The work has come to an end.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bar.is_hidden() && lines.all > 0 {
            eprintln!("{}", self.line(&lines));
        }
    }

    fn line(&self, lines: &Lines) -> String {
        text(lines.done, lines.all, &self.what, self.begun.elapsed())
    }
}

/// What is done, and how long the rest takes if it goes on like this.
fn text(done: usize, all: usize, what: &str, elapsed: Duration) -> String {
    let passed = HumanDuration(elapsed);
    if done == 0 || done >= all {
        return format!("{done} of {all} {what}, {passed:#} passed");
    }
    let rest = elapsed.mul_f64((all - done) as f64 / done as f64);
    let rest = HumanDuration(rest);
    format!("{done} of {all} {what}, {passed:#} passed, about {rest:#} left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_estimates_the_rest_from_what_is_done() {
        let at = Duration::from_secs(120);
        assert_eq!(text(0, 9, "runs", at), "0 of 9 runs, 2m passed");
        assert_eq!(
            text(3, 9, "runs", at),
            "3 of 9 runs, 2m passed, about 4m left"
        );
        assert_eq!(text(9, 9, "runs", at), "9 of 9 runs, 2m passed");
    }
}
