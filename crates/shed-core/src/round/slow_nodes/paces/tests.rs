use super::*;
use crate::decide::node_paces;
use crate::fixtures::{JobBuilder, attempt, job, world};
use crate::memory::Memory;

/// Two tasks on node 0 that take `slow` times as long as the six on other nodes.
fn tenant_job(key: &str, tenant: &str, slow: f64) -> JobBuilder {
    let on = |node: usize, times: f64| attempt(0).on(node).progress(0.4 / times, 39.0);
    let built = job(key).tenant(tenant).tasks(8).deadline_in(500.0);
    let built = built.task(0, [on(0, slow)]).task(1, [on(0, slow)]);
    (2..8).fold(built, |built, task| {
        built.task(task, [on(1 + task as usize % 3, 1.0)])
    })
}

fn paces(jobs: impl IntoIterator<Item = JobBuilder>) -> Vec<NodePace> {
    let cluster = world(40.0, 5, 64_000);
    let cluster = jobs.into_iter().fold(cluster, |world, job| world.job(job));
    let policy = "shed-prime".parse().unwrap();
    node_paces(&cluster.build(), &Memory::default(), &policy)
}

#[test]
fn a_slow_node_has_witnesses_and_an_idle_node_has_none() {
    let paces = paces([tenant_job("a", "ours", 3.0)]);
    let slow = &paces[0];
    assert!(slow.is_slow && slow.pace.unwrap() < 0.67, "{slow:?}");
    assert_eq!(slow.avoided_by, [Tenant::from("ours")]);
    assert_eq!(slow.observed, Some(Instant(40_000)));
    assert_eq!(slow.witnesses.len(), 1);
    let witness = &slow.witnesses[0];
    assert_eq!((witness.tasks, &*witness.job.0), (2, "a"));
    assert!((witness.pace - 1.0 / 3.0).abs() < 0.01, "{witness:?}");
    let usual = &paces[1];
    assert!(!usual.is_slow && usual.avoided_by.is_empty(), "{usual:?}");
    assert!((usual.pace.unwrap() - 1.0).abs() < 0.2, "{usual:?}");
    let unknown = &paces[4];
    assert_eq!((unknown.pace, unknown.is_slow), (None, false));
    assert!(unknown.witnesses.is_empty());
}

#[test]
fn another_tenants_attempts_count_as_one_witness() {
    let ours = || tenant_job("a", "ours", 1.0);
    let two = paces([tenant_job("b", "theirs", 3.0), ours()]);
    assert_eq!(two[0].avoided_by, [Tenant::from("theirs")]);
    let tenants: Vec<&str> = two[0].witnesses.iter().map(|it| &*it.tenant.0).collect();
    assert_eq!(tenants, ["ours", "theirs"]);
    let alone = paces([tenant_job("b", "theirs", 3.0)]);
    let (alone, two) = (alone[0].pace.unwrap(), two[0].pace.unwrap());
    // The other tenant's usual times count too, as one witness.
    assert!(two > alone && two < 0.75, "{two} {alone}");
}
