//! Requests of planner and reconciler to an apiserver that refuses pods, over some minutes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::cluster::pod::AttemptId;
use crate::reconcile::mock::{Fate, pod_name};

const QUOTA: &str = "pods \"p\" is forbidden: exceeded quota: ten";
const DENIED: &str =
    "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request";

/// A cluster on which time passes only between the seconds of a test, however long their passes take.
fn timed_cluster(change: impl FnOnce(&mut DeadlineJob)) -> (Apiserver, Process) {
    let (api, process) = cluster(change);
    process.context.clock.freeze_for_tests();
    (api, process)
}

/// Plans, and carries out the job's plan; then a second passes.
async fn second(api: &Apiserver, process: &Process) -> Vec<String> {
    process.context.stores.show(api.pods());
    let view = observation::view(&process.context.shared);
    let (plan, _) = decide(&view.snapshot, Memory::default(), &policy());
    assert_eq!(plan_check(&view.snapshot, &policy(), &plan), []);
    let uid = JobKey::from(api.job().metadata.uid.as_deref().unwrap_or_default());
    let of_job = plan.actions.into_iter().filter(|one| one.job == uid);
    process.plan(&api.job(), of_job.map(|planned| planned.action).collect());
    let _ = process.look(api).await;
    process.context.clock.skip_for_tests(Span::from_seconds(1));
    api.said()
}

fn creations(said: &[String]) -> usize {
    let posts = said.iter().filter(|words| words.starts_with("POST pod"));
    posts.count()
}

#[tokio::test]
async fn a_template_whose_creates_are_all_denied_costs_few_creates() {
    let template = "template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}";
    for (code, reason, message, reported, most) in [
        (422, "Invalid", DENIED, "PodInvalid", 6),
        (403, "Forbidden", DENIED, "PodForbidden", 6),
        (
            500,
            "InternalError",
            "failed calling webhook",
            "PodCreationFailed",
            16,
        ),
    ] {
        let (api, process) = timed_cluster(|job| {
            job.spec = fixtures::job(&format!("{{completions: 5000, {template}}}")).spec;
        });
        api.refuse("POST pod", code, reason, message);
        let (mut posts, mut puts) = (0, 0);
        for _ in 0..600 {
            let said = second(&api, &process).await;
            posts += creations(&said);
            puts += said
                .iter()
                .filter(|words| *words == "PUT job status")
                .count();
        }
        assert!(
            (2..=most).contains(&posts),
            "{reported}: {posts} in ten minutes"
        );
        assert!(
            puts <= 2 * most + 2,
            "{reported}: {puts} writes of the ledger"
        );
        let blocked = api.condition(crate::api::ATTEMPTS_BLOCKED);
        assert_eq!(blocked, Some(("True".to_owned(), reported.to_owned())));
        let (plan, _) = decide(
            &observation::view(&process.context.shared).snapshot,
            Memory::default(),
            &policy(),
        );
        assert_eq!(plan.report.capacity.used.get("cpu"), 0, "{reported}");
    }
}

#[tokio::test]
async fn a_quota_is_kept_full_without_refusals_of_what_does_not_fit() {
    const TASKS: u32 = 60;
    const MOST: usize = 10;
    const RUNS: u32 = 5;
    let (api, process) = timed_cluster(|job| {
        let template = "template: {spec: {containers: [{name: task, image: i}]}}";
        job.spec = fixtures::job(&format!("{{completions: {TASKS}, {template}}}")).spec;
    });
    let left = Arc::new(AtomicUsize::new(MOST));
    let of_quota = Arc::clone(&left);
    api.script(move |call| {
        let take = |left: usize| left.checked_sub(1);
        let may = || of_quota.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        match call.words.starts_with("POST pod") && may().is_err() {
            true => Fate::Refused(403, "Forbidden", QUOTA),
            false => Fate::Served,
        }
    });
    let mut began: BTreeMap<AttemptId, u32> = BTreeMap::new();
    let mut refused = 0_i64;
    let mut seconds = 0;
    while api
        .job()
        .status
        .as_ref()
        .is_none_or(|status| status.attempts.won < i64::from(TASKS))
    {
        assert!(seconds < 60, "{:?}", api.job().status);
        for id in began
            .iter()
            .filter(|(_, at)| **at + RUNS == seconds)
            .map(|(id, _)| *id)
        {
            api.exit(id, 0, clock::now());
        }
        let running = began.values().filter(|at| **at + RUNS > seconds).count();
        left.store(MOST - running, Ordering::SeqCst);
        let said = second(&api, &process).await;
        let of_job = |words: &String| {
            let (task, number) = words.strip_prefix("POST pod ")?.split_once('-')?;
            Some((task.parse().ok()?, number.parse().ok()?))
        };
        for id in said.iter().filter_map(of_job) {
            let name = pod_name(&api.job(), id);
            if api.world.lock().pods.contains_key(&name) {
                api.run(id);
                began.insert(id, seconds);
            } else {
                refused += 1;
            }
        }
        seconds += 1;
    }
    // Six rounds of five seconds, and a second for each turn.
    assert!(seconds <= 40, "{seconds} s");
    let counts = api.job().status.as_ref().unwrap().attempts;
    let launched = counts.originals + counts.retries;
    assert_eq!(
        (counts.refused, launched),
        (refused, i64::from(TASKS) + refused)
    );
    // The refused creations of the batch that reached the quota, and one more after a wait.
    assert!(refused <= 8, "{refused} refused");
}
