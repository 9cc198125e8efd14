use super::*;

fn job(id: u64, tasks: u32, t_min: f64, beta: f64) -> CloneJob {
    CloneJob {
        id,
        tasks,
        distribution: ParetoDistribution { t_min, beta },
    }
}

fn p2(machines: u64) -> P2 {
    P2 {
        gamma: 0.05,
        machines,
        copies_max: 4,
    }
}

#[test]
fn one_copy_each_that_does_not_fit_is_infeasible() {
    let jobs = [job(1, 3, 1.0, 2.0), job(2, 4, 1.0, 2.0)];
    let error = solve_relaxed(&jobs, &p2(6)).unwrap_err();
    assert_eq!((error.needed, error.machines), (7, 6));
    let tight = solve_relaxed(&jobs, &p2(7)).unwrap();
    assert_eq!(round_copies(&jobs, &p2(7), &tight), [1, 1]);
}

#[test]
fn without_jobs_there_is_nothing_to_solve() {
    let relaxed = solve_relaxed(&[], &p2(0)).unwrap();
    assert_eq!((relaxed.copies.len(), relaxed.price), (0, 0.0));
}

#[test]
fn at_the_optimum_no_exchange_of_machines_gains() {
    let jobs = [
        job(1, 10, 1.0, 2.0),
        job(2, 20, 2.0, 1.4),
        job(3, 5, 1.0, 0.8),
    ];
    let p2 = P2 {
        gamma: 0.01,
        machines: 80,
        copies_max: 8,
    };
    let relaxed = solve_relaxed(&jobs, &p2).unwrap();
    let best = objective(&jobs, &relaxed.copies, p2.gamma);
    assert!((machines_of(&jobs, &relaxed.copies) - 80.0).abs() < 1e-9);
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
        let mut copies = relaxed.copies.clone();
        copies[from] -= 1e-3 / f64::from(jobs[from].tasks);
        copies[to] += 1e-3 / f64::from(jobs[to].tasks);
        assert!(objective(&jobs, &copies, p2.gamma) < best);
    }
}

#[test]
fn rounded_copies_never_take_more_machines_than_there_are() {
    for machines in 30..90 {
        let jobs = [
            job(1, 10, 1.0, 2.0),
            job(2, 13, 2.0, 1.0),
            job(3, 7, 5.0, f64::INFINITY),
        ];
        let relaxed = solve_relaxed(&jobs, &p2(machines)).unwrap();
        let copies = round_copies(&jobs, &p2(machines), &relaxed);
        let whole: Vec<f64> = copies.iter().map(|&copies| f64::from(copies)).collect();
        assert!(machines_of(&jobs, &whole) <= machines as f64);
        assert_eq!(copies[2], 1, "times that do not vary gain nothing");
    }
}

#[test]
fn a_job_whose_mean_is_infinite_gets_its_second_copy_first() {
    let jobs = [job(1, 2, 50.0, 1.5), job(2, 2, 1.0, 0.9)];
    let none = Relaxed {
        copies: vec![1.0, 1.0],
        price: 0.0,
    };
    assert_eq!(round_copies(&jobs, &p2(6), &none), [1, 2]);
}
