use super::*;
use crate::reconcile::mock::originals;

fn refused(reason: &'static str, message: &str) -> Answers {
    Answers {
        refused: Some(Blocked {
            reason,
            message: message.to_owned(),
        }),
        ..Answers::default()
    }
}

fn quota() -> Answers {
    refused(reason::QUOTA_EXCEEDED, "exceeded quota: small")
}

fn created(count: usize) -> Answers {
    Answers {
        created: count,
        ..Answers::default()
    }
}

fn at(seconds: i64) -> Instant {
    Instant(0).plus(Span::from_seconds(seconds))
}

/// Existing attempts, one of them without a pod if there is any.
fn count(existing: u32) -> Count {
    Count {
        existing,
        uncreated: existing.min(1),
        leaving: 0,
    }
}

fn most(creations: &Creations, existing: u32, seconds: i64) -> Option<u32> {
    creations.limits(count(existing), at(seconds)).attempts_max
}

#[test]
fn a_job_begins_with_so_many_until_one_was_accepted() {
    let slice = originals(5000);
    let mut creations = Creations::default();
    assert_eq!(*creations.first(&slice), slice[..100]);
    assert_eq!(creations.limits(count(0), at(0)), Limits::default());
    creations.take(created(1), 8, at(0));
    assert_eq!(*creations.first(&slice), slice);
}

#[test]
fn under_a_quota_a_place_is_refilled_at_once_and_added_later() {
    let mut creations = Creations::default();
    creations.take(
        Answers {
            created: 2,
            ..quota()
        },
        2,
        at(0),
    );
    assert_eq!(
        (most(&creations, 2, 0), most(&creations, 2, 9)),
        (Some(2), Some(2))
    );
    assert_eq!(creations.limits(count(2), at(0)).not_before, None);
    assert_eq!(creations.limits(count(2), at(0)).until, Some(at(10)));
    // A pod has ended, and its place is filled. That proves nothing about more pods.
    assert_eq!(most(&creations, 1, 5), Some(2));
    creations.take(created(1), 2, at(5));
    assert_eq!(most(&creations, 2, 5), Some(2));
    assert_eq!(creations.blocked().unwrap().reason, reason::QUOTA_EXCEEDED);
    // The quota counts a pod whose task has ended until the pod has ended, too.
    assert_eq!(
        creations
            .limits(
                Count {
                    leaving: 1,
                    ..count(1)
                },
                at(5)
            )
            .attempts_max,
        Some(1)
    );
    assert_eq!(most(&creations, 2, 10), Some(3));
    creations.take(quota(), 2, at(10));
    assert_eq!(
        (most(&creations, 2, 29), most(&creations, 2, 30)),
        (Some(2), Some(3))
    );
    creations.take(quota(), 2, at(30));
    creations.take(quota(), 2, at(60));
    assert_eq!(
        (most(&creations, 2, 89), most(&creations, 2, 90)),
        (Some(2), Some(3))
    );
}

#[test]
fn creations_beyond_a_quota_double_until_there_is_no_limit() {
    let mut creations = Creations::default();
    creations.take(quota(), 2, at(0));
    let mut existing = 2;
    let mut steps = Vec::new();
    while let Some(most) = most(&creations, existing, 10) {
        steps.push(most - existing);
        creations.take(created((most - existing) as usize), most, at(10));
        existing = most;
        assert_eq!(creations.blocked(), None);
    }
    assert_eq!(steps, [1, 2, 4, 8, 16, 32, 64]);
}

#[test]
fn a_template_that_is_refused_is_tried_with_one_pod_per_wait() {
    let mut creations = Creations::default();
    for (turn, wait) in [10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
        let now = at(1000 * turn as i64);
        creations.take(refused(reason::POD_INVALID, "no image"), 0, now);
        let limits = creations.limits(count(0), now);
        assert_eq!(limits.not_before, Some(now.plus(Span::from_seconds(wait))));
        assert_eq!(limits.attempts_max, Some(1));
    }
    creations.take(created(1), 1, at(9000));
    assert_eq!(creations.blocked(), None);
    let limits = creations.limits(count(1), at(9000));
    assert_eq!(
        (limits.not_before, limits.attempts_max),
        (Some(at(9000)), Some(3))
    );
    // Refused again, it waits as after the first time.
    creations.take(refused(reason::POD_INVALID, "no image"), 1, at(9001));
    assert_eq!(
        creations.limits(count(1), at(9001)).not_before,
        Some(at(9011))
    );
}

#[test]
fn a_namespace_gets_time_for_its_service_account() {
    let message =
        "error looking up service account team/default: serviceaccount \"default\" not found";
    let mut creations = Creations::default();
    let mut waits = Vec::new();
    for _ in 0..7 {
        creations.take(refused(reason::POD_FORBIDDEN, message), 0, at(0));
        let until = creations.limits(count(0), at(0)).not_before.unwrap();
        waits.push((until.since(at(0)).seconds(), creations.blocked().is_some()));
    }
    let expected = [
        (1.0, false),
        (2.0, false),
        (2.0, true),
        (2.0, true),
        (2.0, true),
        (10.0, true),
        (20.0, true),
    ];
    assert_eq!(waits, expected);
}

#[test]
fn a_clone_that_is_refused_holds_off_clones_alone() {
    let mut creations = Creations::default();
    creations.take(created(1), 1, at(0));
    let mut answers = Answers::default();
    let blocked = Blocked {
        reason: reason::QUOTA_EXCEEDED,
        message: "exceeded quota: low-priority".to_owned(),
    };
    answers.refuse(Some(AttemptKind::Clone), blocked);
    creations.take(answers, 1, at(0));
    let limits = creations.limits(count(1), at(0));
    assert_eq!((limits.not_before, limits.attempts_max), (None, None));
    assert_eq!(
        (limits.clones_not_before, limits.until),
        (Some(at(10)), Some(at(10)))
    );
    assert!(creations.blocked().is_some());
    let mut answers = Answers::default();
    answers.create(Some(AttemptKind::Clone));
    creations.take(answers, 2, at(10));
    assert_eq!(creations.limits(count(2), at(10)), Limits::default());
}

#[test]
fn failures_are_reported_from_the_second_on_with_longer_waits() {
    let failed = || Answers {
        failed: Some("failed calling webhook".to_owned()),
        ..Answers::default()
    };
    let mut creations = Creations::default();
    let mut waits = Vec::new();
    for count in 1..9 {
        creations.take(failed(), 0, at(0));
        waits.push(creations.retry_at().unwrap().since(at(0)).seconds());
        assert_eq!(creations.not_before().is_some(), count > 1);
        assert_eq!(
            (creations.is_failing(), creations.blocked().is_some()),
            (count > 1, count > 1)
        );
        assert_eq!(most(&creations, 5, 0), Some(5), "nothing more is recorded");
    }
    assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
    creations.take(created(1), 1, at(0));
    assert_eq!(
        (creations.is_failing(), creations.retry_at()),
        (false, None)
    );
}

#[test]
fn a_lost_answer_holds_nothing_off_once_its_pod_is_gone() {
    let failed = || Answers {
        failed: Some("connection reset".to_owned()),
        ..Answers::default()
    };
    let mut creations = Creations::default();
    creations.take(failed(), 1, at(0));
    // The pod was created all the same, so that no retry brings another answer.
    let all_seen = Count {
        existing: 2,
        ..Count::default()
    };
    assert_eq!(creations.limits(all_seen, at(0)).attempts_max, Some(3));
    creations.take(failed(), 3, at(1));
    let limits = |seconds| creations.limits(all_seen, at(seconds));
    let held_off = (limits(1).attempts_max, limits(1).until);
    assert_eq!(held_off, (Some(2), Some(at(5))));
    assert_eq!(limits(5).attempts_max, Some(3));
}
