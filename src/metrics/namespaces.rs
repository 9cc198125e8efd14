//! Counts of all unfinished jobs by namespace and by the size of a figure. They show the state at the moment of the
//! scrape, and fall when a job ends. So they are gauges: Prometheus expects the buckets of a histogram to grow only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use shed_core::time::{Instant, Span};

use super::jobs::JobFigures;
use crate::registrar::{Gauges, metrics};

/// Namespaces with series of their own: those with the most unfinished jobs.
pub(super) const OWN_MAX: usize = 200;
/// The label of all others.
pub const OTHER: &str = "other";

const CHANCES: [f64; 10] = [0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0];
/// From an hour too late to a day in hand.
const SLACKS: [f64; 11] = [
    -3600.0, -600.0, -60.0, 0.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0,
];
/// From a minute to a day.
const REMAINING: [f64; 9] = [
    60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0,
];

metrics! {
    /// Counts of all unfinished jobs by namespace.
    pub struct NamespaceSeries {
        pocd: Gauges<2> = "shed_jobs_pocd",
            "Unfinished jobs now whose PoCD is at most the label at_most", LABELS;
        calibrated: Gauges<2> = "shed_jobs_pocd_calibrated",
            "Unfinished jobs now whose calibrated PoCD is at most the label at_most", LABELS;
        slack: Gauges<2> = "shed_jobs_slack_seconds",
            "Unfinished jobs now whose deadline minus expected completion is at most the label at_most", LABELS;
        remaining: Gauges<2> = "shed_jobs_remaining_seconds",
            "Unfinished jobs now whose time until the expected completion is at most the label at_most", LABELS;
    }
}

/// `le` is reserved for histograms.
const LABELS: [&str; 2] = ["job_namespace", "at_most"];

/// Writes the number of values up to each bound, and of all values, like the buckets of a histogram.
fn show<'a>(
    family: &Gauges<2>,
    bounds: &[f64],
    values: impl Iterator<Item = (&'a str, Option<f64>)>,
) {
    let mut counts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (namespace, value) in values {
        let Some(value) = value else { continue };
        let counts = counts
            .entry(namespace)
            .or_insert_with(|| vec![0; bounds.len() + 1]);
        let first = bounds.partition_point(|bound| *bound < value);
        counts[first..].iter_mut().for_each(|count| *count += 1);
    }
    let bounds = bounds.iter().map(f64::to_string);
    let bounds: Vec<_> = bounds.chain(["+Inf".to_owned()]).collect();
    family.clear();
    for (namespace, counts) in counts {
        for (bound, count) in bounds.iter().zip(counts) {
            family.with([namespace, bound]).set(f64::from(count));
        }
    }
}

/// What a family shows of a job.
type Figure<'f> = &'f dyn Fn(&JobFigures) -> Option<f64>;

impl NamespaceSeries {
    /// Writes the series for these jobs.
    pub(super) fn show<'a>(
        &self,
        jobs: impl Iterator<Item = (&'a str, &'a JobFigures)> + Clone,
        now: Instant,
    ) {
        let own = with_own(jobs.clone().map(|(namespace, _)| namespace));
        let jobs = jobs.map(|(namespace, figures)| match own.contains(namespace) {
            true => (namespace, figures),
            false => (OTHER, figures),
        });
        let left = |figures: &JobFigures| figures.expected.map(|at| at.since(now).max(Span(0)));
        let families: [(_, &[f64], Figure<'_>); 4] = [
            (&self.pocd, &CHANCES, &|job| job.pocd),
            (&self.calibrated, &CHANCES, &|job| job.calibrated),
            (&self.slack, &SLACKS, &|job| job.slack().map(Span::seconds)),
            (&self.remaining, &REMAINING, &|job| {
                left(job).map(Span::seconds)
            }),
        ];
        for (family, bounds, figure) in families {
            let values = jobs
                .clone()
                .map(|(namespace, job)| (namespace, figure(job)));
            show(family, bounds, values);
        }
    }
}

/// The namespaces whose counters have series of their own: the first ones, because a counter may not fall.
#[derive(Debug, Default)]
pub(super) struct FirstNamespaces(Mutex<BTreeSet<Arc<str>>>);

impl FirstNamespaces {
    /// The label of this namespace.
    pub(super) fn label<'a>(&self, namespace: &'a Arc<str>) -> &'a str {
        let mut own = self.0.lock();
        let is_own = own.contains(namespace) || own.len() < OWN_MAX;
        if is_own {
            own.insert(Arc::clone(namespace));
        }
        if is_own { namespace } else { OTHER }
    }
}

/// The namespaces with the most jobs.
pub(super) fn with_own<'a>(namespaces: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for namespace in namespaces {
        *counts.entry(namespace).or_default() += 1;
    }
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let own = ranked.into_iter().take(OWN_MAX);
    own.map(|(namespace, _)| namespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::metrics::tests::{address, labels};

    fn figures(pocd: f64) -> JobFigures {
        JobFigures {
            pocd: Some(pocd),
            deadline: Some(Instant(1_000_000)),
            expected: Some(Instant(1_090_000)),
            ..JobFigures::default()
        }
    }

    #[test]
    fn every_job_is_in_the_counts_of_its_namespace() {
        let metrics = Metrics::with_jobs(0).unwrap();
        for (name, pocd) in [("a", 0.05), ("b", 0.2), ("c", 0.99)] {
            metrics
                .jobs
                .set(&address("team", name), labels(name), &figures(pocd));
        }
        let page = metrics.page_at(Instant(1_000_000)).unwrap();
        for line in [
            r#"shed_jobs_pocd{at_most="0.1",job_namespace="team"} 1"#,
            r#"shed_jobs_pocd{at_most="0.25",job_namespace="team"} 2"#,
            r#"shed_jobs_pocd{at_most="+Inf",job_namespace="team"} 3"#,
            // They are expected 90 s after their deadline.
            r#"shed_jobs_slack_seconds{at_most="-600",job_namespace="team"} 0"#,
            r#"shed_jobs_slack_seconds{at_most="-60",job_namespace="team"} 3"#,
            r#"shed_jobs_remaining_seconds{at_most="60",job_namespace="team"} 0"#,
            r#"shed_jobs_remaining_seconds{at_most="300",job_namespace="team"} 3"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(
            !page.contains("shed_jobs_pocd_calibrated{"),
            "none is known"
        );
        metrics.jobs.forget(&address("team", "a"));
        let page = metrics.page_at(Instant(1_000_000)).unwrap();
        assert!(page.contains(r#"shed_jobs_pocd{at_most="0.1",job_namespace="team"} 0"#));
    }

    #[test]
    fn namespaces_beyond_the_limit_share_one_series() {
        let metrics = Metrics::new().unwrap();
        for number in 0..OWN_MAX + 10 {
            let namespace = format!("team-{number:03}");
            let set = |name| {
                let job = address(&namespace, name);
                metrics.jobs.set(&job, labels(name), &figures(0.5));
            };
            set("a");
            if number >= 10 {
                set("b");
            }
        }
        let page = metrics.page_at(Instant(0)).unwrap();
        assert!(
            page.contains(r#"shed_jobs_pocd{at_most="+Inf",job_namespace="other"} 10"#),
            "{page}"
        );
        assert!(page.contains(r#"shed_jobs_pocd{at_most="+Inf",job_namespace="team-209"} 2"#));
        assert!(!page.contains(r#"shed_jobs_pocd{at_most="+Inf",job_namespace="team-009"}"#));
    }
}
