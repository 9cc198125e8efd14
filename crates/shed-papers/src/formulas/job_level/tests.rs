use proptest::prelude::*;
use shed_core::estimate::pareto::ln_miss;

use super::*;

fn single(kappa: i64, max_clones: u32, tasks: u32) -> u32 {
    let ln_miss_attempt = ln_miss(0.0, 120.0, 500.0, 1.5);
    let input = JobLevelInput {
        kappa,
        max_clones,
        jobs: vec![JobLevelJob {
            tasks,
            ln_miss_attempt,
        }],
    };
    alloc_job(&input, JobLevelMode::Paper).clones[0]
}

#[test]
fn a_single_job_gets_what_the_closed_form_says() {
    for kappa in -3..60 {
        for tasks in 1..7 {
            let closed = (kappa / i64::from(tasks)).clamp(0, 5);
            assert_eq!(i64::from(single(kappa, 5, tasks)), closed);
        }
    }
}

#[test]
fn a_job_without_tasks_or_without_a_cap_ends_the_loop() {
    assert_eq!(single(100, u32::MAX, 0), 0);
    assert_eq!(single(100, u32::MAX, 3), 33);
    assert_eq!(single(100, 0, 3), 0);
}

#[test]
fn a_hopeless_job_is_served_first_only_as_printed() {
    let input = JobLevelInput {
        kappa: 12,
        max_clones: 5,
        jobs: vec![
            JobLevelJob {
                tasks: 2,
                ln_miss_attempt: -1.0,
            },
            JobLevelJob {
                tasks: 2,
                ln_miss_attempt: 0.0,
            },
        ],
    };
    assert_eq!(alloc_job(&input, JobLevelMode::Paper).clones, [1, 5]);
    assert_eq!(alloc_job(&input, JobLevelMode::Paper).omega, 12);
    let guarded = alloc_job(&input, JobLevelMode::Guarded);
    assert_eq!((guarded.clones, guarded.omega), (vec![5, 0], 10));
}

/// The winner of a scan by ascending index, which replaces its incumbent only for a key that is
/// lower by more than the tie.
fn scan(keys: impl IntoIterator<Item = (usize, f64)>) -> Option<usize> {
    let mut incumbent: Option<(usize, f64)> = None;
    for (index, key) in keys {
        let replaces = match incumbent {
            None => true,
            Some((_, held)) if key.is_infinite() || held.is_infinite() => key < held,
            Some((_, held)) => held - key > 1e-11 * key.abs().max(held.abs()),
        };
        if replaces {
            incumbent = Some((index, key));
        }
    }
    incumbent.map(|(index, _)| index)
}

/// Shed Algorithm 1, steps 2 to 4, as a plain scan.
fn scanned(input: &JobLevelInput, mode: JobLevelMode) -> Vec<u32> {
    let mut clones = vec![0u32; input.jobs.len()];
    let mut open: Vec<usize> = (0..input.jobs.len())
        .filter(|&job| {
            let hopeless = input.jobs[job].ln_miss_attempt >= 0.0;
            input.max_clones > 0
                && input.jobs[job].tasks > 0
                && !(hopeless && mode == JobLevelMode::Guarded)
        })
        .collect();
    let mut omega = 0;
    loop {
        let key = |&job: &usize| {
            let the_job = &input.jobs[job];
            (
                job,
                ln_job_pocd_uniform(the_job.ln_miss_attempt, clones[job] + 1, the_job.tasks),
            )
        };
        let Some(job) = scan(open.iter().map(key)) else {
            return clones;
        };
        let needed = i64::from(input.jobs[job].tasks);
        if needed + omega > input.kappa {
            open.retain(|&other| other != job);
            continue;
        }
        clones[job] += 1;
        omega += needed;
        if clones[job] == input.max_clones {
            open.retain(|&other| other != job);
        }
    }
}

/// Mostly ordinary, often from a small set so that ties occur, sometimes extreme.
fn any_ln_miss() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -8.0..-0.01,
        4 => prop::sample::select(vec![-0.25, -0.5, -1.0, -2.0, -4.0]),
        1 => prop::sample::select(vec![0.0, -1e-9, -60.0, -800.0, f64::NEG_INFINITY]),
    ]
}

fn any_input() -> impl Strategy<Value = JobLevelInput> {
    let job = (0u32..9, any_ln_miss()).prop_map(|(tasks, ln_miss_attempt)| JobLevelJob {
        tasks,
        ln_miss_attempt,
    });
    let bound = prop_oneof![4 => 0u32..6, 1 => Just(u32::MAX)];
    (-3i64..80, bound, prop::collection::vec(job, 0..6)).prop_map(|(kappa, max_clones, jobs)| {
        JobLevelInput {
            kappa,
            max_clones,
            jobs,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn clones_are_those_of_the_plain_scan_and_fit(
        input in any_input(), guarded in any::<bool>(),
    ) {
        let mode = if guarded { JobLevelMode::Guarded } else { JobLevelMode::Paper };
        let outcome = alloc_job(&input, mode);
        prop_assert_eq!(&outcome.clones, &scanned(&input, mode));
        prop_assert!(outcome.omega <= input.kappa.max(0));
        let used = outcome.clones.iter().zip(&input.jobs);
        let used: i64 = used.map(|(&r, job)| i64::from(r) * i64::from(job.tasks)).sum();
        prop_assert_eq!(used, outcome.omega);
        prop_assert!(outcome.clones.iter().all(|&clones| clones <= input.max_clones));
    }

    /// Single jobs may fall, because the capacity left by a large job may fit it now.
    #[test]
    fn more_capacity_never_lowers_the_least_pocd(
        input in any_input(), more in 1i64..30,
    ) {
        let least = |input: &JobLevelInput| {
            let outcome = alloc_job(input, JobLevelMode::Guarded);
            let possible = outcome.ln_pocd.into_iter().filter(|ln_pocd| ln_pocd.is_finite());
            possible.fold(0.0, f64::min)
        };
        let larger = JobLevelInput { kappa: input.kappa + more, ..input.clone() };
        let (larger, smaller) = (least(&larger), least(&input));
        // Up to the rounding of a sum.
        prop_assert!(larger >= smaller - 1e-12 * smaller.abs());
    }
}
