use super::*;
use crate::fixtures::{attempt, job, world};
use crate::snapshot::KillKind;

#[test]
fn usable_is_the_smaller_of_the_share_and_what_others_leave() {
    let cpu = |share, others| {
        let snapshot = world(0.0, 2, 4000).others(0, others).job(job("a")).build();
        usable(&snapshot, share).get("cpu")
    };
    assert_eq!(cpu(1.0, 0), 8000);
    assert_eq!(cpu(0.5, 1000), 4000);
    assert_eq!(cpu(1.0, 1000), 7000);
}

#[test]
fn nodes_that_no_active_job_may_use_are_no_capacity() {
    let eligible = |node| job("a").with(|job| job.eligible_nodes = [NodeIndex(node)].into());
    let snapshot = world(0.0, 2, 4000).job(eligible(1)).build();
    assert_eq!(usable(&snapshot, 1.0).get("cpu"), 4000);
    let ending = eligible(1).ending(crate::snapshot::Conclusion::Complete);
    let snapshot = world(0.0, 2, 4000).job(ending).build();
    assert_eq!(usable(&snapshot, 1.0).get("cpu"), 0);
}

#[test]
fn an_attempt_holds_capacity_until_it_is_gone() {
    let attempts = [
        attempt(0).on(0),
        attempt(1).on(1).killed(KillKind::Prune, 1.0),
        attempt(2).failed(3.0),
        attempt(3).launching(),
    ];
    let snapshot = world(9.0, 2, 4000).job(job("a").task(0, attempts)).build();
    let capacity = Capacity::new(&snapshot, 1.0);
    assert_eq!(capacity.used.get("cpu"), 3000);
    assert_eq!(capacity.times_free(0), 5);
    assert_eq!(
        times_in(&capacity.free_after_kills.total, &capacity.demands[0]),
        6
    );
}

#[test]
fn a_first_attempt_that_fits_nowhere_surges_and_holds_nothing() {
    let waiting = job("a")
        .task(0, [attempt(0).on(0)])
        .task(1, [attempt(0).pending()]);
    let snapshot = world(9.0, 1, 1000).job(waiting).build();
    let capacity = Capacity::new(&snapshot, 1.0);
    assert_eq!(capacity.surging, [0]);
    assert_eq!(*capacity.free.total, [0, 109]);
}

#[test]
fn launches_use_avoided_and_slow_nodes_last_and_full_ones_never() {
    let snapshot = world(0.0, 5, 2000).others(0, 2000).job(job("a")).build();
    let mut capacity = Capacity::new(&snapshot, 1.0);
    let demand = capacity.demands[0].clone();
    let worse: [&[NodeIndex]; 2] = [&[NodeIndex(4)], &[NodeIndex(3)]];
    let mut queue = NodeQueue::new(&snapshot.jobs[0], &demand, &capacity.free, worse);
    let mut found = Vec::new();
    loop {
        let free = &capacity.free;
        let fits = |node| free.fits_node(node, &demand);
        let Some(node) = queue.find(fits, &[NodeIndex(1)]) else {
            break;
        };
        capacity.launch(0, Some(node));
        found.push(node.0);
    }
    assert_eq!(found, [2, 2, 4, 4, 3, 3, 1, 1]);
}
