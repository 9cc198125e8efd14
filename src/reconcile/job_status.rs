//! The status of a batch/v1 Job from its companion's, by the rules that the apiserver enforces on
//! whoever writes it. Pure.

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shed_core::index_set::IndexSet;
use shed_core::snapshot::Conclusion;
use shed_core::time::Instant;

use crate::adopt::annotation_names::by_annotations;
pub use crate::adopt::{is_finished, is_true};
use crate::api::{self, DeadlineJobStatus, Ledger, reason};
use crate::clock;
use crate::cluster::pod::{JobPods, PodFacts, Stage};
use crate::job::leftover_pods::leftover;
use crate::validate::Adopted;

/// Pods of a Job by how far they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Pending or running, and not being deleted. Pods that are about to be created count.
    pub active: i32,
    /// Ready among them.
    pub ready: i32,
    /// Being deleted, and not ended.
    pub terminating: i32,
}

/// Input of the status.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The Job, with the status that it has.
    pub job: &'a Job,
    /// The fields that matter here.
    pub adopted: &'a Adopted,
    /// The companion's status, as it was just recorded.
    pub recorded: &'a DeadlineJobStatus,
    /// The companion's ledger.
    pub ledger: &'a Ledger,
    /// Its pods.
    pub pods: PodCounts,
    /// Tasks that it has.
    pub completions: u32,
    /// Whether nothing is to run.
    pub suspend: bool,
    /// When.
    pub now: Instant,
}

/// Counts attempts that the ledger holds, and pods that are ending without one.
pub fn count(ledger: &Ledger, pods: &JobPods) -> PodCounts {
    let mut counts = PodCounts::default();
    let attempts = ledger.tasks.values().flat_map(|task| {
        let attempts = task.attempts.iter();
        attempts.map(move |attempt| ((task.index, attempt.number), attempt.kill.is_some()))
    });
    for (id, is_killed) in attempts {
        let pod = pods.get(&id).and_then(|pod| pod.attempt.as_ref());
        let has_ended =
            |stage: &Stage| matches!(stage, Stage::Succeeded { .. } | Stage::Failed { .. });
        match pod {
            Some(pod) if has_ended(&pod.stage) => {}
            Some(pod) if pod.deleting || is_killed => counts.terminating += 1,
            Some(pod) => {
                counts.active += 1;
                counts.ready += i32::from(pod.ready);
            }
            None if is_killed => {}
            None => counts.active += 1,
        }
    }
    counts.terminating += terminating(ledger, pods);
    counts
}

/// Pods that count as failed already and have not ended. A Job is complete, or has failed, only
/// after all of them.
pub fn terminating(ledger: &Ledger, pods: &JobPods) -> i32 {
    let deleting = leftover(ledger, pods).filter(|(_, pod)| {
        let attempt = pod.attempt.as_ref();
        attempt.is_some_and(|attempt| attempt.deleting)
    });
    i32::try_from(deleting.count()).unwrap_or(i32::MAX)
}

/// Whether a pod that its owner counts as live is Ready.
pub fn is_ready(pod: &PodFacts) -> bool {
    pod.attempt.as_ref().is_some_and(|attempt| {
        let running = attempt.stage == Stage::Running;
        running && attempt.ready && !attempt.deleting
    })
}

/// The reason why shed does not run a Job, if it has reported one.
pub fn refusal(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    let refused =
        conditions.find(|one| one.type_ == api::ADOPTION_REFUSED && one.status == "True")?;
    refused.reason.as_deref()
}

/// The status that the Job should have.
pub fn render(input: Input<'_>) -> JobStatus {
    let old = input.job.status.clone().unwrap_or_default();
    if is_finished(input.job) {
        return old;
    }
    let Input {
        ledger, adopted, ..
    } = input;
    let pods = match ledger.finished {
        true => PodCounts::default(),
        false => input.pods,
    };
    let done = match adopted.work_queue {
        true => ledger.done.clone(),
        false => ledger.done_tasks(input.completions),
    };
    let start_time = start_time(input, &old);
    let complete = ledger.finished && ledger.ending.is_some_and(Conclusion::is_success);
    JobStatus {
        active: counted(pods.active),
        ready: Some(pods.ready),
        terminating: Some(pods.terminating),
        succeeded: counted(i32::try_from(done.len()).unwrap_or(i32::MAX)),
        failed: counted(failed(ledger)),
        completed_indexes: (adopted.indexed && !done.is_empty()).then(|| written(&done)),
        failed_indexes: (adopted.indexed && adopted.per_index)
            .then(|| written(&ledger.failed_tasks(input.completions))),
        completion_time: complete
            .then(|| completion_time(input, start_time.as_ref()))
            .or(old.completion_time),
        uncounted_terminated_pods: Some(UncountedTerminatedPods::default()),
        conditions: Some(conditions(input, old.conditions.unwrap_or_default())),
        start_time,
    }
}

/// To batch/v1 the pod of a Job that reached its limit by restarts in place has failed too.
fn failed(ledger: &Ledger) -> i32 {
    let by_restarts =
        ledger.ending == Some(Conclusion::BackoffLimit) && ledger.ending_note.is_some();
    let failed = i32::try_from(ledger.counts.failed).unwrap_or(i32::MAX);
    failed.saturating_add(i32::from(by_restarts))
}

/// A count as the apiserver returns it: without one that is 0, so that a status that was written equals the one that is
/// read.
fn counted(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// A suspension resets it; the first start stays in the ledger. A Job that has ended must have one.
fn start_time(input: Input<'_>, old: &JobStatus) -> Option<Time> {
    if input.suspend && input.ledger.ending.is_none() {
        return None;
    }
    Some(
        old.start_time
            .clone()
            .unwrap_or_else(|| clock::time(input.now)),
    )
}

/// Never before the start, which is the time of a write.
fn completion_time(input: Input<'_>, start: Option<&Time>) -> Time {
    let end = input
        .ledger
        .last_win
        .or(input.ledger.ended)
        .unwrap_or(input.now);
    clock::time(end.max(start.map_or(end, clock::instant)))
}

/// Ranges as batch/v1 writes them: two neighbors as `0,1`, three as `0-2`.
fn written(indexes: &IndexSet) -> String {
    let ranges = indexes.ranges().map(|(low, high)| match high - low {
        0 => low.to_string(),
        1 => format!("{low},{high}"),
        _ => format!("{low}-{high}"),
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// The companion's conditions, merged over those of other writers.
fn conditions(input: Input<'_>, mut list: Vec<JobCondition>) -> Vec<JobCondition> {
    for condition in &input.recorded.conditions {
        let is_target = condition.type_ == api::FAILURE_TARGET;
        if is_target && condition.status != "True" {
            continue;
        }
        put(&mut list, &in_their_words(condition, input.job));
    }
    let mut refused = list
        .iter_mut()
        .filter(|own| own.type_ == api::ADOPTION_REFUSED);
    if let Some(refused) = refused.find(|own| own.status == "True") {
        "False".clone_into(&mut refused.status);
        refused.reason = Some(reason::ADOPTED.to_owned());
        refused.message = Some("shed runs the Job".to_owned());
        refused.last_transition_time = Some(clock::time(input.now));
    }
    list
}

/// In batch/v1 a success policy that is met is the reason also where every task has succeeded.
fn in_their_words(condition: &Condition, job: &Job) -> Condition {
    let mut condition = condition.clone();
    let policy = job
        .spec
        .as_ref()
        .and_then(|spec| spec.success_policy.as_ref());
    if policy.is_some() && condition.reason == reason::COMPLETIONS_REACHED {
        reason::SUCCESS_POLICY.clone_into(&mut condition.reason);
    }
    condition
}

fn put(list: &mut Vec<JobCondition>, condition: &Condition) {
    let fresh = JobCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: Some(condition.reason.clone()),
        message: Some(by_annotations(&condition.message).into_owned()),
        last_probe_time: Some(condition.last_transition_time.clone()),
        last_transition_time: Some(condition.last_transition_time.clone()),
    };
    match list.iter_mut().find(|own| own.type_ == condition.type_) {
        Some(own) => *own = fresh,
        None => list.push(fresh),
    }
}

/// The status with a condition of the companion's; absent if the Job has ended.
pub fn with(job: &Job, condition: &Condition) -> Option<JobStatus> {
    if is_finished(job) {
        return None;
    }
    let mut status = job.status.clone().unwrap_or_default();
    put(status.conditions.get_or_insert_default(), condition);
    Some(status)
}

/// The status with the reason why shed does not run a Job; absent if the status contains it
/// already.
pub fn refused(job: &Job, reason: &str, message: &str, now: Instant) -> Option<JobStatus> {
    let mut status = job.status.clone().unwrap_or_default();
    let mut list = status.conditions.take().unwrap_or_default();
    let reported = list.iter().any(|own| {
        own.type_ == api::ADOPTION_REFUSED
            && own.status == "True"
            && own.reason.as_deref() == Some(reason)
            && own.message.as_deref() == Some(message)
    });
    if reported {
        return None;
    }
    let condition = Condition {
        type_: api::ADOPTION_REFUSED.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: None,
        last_transition_time: clock::time(now),
    };
    put(&mut list, &condition);
    status.conditions = Some(list);
    Some(status)
}

#[cfg(test)]
mod tests;
