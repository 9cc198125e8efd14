//! Series of unfinished jobs. The jobs most at risk have series of their own, so that the number of series is
//! bounded; all jobs are in the counts of their namespaces. Both show the state at the moment of the scrape.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use prometheus::{IntGauge, Result};
use shed_core::plan::ExpectedEnd;
use shed_core::tenant_fairness::fair_order;
use shed_core::time::{Instant, Span};

use super::attempt_ends::{AttemptEndSeries, EndsByJob};
use super::job_work::JobWork;
use super::namespaces::NamespaceSeries;
use super::workflows::{RunKey, RunLabels, RunsByJob, WorkflowSeries};
use super::{JobAddress, JobLabels};
use crate::observed_clones::Figures;
use crate::registrar::{Gauges, Registrar};

/// Jobs with series of their own, unless a flag says otherwise.
pub const OWN_MAX: u32 = 500;

/// What a job's series show. An absent figure is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobFigures {
    /// Its PoCD.
    pub pocd: Option<f64>,
    /// Its calibrated PoCD.
    pub calibrated: Option<f64>,
    /// Its deadline.
    pub deadline: Option<Instant>,
    /// The earliest deadline that reaches its target PoCD, from the last estimate.
    pub earliest: Option<Instant>,
    /// Its expected completion.
    pub expected: Option<Instant>,
    /// When it has ended with a probability of 90 %.
    pub p90: Option<Instant>,
    /// The clones that shed would have started, if it only observes.
    pub observed: Option<Figures>,
    /// Its tasks and live attempts.
    pub work: Option<JobWork>,
}

impl JobFigures {
    /// The time from the expected completion to the deadline.
    pub fn slack(&self) -> Option<Span> {
        Some(self.deadline?.since(self.expected?))
    }

    /// Takes over what is known now.
    fn update(&mut self, now: &Self) {
        self.pocd = now.pocd.or(self.pocd);
        self.calibrated = now.calibrated.or(self.calibrated);
        self.deadline = now.deadline.or(self.deadline);
        self.earliest = now.earliest.or(self.earliest);
        self.expected = now.expected.or(self.expected);
        self.p90 = now.p90.or(self.p90);
        self.observed = now.observed.or(self.observed);
        self.work = now.work.or(self.work);
    }

    /// Whether the job is more at risk than another: less likely to be in time, or else due earlier. A job past its
    /// deadline has no chance, also without a PoCD.
    pub(super) fn compare_risk(&self, other: &Self, now: Instant) -> Ordering {
        let is_late = |job: &Self| job.deadline.is_some_and(|deadline| deadline < now);
        let chance = |job: &Self| match is_late(job) {
            true => 0.0,
            false => job.calibrated.or(job.pocd).unwrap_or(1.0),
        };
        let due = |job: &Self| job.deadline.map_or(i64::MAX, |deadline| deadline.0);
        let by_chance = chance(self).total_cmp(&chance(other));
        by_chance.then_with(|| due(self).cmp(&due(other)))
    }
}

#[derive(Default)]
struct Table {
    jobs: BTreeMap<JobAddress, (JobLabels, JobFigures)>,
    ends: EndsByJob,
    runs: RunsByJob,
    /// Jobs with series of their own at the last scrape.
    shown: BTreeSet<JobAddress>,
    /// The same of runs.
    shown_runs: BTreeSet<RunKey>,
}

impl Table {
    /// The jobs with series of their own.
    fn choose(&self, max: usize, now: Instant) -> BTreeSet<JobAddress> {
        choose(
            self.jobs.iter(),
            |job| &job.namespace,
            |(_, a), (_, b)| a.compare_risk(b, now),
            (max, &self.shown),
        )
    }
}

/// What has series of its own: `max` entries, the one most at risk of each namespace first, then the second one of each.
/// What was shown before keeps its series up to a tenth beyond that, so that few series come and go.
pub(super) fn choose<'a, K: Ord + Clone + 'a, V: 'a>(
    entries: impl Iterator<Item = (&'a K, &'a V)>,
    namespace: impl Fn(&'a K) -> &'a str,
    compare_risk: impl Fn(&V, &V) -> Ordering,
    (max, shown): (usize, &BTreeSet<K>),
) -> BTreeSet<K> {
    let ranked = fair_order(
        entries,
        |(key, _)| namespace(key),
        |(_, a), (_, b)| compare_risk(a, b),
    );
    let kept = ranked.into_iter().take(max.saturating_add(max / 10));
    let chosen = kept
        .enumerate()
        .filter(|(rank, (key, _))| *rank < max || shown.contains(*key));
    chosen.map(|(_, (key, _))| key.clone()).collect()
}

/// Labels of a job's own series.
const LABELS: [&str; 4] = ["job_namespace", "job_name", "job_kind", "job_class"];

/// The figure that a series of a job shows, if it is known.
type Figure = fn(&JobFigures) -> Option<f64>;

/// The families of a job's own series: names, help texts and figures.
const OWN: [(&str, &str, Figure); 15] = [
    (
        "shed_job_pocd",
        "Probability of completion before the deadline, from 0 to 1, of the jobs most at risk",
        |job| job.pocd,
    ),
    (
        "shed_job_pocd_calibrated",
        "Calibrated PoCD: share of past jobs with a similar prediction that met their deadline",
        |job| job.calibrated,
    ),
    (
        "shed_job_slack_seconds",
        "Deadline minus expected completion; negative if the job is expected to be late",
        |job| job.slack().map(Span::seconds),
    ),
    (
        "shed_job_deadline_timestamp_seconds",
        "Deadline of the job as a Unix time",
        |job| job.deadline.map(unix_time),
    ),
    (
        "shed_job_earliest_feasible_deadline_timestamp_seconds",
        "Earliest deadline that reaches the job's target PoCD, from the last estimate",
        |job| job.earliest.map(unix_time),
    ),
    (
        "shed_job_expected_completion_timestamp_seconds",
        "Expected finish of the job's last task",
        |job| job.expected.map(unix_time),
    ),
    (
        "shed_job_completion_p90_timestamp_seconds",
        "Time by which the job has ended with a probability of 90 %",
        |job| job.p90.map(unix_time),
    ),
    (
        "shed_job_observed_clones",
        "Clones that shed would have started so far for a job with speculation.mode Observe",
        |job| job.observed.map(|total| f64::from(total.clones)),
    ),
    (
        "shed_job_observed_clone_slot_seconds",
        "Expected work of these clones",
        |job| job.observed.map(|total| total.slot_seconds),
    ),
    (
        "shed_job_observed_price",
        "Sum of the least gains, in expected deadlines met, at which the policy starts these clones",
        |job| job.observed?.price,
    ),
    (
        "shed_job_observed_gain",
        "By how much these clones would have raised PoCD, as the model estimates",
        |job| job.observed.map(|total| total.gain),
    ),
    (
        "shed_job_tasks",
        "Tasks of the job; a divided task counts as its segments",
        |job| job.work.map(|work| f64::from(work.tasks)),
    ),
    (
        "shed_job_tasks_done",
        "Tasks of the job that are done",
        |job| job.work.map(|work| f64::from(work.done)),
    ),
    (
        "shed_job_attempts_live",
        "Live attempts of the job, clones included",
        |job| job.work.map(|work| f64::from(work.attempts)),
    ),
    ("shed_job_clones_live", "Live clones of the job", |job| {
        job.work.map(|work| f64::from(work.clones))
    }),
];

pub(super) fn unix_time(at: Instant) -> f64 {
    at.0 as f64 / 1000.0
}

/// Series of unfinished jobs.
pub struct JobSeries {
    table: Mutex<Table>,
    own_max: usize,
    unfinished: IntGauge,
    own: Vec<(Gauges<4>, Figure)>,
    attempts: AttemptEndSeries,
    workflows: WorkflowSeries,
    namespaces: NamespaceSeries,
}

impl JobSeries {
    /// Registers everything; at most about `own_max` jobs have series of their own.
    pub fn register(registrar: &mut Registrar, own_max: u32) -> Result<Self> {
        let mut own = Vec::with_capacity(OWN.len());
        for (name, help, figure) in OWN {
            own.push((registrar.register(name, help, LABELS)?, figure));
        }
        Ok(Self {
            table: Mutex::default(),
            own_max: own_max as usize,
            unfinished: registrar.register(
                "shed_jobs_unfinished",
                "Unfinished jobs, with and without series of their own",
                (),
            )?,
            own,
            attempts: AttemptEndSeries::register(registrar)?,
            workflows: WorkflowSeries::register(registrar)?,
            namespaces: NamespaceSeries::register(registrar)?,
        })
    }

    /// Takes over what a pass found about a job.
    pub fn set(&self, job: &JobAddress, labels: JobLabels, figures: &JobFigures) {
        let mut table = self.table.lock();
        match table.jobs.get_mut(job) {
            Some((known_labels, known)) => {
                *known_labels = labels;
                known.update(figures);
            }
            None => drop(table.jobs.insert(job.clone(), (labels, *figures))),
        }
    }

    /// Takes over the expected ends of attempts that a pass found.
    pub fn set_ends(&self, job: &JobAddress, ends: Vec<ExpectedEnd>) {
        let mut table = self.table.lock();
        match ends.is_empty() {
            true => drop(table.ends.remove(job)),
            false => drop(table.ends.insert(job.clone(), ends)),
        }
    }

    /// Takes over what a pass found about the run that a job is a stage of, if it is one.
    pub fn set_run(&self, job: &JobAddress, run: Option<(RunLabels, JobFigures)>) {
        let mut table = self.table.lock();
        match run {
            None => drop(table.runs.remove(job)),
            Some(run) => drop(table.runs.insert(job.clone(), run)),
        }
    }

    /// Drops a job that has ended or is gone.
    pub fn forget(&self, job: &JobAddress) {
        let mut table = self.table.lock();
        table.ends.remove(job);
        table.runs.remove(job);
        table.jobs.remove(job);
    }

    /// Drops all: another replica shows them now.
    pub fn clear(&self) {
        *self.table.lock() = Table::default();
    }

    /// Writes the series as they are now.
    pub fn show(&self, now: Instant) {
        let mut table = self.table.lock();
        table.shown = table.choose(self.own_max, now);
        self.unfinished
            .set(i64::try_from(table.jobs.len()).unwrap_or(i64::MAX));
        for (family, figure) in &self.own {
            family.clear();
            for job in &table.shown {
                let Some((labels, figures)) = table.jobs.get(job) else {
                    continue;
                };
                if let Some(value) = figure(figures) {
                    let labels = [&*job.namespace, &labels.name, labels.kind, &labels.class];
                    family.with(labels).set(value);
                }
            }
        }
        let shown = table.shown.iter().filter_map(|job| {
            let (labels, _) = table.jobs.get(job)?;
            Some((job, labels))
        });
        self.attempts.show(shown, &table.ends, self.own_max);
        table.shown_runs = self.workflows.show(
            &table.runs,
            &table.jobs,
            &table.shown_runs,
            (self.own_max, now),
        );
        let jobs = table.jobs.iter();
        self.namespaces.show(
            jobs.map(|(job, (_, figures))| (&*job.namespace, figures)),
            now,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::metrics::tests::{address, labels};

    fn at(seconds: i64) -> Option<Instant> {
        Some(Instant(seconds * 1000))
    }

    fn chance(pocd: f64) -> JobFigures {
        JobFigures {
            pocd: Some(pocd),
            deadline: at(100),
            ..JobFigures::default()
        }
    }

    /// The jobs with a series of their own for the PoCD.
    fn shown(metrics: &Metrics) -> Vec<String> {
        let page = metrics.page_at(Instant(0)).unwrap();
        let lines = page
            .lines()
            .filter(|line| line.starts_with("shed_job_pocd{"));
        let name = |line: &str| line.split('"').nth(5).unwrap().to_owned();
        lines.map(name).collect()
    }

    #[test]
    fn a_job_shows_what_is_known_of_it() {
        let metrics = Metrics::new().unwrap();
        let job = address("team", "count");
        let known = JobFigures {
            pocd: Some(0.97),
            calibrated: Some(0.9),
            deadline: at(1000),
            earliest: at(800),
            expected: at(900),
            p90: at(950),
            observed: Some(Figures {
                clones: 3,
                slot_seconds: 84.0,
                price: None,
                gain: 0.25,
            }),
            work: Some(JobWork {
                tasks: 20,
                done: 7,
                attempts: 5,
                clones: 1,
            }),
        };
        metrics.jobs.set(&job, labels("count"), &known);
        // A later pass does not estimate everything again.
        metrics.jobs.set(&job, labels("count"), &chance(0.98));
        let page = metrics.page_at(Instant(500_000)).unwrap();
        for line in [
            r#"shed_job_pocd{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 0.98"#,
            r#"shed_job_pocd_calibrated{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 0.9"#,
            r#"shed_job_slack_seconds{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} -800"#,
            r#"shed_job_deadline_timestamp_seconds{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 100"#,
            r#"shed_job_completion_p90_timestamp_seconds{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 950"#,
            r#"shed_job_earliest_feasible_deadline_timestamp_seconds{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 800"#,
            r#"shed_job_expected_completion_timestamp_seconds{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 900"#,
            r#"shed_job_observed_clones{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 3"#,
            r#"shed_job_observed_gain{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 0.25"#,
            r#"shed_job_tasks{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 20"#,
            r#"shed_job_tasks_done{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 7"#,
            r#"shed_job_attempts_live{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 5"#,
            r#"shed_job_clones_live{job_class="",job_kind="DeadlineJob",job_name="count",job_namespace="team"} 1"#,
            "shed_jobs_unfinished 1",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        metrics.jobs.forget(&job);
        let page = metrics.page_at(Instant(0)).unwrap();
        assert!(!page.contains("job_name=\"count\""), "{page}");
        assert!(page.contains("shed_jobs_unfinished 0"));
    }

    #[test]
    fn the_jobs_most_at_risk_are_shown_and_stay_for_a_while() {
        let metrics = Metrics::with_jobs(10).unwrap();
        let name = |number: usize| address("team", &format!("job-{number:02}"));
        let set = |number: usize, pocd: f64| {
            let job = name(number);
            metrics.jobs.set(&job, labels(&job.name), &chance(pocd));
        };
        for number in 0..30 {
            set(number, 0.5 + number as f64 / 100.0);
        }
        let first: Vec<_> = (0..10).map(|number| name(number).name).collect();
        assert_eq!(shown(&metrics), first);
        // Job 20 becomes the riskiest. Job 9 is now the 11th, within a tenth of the limit.
        set(20, 0.1);
        let with_20: Vec<_> = first.iter().cloned().chain(["job-20".to_owned()]).collect();
        assert_eq!(shown(&metrics), with_20);
        // One more, and job 9 is the 12th.
        set(21, 0.1);
        let later: Vec<_> = (0..9)
            .chain([20, 21])
            .map(|number| name(number).name)
            .collect();
        assert_eq!(shown(&metrics), later);
        // Job 10 was not shown, so it does not enter at the 11th place.
        metrics.jobs.forget(&name(0));
        metrics.jobs.forget(&name(1));
        assert_eq!(shown(&metrics).len(), 10);
        assert!(shown(&metrics).contains(&"job-09".to_owned()));
    }

    #[test]
    fn late_jobs_of_one_namespace_hide_no_job_of_another() {
        let metrics = Metrics::with_jobs(500).unwrap();
        let late = JobFigures {
            deadline: at(-1),
            ..chance(0.0)
        };
        for number in 0..560 {
            let job = address("evil", &format!("job-{number:03}"));
            metrics.jobs.set(&job, labels(&job.name), &late);
        }
        metrics
            .jobs
            .set(&address("victim", "late"), labels("late"), &chance(0.2));
        let shown = shown(&metrics);
        assert_eq!(shown.len(), 500);
        assert!(shown.contains(&"late".to_owned()));
    }

    /// Each family of the page, with its number of samples.
    fn families(page: &str) -> BTreeMap<&str, usize> {
        let mut families = BTreeMap::new();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            *families.entry(name).or_default() += 1;
        }
        families
    }

    #[test]
    fn ten_thousand_jobs_of_a_namespace_have_bounded_series() {
        let metrics = Metrics::new().unwrap();
        for number in 0..10_000 {
            let figures = JobFigures {
                pocd: Some(f64::from(number) / 10_000.0),
                calibrated: Some(0.5),
                deadline: at(100),
                earliest: at(90),
                expected: at(80),
                p90: at(85),
                observed: Some(Figures::default()),
                work: Some(JobWork::default()),
            };
            let job = address("team", &format!("job-{number:059}"));
            metrics.jobs.set(&job, labels(&job.name), &figures);
        }
        for _ in 0..2 {
            let page = metrics.page_at(Instant(0)).unwrap();
            let families = families(&page);
            let most = families.iter().max_by_key(|(_, samples)| **samples);
            assert_eq!(most.map(|(_, samples)| *samples), Some(500), "{most:?}");
            assert!(families.contains_key("shed_job_observed_gain"));
            let all = r#"shed_jobs_pocd{at_most="+Inf",job_namespace="team"} 10000"#;
            assert!(page.contains(all), "{page}");
            assert!(page.contains("shed_jobs_unfinished 10000"));
            assert!(page.len() < 2 << 20, "{} bytes", page.len());
        }
    }

    #[test]
    fn a_job_without_a_figure_is_the_least_at_risk() {
        let metrics = Metrics::with_jobs(1).unwrap();
        let set = |namespace, name, figures| {
            metrics
                .jobs
                .set(&address(namespace, name), labels(name), &figures)
        };
        set("a", "unknown", JobFigures::default());
        set("b", "likely", chance(1.0));
        assert_eq!(shown(&metrics), ["likely"]);
    }

    #[test]
    fn a_late_job_is_shown_although_its_chance_is_unknown() {
        let metrics = Metrics::with_jobs(1).unwrap();
        let due = |deadline| JobFigures {
            deadline: at(deadline),
            ..JobFigures::default()
        };
        let set = |namespace, name, figures| {
            metrics
                .jobs
                .set(&address(namespace, name), labels(name), &figures)
        };
        set("a", "soon", chance(0.1));
        set("b", "overdue", due(90));
        let page = metrics.page_at(Instant(91_000)).unwrap();
        let line = r#"shed_job_deadline_timestamp_seconds{job_class="",job_kind="DeadlineJob",job_name="overdue",job_namespace="b"} 90"#;
        assert!(page.contains(line), "{page}");
    }
}
