//! The printed output: a line per event, with the seconds since the start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::steps::Steps;

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
    steps: Steps,
}

impl Screen {
    /// A clock that starts now, or with the script that built this program.
    pub fn start() -> Self {
        Self::with_steps(Steps::new(Vec::new(), 0))
    }

    /// Continues the clock and the steps of the script that built this program, and breaks each silence.
    pub fn continue_script(steps: Steps) -> Self {
        let mut screen = Self::with_steps(steps);
        let earlier = super::steps::seconds_of_script();
        screen.started = screen
            .started
            .checked_sub(earlier)
            .unwrap_or(screen.started);
        let alive = screen.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                alive.break_silence();
            }
        });
        screen
    }

    fn with_steps(steps: Steps) -> Self {
        let now = Instant::now();
        let state = State {
            last_line: now,
            steps,
        };
        Self {
            started: now,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// One line about something that happened.
    pub fn say(&self, who: &str, what: &str) {
        println!("{:7.1} s  {who:<8}  {what}", self.seconds());
        self.with(|state| state.last_line = Instant::now());
    }

    /// A heading.
    pub fn heading(&self, text: &str) {
        println!("\n{text}");
    }

    /// Ends the step before, and begins the next one.
    pub fn step(&self, name: &str) {
        for line in self.with(|state| state.steps.begin(name)) {
            self.say("demo", &line);
        }
    }

    /// Ends the last step.
    pub fn end_step(&self) {
        if let Some(line) = self.with(|state| state.steps.end()) {
            self.say("demo", &line);
        }
    }

    /// Another number of steps in all.
    pub fn expect_steps(&self, all: usize) {
        self.with(|state| state.steps.expect(all));
    }

    /// The time of each step that has ended.
    pub fn step_times(&self) -> String {
        table(&self.with(|state| state.steps.rows()))
    }

    fn break_silence(&self) {
        let line = self.with(|state| {
            let is_quiet = state.last_line.elapsed() >= QUIET_MAX;
            is_quiet.then(|| state.steps.still()).flatten()
        });
        if let Some(line) = line {
            self.say("demo", &line);
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock())
    }
}

/// Prints a table whose columns are as wide as they need; the first is aligned left.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<_> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        format!("  {}\n", cells.collect::<Vec<_>>().join("   ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "234".to_owned()],
        ];
        assert_eq!(table(&rows), "  a       1\n  bcd   234\n");
    }
}
