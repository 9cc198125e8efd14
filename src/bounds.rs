//! How many attempts a job may have at a time, so that its object stays small enough to be written
//! whatever becomes of them. Pure.
//!
//! What an open task and a live attempt can come to in the ledger is bounded when the attempt is launched:
//! with every kill, failure, grant and place that may be recorded of it. Beside it are the lists of done
//! and failed indexes, which take most where each is alone, and what never grows: specification,
//! metadata, conditions. Checkpoints are kept only as far as there is room, so nothing is set aside for
//! them. The lengths are those of src/api/ledger/compact.rs.

use shed_core::plan::{Action, Launch};
use shed_core::snapshot::{AttemptKind, Idempotency, Resume};

use crate::api::{DeadlineJob, ResumeEntry};
use crate::book::Book;
use crate::size::{self, OBJECT_MAX};
use crate::validate::ValidatedJob;

/// Conditions, counts and times of the status, with room to spare.
const STATUS: usize = 24 * 1024;
/// The parts of tasks that were split: 512 at most.
const PARTS: usize = 512 * 140;
/// `"99999,999,f999,d999",`: a task whose attempts have failed, or were disrupted, hundreds of times. As
/// long as it is open its index stands in no list, `99999,`.
const TASK: usize = 23 - 6;
/// `;999o9999999999,k999`: an attempt up to its kill, within a hundred days. A task that waits for its
/// next one has `,b9999999999`, which is shorter.
const ATTEMPT: usize = 20;
/// `,w999,c999,x9999999999`: what clones bring about in their task, which is done while they are
/// still ending.
const CLONED: usize = 22 + 6;
/// `,g999.99999999.9999999999`: leave to publish.
const GRANT: usize = 26;
/// `,n9999`: where it runs.
const PLACE: usize = 6;
/// `.9999`: a node to stay away from.
const AVOIDED: usize = 5;
/// `,p9999`, and the quotes of the point.
const POINT: usize = 10;

/// What bounds a job's attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that are taken whatever happens.
    fixed: usize,
    /// Most that an attempt comes to beside [`ATTEMPT`].
    per_attempt: usize,
    /// Most that a task comes to beside [`TASK`].
    per_task: usize,
}

impl Bounds {
    /// The job's bounds in a cluster whose nodes' names and boot ids come to so many bytes, and with so many
    /// bytes of the object that its copy here lacks.
    #[must_use]
    pub fn of(owner: &DeadlineJob, job: &ValidatedJob, node_bytes: usize, skipped: usize) -> Self {
        let is_fenced = job.rules.idempotency == Idempotency::Fenced;
        let is_placed = is_fenced || job.rules.idempotency == Idempotency::None;
        let parts = if job.rules.resume == Resume::Range {
            PARTS
        } else {
            0
        };
        let own = size::bytes(&owner.metadata) + skipped + size::bytes(&owner.spec);
        // Names stand in one table, with their boot ids in another.
        let nodes = if is_placed {
            2 * node_bytes
        } else {
            node_bytes
        };
        Self {
            fixed: STATUS + own + parts + nodes + lists(job.rules.completions),
            per_attempt: if is_placed { PLACE } else { 0 },
            per_task: if is_fenced { GRANT } else { 0 },
        }
    }

    /// Bytes that the object comes to at most if nothing further is launched.
    #[must_use]
    pub fn committed(&self, book: &Book) -> usize {
        let tasks = book.tasks.values().map(|task| {
            let attempts = task.attempts.iter();
            let attempts = attempts.map(|attempt| {
                let point = attempt.resume.as_ref().map_or(0, point_bytes);
                self.attempt(attempt.kind) + point + AVOIDED * attempt.avoid.len()
            });
            let point = task.resume.as_ref().map_or(0, point_bytes);
            self.task() + point + attempts.sum::<usize>()
        });
        self.fixed + tasks.sum::<usize>()
    }

    /// How many further tasks may be begun.
    #[must_use]
    pub fn further(&self, book: &Book) -> u32 {
        let left = OBJECT_MAX.saturating_sub(self.committed(book));
        let each = self.task() + self.attempt(AttemptKind::Original);
        u32::try_from(left / each).unwrap_or(u32::MAX)
    }

    /// The actions without the launches that don't fit, or all of them.
    #[must_use]
    pub fn fitting(&self, book: &Book, actions: &[Action]) -> Option<Vec<Action>> {
        let launches = || actions.iter().filter_map(launch);
        let cost = |launch: &Launch| self.launch(book, launch);
        let committed = self.committed(book);
        if committed + launches().map(cost).sum::<usize>() <= OBJECT_MAX {
            return None;
        }
        let mut left = OBJECT_MAX.saturating_sub(committed);
        let fits = |action: &&Action| {
            let Some(launch) = launch(action) else {
                return true;
            };
            let rest = left.checked_sub(cost(launch));
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        Some(actions.iter().filter(fits).cloned().collect())
    }

    /// Whether the object may come to more than is allowed.
    #[must_use]
    pub fn is_exceeded(&self, book: &Book) -> bool {
        self.committed(book) > OBJECT_MAX
    }

    /// How many bytes are left for checkpoints.
    #[must_use]
    pub fn left(&self, book: &Book) -> usize {
        OBJECT_MAX.saturating_sub(self.committed(book))
    }

    fn launch(&self, book: &Book, launch: &Launch) -> usize {
        let task = match book.tasks.contains_key(&launch.task.0) {
            true => 0,
            false => self.task(),
        };
        let point = launch.resume.as_ref();
        // It becomes the task's durable one too.
        let point = point.map_or(0, |point| 2 * checkpoint_bytes(&point.checkpoint));
        task + self.attempt(launch.kind) + point + AVOIDED * launch.avoid.len()
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

/// Bytes of a point in the ledger.
#[must_use]
pub fn point_bytes(point: &ResumeEntry) -> usize {
    checkpoint_bytes(&point.checkpoint)
}

fn checkpoint_bytes(checkpoint: &str) -> usize {
    // Progress has at most 24 digits.
    POINT + 24 + size::bytes(checkpoint)
}

/// Most that the lists of done and of failed indexes come to together: each index stands alone.
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

fn launch(action: &Action) -> Option<&Launch> {
    match action {
        Action::Launch(launch) => Some(launch),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
