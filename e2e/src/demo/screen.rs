//! The printed output: a line per event, with the seconds since the start, and numbered steps.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// When the script `e2e/demo.sh` started, in seconds since 1970. It builds this program, which is step 1.
const STARTED: &str = "SHED_DEMO_STARTED";
/// The longest silence.
const QUIET_MAX: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Prints lines with a clock.
#[derive(Clone)]
pub struct Screen {
    started: Instant,
    state: Arc<Mutex<State>>,
}

struct State {
    last_line: Instant,
    steps: usize,
    number: usize,
    /// The current step, and when it began.
    step: Option<(String, Instant)>,
}

impl Screen {
    /// A clock that starts now, without steps.
    pub fn start() -> Self {
        let now = Instant::now();
        let state = State {
            last_line: now,
            steps: 0,
            number: 1,
            step: None,
        };
        Self {
            started: now,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Continues the clock of the script that built this program, and breaks each silence.
    pub fn continue_script(steps: usize) -> Self {
        let mut screen = Self::start();
        screen.expect_steps(steps);
        let earlier = screen.started.checked_sub(time_of_script());
        screen.started = earlier.unwrap_or(screen.started);
        let alive = screen.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                alive.break_silence();
            }
        });
        screen
    }

    /// Another number of steps in all.
    pub fn expect_steps(&self, all: usize) {
        self.state.lock().steps = all;
    }

    /// One line about something that happened.
    pub fn say(&self, who: &str, what: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!("{seconds:7.1} s  {who:<8}  {what}");
        self.state.lock().last_line = Instant::now();
    }

    /// A heading.
    pub fn heading(&self, text: &str) {
        println!("\n{text}");
    }

    /// Ends the step before, and begins the next one.
    pub fn step(&self, name: &str) {
        self.end_step();
        let line = {
            let mut state = self.state.lock();
            state.number += 1;
            state.step = Some((name.to_owned(), Instant::now()));
            format!("step {}/{}: {name}", state.number, state.steps)
        };
        self.say("demo", &line);
    }

    /// Ends the last step.
    pub fn end_step(&self) {
        if let Some(line) = self.progress(|seconds| format!("done in {seconds:.1} s")) {
            self.state.lock().step = None;
            self.say("demo", &line);
        }
    }

    fn break_silence(&self) {
        let is_quiet = self.state.lock().last_line.elapsed() >= QUIET_MAX;
        let line = self.progress(|seconds| format!("{seconds:.0} s so far"));
        if let Some(line) = line.filter(|_| is_quiet) {
            self.say("demo", &line);
        }
    }

    /// The current step, and `how` far it is after its seconds.
    fn progress(&self, how: impl FnOnce(f64) -> String) -> Option<String> {
        let state = self.state.lock();
        let (name, began) = state.step.as_ref()?;
        let how = how(began.elapsed().as_secs_f64());
        Some(format!(
            "step {}/{}: {name}: {how}",
            state.number, state.steps
        ))
    }
}

/// The time since the script's start.
fn time_of_script() -> Duration {
    let started = std::env::var(STARTED).ok();
    let started = started.and_then(|text| text.parse().ok());
    let since = started.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    since
        .and_then(|start| start.elapsed().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_after_the_builds_of_the_script() {
        let screen = Screen::start();
        screen.expect_steps(7);
        let done = || screen.progress(|_| "done".to_owned());
        assert_eq!(done(), None);
        screen.step("start the cluster");
        assert_eq!(done().unwrap(), "step 2/7: start the cluster: done");
        screen.step("images");
        assert_eq!(done().unwrap(), "step 3/7: images: done");
        screen.end_step();
        assert_eq!(done(), None);
    }
}
