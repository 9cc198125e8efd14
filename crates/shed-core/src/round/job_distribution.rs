//! The distribution of a job's attempt durations: from its own attempts, from its user's expectation, and from earlier
//! jobs of its class.

use std::collections::BTreeMap;

use crate::estimate::distribution::{AttemptDistribution, Distribution, DistributionKind};
use crate::estimate::expected_distribution;
use crate::estimate::fit::{DistributionChoice, fit};
use crate::estimate::history::{History, JobTimes, Lesson, shrunk};
use crate::estimate::pareto::ParetoDistribution;
use crate::estimate::pareto_fit::{self, ShapePrior};
use crate::estimate::sample::Sample;
use crate::ids::{JobClass, Tenant};
use crate::memory::{Memory, ShownTimes};
use crate::round::estimates::{JobEstimate, REPORTS_MIN};
use crate::round::{JobView, Terms};
use crate::snapshot::JobSnapshot;

/// With this many ended attempts the best-fitting family is selected from the job itself; with fewer, from its class.
const ENDED_TO_CHOOSE: usize = 10;

/// The weight of a policy's usual error of reports against the jobs that have shown theirs, in jobs.
const ERROR_WEIGHT: f64 = 2.0;

/// How distributions are learned in one run of `decide`.
pub(crate) struct Learner<'a> {
    choice: DistributionChoice,
    /// The usual error of a report, for a policy that takes reports as noisy.
    report_error: Option<f64>,
    shown_times: &'a ShownTimes,
    history: &'a History,
    /// The distribution of times over their job's least time, for the classes of the snapshot. Empty if only Pareto
    /// shapes are used.
    ratio_distributions: BTreeMap<(&'a Tenant, Option<&'a JobClass>), Distribution>,
}

/// The distribution and the mean learned for one job.
pub(super) struct Learned {
    pub(super) distribution: Distribution,
    /// See [`JobEstimate::common`].
    pub(super) common: f64,
    /// Mean duration of an attempt from zero.
    pub(super) mean_run: f64,
}

impl<'a> Learner<'a> {
    /// For the jobs that the pass looks at.
    pub(super) fn new(jobs: &[JobView<'a>], memory: &'a Memory, terms: &Terms<'_>) -> Self {
        let (history, choice) = (memory.history(), terms.distribution);
        let mut ratio_distributions = BTreeMap::new();
        if choice != DistributionChoice::Always(DistributionKind::Pareto) {
            for job in jobs.iter().filter(|view| view.is_looked_at()) {
                let job = job.job;
                let (tenant, class) = (&job.tenant, job.class.as_ref());
                ratio_distributions
                    .entry((tenant, class))
                    .or_insert_with(|| history.ratio_distribution(tenant, class));
            }
        }
        Self {
            choice,
            report_error: terms.report_error,
            shown_times: memory.shown_times(),
            history,
            ratio_distributions,
        }
    }

    /// How far reports of the tenant's other jobs usually err, for a policy that takes reports as noisy: the geometric
    /// mean over what its recent jobs have shown.
    pub(super) fn usual_report_error(&self, job: &JobSnapshot) -> Option<f64> {
        let usual = self.report_error?;
        let [count, ln_sum] = self.shown_times.errors_of_others(&job.tenant, &job.key);
        let ln_error = ERROR_WEIGHT * libm::log(usual) + ln_sum;
        Some(libm::exp(ln_error / (ERROR_WEIGHT + count)))
    }

    /// The distribution from winners and running attempts. A reporting attempt informs the least time by its
    /// predicted total. Each running attempt informs the shape as censored at its age (pitfall 4: from ended attempts
    /// alone every task looks short). A job with an expected duration starts from that instead of its class, until
    /// its own attempts suffice. `None` until the job, its user or its class has a time.
    pub(super) fn learn(&self, job: &JobSnapshot, estimate: &JobEstimate) -> Option<Learned> {
        let seen = Seen::new(estimate);
        let (distribution, common) = match expected_distribution(job, estimate) {
            Some(distribution) => (
                distribution.clone(),
                expected_distribution::common(&distribution),
            ),
            None => (self.distribution_without_expectation(job, &seen)?, 0.0),
        };
        Some(Learned {
            common,
            mean_run: seen.mean().unwrap_or_else(|| usual_time(&distribution)),
            distribution,
        })
    }

    fn distribution_without_expectation(
        &self,
        job: &JobSnapshot,
        seen: &Seen<'_>,
    ) -> Option<Distribution> {
        let class = job.class.as_ref();
        let known = seen.knows_least() || self.history.least(class).is_some();
        if !known {
            return None;
        }
        let prior = ShapePrior {
            smallest_predicted_total: seen.smallest_predicted,
            ..self.history.shape_prior(&job.tenant, class)
        };
        let pareto = pareto_fit::fit(seen.ended, &seen.ages, &prior);
        Some(match self.ratio_distributions.get(&(&job.tenant, class)) {
            Some(ratio_distribution) => self.of_any_kind(seen, ratio_distribution, pareto),
            None => pareto.into(),
        })
    }

    /// The distribution of the selected kind, shrunk toward the prior for its ratios to the least time of `pareto`.
    /// Pareto has its own, conjugate shrinkage.
    fn of_any_kind(
        &self,
        seen: &Seen<'_>,
        ratio_distribution: &Distribution,
        pareto: ParetoDistribution,
    ) -> Distribution {
        let sample = Sample::new(seen.ended, &seen.ages);
        let kind = match self.choice {
            DistributionChoice::Always(kind) => kind,
            DistributionChoice::Best if sample.ended_count() >= ENDED_TO_CHOOSE => {
                let best = fit(&sample).best;
                best.map_or_else(|| ratio_distribution.kind(), |best| best.kind())
            }
            DistributionChoice::Best => ratio_distribution.kind(),
        };
        if kind == DistributionKind::Pareto {
            return pareto.into();
        }
        shrunk(kind, &sample, &ratio_distribution.scaled(pareto.t_min))
    }
}

/// The distribution that the job's user expects, updated by the job's attempts. `None` without an expectation, and
/// once the job's own times suffice for its usual time.
fn expected_distribution(job: &JobSnapshot, estimate: &JobEstimate) -> Option<Distribution> {
    let expectation = job.expected_duration.as_ref()?;
    let (mut times, mut ages) = (estimate.ended.clone(), Vec::new());
    for attempt in estimate.tasks.iter().flat_map(|task| &task.attempts) {
        match attempt.total {
            Some(total) => times.push(total),
            None => ages.push(attempt.whole_age()),
        }
    }
    if times.len() >= REPORTS_MIN {
        return None;
    }
    expected_distribution::updated(expectation, &times, &ages)
}

/// The mean, or the median of a distribution without one.
fn usual_time(distribution: &Distribution) -> f64 {
    let mean = distribution.mean();
    if mean.is_finite() {
        mean
    } else {
        distribution.quantile(-std::f64::consts::LN_2)
    }
}

/// The snapshot's data about a job's times, in seconds for a whole task.
struct Seen<'a> {
    ended: &'a [f64],
    /// The ages of all live attempts.
    ages: Vec<f64>,
    /// The number of attempts that predict their time, and the least of these times.
    predicted: usize,
    smallest_predicted: Option<f64>,
    /// The sum of ended and predicted times.
    sum: f64,
}

impl<'a> Seen<'a> {
    fn new(estimate: &'a JobEstimate) -> Self {
        let mut seen = Self {
            ended: &estimate.ended,
            ages: Vec::with_capacity(estimate.tasks.len()),
            predicted: 0,
            smallest_predicted: None,
            sum: estimate.ended.iter().sum(),
        };
        for attempt in estimate.tasks.iter().flat_map(|task| &task.attempts) {
            seen.ages.push(attempt.whole_age());
            if let Some(total) = attempt.total {
                seen.predicted += 1;
                seen.sum += total;
                let least = seen.smallest_predicted.unwrap_or(f64::INFINITY);
                seen.smallest_predicted = Some(least.min(total));
            }
        }
        seen
    }

    fn knows_least(&self) -> bool {
        self.predicted > 0 || self.ended.iter().any(|time| *time > 0.0)
    }

    fn mean(&self) -> Option<f64> {
        let count = self.ended.len() + self.predicted;
        self.knows_least().then(|| self.sum / count as f64)
    }
}

/// The lesson of a job for its class once the job is gone; `None` if the job has none.
pub(super) fn lesson(job: &JobSnapshot, estimate: &JobEstimate) -> Option<Lesson> {
    let class = job.class.clone()?;
    let seen = Seen::new(estimate);
    let times = JobTimes::new(&Sample::new(seen.ended, &seen.ages));
    let tenant = job.tenant.clone();
    Some(Lesson {
        tenant,
        class,
        times,
    })
}
