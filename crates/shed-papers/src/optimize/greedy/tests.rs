use super::*;
use shed_core::estimate::pocd::probability;

/// A straggler whose attempts all miss with ln probability `ln_miss`, clones too.
fn straggler(ln_miss: f64) -> GreedyTask {
    GreedyTask {
        ln_miss_present: ln_miss,
        ln_miss_per_clone: ln_miss,
        clones_alive: 0,
        may_receive_clones: true,
    }
}

fn job(tasks: &[GreedyTask]) -> GreedyJob {
    GreedyJob {
        max_clones: 5,
        ln_pocd_rest: 0.0,
        ln_pocd_target: f64::INFINITY,
        tasks: tasks.to_vec(),
    }
}

fn run(kappa: i64, mode: GreedyMode, jobs: &[GreedyJob]) -> GreedyOutcome {
    let input = GreedyInput {
        kappa,
        jobs: jobs.to_vec(),
    };
    alloc_task(&input, mode)
}

fn clones(outcome: &GreedyOutcome) -> Vec<Vec<u32>> {
    outcome.jobs.iter().map(|job| job.clones.clone()).collect()
}

#[test]
fn the_task_with_the_lowest_pocd_is_not_the_one_that_gains_most() {
    let jobs = [job(&[straggler(libm::log(0.9)), straggler(libm::log(0.7))])];
    let guarded = run(2, GreedyMode::Guarded, &jobs);
    let marginal = run(2, GreedyMode::Marginal, &jobs);
    assert_eq!(clones(&guarded), [[2, 0]]);
    assert_eq!(clones(&marginal), [[1, 1]]);
    assert!((probability(guarded.jobs[0].ln_pocd_after) - 0.0813).abs() < 1e-4);
    assert!((probability(marginal.jobs[0].ln_pocd_after) - 0.0969).abs() < 1e-4);
}

#[test]
fn a_large_job_that_the_capacity_cannot_save_gets_nothing() {
    let doomed = GreedyTask {
        ln_miss_present: 0.0,
        ..straggler(-1.0)
    };
    for mode in [
        GreedyMode::Guarded,
        GreedyMode::MaxMin,
        GreedyMode::Marginal,
    ] {
        let jobs = [job(&[doomed; 100])];
        let outcome = run(90, mode, &jobs);
        assert_eq!((outcome.omega, outcome.refused.len()), (0, 1), "{mode:?}");
        assert_eq!(run(100, mode, &jobs).omega, 100, "{mode:?}");
    }
}

#[test]
fn what_is_not_a_straggler_counts_in_the_jobs_pocd() {
    let mut rest = job(&[straggler(libm::log(0.5))]);
    rest.ln_pocd_rest = libm::log(0.9);
    for mode in [GreedyMode::Guarded, GreedyMode::Marginal] {
        let outcome = run(1, mode, std::slice::from_ref(&rest));
        let JobOutcome {
            ln_pocd_before,
            ln_pocd_after,
            ..
        } = outcome.jobs[0];
        assert!((probability(ln_pocd_before) - 0.5 * 0.9).abs() < 1e-12);
        assert!((probability(ln_pocd_after) - 0.75 * 0.9).abs() < 1e-12);
    }
}

#[test]
fn the_steps_gains_add_up_to_the_change_of_the_pocd() {
    let jobs = [job(&[straggler(-0.4), straggler(-1.1)])];
    let outcome = run(4, GreedyMode::Guarded, &jobs);
    let (ln_gain, gain) = gains(&jobs, &outcome.steps)
        .iter()
        .fold((0.0, 0.0), |(ln, plain), gain| {
            (ln + gain.ln_pocd, plain + gain.pocd)
        });
    let JobOutcome {
        ln_pocd_before,
        ln_pocd_after,
        ..
    } = outcome.jobs[0];
    assert!((ln_gain - (ln_pocd_after - ln_pocd_before)).abs() < 1e-12);
    assert!((gain - (probability(ln_pocd_after) - probability(ln_pocd_before))).abs() < 1e-12);
}

#[test]
fn a_hopeless_job_swallows_the_capacity_only_as_printed() {
    let jobs = [job(&[straggler(-0.4)]), job(&[straggler(0.0)])];
    assert_eq!(clones(&run(3, GreedyMode::Paper, &jobs)), [[0], [3]]);
    for mode in [
        GreedyMode::Guarded,
        GreedyMode::MaxMin,
        GreedyMode::Marginal,
    ] {
        let outcome = run(3, mode, &jobs);
        assert_eq!(clones(&outcome), [[3], [0]]);
        let hopeless = Refusal {
            job: 1,
            reason: RefusalReason::Hopeless,
        };
        let waiting = Refusal {
            job: 0,
            reason: RefusalReason::Capacity,
        };
        assert_eq!(outcome.refused, [waiting, hopeless]);
    }
}

#[test]
fn a_hopeless_task_that_is_no_straggler_makes_its_job_hopeless() {
    let mut stuck = job(&[straggler(-0.4)]);
    stuck.ln_pocd_rest = f64::NEG_INFINITY;
    let outcome = run(3, GreedyMode::Guarded, &[stuck]);
    assert_eq!(outcome.omega, 0);
    assert_eq!(outcome.refused[0].reason, RefusalReason::Hopeless);
}

#[test]
fn live_clones_count_against_the_bound_and_in_the_pocd() {
    let task = GreedyTask {
        ln_miss_present: -1.2,
        ln_miss_per_clone: -0.4,
        clones_alive: 4,
        may_receive_clones: true,
    };
    let outcome = run(10, GreedyMode::Guarded, &[job(&[task])]);
    assert_eq!(clones(&outcome), [[1]]);
    let expected = shed_core::estimate::pocd::ln_task_pocd(-1.6);
    assert!((outcome.jobs[0].ln_pocd_after - expected).abs() < 1e-15);
    assert!(outcome.refused.is_empty());
}

#[test]
fn a_clone_that_cannot_help_is_launched_only_as_printed() {
    let useless = GreedyTask {
        ln_miss_per_clone: 0.0,
        ..straggler(-0.1)
    };
    let jobs = [job(&[useless, straggler(-0.5)])];
    assert_eq!(clones(&run(3, GreedyMode::Paper, &jobs)), [[3, 0]]);
    assert_eq!(clones(&run(3, GreedyMode::Guarded, &jobs)), [[0, 3]]);
}

#[test]
fn a_doomed_original_is_rescued_by_a_clone_that_resumes() {
    let doomed = GreedyTask {
        ln_miss_present: 0.0,
        ..straggler(-2.0)
    };
    let jobs = [job(&[straggler(-0.5), doomed])];
    for mode in [
        GreedyMode::Guarded,
        GreedyMode::MaxMin,
        GreedyMode::Marginal,
    ] {
        let outcome = run(1, mode, &jobs);
        assert_eq!(clones(&outcome), [[0, 1]]);
        let gain = gains(&jobs, &outcome.steps)[0];
        assert_eq!(gain.ln_pocd, f64::INFINITY);
        let after = probability(outcome.jobs[0].ln_pocd_after);
        assert!((gain.pocd - after).abs() < 1e-15 && after > 0.0);
    }
}

#[test]
fn a_job_that_the_capacity_cannot_rescue_leaves_it_to_others() {
    let doomed = GreedyTask {
        ln_miss_present: 0.0,
        ..straggler(-2.0)
    };
    let jobs = [job(&[doomed, doomed, doomed]), job(&[straggler(-0.5)])];
    for mode in [
        GreedyMode::Guarded,
        GreedyMode::MaxMin,
        GreedyMode::Marginal,
    ] {
        let outcome = run(2, mode, &jobs);
        assert_eq!(clones(&outcome), [vec![0, 0, 0], vec![2]]);
        assert_eq!(outcome.refused[0].reason, RefusalReason::Capacity);
        assert_eq!(run(4, mode, &jobs).jobs[1].clones, [1]);
    }
    assert_eq!(
        clones(&run(2, GreedyMode::Paper, &jobs)),
        [vec![1, 1, 0], vec![0]]
    );
}

#[test]
fn the_capacity_to_rescue_a_job_is_what_others_have_left() {
    let doomed = GreedyTask {
        ln_miss_present: 0.0,
        ..straggler(-2.0)
    };
    let twice = job(&[doomed, doomed]);
    let outcome = run(3, GreedyMode::Guarded, &[twice.clone(), twice]);
    assert_eq!(clones(&outcome), [[2, 1], [0, 0]]);
}

#[test]
fn no_capacity_no_jobs_and_no_bound_are_all_harmless() {
    let one = job(&[straggler(-0.5)]);
    assert_eq!(
        run(0, GreedyMode::Guarded, std::slice::from_ref(&one)).omega,
        0
    );
    assert_eq!(
        run(-4, GreedyMode::Marginal, std::slice::from_ref(&one)).omega,
        0
    );
    assert_eq!(run(5, GreedyMode::MaxMin, &[]).omega, 0);
    let none = GreedyJob {
        max_clones: 0,
        ..one
    };
    let outcome = run(5, GreedyMode::Paper, &[none, job(&[])]);
    assert_eq!(outcome.omega, 0);
    assert!(outcome.refused.is_empty());
}

#[test]
fn a_step_that_is_none_adds_nothing() {
    let jobs = [job(&[straggler(-0.5)])];
    let nowhere = [(1, 0), (0, 1)].map(|(job, task)| GreedyStep { job, task });
    assert_eq!(gains(&jobs, &nowhere), [StepGain::NONE; 2]);
}
