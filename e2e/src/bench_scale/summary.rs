//! Writes of the controller in a run, and the table of all runs on the terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::audit::{JOB_CONTROLLER, SHED, is_write};
use super::load::Kind;
use super::ratios::controller;
use super::results::{Figures, Key, Line};

/// Writes of a controller in one run, without events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Pods created.
    pub creates: u64,
    /// Pods patched or updated: released, as a rule.
    pub releases: u64,
    /// Pods deleted.
    pub deletes: u64,
    /// Writes to statuses of jobs.
    pub statuses: u64,
    /// Other writes.
    pub others: u64,
    /// Those among them that were refused.
    pub refused: u64,
    /// Events, which are not in the sum.
    pub events: u64,
}

impl Writes {
    /// Those of the controller that runs a kind of jobs.
    pub fn of(figures: &Figures, kind: Kind) -> Self {
        let mut writes = Self::default();
        for (request, count) in figures.requests.get(agent(kind)).into_iter().flatten() {
            let mut words = request.split(' ');
            let (verb, resource) = (words.next(), words.next());
            let place = match (verb.unwrap_or_default(), resource.unwrap_or_default()) {
                (verb, _) if !is_write(verb) => continue,
                (_, "events") => {
                    writes.events += count;
                    continue;
                }
                ("create", "pods") => &mut writes.creates,
                ("patch" | "update", "pods" | "pods/status") => &mut writes.releases,
                ("delete" | "deletecollection", "pods") => &mut writes.deletes,
                (_, "jobs/status" | "deadlinejobs/status") => &mut writes.statuses,
                _ => &mut writes.others,
            };
            *place += count;
            let code: Option<u16> = words.next().and_then(|code| code.parse().ok());
            if code.is_some_and(|code| code >= 400) {
                writes.refused += count;
            }
        }
        writes
    }

    /// All of them without events.
    pub fn sum(self) -> u64 {
        self.creates + self.releases + self.deletes + self.statuses + self.others
    }
}

/// The client that runs the jobs of a kind.
pub fn agent(kind: Kind) -> &'static str {
    if kind.is_builtin() {
        JOB_CONTROLLER
    } else {
        SHED
    }
}

/// A row per run.
pub fn table(lines: &BTreeMap<Key, Line>) -> String {
    let mut table = String::from(
        "| size | kind | # | wall s | writes per task | creates | releases | deletes | status | other | events | controller CPU s | apiserver CPU s | etcd CPU s |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (key, line) in lines {
        // Writing to a string does not fail.
        let _ = match &line.figures {
            Some(figures) => writeln!(table, "{}", row(key, figures)),
            None => writeln!(
                table,
                "| {} | {} | {} | failed: {} |",
                key.size.name(),
                key.kind.name(),
                key.repetition,
                line.failure.as_deref().unwrap_or_default()
            ),
        };
    }
    table
}

fn row(key: &Key, figures: &Figures) -> String {
    let writes = Writes::of(figures, key.kind);
    let cpu = |name: &str| {
        figures
            .processes
            .get(name)
            .map_or(0.0, |used| used.cpu_seconds)
    };
    format!(
        "| {} | {} | {} | {:.1} | {:.3} | {} | {} | {} | {} | {} | {} | {:.2} | {:.2} | {:.2} |",
        key.size.name(),
        key.kind.name(),
        key.repetition,
        figures.wall_seconds,
        writes.sum() as f64 / f64::from(figures.tasks.max(1)),
        writes.creates,
        writes.releases,
        writes.deletes,
        writes.statuses,
        writes.others,
        writes.events,
        cpu(controller(key.kind)),
        cpu("kube-apiserver"),
        cpu("etcd"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::line;
    use super::*;

    #[test]
    fn writes_are_those_of_the_kinds_controller_without_events() {
        let mut figures = Figures {
            tasks: 10,
            ..Figures::default()
        };
        let counts = [
            ("create pods", 10),
            ("patch pods", 11),
            ("patch pods 404", 1),
            ("delete pods", 2),
            ("patch deadlinejobs/status", 5),
            ("create deadlinejobs", 1),
            ("create events", 99),
            ("list pods", 50),
        ];
        let counts = counts.map(|(request, count)| (request.to_owned(), count));
        figures
            .requests
            .insert(SHED.to_owned(), BTreeMap::from(counts));
        let writes = Writes::of(&figures, Kind::Disabled);
        assert_eq!(
            (writes.creates, writes.releases, writes.deletes),
            (10, 12, 2)
        );
        assert_eq!((writes.statuses, writes.others, writes.events), (5, 1, 99));
        assert_eq!((writes.sum(), writes.refused), (30, 1));
        assert_eq!(Writes::of(&figures, Kind::Job), Writes::default());
        let lines = [
            line(Kind::Disabled, 1, Some(figures)),
            line(Kind::Job, 1, None),
        ];
        let table = table(&lines.map(|line| (line.key, line)).into());
        assert!(table.contains("| disabled | 1 | 0.0 | 3.000 |"), "{table}");
        assert!(table.contains("| job | 1 | failed: too slow |"), "{table}");
    }
}
