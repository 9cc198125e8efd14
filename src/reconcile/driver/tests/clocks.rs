//! Clocks differ and jump, and ends are reported late.

use shed_core::time::Span;

use super::*;

const DEADLINE: i64 = 600;

/// Two running attempts of a job that was created this many seconds ago; its deadline is after 600
/// s.
async fn of_age(seconds: i64, change: &str) -> (Apiserver, Process) {
    let (api, process) = two_running(change).await;
    set_age(&api, seconds);
    (api, process)
}

fn set_age(api: &Apiserver, seconds: i64) {
    let mut world = api.world.lock();
    let metadata = &mut world.job.as_mut().unwrap().metadata;
    let created = clock::now().plus(Span::from_seconds(-seconds));
    metadata.creation_timestamp = Some(clock::time(created));
}

/// Seconds before or after the deadline of a job that is so old.
fn at_deadline(age: i64, after: i64) -> Instant {
    clock::now().plus(Span::from_seconds(DEADLINE - age + after))
}

fn reported(api: &Apiserver, type_: &str) -> Option<String> {
    api.condition(type_).map(|(status, _)| status)
}

#[tokio::test]
async fn kubelets_get_time_to_report_before_a_deadline_stops_attempts() {
    let (api, process) = of_age(DEADLINE + 1, "").await;
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status"], "its deadline is another");
    // Both had finished in time, but their kubelets report that only now.
    set_age(&api, DEADLINE + 8);
    for task in [0, 1] {
        api.exit((task, 0), 0, at_deadline(DEADLINE + 8, -1));
    }
    for _ in 0..2 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(reported(&api, api::COMPLETE).as_deref(), Some("True"));
    assert_eq!(reported(&api, api::DEADLINE_MISSED), None);
    assert_eq!(process.deadlines(&api), [1, 0, 0]);
}

#[tokio::test]
async fn a_soft_miss_is_not_reported_while_a_finish_may_be_unreported() {
    for in_time in [true, false] {
        let (api, process) = of_age(DEADLINE + 1, "onMiss: Continue").await;
        process.look(&api).await.unwrap();
        assert_eq!(reported(&api, api::DEADLINE_MISSED), None);
        set_age(&api, DEADLINE + 8);
        if in_time {
            for task in [0, 1] {
                api.exit((task, 0), 0, at_deadline(DEADLINE + 8, -1));
            }
        }
        // The stores still show both running.
        process.reconcile(api.job()).await.unwrap();
        let missed = (!in_time).then(|| "True".to_owned());
        assert_eq!(reported(&api, api::DEADLINE_MISSED), missed);
        process.look(&api).await.unwrap();
        // A late job counts when it ends.
        let counted = [u64::from(in_time), 0, 0];
        assert_eq!(process.deadlines(&api), counted);
    }
}

#[tokio::test]
async fn a_stopped_attempt_that_had_finished_changes_the_outcome() {
    let (api, process) = of_age(DEADLINE + 8, "").await;
    // The operator dies after the record and before it deletes anything.
    api.refuse("DELETE pod", 500, "InternalError", "etcd is away");
    process.look(&api).await.unwrap_err();
    let ending = |api: &Apiserver| api.job().status.clone().unwrap().ledger.unwrap().ending;
    assert!(ending(&api).is_some());
    assert_eq!(reported(&api, api::DEADLINE_MISSED), None);
    for task in [0, 1] {
        api.exit((task, 0), 0, at_deadline(DEADLINE + 8, -1));
    }
    api.script(|_| Fate::Served);
    let next = Process::start(&api);
    next.look(&api).await.unwrap();
    assert_eq!(reported(&api, api::COMPLETE).as_deref(), Some("True"));
    for type_ in [api::DEADLINE_MISSED, api::FAILURE_TARGET, api::FAILED] {
        assert_eq!(reported(&api, type_), None, "{type_}");
    }
    assert_eq!(next.deadlines(&api), [1, 0, 0]);
}

#[tokio::test]
async fn a_trapped_kill_at_the_deadline_is_no_finish_in_time() {
    let (api, process) = of_age(DEADLINE + 8, "").await;
    process.look(&api).await.unwrap();
    // The node is minutes behind, so that by its stamps both ended before the deadline.
    for task in [0, 1] {
        api.exit((task, 0), 0, at_deadline(DEADLINE + 8, -100));
    }
    for _ in 0..2 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(reported(&api, api::FAILED).as_deref(), Some("True"));
    assert_eq!(
        reported(&api, api::DEADLINE_MISSED).as_deref(),
        Some("True")
    );
    assert_eq!(process.deadlines(&api), [0, 1, 0]);
}

#[tokio::test]
async fn a_fate_is_reported_though_a_deletion_is_never_seen() {
    let (api, process) = of_age(DEADLINE + 8, "").await;
    api.refuse("DELETE pod", 403, "Forbidden", "a policy says no");
    process.look(&api).await.unwrap_err();
    process.look(&api).await.unwrap_err();
    assert_eq!(reported(&api, api::FAILURE_TARGET), None);
    process.context.clock.skip_for_tests(Span::from_seconds(31));
    process.look(&api).await.unwrap_err();
    assert_eq!(reported(&api, api::FAILURE_TARGET).as_deref(), Some("True"));
}

#[tokio::test]
async fn a_node_whose_clock_is_ahead_makes_nothing_late() {
    let (api, process) = of_age(DEADLINE - 20, "").await;
    // They end 20 s before the deadline; the stamps lie 10 s behind it.
    for task in [0, 1] {
        api.exit((task, 0), 0, at_deadline(DEADLINE - 20, 10));
    }
    for _ in 0..2 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(reported(&api, api::COMPLETE).as_deref(), Some("True"));
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.won, status.attempts.late), (2, 0));
    assert_eq!(process.deadlines(&api), [1, 0, 0]);
}

#[tokio::test]
async fn a_pruned_clone_whose_node_is_behind_wins_nothing() {
    let (api, process) = race().await;
    let prune = shed_core::plan::Kill {
        task: TaskIndex(0),
        attempt: AttemptNumber(1),
        kind: KillKind::Prune,
        survivor: Some(AttemptNumber(0)),
    };
    process.plan(&api.job(), vec![Move::Kill(prune)]);
    process.look(&api).await.unwrap();
    api.said();
    api.exit((0, 1), 0, clock::now().plus(Span::from_seconds(-30)));
    process.look(&api).await.unwrap();
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.won, status.attempts.superseded), (0, 1));
}

#[tokio::test]
async fn an_exit_with_0_that_answers_an_eviction_is_no_result() {
    let (api, process) = two_running("").await;
    {
        let mut world = api.world.lock();
        for pod in world.pods.values_mut() {
            let gone_by = clock::now().plus(Span::from_seconds(30));
            pod.metadata.deletion_timestamp = Some(clock::time(gone_by));
            pod.metadata.deletion_grace_period_seconds = Some(30);
        }
    }
    process.look(&api).await.unwrap();
    for task in [0, 1] {
        api.exit((task, 0), 0, clock::now());
    }
    process.look(&api).await.unwrap();
    let attempts = api.job().status.as_ref().unwrap().attempts;
    assert_eq!((attempts.won, attempts.disrupted), (0, 2));
}

#[tokio::test]
async fn while_the_apiservers_time_is_uncertain_no_job_is_ended() {
    let limit = "activeDeadlineSeconds: 5, deadline: {within: 20m}";
    for (age, change) in [(DEADLINE + 8, ""), (60, limit)] {
        let (api, process) = of_age(age, change).await;
        let clock = &process.context.clock;
        let passed = Span::from_seconds(10);
        clock.skip_for_tests(passed);
        clock.disturb_for_tests(Span::from_seconds(60));
        process.look(&api).await.unwrap();
        assert_eq!(reported(&api, api::FAILURE_TARGET), None, "{change}");
        assert_eq!(process.planned(&api.job()).backoff, None);
        assert_eq!(
            api.condition(api::DEADLINE_AT_RISK),
            Some(("True".to_owned(), "ClockUncertain".to_owned())),
            "{change}"
        );
        clock.learn_for_tests(Span(0));
        process.look(&api).await.unwrap();
        process.look(&api).await.unwrap();
        assert_eq!(reported(&api, api::FAILURE_TARGET).as_deref(), Some("True"));
    }
}

#[tokio::test]
async fn the_deadline_goes_by_the_apiservers_clock() {
    // This machine is five minutes ahead of the apiserver, which dates the job.
    let (api, process) = of_age(DEADLINE - 60 + 300, "").await;
    let clock = &process.context.clock;
    clock.learn_for_tests(Span::from_seconds(-300));
    process.look(&api).await.unwrap();
    assert_eq!(reported(&api, api::FAILURE_TARGET), None);
    clock.skip_for_tests(Span::from_seconds(70));
    process.look(&api).await.unwrap();
    process.look(&api).await.unwrap();
    assert_eq!(reported(&api, api::FAILURE_TARGET).as_deref(), Some("True"));
}

#[tokio::test]
async fn a_clock_that_is_set_back_holds_nothing_up() {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 1"));
    let process = Process::start(&api);
    let clock = Arc::clone(&process.context.clock);
    // The connection breaks, so the process cannot know whether the pod exists.
    api.script(|call| match call.words.starts_with("POST pod") {
        true => Fate::LostBefore,
        false => Fate::Served,
    });
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap_err();
    api.script(|_| Fate::Served);
    api.said();
    clock.learn_for_tests(Span::from_seconds(-600));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["POST pod 0-0"], "it is created again");
    // A wait ends when its time has passed, whatever happened to any clock meanwhile.
    api.stick((0, 0), "ImagePullBackOff");
    process.look(&api).await.unwrap();
    clock.learn_for_tests(Span::from_seconds(-1200));
    clock.skip_for_tests(Span::from_seconds(6));
    process.look(&api).await.unwrap();
    let until = process.planned(&api.job()).backoff.expect("a wait").until;
    clock.learn_for_tests(Span::from_seconds(-3600));
    clock.skip_for_tests(Span::from_seconds(11));
    assert!(until <= clock.ticks());
    assert!(clock.at(until) <= clock.now(), "launches may go on");
}

/// The outcome by a job's conditions: met, missed, or none.
/// The totals of an ended job by its conditions: met, missed, failed.
fn verdict(api: &Apiserver) -> [u64; 3] {
    let is = |type_| reported(api, type_).as_deref() == Some("True");
    let is_failed = is(api::FAILED);
    let is_missed = match is_failed {
        true => api.condition(api::FAILED).unwrap().1 == api::reason::DEADLINE_MISSED,
        false => is(api::DEADLINE_MISSED),
    };
    let met = is(api::COMPLETE) && !is_missed;
    let missed = (is_failed || is(api::COMPLETE)) && is_missed;
    [met, missed, is_failed && !is_missed].map(u64::from)
}

#[tokio::test]
async fn totals_agree_with_conditions_after_every_pass() {
    type Turn = fn(&Apiserver, i64);
    let succeed: Turn = |api, age| {
        for task in [0, 1] {
            api.exit((task, 0), 0, at_deadline(age, -2));
        }
    };
    let late: Turn = |api, age| {
        for task in [0, 1] {
            api.exit((task, 0), 0, at_deadline(age, 3));
        }
    };
    let fail: Turn = |api, age| api.exit((0, 0), 3, at_deadline(age, -9));
    let nothing: Turn = |_, _| {};
    let (early, overdue) = (60, DEADLINE + 8);
    for (change, age, turn, expected) in [
        ("", early, succeed, [1, 0, 0]),
        ("", overdue, succeed, [1, 0, 0]),
        ("", overdue, late, [0, 1, 0]),
        ("", overdue, nothing, [0, 1, 0]),
        ("backoffLimitPerIndex: 0", early, fail, [0, 0, 0]),
        ("backoffLimit: 0", early, fail, [0, 0, 1]),
        ("onMiss: Continue", overdue, succeed, [1, 0, 0]),
        ("onMiss: Continue", overdue, late, [0, 1, 0]),
        ("onMiss: Continue", overdue, nothing, [0, 0, 0]),
    ] {
        let (api, process) = of_age(age, change).await;
        turn(&api, age);
        for _ in 0..4 {
            process.look(&api).await.unwrap();
            assert_eq!(process.deadlines(&api), verdict(&api), "{change} {age}");
            api.kill_deleted();
        }
        assert_eq!(process.deadlines(&api), expected, "{change} {age}");
    }
}
