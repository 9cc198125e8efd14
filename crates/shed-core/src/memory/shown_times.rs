//! The task times that recent jobs have shown. A policy judges by them a job that has shown none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{JobKey, Tenant};
use crate::memory::clone_gains::keep_latest;
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
    /// How far what was assumed of the job turned out to be wrong; absent if nothing was assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<MissCheck>,
}

/// The share of a job's attempts that miss its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MissCheck {
    /// By the distribution that was assumed before the job had shown a time.
    #[serde(with = "float")]
    pub assumed: f64,
    /// By the job's first times.
    #[serde(with = "float")]
    pub shown: f64,
}

/// What recent jobs have shown, by job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ShownTimes(BTreeMap<JobKey, ShownTime>);

impl ShownTimes {
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the job has shown a time.
    #[must_use]
    pub fn has(&self, key: &JobKey) -> bool {
        self.0.contains_key(key)
    }

    /// Remembers what the job shows now. A check that was made before stays. If there are too many jobs, the oldest
    /// one of the tenant with the most jobs is forgotten.
    pub fn note(&mut self, key: &JobKey, shown: ShownTime) {
        if let Some(known) = self.0.get_mut(key) {
            let check = known.check.or(shown.check);
            *known = ShownTime { check, ..shown };
            return;
        }
        self.0.insert(key.clone(), shown);
        if self.0.len() > JOBS_MAX
            && let Some(oldest) = self.oldest()
        {
            self.0.remove(&oldest);
        }
    }

    fn oldest(&self) -> Option<JobKey> {
        let mut counts: BTreeMap<&Tenant, usize> = BTreeMap::new();
        for shown in self.0.values() {
            *counts.entry(&shown.tenant).or_default() += 1;
        }
        let (&most, _) = counts.iter().max_by_key(|(_, count)| **count)?;
        let own = self.0.iter().filter(|(_, shown)| shown.tenant == *most);
        let oldest = own.min_by_key(|(_, shown)| shown.submitted);
        oldest.map(|(key, _)| key.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps as many jobs as `kept` returns for their number, those submitted last.
    pub(super) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        keep_latest(&mut self.0, kept, |shown| shown.submitted);
    }

    /// Whether the values are such as jobs have, and there are not more jobs than are remembered.
    pub(super) fn is_sound(&self) -> bool {
        let is_share = |miss: f64| (0.0..=1.0).contains(&miss);
        let is_check = |check: MissCheck| is_share(check.assumed) && is_share(check.shown);
        let is_sound = |shown: &ShownTime| {
            // Rounding may have put a deviation of 0 below it.
            shown.ln_share.is_finite()
                && shown.sigma.is_finite()
                && shown.check.is_none_or(is_check)
        };
        self.0.len() <= JOBS_MAX && self.0.values().all(is_sound)
    }

    /// What each job has shown.
    pub fn iter(&self) -> impl Iterator<Item = &ShownTime> {
        self.0.values()
    }
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
            check: None,
        }
    }

    fn key(number: usize) -> JobKey {
        JobKey::from(format!("job-{number:05}").as_str())
    }

    #[test]
    fn a_tenant_of_many_jobs_makes_nobody_elses_forgotten() {
        let mut all = ShownTimes::default();
        all.note(&JobKey::from("a"), shown("small", 0));
        for number in 0..2 * JOBS_MAX {
            all.note(&key(number), shown("large", number as i64));
        }
        assert_eq!(all.iter().count(), JOBS_MAX);
        assert!(all.has(&JobKey::from("a")));
        assert!(!all.has(&key(JOBS_MAX)) && all.has(&key(JOBS_MAX + 1)));
    }

    #[test]
    fn a_check_is_made_once() {
        let mut all = ShownTimes::default();
        let first = MissCheck {
            assumed: 0.5,
            shown: 0.1,
        };
        for check in [
            Some(first),
            None,
            Some(MissCheck {
                assumed: 0.9,
                ..first
            }),
        ] {
            let shown = ShownTime {
                check,
                ..shown("a", 0)
            };
            all.note(&key(0), shown);
        }
        assert_eq!(all.iter().next().unwrap().check, Some(first));
    }
}
