//! When a pod ended, and whether its deletion caused the end. Its node dates the end, and the
//! node's clock may be off by minutes. The apiserver dates deletions and writes. The two are
//! compared only if the observed order does not show which came first.

use k8s_openapi::api::core::v1::Pod;
use shed_core::snapshot::{AttemptSnapshot, AttemptState};
use shed_core::time::{Instant, Span};

use crate::clock;
use crate::cluster::pod::{PodFacts, Stage, deleted};

/// The resolution of a container's end, which is stamped in whole seconds.
const STAMP: Span = Span::from_seconds(1);

/// Relation between the end of a pod and its deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndFacts {
    /// Whether the pod was being deleted when its end was first seen.
    pub in_deletion: bool,
    /// Whether it was seen being deleted before it was seen to have ended.
    pub seen_deleted: bool,
    /// Whether by its node's clock it ended after the deletion request, or after the disruption
    /// notice before a deletion.
    pub dated_after: bool,
}

impl EndFacts {
    /// Facts from the pod itself, which ended at that instant.
    pub(crate) fn of(pod: &Pod, finished: Instant) -> Self {
        let deletion = deleted(pod);
        let asked = deletion.into_iter().chain(disruption_reported(pod)).min();
        Self {
            in_deletion: deletion.is_some(),
            seen_deleted: false,
            dated_after: asked.is_some_and(|asked| finished.plus(STAMP) >= asked),
        }
    }

    /// Whether the end may be a consequence of a deletion by another client. The observed order
    /// takes precedence over the node's clock.
    pub fn may_be_answer(&self) -> bool {
        self.seen_deleted || self.dated_after
    }
}

/// A start by the node's clock, shifted like the end. The run therefore takes as long as that one
/// clock shows.
pub(crate) fn as_bounded(
    start: Instant,
    end: Option<Instant>,
    bounded: Option<Instant>,
) -> Instant {
    match (end, bounded) {
        (Some(end), Some(bounded)) => start.plus(bounded.min(end).since(end)),
        _ => start,
    }
}

/// A node whose clock is behind dates the start of an attempt before its launch. While the attempt
/// runs, its time counts from the launch, except for the resolution of stamps. Otherwise it would
/// seem to take long. For an ended attempt one clock dates both, and the time between them is
/// right.
pub(crate) fn count_from_launch(attempt: &mut AttemptSnapshot) {
    let earliest = Instant(attempt.launched.0.saturating_sub(STAMP.0));
    let runs = attempt.state == AttemptState::Running;
    if let Some(started) = attempt.started.as_mut().filter(|_| runs) {
        *started = (*started).max(earliest);
    }
}

/// Since when the pod has a disruption notice. It may be sent SIGTERM without a deletion.
fn disruption_reported(pod: &Pod) -> Option<Instant> {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let reported =
        conditions.find(|one| one.type_ == "DisruptionTarget" && one.status == "True")?;
    reported.last_transition_time.as_ref().map(clock::instant)
}

impl PodFacts {
    /// The pod as seen after `before`. The first observation of its end stays.
    pub fn after(mut self, before: &Self) -> Self {
        if self.uid != before.uid {
            return self;
        }
        let (Some(now), Some(before)) = (&mut self.attempt, &before.attempt) else {
            return self;
        };
        match (finished(&now.stage), finished(&before.stage)) {
            (Some(_), Some(first)) => {
                end_by(&mut now.stage, first);
                now.started = before.started.or(now.started);
                now.end = before.end;
            }
            (Some(_), None) if before.deleting => {
                now.end.in_deletion = true;
                now.end.seen_deleted = true;
            }
            _ => {}
        }
        self
    }
}

/// When the pod ended.
pub(crate) fn finished(stage: &Stage) -> Option<Instant> {
    match stage {
        Stage::Succeeded { finished } | Stage::Failed { finished, .. } => Some(*finished),
        Stage::Pending | Stage::Stuck { .. } | Stage::Running => None,
    }
}

fn end_by(stage: &mut Stage, at: Instant) {
    if let Stage::Succeeded { finished } | Stage::Failed { finished, .. } = stage {
        *finished = at.min(*finished);
    }
}

#[cfg(test)]
mod tests;
