//! Jobs that shed only watches. Their figures are in the series of jobs.

use std::sync::Arc;

use prometheus::{IntGauge, Result};

use super::namespaces::FirstNamespaces;
use crate::deadline_totals::DeadlineOutcome;
use crate::registrar::{Counters, Registrar, metrics};

metrics! {
    struct Families {
        unfinished: IntGauge = "shed_watched_jobs_unfinished",
            "Unfinished Jobs that shed only watches";
        deadlines: Counters<2> = "shed_watched_deadlines_total",
            "Ended Jobs with a deadline that shed only watched, by outcome: met, missed or failed",
            ["job_namespace", "outcome"];
    }
}

/// Jobs that shed only watches.
pub struct WatchOnlyMetrics {
    /// Unfinished ones.
    pub unfinished: IntGauge,
    deadlines: Counters<2>,
    own: FirstNamespaces,
}

impl WatchOnlyMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let Families {
            unfinished,
            deadlines,
        } = Families::register(registrar)?;
        Ok(Self {
            unfinished,
            deadlines,
            own: FirstNamespaces::default(),
        })
    }

    /// A Job with a deadline has ended.
    pub fn ended(&self, namespace: &Arc<str>, outcome: DeadlineOutcome) {
        let namespace = self.own.label(namespace);
        self.deadlines.with([namespace, outcome.label()]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::metrics::namespaces::OWN_MAX;

    #[test]
    fn outcomes_of_namespaces_beyond_the_limit_are_one_series() {
        let metrics = Metrics::new().unwrap();
        for number in 0..OWN_MAX + 3 {
            let namespace = format!("team-{number:03}").into();
            metrics.watch_only.ended(&namespace, DeadlineOutcome::Met);
        }
        let first = Arc::from("team-000");
        metrics.watch_only.ended(&first, DeadlineOutcome::Missed);
        let page = metrics.page().unwrap();
        for line in [
            r#"shed_watched_deadlines_total{job_namespace="team-000",outcome="met"} 1"#,
            r#"shed_watched_deadlines_total{job_namespace="team-000",outcome="missed"} 1"#,
            r#"shed_watched_deadlines_total{job_namespace="other",outcome="met"} 3"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
