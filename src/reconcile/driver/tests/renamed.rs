//! Statuses with the condition names that shed used before its first release.

use super::*;
use crate::api::former_names::{REASONS, TYPES};

/// Replaces every present name in the conditions by its old one.
fn age(api: &Apiserver) {
    edit(api, |job| {
        let status = job.status.as_mut().unwrap();
        for condition in &mut status.conditions {
            let old = TYPES.iter().find(|(_, new)| *new == condition.type_);
            if let Some((old, _)) = old {
                (*old).clone_into(&mut condition.type_);
            }
            let old = REASONS.iter().find(|(_, new)| *new == condition.reason);
            if let Some((old, _)) = old {
                (*old).clone_into(&mut condition.reason);
            }
        }
    });
}

/// Adds a condition with old names.
fn add(api: &Apiserver, type_: &str, status: &str, reason: &str, message: &str) {
    edit(api, |job| {
        let status_ = job.status.as_mut().unwrap();
        status_
            .conditions
            .push(k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
                observed_generation: Some(1),
                last_transition_time: clock::time(Instant(5000)),
            });
    });
}

fn writes(api: &Apiserver) -> usize {
    let said = api.said();
    let writes = said.iter().filter(|words| *words == "PUT job status");
    assert!(
        !said.iter().any(|words| words.contains("event")),
        "{said:?}"
    );
    writes.count()
}

#[tokio::test]
async fn a_running_job_changes_to_the_new_names_in_one_write() {
    let (api, process) = two_running("").await;
    add(
        &api,
        "TasksWaiting",
        "True",
        "CapacityShort",
        "tasks wait (since 1970-01-01T00:00:01Z)",
    );
    add(&api, "EndUnconfirmed", "False", "AllConfirmed", "gone");
    add(
        &api,
        api::ATTEMPTS_BLOCKED,
        "False",
        "AttemptsStart",
        "attempts start",
    );
    // After a roll-back both names may be there.
    add(
        &api,
        api::TERMINATION_UNCONFIRMED,
        "False",
        "AllConfirmed",
        "gone",
    );
    // A new process has no memory.
    drop(process);
    let process = Process::start(&api);
    process.look(&api).await.unwrap();
    process.look(&api).await.unwrap();
    assert_eq!(writes(&api), 1);
    let status = api.job().status.clone().unwrap();
    let told = status.conditions.iter();
    let told: Vec<_> = told
        .map(|one| (&*one.type_, &*one.status, &*one.reason))
        .collect();
    let expected = [
        (api::TASKS_PENDING, "False", api::reason::NO_TASKS_PENDING),
        (
            api::TERMINATION_UNCONFIRMED,
            "False",
            api::reason::TERMINATION_CONFIRMED,
        ),
        (
            api::ATTEMPTS_BLOCKED,
            "False",
            api::reason::ATTEMPTS_STARTING,
        ),
    ];
    assert!(expected.iter().all(|one| told.contains(one)), "{told:?}");
    let types: std::collections::BTreeSet<_> = told.iter().map(|(type_, ..)| type_).collect();
    assert_eq!(types.len(), told.len(), "{told:?}");
    assert!(
        !told
            .iter()
            .any(|(type_, ..)| TYPES.iter().any(|(old, _)| old == type_)),
        "{told:?}"
    );
    for met in [false, true] {
        if met {
            api.exit((0, 0), 0, clock::now());
            api.exit((1, 0), 0, clock::now());
            for _ in 0..3 {
                process.look(&api).await.unwrap();
            }
        }
        assert_eq!(process.deadlines(&api), [u64::from(met), 0, 0]);
    }
}

#[tokio::test]
async fn the_next_leader_does_not_announce_a_miss_again() {
    let (api, process) = two_running("onMiss: Continue, deadline: {within: 1s}").await;
    for _ in 0..2 {
        process.look(&api).await.unwrap();
    }
    let missed = api.condition(api::DEADLINE_MISSED).unwrap();
    assert_eq!(missed.0, "True");
    add(&api, "TasksWaiting", "True", "CapacityShort", "tasks wait");
    age(&api);
    api.said();
    let next = Process::start(&api);
    for _ in 0..2 {
        next.look(&api).await.unwrap();
    }
    assert_eq!(writes(&api), 1);
    assert!(api.condition(api::TASKS_PENDING).is_some());
}

#[tokio::test]
async fn a_finished_job_is_not_written_for_its_names() {
    // The second job failed before its deadline, which has a reason under an old name too.
    for (code, counts) in [(0, [1, 0, 0]), (1, [0, 0, 1])] {
        let (api, process) = two_running("backoffLimitPerIndex: 0").await;
        for task in 0..2 {
            api.exit((task, 0), code, clock::now());
        }
        for _ in 0..4 {
            process.look(&api).await.unwrap();
        }
        assert_eq!(process.deadlines(&api), counts);
        age(&api);
        add(&api, "TasksWaiting", "False", "TasksRun", "none waits");
        let before = api.job().status.clone();
        api.said();
        let next = Process::start(&api);
        for _ in 0..2 {
            next.look(&api).await.unwrap();
        }
        assert_eq!(writes(&api), 0);
        assert_eq!(api.job().status, before);
        assert_eq!(next.deadlines(&api), counts);
    }
}
