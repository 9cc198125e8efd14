//! Runs by size and kind: figures per controller and task, and their ratios to the baseline in the same repetition.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figures, Key, Runs};
use super::load::{Kind, Size};
use crate::bench::audit::{JOB_CONTROLLER, SHED, is_write};
use crate::bench::components::CONTROLLER_MANAGER;
use crate::bench::page::{Spread, cell};
use crate::bench::window::Use;

/// A figure of a run; absent if it was not measured.
pub type Figure = fn(&Run) -> Option<f64>;

/// The figures that have a ratio, in the order of their columns.
pub const METRICS: [(&str, Figure); 6] = [
    ("writes per task", |run| Some(run.writes_per_task())),
    ("wall time", |run| Some(run.figures.wall_seconds)),
    ("controller CPU", Run::controller_cpu),
    ("apiserver CPU", |run| run.cpu("kube-apiserver")),
    ("etcd CPU", |run| run.cpu("etcd")),
    ("memory growth", Run::memory_growth),
];

/// A run that did not fail.
pub struct Run {
    /// What was run.
    pub key: Key,
    /// Its figures.
    pub figures: Figures,
    /// Writes of its controller.
    pub writes: Writes,
    /// Figures of the DeadlineJobs of the same repetition, for a run of the built-in controller.
    other: Option<Figures>,
}

/// The runs that did not fail.
pub fn measured(runs: &Runs) -> BTreeMap<Key, Run> {
    let figures_of = |key: Key| runs.get(&key)?.figures.figures.clone();
    let run = |key: &Key| {
        let (key, figures) = (*key, figures_of(*key)?);
        let other = key.kind.without_controller();
        let run = Run {
            key,
            writes: Writes::of(&figures, key.kind),
            figures,
            other: other.and_then(|kind| figures_of(Key { kind, ..key })),
        };
        Some((key, run))
    };
    runs.keys().filter_map(run).collect()
}

impl Run {
    /// Writes of the controller per task, without events.
    pub fn writes_per_task(&self) -> f64 {
        self.writes.sum() as f64 / f64::from(self.figures.tasks.max(1))
    }

    /// Resource use of a process.
    pub fn used(&self, process: &str) -> Option<&Use> {
        self.figures.processes.get(process)
    }

    /// Resource use of the process that runs the jobs.
    pub fn controller(&self) -> Option<&Use> {
        self.used(match self.key.kind.is_builtin() {
            true => CONTROLLER_MANAGER,
            false => SHED,
        })
    }

    /// CPU of a process, in seconds.
    pub fn cpu(&self, process: &str) -> Option<f64> {
        Some(self.used(process)?.cpu_seconds)
    }

    /// CPU of the controller in seconds: of shed, or of the controller-manager without its other work.
    pub fn controller_cpu(&self) -> Option<f64> {
        let own = self.controller()?.cpu_seconds;
        match self.key.kind.is_builtin() {
            true => Some(own - self.other_cpu()?),
            false => Some(own),
        }
    }

    /// CPU of the controller-manager's other work in seconds: as much per second as it uses next to DeadlineJobs.
    pub fn other_cpu(&self) -> Option<f64> {
        let other = self.other.as_ref()?;
        let used = other.processes.get(CONTROLLER_MANAGER)?;
        Some(used.cpu_seconds / other.window_seconds * self.figures.window_seconds)
    }

    /// Growth of the controller's memory to its peak, in KiB.
    pub fn memory_growth(&self) -> Option<f64> {
        let own = self.controller()?;
        Some(own.peak_kib.saturating_sub(own.rss_kib) as f64)
    }
}

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
    match kind.is_builtin() {
        true => JOB_CONTROLLER,
        false => SHED,
    }
}

/// The runs of one size and kind: a row of a table.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    /// Jobs and tasks.
    pub size: Size,
    /// Kind of jobs.
    pub kind: Kind,
    all: &'r BTreeMap<Key, Run>,
}

/// Sizes and kinds that have runs, in their usual order.
pub fn rows<'r>(all: &'r BTreeMap<Key, Run>) -> Vec<Row<'r>> {
    let rows: BTreeSet<(Size, Kind)> = all.keys().map(|key| (key.size, key.kind)).collect();
    let row = |(size, kind)| Row { size, kind, all };
    rows.into_iter().map(row).collect()
}

impl<'r> Row<'r> {
    /// Its runs.
    pub fn runs(&self) -> impl Iterator<Item = &'r Run> {
        let (size, kind) = (self.size, self.kind);
        let all = self.all.values();
        all.filter(move |run| (run.key.size, run.key.kind) == (size, kind))
    }

    /// The spread of a figure.
    pub fn spread(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs().filter_map(of).collect())
    }

    /// A figure for a table.
    pub fn cell(&self, digits: usize, of: impl Fn(&Run) -> Option<f64>) -> String {
        cell(self.spread(of), digits)
    }

    /// Ratios of a figure to the baseline, one per repetition that has both.
    pub fn ratio(&self, of: Figure) -> Option<Spread> {
        self.spread(|run| {
            let kind = self.kind.baseline()?;
            let below = of(self.all.get(&Key { kind, ..run.key })?)?;
            (below > 0.0).then_some(of(run)? / below)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::figures::Outcome;
    use super::*;
    use crate::bench::results::tests::line;

    /// A run in which the controller creates each of ten pods and makes `writes` writes to statuses.
    fn figures(kind: Kind, writes: u64, cpu: f64) -> Figures {
        let is_job = kind == Kind::Job;
        let status = match is_job {
            true => "update jobs/status",
            false => "update deadlinejobs/status",
        };
        let requests = [("create pods", 10), (status, writes)];
        let requests = requests.map(|(request, count)| (request.to_owned(), count));
        let used = |cpu_seconds, peak_kib| Use {
            cpu_seconds,
            rss_kib: 1000,
            peak_kib,
        };
        let manager = if is_job { cpu } else { 1.0 };
        Figures {
            tasks: 10,
            wall_seconds: 18.0,
            window_seconds: if is_job { 40.0 } else { 20.0 },
            requests: [(agent(kind).to_owned(), requests.into())].into(),
            processes: [
                (CONTROLLER_MANAGER.to_owned(), used(manager, 3000)),
                (SHED.to_owned(), used(if is_job { 0.1 } else { cpu }, 1500)),
                ("kube-apiserver".to_owned(), used(10.0, 9000)),
            ]
            .into(),
            ..Figures::default()
        }
    }

    /// The run of a kind in a repetition of the size `1x1000`.
    pub(in super::super) fn key(kind: Kind, repetition: u32) -> Key {
        Key {
            size: Size::OneBy1000,
            repetition,
            kind,
        }
    }

    /// Two repetitions of batch/v1 Job and of DeadlineJobs; the adopted Jobs failed.
    pub(in super::super) fn lines() -> Runs {
        let run = |kind, repetition, writes, cpu| {
            let outcome = Outcome {
                failure: None,
                figures: Some(figures(kind, writes, cpu)),
            };
            (key(kind, repetition), outcome)
        };
        let failed = Outcome {
            failure: Some("too slow".to_owned()),
            figures: None,
        };
        let all = [
            run(Kind::Job, 1, 10, 5.0),
            run(Kind::Disabled, 1, 14, 6.0),
            (key(Kind::Adopted, 1), failed),
            run(Kind::Job, 2, 10, 4.0),
            run(Kind::Disabled, 2, 10, 1.0),
        ];
        all.map(|(key, outcome)| (key, line(key, outcome))).into()
    }

    fn row<'r>(all: &'r BTreeMap<Key, Run>, kind: Kind) -> Row<'r> {
        let size = Size::OneBy1000;
        Row { size, kind, all }
    }

    #[test]
    fn other_work_of_the_controller_manager_is_subtracted() {
        let lines = lines();
        let runs = measured(&lines);
        let job = &runs[&key(Kind::Job, 1)];
        // 1 s in a window of 20 s next to DeadlineJobs, and its own window has 40 s.
        assert_eq!(job.other_cpu(), Some(2.0));
        assert_eq!(job.controller_cpu(), Some(3.0));
        assert_eq!(job.memory_growth(), Some(2000.0));
        let shed = &runs[&key(Kind::Disabled, 1)];
        assert_eq!((shed.controller_cpu(), shed.other_cpu()), (Some(6.0), None));
        assert_eq!(shed.memory_growth(), Some(500.0));
    }

    #[test]
    fn nothing_is_subtracted_that_was_not_measured() {
        let mut lines = lines();
        lines.remove(&key(Kind::Disabled, 1));
        let runs = measured(&lines);
        assert_eq!(runs[&key(Kind::Job, 1)].controller_cpu(), None);
        let cpu = Run::controller_cpu;
        let left = row(&runs, Kind::Disabled).ratio(cpu).unwrap();
        assert_eq!((left.count, left.median), (1, 0.5));
        assert_eq!(row(&runs, Kind::Adopted).ratio(cpu), None);
    }

    #[test]
    fn ratios_are_those_of_one_repetition() {
        let lines = lines();
        let runs = measured(&lines);
        let ratio = |metric: usize| row(&runs, Kind::Disabled).ratio(METRICS[metric].1);
        let writes = ratio(0).unwrap();
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        assert_eq!(
            (writes.least, rounded(writes.median), writes.most),
            (1.0, 1.1, 1.2)
        );
        let cpu = ratio(2).unwrap();
        assert_eq!((cpu.least, cpu.most), (0.5, 2.0));
        assert_eq!(ratio(4), None, "it was not measured");
    }

    #[test]
    fn writes_are_those_of_the_kinds_controller_without_events() {
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
        let figures = Figures {
            requests: [(SHED.to_owned(), BTreeMap::from(counts))].into(),
            ..Figures::default()
        };
        let writes = Writes::of(&figures, Kind::Disabled);
        assert_eq!(
            (writes.creates, writes.releases, writes.deletes),
            (10, 12, 2)
        );
        assert_eq!((writes.statuses, writes.others, writes.events), (5, 1, 99));
        assert_eq!((writes.sum(), writes.refused), (30, 1));
        assert_eq!(Writes::of(&figures, Kind::Job), Writes::default());
    }
}
