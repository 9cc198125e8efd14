//! LASER by trained networks.

use std::sync::Arc;

use super::speculators::{cluster, policy as policy_of, remembered, uneven};
use shed_core::fixtures::{brief, plan_of};
use shed_core::ids::{JobKey, TaskIndex};
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::Policy;
use shed_core::policy::Speculation;
use shed_core::snapshot::Snapshot;
use shed_papers::Laser;
use shed_papers::laser::fixtures::{line, networks, networks_of};
use shed_papers::laser::{JOB_FEATURES, Regressor, Source, TASK_FEATURES};
use shed_papers::state::Decided;

const TEXT: &str = "laser{tau_est_seconds=25}";

fn policy(task: Regressor, job: Regressor) -> Policy {
    let machine = line(&JOB_FEATURES, 100.0, &[("extra", 10.0)]);
    let networks = Arc::new(networks_of(1, [task, job, machine]));
    by(Source::Networks(networks))
}

fn by(source: Source) -> Policy {
    let policy = policy_of(TEXT);
    let laser = Laser {
        source,
        ..policy.speculation.as_rule::<Laser>().unwrap().clone()
    };
    Policy {
        speculation: Speculation::new(laser),
        ..policy
    }
}

fn decided(snapshot: &Snapshot, policy: &Policy) -> (Plan, Memory) {
    plan_of(snapshot, &Memory::default(), policy)
}

/// All tasks end at 50 s, except those with a progress below a fifth.
fn by_progress() -> Regressor {
    line(&TASK_FEATURES, 250.0, &[("progress", -500.0)])
}

#[test]
fn the_networks_choose_late_tasks_and_the_number_of_attempts() {
    let snapshot = cluster().job(uneven()).build();
    let judged = |task: Regressor, job: Regressor| {
        let (plan, memory) = decided(&snapshot, &policy(task, job));
        let of_job = remembered::<Decided>(&memory, "a");
        (of_job.judged, of_job.copies, brief(&plan).len())
    };
    // The deadline is at 160 s: in time from r = 3 on, and each r costs more.
    let job = || line(&JOB_FEATURES, 189.0, &[("extra", -10.0)]);
    let slow = vec![TaskIndex(7)];
    assert_eq!(judged(by_progress(), job()), (slow, Some(3 + 2), 4));
    // Never in time: the cheapest.
    let never = line(&JOB_FEATURES, 500.0, &[]);
    assert_eq!(judged(by_progress(), never).1, Some(2));
    // No task is late, or every task.
    let none = line(&TASK_FEATURES, 100.0, &[]);
    assert_eq!(judged(none, job()).0, [TaskIndex(0); 0]);
    let all = line(&TASK_FEATURES, 200.0, &[]);
    let (late, ..) = judged(all, job());
    assert!(late.len() > 1, "{late:?}");
}

#[test]
fn networks_are_read_from_a_file_by_laser_alone() {
    let by_file = by(Source::Networks(Arc::new(networks(3))));
    let files = by_file.speculation.files();
    let read = policy_of(TEXT).with_files(&files).unwrap();
    assert_eq!(read.speculation, by_file.speculation);
    let error = policy_of("srquant").with_files(&files).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`srquant` reads no file `laser.json`"),
        "{error}"
    );
}

#[test]
fn a_drawn_number_is_the_same_in_every_pass_and_all_occur() {
    let drawn = |key: &str, seed: u64| {
        let policy = by(Source::Drawn(seed));
        let job = uneven().with(|job| job.key = JobKey::from(key));
        let snapshot = cluster().job(job).build();
        let (_, memory) = decided(&snapshot, &policy);
        remembered::<Decided>(&memory, key).copies.unwrap() - 2
    };
    let all: Vec<u32> = (0..60).map(|n| drawn(&format!("job-{n}"), 3)).collect();
    for extra in 0..=4 {
        assert!(all.contains(&extra), "{all:?}");
    }
    assert!(all.iter().all(|extra| *extra <= 4), "{all:?}");
    assert_eq!(drawn("job-1", 3), all[1]);
    let others: Vec<u32> = (0..60).map(|n| drawn(&format!("job-{n}"), 4)).collect();
    assert_ne!(all, others);
}
