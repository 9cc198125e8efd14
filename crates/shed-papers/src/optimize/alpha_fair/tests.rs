use super::*;
use crate::optimize::greedy::GreedyTask;
use shed_core::estimate::pocd::probability;
use shed_core::resources::Resources;

fn straggler(miss: f64) -> GreedyTask {
    GreedyTask {
        ln_miss_present: libm::log(miss),
        ln_miss_per_clone: libm::log(miss),
        clones_alive: 0,
        may_receive_clones: true,
    }
}

fn job(misses: &[f64]) -> GreedyJob {
    GreedyJob {
        max_clones: 5,
        ln_pocd_rest: 0.0,
        ln_pocd_target: f64::INFINITY,
        tasks: misses.iter().map(|&miss| straggler(miss)).collect(),
    }
}

fn clones(outcome: &GreedyOutcome) -> Vec<Vec<u32>> {
    outcome.jobs.iter().map(|job| job.clones.clone()).collect()
}

fn run(jobs: &[GreedyJob], kappa: i64, alpha: f64, stride: Stride) -> GreedyOutcome {
    alloc_alpha_fair(jobs, CloneCapacity::slots(kappa), alpha, stride)
}

#[test]
fn a_bundle_sees_what_no_single_clone_shows() {
    // Three tasks with PoCD 0.1 each: 0.001 in all, and a clone of one adds 0.0009. All three
    // with two clones each give 0.02 in all, 0.0033 per clone; the other job's clone adds 0.002.
    let jobs = [job(&[0.9, 0.9, 0.9]), job(&[0.002])];
    let single = run(&jobs, 6, 0.0, Stride::Clone);
    assert_eq!(clones(&single)[1], [1]);
    let bundled = run(&jobs, 6, 0.0, Stride::Bundle);
    assert_eq!(clones(&bundled), [vec![2, 2, 2], vec![0]]);
    let total = |outcome: &GreedyOutcome| -> f64 {
        let jobs = outcome.jobs.iter();
        jobs.map(|job| probability(job.ln_pocd_after)).sum()
    };
    assert!(total(&bundled) > total(&single));
}

#[test]
fn the_sum_prefers_the_savable_job_and_fairness_the_worst() {
    let jobs = [job(&[0.95, 0.95, 0.95, 0.95]), job(&[0.5])];
    for (alpha, expected) in [
        (0.0, [vec![0, 0, 0, 0], vec![2]]),
        (2.0, [vec![1, 1, 0, 0], vec![0]]),
        (f64::INFINITY, [vec![1, 1, 0, 0], vec![0]]),
    ] {
        let outcome = run(&jobs, 2, alpha, Stride::Bundle);
        assert_eq!(clones(&outcome), expected, "α {alpha}");
        assert_eq!(outcome.omega, 2);
        let waiting = |job| Refusal {
            job,
            reason: RefusalReason::Capacity,
        };
        assert_eq!(outcome.refused, [waiting(0), waiting(1)]);
    }
}

#[test]
fn an_alpha_that_is_none_adds_up_pocds() {
    let jobs = [job(&[0.9, 0.8]), job(&[0.3])];
    let sum = run(&jobs, 4, 0.0, Stride::Bundle);
    for alpha in [-1.0, f64::NAN] {
        assert_eq!(run(&jobs, 4, alpha, Stride::Bundle), sum);
    }
}

#[test]
fn a_job_is_rescued_by_the_whole_bundle_or_not_at_all() {
    let doomed = GreedyTask {
        ln_miss_present: 0.0,
        ..straggler(0.2)
    };
    let mut twice = job(&[]);
    twice.tasks = vec![doomed, doomed];
    let jobs = [twice, job(&[0.4])];
    for alpha in [0.0, 0.5, 2.0] {
        let rescued = run(&jobs, 2, alpha, Stride::Bundle);
        assert_eq!(clones(&rescued), [vec![1, 1], vec![0]], "α {alpha}");
        let too_small = run(&jobs, 1, alpha, Stride::Bundle);
        assert_eq!(clones(&too_small), [vec![0, 0], vec![1]], "α {alpha}");
        assert_eq!(too_small.refused.len(), 2);
        let [lost] = &run(&jobs[..1], 1, alpha, Stride::Bundle).refused[..] else {
            panic!("it could take more than there is");
        };
        assert_eq!(lost.reason, RefusalReason::Capacity);
        let alone = run(&jobs, 2, alpha, Stride::Clone);
        assert_eq!(clones(&alone), [vec![0, 0], vec![2]], "α {alpha}");
    }
}

#[test]
fn hopeless_jobs_and_jobs_that_are_certain_get_none() {
    let mut certain = job(&[0.5]);
    certain.tasks[0].ln_miss_present = f64::NEG_INFINITY;
    let jobs = [job(&[1.0, 0.5]), certain, job(&[0.5])];
    let outcome = run(&jobs, 30, 0.0, Stride::Bundle);
    assert_eq!(clones(&outcome), [vec![0, 0], vec![0], vec![5]]);
    let hopeless = Refusal {
        job: 0,
        reason: RefusalReason::Hopeless,
    };
    assert_eq!(outcome.refused, [hopeless]);
}

#[test]
fn capacity_that_is_just_enough_refuses_nothing() {
    let mut certain = job(&[0.5]);
    certain.tasks[0].ln_miss_present = f64::NEG_INFINITY;
    let outcome = run(&[certain], 5, 0.0, Stride::Bundle);
    assert_eq!(clones(&outcome), [[0]]);
    assert_eq!(outcome.refused, []);
}

#[test]
fn a_gain_is_weighed_against_what_the_attempt_takes() {
    let amounts = |cpu| Resources::from_pairs([("cpu", cpu), ("gpu", 1)]);
    let (free, small, large) = (amounts(8), amounts(1), amounts(4));
    let free = {
        let mut free = free;
        free.set("gpu", 100);
        free
    };
    let jobs = [job(&[0.5]), job(&[0.5])];
    for alpha in [0.0, 1.0, 2.0] {
        let capacity = CloneCapacity::vector(&free, &[&large, &small]);
        let outcome = alloc_alpha_fair(&jobs, capacity, alpha, Stride::Bundle);
        // The first two clones of the small job come first. Then one large clone and the remaining small ones fit.
        assert_eq!(clones(&outcome), [[1], [4]], "α {alpha}");
        assert_eq!((outcome.steps[0].job, outcome.steps[1].job), (1, 1));
    }
}

#[test]
fn what_takes_nothing_comes_first() {
    let (free, none) = (Resources::from_pairs([("cpu", 2)]), Resources::default());
    let one = Resources::from_pairs([("cpu", 1)]);
    let jobs = [job(&[0.9]), job(&[0.1])];
    let capacity = CloneCapacity::vector(&free, &[&one, &none]);
    let outcome = alloc_alpha_fair(&jobs, capacity, 0.0, Stride::Bundle);
    assert_eq!(clones(&outcome), [[2], [5]]);
    assert_eq!(outcome.steps[0].job, 1);
}

#[test]
fn what_takes_nothing_and_gains_nothing_does_not_come_first() {
    let free = Resources::from_pairs([("cpu", 2)]);
    let none = Resources::default();
    let mut certain = job(&[0.5]);
    certain.tasks[0].ln_miss_present = f64::NEG_INFINITY;
    let jobs = [certain, job(&[0.5])];
    let capacity = CloneCapacity::vector(&free, &[&none, &none]);
    let outcome = alloc_alpha_fair(&jobs, capacity, 1.0, Stride::Bundle);
    assert_eq!(outcome.steps[0].job, 1);
}

#[test]
fn the_improvement_neither_overflows_nor_loses_its_digits() {
    let sum = Rule {
        alpha: 0.0,
        stride: Stride::Bundle,
    };
    // From e^−800 to e^−1, and a rise by 1e-18 of a PoCD near 1.
    assert!((sum.ln_improvement(-800.0, 799.0, -1.0) + 1.0).abs() < 1e-12);
    let slight = sum.ln_improvement(-1e-18, 1e-18, 0.0);
    assert!((slight - libm::log(1e-18)).abs() < 1e-12);
    let steep = Rule { alpha: 3.0, ..sum };
    // U_3 = −p^−2/2: from 0.1 to 0.2, −50 to −12.5.
    let (low, high) = (libm::log(0.1), libm::log(0.2));
    let rise = steep.ln_improvement(low, high - low, high);
    assert!((rise - libm::log(37.5)).abs() < 1e-12);
    let flat = Rule { alpha: 0.5, ..sum };
    // U_½ = 2√p: from 0.25 to 0.64, 1 to 1.6.
    let (low, high) = (libm::log(0.25), libm::log(0.64));
    let rise = flat.ln_improvement(low, high - low, high);
    assert!((rise - libm::log(0.6)).abs() < 1e-12);
    let impossible = f64::NEG_INFINITY;
    assert_eq!(
        steep.ln_improvement(impossible, f64::INFINITY, -1.0),
        f64::INFINITY
    );
    assert_eq!(sum.ln_improvement(impossible, f64::INFINITY, -1.0), -1.0);
    assert_eq!(
        steep.ln_improvement(impossible, 0.0, impossible),
        impossible
    );
}
