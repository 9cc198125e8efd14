//! How many attempts a job may have at a time, so that its object stays small enough to be written
//! whatever happens to them. Pure.
//!
//! The size of an open task and of a live attempt in the ledger is bounded when the attempt is
//! launched. The bound includes every kill, failure, grant and node that may be recorded. The lists
//! of done and failed indexes are bounded too; they are longest if no two indexes are adjacent.
//! Specification, metadata and conditions never grow. Checkpoints are kept only while they fit, so
//! no bytes are reserved for them. Fields that other clients put into the status, and that are kept
//! there, count too. The lengths are those of src/api/ledger/compact.rs.

use shed_core::plan::{Launch, Move};
use shed_core::snapshot::{AttemptKind, Idempotency, Resume, ResumePoint};

use crate::api::{DeadlineJob, DeadlineJobStatus, Ledger, RECORD_MAX, SEGMENTS_MAX, TaskEntry};
use crate::size::{self, OBJECT_MAX};
use crate::validate::ValidatedJob;

/// All conditions with their messages at their longest.
pub const CONDITIONS: usize = 20 * 1024;
/// Conditions, counts, times and the job's record (`"record":` and a comma) of the status, and the ledger's table of
/// kills.
const STATUS: usize = CONDITIONS + 6 * 1024 + RECORD_MAX + 10;
/// The deadline of a workflow's run in the ledger, and the run in the status with a stage, without the name of the run.
const RUN: usize = 512;
/// A segment of a divided task, and its index among the done or failed ones. No segment is both won
/// and dropped.
const PART: usize = 150;
/// `"99999,999,f999,d999",`: a task whose attempts have failed, or were disrupted, hundreds of
/// times. While it is open its index, `99999,`, is in no list.
const TASK: usize = 23 - 6;
/// `;999o9999999999,k999`: an attempt up to its kill, within a hundred days. A task that waits for its
/// next one has `,b9999999999`, which is shorter.
const ATTEMPT: usize = 20;
/// `,w999,c999,x9999999999`: the fields that clones add to their task, which is done while they are
/// still ending.
const CLONED: usize = 22 + 6;
/// `,g999.99999999.9999999999`: the commit grant.
const GRANT: usize = 26;
/// `,n9999`: where it runs.
const PLACE: usize = 6;
/// `.9999`: a node to stay away from.
const AVOIDED: usize = 5;
/// `,p9999`: a point of the task or of an attempt.
const REFERENCE: usize = 6;
/// The quotes of a point, and the separators between and after its parts.
const POINT: usize = 4;

/// The bounds of a job's attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that are always needed.
    fixed: usize,
    /// Maximum bytes of an attempt in addition to [`ATTEMPT`].
    per_attempt: usize,
    /// Maximum bytes of a task in addition to [`TASK`].
    per_task: usize,
}

impl Bounds {
    /// The job's bounds. `node_bytes` is the total length of the nodes' names and boot ids.
    /// `skipped` counts the bytes of the object that its copy here lacks.
    pub fn of(owner: &DeadlineJob, job: &ValidatedJob, node_bytes: usize, skipped: usize) -> Self {
        let is_fenced = job.rules.idempotency == Idempotency::Fenced;
        let is_placed = is_fenced || job.rules.idempotency == Idempotency::None;
        let parts = match job.rules.resume {
            Resume::Range => PART * SEGMENTS_MAX,
            Resume::None | Resume::Checkpoint | Resume::Latest => 0,
        };
        // The name is in the annotations, in the ledger, and in the status with a few times.
        let run = job.workflow.as_ref().map_or(0, |it| 2 * it.run.len() + RUN);
        let own = size::bytes(&owner.metadata) + skipped + job.spec_bytes + run;
        let foreign = owner.status.as_ref().map_or(0, foreign);
        // Names are in one table, with their boot ids in another.
        let nodes = if is_placed {
            2 * node_bytes
        } else {
            node_bytes
        };
        Self {
            fixed: STATUS + own + foreign + parts + nodes + lists(job.rules.completions),
            per_attempt: if is_placed { PLACE } else { 0 },
            per_task: if is_fenced { GRANT } else { 0 },
        }
    }

    /// Maximum bytes of the object if nothing more is launched.
    pub fn committed(&self, ledger: &Ledger) -> usize {
        let tasks = ledger.tasks.values().map(|task| {
            let attempts = task.attempts.iter().map(|attempt| {
                let kept = unknown(&attempt.unknown);
                self.attempt(attempt.kind) + kept + AVOIDED * attempt.avoid.len()
            });
            let kept = unknown(&task.unknown);
            self.task() + kept + points(task) + attempts.sum::<usize>()
        });
        self.fixed + tasks.sum::<usize>() + extras(ledger)
    }

    /// How many further tasks may be begun.
    pub fn further(&self, ledger: &Ledger) -> u32 {
        let left = OBJECT_MAX.saturating_sub(self.committed(ledger));
        let each = self.task() + self.attempt(AttemptKind::Original);
        u32::try_from(left / each).unwrap_or(u32::MAX)
    }

    /// The actions without the launches that don't fit, or all of them.
    pub fn fitting(&self, ledger: &Ledger, actions: &[Move]) -> Option<Vec<Move>> {
        let launches = || actions.iter().filter_map(launch);
        let cost = |launch: &Launch| self.launch(ledger, launch);
        let committed = self.committed(ledger);
        if committed + launches().map(cost).sum::<usize>() <= OBJECT_MAX {
            return None;
        }
        let mut left = OBJECT_MAX.saturating_sub(committed);
        let fits = |action: &&Move| {
            let Some(launch) = launch(action) else {
                return true;
            };
            let rest = left.checked_sub(cost(launch));
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        Some(actions.iter().filter(fits).cloned().collect())
    }

    /// Drops the checkpoints that do not fit, and returns how many. It keeps those that a retry
    /// needs first: those of tasks without a live attempt, then the most advanced.
    pub fn keep_checkpoints(&self, ledger: &mut Ledger) -> usize {
        if self.committed(ledger) <= OBJECT_MAX {
            return 0;
        }
        let reported = ledger.tasks.values_mut().filter_map(|task| {
            let lives = task.lives();
            let point = task.resume.take()?;
            // The ledger holds the start point of an attempt anyway.
            task.resume = begun_at(task).cloned().map(Box::new);
            Some((task.index, lives, point))
        });
        let mut reported: Vec<_> = reported.collect();
        reported.sort_by(|(_, a_lives, a), (_, b_lives, b)| {
            a_lives.cmp(b_lives).then(b.progress.total_cmp(&a.progress))
        });
        let mut left = OBJECT_MAX.saturating_sub(self.committed(ledger));
        let mut dropped = 0;
        for (index, _, point) in reported {
            let Some(task) = ledger.tasks.get_mut(&index) else {
                continue;
            };
            let before = points(task);
            let begun = task.resume.replace(point);
            match left.checked_sub(points(task).saturating_sub(before)) {
                Some(rest) => left = rest,
                None => {
                    task.resume = begun;
                    dropped += 1;
                }
            }
        }
        dropped
    }

    fn launch(&self, ledger: &Ledger, launch: &Launch) -> usize {
        let entry = ledger.tasks.get(&launch.task.0);
        let task = match entry {
            Some(_) => 0,
            None => self.task(),
        };
        let durable = entry.and_then(|task| task.resume.as_ref());
        let is_durable = |point: &&ResumePoint| {
            durable.is_some_and(|durable| {
                let is_as_far = durable.progress.total_cmp(&point.progress).is_eq();
                is_as_far && *durable.checkpoint == *point.checkpoint
            })
        };
        // A checkpoint that is not durable yet becomes durable.
        let own = launch.resume.as_ref().filter(|point| !is_durable(point));
        let own = own.map_or(0, |point| checkpoint_bytes(&point.checkpoint) + REFERENCE);
        let reference = if launch.resume.is_some() {
            REFERENCE
        } else {
            0
        };
        task + self.attempt(launch.kind) + own + reference + AVOIDED * launch.avoid.len()
    }

    fn task(&self) -> usize {
        TASK + self.per_task
    }

    fn attempt(&self, kind: AttemptKind) -> usize {
        let cloned = match kind {
            AttemptKind::Clone => CLONED,
            AttemptKind::Original | AttemptKind::Retry => 0,
        };
        ATTEMPT + cloned + self.per_attempt
    }
}

/// Bytes of a status that shed keeps although it did not write them: unknown fields, and
/// conditions, as far as all of them exceed shed's own maximum.
fn foreign(status: &DeadlineJobStatus) -> usize {
    let conditions = size::bytes(&status.conditions).saturating_sub(CONDITIONS);
    conditions + status.unknown.bytes()
}

/// Bytes that only an edited ledger has, or one with a long note.
fn extras(ledger: &Ledger) -> usize {
    let parts = ledger.segments.len().saturating_sub(SEGMENTS_MAX);
    let note = ledger.ending_note.as_ref().map_or(0, size::bytes);
    let quarantine = ledger.quarantine.as_ref();
    let reason = quarantine.map_or(0, |entry| size::bytes(&entry.reason));
    PART * parts + note + reason
}

/// Bytes of fields of a line that this version does not know.
fn unknown(fields: &[String]) -> usize {
    fields.iter().map(|field| 1 + size::bytes(field)).sum()
}

/// The furthest point that an attempt of the task began at.
fn begun_at(task: &TaskEntry) -> Option<&ResumePoint> {
    let points = task.attempts.iter().filter_map(|one| one.resume.as_deref());
    points.max_by(|a, b| a.progress.total_cmp(&b.progress))
}

/// Bytes of the points that the task and its attempts name. The ledger contains each point once.
fn points(task: &TaskEntry) -> usize {
    let attempts = task.attempts.iter();
    let named: Vec<&ResumePoint> = attempts
        .filter_map(|attempt| attempt.resume.as_deref())
        .chain(task.resume.as_deref())
        .collect();
    let bytes = named.iter().enumerate();
    let bytes = bytes.map(|(at, point)| match named[..at].contains(point) {
        true => REFERENCE,
        false => point_bytes(point),
    });
    bytes.sum()
}

/// Bytes of a point that nothing else names.
fn point_bytes(point: &ResumePoint) -> usize {
    checkpoint_bytes(&point.checkpoint) + REFERENCE
}

fn checkpoint_bytes(checkpoint: &str) -> usize {
    // Progress has at most 24 digits.
    POINT + 24 + size::bytes(checkpoint)
}

/// Maximum bytes of the lists of done and of failed indexes together, when no two indexes are
/// adjacent.
fn lists(completions: u32) -> usize {
    let completions = completions as usize;
    let (mut bytes, mut begin, mut digits) = (0, 0, 1);
    let mut end: usize = 10;
    while begin < completions {
        bytes += (end.min(completions) - begin) * (digits + 1);
        (begin, end, digits) = (end, end.saturating_mul(10), digits + 1);
    }
    bytes
}

fn launch(action: &Move) -> Option<&Launch> {
    match action {
        Move::Launch(launch) => Some(launch),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
