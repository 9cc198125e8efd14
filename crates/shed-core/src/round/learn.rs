//! The law of a job's attempt times: from its own attempts, and from jobs of its class before.

use std::collections::BTreeMap;

use crate::estimate::fit::{LawChoice, fit};
use crate::estimate::history::{History, JobTimes, Lesson, shrunk};
use crate::estimate::law::{AttemptLaw, Law, LawKind};
use crate::estimate::pareto::ParetoLaw;
use crate::estimate::sample::Sample;
use crate::estimate::shape::{self, ShapePrior};
use crate::ids::{JobClass, JobKey, Tenant};
use crate::round::estimates::JobEstimate;
use crate::snapshot::{JobSnapshot, Snapshot};

/// From so many ended attempts on, the family that fits best is taken from the job itself;
/// before, from its class.
const ENDED_TO_CHOOSE: usize = 10;

/// How laws are learned in one run of `decide`.
pub(crate) struct Learner<'a> {
    choice: LawChoice,
    history: &'a History,
    /// What is believed of times over their job's least, for the classes of the snapshot. Empty
    /// where only Pareto shapes are asked for.
    ratio_laws: BTreeMap<(&'a Tenant, Option<&'a JobClass>), Law>,
}

/// What is learned of one job.
pub(super) struct Learned {
    pub(super) law: Law,
    /// Mean time of an attempt from zero.
    pub(super) mean_run: f64,
}

impl<'a> Learner<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, history: &'a History, choice: LawChoice) -> Self {
        let mut ratio_laws = BTreeMap::new();
        if choice != LawChoice::Always(LawKind::Pareto) {
            for job in &snapshot.jobs {
                let (tenant, class) = (&job.tenant, job.class.as_ref());
                ratio_laws
                    .entry((tenant, class))
                    .or_insert_with(|| history.ratio_law(tenant, class));
            }
        }
        Self {
            choice,
            history,
            ratio_laws,
        }
    }

    /// The law from winners and from what runs: an attempt that reports bears on the least time
    /// by its predicted total, and everything that still runs bears on the shape as censored at
    /// its age (pitfall 4: from ended attempts alone every task looks short). `None` while not one
    /// time was seen or predicted, of the job or of its class.
    pub(super) fn learn(&self, job: &JobSnapshot, estimate: &JobEstimate<'_>) -> Option<Learned> {
        let seen = Seen::new(estimate);
        let class = job.class.as_ref();
        let known = seen.knows_least() || self.history.least(class).is_some();
        if !known {
            return None;
        }
        let prior = ShapePrior {
            smallest_predicted_total: seen.smallest_predicted,
            ..self.history.shape_prior(&job.tenant, class)
        };
        let pareto = shape::fit(seen.ended, &seen.ages, &prior);
        let law = match self.ratio_laws.get(&(&job.tenant, class)) {
            Some(ratio_law) => self.of_any_kind(&seen, ratio_law, pareto),
            None => pareto.into(),
        };
        Some(Learned {
            mean_run: seen.mean().unwrap_or_else(|| usual_time(&law)),
            law,
        })
    }

    /// The law of the kind asked for, shrunk toward what is believed of its ratios to the least
    /// time of `pareto`. That one has its own, conjugate shrinkage.
    fn of_any_kind(&self, seen: &Seen<'_>, ratio_law: &Law, pareto: ParetoLaw) -> Law {
        let sample = Sample::new(seen.ended, &seen.ages);
        let kind = match self.choice {
            LawChoice::Always(kind) => kind,
            LawChoice::Best if sample.ended_count() >= ENDED_TO_CHOOSE => {
                let best = fit(&sample).best;
                best.map_or_else(|| ratio_law.kind(), |best| best.kind())
            }
            LawChoice::Best => ratio_law.kind(),
        };
        if kind == LawKind::Pareto {
            return pareto.into();
        }
        shrunk(kind, &sample, &ratio_law.scaled(pareto.t_min))
    }
}

/// The mean, or the median of a law without one.
fn usual_time(law: &Law) -> f64 {
    let mean = law.mean();
    if mean.is_finite() {
        mean
    } else {
        law.quantile(-std::f64::consts::LN_2)
    }
}

/// What the snapshot shows of a job's times, in seconds for a whole task.
struct Seen<'a> {
    ended: &'a [f64],
    /// Of all attempts that live.
    ages: Vec<f64>,
    /// How many of them predict their time, and the least of it.
    predicted: usize,
    smallest_predicted: Option<f64>,
    /// Of ended and predicted times.
    sum: f64,
}

impl<'a> Seen<'a> {
    fn new(estimate: &'a JobEstimate<'_>) -> Self {
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

/// What a job teaches its class once it is gone; nothing if it has none.
pub(super) fn lesson(job: &JobSnapshot, estimate: &JobEstimate<'_>) -> Option<(JobKey, Lesson)> {
    let class = job.class.clone()?;
    let seen = Seen::new(estimate);
    let times = JobTimes::new(&Sample::new(seen.ended, &seen.ages));
    let tenant = job.tenant.clone();
    let lesson = Lesson {
        tenant,
        class,
        times,
    };
    Some((job.key.clone(), lesson))
}
