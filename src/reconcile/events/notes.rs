//! What users read about the notices of a step: one event for each kind of notice, with the number of its attempts. Pure.
//!
//! First attempts and counted ends are in the status and the metrics, because an event for each of them would cost a
//! write per task.

use kube::runtime::events::EventType;
use shed_core::plan::{Launch, LaunchReason};
use shed_core::snapshot::{AttemptKind, Conclusion, KillKind};

use crate::api::{DeadlineJobStatus, Ledger, reason};
use crate::clock;
use crate::cluster::pod::AttemptId;
use crate::conditions::messages::REQUEST_A_GRANT;
use crate::job::notice::Notice;
use crate::pod_names;
use crate::validate::ValidatedJob;

/// Tasks that a note lists.
const LIST_MAX: usize = 8;

/// Type, reason and note of an event.
pub type Words = (EventType, &'static str, String);

/// An event about notices.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedEvent {
    /// What it says.
    pub words: Words,
    /// What it is about besides the job.
    pub about: About,
    /// Whether it reports the job's end.
    pub is_end: bool,
}

/// What makes an event different from others of its reason. Otherwise events within six minutes are merged into one,
/// with the first one's note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// The job alone.
    Job,
    /// A pod: the first one of its attempts.
    Pod(String),
    /// A task: the first one.
    Task(u32),
}

/// The names of attempts and tasks.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The job.
    pub job: &'a ValidatedJob,
    /// Its ledger.
    pub ledger: &'a Ledger,
}

impl Names<'_> {
    fn pod(self, id: AttemptId) -> String {
        pod_names::of_attempt(self.job, id.0, id.1)
    }

    fn task(self, id: AttemptId) -> u32 {
        self.ledger.task_of(id.0)
    }

    fn tasks(self, ids: &[AttemptId]) -> String {
        tasks(ids.iter().map(|id| self.task(*id)))
    }

    /// Such as `clone x of task 3`, or `2 clones of tasks 3 and 5`.
    fn attempts(self, kind: &str, ids: &[AttemptId]) -> String {
        match ids {
            [id] => format!("{kind} {} of task {}", self.pod(*id), self.task(*id)),
            _ => format!("{} {kind}s of {}", ids.len(), self.tasks(ids)),
        }
    }
}

/// Such as `task 3`, or `tasks 2, 5 and 7`.
fn tasks(all: impl Iterator<Item = u32>) -> String {
    let mut all: Vec<u32> = all.collect();
    all.sort_unstable();
    all.dedup();
    let listed: Vec<String> = all.iter().take(LIST_MAX).map(u32::to_string).collect();
    match (&listed[..], all.len()) {
        ([one], _) => format!("task {one}"),
        ([some @ .., last], count) if count <= LIST_MAX => {
            format!("tasks {} and {last}", some.join(", "))
        }
        (some, count) => format!("tasks {}, … ({count} in all)", some.join(", ")),
    }
}

/// The events about the notices of one step, in their order.
pub fn reported(
    notices: &[Notice],
    names: Names<'_>,
    status: Option<&DeadlineJobStatus>,
) -> Vec<ReportedEvent> {
    let mut events = Vec::new();
    let mut seen: Vec<Group> = Vec::new();
    for notice in notices {
        match Group::of(notice) {
            Some(group) if !seen.contains(&group) => {
                seen.push(group);
                let members = notices.iter();
                let members: Vec<&Notice> = members
                    .filter(|other| Group::of(other) == Some(group))
                    .collect();
                events.extend(of_group(group, &members, names));
            }
            Some(_) => {}
            None => events.extend(of_one(notice, status)),
        }
    }
    events
}

/// Notices that share an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Clones,
    Stops(KillKind),
    CloneWins,
    Uncommitted,
    FailedTasks,
}

impl Group {
    fn of(notice: &Notice) -> Option<Self> {
        match notice {
            Notice::Launched { launch, .. } if launch.kind == AttemptKind::Clone => {
                Some(Self::Clones)
            }
            Notice::Killed { kind, .. } => Some(Self::Stops(*kind)),
            Notice::Won { kind, .. } if *kind == AttemptKind::Clone => Some(Self::CloneWins),
            Notice::Counted {
                uncommitted: true, ..
            } => Some(Self::Uncommitted),
            Notice::TaskFailed { .. } => Some(Self::FailedTasks),
            Notice::Launched { .. }
            | Notice::Won { .. }
            | Notice::Granted { .. }
            | Notice::Counted { .. }
            | Notice::Ending(_)
            | Notice::Finished(_)
            | Notice::Unrecorded { .. } => None,
        }
    }
}

fn of_group(group: Group, members: &[&Notice], names: Names<'_>) -> Option<ReportedEvent> {
    let ids: Vec<AttemptId> = members.iter().filter_map(|notice| id(notice)).collect();
    let words = match group {
        Group::Clones => clone_words(members, &ids, names),
        Group::Stops(kind) => stop_words(kind, &ids, names)?,
        Group::CloneWins => win_words(&ids, names),
        Group::Uncommitted => uncommitted_words(&ids, names),
        Group::FailedTasks => {
            let failed = members.iter().filter_map(|notice| match notice {
                Notice::TaskFailed { task } => Some(names.ledger.task_of(*task)),
                _ => None,
            });
            let failed: Vec<u32> = failed.collect();
            let first = failed.first().copied()?;
            let note = format!(
                "{} failed for good, and shed starts no further attempts; read the log of the last attempt",
                tasks(failed.into_iter())
            );
            return Some(ReportedEvent {
                words: (EventType::Warning, "TaskFailed", note),
                about: About::Task(first),
                is_end: false,
            });
        }
    };
    let first = *ids.first()?;
    Some(ReportedEvent {
        words,
        about: About::Pod(names.pod(first)),
        is_end: false,
    })
}

fn id(notice: &Notice) -> Option<AttemptId> {
    match notice {
        Notice::Launched { id, .. }
        | Notice::Killed { id, .. }
        | Notice::Won { id, .. }
        | Notice::Counted { id, .. } => Some(*id),
        _ => None,
    }
}

fn clone_words(members: &[&Notice], ids: &[AttemptId], names: Names<'_>) -> Words {
    let launches: Vec<&Launch> = members
        .iter()
        .filter_map(|notice| match notice {
            Notice::Launched { launch, .. } => Some(launch),
            _ => None,
        })
        .collect();
    let mut note = match (ids, &launches[..]) {
        ([id], [launch]) => {
            let (pod, task) = (names.pod(*id), names.task(*id));
            format!(
                "shed started clone {pod} of task {task}, from {:.0} %",
                begin(launch)
            )
        }
        _ => format!("shed started {} clones, of {}", ids.len(), names.tasks(ids)),
    };
    if let ([launch, ..], Some(finding)) = (&launches[..], finding(&launches)) {
        match launches.len() {
            1 => note.push_str(&format!(": {finding}")),
            _ => note.push_str(&format!(
                ": of task {}, {finding}",
                names.ledger.task_of(launch.task.0)
            )),
        }
    }
    if let Some((before, after)) = chances(&launches) {
        note.push_str(&format!("; PoCD {before:.3} → {after:.3}"));
    }
    (EventType::Normal, "CloneLaunched", note)
}

/// Where the attempt begins, in percent.
fn begin(launch: &Launch) -> f64 {
    launch.resume.as_ref().map_or(0.0, |point| point.progress) * 100.0
}

/// What the policy found about the first of the clones.
fn finding(launches: &[&Launch]) -> Option<String> {
    match launches.first()?.reason {
        LaunchReason::Rule { finding, .. } => Some(finding.to_string()),
        LaunchReason::Straggler { .. } | LaunchReason::Admitted => None,
    }
}

/// The PoCD before the first of the clones, and after the last one.
fn chances(launches: &[&Launch]) -> Option<(f64, f64)> {
    let of = |launch: &&Launch| match launch.reason {
        LaunchReason::Straggler {
            pocd_before,
            pocd_after,
        } => Some((pocd_before, pocd_after)),
        LaunchReason::Rule {
            pocd_before,
            pocd_after,
            ..
        } => pocd_before.zip(pocd_after),
        LaunchReason::Admitted => None,
    };
    let known: Vec<(f64, f64)> = launches.iter().filter_map(of).collect();
    let lowest = known.iter().map(|(before, _)| *before).reduce(f64::min)?;
    let highest = known.iter().map(|(_, after)| *after).reduce(f64::max)?;
    Some((lowest, highest))
}

fn win_words(ids: &[AttemptId], names: Names<'_>) -> Words {
    let note = match ids {
        [id] => format!(
            "clone {} finished task {} first; shed stops the task's other attempts",
            names.pod(*id),
            names.task(*id)
        ),
        _ => format!(
            "{} clones finished {} first; shed stops the tasks' other attempts",
            ids.len(),
            names.tasks(ids)
        ),
    };
    (EventType::Normal, "CloneWon", note)
}

fn uncommitted_words(ids: &[AttemptId], names: Names<'_>) -> Words {
    let what = names.attempts("attempt", ids);
    let count = match ids {
        [_] => "it counts",
        _ => "they count",
    };
    let note = format!(
        "{what} ended with exit code 0 and never requested a commit grant, so {count} as failed; {REQUEST_A_GRANT}"
    );
    (EventType::Warning, reason::COMMIT_NOT_REQUESTED, note)
}

/// Stops that follow from the end of a task or of the job are no events of their own.
fn stop_words(kind: KillKind, ids: &[AttemptId], names: Names<'_>) -> Option<Words> {
    let what = names.attempts("attempt", ids);
    let clone = names.attempts("clone", ids);
    let (type_, reason, note) = match kind {
        KillKind::Settle | KillKind::JobEnd | KillKind::Suspend | KillKind::Surplus => return None,
        KillKind::Prune => (
            EventType::Normal,
            "AttemptPruned",
            format!("shed stopped {what}, because a faster attempt continues"),
        ),
        KillKind::Restart => (
            EventType::Normal,
            "TaskRestarted",
            format!("shed stopped {what}, because a new attempt is expected to finish earlier"),
        ),
        KillKind::Preempt => (
            EventType::Normal,
            "AttemptPreempted",
            format!(
                "shed stopped {what} for a more urgent job, and resumes from the checkpoint later"
            ),
        ),
        KillKind::Evict => (
            EventType::Normal,
            "CloneEvicted",
            format!("shed stopped {clone}, because a first attempt needs the slot"),
        ),
        KillKind::Abandon => (
            EventType::Warning,
            "AttemptAbandoned",
            format!(
                "no kubelet reports the end of {what}; shed starts another attempt; check the node"
            ),
        ),
        KillKind::Replace => (
            EventType::Warning,
            "AttemptReplaced",
            format!(
                "{what} could not start; shed retries later unless another attempt runs; AttemptsBlocked names the cause"
            ),
        ),
    };
    Some((type_, reason, note))
}

fn of_one(notice: &Notice, status: Option<&DeadlineJobStatus>) -> Option<ReportedEvent> {
    match notice {
        // The event of the missed deadline reports it.
        Notice::Finished(Conclusion::DeadlineExceeded) => None,
        Notice::Finished(conclusion) => Some(ReportedEvent {
            words: end_words(*conclusion, status),
            about: About::Job,
            is_end: true,
        }),
        Notice::Unrecorded { pod } => {
            let note = format!(
                "pod {pod} carries this job's labels and an attempt number that is not in the ledger; shed \
                 deletes it"
            );
            Some(ReportedEvent {
                words: (EventType::Warning, "UnrecordedAttempt", note),
                about: About::Pod(pod.clone()),
                is_end: false,
            })
        }
        _ => None,
    }
}

fn end_words(conclusion: Conclusion, status: Option<&DeadlineJobStatus>) -> Words {
    let (name, note) = match conclusion {
        Conclusion::Complete => ("Completed", "every task has a winner"),
        Conclusion::SuccessPolicy => (
            "Completed",
            "enough tasks have a winner for spec.successPolicy",
        ),
        Conclusion::TimeLimit => (
            reason::DEADLINE_EXCEEDED,
            "not complete when spec.activeDeadlineSeconds had passed; shed stopped the attempts",
        ),
        Conclusion::MaxFailedIndexes => (
            "MaxFailedIndexesExceeded",
            "more tasks failed for good than spec.maxFailedIndexes allows; shed stopped the others",
        ),
        Conclusion::BackoffLimit => (
            "BackoffLimitExceeded",
            "the job has reached spec.backoffLimit; shed stopped the other attempts",
        ),
        Conclusion::PodFailurePolicy => (
            "PodFailurePolicy",
            "an attempt failed, and a rule of spec.podFailurePolicy fails the job",
        ),
        Conclusion::DeadlineExceeded => ("DeadlineMissed", "not complete at the deadline"),
        Conclusion::DeadlineInPast => (
            "DeadlineInPast",
            "the deadline had passed when the job was submitted; submit it with a later deadline",
        ),
        Conclusion::FailedIndexes => (
            "FailedIndexes",
            "some tasks failed for good; status.failedIndexes lists them",
        ),
    };
    let is_success = conclusion.is_success();
    let type_ = match is_success {
        true => EventType::Normal,
        false => EventType::Warning,
    };
    let mut note = note.to_owned();
    if let Some(status) = status.filter(|_| is_success) {
        note.push_str(&success(status));
    }
    (type_, name, note)
}

/// When a complete job finished, and what clones did for it.
fn success(status: &DeadlineJobStatus) -> String {
    let mut words = String::new();
    if let (Some(deadline), Some(end)) = (&status.deadline, &status.completion_time) {
        let left = clock::instant(deadline)
            .since(clock::instant(end))
            .seconds();
        words.push_str(&match left >= 0.0 {
            true => format!(", {left:.0} s before the deadline"),
            false => format!(", {:.0} s after the deadline", -left),
        });
    }
    match (status.attempts.clones, status.attempts.clone_wins) {
        (0, _) => {}
        (1, wins) => words.push_str(&format!("; 1 clone was started, and {wins} finished first")),
        (clones, wins) => words.push_str(&format!(
            "; {clones} clones were started, and {wins} finished first"
        )),
    }
    words
}

#[cfg(test)]
mod tests;
