//! Jobs with invalid facts, each reported once.

use std::collections::BTreeSet;

use shed_core::ids::JobKey;
use shed_core::validate::Fault;

/// The jobs with invalid facts in the last pass. Each of them is counted and logged once and not at every pass.
#[derive(Debug, Default)]
pub(super) struct RefusedJobs(BTreeSet<Option<JobKey>>);

impl RefusedJobs {
    /// The first fault of each job that had none in the last pass. The cluster's own faults count as those of one
    /// more job.
    pub(super) fn news<'f>(&mut self, faults: &'f [Fault]) -> Vec<&'f Fault> {
        let mut refused = BTreeSet::new();
        let mut news = Vec::new();
        for fault in faults {
            if refused.insert(fault.job.clone()) && !self.0.contains(&fault.job) {
                news.push(fault);
            }
        }
        self.0 = refused;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_job_is_news_once_until_it_was_sound_again() {
        let fault = |job: &str, field: &str| Fault {
            job: Some(JobKey::from(job)),
            field: field.to_owned(),
            problem: "is wrong",
        };
        let of_a = [fault("a", "x"), fault("a", "y")];
        let of_both = [fault("a", "y"), fault("b", "z")];
        let mut refused = RefusedJobs::default();
        assert_eq!(refused.news(&of_a), [&of_a[0]]);
        assert_eq!(refused.news(&of_both), [&of_both[1]]);
        assert_eq!(refused.news(&of_both), [] as [&Fault; 0]);
        assert_eq!(refused.news(&[]), [] as [&Fault; 0]);
        assert_eq!(refused.news(&of_a), [&of_a[0]]);
    }
}
