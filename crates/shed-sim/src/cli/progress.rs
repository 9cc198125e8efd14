//! The progress of long work, on standard error: a bar on a terminal, elsewhere a line every 20 seconds.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// Time between two lines where standard error is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(20);

/// The progress of work whose amount is known.
pub struct Progress {
    bar: ProgressBar,
    what: String,
    last_line: Mutex<Instant>,
}

impl Progress {
    /// Of work on that many things; `what` is their plural.
    pub fn new(all: usize, what: &str) -> Self {
        let bar = ProgressBar::new(all as u64);
        let template =
            format!("{{bar:30}} {{pos}}/{{len}} {what}  {{elapsed}} passed, {{eta}} to go");
        let style = ProgressStyle::with_template(&template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.tick();
        Self {
            bar,
            what: what.to_owned(),
            last_line: Mutex::new(Instant::now()),
        }
    }

    /// Counts one more as done.
    pub fn advance(&self) {
        self.bar.inc(1);
        let mut last_line = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.bar.is_hidden() && last_line.elapsed() >= BETWEEN_LINES {
            *last_line = Instant::now();
            eprintln!("{}", self.line());
        }
    }

    /// Ends the bar.
    pub fn finish(self) {
        if self.bar.is_hidden() && self.bar.length() > Some(0) {
            eprintln!("{}", self.line());
        }
        self.bar.finish_and_clear();
    }

    fn line(&self) -> String {
        let all = self.bar.length().unwrap_or_default();
        text(self.bar.position(), all, &self.what, self.bar.elapsed())
    }
}

/// The work done, and the time that the rest takes at the same rate.
fn text(done: u64, all: u64, what: &str, elapsed: Duration) -> String {
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
