//! Facts about jobs that stay from pass to pass, so that the cost of a pass follows the changes.
//!
//! Only a *quiet* job stays: its attempts run on their nodes, and nothing keeps it from launching. The next pass
//! looks at it again after
//!
//! - a change of its object, its batch/v1 Job or one of its pods,
//! - an answer of one of its attempts to a poll,
//! - a change of its memo by its reconciler, or while its slice of the plan is held,
//! - a change of any node,
//!
//! and in any case after about [`REVISIT`]. A fact that changes with time alone therefore reaches the planner up to
//! 10 seconds late: for example that a node has stopped to report while a pod on it is being deleted. Reconcilers
//! read their jobs themselves.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobPhase, JobSnapshot, Obstacles};
use shed_core::time::{Instant, Span};

use crate::api::DeadlineJob;
use crate::cluster::clone_stops::CloneStops;
use crate::cluster::identity::Owner;
use crate::cluster::{Inbox, Stores};
use crate::context::Context;
use crate::plan_slices::JobUid;
use crate::planner::nodes::NumberedNodes;
use crate::progress::jittered;

/// A quiet job is looked at again after this time, up to a tenth more or less, so that the looks spread over the
/// passes. Together that is at most the time between two passes while nothing happens.
const REVISIT: Span = Span::from_seconds(9);

/// Requests that a job's leftover pods add to those of others, by node.
pub(super) type Leftover = Vec<(Arc<str>, Resources)>;

/// The facts about one job.
pub(super) struct Looked {
    pub(super) facts: JobSnapshot,
    pub(super) rest: Arc<Rest>,
}

/// Facts about a job that are not part of the snapshot.
pub(super) struct Rest {
    /// Generation of its specification.
    pub(super) generation: i64,
    pub(super) leftover: Leftover,
    /// Owner of its attempts.
    pub(super) owner: Owner,
}

/// The jobs whose facts are known.
#[derive(Default)]
pub struct KnownJobs {
    /// Changes that the watches report; without it every job is looked at in each pass.
    inbox: Option<Arc<Inbox>>,
    jobs: HashMap<JobUid, Known>,
    uids: HashMap<Owner, JobUid>,
    nodes: Option<KnownNodes>,
    /// Whether anything may have changed since the last pass.
    all_changed: bool,
    /// The namespaces that stopped new clones in the last pass.
    clone_stops: Arc<CloneStops>,
}

struct Known {
    /// The object when the job was looked at.
    watched: Arc<DeadlineJob>,
    rest: Arc<Rest>,
    /// Absent while a pass has them.
    facts: Option<JobSnapshot>,
    until: Instant,
}

/// The namespaces that stop new clones: in this pass and in the last one.
pub(super) struct StopsNowAndBefore {
    pub(super) now: Arc<CloneStops>,
    pub(super) before: Arc<CloneStops>,
}

struct KnownNodes {
    version: u64,
    /// Nodes with attempts whose objects are gone.
    missing: BTreeSet<Arc<str>>,
    numbered: NumberedNodes,
}

impl KnownJobs {
    /// Follows the watches from now on.
    #[must_use]
    pub fn following(stores: &Stores) -> Self {
        Self {
            inbox: Some(stores.subscribe()),
            ..Self::default()
        }
    }

    /// Forgets the jobs that have changed. A pass reads nothing before this, so the next pass finds each change that
    /// comes during this one.
    pub(super) fn begin(&mut self, context: &Context) {
        let changes = self.inbox.as_ref().map(|inbox| inbox.drain());
        let touched = context.memos.take_touched();
        let reported = context.progress.take_touched();
        self.all_changed = false;
        match changes.filter(|changes| !changes.all) {
            None => self.forget_all(),
            Some(changes) => {
                let uids = changes.jobs.keys().filter_map(|owner| self.uids.get(owner));
                let uids: Vec<JobUid> = uids.cloned().collect();
                for uid in uids.iter().chain(&touched).chain(&reported) {
                    self.forget(uid);
                }
            }
        }
    }

    /// Numbers the nodes of this pass. After a change of the nodes, every job is looked at again.
    pub(super) fn number_nodes(&mut self, stores: &Stores) {
        let version = stores.nodes_version();
        let missing = stores.missing_nodes();
        let is_same = |known: &KnownNodes| (known.version, &known.missing) == (version, &missing);
        if self.inbox.is_some() && self.nodes.as_ref().is_some_and(is_same) {
            return;
        }
        self.forget_all();
        self.nodes = Some(KnownNodes {
            version,
            numbered: NumberedNodes::of(stores, &missing),
            missing,
        });
    }

    /// Whether anything may have changed since the last pass, and not only the jobs that this one looks at.
    pub(super) fn all_changed(&self) -> bool {
        self.all_changed
    }

    /// The namespaces that stop new clones. Every pass reads them, because they apply to known jobs too.
    pub(super) fn clone_stops(&mut self, stores: &Stores) -> StopsNowAndBefore {
        let now = stores.clone_stops();
        let before = std::mem::replace(&mut self.clone_stops, Arc::clone(&now));
        StopsNowAndBefore { now, before }
    }

    pub(super) fn nodes(&self) -> Option<&NumberedNodes> {
        self.nodes.as_ref().map(|known| &known.numbered)
    }

    /// The facts about a job that needs no look, until [`KnownJobs::put_back`] returns them. This need not check for
    /// own writes or a quarantine, because both touch the job's memo.
    pub(super) fn take(
        &mut self,
        watched: &Arc<DeadlineJob>,
        is_held: bool,
        ticks: Instant,
    ) -> Option<Looked> {
        let known = self.jobs.get_mut(watched.metadata.uid.as_deref()?)?;
        let is_valid = Arc::ptr_eq(&known.watched, watched) && ticks < known.until && !is_held;
        let facts = known.facts.take_if(|_| is_valid)?;
        Some(Looked {
            facts,
            rest: Arc::clone(&known.rest),
        })
    }

    /// Keeps a job that was looked at, if it is quiet. Its facts follow with [`KnownJobs::put_back`]. `is_settled`
    /// means that none of its obstacles is due for another look.
    pub(super) fn learn(
        &mut self,
        watched: &Arc<DeadlineJob>,
        looked: &Looked,
        is_settled: bool,
        ticks: Instant,
    ) {
        let uid = &looked.facts.key.0;
        if self.inbox.is_none() || !is_settled || !is_quiet(&looked.facts) {
            return self.forget(uid);
        }
        self.uids.insert(looked.rest.owner.clone(), Arc::clone(uid));
        let known = Known {
            watched: Arc::clone(watched),
            rest: Arc::clone(&looked.rest),
            facts: None,
            until: ticks.plus(jittered(REVISIT, uid, 0)),
        };
        self.jobs.insert(Arc::clone(uid), known);
    }

    /// Takes the facts of a pass back, and forgets the other jobs.
    pub fn put_back(&mut self, jobs: Vec<JobSnapshot>) {
        for facts in jobs {
            if let Some(known) = self.jobs.get_mut(&facts.key.0) {
                known.facts = Some(facts);
            }
        }
        let gone = self.jobs.extract_if(|_, known| known.facts.is_none());
        for (_, known) in gone {
            self.uids.remove(&known.rest.owner);
        }
    }

    fn forget(&mut self, uid: &str) {
        if let Some(known) = self.jobs.remove(uid) {
            self.uids.remove(&known.rest.owner);
        }
    }

    fn forget_all(&mut self) {
        self.all_changed = true;
        self.jobs.clear();
        self.uids.clear();
    }
}

/// Whether the job's facts change with events alone, except for those that the planner may learn late.
fn is_quiet(facts: &JobSnapshot) -> bool {
    let runs = |attempt: &AttemptSnapshot| {
        let is_placed = attempt.node.is_some() && !attempt.unplaceable;
        attempt.state == AttemptState::Running && attempt.kill.is_none() && is_placed
    };
    facts.phase == JobPhase::Active
        && !facts.asks_feasibility
        && facts.launch_not_before.is_none()
        && facts.obstacles == Obstacles::default()
        && facts.tasks.iter().flat_map(|task| &task.attempts).all(runs)
}

#[cfg(test)]
mod tests;
