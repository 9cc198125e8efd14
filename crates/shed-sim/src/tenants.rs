//! Tenants of a workload: those that the trace names, or drawn ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shed_core::ids::Tenant;

use crate::outcome::JobOutcome;
use crate::random::{Purpose, Stream};
use crate::trace::{Job, Trace};

/// Where the tenants of jobs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenants {
    /// The trace's column `tenant`, or else the job's id without the number of the run.
    Trace,
    /// This many, drawn for each class of jobs, or for each job without one. The first one gets most.
    Drawn(u32),
}

impl std::str::FromStr for Tenants {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "trace" {
            return Ok(Self::Trace);
        }
        let count = text
            .parse()
            .ok()
            .filter(|count| (1..=10_000).contains(count));
        count.map(Self::Drawn).ok_or_else(|| {
            format!("`{text}` is neither `trace` nor a number of tenants from 1 to 10000")
        })
    }
}

impl Tenants {
    /// Gives each job its tenant.
    pub fn name(self, trace: &mut Trace, seed: u64) {
        let mut drawn: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (at, job) in trace.jobs.iter_mut().enumerate() {
            job.tenant = Some(match self {
                Self::Trace => named(job),
                Self::Drawn(count) => {
                    let draw = || drawn_of(count, seed, at as u64);
                    let number = match &job.class {
                        Some(class) => *drawn.entry(Arc::clone(class)).or_insert_with(draw),
                        None => draw(),
                    };
                    Arc::from(format!("drawn-{number:02}"))
                }
            });
        }
    }
}

fn named(job: &Job) -> Arc<str> {
    let of_id = || {
        let parts = job.id.rsplit_once(['-', '_']);
        parts.map_or("others", |(name, _)| name).into()
    };
    job.tenant.clone().unwrap_or_else(of_id)
}

/// Tenant `n` gets jobs in proportion to 1/n.
fn drawn_of(count: u32, seed: u64, job: u64) -> u32 {
    let weights = (1..=count).map(|rank| 1.0 / f64::from(rank));
    let all: f64 = weights.clone().sum();
    let mut left = all * Stream::new(seed, Purpose::Tenant, [job, 0, 0]).unit();
    for (rank, weight) in (1..=count).zip(weights) {
        left -= weight;
        if left <= 0.0 {
            return rank;
        }
    }
    count
}

/// A tenant's weight: `NAME=WEIGHT`.
pub fn weight(text: &str) -> Result<(Tenant, f64), String> {
    let parts = text.rsplit_once('=');
    let parts = parts.and_then(|(name, weight)| Some((name, weight.parse::<f64>().ok()?)));
    let parts =
        parts.filter(|(name, weight)| !name.is_empty() && *weight > 0.0 && weight.is_finite());
    let parts = parts.map(|(name, weight)| (Tenant::from(name), weight));
    parts.ok_or_else(|| format!("`{text}` is not NAME=WEIGHT with a weight above 0"))
}

/// The figures of one tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantFigures {
    /// The tenant. Those that were drawn are called `drawn-…`.
    pub tenant: String,
    /// Its jobs.
    pub jobs: usize,
    /// Its jobs with a deadline.
    pub jobs_with_deadline: usize,
    /// Those completed at or before their deadline.
    pub jobs_met: usize,
    /// `jobs_met` over `jobs_with_deadline`; absent without deadlines.
    pub pocd: Option<f64>,
}

/// The figures of each tenant, by name; none if jobs have no tenants.
pub fn figures(jobs: &[JobOutcome]) -> Vec<TenantFigures> {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for job in jobs {
        if let Some(tenant) = &job.tenant {
            let [all, with_deadline, met] = counts.entry(tenant).or_default();
            *all += 1;
            *with_deadline += usize::from(job.deadline.is_some());
            *met += usize::from(job.met());
        }
    }
    let of = |(tenant, [jobs, jobs_with_deadline, jobs_met]): (&str, [usize; 3])| TenantFigures {
        tenant: tenant.to_owned(),
        jobs,
        jobs_with_deadline,
        jobs_met,
        pocd: (jobs_with_deadline > 0).then(|| jobs_met as f64 / jobs_with_deadline as f64),
    };
    counts.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_tenants_are_the_same_for_a_class_and_by_seed() {
        let drawn = |seed| -> Vec<u32> { (0..2000).map(|job| drawn_of(4, seed, job)).collect() };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let of = |rank| drawn(1).iter().filter(|it| **it == rank).count();
        // In proportion to 12 : 6 : 4 : 3.
        assert!((900..1020).contains(&of(1)) && (190..290).contains(&of(4)));
    }

    #[test]
    fn flags_of_tenants_are_read() {
        assert_eq!("trace".parse(), Ok(Tenants::Trace));
        assert_eq!("12".parse(), Ok(Tenants::Drawn(12)));
        assert!("0".parse::<Tenants>().is_err());
        assert_eq!(weight("a=b=2"), Ok((Tenant::from("a=b"), 2.0)));
        for text in ["a", "=1", "a=0", "a=-1", "a=inf", "a=x"] {
            assert!(weight(text).is_err(), "{text}");
        }
    }
}
