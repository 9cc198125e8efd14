//! LASER by trained networks.

use std::sync::Arc;

use super::speculators::{cluster, uneven};
use super::{brief, plan_of, report};
use crate::fixtures::{line, networks_of};
use crate::ids::{JobKey, TaskIndex};
use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::policy::laser::{JOB_FEATURES, Regressor, Source, TASK_FEATURES};
use crate::policy::{Laser, Speculation};
use crate::snapshot::Snapshot;

const TEXT: &str = "laser{tau_est_seconds=25}";

fn policy(task: Regressor, job: Regressor) -> Policy {
    let machine = line(&JOB_FEATURES, 100.0, &[("extra", 10.0)]);
    let networks = Arc::new(networks_of(1, [task, job, machine]));
    let policy: Policy = TEXT.parse().unwrap();
    policy.with_networks(networks).unwrap()
}

fn decided(snapshot: &Snapshot, policy: &Policy) -> (Plan, Memory) {
    plan_of(snapshot, &Memory::default(), policy)
}

/// Everybody ends at 50 s, but for those who have done less than a fifth.
fn by_progress() -> Regressor {
    line(&TASK_FEATURES, 250.0, &[("progress", -500.0)])
}

#[test]
fn the_networks_say_who_is_late_and_how_many_attempts_a_straggler_gets() {
    let snapshot = cluster().job(uneven()).build();
    let judged = |task: Regressor, job: Regressor| {
        let (plan, memory) = decided(&snapshot, &policy(task, job));
        let of_job = memory.speculation(&JobKey::from("a"));
        let late = report(&plan, "a").stragglers.clone();
        (late, of_job.judged, of_job.copies, brief(&plan).len())
    };
    // The deadline is at 160 s: in time from r = 3 on, and each r costs more.
    let job = || line(&JOB_FEATURES, 189.0, &[("extra", -10.0)]);
    let slow = vec![TaskIndex(7)];
    assert_eq!(
        judged(by_progress(), job()),
        (slow.clone(), slow, Some(3 + 2), 4)
    );
    // Never in time: the cheapest.
    let never = line(&JOB_FEATURES, 500.0, &[]);
    assert_eq!(judged(by_progress(), never).2, Some(2));
    // Nobody is late, or everybody.
    let none = line(&TASK_FEATURES, 100.0, &[]);
    assert_eq!(judged(none, job()).0, [TaskIndex(0); 0]);
    let all = line(&TASK_FEATURES, 200.0, &[]);
    let (late, judged, ..) = judged(all, job());
    assert_eq!(late, judged);
    assert!(late.len() > 1, "{late:?}");
}

#[test]
fn other_policies_know_no_networks() {
    let networks = policy(by_progress(), by_progress()).networks().cloned();
    let other: Policy = "srquant".parse().unwrap();
    let error = other.with_networks(networks.unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("`srquant` knows no networks"),
        "{error}"
    );
}

#[test]
fn a_drawn_number_is_the_same_in_every_pass_and_all_occur() {
    let drawn = |key: &str, seed: u64| {
        let text: Policy = TEXT.parse().unwrap();
        let laser = Laser {
            source: Source::Drawn(seed),
            ..match text.speculation {
                Speculation::Laser(laser) => laser,
                other => panic!("{other:?}"),
            }
        };
        let policy = Policy {
            speculation: Speculation::Laser(laser),
            ..Policy::default()
        };
        let job = uneven().with(|job| job.key = JobKey::from(key));
        let snapshot = cluster().job(job).build();
        let (_, memory) = decided(&snapshot, &policy);
        memory.speculation(&JobKey::from(key)).copies.unwrap() - 2
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
