use proptest::prelude::*;

use super::*;
use crate::optimize::greedy::alloc_task;

const MODES: [GreedyMode; 4] = [
    GreedyMode::Paper,
    GreedyMode::Guarded,
    GreedyMode::MaxMin,
    GreedyMode::Marginal,
];

/// Mostly ordinary values. Some come from a small set so that ties occur, some lie within a tie, some are extreme.
fn any_ln_miss() -> impl Strategy<Value = f64> {
    let common = prop::sample::select(vec![-0.25, -0.5, -1.0, -2.0]);
    prop_oneof![
        6 => -6.0..-0.01,
        3 => common.clone(),
        2 => (common, 0i32..8).prop_map(|(ln_miss, step)| ln_miss * (1.0 + 0.4e-11 * f64::from(step))),
        1 => prop::sample::select(vec![0.0, -60.0, f64::NEG_INFINITY]),
    ]
}

fn any_task() -> impl Strategy<Value = GreedyTask> {
    let present = prop_oneof![8 => any_ln_miss(), 1 => Just(0.0)];
    (present, any_ln_miss(), 0u32..3, prop::bool::weighted(0.8)).prop_map(
        |(ln_miss_present, ln_miss_per_clone, clones_alive, may_receive_clones)| GreedyTask {
            ln_miss_present,
            ln_miss_per_clone,
            clones_alive,
            may_receive_clones,
        },
    )
}

fn any_job() -> impl Strategy<Value = GreedyJob> {
    let rest = prop_oneof![6 => Just(0.0), 3 => -2.0..0.0, 1 => Just(f64::NEG_INFINITY)];
    (0u32..6, rest, prop::collection::vec(any_task(), 0..5)).prop_map(
        |(max_clones, ln_pocd_rest, tasks)| GreedyJob {
            max_clones,
            ln_pocd_rest,
            ln_pocd_target: f64::INFINITY,
            tasks,
        },
    )
}

#[derive(Debug, Clone)]
enum Change {
    Kappa(i64),
    Task(usize, usize, GreedyTask),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => (-2i64..40).prop_map(Change::Kappa),
        4 => (0usize..6, 0usize..5, any_task()).prop_map(|(job, task, known)| Change::Task(job, task, known)),
    ]
}

fn check(state: &Incremental, input: &GreedyInput, mode: GreedyMode) -> Result<(), TestCaseError> {
    let fresh = alloc_task(input, mode);
    prop_assert_eq!(state.omega(), fresh.omega);
    for (job, expected) in fresh.jobs.iter().enumerate() {
        prop_assert_eq!(state.job(job), Some(expected.clone()), "job {}", job);
    }
    prop_assert_eq!(state.refused(), fresh.refused);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn after_any_changes_the_outcome_is_that_from_scratch(
        jobs in prop::collection::vec(any_job(), 0..6),
        kappa in -2i64..40,
        changes in prop::collection::vec(any_change(), 0..12),
        mode in prop::sample::select(&MODES[..]),
    ) {
        let mut input = GreedyInput { kappa, jobs };
        let mut state = Incremental::new(input.clone(), mode);
        check(&state, &input, mode)?;
        for change in changes {
            match change {
                Change::Kappa(kappa) => {
                    input.kappa = kappa;
                    state.set_kappa(kappa);
                }
                Change::Task(job, task, known) => {
                    let held = input.jobs.get_mut(job).and_then(|job| job.tasks.get_mut(task));
                    if let Some(held) = held {
                        *held = known;
                    }
                    state.set_task(job, task, known);
                }
            }
            check(&state, &input, mode)?;
        }
    }
}

#[test]
fn a_place_that_does_not_exist_is_ignored() {
    let task = GreedyTask {
        ln_miss_present: -1.0,
        ln_miss_per_clone: -1.0,
        clones_alive: 0,
        may_receive_clones: true,
    };
    let jobs = vec![GreedyJob {
        max_clones: 2,
        ln_pocd_rest: 0.0,
        ln_pocd_target: f64::INFINITY,
        tasks: vec![task],
    }];
    let mut state = Incremental::new(GreedyInput { kappa: 1, jobs }, GreedyMode::Guarded);
    state.set_task(0, 1, task);
    state.set_task(1, 0, task);
    assert_eq!(state.omega(), 1);
    assert!(state.job(1).is_none());
}
