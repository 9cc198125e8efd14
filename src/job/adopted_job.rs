//! Where the facts about a batch/v1 Job differ from those about a `DeadlineJob`.

use shed_core::ids::TaskIndex;
use shed_core::index_set::IndexSet;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobRules, TaskSnapshot};
use shed_core::time::Instant;

use crate::api::{AttemptEntry, Ledger, TaskEntry};
use crate::cluster::failure::Match;
use crate::cluster::pod::PodFacts;
use crate::job::range;
use crate::job::view::JobView;
use crate::validate::ValidatedJob;

/// The job's rules. A work queue whose parallelism was lowered keeps the tasks that it had, and one that is empty also
/// keeps its running pods.
pub(super) fn rules(job: &ValidatedJob, ledger: &Ledger) -> JobRules {
    let mut rules = range::rules(job, ledger);
    if is_work_queue(job) {
        let attempted = ledger.tasks.keys().next_back().map(|&index| index + 1);
        let won = ledger.done.ranges().last().map(|(_, last)| last + 1);
        rules.completions = rules.completions.max(attempted.max(won).unwrap_or(0));
        if !ledger.done.is_empty() {
            rules.parallelism = rules.parallelism.max(rules.completions);
        }
    }
    rules
}

fn is_work_queue(job: &ValidatedJob) -> bool {
    job.adopted.as_ref().is_some_and(|job| job.work_queue)
}

/// Once a pod of a work queue has succeeded the queue is empty. No more pods are launched, and the
/// job is complete when the running pods have ended. It waits neither for those that shed stopped before, nor for those
/// that a user deletes, unless these have failed ([`count_deleted`]).
pub(super) fn close_work_queue(view: &JobView, indexes: u32, done: &mut IndexSet) {
    let (job, ledger) = (&view.job, &view.ledger);
    if !is_work_queue(job) || ledger.done.is_empty() {
        return;
    }
    let waits = !replaces_deleted(job);
    let is_leaving = |pod: &PodFacts| waits && pod.identity.deleting && !pod.terminal;
    let is_wanted = |entry: &TaskEntry| {
        entry.attempts.iter().any(|attempt| {
            let pod = view.pods.get(&(entry.index, attempt.number));
            attempt.kill.is_none() && !pod.is_some_and(|pod| is_leaving(pod))
        })
    };
    let attempted = ledger.tasks.values().filter(|entry| is_wanted(entry));
    let attempted: IndexSet = attempted.map(|entry| TaskIndex(entry.index)).collect();
    *done = done.union(&attempted.complement(indexes));
}

/// Whether a pod that is being deleted is replaced, and so has failed.
fn replaces_deleted(job: &ValidatedJob) -> bool {
    job.adopted.as_ref().is_some_and(|job| job.replaces_deleted)
}

/// Another limit on launches: batch/v1 creates no pod of a Job while one of its tasks backs off,
/// unless failures are counted per index.
pub(super) fn launch_not_before(
    job: &ValidatedJob,
    ledger: &Ledger,
    tasks: &[TaskSnapshot],
    now: Instant,
) -> Option<Instant> {
    let is_whole = job.retries.whole_job;
    let waits = ledger.tasks.values().filter(|_| is_whole);
    let waits = waits.filter_map(|entry| entry.retry_not_before);
    // A failure, or a success that empties a work queue, that was seen but is not counted yet. The pass that
    // counts it must not launch another task in the freed slot.
    let ended = |attempt: &AttemptSnapshot| match attempt.state {
        AttemptState::Failed { .. } => is_whole && attempt.kill.is_none(),
        AttemptState::Succeeded { .. } => is_work_queue(job),
        _ => false,
    };
    let uncounted = tasks.iter().any(|task| task.attempts.iter().any(ended));
    let until_counted = uncounted.then(|| now.plus(job.retries.first));
    waits.max().max(until_counted)
}

/// To batch/v1 a pod that is being deleted has failed, unless its Job waits for the end of deleted
/// pods or states the effect of two copies of a task. A deletion by shed itself is not a failure.
pub(super) fn count_deleted(
    job: &ValidatedJob,
    entry: &AttemptEntry,
    pod: Option<&PodFacts>,
    state: AttemptState,
) -> AttemptState {
    let replaces = replaces_deleted(job);
    let attempt = pod.and_then(|pod| pod.attempt.as_ref());
    let deleted = attempt.and_then(|attempt| attempt.deleted);
    let has_ended = matches!(
        state,
        AttemptState::Succeeded { .. } | AttemptState::Failed { .. }
    );
    match deleted {
        Some(finished) if replaces && entry.kill.is_none() && !has_ended => AttemptState::Failed {
            finished,
            disrupted: false,
        },
        _ => state,
    }
}

/// To batch/v1 a failed pod is a failure, whatever the cause, unless a rule specifies Ignore.
pub(super) fn count_disruption(
    job: &ValidatedJob,
    state: AttemptState,
    matched: Option<&Match>,
) -> AttemptState {
    match state {
        AttemptState::Failed { finished, .. } if job.adopted.is_some() => AttemptState::Failed {
            finished,
            disrupted: matched.is_some_and(Match::is_ignored),
        },
        state => state,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shed_core::fixtures as core;
    use shed_core::snapshot::KillKind;

    use super::*;
    use crate::adopt::translate;
    use crate::fixtures;

    fn job(change: &str) -> ValidatedJob {
        let job = fixtures::batch_job(change);
        translate::validated(&fixtures::companion(&job), &job).unwrap()
    }

    fn attempted(ledger: &mut Ledger, index: u32) {
        let entry = TaskEntry {
            index,
            ..TaskEntry::default()
        };
        ledger.tasks.insert(index, entry);
    }

    fn closed(job: &ValidatedJob, ledger: &Ledger, pod: Option<PodFacts>) -> String {
        let (job, now) = (Arc::new(job.clone()), Instant(8000));
        let mut view = JobView::new(job, ledger.clone(), now, now);
        view.pods.extend(pod.map(|pod| ((0, 0), Arc::new(pod))));
        let mut done = ledger.done.clone();
        close_work_queue(&view, 3, &mut done);
        done.to_string()
    }

    #[test]
    fn a_queue_that_is_empty_launches_nothing_more() {
        let (queue, mut ledger) = (job("parallelism: 3"), Ledger::default());
        assert_eq!(closed(&queue, &ledger, None), "", "nobody has succeeded");
        ledger.done.insert(TaskIndex(1));
        attempted(&mut ledger, 2);
        let all = "0-2";
        assert_eq!(
            closed(&queue, &ledger, None),
            all,
            "neither what never ran nor what failed"
        );
        assert_eq!(
            closed(&job("completions: 3"), &ledger, None),
            "1",
            "no queue"
        );
    }

    #[test]
    fn a_queue_that_is_empty_waits_for_no_pod_that_a_user_deletes() {
        let mut ledger = Ledger::default();
        ledger.done.insert(TaskIndex(1));
        attempted(&mut ledger, 0);
        let (entry, pod) = deleted();
        ledger.tasks.get_mut(&0).unwrap().attempts = vec![entry];
        let waits = job("parallelism: 3, podReplacementPolicy: Failed");
        assert_eq!(closed(&waits, &ledger, None), "1-2", "it runs");
        assert_eq!(closed(&waits, &ledger, Some(pod.clone())), "0-2");
        let counts = job("parallelism: 3");
        assert_eq!(closed(&counts, &ledger, Some(pod)), "1-2", "it has failed");
    }

    #[test]
    fn a_queue_that_was_made_narrower_keeps_what_it_had() {
        let mut ledger = Ledger::default();
        attempted(&mut ledger, 6);
        assert_eq!(rules(&job("parallelism: 2"), &ledger).parallelism, 2);
        ledger.done.insert(TaskIndex(4));
        assert_eq!(rules(&job("parallelism: 2"), &ledger).completions, 7);
        let parallelism = |job| rules(&job, &ledger).parallelism;
        assert_eq!(parallelism(job("parallelism: 0")), 7, "no pod is stopped");
        assert_eq!(parallelism(job("parallelism: 2, completions: 3")), 2);
        assert_eq!(rules(&job("parallelism: 9"), &ledger).completions, 9);
        assert_eq!(rules(&job("completions: 3"), &ledger).completions, 3);
    }

    #[test]
    fn a_job_waits_as_a_whole_unless_failures_are_counted_per_index() {
        let mut ledger = Ledger::default();
        for (index, wait) in [(0, None), (1, Some(12_000)), (2, Some(11_000))] {
            attempted(&mut ledger, index);
            let entry = ledger.tasks.get_mut(&index).unwrap();
            entry.retry_not_before = wait.map(Instant);
        }
        let until = |job: &ValidatedJob, ledger: &Ledger, tasks: &[TaskSnapshot]| {
            launch_not_before(job, ledger, tasks, Instant(5_000))
        };
        let whole = job("completions: 3");
        assert_eq!(until(&whole, &ledger, &[]), Some(Instant(12_000)));
        let by_task = job("completions: 3, completionMode: Indexed, backoffLimitPerIndex: 1");
        assert_eq!(until(&by_task, &ledger, &[]), None);
        assert_eq!(until(&whole, &Ledger::default(), &[]), None);
        // The failure is not counted yet.
        let failed = core::job("a").task(1, [core::attempt(0).failed(4.0)]);
        let failed = core::world(5.0, 1, 1000).job(failed).build().jobs.remove(0);
        let first = Instant(5_000).plus(whole.retries.first);
        assert_eq!(
            until(&whole, &Ledger::default(), &failed.tasks),
            Some(first)
        );
        assert_eq!(until(&by_task, &Ledger::default(), &failed.tasks), None);
    }

    /// With fewer pods than tasks, after a suspension or with a lower parallelism, a slot is free for others.
    #[test]
    fn the_pass_that_sees_a_queue_empty_launches_nothing_more() {
        let done = core::job("a").task(1, [core::attempt(0).succeeded(4.0)]);
        let done = core::world(5.0, 1, 1000).job(done).build().jobs.remove(0);
        let until = |job: &ValidatedJob| {
            launch_not_before(job, &Ledger::default(), &done.tasks, Instant(5_000))
        };
        let queue = job("parallelism: 1");
        assert_eq!(
            until(&queue),
            Some(Instant(5_000).plus(queue.retries.first))
        );
        assert_eq!(until(&job("completions: 3")), None);
    }

    fn launched() -> AttemptEntry {
        AttemptEntry {
            number: 0,
            kind: shed_core::snapshot::AttemptKind::Original,
            launched: Instant(0),
            resume: None,
            avoid: Vec::new(),
            node: None,
            kill: None,
            killed_at: None,
            unknown: Vec::new(),
        }
    }

    /// Pods that a lower parallelism stopped may run on for long after the queue is empty.
    #[test]
    fn a_queue_that_is_empty_waits_for_no_task_that_was_stopped() {
        let (queue, mut ledger) = (job("parallelism: 3"), Ledger::default());
        ledger.done.insert(TaskIndex(0));
        for (index, kill) in [(1, None), (2, Some(KillKind::Surplus))] {
            attempted(&mut ledger, index);
            let attempt = AttemptEntry { kill, ..launched() };
            ledger.tasks.get_mut(&index).unwrap().attempts = vec![attempt];
        }
        assert_eq!(closed(&queue, &ledger, None), "0,2");
    }

    /// A running attempt whose pod was deleted at 7 s with a grace period of 3 s.
    fn deleted() -> (AttemptEntry, PodFacts) {
        let pod = "{metadata: {deletionTimestamp: '1970-01-01T00:00:10Z', deletionGracePeriodSeconds: 3, \
                   labels: {shed.dev/job-uid: d, shed.dev/task: '0', shed.dev/attempt: '0'}}, \
                   spec: {nodeName: n, containers: [{name: c}]}, status: {phase: Running}}";
        let pod = serde_saphyr::from_str(pod).unwrap();
        (launched(), PodFacts::from_pod(&pod, Instant(0)))
    }

    #[test]
    fn a_pod_that_is_deleted_has_failed_where_its_job_follows_batch() {
        let (entry, pod) = deleted();
        let state = |job: &ValidatedJob, entry: &AttemptEntry, state| {
            count_deleted(job, entry, Some(&pod), state)
        };
        let failed = AttemptState::Failed {
            finished: Instant(7000),
            disrupted: false,
        };
        let plain = job("completions: 1");
        assert_eq!(state(&plain, &entry, AttemptState::Running), failed);
        assert_eq!(state(&plain, &entry, AttemptState::Lost), failed);
        let won = AttemptState::Succeeded {
            finished: Instant(9000),
        };
        assert_eq!(state(&plain, &entry, won), won);
        let by_shed = AttemptEntry {
            kill: Some(KillKind::Settle),
            ..entry.clone()
        };
        let running = AttemptState::Running;
        assert_eq!(state(&plain, &by_shed, running), running);
        let waits = job("completions: 1, podReplacementPolicy: Failed");
        assert_eq!(state(&waits, &entry, running), running);
        let policy = "completions: 1, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: \
                      [{type: DisruptionTarget, status: 'True'}]}]}";
        assert_eq!(state(&job(policy), &entry, running), running);
        let own = crate::validate::validate(&fixtures::job("")).unwrap();
        assert_eq!(state(&own, &entry, running), running);
    }

    #[test]
    fn a_job_that_says_what_copies_do_is_not_replaced_at_once() {
        for said in ["Safe", "None"] {
            let mut job = fixtures::batch_job("completions: 1");
            let annotation = ("shed.dev/idempotency".to_owned(), said.to_owned());
            job.metadata.annotations = Some([annotation].into());
            let job = translate::validated(&fixtures::companion(&job), &job).unwrap();
            assert!(!job.adopted.unwrap().replaces_deleted, "{said}");
        }
    }

    #[test]
    fn a_pod_that_failed_has_failed_whoever_did_it() {
        let failed = |disrupted| AttemptState::Failed {
            finished: Instant(1),
            disrupted,
        };
        let adopted = job("completions: 1");
        assert_eq!(
            count_disruption(&adopted, failed(true), None),
            failed(false)
        );
        let own = crate::validate::validate(&fixtures::job("")).unwrap();
        assert_eq!(count_disruption(&own, failed(true), None), failed(true));
    }
}
