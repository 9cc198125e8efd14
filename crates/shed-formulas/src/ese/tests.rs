use super::*;
use crate::sca::RunningTask;

#[test]
fn the_factor_is_where_duplication_costs_least() {
    for alpha in [1.2, 2.0, 5.0] {
        let best = straggler_factor(alpha).unwrap();
        let least = duplication_cost(alpha, best).unwrap();
        for sigma in [0.1, 0.5 * best, 0.99 * best, 1.01 * best, 3.0 * best] {
            assert!(duplication_cost(alpha, sigma).unwrap() > least);
        }
    }
}

/// The cost by its definition: over times x of Pareto(2) and the remaining time y, uniform on \[0,
/// x\].
#[test]
fn the_cost_is_the_mean_over_times_and_looks() {
    let (alpha, sigma): (f64, f64) = (2.0, 1.2);
    let a = sigma * 2.0;
    let mut sum = 0.0;
    let steps = 2000;
    for time in 0..steps {
        // x by the inverse of its distribution, at the middle of equal shares.
        let share = (f64::from(time) + 0.5) / f64::from(steps);
        let x = libm::pow(1.0 - share, -1.0 / alpha);
        for look in 0..steps {
            let y = x * (f64::from(look) + 0.5) / f64::from(steps);
            let both = if y <= 1.0 { y } else { 2.0 - 1.0 / y };
            sum += if y > a { x - y + 2.0 * both } else { x };
        }
    }
    let mean = sum / f64::from(steps) / f64::from(steps) / 2.0;
    // The tail of x beyond the last share is missing: about 1/√steps of the mean.
    let found = duplication_cost(alpha, sigma).unwrap();
    assert!((mean - found).abs() < 0.02, "{mean} is not {found}");
}

#[test]
fn times_that_do_not_vary_cost_what_is_duplicated_too_early() {
    assert_eq!(duplication_cost(f64::INFINITY, 1.0), Some(1.0));
    assert_eq!(duplication_cost(f64::INFINITY, 0.0), Some(1.5));
    assert_eq!(duplication_cost(0.9, 1.0), None);
}

fn job(id: u64, tasks: u32, t_min: f64) -> CloneJob {
    CloneJob {
        id,
        tasks,
        distribution: ParetoDistribution { t_min, beta: 2.0 },
    }
}

fn running(id: u64, rest: &[(u32, f64)]) -> SlotJob {
    let tasks = (0..).zip(rest);
    SlotJob {
        job: job(id, rest.len() as u32, 10.0),
        started: true,
        unassigned: 0,
        running: tasks
            .map(|(task, &(copies, t_rem))| RunningTask {
                task,
                copies,
                t_rem,
            })
            .collect(),
    }
}

#[test]
fn only_single_copies_beyond_the_factor_are_duplicated() {
    // σ*·E[x] is 34.14 for α = 2.
    let jobs = [running(1, &[(1, 34.2), (2, 90.0), (1, 34.1), (1, 50.0)])];
    let round = ese_round(&jobs, 10, &Ese::default());
    assert_eq!(round.backups, [(1, 3), (1, 0)]);
    assert_eq!(round.machines_left, 8);
    assert_eq!(ese_round(&jobs, 1, &Ese::default()).backups, [(1, 3)]);
}

#[test]
fn a_job_with_infinite_mean_is_not_duplicated_by_default() {
    let mut endless = running(1, &[(1, 1e9)]);
    endless.job.distribution.beta = 1.0;
    assert_eq!(ese_round(&[endless], 5, &Ese::default()).backups, []);
}

#[test]
fn small_new_jobs_are_cloned_and_large_ones_only_started() {
    let new = |job: CloneJob| SlotJob {
        job,
        started: false,
        unassigned: job.tasks,
        running: Vec::new(),
    };
    let jobs = [new(job(1, 40, 10.0)), new(job(2, 3, 10.0))];
    let round = ese_round(&jobs, 20, &Ese::default());
    let starts: Vec<(u64, u32, bool)> = round
        .assigned
        .iter()
        .map(|start| (start.job, start.tasks, start.copies > 1))
        .collect();
    assert_eq!(starts[0], (2, 3, true));
    assert_eq!((starts[1].0, starts[1].2), (1, false));
    assert_eq!(round.machines_left, 0);
    let slow = Ese {
        xi: 5.0,
        ..Ese::default()
    };
    let round = ese_round(&jobs, 20, &slow);
    assert!(round.assigned.iter().all(|start| start.copies == 1));
}
