//! The model's state of a cluster with one job: the apiserver's objects, the operator's memory and its
//! current pass. It is small, and equal for equal futures.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use shed::api::{DeadlineJobStatus, Ledger};
use shed::cluster::pod::AttemptId;
use shed::job::facts::Traces;

/// A ledger that was written: through the shipped serialization and back, as a pass reads it.
#[derive(Debug)]
pub struct Recorded {
    pub ledger: Ledger,
    pub fingerprint: u64,
}

impl Recorded {
    /// The revision counts writes and nothing else: it is left out, so that two ways to one
    /// ledger lead to one state. [`JobCopy::behind`] tells which one is newer.
    pub fn new(mut ledger: Ledger) -> Arc<Self> {
        ledger.revision = 0;
        let status = DeadlineJobStatus {
            attempts: ledger.counts,
            ledger: Some(ledger.clone()),
            ..DeadlineJobStatus::default()
        };
        let bytes = serde_json::to_vec(&status).expect("a status is JSON");
        let read: DeadlineJobStatus = serde_json::from_slice(&bytes).expect("its own JSON");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Arc::new(Self {
            ledger: Ledger::from_status(Some(&read)).expect("its own ledger"),
            fingerprint: hasher.finish(),
        })
    }
}

impl PartialEq for Recorded {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.ledger == other.ledger
    }
}

impl Hash for Recorded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

/// The job as a client holds it.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct JobCopy {
    pub recorded: Arc<Recorded>,
    pub suspended: bool,
    /// Writes of the ledger that it has missed.
    pub behind: u8,
    /// Whether it has the newest resourceVersion.
    pub is_current: bool,
}

/// How far a pod is; the finish is a place in time, see `Model::instant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    Pending,
    Running,
    Succeeded(Finish),
    Failed(Finish),
}

/// When a container ended, and whether in answer to a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Finish {
    /// Before its pod was deleted; siblings in the order of these numbers.
    InTime(u8),
    /// While its pod was being deleted.
    Answer,
    /// After the deadline.
    Late,
    /// Both.
    AnswerLate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pod {
    pub stage: Stage,
    pub deleting: bool,
    /// shed's finalizer is on it.
    pub tracked: bool,
    /// How many pods of this name there were before it.
    pub generation: u8,
}

impl Pod {
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Succeeded(_) | Stage::Failed(_))
    }

    /// Whether no container of it runs or ever will.
    pub fn is_over(&self) -> bool {
        self.has_ended() || self.deleting && self.stage == Stage::Pending
    }
}

pub type Pods = BTreeMap<AttemptId, Pod>;

/// A pass between two of its writes.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Flight {
    /// The ledger to write first.
    pub record: Option<Arc<Recorded>>,
    /// Whether the job still has the resourceVersion that this was decided on.
    pub is_current: bool,
    /// Attempts and generations of their pods.
    pub deletes: Vec<(AttemptId, u8)>,
    pub releases: Vec<(AttemptId, u8)>,
    pub creates: Vec<AttemptId>,
}

/// Moves that may still happen, each at most this often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub crashes: u8,
    /// Times that a watch stands still for a while.
    pub stale: u8,
    /// Passes that read a watch as it was at any moment before.
    pub stale_reads: u8,
    /// Passes that wait after they got their job.
    pub waits: u8,
    /// Times that an answer of the apiserver is lost.
    pub lost: u8,
    /// Pods that another client deletes.
    pub disruptions: u8,
    /// Changes of `suspend`.
    pub suspends: u8,
    pub deadlines: u8,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct World {
    pub job: Arc<Recorded>,
    pub suspended: bool,
    pub overdue: bool,
    pub pods: Pods,
    /// How many pods were created under each name that has none now.
    pub gone: BTreeMap<AttemptId, u8>,
    /// Numbers that were given out, by task.
    pub given: Vec<u32>,
    /// The watch of jobs stands still and shows this.
    pub held_job: Option<JobCopy>,
    /// The watch of pods stands still and shows this.
    pub held_pods: Option<Pods>,
    /// Whether the watch that stands still does so for the next pass only.
    pub held_once: bool,
    /// The newest copy of the job that the operator has seen, while an older one can still reach a pass.
    pub newest: Option<JobCopy>,
    /// The copy that the next pass got before it began to wait.
    pub waiting: Option<JobCopy>,
    pub traces: TraceMap,
    pub flight: Option<Flight>,
    pub left: Budget,
    /// The invariant that the last move broke, and how.
    pub broken: Option<(Invariant, &'static str)>,
}

/// Traces that can be hashed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceMap(pub Traces);

impl Hash for TraceMap {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (id, trace) in &self.0 {
            let since = [trace.asked, trace.created, trace.stuck_since];
            (id, trace.seen, since.map(|at| at.map(|at| at.0))).hash(state);
        }
    }
}

/// The invariants of the model; docs/develop/model.md has the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invariant {
    ExactlyOnce,
    Capacity,
    NoLoss,
    KillSafety,
}

impl World {
    pub fn new(tasks: u32, left: Budget) -> Self {
        Self {
            job: Recorded::new(Ledger::default()),
            suspended: false,
            overdue: false,
            pods: Pods::new(),
            gone: BTreeMap::new(),
            given: (0..tasks).map(|_| 0).collect(),
            held_job: None,
            held_pods: None,
            held_once: false,
            newest: None,
            waiting: None,
            traces: TraceMap::default(),
            flight: None,
            left,
            broken: None,
        }
    }

    /// The job as a watch that is up to date shows it.
    pub fn current_job(&self) -> JobCopy {
        JobCopy {
            recorded: Arc::clone(&self.job),
            suspended: self.suspended,
            behind: 0,
            is_current: true,
        }
    }

    /// The job was written: every copy of it is older now.
    pub fn job_changed(&mut self, ledger: bool) {
        let copies = [&mut self.held_job, &mut self.newest, &mut self.waiting];
        for copy in copies.into_iter().flatten() {
            copy.is_current = false;
            copy.behind += u8::from(ledger);
        }
        if let Some(flight) = &mut self.flight {
            flight.is_current = false;
        }
    }

    /// A finished pod without finalizers that is being deleted is gone.
    pub fn collect_garbage(&mut self) {
        let gone = &mut self.gone;
        self.pods.retain(|&id, pod| {
            let stays = !pod.deleting || pod.tracked || !pod.is_over();
            if !stays {
                gone.insert(id, pod.generation + 1);
            }
            stays
        });
    }

    pub fn breaks(&mut self, holds: bool, invariant: Invariant, how: &'static str) {
        if !holds {
            self.broken.get_or_insert((invariant, how));
        }
    }
}
