//! Estimates a job without any times from the jobs before it: users of a cluster tend to set deadlines at a similar
//! multiple of the task time. Each tenant learns from its own jobs. What other tenants show counts as one job: with one
//! voice each, and however many they are, they alone cause no clone.

use std::collections::BTreeMap;

use crate::estimate::distribution::{AttemptDistribution, Distribution};
use crate::estimate::log_normal::LogNormalDistribution;
use crate::ids::Tenant;
use crate::memory::{PolicyState, ShownSums, ShownTime, ShownTimes};
use crate::policy::contract::{Remembered, Summary};
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Belief, known_time};
use crate::round::JobView;

/// The task time while nothing at all is known, as a share of the time from submission to deadline.
const SHARE_OF_LIMIT: f64 = 0.5;

/// Other tenants count only up to a factor of 4 away from that: ln of it.
const FOREIGN_SPAN: f64 = 1.386_294_361_119_890_6;

/// The least number of jobs with a known distribution before one is assumed for others.
const JOBS_MIN: usize = 3;

/// ln P(Z > 1), Z standard normal.
const LN_TAIL_OF_ONE: f64 = -1.841_021_645_009_264;

/// The share of the variance that is assumed to lie within a job that has shown no time. The rest lies between jobs, and
/// no clone changes that. A leader assumes it again, so it is not stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnShare(pub(super) f64);

impl Default for OwnShare {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Remembered for OwnShare {
    fn write(&self) -> PolicyState {
        PolicyState::default()
    }

    fn read(_: &PolicyState) -> Self {
        Self::default()
    }
}

/// Remembers the times that jobs have shown.
pub(super) fn learn(desk: &mut PrimeDesk<'_, '_>) {
    let looked = desk.jobs().iter().filter(|state| state.is_looked_at());
    let shown = looked.filter_map(|state| Some((state.job.key.clone(), shown_time(state)?)));
    let shown: Vec<_> = shown.collect();
    desk.shown_times_mut().note(shown);
}

/// A summary of the job's times, if it has shown any.
fn shown_time(state: &JobView<'_>) -> Option<ShownTime> {
    let limit = state.limit()?;
    let distribution = state.estimate.own_distribution()?;
    let ln_median = libm::log(known_time(state)?);
    let shown = ShownTime {
        tenant: state.job.tenant.clone(),
        submitted: state.job.submitted,
        ln_share: ln_median - libm::log(limit),
        // From the upper half.
        sigma: libm::log(distribution.quantile(LN_TAIL_OF_ONE)) - ln_median,
        report_error: state.estimate.report_error,
    };
    (shown.ln_share.is_finite() && shown.sigma.is_finite()).then_some(shown)
}

/// The usual task time over the time that its job was given, for each job of the pass: by the jobs of its tenant that
/// have shown theirs. What other tenants show counts as one job.
pub(super) fn usual_shares(jobs: &[Summary<'_, Belief>], shown: &ShownTimes) -> Vec<f64> {
    let pools = Pools::of(shown);
    let mut usual: BTreeMap<&Tenant, f64> = BTreeMap::new();
    let mut shares = Vec::with_capacity(jobs.len());
    for job in jobs {
        let of_tenant = usual.entry(job.tenant);
        shares.push(*of_tenant.or_insert_with_key(|tenant| libm::exp(pools.ln_share(tenant))));
    }
    shares
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
/// Attempts are hedged by it from their launch on. It ranks no job: where it did, fewer deadlines were met.
pub(super) fn assume(desk: &mut PrimeDesk<'_, '_>) {
    let pools = Pools::of(desk.shown_times());
    let mut of_tenants: BTreeMap<&Tenant, Option<Pool>> = BTreeMap::new();
    let mut assumed = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        if state.estimate.distribution.is_some() {
            continue;
        }
        let of_tenant = of_tenants.entry(&state.job.tenant);
        let pool = of_tenant.or_insert_with_key(|tenant| pools.of_tenant(tenant));
        let distribution = pool
            .zip(state.limit())
            .and_then(|(pool, limit)| Some((pool.distribution(limit)?, pool.own_share)));
        assumed.extend(distribution.map(|(distribution, own)| (position, distribution, own)));
    }
    for (position, distribution, own_share) in assumed {
        let common = distribution.sigma() * libm::sqrt(1.0 - own_share);
        desk.assume(position, Distribution::LogNormal(distribution), common);
        if let Some(known) = desk.state_mut(position) {
            *known = OwnShare(own_share);
        }
    }
}

/// What the jobs of each tenant have shown.
struct Pools<'s> {
    tenants: &'s BTreeMap<Tenant, ShownSums>,
    /// Over all tenants, one job each.
    witnesses: ShownSums,
}

/// What is assumed of a tenant's jobs.
#[derive(Debug, Clone, Copy)]
struct Pool {
    ln_share: f64,
    sigma: f64,
    /// See [`OwnShare`].
    own_share: f64,
}

impl Pool {
    /// The distribution of the times of a job with that many seconds from its submission to its deadline.
    fn distribution(&self, limit: f64) -> Option<LogNormalDistribution> {
        LogNormalDistribution::new(self.ln_share + libm::log(limit), self.sigma)
    }
}

impl<'s> Pools<'s> {
    fn of(shown: &'s ShownTimes) -> Self {
        let tenants = shown.tenants();
        let mut witnesses = ShownSums::default();
        for own in tenants.values() {
            let (ln_share, sigma) = witness(own);
            witnesses.add(ln_share, sigma);
        }
        Self { tenants, witnesses }
    }

    /// The sums over the tenant's own jobs, and what the other tenants show on average as one job.
    fn seen_by(&self, tenant: &Tenant) -> ShownSums {
        let own = self.tenants.get(tenant).copied().unwrap_or_default();
        let mut others = self.witnesses;
        if own.count > 0.0 {
            let (ln_share, sigma) = witness(&own);
            others.count -= 1.0;
            others.ln_share -= ln_share;
            others.ln_share_squared -= ln_share * ln_share;
            others.sigma -= sigma;
            others.sigma_squared -= sigma * sigma;
        }
        if others.count < 1.0 {
            return own;
        }
        ShownSums {
            count: own.count + 1.0,
            ln_share: own.ln_share + others.ln_share / others.count,
            ln_share_squared: own.ln_share_squared + others.ln_share_squared / others.count,
            sigma: own.sigma + others.sigma / others.count,
            sigma_squared: own.sigma_squared + others.sigma_squared / others.count,
            ..own
        }
    }

    /// ln of the usual share of a job's time that one of its tasks takes.
    fn ln_share(&self, tenant: &Tenant) -> f64 {
        let seen = self.seen_by(tenant);
        (seen.ln_share + libm::log(SHARE_OF_LIMIT)) / (seen.count + 1.0)
    }

    /// What is assumed of the tenant's jobs; `None` until enough jobs have shown their times.
    fn of_tenant(&self, tenant: &Tenant) -> Option<Pool> {
        let seen = self.seen_by(tenant);
        if seen.count < JOBS_MIN as f64 {
            return None;
        }
        let mean = seen.ln_share / seen.count;
        let deviations = seen.ln_share_squared - seen.count * mean * mean;
        let between = deviations.max(0.0) / (seen.count - 1.0);
        let within = seen.sigma_squared / seen.count;
        let variance = between + within;
        let own_share = if variance > 0.0 {
            within / variance
        } else {
            1.0
        };
        Some(Pool {
            ln_share: self.ln_share(tenant),
            sigma: libm::sqrt(variance),
            own_share,
        })
    }
}

/// All jobs of a tenant as one, for the other tenants.
fn witness(own: &ShownSums) -> (f64, f64) {
    let ln_share = of_foreign(own.ln_share / own.count);
    let sigma = (own.sigma / own.count).clamp(0.0, FOREIGN_SPAN);
    (ln_share, sigma)
}
