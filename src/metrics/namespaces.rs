//! Histograms of all unfinished jobs by namespace. They show the state at the moment of the scrape: a job that ends
//! leaves its bucket. So they are read as they are, without `rate`.

use std::collections::{BTreeMap, BTreeSet};

use shed_core::time::{Instant, Span};

use super::jobs::JobFigures;
use crate::registrar::{Histograms, metrics};

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
    /// Histograms of all unfinished jobs by namespace.
    pub struct NamespaceSeries {
        pocd: Histograms<1> = "shed_jobs_pocd",
            "Unfinished jobs now, by PoCD; read the buckets without rate", by_namespace(&CHANCES);
        calibrated: Histograms<1> = "shed_jobs_pocd_calibrated",
            "Unfinished jobs now, by calibrated PoCD; read the buckets without rate", by_namespace(&CHANCES);
        slack: Histograms<1> = "shed_jobs_slack_seconds",
            "Unfinished jobs now, by deadline minus expected completion; read the buckets without rate",
            by_namespace(&SLACKS);
        remaining: Histograms<1> = "shed_jobs_remaining_seconds",
            "Unfinished jobs now, by time until the expected completion; read the buckets without rate",
            by_namespace(&REMAINING);
    }
}

fn by_namespace(buckets: &[f64]) -> ([&'static str; 1], Vec<f64>) {
    (["job_namespace"], buckets.to_vec())
}

impl NamespaceSeries {
    /// Writes the series for these jobs.
    pub(super) fn show<'a>(
        &self,
        jobs: impl Iterator<Item = (&'a str, &'a JobFigures)> + Clone,
        now: Instant,
    ) {
        for family in [&self.pocd, &self.calibrated, &self.slack, &self.remaining] {
            family.clear();
        }
        let own = with_own(jobs.clone().map(|(namespace, _)| namespace));
        for (namespace, figures) in jobs {
            let namespace = match own.contains(namespace) {
                true => namespace,
                false => OTHER,
            };
            let remaining = figures.expected.map(|at| at.since(now).max(Span(0)));
            for (family, value) in [
                (&self.pocd, figures.pocd),
                (&self.calibrated, figures.calibrated),
                (&self.slack, figures.slack().map(Span::seconds)),
                (&self.remaining, remaining.map(Span::seconds)),
            ] {
                if let Some(value) = value {
                    family.with([namespace]).observe(value);
                }
            }
        }
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
    use crate::metrics::tests::labels;

    fn figures(pocd: f64) -> JobFigures {
        JobFigures {
            pocd: Some(pocd),
            deadline: Some(Instant(1_000_000)),
            expected: Some(Instant(1_090_000)),
            ..JobFigures::default()
        }
    }

    #[test]
    fn every_job_is_in_the_histograms_of_its_namespace() {
        let metrics = Metrics::with_jobs(0).unwrap();
        for (name, pocd) in [("a", 0.05), ("b", 0.2), ("c", 0.99)] {
            metrics.jobs.set(&labels("team", name), &figures(pocd));
        }
        let page = metrics.page_at(Instant(1_000_000)).unwrap();
        for line in [
            r#"shed_jobs_pocd_bucket{job_namespace="team",le="0.1"} 1"#,
            r#"shed_jobs_pocd_bucket{job_namespace="team",le="0.25"} 2"#,
            r#"shed_jobs_pocd_bucket{job_namespace="team",le="+Inf"} 3"#,
            // They are expected 90 s after their deadline.
            r#"shed_jobs_slack_seconds_bucket{job_namespace="team",le="-600"} 0"#,
            r#"shed_jobs_slack_seconds_bucket{job_namespace="team",le="-60"} 3"#,
            r#"shed_jobs_remaining_seconds_bucket{job_namespace="team",le="60"} 0"#,
            r#"shed_jobs_remaining_seconds_bucket{job_namespace="team",le="300"} 3"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(
            !page.contains("shed_jobs_pocd_calibrated_bucket"),
            "none is known"
        );
        metrics.jobs.forget(&labels("team", "a"));
        let page = metrics.page_at(Instant(1_000_000)).unwrap();
        assert!(page.contains(r#"shed_jobs_pocd_bucket{job_namespace="team",le="0.1"} 0"#));
    }

    #[test]
    fn namespaces_beyond_the_limit_share_one_series() {
        let metrics = Metrics::new().unwrap();
        for number in 0..OWN_MAX + 10 {
            let namespace = format!("team-{number:03}");
            metrics.jobs.set(&labels(&namespace, "a"), &figures(0.5));
            if number >= 10 {
                metrics.jobs.set(&labels(&namespace, "b"), &figures(0.5));
            }
        }
        let page = metrics.page_at(Instant(0)).unwrap();
        assert!(
            page.contains(r#"shed_jobs_pocd_count{job_namespace="other"} 10"#),
            "{page}"
        );
        assert!(page.contains(r#"shed_jobs_pocd_count{job_namespace="team-209"} 2"#));
        assert!(!page.contains(r#"shed_jobs_pocd_count{job_namespace="team-009"}"#));
    }
}
