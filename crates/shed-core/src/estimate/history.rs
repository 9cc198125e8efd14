//! Estimates of a job with few times of its own, from jobs that ran before.
//!
//! Jobs that recur share a class. A job's estimates are shrunk toward its class, the class toward all jobs of its
//! tenant, and these toward the jobs of other tenants. Each prior weighs as much as [`PSEUDO_ATTEMPTS`] attempts:
//! with a few attempts of its own the job decides, and without any the class. All jobs of another tenant count as one
//! attempt.
//!
//! Jobs of a class share the distribution of an attempt's time *over the least time of its job*, because inputs grow
//! and shrink from run to run. The least time itself comes from the class only while the job has none.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::estimate::distribution::{Distribution, DistributionKind};
use crate::estimate::fit::{fit, max_likelihood};
use crate::estimate::pareto::ParetoDistribution;
use crate::estimate::pareto_fit::ShapePrior;
use crate::estimate::sample::{Observation, Sample};
use crate::float;
use crate::ids::{JobClass, JobKey, Tenant};
use crate::tenant_fairness::{keep_fair, keep_newest};
use crate::time::{Instant, Span};

/// The weight of a prior against observed attempts, at every level.
pub const PSEUDO_ATTEMPTS: u32 = 8;

/// Attempts that are remembered of one job, as quantiles, so that a large job does not outweigh others.
const PER_JOB_MAX: usize = 32;

/// Jobs that are remembered of one class, the newest …
const PER_CLASS_MAX: usize = 16;
/// … and of one tenant.
const PER_TENANT_MAX: usize = 32;

/// Tenants that are remembered; the one that learned longest ago is forgotten first.
const TENANTS_MAX: usize = 256;

/// Other tenants count only while their times spread at most this many times as much, or as little, as the model's.
const FOREIGN_FACTOR: f64 = 4.0;

/// Classes that are remembered; the one of the tenant with the most that learned longest ago is forgotten first.
const CLASSES_MAX: usize = 256;

/// The last observed times of one job's attempts. They are in whole milliseconds, so that writing and reading do not
/// change them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobTimes {
    /// Times of attempts that had ended, ascending.
    ended: Vec<Span>,
    /// Ages of attempts that still ran, ascending.
    running: Vec<Span>,
}

impl JobTimes {
    /// From times in seconds: at most `PER_JOB_MAX`, evenly spaced from the least to the largest.
    pub fn new(sample: &Sample) -> Self {
        let all = sample.observations();
        let kept = all.len().min(PER_JOB_MAX);
        // The middle of each of `kept` equal parts.
        let positions = (0..kept).map(|part| (2 * part + 1) * all.len() / (2 * kept));
        let mut times = Self::default();
        for seen in positions.filter_map(|position| all.get(position)) {
            let span = Span::from_seconds_f64(seen.time);
            if seen.ended {
                times.ended.push(span);
            } else {
                times.running.push(span);
            }
        }
        times
    }

    /// Whether the times can be those of attempts: ascending, none negative, not more than are kept.
    fn is_sound(&self) -> bool {
        let are_times = |times: &[Span]| {
            times.first().is_none_or(|&least| least >= Span(0)) && times.is_sorted()
        };
        let count = self.ended.len() + self.running.len();
        count <= PER_JOB_MAX && are_times(&self.ended) && are_times(&self.running)
    }

    /// The least time of an ended attempt, in seconds.
    fn least(&self) -> Option<f64> {
        let ended = self.ended.iter().map(|span| span.seconds());
        ended.into_iter().find(|&seconds| seconds > 0.0)
    }

    /// The job's times over `least` seconds.
    fn over(&self, least: f64) -> impl Iterator<Item = Observation> + '_ {
        let of = |ended: bool| move |span: &Span| (span.seconds(), ended);
        let ended = self.ended.iter().map(of(true));
        let all = ended.chain(self.running.iter().map(of(false)));
        all.map(move |(seconds, ended)| Observation {
            time: seconds / least,
            ended,
        })
    }

    /// Whether the job had one attempt, which says nothing about the spread within a job.
    fn is_single(&self) -> bool {
        self.ended.len() + self.running.len() == 1
    }
}

/// Times over the least of their job, and how many of these least times they have.
struct Ratios {
    sample: Sample,
    least_times: usize,
}

/// The times of the jobs of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassHistory {
    /// Oldest first.
    jobs: Vec<JobTimes>,
    /// When the class last learned.
    updated: Instant,
    /// The tenant whose class it is. Histories from before it was kept count as those of one tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<Tenant>,
}

impl ClassHistory {
    /// Learns from a job that is gone. A job without any ended attempt has no least time, so it is ignored.
    fn record(&mut self, job: &JobTimes, jobs_max: usize, now: Instant) {
        if job.least().is_some() {
            self.jobs.push(job.clone());
            let surplus = self.jobs.len().saturating_sub(jobs_max);
            self.jobs.drain(..surplus);
            self.updated = now;
        }
    }

    /// The times of each job over its least one. If they are of one class, jobs of one attempt are taken as one job, so
    /// that their spread is that from run to run.
    fn ratios(&self, are_alike: bool) -> Ratios {
        let is_pooled = |job: &JobTimes| are_alike && job.is_single();
        let pooled = self.jobs.iter().filter(|job| is_pooled(job));
        let pooled = pooled.filter_map(JobTimes::least).min_by(f64::total_cmp);
        let jobs = || {
            self.jobs.iter().filter_map(|job| {
                let least = job.least()?;
                let pooled = pooled.filter(|_| is_pooled(job));
                Some((job, pooled.unwrap_or(least)))
            })
        };
        let own = jobs().filter(|(job, _)| !is_pooled(job)).count();
        Ratios {
            sample: Sample::from_observations(jobs().flat_map(|(job, least)| job.over(least))),
            least_times: own + usize::from(pooled.is_some()),
        }
    }

    /// The usual least time of the class's jobs in seconds, if one is known.
    pub fn least(&self) -> Option<f64> {
        let logs: Vec<f64> = self
            .jobs
            .iter()
            .filter_map(|job| job.least().map(libm::log))
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (!logs.is_empty()).then(|| libm::exp(mean))
    }
}

impl Ratios {
    /// Their Pareto shape, shrunk toward `beta`: the mean of the posterior under a Gamma prior, conjugate with running
    /// attempts as censored. The attempt that set a job's least time is no evidence about the shape. Others that took
    /// as long are, because times are often whole seconds.
    fn shape(&self, beta: f64) -> f64 {
        let ended = self.sample.ended().filter(|&ratio| ratio >= 1.0).count();
        let informative = ended.saturating_sub(self.least_times) as f64;
        let ratios = self.sample.observations().iter();
        let excess: f64 = ratios.map(|ratio| libm::log(ratio.time).max(0.0)).sum();
        let weight = f64::from(PSEUDO_ATTEMPTS);
        (informative + weight) / (excess + weight / beta)
    }

    /// Their distribution, shrunk toward the given one.
    fn distribution(&self, prior: &Distribution) -> Distribution {
        let best = fit(&self.sample).best;
        let kind = best.map_or_else(|| prior.kind(), |best| best.kind());
        shrunk(kind, &self.sample, prior)
    }
}

/// Fits a distribution of that kind to a sample with [`PSEUDO_ATTEMPTS`] quantiles of the prior added. If the sample
/// has no distribution of the kind, the prior itself is returned.
pub fn shrunk(
    kind: DistributionKind,
    sample: &Sample,
    distribution: &Distribution,
) -> Distribution {
    let sample = sample.with_pseudo_attempts(distribution, PSEUDO_ATTEMPTS);
    max_likelihood(kind, &sample).unwrap_or_else(|| distribution.clone())
}

/// The lesson of a job once it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// The job's tenant.
    pub tenant: Tenant,
    /// The class in which the job recurs. Classes of two tenants have different names.
    pub class: JobClass,
    /// The last observed times of the job's attempts.
    pub times: JobTimes,
}

/// The times of the jobs of one tenant, of any class.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct TenantHistory {
    jobs: ClassHistory,
    /// Mean ln(time over the job's least time), limited to the range in which other tenants count it.
    #[serde(with = "float")]
    excess: f64,
}

impl TenantHistory {
    fn record(&mut self, job: &JobTimes, now: Instant) {
        self.jobs.record(job, PER_TENANT_MAX, now);
        let excess = 1.0 / self.jobs.ratios(false).shape(model_shape());
        let (least, most) = excess_bounds();
        self.excess = excess.clamp(least, most);
    }

    fn has_sound_excess(&self) -> bool {
        let (least, most) = excess_bounds();
        (least..=most).contains(&self.excess)
    }
}

/// The range in which other tenants count a tenant's excess.
fn excess_bounds() -> (f64, f64) {
    let model = model_shape();
    (1.0 / model / FOREIGN_FACTOR, FOREIGN_FACTOR / model)
}

/// The prior of the shape before any observation.
fn model_shape() -> f64 {
    ShapePrior::with_t_min(1.0).beta
}

/// The histories of all classes. Jobs without a class neither teach nor learn.
///
/// (Recordings from before tenants learned separately have `cluster` and `open`, which are ignored.)
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct History {
    /// The jobs of all classes together.
    #[serde(default)]
    tenants: BTreeMap<Tenant, Arc<TenantHistory>>,
    classes: BTreeMap<JobClass, Arc<ClassHistory>>,
    /// Jobs that may still exist.
    #[serde(default)]
    under_way: BTreeMap<JobKey, Lesson>,
}

impl History {
    /// This history after an update with the present jobs. Jobs that are gone since the last update have taught their
    /// class and tenant their last observed times.
    pub fn after(&self, now: Instant, jobs: impl IntoIterator<Item = (JobKey, Lesson)>) -> Self {
        let mut next = self.clone();
        let jobs = jobs.into_iter().map(|(key, lesson)| (key, Some(lesson)));
        let jobs: BTreeMap<JobKey, Option<Lesson>> = jobs.collect();
        let gone = self.under_way.keys().filter(|key| !jobs.contains_key(key));
        let gone: Vec<JobKey> = gone.cloned().collect();
        next.learn(now, jobs, &gone);
        next
    }

    /// Jobs that may still exist.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &JobKey> {
        self.under_way.keys()
    }

    /// Learns the times of these jobs; the jobs that are gone teach their class and tenant their last observed times.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        jobs: impl IntoIterator<Item = (JobKey, Option<Lesson>)>,
        gone: &[JobKey],
    ) {
        let mut gone: Vec<&JobKey> = gone.iter().collect();
        gone.sort_unstable();
        for lesson in gone
            .into_iter()
            .filter_map(|key| self.under_way.remove(key))
        {
            let class = Arc::make_mut(self.classes.entry(lesson.class).or_default());
            class.record(&lesson.times, PER_CLASS_MAX, now);
            class.tenant = Some(lesson.tenant.clone());
            let tenant = self.tenants.entry(lesson.tenant).or_default();
            Arc::make_mut(tenant).record(&lesson.times, now);
        }
        for (key, lesson) in jobs {
            match lesson {
                Some(lesson) => self.under_way.insert(key, lesson),
                None => self.under_way.remove(&key),
            };
        }
        self.keep_most(TENANTS_MAX, CLASSES_MAX);
    }

    /// Keeps at most this many tenants and classes.
    fn keep_most(&mut self, tenants: usize, classes: usize) {
        keep_newest(&mut self.tenants, tenants, |it| it.jobs.updated);
        keep_fair(
            &mut self.classes,
            classes,
            |_, class| &class.tenant,
            |class| class.updated,
        );
    }

    /// The history of past jobs alone.
    pub(crate) fn without_jobs_under_way(&self) -> Self {
        Self {
            tenants: self.tenants.clone(),
            classes: self.classes.clone(),
            under_way: BTreeMap::new(),
        }
    }

    /// The number of tenants and classes.
    pub(crate) fn len(&self) -> usize {
        self.tenants.len() + self.classes.len()
    }

    /// Keeps as many tenants and as many classes as `kept` returns for their numbers.
    pub(crate) fn keep(&mut self, kept: impl Fn(usize) -> usize) {
        self.keep_most(kept(self.tenants.len()), kept(self.classes.len()));
    }

    /// Whether the times can be those of attempts of past jobs.
    pub(crate) fn is_sound(&self) -> bool {
        let of_tenants = self.tenants.values().map(|tenant| &tenant.jobs);
        let mut all = of_tenants.chain(self.classes.values().map(Arc::as_ref));
        let are_sound = |jobs: &ClassHistory| jobs.jobs.iter().all(JobTimes::is_sound);
        let has_excess = |tenant: &Arc<TenantHistory>| tenant.has_sound_excess();
        self.under_way.is_empty() && all.all(are_sound) && self.tenants.values().all(has_excess)
    }

    /// The memory of a class.
    pub fn class(&self, class: &JobClass) -> Option<&ClassHistory> {
        self.classes.get(class).map(Arc::as_ref)
    }

    fn jobs_of(&self, tenant: &Tenant) -> &ClassHistory {
        const NONE: &ClassHistory = &ClassHistory {
            jobs: Vec::new(),
            updated: Instant(0),
            tenant: None,
        };
        let own = self.tenants.get(tenant);
        own.map_or(NONE, |own| &own.jobs)
    }

    /// The Pareto shape from other tenants' jobs, each tenant as one attempt.
    fn foreign_shape(&self, tenant: &Tenant) -> f64 {
        let (mut count, mut excess) = (0.0, 0.0);
        for (_, foreign) in self.tenants.iter().filter(|(other, _)| *other != tenant) {
            count += 1.0;
            excess += foreign.excess;
        }
        let weight = f64::from(PSEUDO_ATTEMPTS);
        if count > 0.0 {
            (count + weight) / (excess + weight / model_shape())
        } else {
            model_shape()
        }
    }

    /// The prior of a job's Pareto distribution before any observation: that of its class, shrunk toward its
    /// tenant's, shrunk toward that of others and the model's.
    pub fn shape_prior(&self, tenant: &Tenant, class: Option<&JobClass>) -> ShapePrior {
        let model = ShapePrior::with_t_min(1.0);
        let Some(class) = class else {
            return model;
        };
        let foreign = self.foreign_shape(tenant);
        let own = self.jobs_of(tenant).ratios(false).shape(foreign);
        let class = self.class(class);
        ShapePrior {
            beta: class.map_or(own, |class| class.ratios(true).shape(own)),
            t_min: class.and_then(ClassHistory::least).unwrap_or(model.t_min),
            ..model
        }
    }

    /// The usual least time of the jobs of that class in seconds, if one is known.
    pub fn least(&self, class: Option<&JobClass>) -> Option<f64> {
        self.class(class?)?.least()
    }

    /// The prior of a job's times over its least time before any observation.
    pub fn ratio_distribution(&self, tenant: &Tenant, class: Option<&JobClass>) -> Distribution {
        let pareto = |beta| ParetoDistribution { t_min: 1.0, beta }.into();
        let Some(class) = class else {
            return pareto(model_shape());
        };
        let foreign = pareto(self.foreign_shape(tenant));
        let own = self.jobs_of(tenant).ratios(false).distribution(&foreign);
        let class = self.class(class);
        class.map_or_else(
            || own.clone(),
            |class| class.ratios(true).distribution(&own),
        )
    }
}

#[cfg(test)]
mod tests;
