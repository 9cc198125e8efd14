//! Unfinished jobs that cannot start or continue, by namespace and reason. They show the state at the last check.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus::Result;

use super::namespaces::{OTHER, with_own};
use crate::registrar::{Gauges, Registrar};

/// Jobs by namespace and reason.
pub type BlockedJobs = BTreeMap<(String, String), usize>;

/// Series of jobs that cannot start or continue.
pub struct BlockedSeries {
    jobs: Mutex<BlockedJobs>,
    family: Gauges<2>,
}

impl BlockedSeries {
    /// Registers them.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            jobs: Mutex::default(),
            family: registrar.register(
                "shed_jobs_blocked",
                "Unfinished jobs that shed cannot start or continue, by the reason of their condition",
                ["job_namespace", "reason"],
            )?,
        })
    }

    /// Takes over what a check found.
    pub fn set(&self, jobs: BlockedJobs) {
        *self.jobs.lock() = jobs;
    }

    /// Writes the series as they are now. Only a page does this: a page between the two steps would lack series, and
    /// an alert would begin again.
    pub(super) fn show(&self) {
        let jobs = self.jobs.lock();
        let namespaces = jobs.iter();
        let own = with_own(
            namespaces
                .flat_map(|((namespace, _), &count)| std::iter::repeat_n(&**namespace, count)),
        );
        self.family.clear();
        for ((namespace, reason), &count) in jobs.iter() {
            let namespace = match own.contains(namespace.as_str()) {
                true => namespace,
                false => OTHER,
            };
            self.family.with([namespace, reason]).add(count as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;

    #[test]
    fn blocked_jobs_are_shown_until_the_next_check() {
        let metrics = Metrics::new().unwrap();
        let key = |namespace: &str| (namespace.to_owned(), "PodForbidden".to_owned());
        let found = (0..210).map(|number| (key(&format!("team-{number:03}")), 2));
        metrics
            .blocked
            .set(found.chain([(key("lonely"), 1)]).collect());
        let page = metrics.page().unwrap();
        for line in [
            r#"shed_jobs_blocked{job_namespace="team-000",reason="PodForbidden"} 2"#,
            r#"shed_jobs_blocked{job_namespace="other",reason="PodForbidden"} 21"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        metrics.forget_jobs();
        assert!(!metrics.page().unwrap().contains("shed_jobs_blocked{"));
    }
}
