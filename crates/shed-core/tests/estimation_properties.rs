//! Properties of the distributions of attempt durations and of their fits, over random distributions and samples.

use proptest::prelude::*;
use shed_core::estimate::distribution::{
    AttemptDistribution, Distribution, DistributionKind, Evidence,
};
use shed_core::estimate::empirical::EmpiricalDistribution;
use shed_core::estimate::fit::{fit, max_likelihood};
use shed_core::estimate::log_normal::LogNormalDistribution;
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::estimate::sample::Sample;
use shed_core::estimate::weibull::WeibullDistribution;

#[path = "estimation/draw.rs"]
mod draw;

use draw::Draw;

/// Distributions with a scale from milliseconds to years.
fn distribution() -> impl Strategy<Value = Distribution> {
    let ln_scale = -7.0..18.0;
    prop_oneof![
        (ln_scale.clone(), 0.2..20.0).prop_map(|(ln_t, beta)| pareto(libm::exp(ln_t), beta)),
        (ln_scale.clone(), 0.01..5.0).prop_map(|(mu, sigma)| log_normal(mu, sigma)),
        (ln_scale.clone(), 0.1..50.0).prop_map(|(ln_t, shape)| weibull(ln_t, shape)),
        (ln_scale, sample(1..40)).prop_filter_map("none ended", |(ln_t, sample)| {
            let distribution = EmpiricalDistribution::fit(&sample)?;
            Some(distribution.scaled(libm::exp(ln_t)).into())
        }),
    ]
}

fn pareto(t_min: f64, beta: f64) -> Distribution {
    ParetoDistribution { t_min, beta }.into()
}

fn log_normal(mu: f64, sigma: f64) -> Distribution {
    LogNormalDistribution::new(mu, sigma).unwrap().into()
}

fn weibull(ln_scale: f64, shape: f64) -> Distribution {
    WeibullDistribution::new(ln_scale, shape).unwrap().into()
}

fn times(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    // Ties, as clocks have a resolution.
    let time = prop_oneof![0.01..1000.0f64, (1u32..20).prop_map(f64::from)];
    prop::collection::vec(time, count)
}

fn sample(count: std::ops::Range<usize>) -> impl Strategy<Value = Sample> {
    (times(count.clone()), times(count)).prop_map(|(ended, running)| Sample::new(&ended, &running))
}

/// Any finite float, of any size and sign.
fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO,
        -1e6..1e9f64,
    ]
}

/// The largest effect of rounding on a logarithm of a probability.
fn slightly_above(ln_probability: f64) -> f64 {
    if ln_probability.is_infinite() {
        return ln_probability;
    }
    ln_probability + 1e-10 * (1.0 + ln_probability.abs())
}

proptest! {
    #[test]
    fn no_distribution_gives_nan_for_any_finite_argument(
        distribution in distribution(), t in finite(), other in finite(), phi in finite(),
    ) {
        for distribution in [distribution.clone(), distribution.scaled(phi), distribution.predicted(phi, t)] {
            for ln_probability in [
                distribution.ln_survival(t),
                distribution.ln_residual_survival(t, other),
                distribution.ln_miss(Evidence::Progress { phi }, t),
                distribution.ln_miss(Evidence::Predicted { phi, t_rem: other }, t),
                distribution.ln_miss(Evidence::Silent { age: other }, t),
            ] {
                prop_assert!(ln_probability <= 0.0, "{distribution:?}: {ln_probability}");
            }
            prop_assert!(!distribution.ln_density(t).is_nan());
            prop_assert!(distribution.mean() >= 0.0 && distribution.minimum() >= 0.0);
            prop_assert!(distribution.mean_residual(t) >= 0.0, "{distribution:?}: {}", distribution.mean_residual(t));
            prop_assert!(distribution.quantile(-t.abs()) >= 0.0);
        }
    }

    #[test]
    fn survival_never_rises_with_time(distribution in distribution(), t in 0.0..1e6f64, more in 0.0..1e6f64) {
        prop_assert!(distribution.ln_survival(t + more) <= slightly_above(distribution.ln_survival(t)));
        let waits = (distribution.ln_residual_survival(t, more), distribution.ln_residual_survival(t, 2.0 * more));
        prop_assert!(waits.1 <= slightly_above(waits.0), "{waits:?}");
        prop_assert_eq!(distribution.ln_survival(distribution.minimum() * (1.0 - 1e-12)), 0.0);
    }

    #[test]
    fn what_is_left_of_a_time_is_the_time_known_to_exceed_the_age(
        distribution in distribution(), age_tail in 0.001..1.0f64, wait_in_medians in 0.0..10.0f64,
    ) {
        let age = distribution.quantile(libm::log(age_tail));
        let wait = wait_in_medians * distribution.quantile(libm::log(0.5));
        let whole = distribution.ln_survival(age + wait);
        let parts = distribution.ln_survival(age) + distribution.ln_residual_survival(age, wait);
        prop_assert!((whole - parts).abs() <= 1e-9 * (1.0 + whole.abs()), "{whole} {parts}");
    }

    #[test]
    fn quantiles_undo_survival(distribution in distribution(), ln_tail in -30.0..-1e-6f64) {
        let t = distribution.quantile(ln_tail);
        // The heaviest tails exceed the range of floats.
        prop_assume!(t.is_finite());
        // At a jump of the empirical distribution both sides enclose the given tail.
        let (before, after) = (distribution.ln_survival(t * (1.0 - 1e-9)), distribution.ln_survival(t * (1.0 + 1e-9)));
        prop_assert!(before >= ln_tail - 1e-5 * ln_tail.abs(), "{distribution:?}: {before}, {ln_tail}");
        prop_assert!(after <= ln_tail + 1e-5 * ln_tail.abs(), "{distribution:?}: {after}, {ln_tail}");
    }

    #[test]
    fn a_scaled_distribution_is_the_distribution_of_scaled_times(distribution in distribution(), share in 0.001..1.0f64, tail in 0.001..1.0f64) {
        // A little beyond the quantile, off the jumps.
        let t = 1.000_001 * distribution.quantile(libm::log(tail));
        let (plain, scaled) = (distribution.ln_survival(t), distribution.scaled(share).ln_survival(share * t));
        prop_assert!((plain - scaled).abs() <= 1e-9 * (1.0 + plain.abs()), "{plain} {scaled}");
        let (mean, scaled) = (share * distribution.mean(), distribution.scaled(share).mean());
        prop_assert!(mean == scaled || (mean / scaled - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_mean_residual_is_what_the_residual_survival_adds_up_to(
        distribution in distribution(), age_tail in 0.01..1.0f64,
    ) {
        let age = distribution.quantile(libm::log(age_tail));
        // E[min(left, w)] by the trapezoid rule over ln(wait), and the remainder then.
        let (low, high) = (1e-7 * distribution.quantile(-0.7), 1e3 * distribution.quantile(-5.0));
        let steps = 20_000;
        let width = libm::log(high / low) / f64::from(steps);
        let at = |wait: f64| wait * libm::exp(distribution.ln_residual_survival(age, wait));
        let inside: f64 = (0..steps)
            .map(|i| low * libm::exp((f64::from(i) + 0.5) * width))
            .map(|wait| width * at(wait))
            .sum();
        let beyond = libm::exp(distribution.ln_residual_survival(age, high)) * distribution.mean_residual(age + high);
        let (wanted, got) = (low + inside + beyond, distribution.mean_residual(age));
        prop_assert!(got == wanted || (got / wanted - 1.0).abs() < 0.01, "{distribution:?} {got} {wanted}");
    }

    #[test]
    fn the_miss_probability_falls_with_progress_and_slack(
        distribution in distribution(), phi in 0.0..1.2f64, more in 0.0..0.5f64, slack_in_medians in -1.0..20.0f64,
    ) {
        let median = distribution.quantile(libm::log(0.5));
        let slack = slack_in_medians * median;
        let miss = distribution.ln_miss(Evidence::Progress { phi }, slack);
        let further = distribution.ln_miss(Evidence::Progress { phi: phi + more }, slack);
        let later = distribution.ln_miss(Evidence::Progress { phi }, slack + more * median);
        prop_assert!(further <= slightly_above(miss) && later <= slightly_above(miss));
        let silent = |slack| distribution.ln_miss(Evidence::Silent { age: phi * median }, slack);
        prop_assert!(silent(slack + more * median) <= slightly_above(silent(slack)));
        let predicted = |t_rem| distribution.ln_miss(Evidence::Predicted { phi: 0.5, t_rem }, slack);
        prop_assert!(predicted(phi * median) <= slightly_above(predicted((phi + more) * median)));
    }

    #[test]
    fn any_sample_is_fitted_without_nan(sample in sample(0..30)) {
        let report = fit(&sample);
        prop_assert_eq!(report.candidates.is_empty(), sample.ended_count() == 0);
        for candidate in report.candidates {
            prop_assert!(candidate.ln_likelihood.is_none_or(|ln| !ln.is_nan()));
            let median = candidate.distribution.quantile(libm::log(0.5));
            prop_assert!(median > 0.0, "{:?}", candidate.distribution);
        }
    }

    #[test]
    fn the_time_unit_changes_scales_but_not_shapes_or_the_choice(
        sample in sample(2..30), ln_factor in -8.0..8.0f64,
    ) {
        let factor = libm::exp(ln_factor);
        let scale = |times: Vec<f64>| times.iter().map(|time| factor * time).collect::<Vec<_>>();
        let scaled = Sample::new(
            &scale(sample.ended().collect()),
            &scale(sample.running().collect()),
        );
        for kind in DistributionKind::ALL {
            let distributions = (max_likelihood(kind, &sample).unwrap(), max_likelihood(kind, &scaled).unwrap());
            match &distributions {
                (Distribution::Pareto(a), Distribution::Pareto(b)) => {
                    prop_assert!((b.t_min / (factor * a.t_min) - 1.0).abs() < 1e-9);
                    prop_assert!((b.beta / a.beta - 1.0).abs() < 1e-9);
                }
                (Distribution::LogNormal(a), Distribution::LogNormal(b)) => {
                    prop_assert!((b.mu() - a.mu() - ln_factor).abs() < 1e-4 * a.sigma());
                    prop_assert!((b.sigma() / a.sigma() - 1.0).abs() < 1e-4);
                }
                (Distribution::Weibull(a), Distribution::Weibull(b)) => {
                    prop_assert!((b.ln_scale() - a.ln_scale() - ln_factor).abs() * a.shape() < 1e-6);
                    prop_assert!((b.shape() / a.shape() - 1.0).abs() < 1e-6);
                }
                (Distribution::Empirical(a), Distribution::Empirical(b)) => {
                    prop_assert!((b.minimum() / (factor * a.minimum()) - 1.0).abs() < 1e-9);
                    prop_assert!((b.tail_exponent() / a.tail_exponent() - 1.0).abs() < 1e-9);
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

/// One fitted parameter, with its theoretical standard error.
struct Fitted {
    name: &'static str,
    got: f64,
    wanted: f64,
    error: f64,
}

/// Asymptotic standard errors of the complete sample, with ended attempts in place of all. With the censoring used
/// here the true ones are at most 1.5 times as large.
fn fitted(distribution: &Distribution, got: &Distribution, ended: f64) -> Vec<Fitted> {
    let of = |name, got, wanted, error: f64| Fitted {
        name,
        got,
        wanted,
        error: 1.5 * error / ended.sqrt(),
    };
    match (distribution, got) {
        (Distribution::Pareto(distribution), Distribution::Pareto(got)) => vec![
            of("β", got.beta, distribution.beta, distribution.beta),
            // The mean of the least of n exceeds t_min by a share of 1/(nβ).
            of(
                "t_min",
                got.t_min,
                distribution.t_min,
                distribution.t_min / distribution.beta / ended.sqrt(),
            ),
        ],
        (Distribution::LogNormal(distribution), Distribution::LogNormal(got)) => vec![
            of("μ", got.mu(), distribution.mu(), distribution.sigma()),
            of(
                "σ",
                got.sigma(),
                distribution.sigma(),
                distribution.sigma() / std::f64::consts::SQRT_2,
            ),
        ],
        (Distribution::Weibull(distribution), Distribution::Weibull(got)) => vec![
            of(
                "k",
                got.shape(),
                distribution.shape(),
                0.78 * distribution.shape(),
            ),
            of(
                "ln λ",
                got.ln_scale(),
                distribution.ln_scale(),
                1.053 / distribution.shape(),
            ),
        ],
        other => panic!("{other:?}"),
    }
}

/// A fit recovers the distribution from a complete sample and from one in which the slowest 40 % still run: every
/// parameter within five standard errors.
#[test]
fn fits_find_the_parameters_that_samples_were_drawn_with() {
    let distributions = [
        pareto(120.0, 1.5),
        pareto(3.0, 4.0),
        log_normal(5.0, 0.4),
        log_normal(1.0, 1.5),
        weibull(4.0, 0.7),
        weibull(6.0, 3.0),
    ];
    let mut draw = Draw::new(7);
    for distribution in distributions {
        for share_running in [0.0, 0.4] {
            let limit = distribution.quantile(libm::log(f64::max(share_running, 1e-300)));
            let times: Vec<f64> = (0..4000).map(|_| draw.time(&distribution)).collect();
            let (ended, running): (Vec<f64>, Vec<f64>) = times.iter().partition(|&&t| t < limit);
            let running = vec![limit; running.len()];
            let sample = Sample::new(&ended, &running);
            let got = max_likelihood(distribution.kind(), &sample).unwrap();
            for parameter in fitted(&distribution, &got, ended.len() as f64) {
                let Fitted {
                    name,
                    got,
                    wanted,
                    error,
                } = parameter;
                assert!(
                    (got - wanted).abs() < 5.0 * error,
                    "{distribution:?}: {name} {got}, not {wanted}"
                );
            }
        }
    }
}

/// The mean of samples from a distribution is its mean, within five standard errors.
#[test]
fn means_and_mean_residuals_are_those_of_draws() {
    let mut draw = Draw::new(11);
    let seen: Vec<f64> = (0..50).map(|_| draw.time(&log_normal(3.0, 0.5))).collect();
    let empirical = EmpiricalDistribution::fit(&Sample::new(&seen, &[])).unwrap();
    let distributions = [
        pareto(10.0, 3.5),
        log_normal(3.0, 0.8),
        weibull(3.0, 0.8),
        empirical.into(),
    ];
    for distribution in distributions {
        for age in [0.0, distribution.quantile(libm::log(0.3))] {
            let left: Vec<f64> = (0..200_000)
                .map(|_| draw.time(&distribution) - age)
                .filter(|&left| left > 0.0)
                .collect();
            let count = left.len() as f64;
            let mean = left.iter().sum::<f64>() / count;
            let variance = left.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / count;
            let error = (variance / count).sqrt();
            let wanted = distribution.mean_residual(age);
            assert!(
                (mean - wanted).abs() < 5.0 * error,
                "{distribution:?} {age}: {mean}, not {wanted}"
            );
        }
    }
}
