//! Properties of the optimizers for any input.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use shed_core::estimate::pocd::{TaskMiss, probability};
use shed_papers::optimize::alpha_fair::{Stride, alloc_alpha_fair};
use shed_papers::optimize::clone_capacity::CloneCapacity;
use shed_papers::optimize::greedy::{
    GreedyInput, GreedyJob, GreedyMode, GreedyOutcome, GreedyTask, RefusalReason, alloc_task, gains,
};

#[path = "optimizer/reference.rs"]
mod reference;

const MODES: [GreedyMode; 4] = [
    GreedyMode::Paper,
    GreedyMode::Guarded,
    GreedyMode::MaxMin,
    GreedyMode::Marginal,
];

/// Seeds that failed once are kept next to this file and tried first.
fn cases(cases: u32) -> ProptestConfig {
    let seeds = FileFailurePersistence::WithSource("proptest-regressions");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(seeds)),
        ..ProptestConfig::default()
    }
}

fn mode() -> impl Strategy<Value = GreedyMode> {
    prop::sample::select(&MODES[..])
}

/// A ln miss: mostly ordinary, often from a small set so that ties occur, sometimes extreme.
fn any_ln_miss() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -8.0..-0.01,
        4 => prop::sample::select(vec![-0.25, -0.5, -1.0, -2.0, -4.0]),
        1 => prop::sample::select(vec![0.0, -1e-9, -60.0, -800.0, f64::NEG_INFINITY]),
    ]
}

/// A task of any kind: alike attempts or not, hopeless, safe, no straggler, and quite often one
/// that only a clone can rescue.
fn any_task() -> impl Strategy<Value = GreedyTask> {
    let misses = prop_oneof![
        4 => any_ln_miss().prop_map(|ln_miss| (ln_miss, ln_miss)),
        4 => (any_ln_miss(), any_ln_miss()),
        1 => (Just(0.0), any_ln_miss()),
    ];
    (misses, 0u32..4, prop::bool::weighted(0.8)).prop_map(
        |((ln_miss_present, ln_miss_per_clone), clones_alive, may_receive_clones)| GreedyTask {
            ln_miss_present,
            ln_miss_per_clone,
            clones_alive,
            may_receive_clones,
        },
    )
}

/// A straggler that is neither hopeless nor safe, so that its keys are its own.
fn ordinary_task() -> impl Strategy<Value = GreedyTask> {
    (-4.0..-0.01, -4.0..-0.01).prop_map(|(ln_miss_present, ln_miss_per_clone)| GreedyTask {
        ln_miss_present,
        ln_miss_per_clone,
        clones_alive: 0,
        may_receive_clones: true,
    })
}

fn job_of(task: impl Strategy<Value = GreedyTask>) -> impl Strategy<Value = GreedyJob> {
    let rest = prop_oneof![4 => Just(0.0), 4 => -2.0..0.0, 1 => Just(f64::NEG_INFINITY)];
    (0u32..6, rest, prop::collection::vec(task, 0..6)).prop_map(
        |(max_clones, ln_pocd_rest, tasks)| GreedyJob {
            max_clones,
            ln_pocd_rest,
            ln_pocd_target: f64::INFINITY,
            tasks,
        },
    )
}

fn any_input() -> impl Strategy<Value = GreedyInput> {
    let jobs = prop::collection::vec(job_of(any_task()), 0..6);
    let kappa = prop_oneof![-2i64..6, 6i64..40];
    (kappa, jobs).prop_map(|(kappa, jobs)| GreedyInput { kappa, jobs })
}

/// The same with a target for most jobs, anywhere from hopeless to certain.
fn with_targets() -> impl Strategy<Value = GreedyInput> {
    let target = prop_oneof![
        4 => -3.0..-0.001,
        1 => Just(0.0),
        1 => Just(f64::INFINITY),
    ];
    (any_input(), prop::collection::vec(target, 6)).prop_map(|(mut input, targets)| {
        for (job, target) in input.jobs.iter_mut().zip(targets) {
            job.ln_pocd_target = target;
        }
        input
    })
}

fn ordinary_input() -> impl Strategy<Value = GreedyInput> {
    let jobs = prop::collection::vec(job_of(ordinary_task()), 1..6);
    (0i64..40, jobs).prop_map(|(kappa, jobs)| GreedyInput { kappa, jobs })
}

fn with_kappa(input: &GreedyInput, kappa: i64) -> GreedyInput {
    GreedyInput {
        kappa,
        ..input.clone()
    }
}

/// The ln PoCDs of the jobs that some number of clones could bring in time.
fn able_jobs(outcome: &GreedyOutcome) -> impl Iterator<Item = f64> + '_ {
    let is_hopeless = |job: usize| {
        let mut refused = outcome.refused.iter();
        refused.any(|refusal| refusal.job == job && refusal.reason == RefusalReason::Hopeless)
    };
    let jobs = outcome.jobs.iter().enumerate();
    jobs.filter(move |&(job, _)| !is_hopeless(job))
        .map(|(_, job)| job.ln_pocd_after)
}

fn clones_of(outcome: &GreedyOutcome) -> Vec<Vec<u32>> {
    outcome.jobs.iter().map(|job| job.clones.clone()).collect()
}

/// `second` is not below `first`, up to the rounding of a sum.
fn not_below(second: f64, first: f64) -> bool {
    second >= first - 1e-12 * first.abs() || first.is_infinite()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn clones_never_exceed_the_capacity_nor_the_bound_of_a_task(input in any_input(), mode in mode()) {
        let outcome = alloc_task(&input, mode);
        prop_assert!(outcome.omega <= input.kappa.max(0));
        prop_assert_eq!(outcome.steps.len() as i64, outcome.omega);
        let mut counted = input.jobs.iter().map(|job| vec![0; job.tasks.len()]).collect::<Vec<_>>();
        for step in &outcome.steps {
            counted[step.job][step.task] += 1;
        }
        prop_assert_eq!(&counted, &clones_of(&outcome));
        for (job, clones) in input.jobs.iter().zip(counted) {
            for (task, clones) in job.tasks.iter().zip(clones) {
                prop_assert!(clones == 0 || task.may_receive_clones);
                prop_assert!(clones == 0 || clones + task.clones_alive <= job.max_clones);
            }
        }
    }

    #[test]
    fn with_targets_too_the_outcome_is_that_of_the_plain_scan(
        input in with_targets(), mode in mode(),
    ) {
        let outcome = alloc_task(&input, mode);
        let steps: Vec<(usize, usize)> = outcome.steps.iter().map(|s| (s.job, s.task)).collect();
        prop_assert_eq!(steps, reference::steps(&input, mode));
    }

    /// Every clone of the sequence was given to a job that was still below its target.
    #[test]
    fn no_clone_goes_to_a_job_that_has_reached_its_target(
        input in with_targets(), mode in mode(), alpha in 0.0..3.0f64,
    ) {
        let kappa = CloneCapacity::slots(input.kappa);
        let fair = alloc_alpha_fair(&input.jobs, kappa, alpha, Stride::Bundle);
        for outcome in [alloc_task(&input, mode), fair] {
            let mut ln_pocds: Vec<f64> =
                outcome.jobs.iter().map(|job| job.ln_pocd_before).collect();
            let mut clones: Vec<Vec<u32>> =
                input.jobs.iter().map(|job| vec![0; job.tasks.len()]).collect();
            for step in &outcome.steps {
                let job = &input.jobs[step.job];
                prop_assert!(ln_pocds[step.job] < job.ln_pocd_target + 1e-12);
                clones[step.job][step.task] += 1;
                let misses = job.tasks.iter().zip(&clones[step.job]).map(|(task, &clones)| {
                    TaskMiss {
                        ln_miss_present: task.ln_miss_present,
                        ln_miss_per_clone: task.ln_miss_per_clone,
                        clones,
                    }.ln_pocd()
                });
                ln_pocds[step.job] = misses.sum::<f64>() + job.ln_pocd_rest;
            }
        }
    }

    #[test]
    fn the_outcome_is_that_of_the_plain_scan(input in any_input(), mode in mode()) {
        let outcome = alloc_task(&input, mode);
        let steps: Vec<(usize, usize)> = outcome.steps.iter().map(|s| (s.job, s.task)).collect();
        prop_assert_eq!(steps, reference::steps(&input, mode));
    }

    #[test]
    fn a_refused_job_got_nothing_or_less_than_it_could_take(input in any_input(), mode in mode()) {
        let outcome = alloc_task(&input, mode);
        for refusal in &outcome.refused {
            let job = &outcome.jobs[refusal.job];
            if refusal.reason == RefusalReason::Hopeless {
                prop_assert!(mode != GreedyMode::Paper);
                prop_assert!(job.clones.iter().all(|&clones| clones == 0));
                prop_assert_eq!(job.ln_pocd_after, f64::NEG_INFINITY);
            } else {
                let bound = input.jobs[refusal.job].max_clones;
                prop_assert!(job.clones.iter().any(|&clones| clones < bound));
            }
        }
    }

    #[test]
    fn the_gains_of_a_job_add_up_to_the_change_of_its_pocd(
        input in ordinary_input(), mode in mode(),
    ) {
        let outcome = alloc_task(&input, mode);
        for (index, job) in outcome.jobs.iter().enumerate() {
            let steps = outcome.steps.iter().zip(gains(&input.jobs, &outcome.steps));
            let of_job = steps.filter(|(step, _)| step.job == index);
            let gains = of_job.fold((0.0, 0.0), |(ln, plain), (_, gain)| {
                (ln + gain.ln_pocd, plain + gain.pocd)
            });
            if job.ln_pocd_before.is_finite() {
                prop_assert!((gains.0 - (job.ln_pocd_after - job.ln_pocd_before)).abs() < 1e-9);
            }
            let change = probability(job.ln_pocd_after) - probability(job.ln_pocd_before);
            prop_assert!((gains.1 - change).abs() < 1e-9);
        }
    }

    /// Without tasks that need a rescue, more capacity only lengthens the sequence of clones.
    #[test]
    fn more_capacity_keeps_every_clone_and_lowers_no_job(
        input in ordinary_input(), more in 1i64..8, mode in mode(),
    ) {
        let small = alloc_task(&input, mode);
        let large = alloc_task(&with_kappa(&input, input.kappa + more), mode);
        prop_assert_eq!(&large.steps[..small.steps.len()], &small.steps[..]);
        for (small, large) in small.jobs.iter().zip(&large.jobs) {
            prop_assert!(not_below(large.ln_pocd_after, small.ln_pocd_after));
        }
    }

    /// With such tasks a job may be refused until the capacity suffices to rescue it. It then takes clones from
    /// others, but the objective of the mode never falls.
    #[test]
    fn more_capacity_never_lowers_what_the_mode_maximises(input in any_input(), more in 1i64..8) {
        let larger = with_kappa(&input, input.kappa + more);
        let least = |input| able_jobs(&alloc_task(input, GreedyMode::MaxMin)).fold(0.0, f64::min);
        prop_assert!(not_below(least(&larger), least(&input)));
        let sum = |input| able_jobs(&alloc_task(input, GreedyMode::Marginal)).sum::<f64>();
        prop_assert!(not_below(sum(&larger), sum(&input)));
    }

    /// The sum is concave in every task's clones. If no exchange of one clone improves it, no other allocation does.
    #[test]
    fn no_exchange_of_a_clone_beats_the_marginal_greedy(input in ordinary_input()) {
        let outcome = alloc_task(&input, GreedyMode::Marginal);
        let tasks = || input.jobs.iter().zip(&outcome.jobs).flat_map(|(job, got)| {
            let able = job.ln_pocd_rest.is_finite();
            job.tasks.iter().zip(&got.clones).filter(move |_| able).map(|(task, &clones)| {
                (job.max_clones, TaskMiss {
                    ln_miss_present: task.ln_miss_present,
                    ln_miss_per_clone: task.ln_miss_per_clone,
                    clones,
                })
            })
        });
        let best_gain = tasks()
            .filter(|(bound, miss)| miss.clones < *bound)
            .map(|(_, miss)| miss.gain_of_one_more())
            .fold(0.0, f64::max);
        let least_loss = tasks()
            .filter(|(_, miss)| miss.clones > 0)
            .map(|(_, miss)| TaskMiss { clones: miss.clones - 1, ..miss }.gain_of_one_more())
            .fold(f64::INFINITY, f64::min);
        prop_assert!(best_gain <= least_loss * (1.0 + 1e-9), "{best_gain} > {least_loss}");
        let used_up = outcome.omega == input.kappa;
        prop_assert!(used_up || tasks().all(|(bound, miss)| miss.clones >= bound));
    }

    #[test]
    fn max_min_has_the_largest_least_pocd_of_all_modes(input in ordinary_input()) {
        let least = |mode| able_jobs(&alloc_task(&input, mode)).fold(0.0, f64::min);
        let best = least(GreedyMode::MaxMin);
        for mode in [GreedyMode::Guarded, GreedyMode::Marginal] {
            prop_assert!(not_below(best, least(mode)));
        }
    }

    #[test]
    fn the_order_of_jobs_and_tasks_does_not_matter(
        (input, jobs, seed) in ordinary_input().prop_flat_map(|input| {
            let order: Vec<usize> = (0..input.jobs.len()).collect();
            (Just(input), Just(order).prop_shuffle(), any::<u64>())
        }),
        mode in mode(),
    ) {
        // Tasks are rotated, because every job has a different number of them.
        let rotation = |length: usize| if length == 0 { 0 } else { (seed % length as u64) as usize };
        // Two hopeless jobs tie at −∞: as printed, the first of them takes the whole capacity.
        let hopeless = input.jobs.iter().filter(|job| job.ln_pocd_rest.is_infinite()).count();
        prop_assume!(mode != GreedyMode::Paper || hopeless < 2);
        let mut permuted = input.clone();
        permuted.jobs = jobs.iter().map(|&job| input.jobs[job].clone()).collect();
        for job in &mut permuted.jobs {
            let by = rotation(job.tasks.len());
            job.tasks.rotate_left(by);
        }
        let mut expected: Vec<Vec<u32>> = {
            let clones = clones_of(&alloc_task(&input, mode));
            jobs.iter().map(|&job| clones[job].clone()).collect()
        };
        for clones in &mut expected {
            let by = rotation(clones.len());
            clones.rotate_left(by);
        }
        prop_assert_eq!(clones_of(&alloc_task(&permuted, mode)), expected);
    }
}
