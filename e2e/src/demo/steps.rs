//! The steps of the demo and their times. The script `e2e/demo.sh` takes the first ones: it builds this program.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Where the script puts the times of its steps: a name and seconds per line, with a tab between.
const FILE: &str = "SHED_DEMO_STEPS";
/// When the script started, in seconds since 1970.
const STARTED: &str = "SHED_DEMO_STARTED";

/// The steps so far.
pub struct Steps {
    ended: Vec<(String, Duration)>,
    current: Option<(String, Instant)>,
    number: usize,
    all: usize,
}

impl Steps {
    /// Steps that have ended, and how many there are in all. The script's builds are step 1.
    pub fn new(ended: Vec<(String, Duration)>, all: usize) -> Self {
        Self {
            ended,
            current: None,
            number: 1,
            all,
        }
    }

    /// The steps of the script that started this program, if one did.
    pub fn from_script(all: usize) -> Self {
        let text = std::env::var(FILE).ok();
        let text = text.and_then(|path| std::fs::read_to_string(Path::new(&path)).ok());
        Self::new(read(&text.unwrap_or_default()), all)
    }

    /// Another number of steps in all.
    pub fn expect(&mut self, all: usize) {
        self.all = all;
    }

    /// Ends the step before, begins the next, and returns the lines that report it.
    pub fn begin(&mut self, name: &str) -> Vec<String> {
        let mut lines: Vec<String> = self.end().into_iter().collect();
        self.number += 1;
        self.current = Some((name.to_owned(), Instant::now()));
        lines.push(format!("step {}/{}: {name}", self.number, self.all));
        lines
    }

    /// Ends the current step, and returns the line that reports it.
    pub fn end(&mut self) -> Option<String> {
        let (name, began) = self.current.take()?;
        let took = began.elapsed();
        let seconds = took.as_secs_f64();
        let line = format!(
            "step {}/{}: {name}: done in {seconds:.1} s",
            self.number, self.all
        );
        self.ended.push((name, took));
        Some(line)
    }

    /// A line for a step that prints nothing by itself.
    pub fn still(&self) -> Option<String> {
        let (name, began) = self.current.as_ref()?;
        let seconds = began.elapsed().as_secs();
        Some(format!(
            "step {}/{}: {name}: {seconds} s so far",
            self.number, self.all
        ))
    }

    /// A row for each step that has ended.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |(name, took): &(String, Duration)| {
            vec![name.clone(), format!("{:.0} s", took.as_secs_f64())]
        };
        let heading = vec!["step".to_owned(), "time".to_owned()];
        std::iter::once(heading)
            .chain(self.ended.iter().map(row))
            .collect()
    }
}

/// The time since the script's start.
pub fn seconds_of_script() -> Duration {
    let started = std::env::var(STARTED).ok();
    let started = started.and_then(|text| text.parse().ok());
    let since = started.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    since
        .and_then(|start| start.elapsed().ok())
        .unwrap_or_default()
}

fn read(text: &str) -> Vec<(String, Duration)> {
    let step = |line: &str| {
        let (name, seconds) = line.split_once('\t')?;
        let seconds = seconds.parse().ok()?;
        Some((name.to_owned(), Duration::from_secs(seconds)))
    };
    text.lines().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_steps_come_first() {
        let mut steps = Steps::new(
            read("build Kubernetes\t312\nbuild shed\t200\nno number\tx\n"),
            7,
        );
        assert_eq!(steps.still(), None);
        assert_eq!(
            steps.begin("start the cluster"),
            ["step 2/7: start the cluster"]
        );
        assert_eq!(
            steps.still().unwrap(),
            "step 2/7: start the cluster: 0 s so far"
        );
        assert_eq!(
            steps.begin("images"),
            [
                "step 2/7: start the cluster: done in 0.0 s",
                "step 3/7: images"
            ]
        );
        assert_eq!(
            steps.end().as_deref(),
            Some("step 3/7: images: done in 0.0 s")
        );
        let rows: Vec<_> = steps.rows().into_iter().map(|row| row.join(" ")).collect();
        assert_eq!(
            rows,
            [
                "step time",
                "build Kubernetes 312 s",
                "build shed 200 s",
                "start the cluster 0 s",
                "images 0 s"
            ]
        );
    }
}
