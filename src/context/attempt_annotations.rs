//! Which annotations of running attempts are due. A deletion cost only rises, and an expected end is written only
//! after it has moved, so that few writes are made. Pure; instants of writes are of the process's own clock.

use std::collections::BTreeMap;

use shed_core::plan::JobReport;
use shed_core::snapshot::JobSnapshot;
use shed_core::time::{Instant, Span};

use crate::api::{
    ANNOTATION_DELETION_COST, ANNOTATION_DO_NOT_DISRUPT, ANNOTATION_EXPECTED_END,
    ANNOTATION_SAFE_TO_EVICT,
};
use crate::cluster::pod::{AttemptId, JobPods, PodAnnotations, PodRef};
use crate::job::disruption_cost::{self, Standing};
use crate::job::expected_end;
use crate::validate::ValidatedJob;

/// Minimum time between two writes to one pod, whatever became of the first.
const WRITE_PERIOD: Span = Span::from_seconds(60);

/// An expected end that moved by less is not written again.
const MOVED_MIN: Span = Span::from_seconds(60);

/// Nor one that moved by less than this share of the time until then.
const MOVED_SHARE: f64 = 0.1;

/// The annotations that shed writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnnotationSettings {
    /// The deletion cost of attempts at risk.
    pub deletion_cost: bool,
    /// That autoscalers must leave attempts at risk alone.
    pub do_not_disrupt: bool,
    /// Expected ends.
    pub expected_end: bool,
}

impl AnnotationSettings {
    /// Without those that the job's template sets itself.
    pub fn unless_in_template_of(self, job: &ValidatedJob) -> Self {
        let own = job.template.metadata.as_ref();
        let own = own.and_then(|metadata| metadata.annotations.as_ref());
        let is_free = |key: &str| own.is_none_or(|own| !own.contains_key(key));
        Self {
            deletion_cost: self.deletion_cost && is_free(ANNOTATION_DELETION_COST),
            do_not_disrupt: self.do_not_disrupt
                && is_free(ANNOTATION_DO_NOT_DISRUPT)
                && is_free(ANNOTATION_SAFE_TO_EVICT),
            expected_end: self.expected_end && is_free(ANNOTATION_EXPECTED_END),
        }
    }

    /// What the running attempts of a job should carry.
    pub fn wanted(
        self,
        job: &JobSnapshot,
        report: Option<&JobReport>,
        standing: Standing,
    ) -> Vec<(AttemptId, PodAnnotations)> {
        let attempts = job.tasks.iter();
        let attempts = attempts.flat_map(|task| task.attempts.iter().map(move |one| (task, one)));
        let of_each = attempts.map(|(task, attempt)| {
            let cost = disruption_cost::of(job, task, attempt, standing);
            let report = report.filter(|_| self.expected_end);
            let wanted = PodAnnotations {
                deletion_cost: if self.deletion_cost { cost } else { 0 },
                is_held: self.do_not_disrupt && cost > 0,
                expected_end: report
                    .and_then(|report| expected_end::of(report, task, attempt, standing.now)),
            };
            ((task.index.0, attempt.number.0), wanted)
        });
        of_each
            .filter(|(_, wanted)| *wanted != PodAnnotations::default())
            .collect()
    }
}

/// A write that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueAnnotations {
    /// The attempt.
    pub id: AttemptId,
    /// Its pod.
    pub pod: PodRef,
    /// What the pod should carry.
    pub next: PodAnnotations,
    /// Names and values of the annotations that change.
    pub changes: Vec<(&'static str, String)>,
}

/// The writes to a job's attempts so far. shed can lose them: the pods show what was written.
#[derive(Debug, Clone, Default)]
pub struct AnnotatedAttempts(BTreeMap<AttemptId, Tried>);

/// The last write to a pod, and what it carries since then. The watch may show that later.
#[derive(Debug, Clone, Copy)]
struct Tried {
    at: Instant,
    written: Option<PodAnnotations>,
}

impl AnnotatedAttempts {
    /// The writes that are due, attempts with the highest deletion cost first. `now` is of the apiserver's clock.
    pub fn due(
        &mut self,
        pods: &JobPods,
        wanted: Vec<(AttemptId, PodAnnotations)>,
        (now, ticks): (Instant, Instant),
    ) -> Vec<DueAnnotations> {
        self.0.retain(|id, _| pods.contains_key(id));
        let due = |(id, wanted): (AttemptId, PodAnnotations)| {
            let tried = self.0.get(&id);
            let is_recent = |tried: &Tried| ticks.since(tried.at) < WRITE_PERIOD;
            let pod = pods.get(&id).filter(|_| !tried.is_some_and(is_recent))?;
            let attempt = pod.attempt.as_ref().filter(|attempt| !attempt.deleting)?;
            let shown = attempt.annotations.as_deref().copied();
            let shown = tried.and_then(|tried| tried.written).or(shown);
            let shown = shown.unwrap_or_default();
            let next = next(shown, wanted, now);
            let changes = next.changes_from(&shown);
            (!changes.is_empty()).then(|| DueAnnotations {
                id,
                pod: pod.reference(),
                next,
                changes,
            })
        };
        let mut due: Vec<_> = wanted.into_iter().filter_map(due).collect();
        due.sort_by_key(|due| std::cmp::Reverse(due.next.deletion_cost));
        due
    }

    /// Records that a write was tried, and what the pod carries if it was carried out.
    pub fn note(&mut self, id: AttemptId, written: Option<PodAnnotations>, ticks: Instant) {
        let before = self.0.get(&id).and_then(|tried| tried.written);
        let tried = Tried {
            at: ticks,
            written: written.or(before),
        };
        self.0.insert(id, tried);
    }
}

/// What a pod should carry next.
fn next(shown: PodAnnotations, wanted: PodAnnotations, now: Instant) -> PodAnnotations {
    let has_moved = |end: &Instant| {
        shown.expected_end.is_none_or(|shown| {
            let moved = end.since(shown).seconds().abs();
            moved
                > MOVED_MIN
                    .seconds()
                    .max(MOVED_SHARE * end.since(now).seconds())
        })
    };
    PodAnnotations {
        deletion_cost: match wanted.deletion_cost {
            0 => shown.deletion_cost,
            cost => cost.max(shown.deletion_cost),
        },
        is_held: shown.is_held || wanted.is_held,
        expected_end: wanted.expected_end.filter(has_moved).or(shown.expected_end),
    }
}

#[cfg(test)]
mod tests;
