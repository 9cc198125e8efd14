use shed_core::ids::AttemptNumber;
use shed_core::snapshot::{AttemptKind, Progress};

use super::*;

/// An attempt that was launched at 0 s, started at 2 s, reported first at 4 s and last at 14 s.
fn attempt(first: f64, last: f64) -> AttemptSnapshot {
    AttemptSnapshot {
        number: AttemptNumber(0),
        kind: AttemptKind::Original,
        state: AttemptState::Running,
        kill: None,
        killed_at: None,
        launched: Instant(0),
        node: None,
        started: Some(Instant(2000)),
        start_progress: 0.0,
        progress: Some(Progress {
            first_at: Instant(4000),
            first,
            last_at: Instant(14_000),
            last,
        }),
        failure_rule: None,
        out_of_reach: false,
        ended_in_deletion: false,
        unplaceable: false,
        gated: false,
        unready: false,
        checkpoint: None,
    }
}

fn part(start: u64, end: u64) -> SegmentEntry {
    SegmentEntry {
        index: 5,
        task: 1,
        start,
        end,
        total: 100,
        winner: None,
        dropped: false,
    }
}

fn at(done: u64) -> Units {
    Units { done, total: 100 }
}

#[test]
fn clones_begin_where_the_original_will_be_at_their_start() {
    let attempt = attempt(0.1, 0.4);
    let text = |units, ends: Option<(u64, u64)>, now| {
        let part = ends.map(|(start, end)| part(start, end));
        let point = handover(&attempt, units, part.as_ref(), Instant(now));
        point.map(|point| point.checkpoint)
    };
    // 40 units in 10 s, and 4 s to the first report: 16 more.
    assert_eq!(text(at(40), None, 14_000).as_deref(), Some("56/100"));
    // 2 s later it is 8 units further.
    assert_eq!(text(at(40), None, 16_000).as_deref(), Some("64/100"));
    let point = handover(&attempt, at(40), None, Instant(14_000)).unwrap();
    assert!((point.progress - 0.56).abs() < 1e-12);
    // Nothing is left for clones.
    assert_eq!(text(at(40), Some((0, 56)), 14_000), None);
    assert_eq!(
        text(
            Units {
                done: 40,
                total: 99
            },
            Some((0, 90)),
            14_000
        ),
        None
    );
}

#[test]
fn a_part_ends_at_one_whatever_of_the_task_it_is() {
    let mut attempt = attempt(0.3, 0.4);
    let part = part(20, 60);
    move_into(&mut attempt, &part);
    let progress = attempt.progress.unwrap();
    assert!((attempt.start_progress - 0.6).abs() < 1e-12);
    assert!(
        (progress.last - 0.8).abs() < 1e-12,
        "20 of 100 units are left"
    );
    assert!((progress.first - 0.7).abs() < 1e-12);
    let point = handover(&attempt, at(40), Some(&part), Instant(14_000)).unwrap();
    // 20 units in 10 s: 8 more in 4 s, and then 12 of 100 are left.
    assert_eq!(&*point.checkpoint, "48/100");
    assert!((point.progress - 0.88).abs() < 1e-12);
}

#[test]
fn an_end_elsewhere_is_no_success() {
    let part = part(20, 60);
    let finished = Instant(9);
    let success = AttemptState::Succeeded { finished };
    assert_eq!(judged(success, Some(at(60)), &part), success);
    for reached in [
        None,
        Some(at(59)),
        Some(Units {
            done: 60,
            total: 99,
        }),
    ] {
        let failed = matches!(judged(success, reached, &part), AttemptState::Failed { .. });
        assert!(failed, "{reached:?}");
    }
}
