//! Statistics of a trace's task times.

use std::collections::BTreeMap;

use serde::Serialize;
use shed_core::estimate::distribution::{AttemptDistribution, Distribution, DistributionKind};
use shed_core::estimate::fit::{Candidate, fit};
use shed_core::estimate::sample::Sample;

use shed_sim::trace::Trace;

/// A task that takes longer than this many medians of its job counts as a straggler.
const STRAGGLER_MEDIANS: f64 = 1.5;

/// Statistics of a trace's task times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Fit {
    /// The trace's file.
    pub(super) trace: String,
    /// Jobs of the trace.
    pub(super) jobs: usize,
    /// Tasks of the trace.
    pub(super) tasks: usize,
    /// Tasks that take no time at all. No distribution has such times, so they are left out.
    pub(super) tasks_of_no_time: usize,
    /// Task times in seconds.
    pub(super) duration_s: Option<Quantiles>,
    /// All tasks as one sample of times in seconds.
    pub(super) all: SampleFit,
    /// Jobs one by one.
    pub(super) per_job: JobsFit,
}

/// Quantiles, linear between the two nearest values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// Distributions fitted to one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SampleFit {
    /// The distribution with the least AIC; absent without a time.
    pub(super) best: Option<&'static str>,
    /// By name.
    pub(super) distributions: BTreeMap<&'static str, DistributionFit>,
    /// How heavy the tail is.
    pub(super) tail: Option<Tail>,
}

/// One distribution, fitted by maximum likelihood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DistributionFit {
    /// Its parameters by name.
    pub(super) parameters: BTreeMap<&'static str, f64>,
    /// ln of its likelihood, times in seconds; absent for the empirical distribution.
    pub(super) ln_likelihood: Option<f64>,
    /// Akaike's criterion; absent for the empirical distribution.
    pub(super) aic: Option<f64>,
    /// The largest distance between its distribution function and the sample's (Kolmogorov).
    pub(super) distance: f64,
}

/// Hill's estimate of the tail's exponent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Tail {
    /// The exponent, which is the shape of a Pareto distribution.
    pub(super) exponent: f64,
    /// Its standard error, exponent/√k, which holds for k independent times of a Pareto tail.
    pub(super) standard_error: f64,
    /// How many of the longest times it is taken from.
    pub(super) k: usize,
}

/// How tasks of one job differ, over all jobs with enough tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct JobsFit {
    /// Minimum number of tasks with a time above 0; other jobs do not count.
    pub(super) min_tasks: usize,
    /// Number of these jobs.
    pub(super) jobs: usize,
    /// Their tasks.
    pub(super) tasks: usize,
    /// Jobs whose tasks all take equally long. No distribution fits better than another, so none is
    /// counted.
    pub(super) jobs_of_equal_times: usize,
    /// By distribution: in how many of the other jobs it is best.
    pub(super) distributions: BTreeMap<&'static str, Share>,
    /// Longest time over median time, job by job.
    pub(super) max_over_median: Option<Quantiles>,
    /// The share of tasks that take more than 1.5 medians of their job.
    pub(super) stragglers_share: Option<f64>,
    /// The Pareto shape of time over the job's least time: (n − 1)/Σ ln, which is unbiased up to
    /// a factor of (n − 2)/(n − 1).
    pub(super) pareto_shape: Option<Shapes>,
    /// The tail of time over the job's median, all tasks together.
    pub(super) tail: Option<Tail>,
}

/// In how many jobs a distribution is best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Share {
    pub(super) best_in_jobs: usize,
    pub(super) best_share: f64,
}

/// One shape for all jobs, and the median of the jobs' own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Shapes {
    pub(super) pooled: f64,
    /// Jobs of equal times have an infinite shape and are left out.
    pub(super) median_of_jobs: f64,
}

impl Fit {
    /// Looks at a trace.
    pub(super) fn of(name: String, trace: &Trace, min_tasks: usize, tail_share: f64) -> Self {
        let seconds = |span: shed_core::time::Span| span.seconds();
        let jobs = trace.jobs.iter().map(|job| {
            let times: Vec<f64> = job.durations().map(seconds).collect();
            Sample::new(&times, &[])
        });
        let jobs: Vec<Sample> = jobs.collect();
        let tasks = trace.jobs.iter().map(shed_sim::trace::Job::tasks).sum();
        let all: Vec<f64> = jobs.iter().flat_map(Sample::ended).collect();
        let all = Sample::new(&all, &[]);
        let sorted: Vec<f64> = all.ended().collect();
        Self {
            trace: name,
            jobs: trace.jobs.len(),
            tasks,
            tasks_of_no_time: tasks - sorted.len(),
            duration_s: Quantiles::of(&sorted),
            all: SampleFit::of(&all, tail_share),
            per_job: JobsFit::of(&jobs, min_tasks, tail_share),
        }
    }
}

impl Quantiles {
    /// Of ascending values.
    fn of(sorted: &[f64]) -> Option<Self> {
        Some(Self {
            p50: quantile(sorted, 0.5)?,
            p90: quantile(sorted, 0.9)?,
            p99: quantile(sorted, 0.99)?,
            max: *sorted.last()?,
        })
    }
}

/// Linear between the two nearest of ascending values.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, part) = (place.floor(), place - place.floor());
    let below = *sorted.get(low as usize)?;
    let above = sorted.get(low as usize + 1).copied().unwrap_or(below);
    Some(below + part * (above - below))
}

impl SampleFit {
    fn of(sample: &Sample, tail_share: f64) -> Self {
        let candidates = fit(sample).candidates;
        Self {
            best: best(&candidates).map(DistributionKind::label),
            distributions: candidates
                .iter()
                .map(|candidate| {
                    (
                        candidate.distribution.kind().label(),
                        DistributionFit::of(candidate, sample),
                    )
                })
                .collect(),
            tail: Tail::of(sample, tail_share),
        }
    }
}

/// The distribution with the least AIC.
fn best(candidates: &[Candidate]) -> Option<DistributionKind> {
    let rated = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.aic()?, candidate.distribution.kind())));
    let least = rated.min_by(|a, b| a.0.total_cmp(&b.0));
    least.map(|(_, kind)| kind)
}

impl DistributionFit {
    fn of(candidate: &Candidate, sample: &Sample) -> Self {
        Self {
            parameters: parameters(&candidate.distribution).into_iter().collect(),
            ln_likelihood: candidate.ln_likelihood,
            aic: candidate.aic(),
            distance: distance(&candidate.distribution, sample),
        }
    }
}

fn parameters(distribution: &Distribution) -> Vec<(&'static str, f64)> {
    match distribution {
        Distribution::Pareto(distribution) => {
            vec![("t_min_s", distribution.t_min), ("beta", distribution.beta)]
        }
        Distribution::LogNormal(distribution) => {
            vec![("mu", distribution.mu()), ("sigma", distribution.sigma())]
        }
        Distribution::Weibull(distribution) => vec![
            ("scale_s", libm::exp(distribution.ln_scale())),
            ("shape", distribution.shape()),
        ],
        Distribution::Empirical(distribution) => {
            vec![("tail_exponent", distribution.tail_exponent())]
        }
    }
}

/// max |F(t) − Fₙ(t)|, on both sides of each step of the sample's Fₙ.
fn distance(distribution: &Distribution, sample: &Sample) -> f64 {
    let times: Vec<f64> = sample.ended().collect();
    let count = times.len() as f64;
    let (mut passed, mut most) = (0, 0.0_f64);
    for equal in times.chunk_by(|a, b| a == b) {
        let below = passed as f64 / count;
        passed += equal.len();
        let up_to = passed as f64 / count;
        let of_distribution = -libm::expm1(distribution.ln_survival(equal[0]));
        most = most
            .max((of_distribution - below).abs())
            .max((of_distribution - up_to).abs());
    }
    most
}

impl Tail {
    /// Of the longest `share` of the sample, at least one time.
    fn of(sample: &Sample, share: f64) -> Option<Self> {
        let k = ((sample.len() as f64 * share) as usize).max(1);
        let exponent = hill(sample, k)?;
        Some(Self {
            exponent,
            standard_error: exponent / (k as f64).sqrt(),
            k,
        })
    }
}

/// The exponent of the far tail by Hill's estimator with censoring. Let u be the next shorter time than the `count`
/// longest that ended. The exponent is `count` over Σ ln(t/u) of all times beyond u. `None` with fewer ended attempts,
/// or if none lies above u.
fn hill(sample: &Sample, count: usize) -> Option<f64> {
    let threshold = sample.ended().rev().nth(count)?;
    let beyond = sample.observations().iter().rev();
    let beyond = beyond.take_while(|seen| seen.time > threshold);
    // Their quotient could overflow.
    let excess: f64 = beyond
        .map(|seen| libm::log(seen.time) - libm::log(threshold))
        .sum();
    (excess > 0.0).then(|| count as f64 / excess)
}

impl JobsFit {
    fn of(jobs: &[Sample], min_tasks: usize, tail_share: f64) -> Self {
        let large = jobs.iter().filter(|job| job.len() >= min_tasks);
        let times: Vec<Vec<f64>> = large.clone().map(|job| job.ended().collect()).collect();
        let differing = |job: &&Sample| job.ended().next() != job.ended().next_back();
        let differing: Vec<&Sample> = large.filter(differing).collect();
        let relative: Vec<f64> = times.iter().flat_map(|job| over_median(job)).collect();
        let stragglers = relative.iter().filter(|ratio| **ratio > STRAGGLER_MEDIANS);
        let mut longest: Vec<f64> = times
            .iter()
            .filter_map(|job| over_median(job).last())
            .collect();
        longest.sort_by(f64::total_cmp);
        Self {
            min_tasks,
            jobs: times.len(),
            tasks: relative.len(),
            jobs_of_equal_times: times.len() - differing.len(),
            distributions: best_shares(&differing),
            max_over_median: Quantiles::of(&longest),
            stragglers_share: (!relative.is_empty())
                .then(|| stragglers.count() as f64 / relative.len() as f64),
            pareto_shape: Shapes::of(&times),
            tail: Tail::of(&Sample::new(&relative, &[]), tail_share),
        }
    }
}

/// Each time of a job, ascending, over their median.
fn over_median(times: &[f64]) -> impl Iterator<Item = f64> + '_ {
    let median = quantile(times, 0.5).unwrap_or(1.0);
    times.iter().map(move |time| time / median)
}

fn best_shares(jobs: &[&Sample]) -> BTreeMap<&'static str, Share> {
    let families = DistributionKind::ALL
        .into_iter()
        .filter(|kind| *kind != DistributionKind::Empirical);
    let mut counts: BTreeMap<&'static str, usize> =
        families.map(|kind| (kind.label(), 0)).collect();
    for job in jobs {
        if let Some(kind) = best(&fit(job).candidates) {
            *counts.entry(kind.label()).or_default() += 1;
        }
    }
    let share = |count: usize| Share {
        best_in_jobs: count,
        best_share: count as f64 / jobs.len().max(1) as f64,
    };
    counts
        .into_iter()
        .map(|(distribution, count)| (distribution, share(count)))
        .collect()
}

impl Shapes {
    /// Shapes of jobs from their ascending times. The task with the least time has no information
    /// about the shape, so that each job counts one task less than it has.
    fn of(jobs: &[Vec<f64>]) -> Option<Self> {
        let (mut count, mut sum, mut shapes) = (0.0, 0.0, Vec::new());
        for times in jobs {
            let logs = times.iter().map(|time| libm::log(time / times[0]));
            let (tasks, logs) = (times.len() as f64 - 1.0, logs.sum::<f64>());
            count += tasks;
            sum += logs;
            if logs > 0.0 {
                shapes.push(tasks / logs);
            }
        }
        shapes.sort_by(f64::total_cmp);
        Some(Self {
            median_of_jobs: quantile(&shapes, 0.5)?,
            pooled: count / sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shed_core::estimate::pareto::ParetoDistribution;
    use shed_sim::trace::setups::Setup;

    fn fit_of(setup: &str, min_tasks: usize) -> Fit {
        let setup: Setup = setup.parse().unwrap();
        Fit::of("made up".into(), &setup.trace(1), min_tasks, 0.05)
    }

    #[test]
    fn a_pareto_workload_is_found_to_be_one() {
        let fit = fit_of("P-4{jobs=2000,beta=1.7,t_min=60}", 10);
        assert_eq!(
            (fit.jobs, fit.tasks, fit.tasks_of_no_time),
            (2000, 20_000, 0)
        );
        assert_eq!(fit.all.best, Some("pareto"));
        let distribution = &fit.all.distributions["pareto"];
        // Standard error of β: 1.7/√20000 = 0.012; times are whole milliseconds.
        assert!(
            (distribution.parameters["beta"] - 1.7).abs() < 0.05,
            "{distribution:?}"
        );
        assert!(
            (distribution.parameters["t_min_s"] - 60.0).abs() < 0.01,
            "{distribution:?}"
        );
        // The 1 % point of the Kolmogorov statistic is 1.63/√n = 0.0115.
        assert!(distribution.distance < 0.0115, "{distribution:?}");
        assert!(fit.all.distributions["log-normal"].distance > 0.05);
        let tail = fit.all.tail.unwrap();
        assert_eq!(tail.k, 1000);
        assert!(
            (tail.exponent - 1.7).abs() < 4.0 * tail.standard_error,
            "{tail:?}"
        );
        let shapes = fit.per_job.pareto_shape.unwrap();
        assert!((shapes.pooled - 1.7).abs() < 0.05, "{shapes:?}");
        assert!(fit.per_job.distributions["pareto"].best_in_jobs > 0);
    }

    #[test]
    fn equal_times_make_no_distribution_better_than_another() {
        let mut trace = "S-1{jobs=3}".parse::<Setup>().unwrap().trace(1);
        for time in &mut trace.jobs[0].stages[0].durations {
            *time = shed_core::time::Span(5000);
        }
        trace.jobs[1].stages[0].durations[0] = shed_core::time::Span(0);
        let fit = Fit::of("t".into(), &trace, 10, 0.05);
        assert_eq!(fit.tasks_of_no_time, 1);
        assert_eq!((fit.per_job.jobs, fit.per_job.jobs_of_equal_times), (2, 1));
        let counted: usize = fit
            .per_job
            .distributions
            .values()
            .map(|distribution| distribution.best_in_jobs)
            .sum();
        assert_eq!(counted, 1);
    }

    #[test]
    fn a_quantile_lies_on_the_line_between_two_values() {
        assert_eq!(quantile(&[1.0, 3.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 3.0, 4.0], 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_distribution_through_a_step_middle_is_half_a_step_away() {
        let sample = Sample::new(&[2.0, 2.0], &[]);
        let distribution =
            shed_core::estimate::weibull::WeibullDistribution::new(libm::log(2.0), 1.0).unwrap();
        // F(2) = 1 − 1/e.
        let expected = 1.0 - (-1.0_f64).exp();
        assert!((distance(&distribution.into(), &sample) - expected).abs() < 1e-12);
    }

    #[test]
    fn hill_returns_the_exponent_of_a_pareto_tail() {
        let distribution = ParetoDistribution {
            t_min: 10.0,
            beta: 1.7,
        };
        let all = Sample::default().with_pseudo_attempts(&distribution, 20_000);
        assert!((hill(&all, 1000).unwrap() / 1.7 - 1.0).abs() < 0.01);
        let limit = distribution.quantile(libm::log(0.01));
        let ended: Vec<f64> = all.ended().filter(|&time| time < limit).collect();
        let running = vec![limit; all.len() - ended.len()];
        let censored = hill(&Sample::new(&ended, &running), 1000).unwrap();
        assert!((censored / 1.7 - 1.0).abs() < 0.01, "{censored}");
    }

    #[test]
    fn without_enough_or_different_times_there_is_no_tail() {
        assert_eq!(hill(&Sample::new(&[1.0, 2.0], &[]), 2), None);
        assert_eq!(hill(&Sample::new(&[2.0, 2.0, 2.0], &[]), 2), None);
    }
}
