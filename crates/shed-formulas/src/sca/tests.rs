use shed_core::estimate::pareto::ParetoDistribution;

use super::*;

fn job(id: u64, tasks: u32, t_min: f64, beta: f64) -> CloneJob {
    CloneJob {
        id,
        tasks,
        distribution: ParetoDistribution { t_min, beta },
    }
}

fn new(job: CloneJob) -> SlotJob {
    SlotJob {
        job,
        started: false,
        unassigned: job.tasks,
        running: Vec::new(),
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
fn new_jobs_that_just_fill_the_machines_start_one_copy_each() {
    let jobs = [new(job(2, 3, 1.0, 2.0)), new(job(1, 3, 2.0, 2.0))];
    let full = sca_round(&jobs, &p2(6));
    assert_eq!((full.mode, full.machines_left), (ScaMode::Srpt, 0));
    let order: Vec<u64> = full.assigned.iter().map(|start| start.job).collect();
    assert_eq!(order, [2, 1]);
    let with_two_more = sca_round(&jobs, &p2(7));
    assert_eq!(
        (with_two_more.mode, with_two_more.machines_left),
        (ScaMode::P2, 1)
    );
}

#[test]
fn started_jobs_go_first_and_leave_new_ones_what_is_left() {
    let started = SlotJob {
        started: true,
        unassigned: 5,
        ..new(job(9, 8, 1.0, 2.0))
    };
    let round = sca_round(&[new(job(1, 2, 1.0, 2.0)), started], &p2(6));
    let starts: Vec<(u64, u32)> = round
        .assigned
        .iter()
        .map(|start| (start.job, start.tasks))
        .collect();
    assert_eq!(starts, [(9, 5), (1, 1)]);
}
