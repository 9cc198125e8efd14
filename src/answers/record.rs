//! The record of a job as it is now, with all live attempts. That in the status is bounded in bytes, and as old as the
//! status.

use std::collections::HashSet;
use std::sync::Arc;

use shed_core::snapshot::AttemptKind;

use super::jobs::uid;
use crate::api::{AttemptRecord, AttemptState, DeadlineJob, JobRecord, LABEL_KIND, Ledger, Pocd};
use crate::clock;
use crate::cluster::identity::Owner;
use crate::cluster::pod::{PodFacts, Stage};
use crate::context::{Context, validation};
use crate::job::facts;
use crate::job::record::{Input, continued};
use crate::job::view::JobView;

/// The record; that of the status if the job cannot be read or has ended.
pub(super) fn of(context: &Context, job: &Arc<DeadlineJob>) -> Option<JobRecord> {
    let status = job.status.as_ref();
    let old = status.and_then(|status| status.record.as_ref());
    fresh(context, job, old).or_else(|| old.cloned())
}

/// The record of the status of a job that has ended, and the attempts whose pods are still there.
pub(super) fn of_ended(context: &Context, job: &DeadlineJob) -> Option<JobRecord> {
    let record = job.status.as_ref()?.record.as_ref();
    let pods = context.stores.attempts_of(&Owner::of(&job.metadata));
    if record.is_none() && pods.is_empty() {
        return None;
    }
    let mut record = record.cloned().unwrap_or_else(|| JobRecord {
        time: clock::time(context.clock.now()),
        pocd: Vec::new(),
        attempts: Vec::new(),
        omitted_attempts: 0,
        decisions: Vec::new(),
        waiting: None,
    });
    let key = |attempt: &AttemptRecord| (attempt.task, attempt.attempt);
    let listed: HashSet<_> = record.attempts.iter().map(key).collect();
    let more = pods.values().filter_map(|pod| of_pod(pod));
    let more: Vec<_> = more.filter(|more| !listed.contains(&key(more))).collect();
    let added = i32::try_from(more.len()).unwrap_or(i32::MAX);
    record.omitted_attempts = record.omitted_attempts.saturating_sub(added).max(0);
    record.attempts.extend(more);
    record.attempts.sort_by_key(key);
    Some(record)
}

/// What a pod shows of its attempt, once it has ended.
fn of_pod(pod: &PodFacts) -> Option<AttemptRecord> {
    let attempt = pod.attempt.as_ref()?;
    let (state, finished) = match attempt.stage {
        Stage::Succeeded { finished } => (AttemptState::Won, finished),
        Stage::Failed { finished, .. } if attempt.deleting => (AttemptState::Stopped, finished),
        Stage::Failed {
            finished,
            disrupted: true,
        } => (AttemptState::Disrupted, finished),
        Stage::Failed { finished, .. } => (AttemptState::Failed, finished),
        Stage::Pending | Stage::Stuck { .. } | Stage::Running => return None,
    };
    // Labels are kept of the pods of batch/v1 Jobs only. Without them a later attempt may have been a clone or a retry.
    let kind = || {
        let labels = &pod.belongs.as_ref()?.labels;
        let kinds = [AttemptKind::Clone, AttemptKind::Retry];
        let label = labels.get(LABEL_KIND)?;
        kinds.into_iter().find(|kind| kind.label() == label)
    };
    let kind = match attempt.number {
        0 => AttemptKind::Original,
        _ => kind()?,
    };
    Some(AttemptRecord {
        task: i32::try_from(attempt.task).ok()?,
        attempt: i32::try_from(attempt.number).ok()?,
        kind,
        node: pod.node.as_deref().map(str::to_owned),
        start_time: attempt.started.map(clock::time),
        end_time: Some(clock::time(finished)),
        progress: None,
        resumed_from: None,
        resume_point: None,
        estimated_end_time: None,
        state,
    })
}

fn fresh(context: &Context, job: &DeadlineJob, old: Option<&JobRecord>) -> Option<JobRecord> {
    let validated = validation::read(&context.memos, job, context.stores.batch()).ok()?;
    let ledger = Ledger::from_status(job.status.as_ref()).ok()?;
    if ledger.ending.is_some() {
        return None;
    }
    let ticks = context.clock.ticks();
    let pods = context.stores.pods_of(&validated);
    let view = JobView::new(validated, ledger, context.clock.at(ticks), ticks);
    let view = context.glance(view, pods);
    let facts = facts::facts(&view);
    let report = context.board.report(uid(job));
    let pocd = report.as_ref().and_then(|report| report.pocd_after);
    let waits = report.as_ref().is_some_and(|report| report.waiting > 0);
    let waiting = old.and_then(|old| old.waiting.as_ref());
    let input = Input {
        view: &view,
        facts: &facts,
        ledger: &view.ledger,
        notices: &[],
        report: report.as_ref(),
        pocd: view.deadline.and(pocd).map(Pocd::nearest),
        waiting: waiting.map(|it| &*it.reason).filter(|_| waits),
        old,
    };
    Some(continued(input, usize::MAX))
}
