//! Properties of probabilities of a miss, of PoCDs, of fits and of estimates from progress, for any input.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use shed_core::estimate::pareto::{ln_miss, ln_miss_silent};
use shed_core::estimate::pareto_fit::{ShapePrior, fit};
use shed_core::estimate::pocd::{TaskMiss, ln_job_pocd_uniform, ln_task_pocd, probability};
use shed_core::estimate::progress::{
    ProcessedRange, RateReading, beta_from_remaining, remaining_time, resume_offset,
};

/// Seeds that failed once are kept next to this file and tried first.
fn cases(cases: u32) -> ProptestConfig {
    let seeds = FileFailurePersistence::WithSource("proptest-regressions");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(seeds)),
        ..ProptestConfig::default()
    }
}

fn positive() -> impl Strategy<Value = f64> {
    1e-3..1e4
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_miss_is_a_probability_whatever_it_is_given(
        phi in prop::num::f64::ANY,
        t_min in prop::num::f64::ANY,
        slack in prop::num::f64::ANY,
        beta in prop::num::f64::ANY,
    ) {
        let miss = probability(ln_miss(phi, t_min, slack, beta));
        prop_assert!((0.0..=1.0).contains(&miss), "{miss}");
        let silent = ln_miss_silent(phi, t_min, slack, beta);
        prop_assert!(silent <= 0.0, "{silent}");
    }

    #[test]
    fn pocd_and_gain_are_never_nan(ln_miss in prop::num::f64::ANY, clone in prop::num::f64::ANY) {
        let task = TaskMiss { ln_miss_present: ln_miss, ln_miss_per_clone: clone, clones: 1 };
        prop_assert!(task.ln_pocd() <= 0.0);
        prop_assert!(task.gain_of_one_more() >= 0.0);
        prop_assert!(ln_task_pocd(ln_miss) <= 0.0);
    }

    #[test]
    fn pocd_rises_with_clones_progress_and_slack(
        phi in 0.0..1.0,
        further in 0.0..1.0,
        t_min in positive(),
        slack in positive(),
        longer in positive(),
        beta in 0.1..20.0,
        attempts in 1u32..6,
    ) {
        let pocd = |phi, slack, attempts| {
            ln_job_pocd_uniform(ln_miss(phi, t_min, slack, beta), attempts, 3)
        };
        let base = pocd(phi, slack, attempts);
        prop_assert!(pocd(phi, slack, attempts + 1) >= base);
        prop_assert!(pocd(phi + (1.0 - phi) * further, slack, attempts) >= base);
        prop_assert!(pocd(phi, slack + longer, attempts) >= base);
        prop_assert!(ln_job_pocd_uniform(ln_miss(phi, t_min, slack, beta), attempts, 4) <= base);
    }

    #[test]
    fn pocd_in_log_space_equals_the_plain_product(
        tasks in prop::collection::vec((0.05..0.95, 0u32..3), 1..20),
    ) {
        let plain: f64 = tasks.iter().map(|&(q, r): &(f64, u32)| 1.0 - q.powi(r as i32 + 1)).product();
        let misses = tasks.iter().map(|&(q, r)| f64::from(r + 1) * libm::log(q));
        let in_logs = misses.map(ln_task_pocd).sum();
        prop_assert!((probability(in_logs) / plain - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_gain_is_the_difference_of_log_pocds(
        present in -3.0..-0.05, clone in -3.0..-0.05,
    ) {
        let task = TaskMiss { ln_miss_present: present, ln_miss_per_clone: clone, clones: 0 };
        let difference = ln_task_pocd(present + clone) - ln_task_pocd(present);
        prop_assert!((task.gain_of_one_more() / difference - 1.0).abs() < 1e-10);
    }

    #[test]
    fn a_fitted_distribution_is_a_distribution(
        ended in prop::collection::vec(prop::num::f64::ANY, 0..8),
        ages in prop::collection::vec(prop::num::f64::ANY, 0..8),
        beta in 0.5..5.0,
        predicted in prop::option::of(prop::num::f64::ANY),
    ) {
        let prior = ShapePrior {
            beta,
            smallest_predicted_total: predicted,
            ..ShapePrior::with_t_min(120.0)
        };
        let distribution = fit(&ended, &ages, &prior);
        prop_assert!(distribution.t_min > 0.0 && distribution.t_min.is_finite());
        prop_assert!(distribution.beta > 0.0 && distribution.beta.is_finite(), "{distribution:?}");
    }

    #[test]
    fn an_estimated_beta_is_above_one_and_bounded(
        phi in 0.0..1.0, start in 0.0..1.0, elapsed in positive(), t_min in positive(),
    ) {
        let t_rem = remaining_time(phi, start, elapsed);
        prop_assert!(t_rem.is_none_or(|t_rem| t_rem >= 0.0));
        let beta = beta_from_remaining(t_rem, phi, t_min, 1000.0);
        prop_assert!(beta.is_some_and(|beta| (1.0..=1000.0).contains(&beta)));
    }

    #[test]
    fn clones_start_within_the_input_and_not_behind_the_original(
        b_start in positive(),
        length in positive(),
        done in 0.0..1.0,
        times in prop::array::uniform4(positive()),
        shed in any::<bool>(),
    ) {
        let range = ProcessedRange {
            b_start,
            b_proc: done * length,
            b_end: b_start + length,
            t_launch: times[0],
            t_process: times[1],
            t_first_report: times[2],
            t_now: times[3],
        };
        let reading = if shed { RateReading::Shed } else { RateReading::ShedPlus };
        let offset = resume_offset(&range, reading);
        prop_assert!(offset.b_extra >= 0.0 && offset.b_new <= range.b_end);
        prop_assert!(offset.b_new >= (range.b_start + range.b_proc).min(range.b_end));
        prop_assert_eq!(offset.launch, offset.b_new < range.b_end);
    }
}
