use super::*;
use crate::estimate::distribution::AttemptDistribution;
use crate::estimate::log_normal::LogNormalDistribution;
use crate::estimate::weibull::WeibullDistribution;

fn log_normal() -> Distribution {
    LogNormalDistribution::new(libm::log(100.0), 0.6)
        .unwrap()
        .into()
}

fn weibull() -> Distribution {
    WeibullDistribution::new(libm::log(100.0), 2.5)
        .unwrap()
        .into()
}

fn pareto_distribution() -> Distribution {
    let (t_min, beta) = (100.0, 1.8);
    ParetoDistribution { t_min, beta }.into()
}

/// The quantiles of the distribution: a sample without chance.
fn quantiles(distribution: &Distribution, count: u32) -> Sample {
    Sample::default().with_pseudo_attempts(distribution, count)
}

/// The same sample, observed before the slowest `share` has ended.
fn seen_early(sample: &Sample, share: f64) -> Sample {
    let ended: Vec<f64> = sample.ended().collect();
    let kept = ((1.0 - share) * ended.len() as f64) as usize;
    let running = vec![ended[kept]; ended.len() - kept];
    Sample::new(&ended[..kept], &running)
}

/// Checks that the ln survival is within the relative tolerance at every time.
fn assert_like(got: &Distribution, wanted: &Distribution, tolerance: f64) {
    for tail in [0.9, 0.5, 0.1, 0.01] {
        let ln_tail = libm::log(tail);
        let t = wanted.quantile(ln_tail);
        let ratio = got.ln_survival(t) / ln_tail;
        assert!(
            (ratio - 1.0).abs() < tolerance,
            "{got:?} at {tail}: {ratio}"
        );
    }
}

#[test]
fn a_perfect_sample_gives_its_distribution_back() {
    for distribution in [pareto_distribution(), log_normal(), weibull()] {
        let fitted = max_likelihood(distribution.kind(), &quantiles(&distribution, 5000)).unwrap();
        assert_like(&fitted, &distribution, 0.02);
        let empirical =
            max_likelihood(DistributionKind::Empirical, &quantiles(&distribution, 5000)).unwrap();
        assert_like(&empirical, &distribution, 0.02);
    }
}

#[test]
fn running_attempts_keep_the_tail_from_being_underestimated() {
    for distribution in [pareto_distribution(), log_normal(), weibull()] {
        let early = seen_early(&quantiles(&distribution, 5000), 0.4);
        assert_like(
            &max_likelihood(distribution.kind(), &early).unwrap(),
            &distribution,
            0.03,
        );
        let ended: Vec<f64> = early.ended().collect();
        let naive = max_likelihood(distribution.kind(), &Sample::new(&ended, &[])).unwrap();
        let far = distribution.quantile(libm::log(0.01));
        assert!(naive.ln_survival(far) < 2.0 * distribution.ln_survival(far));
    }
}

#[test]
fn likelihood_is_largest_at_the_fit() {
    for distribution in [log_normal(), weibull()] {
        let early = seen_early(&quantiles(&distribution, 200), 0.3);
        let fitted = max_likelihood(distribution.kind(), &early).unwrap();
        let best = early.ln_likelihood(&fitted);
        for (scale, shape) in [(1.01, 1.0), (0.99, 1.0), (1.0, 1.02), (1.0, 0.98)] {
            let other: Distribution = match &fitted {
                Distribution::LogNormal(f) => {
                    let moved =
                        LogNormalDistribution::new(f.mu() + libm::log(scale), f.sigma() * shape);
                    moved.unwrap().into()
                }
                Distribution::Weibull(f) => {
                    let moved = WeibullDistribution::new(
                        f.ln_scale() + libm::log(scale),
                        f.shape() * shape,
                    );
                    moved.unwrap().into()
                }
                other => panic!("{other:?}"),
            };
            assert!(
                early.ln_likelihood(&other) < best,
                "{fitted:?} {scale} {shape}"
            );
        }
    }
}

#[test]
fn the_distribution_that_a_running_job_came_from_is_chosen() {
    for distribution in [pareto_distribution(), log_normal(), weibull()] {
        let report = fit(&seen_early(&quantiles(&distribution, 300), 0.3));
        assert_eq!(report.best.unwrap().kind(), distribution.kind());
    }
}

#[test]
fn a_job_that_was_seen_whole_gets_the_empirical_distribution() {
    let sample = quantiles(&log_normal(), 20);
    assert_eq!(
        fit(&sample).best.unwrap().kind(),
        DistributionKind::Empirical
    );
    let fewer = quantiles(&log_normal(), 19);
    assert_ne!(
        fit(&fewer).best.unwrap().kind(),
        DistributionKind::Empirical
    );
}

#[test]
fn a_report_has_every_distribution() {
    let report = fit(&quantiles(&pareto_distribution(), 2000));
    let kinds: Vec<_> = report
        .candidates
        .iter()
        .map(|c| c.distribution.kind())
        .collect();
    assert_eq!(kinds, DistributionKind::ALL);
    for candidate in &report.candidates {
        assert_eq!(
            candidate.aic().is_none(),
            candidate.distribution.kind() == DistributionKind::Empirical
        );
    }
    let least = report
        .candidates
        .iter()
        .filter_map(Candidate::aic)
        .fold(f64::MAX, f64::min);
    assert_eq!(report.candidates[0].aic(), Some(least));
}

#[test]
fn without_an_ended_attempt_nothing_is_fitted() {
    let report = fit(&Sample::new(&[], &[10.0, 20.0]));
    assert!(report.candidates.is_empty() && report.best.is_none());
}

#[test]
fn equal_times_give_the_narrowest_distributions() {
    let sample = Sample::new(&[30.0, 30.0, 30.0], &[]);
    for candidate in fit(&sample).candidates {
        let distribution = candidate.distribution;
        assert!(distribution.ln_survival(29.0) > -0.04, "{distribution:?}");
        assert!(
            distribution.quantile(libm::log(0.5)) < 30.5,
            "{distribution:?}"
        );
    }
}
