//! The measurements of a scenario, as a line of JSON and a table.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::meter::Counts;
use crate::bench::page;
use crate::process::Taken;

/// One phase of a scenario.
pub struct Phase {
    /// The awaited change.
    pub name: &'static str,
    /// How long that took.
    pub took: Duration,
    /// The operator's calls meanwhile.
    pub counts: Counts,
    /// The operator's memory at the end, and its CPU time meanwhile.
    pub taken: Taken,
    /// Bytes of the largest job's object at the end of it, if one job matters.
    pub object: Option<usize>,
}

/// The result of a scenario.
#[derive(Default)]
pub struct Outcome {
    /// Its phases.
    pub phases: Vec<Phase>,
    /// Further figures.
    pub figures: Vec<(&'static str, Value)>,
    /// Violated invariants, in words.
    pub broken: Vec<String>,
}

impl Outcome {
    /// Notes what must hold.
    pub fn demand(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(what());
        }
    }

    /// Notes a figure.
    pub fn figure(&mut self, name: &'static str, value: impl Into<Value>) {
        self.figures.push((name, value.into()));
    }

    /// Records a figure whose maximum counts.
    pub fn at_most(&mut self, name: &'static str, value: u64) {
        let earlier = self.figures.iter_mut().find(|(own, _)| *own == name);
        match earlier {
            Some((_, most)) => *most = json!(most.as_u64().unwrap_or(0).max(value)),
            None => self.figure(name, value),
        }
    }

    /// All of it in one line.
    pub fn line(&self, scenario: &str, program: &str) -> String {
        let phases: Vec<Value> = self.phases.iter().map(Phase::value).collect();
        let mut line = json!({"scenario": scenario, "operator": program, "phases": phases,
            "broken": self.broken});
        for (name, value) in &self.figures {
            line[*name] = value.clone();
        }
        line.to_string()
    }

    /// A row per phase, and the further figures below.
    pub fn table(&self) -> String {
        let mut table = page::table(
            &[
                ("phase", &|phase: &&Phase| phase.name.to_owned()),
                ("time", &|phase| {
                    format!("{:.1} s", phase.took.as_secs_f64())
                }),
                ("create", &|phase| phase.calls("create")),
                ("update", &|phase| phase.calls("update")),
                ("patch", &|phase| phase.calls("patch")),
                ("delete", &|phase| phase.calls("delete")),
                ("events", &|phase| phase.calls("event")),
                ("written", &|phase| format!("{} KiB/s", phase.rate() / 1024)),
                ("object", &|phase| match phase.object {
                    Some(bytes) => format!("{} KiB", bytes / 1024),
                    None => "-".to_owned(),
                }),
                ("RSS", &|phase| format!("{} MiB", phase.taken.rss / 1024)),
                ("peak RSS", &|phase| {
                    format!("{} MiB", phase.taken.peak / 1024)
                }),
                ("CPU", &|phase| format!("{:.1} s", phase.taken.cpu)),
            ],
            &self.phases,
        );
        for (name, value) in &self.figures {
            let _ = writeln!(table, "{name}: {value}");
        }
        for line in &self.broken {
            let _ = writeln!(table, "BROKEN: {line}");
        }
        table
    }
}

impl Phase {
    fn calls(&self, verb: &str) -> String {
        self.counts.calls.get(verb).unwrap_or(&0).to_string()
    }

    /// Bytes that were written per second.
    fn rate(&self) -> u64 {
        let millis = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        self.counts.bytes.saturating_mul(1000) / millis.max(1)
    }

    fn value(&self) -> Value {
        json!({"phase": self.name, "seconds": self.took.as_secs_f64(), "calls": self.counts.calls,
            "bytes": self.counts.bytes, "bytesPerSecond": self.rate(),
            "object": self.object, "rssKiB": self.taken.rss, "peakRssKiB": self.taken.peak,
            "cpuSeconds": self.taken.cpu})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_a_table_have_all_phases_and_what_is_broken() {
        let mut outcome = Outcome::default();
        outcome.phases.push(Phase {
            name: "launched",
            took: Duration::from_secs(2),
            counts: Counts {
                bytes: 4096,
                ..Counts::default()
            },
            taken: Taken::default(),
            object: Some(2048),
        });
        outcome.figure("live", 7);
        outcome.at_most("peak", 5);
        outcome.at_most("peak", 3);
        outcome.demand(false, || "too much".to_owned());
        outcome.demand(true, || "all is well".to_owned());
        let line: Value = serde_json::from_str(&outcome.line("s", "shed")).unwrap();
        assert_eq!(line["phases"][0]["bytesPerSecond"], 2048);
        assert_eq!(
            (&line["live"], &line["broken"]),
            (&json!(7), &json!(["too much"]))
        );
        assert_eq!(line["peak"], 5);
        let table = outcome.table();
        assert!(table.contains("| launched | 2.0 s |") && table.contains("BROKEN: too much"));
    }
}
