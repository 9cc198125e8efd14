//! Estimates a job without any times from the other jobs: users of a cluster tend to set deadlines at a similar
//! multiple of the task time. Each tenant learns from its own jobs, and all jobs of another tenant count as one.

use std::collections::BTreeMap;

use crate::estimate::law::{AttemptLaw, Law};
use crate::estimate::log_normal::LogNormalLaw;
use crate::ids::Tenant;
use crate::policy::contract::Summary;
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Belief, known_time, usual_share};
use crate::policy::shed_prime::outlook::Found;
use crate::round::JobView;

/// The task time while nothing at all is known, as a share of the time from submission to deadline.
const SHARE_OF_LIMIT: f64 = 0.5;

/// Other tenants count only up to a factor of 4 away from that: ln of it.
const FOREIGN_SPAN: f64 = 1.386_294_361_119_890_6;

/// The least number of jobs with a known distribution before one is assumed for others.
const JOBS_MIN: usize = 3;

/// ln P(Z > 1), Z standard normal.
const LN_TAIL_OF_ONE: f64 = -1.841_021_645_009_264;

/// The usual task time over the time that its job was given, for each job of the pass: by the present jobs of its
/// tenant. All jobs of another tenant count as one.
pub(super) fn usual_shares(jobs: &[Summary<'_, Belief>]) -> Vec<f64> {
    let mut tenants: BTreeMap<&Tenant, Mean> = BTreeMap::new();
    for job in jobs {
        let own = tenants.entry(job.tenant).or_default();
        if let Some(share) = share(job) {
            own.add(libm::log(share));
        }
    }
    let mut all = Mean::default();
    for own in tenants.values().filter(|own| own.count > 0.0) {
        all.add(of_foreign(own.mean()));
    }
    let usual = tenants.into_iter().map(|(tenant, own)| {
        let others = if own.count > 0.0 {
            all.without(of_foreign(own.mean()))
        } else {
            all
        };
        let sum = own.sum + others.sum + libm::log(SHARE_OF_LIMIT);
        (tenant, libm::exp(sum / (own.count + others.count + 1.0)))
    });
    let usual: BTreeMap<&Tenant, f64> = usual.collect();
    let of = |job: &Summary<'_, Belief>| usual.get(job.tenant).copied();
    let shares = jobs.iter().map(|job| of(job).unwrap_or(SHARE_OF_LIMIT));
    shares.collect()
}

/// The job's usual time of a task over the time that the job was given.
fn share(job: &Summary<'_, Belief>) -> Option<f64> {
    let share = job.belief.known_time? / job.limit?;
    (share > 0.0 && share.is_finite()).then_some(share)
}

/// The time from a launch to the first report over the time that the job was given, for each job of the pass: the mean
/// over the present jobs of its tenant, if enough of them have reported.
pub(super) fn usual_report_shares(jobs: &[Summary<'_, Belief>]) -> Vec<Option<f64>> {
    let mut tenants: BTreeMap<&Tenant, Mean> = BTreeMap::new();
    for job in jobs {
        let share = job.belief.report_time.zip(job.limit);
        let share = share.map(|(time, limit)| time / limit);
        if let Some(share) = share.filter(|share| *share > 0.0 && share.is_finite()) {
            let own = tenants.entry(job.tenant).or_default();
            own.add(libm::log(share));
        }
    }
    let enough = |own: &&Mean| own.count >= JOBS_MIN as f64;
    let of = |job: &Summary<'_, Belief>| {
        let own = tenants.get(job.tenant).filter(enough)?;
        Some(libm::exp(own.mean()))
    };
    jobs.iter().map(of).collect()
}

/// A sum and its number of terms.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
    }

    fn without(self, value: f64) -> Self {
        Self {
            sum: self.sum - value,
            count: self.count - 1.0,
        }
    }

    fn mean(self) -> f64 {
        self.sum / self.count
    }
}

/// The logarithm of a share, limited to the range in which another tenant counts.
fn of_foreign(ln_share: f64) -> f64 {
    let usual = libm::log(SHARE_OF_LIMIT);
    ln_share.clamp(usual - FOREIGN_SPAN, usual + FOREIGN_SPAN)
}

/// Assumes log-normal times for jobs without any times. The median is the usual share of the time that the job was
/// given. The spread combines that of the other jobs' medians and that of the times within each of those jobs.
/// Attempts are hedged by it from their launch on. It ranks no job: tasks of one job are alike, which this
/// distribution ignores, so large jobs would seem hopeless.
pub(super) fn assume(desk: &mut PrimeDesk<'_, '_>) {
    show(desk);
    if desk.jobs().iter().all(|state| state.estimate.law.is_some()) {
        return;
    }
    let mut tenants: BTreeMap<&Tenant, Vec<Shown>> = BTreeMap::new();
    for (state, outlook) in desk.jobs().iter().zip(desk.states()) {
        let own = tenants.entry(&state.job.tenant).or_default();
        own.extend(outlook.shown.last().copied().flatten());
    }
    let witnesses = tenants.iter().filter_map(|(&tenant, own)| {
        let witness = Shown::as_witness(own)?;
        Some((tenant, witness))
    });
    let witnesses: BTreeMap<&Tenant, Shown> = witnesses.collect();
    let spreads = tenants.into_iter().filter_map(|(tenant, mut shown)| {
        let others = witnesses.iter().filter(|(other, _)| **other != tenant);
        shown.extend(others.map(|(_, witness)| *witness));
        let enough = shown.len() >= JOBS_MIN;
        enough.then(|| (tenant.clone(), spread(&shown)))
    });
    let spreads: BTreeMap<Tenant, f64> = spreads.collect();
    let laws = desk
        .jobs()
        .iter()
        .enumerate()
        .filter_map(|(position, state)| {
            let limit = state.limit().filter(|_| state.estimate.law.is_none())?;
            let mu = libm::log(usual_share(desk, position) * limit);
            let law = LogNormalLaw::new(mu, *spreads.get(&state.job.tenant)?)?;
            Some((position, Law::LogNormal(law)))
        });
    for (position, law) in laws.collect::<Vec<_>>() {
        desk.assume(position, law);
    }
}

/// Finds what the jobs that were looked at have shown.
fn show(desk: &mut PrimeDesk<'_, '_>) {
    for position in 0..desk.jobs().len() {
        let (Some(state), Some(outlook)) = (desk.job(position), desk.state(position)) else {
            continue;
        };
        if outlook.shown.get(state).is_none() {
            let found = Found::new(state, Shown::of(state));
            if let Some(outlook) = desk.state_mut(position) {
                outlook.shown = found;
            }
        }
    }
}

/// A summary of a job's times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shown {
    /// ln(median time / time that the job was given).
    ln_share: f64,
    /// Standard deviation of ln T, from the upper half.
    sigma: f64,
}

impl Shown {
    fn of(state: &JobView<'_>) -> Option<Self> {
        let law = state.estimate.own_law()?;
        let ln_median = libm::log(known_time(state)?);
        let shown = Self {
            ln_share: ln_median - libm::log(state.limit()?),
            sigma: libm::log(law.quantile(LN_TAIL_OF_ONE)) - ln_median,
        };
        (shown.ln_share.is_finite() && shown.sigma.is_finite()).then_some(shown)
    }

    /// All jobs of a tenant as one, for the other tenants.
    fn as_witness(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let mean = |value: fn(&Self) -> f64| all.iter().map(value).sum::<f64>() / count;
        (!all.is_empty()).then(|| Self {
            ln_share: of_foreign(mean(|shown| shown.ln_share)),
            sigma: mean(|shown| shown.sigma).clamp(0.0, FOREIGN_SPAN),
        })
    }
}

/// The spread of ln(time / time given) over all jobs: that of the medians, and of the times within each job.
fn spread(shown: &[Shown]) -> f64 {
    let count = shown.len() as f64;
    let mean = shown.iter().map(|one| one.ln_share).sum::<f64>() / count;
    let deviations = shown.iter().map(|one| one.ln_share - mean);
    let between = deviations.map(|d| d * d).sum::<f64>() / (count - 1.0);
    let within = shown.iter().map(|one| one.sigma * one.sigma).sum::<f64>() / count;
    libm::sqrt(between + within)
}
