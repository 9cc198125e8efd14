//! Divisions of tasks (`resume: Range`): where the launch of a clone divides a task, the segments
//! of attempts that ended elsewhere than requested, and the settings of a segment's pod. Pure.
//! `docs/reference/tasks.md#segments-of-divided-tasks` has the contract with the task.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use shed_agent::Units;
use shed_agent::signed::OPERATOR_KEY_VAR;
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::Launch;
use shed_core::snapshot::{AttemptKind, KillKind, Resume, ResumePoint, TaskSnapshot};
use shed_core::time::Instant;

use crate::api::{self, AttemptEntry, Ledger, SegmentEntry};
use crate::attempt_pod::host_name;
use crate::cluster::pod::{AttemptFacts, JobPods, Stage};
use crate::job::facts::Reported;
use crate::job::notice::Notice;
use crate::job::view::JobView;
use crate::reconcile::step::Input;
use crate::validate::ValidatedJob;

/// The launch in the form to record. A clone that takes the rest of a running attempt's input
/// divides the task, and goes to the new segment. None if the attempt would finish first.
pub fn place<'a>(
    ledger: &mut Ledger,
    input: Input<'_>,
    launch: &'a Launch,
) -> Option<Cow<'a, Launch>> {
    if input.view.job.rules.resume != Resume::Range {
        return Some(Cow::Borrowed(launch));
    }
    let mut placed = Launch {
        resume: None,
        ..launch.clone()
    };
    if let (AttemptKind::Clone, Some(planned)) = (launch.kind, units(launch.resume.as_ref())) {
        let rest = match divided_now(ledger, &input.view.ledger, launch.task.0) {
            Some(rest) => Some(rest),
            None => {
                let at = ahead(input.facts.task(launch.task)?, planned)?;
                let end = ledger
                    .segment(launch.task.0)
                    .map_or(at.total, |part| part.end);
                // It was divided, or is all but through, since the plan was made.
                if at.done >= end {
                    return None;
                }
                ledger.split(launch.task.0, at, input.view.job.rules.completions)
            }
        };
        // A task that cannot be divided any more is cloned as a whole.
        placed.task = rest.map_or(launch.task, TaskIndex);
    }
    Some(Cow::Owned(placed))
}

/// The task has gone on since the plan was made. None if it is all but through by now.
fn ahead(task: &TaskSnapshot, planned: Units) -> Option<Units> {
    let reports = task.live().any(|attempt| attempt.progress.is_some());
    match units(task.best_resume_point()) {
        Some(now) if now.done > planned.done => Some(now),
        None if reports => None,
        _ => Some(planned),
    }
}

/// The segment that this very step has split off.
fn divided_now(ledger: &Ledger, before: &Ledger, index: u32) -> Option<u32> {
    let part = ledger.segment(index)?;
    let is_new = before.segment(index).is_none_or(|old| old.end != part.end);
    is_new.then(|| ledger.next_segment(index).map(|next| next.index))?
}

fn units(point: Option<&ResumePoint>) -> Option<Units> {
    Units::parse(&point?.checkpoint)
}

/// Corrects the segments by the positions of their attempts. An attempt that ended before its
/// segment's end leaves a new segment behind it. One that ended after it takes over the segments it
/// processed. A running attempt that has passed the end continues if no attempt has started behind
/// it.
pub fn put_right(view: &mut JobView) -> Vec<Notice> {
    let JobView {
        job,
        ledger,
        pods,
        reports,
        now,
        ..
    } = view;
    let now = *now;
    let mut notices = Vec::new();
    let open = |part: &&SegmentEntry| part.winner.is_none() && !part.dropped;
    let indexes: Vec<u32> = ledger
        .segments
        .values()
        .filter(open)
        .map(|part| part.index)
        .collect();
    for index in indexes {
        let seen = Seen::of(ledger, index, pods, reports);
        let Some(part) = ledger.segment(index).filter(open) else {
            continue;
        };
        let (start, end) = (part.start, part.end);
        if seen.ended.iter().any(|units| units.done == end) {
            continue;
        }
        let inside = |units: &&Units| start < units.done && units.done < end;
        if let Some(&short) = seen.ended.iter().find(inside) {
            ledger.split(index, short, job.rules.completions);
        } else if let Some(behind) = done_behind(ledger, index, &seen) {
            // Also a segment that has failed for good, because its work is done now.
            for taken in behind {
                take_over(ledger, index, taken, KillKind::Settle, now, &mut notices);
            }
        } else if let Some(next) = next_to_do(ledger, index)
            && seen.passed.is_some_and(|passed| passed > end)
            && !is_started(ledger, next, pods)
        {
            take_over(ledger, index, next, KillKind::Prune, now, &mut notices);
        }
    }
    notices
}

/// Progress of a segment's attempts.
#[derive(Default)]
struct Seen {
    /// Units at which successful attempts reported their end.
    ended: Vec<Units>,
    /// The furthest that a running one reports.
    passed: Option<u64>,
}

impl Seen {
    fn of(
        ledger: &Ledger,
        index: u32,
        pods: &JobPods,
        reports: &BTreeMap<String, Reported>,
    ) -> Self {
        let mut seen = Self::default();
        let Some(part) = ledger.segment(index) else {
            return seen;
        };
        let is_of_part = |units: &Units| units.total == part.total;
        for attempt in unkilled(ledger, index) {
            let Some(pod) = pods.get(&(index, attempt.number)) else {
                continue;
            };
            match pod.attempt.as_deref() {
                // An end that may be an answer to a deletion is a result only at the segment's end.
                Some(
                    facts @ AttemptFacts {
                        stage: Stage::Succeeded { .. },
                        ..
                    },
                ) if !facts.end.may_be_answer() || facts.has_reached_end(Some(part)) => {
                    seen.ended.extend(facts.reached.filter(is_of_part));
                }
                Some(AttemptFacts {
                    stage: Stage::Running,
                    ..
                }) => {
                    let units = reports.get(&pod.uid).and_then(|reported| reported.units);
                    let done = units.filter(is_of_part).map(|units| units.done);
                    seen.passed = seen.passed.max(done);
                }
                _ => {}
            }
        }
        seen
    }
}

fn unkilled(ledger: &Ledger, index: u32) -> impl Iterator<Item = &AttemptEntry> {
    let entry = ledger.tasks.get(&index).into_iter();
    entry
        .flat_map(|entry| &entry.attempts)
        .filter(|attempt| attempt.kill.is_none())
}

/// The segments behind this one whose work an attempt of it has done, in the order of the input.
fn done_behind(ledger: &Ledger, index: u32, seen: &Seen) -> Option<Vec<u32>> {
    let mut ended = seen.ended.iter();
    ended.find_map(|units| ledger.unwon_behind(index, units.done))
}

/// The segment behind this one, if an attempt still has to process it.
fn next_to_do(ledger: &Ledger, index: u32) -> Option<u32> {
    let next = ledger.next_segment(index)?;
    let is_over = next.winner.is_some() || ledger.has_failed(next.index);
    (!is_over).then_some(next.index)
}

/// Whether an attempt of the segment has begun its work.
fn is_started(ledger: &Ledger, index: u32, pods: &JobPods) -> bool {
    unkilled(ledger, index).any(|attempt| {
        let pod = pods.get(&(index, attempt.number));
        let facts = pod.and_then(|pod| pod.attempt.as_ref());
        facts.is_some_and(|facts| facts.started.is_some())
    })
}

fn take_over(
    ledger: &mut Ledger,
    index: u32,
    taken: u32,
    kind: KillKind,
    now: Instant,
    notices: &mut Vec<Notice>,
) {
    ledger.take_over(index, taken);
    let doomed: Vec<u32> = unkilled(ledger, taken)
        .map(|attempt| attempt.number)
        .collect();
    for number in doomed {
        if ledger.kill(TaskIndex(taken), AttemptNumber(number), kind, now) {
            notices.push(Notice::Killed {
                id: (taken, number),
                kind,
            });
        }
    }
}

/// Adds the segment of an attempt, and its task, to the pod.
pub fn dress(pod: &mut Pod, job: &ValidatedJob, ledger: &Ledger, index: u32, operator_key: &str) {
    let host = host_name(job, ledger.task_of(index));
    let task = ledger.task_of(index).to_string();
    let metadata = &mut pod.metadata;
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(api::LABEL_INDEX.to_owned(), task.clone());
    labels.insert(api::LABEL_SEGMENT.to_owned(), index.to_string());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(api::LABEL_INDEX.to_owned(), task.clone());
    let part = ledger.segment(index);
    let mut variables = vec![
        (api::ENV_INDEX, task),
        (
            api::ENV_RANGE_START,
            part.map_or(0, |part| part.start).to_string(),
        ),
        (api::ENV_STOP_FILE, api::STOP_PATH.to_owned()),
    ];
    variables.extend(part.map(|part| (api::ENV_RANGE_END, part.end.to_string())));
    let Some(spec) = &mut pod.spec else { return };
    spec.hostname = Some(host);
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        set_variables(container, &variables);
        if container.name == api::AGENT_CONTAINER {
            let key = [(OPERATOR_KEY_VAR, operator_key.to_owned())];
            set_variables(container, &key);
        }
    }
}

/// Before the template's own, which may refer to them.
fn set_variables(container: &mut Container, variables: &[(&str, String)]) {
    let own = container.env.take().unwrap_or_default();
    let ours = variables.iter().map(|(name, value)| EnvVar {
        name: (*name).to_owned(),
        value: Some(value.clone()),
        value_from: None,
    });
    let others = own
        .into_iter()
        .filter(|own| variables.iter().all(|(name, _)| own.name != *name));
    container.env = Some(ours.chain(others).collect());
}

#[cfg(test)]
mod tests;
