//! Slot time of the attempts whose end a step has counted. A write without an answer is announced later without
//! these facts, so its attempts are missing here.

use std::sync::Arc;

use shed_core::plan::Outcome;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobSnapshot};
use shed_core::time::Instant;

use crate::job::facts;
use crate::job::notice::Notice;
use crate::metrics::{DISRUPTIVE, POD_DISRUPTED, POD_LOST, SlotTimeMetrics, WON};

/// Counts the ended attempts among the notices.
pub(super) fn measure(
    metrics: &SlotTimeMetrics,
    namespace: &Arc<str>,
    facts: &JobSnapshot,
    notices: &[Notice],
    now: Instant,
) {
    for notice in notices {
        let (&id, outcome) = match notice {
            Notice::Won { id, .. } => (id, None),
            Notice::Counted { id, outcome, .. } => (id, Some(*outcome)),
            _ => continue,
        };
        if let Some(attempt) = facts::attempt_of(facts, id) {
            measure_one(metrics, namespace, attempt, outcome, now);
        }
    }
}

fn measure_one(
    metrics: &SlotTimeMetrics,
    namespace: &Arc<str>,
    attempt: &AttemptSnapshot,
    outcome: Option<Outcome>,
    now: Instant,
) {
    let held = attempt.held_until(now).since(attempt.launched).seconds();
    let held = held.max(0.0);
    let label = outcome.map_or(WON, Outcome::label);
    metrics.held(namespace, attempt.kind, label, held);
    match outcome {
        None => metrics.saved(saved(attempt)),
        Some(outcome) => {
            if let Some(reason) = disruption(attempt, outcome) {
                metrics.lost(reason, held);
            }
        }
    }
}

/// Time that an attempt saved by its checkpoint.
fn saved(attempt: &AttemptSnapshot) -> f64 {
    let (Some(started), AttemptState::Succeeded { finished }) = (attempt.started, attempt.state)
    else {
        return 0.0;
    };
    let own = 1.0 - attempt.start_progress;
    let run = finished.since(started).seconds().max(0.0);
    if own > 0.0 {
        run * attempt.start_progress / own
    } else {
        0.0
    }
}

/// Why an attempt ended before its task was done.
fn disruption(attempt: &AttemptSnapshot, outcome: Outcome) -> Option<&'static str> {
    match attempt.kill {
        Some(kill) => DISRUPTIVE.contains(&kill).then(|| kill.label()),
        None if outcome != Outcome::Disrupted => None,
        None if attempt.state == AttemptState::Lost => Some(POD_LOST),
        None => Some(POD_DISRUPTED),
    }
}

#[cfg(test)]
mod tests {
    use shed_core::fixtures::{attempt, job, world};
    use shed_core::snapshot::{AttemptKind, KillKind};

    use super::*;
    use crate::metrics::Metrics;

    const NOW: Instant = Instant(100_000);

    /// A job with one attempt of this kind, launched at 10 s and started at 20 s.
    fn facts(change: impl FnOnce(&mut AttemptSnapshot)) -> JobSnapshot {
        let job = job("a").tasks(1).task(0, [attempt(0).on(0)]);
        let snapshot = world(100.0, 1, 8000).job(job).build();
        let mut facts = snapshot.jobs[0].clone();
        let attempt = &mut facts.tasks[0].attempts[0];
        attempt.launched = Instant(10_000);
        attempt.started = Some(Instant(20_000));
        change(attempt);
        facts
    }

    fn counted(outcome: Outcome) -> Notice {
        Notice::Counted {
            id: (0, 0),
            kind: AttemptKind::Original,
            outcome,
            uncommitted: false,
        }
    }

    fn page_of(notice: Notice, change: impl FnOnce(&mut AttemptSnapshot)) -> String {
        let metrics = Metrics::new().unwrap();
        let team = Arc::from("team");
        measure(&metrics.slot_time, &team, &facts(change), &[notice], NOW);
        metrics.page().unwrap()
    }

    #[test]
    fn a_winner_used_its_slot_time_and_its_checkpoint_saved_time() {
        let won = Notice::Won {
            id: (0, 0),
            kind: AttemptKind::Original,
            resumed_from: 0.75,
        };
        let page = page_of(won, |attempt| {
            attempt.start_progress = 0.75;
            attempt.state = AttemptState::Succeeded {
                finished: Instant(50_000),
            };
        });
        for held in [
            r#"shed_attempt_slot_seconds_total{kind="original",outcome="won"} 40"#,
            r#"shed_namespace_slot_seconds_total{job_namespace="team",outcome="won"} 40"#,
        ] {
            assert!(page.contains(held), "{page}");
        }
        // The last quarter took 30 s.
        assert!(
            page.contains("shed_resume_saved_seconds_total 90"),
            "{page}"
        );
    }

    #[test]
    fn a_loser_is_not_a_disruption() {
        let page = page_of(counted(Outcome::Superseded), |attempt| {
            attempt.kill = Some(KillKind::Settle);
            attempt.state = AttemptState::Running;
        });
        let held = r#"shed_attempt_slot_seconds_total{kind="original",outcome="superseded"} 90"#;
        assert!(page.contains(held), "{page}");
        let lost = r#"shed_namespace_slot_seconds_total{job_namespace="team",outcome="lost"} 90"#;
        assert!(page.contains(lost), "{page}");
        let page = page_of(counted(Outcome::Superseded), |attempt| {
            attempt.kind = AttemptKind::Clone;
            attempt.state = AttemptState::Running;
        });
        let clone =
            r#"shed_namespace_slot_seconds_total{job_namespace="team",outcome="clone_lost"} 90"#;
        assert!(page.contains(clone), "{page}");
        for line in page
            .lines()
            .filter(|line| line.starts_with("shed_disruption"))
        {
            assert!(line.ends_with(" 0"), "{line}");
        }
    }

    #[test]
    fn a_disruption_is_counted_by_its_reason() {
        for (outcome, kill, state, reason) in [
            (
                Outcome::Superseded,
                Some(KillKind::Preempt),
                AttemptState::Running,
                "preempt",
            ),
            (Outcome::Disrupted, None, AttemptState::Lost, "pod_lost"),
            (
                Outcome::Disrupted,
                None,
                AttemptState::Failed {
                    finished: NOW,
                    disrupted: true,
                },
                "pod_disrupted",
            ),
        ] {
            let page = page_of(counted(outcome), |attempt| {
                (attempt.kill, attempt.state) = (kill, state);
            });
            let lost =
                format!("shed_disruption_lost_slot_seconds_total{{reason=\"{reason}\"}} 90\n");
            assert!(page.contains(&lost), "{page}");
        }
    }
}
