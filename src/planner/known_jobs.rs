//! Facts about jobs that stay from pass to pass, so that observing costs what has changed.
//!
//! Only a *quiet* job stays: its attempts run on their nodes, and nothing keeps it from launching. A quiet
//! job is looked at again in the next pass after
//!
//! - its object, its batch/v1 Job or one of its pods has changed,
//! - one of its attempts has answered a poll,
//! - its reconciler has changed its memo, or its slice of the plan is held,
//! - a node has been added, removed or changed,
//!
//! and in any case after 5 to 10 seconds, as long as a pass may be away if nothing happens. So a fact that
//! changes with time alone (a deleted pod on a node that has stopped to report) is known to the planner up to
//! 10 seconds late. Reconcilers look at their jobs themselves and do not depend on it.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobPhase, JobSnapshot, Obstacles};
use shed_core::time::{Instant, Span};

use crate::api::DeadlineJob;
use crate::cluster::identity::Owner;
use crate::cluster::{Inbox, Stores};
use crate::context::Context;
use crate::plan_slices::JobUid;
use crate::planner::nodes::NumberedNodes;

/// A quiet job is looked at again after this long …
const REVISIT_MIN: Span = Span::from_seconds(5);
/// … and up to this much more, by its uid, so that not all of them come up in one pass.
const REVISIT_SPREAD: Span = Span::from_seconds(5);

/// Requests that a job's leftover pods add to those of others, by node.
pub(super) type Leftover = Vec<(Arc<str>, Resources)>;

/// The facts about one job and what they depend on.
pub(super) struct Looked {
    pub(super) facts: JobSnapshot,
    /// Generation of its specification.
    pub(super) generation: i64,
    pub(super) leftover: Leftover,
    /// Owner of its attempts.
    pub(super) owner: Owner,
}

/// Jobs that need no look.
#[derive(Default)]
pub struct KnownJobs {
    /// Changes that the watches report; without it every job is looked at in each pass.
    inbox: Option<Arc<Inbox>>,
    jobs: HashMap<JobUid, Known>,
    uids: HashMap<Owner, JobUid>,
    nodes: Option<KnownNodes>,
    /// Jobs that the last pass looked at.
    #[cfg(test)]
    pub(super) looks: usize,
}

struct Known {
    /// The object when the job was looked at.
    watched: Arc<DeadlineJob>,
    owner: Owner,
    generation: i64,
    leftover: Leftover,
    /// Absent while a pass has them.
    facts: Option<JobSnapshot>,
    until: Instant,
}

struct KnownNodes {
    version: u64,
    /// Nodes with attempts.
    of_attempts: BTreeSet<Arc<str>>,
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

    /// Forgets the jobs that have changed. Reads nothing else before, so that a change during the pass is
    /// found by the next one.
    pub(super) fn begin(&mut self, context: &Context) {
        #[cfg(test)]
        {
            self.looks = 0;
        }
        let changes = self.inbox.as_ref().map(|inbox| inbox.drain());
        let touched = context.memos.take_touched();
        let reported = context.progress.take_touched();
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

    /// The nodes of this pass. Where they are others than before, every job is looked at again.
    pub(super) fn number_nodes(&mut self, stores: &Stores) {
        let version = stores.nodes_version();
        let of_attempts = stores.nodes_of_attempts();
        let is_same =
            |known: &KnownNodes| (known.version, &known.of_attempts) == (version, &of_attempts);
        if self.inbox.is_some() && self.nodes.as_ref().is_some_and(is_same) {
            return;
        }
        self.forget_all();
        self.nodes = Some(KnownNodes {
            version,
            numbered: NumberedNodes::of(stores, &of_attempts),
            of_attempts,
        });
    }

    pub(super) fn nodes(&self) -> Option<&NumberedNodes> {
        self.nodes.as_ref().map(|known| &known.numbered)
    }

    /// The facts about a job that needs no look. [`KnownJobs::put_back`] gives them back. An own write and a
    /// quarantine touch the job's memo, so this asks for neither.
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
            generation: known.generation,
            leftover: known.leftover.clone(),
            owner: known.owner.clone(),
        })
    }

    /// Keeps a job that was looked at, if it is quiet. Its facts follow with [`KnownJobs::put_back`].
    /// `is_settled`: no obstacle is looked at again.
    pub(super) fn learn(
        &mut self,
        watched: &Arc<DeadlineJob>,
        looked: &Looked,
        is_settled: bool,
        ticks: Instant,
    ) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let uid = &looked.facts.key.0;
        if self.inbox.is_none() || !is_settled || !is_quiet(&looked.facts) {
            return self.forget(uid);
        }
        self.uids.insert(looked.owner.clone(), Arc::clone(uid));
        let known = Known {
            watched: Arc::clone(watched),
            owner: looked.owner.clone(),
            generation: looked.generation,
            leftover: looked.leftover.clone(),
            facts: None,
            until: ticks.plus(revisit(uid)),
        };
        self.jobs.insert(Arc::clone(uid), known);
    }

    /// Takes the facts of a pass back, and forgets jobs that it had none of.
    pub fn put_back(&mut self, jobs: Vec<JobSnapshot>) {
        for facts in jobs {
            if let Some(known) = self.jobs.get_mut(&facts.key.0) {
                known.facts = Some(facts);
            }
        }
        let gone = self.jobs.extract_if(|_, known| known.facts.is_none());
        for (_, known) in gone {
            self.uids.remove(&known.owner);
        }
    }

    fn forget(&mut self, uid: &str) {
        if let Some(known) = self.jobs.remove(uid) {
            self.uids.remove(&known.owner);
        }
    }

    fn forget_all(&mut self) {
        self.jobs.clear();
        self.uids.clear();
    }
}

/// Whether nothing about the job changes with time alone, but for what may be known late.
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

fn revisit(uid: &str) -> Span {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let spread = hasher.finish() % u64::try_from(REVISIT_SPREAD.0).unwrap_or(1);
    Span(
        REVISIT_MIN
            .0
            .saturating_add(i64::try_from(spread).unwrap_or(0)),
    )
}

#[cfg(test)]
mod tests;
