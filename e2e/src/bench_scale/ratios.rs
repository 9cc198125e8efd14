//! Figures per controller and task, and their ratios to the baseline in the same repetition.

use std::collections::BTreeMap;

use super::audit::SHED;
use super::load::{Kind, Size};
use super::results::{Figures, Key, Line, Use};
use super::summary::Writes;
use super::window::CONTROLLER_MANAGER;

/// A figure of a run that has a ratio.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its column.
    pub name: &'static str,
    /// Its value; absent if it was not measured.
    pub of: fn(&Derived) -> Option<f64>,
}

/// All of them, in the order of their columns.
pub const METRICS: [Metric; 6] = [
    Metric {
        name: "writes per task",
        of: |run| Some(run.writes_per_task),
    },
    Metric {
        name: "wall time",
        of: |run| Some(run.wall_seconds),
    },
    Metric {
        name: "controller CPU",
        of: |run| run.controller_cpu,
    },
    Metric {
        name: "apiserver CPU",
        of: |run| run.apiserver_cpu,
    },
    Metric {
        name: "etcd CPU",
        of: |run| run.etcd_cpu,
    },
    Metric {
        name: "memory growth",
        of: |run| run.memory_growth,
    },
];

/// The figures of one run that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// Writes of the controller per task, without events.
    pub writes_per_task: f64,
    /// Time until the last job is complete, in seconds.
    pub wall_seconds: f64,
    /// CPU of the controller in seconds: of shed, or of the controller-manager without its other work.
    pub controller_cpu: Option<f64>,
    /// CPU of the controller-manager's other work in seconds, if that was subtracted.
    pub other_cpu: Option<f64>,
    /// CPU of the apiserver in seconds.
    pub apiserver_cpu: Option<f64>,
    /// CPU of etcd in seconds.
    pub etcd_cpu: Option<f64>,
    /// Growth of the controller's memory to its peak, in KiB.
    pub memory_growth: Option<f64>,
}

/// Median and extremes over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean of the two middle ones, if the number is even.
    pub median: f64,
    /// Least value.
    pub least: f64,
    /// Greatest value.
    pub most: f64,
    /// Number of values.
    pub count: usize,
}

impl Spread {
    /// Of values; absent without any.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self {
            median,
            least,
            most,
            count: values.len(),
        })
    }
}

/// The process that runs the jobs of a kind.
pub fn controller(kind: Kind) -> &'static str {
    if kind.is_builtin() {
        CONTROLLER_MANAGER
    } else {
        SHED
    }
}

/// The runs that did not fail, with the figures that are compared.
pub fn derived(lines: &BTreeMap<Key, Line>) -> BTreeMap<Key, Derived> {
    let measured = lines
        .values()
        .filter_map(|line| Some((&line.key, line.figures.as_ref()?)));
    let derive = |(key, figures): (&Key, &Figures)| {
        let other = key.kind.without_controller();
        let other = other.and_then(|kind| lines.get(&Key { kind, ..*key }));
        let other = other.and_then(|line| line.figures.as_ref());
        (*key, of_run(key.kind, figures, other))
    };
    measured.map(derive).collect()
}

/// `other` has the figures of the DeadlineJobs of the same repetition.
fn of_run(kind: Kind, figures: &Figures, other: Option<&Figures>) -> Derived {
    let used = |name: &str| figures.processes.get(name);
    let cpu = |name: &str| used(name).map(|used| used.cpu_seconds);
    let own = used(controller(kind));
    let other_cpu = other.and_then(|other| other_work(other, figures.window_seconds));
    let controller_cpu = if kind.is_builtin() {
        own.zip(other_cpu)
            .map(|(own, other)| own.cpu_seconds - other)
    } else {
        own.map(|own| own.cpu_seconds)
    };
    let writes = Writes::of(figures, kind).sum();
    Derived {
        writes_per_task: writes as f64 / f64::from(figures.tasks.max(1)),
        wall_seconds: figures.wall_seconds,
        controller_cpu,
        other_cpu,
        apiserver_cpu: cpu("kube-apiserver"),
        etcd_cpu: cpu("etcd"),
        memory_growth: own.map(growth),
    }
}

/// CPU that the controller-manager uses in `seconds` next to DeadlineJobs.
fn other_work(other: &Figures, seconds: f64) -> Option<f64> {
    let used = other.processes.get(CONTROLLER_MANAGER)?;
    Some(used.cpu_seconds / other.window_seconds * seconds)
}

fn growth(used: &Use) -> f64 {
    used.peak_kib.saturating_sub(used.rss_kib) as f64
}

/// Ratios of a kind to its baseline, one per repetition that has both.
pub fn ratios(
    runs: &BTreeMap<Key, Derived>,
    size: Size,
    kind: Kind,
    metric: Metric,
) -> Option<Spread> {
    let of_kind = runs
        .iter()
        .filter(|(key, _)| key.size == size && key.kind == kind);
    let ratio = |(key, run): (&Key, &Derived)| {
        let baseline = kind.baseline()?;
        let baseline = runs.get(&Key {
            kind: baseline,
            ..*key
        })?;
        let below = (metric.of)(baseline)?;
        (below > 0.0).then_some((metric.of)(run)? / below)
    };
    Spread::of(of_kind.filter_map(ratio).collect())
}

/// The spread of a value of the runs of a size and kind.
pub fn spread<T>(
    runs: &BTreeMap<Key, T>,
    size: Size,
    kind: Kind,
    of: impl Fn(&T) -> Option<f64>,
) -> Option<Spread> {
    let own = runs
        .iter()
        .filter(|(key, _)| key.size == size && key.kind == kind);
    Spread::of(own.filter_map(|(_, run)| of(run)).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::audit::JOB_CONTROLLER;
    use super::super::results::tests::line;
    use super::*;

    /// A run in which the controller creates each of ten pods and makes `writes` writes to statuses.
    pub(in super::super) fn figures(kind: Kind, writes: u64, cpu: f64) -> Figures {
        let is_job = kind == Kind::Job;
        let agent = if is_job { JOB_CONTROLLER } else { SHED };
        let status = if is_job {
            "update jobs/status"
        } else {
            "update deadlinejobs/status"
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
            requests: [(agent.to_owned(), requests.into())].into(),
            processes: [
                (CONTROLLER_MANAGER.to_owned(), used(manager, 3000)),
                (SHED.to_owned(), used(if is_job { 0.1 } else { cpu }, 1500)),
                ("kube-apiserver".to_owned(), used(10.0, 9000)),
            ]
            .into(),
            ..Figures::default()
        }
    }

    /// Two repetitions of batch/v1 Job and of DeadlineJobs; the adopted Jobs failed.
    pub(in super::super) fn lines() -> BTreeMap<Key, Line> {
        let all = [
            line(Kind::Job, 1, Some(figures(Kind::Job, 10, 5.0))),
            line(Kind::Disabled, 1, Some(figures(Kind::Disabled, 14, 6.0))),
            line(Kind::Adopted, 1, None),
            line(Kind::Job, 2, Some(figures(Kind::Job, 10, 4.0))),
            line(Kind::Disabled, 2, Some(figures(Kind::Disabled, 10, 1.0))),
        ];
        all.map(|line| (line.key, line)).into()
    }

    #[test]
    fn the_controller_managers_other_work_is_subtracted_by_the_second() {
        let runs = derived(&lines());
        let job = &runs[&line(Kind::Job, 1, None).key];
        // 1 s in a window of 20 s next to DeadlineJobs, and its own window has 40 s.
        assert_eq!(job.other_cpu, Some(2.0));
        assert_eq!(job.controller_cpu, Some(3.0));
        assert_eq!(job.memory_growth, Some(2000.0));
        let shed = &runs[&line(Kind::Disabled, 1, None).key];
        assert_eq!((shed.controller_cpu, shed.other_cpu), (Some(6.0), None));
        assert_eq!(shed.memory_growth, Some(500.0));
    }

    #[test]
    fn nothing_is_subtracted_that_was_not_measured() {
        let mut lines = lines();
        lines.remove(&line(Kind::Disabled, 1, None).key);
        let runs = derived(&lines);
        assert_eq!(runs[&line(Kind::Job, 1, None).key].controller_cpu, None);
        let cpu = METRICS[2];
        assert_eq!(cpu.name, "controller CPU");
        let left = ratios(&runs, Size::OneBy1000, Kind::Disabled, cpu).unwrap();
        assert_eq!((left.count, left.median), (1, 0.5));
        assert_eq!(ratios(&runs, Size::OneBy1000, Kind::Adopted, cpu), None);
    }

    #[test]
    fn ratios_are_those_of_one_repetition() {
        let runs = derived(&lines());
        let writes = ratios(&runs, Size::OneBy1000, Kind::Disabled, METRICS[0]).unwrap();
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        assert_eq!(
            (writes.least, rounded(writes.median), writes.most),
            (1.0, 1.1, 1.2)
        );
        let cpu = ratios(&runs, Size::OneBy1000, Kind::Disabled, METRICS[2]).unwrap();
        assert_eq!((cpu.least, cpu.most), (0.5, 2.0));
        let etcd = ratios(&runs, Size::OneBy1000, Kind::Disabled, METRICS[4]);
        assert_eq!(etcd, None, "it was not measured");
    }

    #[test]
    fn a_spread_has_the_median_and_the_extremes() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.most), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
