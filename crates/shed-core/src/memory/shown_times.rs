//! The task times that recent jobs have shown. A policy judges by them a job that has shown none.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{JobKey, Tenant};
use crate::tenant_fairness::keep_fair;
use crate::time::Instant;

/// Jobs that are remembered, those submitted last. The present jobs alone would not do: at any time most jobs that are
/// present are ones that take long.
const JOBS_MAX: usize = 256;

/// What one job has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownTime {
    /// The job's tenant.
    pub tenant: Tenant,
    /// When the job was submitted.
    pub submitted: Instant,
    /// ln(median time of a task / time from submission to deadline).
    #[serde(with = "float")]
    pub ln_share: f64,
    /// The standard deviation of ln(time of a task).
    #[serde(with = "float")]
    pub sigma: f64,
    /// The standard deviation of its attempts' predicted remaining times, as a share of them, if they show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_error: Option<f64>,
}

/// A job that shows times within this factor of what is remembered of it shows nothing new: ln of it.
const NEWS_MIN: f64 = 0.05;

/// What recent jobs have shown, by job, and the sums over each tenant's jobs. Each pass has a copy, so both are shared
/// until they change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(
    from = "BTreeMap<JobKey, ShownTime>",
    into = "BTreeMap<JobKey, ShownTime>"
)]
pub struct ShownTimes {
    jobs: Arc<BTreeMap<JobKey, ShownTime>>,
    tenants: Arc<BTreeMap<Tenant, ShownSums>>,
}

/// Sums over what jobs have shown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ShownSums {
    /// The number of jobs.
    pub count: f64,
    /// Σ [`ShownTime::ln_share`].
    pub ln_share: f64,
    /// The sum of its squares.
    pub ln_share_squared: f64,
    /// Σ [`ShownTime::sigma`].
    pub sigma: f64,
    /// The sum of its squares.
    pub sigma_squared: f64,
    /// The number of jobs that show how far their reports err.
    pub errors: f64,
    /// Σ ln of these errors.
    pub ln_error: f64,
}

impl ShownSums {
    /// Adds one job.
    pub fn add(&mut self, ln_share: f64, sigma: f64) {
        self.count += 1.0;
        self.ln_share += ln_share;
        self.ln_share_squared += ln_share * ln_share;
        self.sigma += sigma;
        self.sigma_squared += sigma * sigma;
    }
}

impl From<BTreeMap<JobKey, ShownTime>> for ShownTimes {
    fn from(jobs: BTreeMap<JobKey, ShownTime>) -> Self {
        let mut all = Self {
            jobs: Arc::new(jobs),
            tenants: Arc::default(),
        };
        all.sum_up();
        all
    }
}

impl From<ShownTimes> for BTreeMap<JobKey, ShownTime> {
    fn from(all: ShownTimes) -> Self {
        Arc::unwrap_or_clone(all.jobs)
    }
}

impl ShownTimes {
    pub(super) fn are_none(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Remembers what these jobs show now. If there are too many jobs, the oldest one of the tenant with the most jobs
    /// is forgotten.
    pub fn note(&mut self, shown: impl IntoIterator<Item = (JobKey, ShownTime)>) {
        let mut has_news = false;
        for (key, shown) in shown {
            let known = self.jobs.get(&key);
            let is_known = known.is_some_and(|known| !is_news(known, &shown));
            if is_known || known.is_none() && self.is_past(&shown) {
                continue;
            }
            has_news = true;
            Arc::make_mut(&mut self.jobs).insert(key, shown);
        }
        if has_news {
            self.keep_most(JOBS_MAX);
        }
    }

    /// Whether the job would be forgotten at once: all jobs that there is a place for are of its tenant, and newer. A
    /// job that stays long shows its times in each look, so this saves a copy of all.
    fn is_past(&self, shown: &ShownTime) -> bool {
        self.jobs.len() >= JOBS_MAX
            && self.tenants.len() == 1
            && self.tenants.contains_key(&shown.tenant)
            && self
                .jobs
                .values()
                .all(|job| shown.submitted < job.submitted)
    }

    /// From scratch, so that the sums depend on nothing but the jobs.
    fn sum_up(&mut self) {
        let mut tenants: BTreeMap<Tenant, ShownSums> = BTreeMap::new();
        for job in self.jobs.values() {
            let sums = match tenants.get_mut(&job.tenant) {
                Some(sums) => sums,
                None => tenants.entry(job.tenant.clone()).or_default(),
            };
            sums.add(job.ln_share, job.sigma);
            if let Some(error) = job.report_error {
                sums.errors += 1.0;
                sums.ln_error += libm::log(error);
            }
        }
        self.tenants = Arc::new(tenants);
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Keeps as many jobs as `kept` returns for their number.
    pub(super) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        self.keep_most(kept(self.jobs.len()));
    }

    fn keep_most(&mut self, max: usize) {
        let jobs = Arc::make_mut(&mut self.jobs);
        keep_fair(jobs, max, |_, job| &job.tenant, |job| job.submitted);
        self.sum_up();
    }

    /// Whether the values are such as jobs have, and there are not more jobs than are remembered.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |shown: &ShownTime| {
            // Rounding may have put a deviation of 0 below it.
            shown.ln_share.is_finite()
                && shown.sigma.is_finite()
                && shown
                    .report_error
                    .is_none_or(|error| error.is_finite() && error > 0.0)
        };
        self.jobs.len() <= JOBS_MAX && self.jobs.values().all(is_sound)
    }

    /// How far reports of the tenant's jobs err, without this one: the number of jobs that show it, and Σ ln of it.
    pub(crate) fn errors_of_others(&self, tenant: &Tenant, key: &JobKey) -> [f64; 2] {
        let all = self
            .tenants
            .get(tenant)
            .map_or([0.0; 2], |all| [all.errors, all.ln_error]);
        match self.jobs.get(key).and_then(|own| own.report_error) {
            Some(own) => [all[0] - 1.0, all[1] - libm::log(own)],
            None => all,
        }
    }

    /// The sums over each tenant's jobs.
    pub fn tenants(&self) -> &BTreeMap<Tenant, ShownSums> {
        &self.tenants
    }
}

fn is_news(known: &ShownTime, shown: &ShownTime) -> bool {
    let differs = |a: f64, b: f64| (a - b).abs() > NEWS_MIN;
    let is_other_error = match (known.report_error, shown.report_error) {
        (Some(known), Some(shown)) => differs(known, shown),
        (known, shown) => known.is_some() != shown.is_some(),
    };
    differs(known.ln_share, shown.ln_share) || differs(known.sigma, shown.sigma) || is_other_error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tenant: &str, submitted: i64) -> ShownTime {
        ShownTime {
            tenant: Tenant::from(tenant),
            submitted: Instant(submitted),
            ln_share: -1.0,
            sigma: 0.5,
            report_error: None,
        }
    }

    fn key(number: usize) -> JobKey {
        JobKey::from(format!("job-{number:05}").as_str())
    }

    #[test]
    fn a_tenant_of_many_jobs_costs_no_other_tenant_a_job() {
        let mut all = ShownTimes::default();
        all.note([(JobKey::from("a"), shown("small", 0))]);
        for number in 0..2 * JOBS_MAX {
            all.note([(key(number), shown("large", number as i64))]);
        }
        assert_eq!(all.len(), JOBS_MAX);
        let has = |key| all.jobs.contains_key(&key);
        assert!(has(JobKey::from("a")));
        assert!(!has(key(JOBS_MAX)) && has(key(JOBS_MAX + 1)));
    }

    #[test]
    fn a_small_change_is_no_news() {
        let mut all = ShownTimes::default();
        for (shows, counts) in [(-1.0, -1.0), (-1.04, -1.0), (-2.0, -2.0)] {
            let shown = ShownTime {
                ln_share: shows,
                ..shown("a", 0)
            };
            all.note([(key(0), shown)]);
            let sums = all.tenants()[&Tenant::from("a")];
            assert_eq!((sums.count, sums.ln_share), (1.0, counts));
        }
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<ShownTimes>(&text).unwrap(), all);
    }
}
