//! Facts about jobs that stay from pass to pass, so that the cost of a pass follows the changes.
//!
//! Only a *quiet* job stays: its attempts run on their nodes, and nothing keeps it from launching. The next pass
//! looks at it again after
//!
//! - a change of its object, its batch/v1 Job or one of its pods,
//! - an answer of one of its attempts to a poll,
//! - a change of its memory by its reconciler, or while its slice of the plan is held,
//! - a change of any node, or of the settings of any namespace,
//!
//! and in any case after about [`REVISIT`]. A fact that changes with time alone therefore reaches the planner up to
//! 10 seconds late: for example that a node has stopped to report while a pod on it is being deleted. Reconcilers
//! read their jobs themselves.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobPhase, JobSnapshot, Node, Obstacles};
use shed_core::time::{Instant, Span};

use crate::api::DeadlineJob;
use crate::cluster::identity::Owner;
use crate::cluster::namespace_settings::NamespaceSettings;
use crate::cluster::{Inbox, Stores};
use crate::context::Context;
use crate::plan_slices::JobUid;
use crate::planner::nodes::{NodeCharges, NumberedNodes};
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

/// Jobs by uid, as the planner addresses them. Passes share them, and a pass changes the entries that are new.
#[derive(Clone, Default)]
pub struct Addresses {
    /// References to the jobs.
    pub references: Arc<HashMap<JobUid, ObjectRef<DeadlineJob>>>,
    /// Generations of their specifications.
    pub generations: Arc<HashMap<JobUid, i64>>,
}

/// The jobs whose facts are known.
#[derive(Default)]
pub struct KnownJobs {
    /// Changes that the watches report; without it every job is looked at in each pass.
    inbox: Option<Arc<Inbox>>,
    jobs: HashMap<JobUid, Known>,
    uids: HashMap<Owner, JobUid>,
    nodes: Option<KnownNodes>,
    /// Requests of the known jobs' attempts.
    charges: NodeCharges,
    /// The jobs of the last pass, in its order, and which of them this one need not look at.
    last: Vec<JobSnapshot>,
    stay: Vec<bool>,
    /// Whether a pass has these jobs.
    is_lent: bool,
    /// The first position from which jobs have other positions than in the last pass, and the jobs before it that this
    /// pass looked at.
    moved_from: usize,
    replaced: Vec<usize>,
    addresses: Addresses,
    /// Live jobs whose facts are not known.
    unknown: BTreeSet<JobUid>,
    /// The version of the live jobs in the last pass.
    live_version: Option<u64>,
    /// Whether anything may have changed since the last pass.
    all_changed: bool,
    /// The settings of namespaces in the last pass.
    namespaces: Arc<NamespaceSettings>,
    /// Whether the cluster had Kueue in the last pass.
    has_kueue: bool,
}

struct Known {
    /// The object when the job was looked at.
    watched: Arc<DeadlineJob>,
    rest: Arc<Rest>,
    has_leftover: bool,
    /// Position of its facts in the last pass; absent until the pass that learned them is over.
    at: Option<usize>,
    until: Instant,
}

/// The settings of namespaces: in this pass and in the last one.
pub(super) struct SettingsNowAndBefore {
    pub(super) now: Arc<NamespaceSettings>,
    pub(super) before: Arc<NamespaceSettings>,
}

struct KnownNodes {
    version: u64,
    /// Nodes with attempts whose objects are gone.
    missing: BTreeSet<Arc<str>>,
    numbered: NumberedNodes,
}

impl KnownJobs {
    /// Follows the watches from now on.
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
        let touched = context.job_memories.take_touched();
        let reported = context.progress.take_touched();
        self.all_changed = false;
        let has_kueue = context.stores.has_kueue();
        let is_same = std::mem::replace(&mut self.has_kueue, has_kueue) == has_kueue;
        // A pass that panicked has not put its facts back.
        match changes.filter(|changes| is_same && !self.is_lent && !changes.all) {
            None => self.forget_all(),
            Some(changes) => {
                let uids = changes.jobs.keys().filter_map(|owner| self.uids.get(owner));
                let uids: Vec<JobUid> = uids.cloned().collect();
                for uid in uids.into_iter().chain(touched).chain(reported) {
                    self.doubt(uid);
                }
            }
        }
    }

    /// Numbers the nodes of this pass. After a change of the nodes, every job is looked at again.
    pub(super) fn number_nodes(&mut self, stores: &Stores) {
        let version = stores.nodes.version();
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

    /// The settings of namespaces. After a change, which is rare, every job is looked at again.
    pub(super) fn namespaces(&mut self, stores: &Stores) -> SettingsNowAndBefore {
        let now = stores.namespaces();
        let before = std::mem::replace(&mut self.namespaces, Arc::clone(&now));
        if !Arc::ptr_eq(&now, &before) {
            self.forget_all();
        }
        SettingsNowAndBefore { now, before }
    }

    pub(super) fn nodes(&self) -> Option<&NumberedNodes> {
        self.nodes.as_ref().map(|known| &known.numbered)
    }

    /// Whether the owner is that of a known job's attempts.
    pub(super) fn owns(&self, owner: &Owner) -> bool {
        self.uids.contains_key(owner)
    }

    /// The live jobs that the pass must look at. The facts of the others are in its snapshot. This need not check for
    /// own writes or a quarantine, because both touch the job's memory.
    pub(super) fn jobs_to_look_at(
        &mut self,
        stores: &Stores,
        is_held: impl Fn(&str) -> bool,
        ticks: Instant,
    ) -> Vec<Arc<DeadlineJob>> {
        let version = Some(stores.jobs.live_version());
        if std::mem::replace(&mut self.live_version, version) != version {
            self.compare(&stores.jobs.live());
        }
        let jobs = self.jobs.iter();
        let due = jobs.filter(|(uid, known)| ticks >= known.until || is_held(uid));
        let due: Vec<JobUid> = due.map(|(uid, _)| Arc::clone(uid)).collect();
        due.into_iter().for_each(|uid| self.doubt(uid));
        for known in self.jobs.values() {
            if let Some(stays) = known.at.and_then(|at| self.stay.get_mut(at)) {
                *stays = true;
            }
        }
        let unknown = std::mem::take(&mut self.unknown);
        let live = unknown.iter().filter_map(|uid| stores.jobs.live_job(uid));
        live.collect()
    }

    /// Finds the jobs that are new, that have changed or that are gone among the live ones.
    fn compare(&mut self, live: &[Arc<DeadlineJob>]) {
        let mut same = 0;
        for watched in live {
            let uid = watched.metadata.uid.as_deref().unwrap_or_default();
            let known = self.jobs.get(uid);
            if known.is_some_and(|known| Arc::ptr_eq(&known.watched, watched)) {
                same += 1;
            } else {
                self.doubt(uid.into());
            }
        }
        if same != self.jobs.len() {
            let live = live.iter().filter_map(|job| job.metadata.uid.as_deref());
            let live: HashSet<&str> = live.collect();
            let gone = self.jobs.keys().filter(|uid| !live.contains(&***uid));
            let gone: Vec<JobUid> = gone.cloned().collect();
            gone.iter().for_each(|uid| self.forget(uid));
        }
    }

    /// The next look at live jobs includes this one.
    fn doubt(&mut self, uid: JobUid) {
        self.forget(&uid);
        self.unknown.insert(uid);
    }

    /// Notes which of the jobs that the pass looked at are not known.
    pub(super) fn note_unknown(&mut self, looked: &[Arc<DeadlineJob>]) {
        let uids = looked.iter().filter_map(|job| job.metadata.uid.as_deref());
        let unknown = uids.filter(|uid| !self.jobs.contains_key(*uid));
        self.unknown = unknown.map(Arc::from).collect();
    }

    /// Requests of leftover pods of the known jobs.
    pub(super) fn leftovers(&self) -> impl Iterator<Item = &Leftover> {
        let jobs = self.jobs.values().filter(|known| known.has_leftover);
        jobs.map(|known| &known.rest.leftover)
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
        self.address(watched, looked);
        if self.inbox.is_none() || !is_settled || !is_quiet(&looked.facts) {
            return;
        }
        self.charges.add(&looked.facts);
        self.uids.insert(looked.rest.owner.clone(), Arc::clone(uid));
        let known = Known {
            watched: Arc::clone(watched),
            rest: Arc::clone(&looked.rest),
            has_leftover: !looked.rest.leftover.is_empty(),
            at: None,
            until: ticks.plus(jittered(REVISIT, uid, 0)),
        };
        self.jobs.insert(Arc::clone(uid), known);
    }

    fn address(&mut self, watched: &DeadlineJob, looked: &Looked) {
        let uid = &looked.facts.key.0;
        let reference = ObjectRef::from_obj(watched);
        let Addresses {
            references,
            generations,
        } = &mut self.addresses;
        if references.get(uid) != Some(&reference) {
            Arc::make_mut(references).insert(Arc::clone(uid), reference);
        }
        let generation = looked.rest.generation;
        if generations.get(uid) != Some(&generation) {
            Arc::make_mut(generations).insert(Arc::clone(uid), generation);
        }
    }

    /// Drops the addresses of the jobs that are gone, and returns them. The others are those that stay and `looked`.
    pub(super) fn drop_gone(&mut self, looked: &[JobUid]) -> Vec<ObjectRef<DeadlineJob>> {
        let stay = self.stay.iter().filter(|stays| **stays).count();
        if stay + looked.len() == self.addresses.references.len() {
            return Vec::new();
        }
        let looked: HashSet<&JobUid> = looked.iter().collect();
        let is_there = |uid: &JobUid| self.jobs.contains_key(uid) || looked.contains(uid);
        let Addresses {
            references,
            generations,
        } = &mut self.addresses;
        let gone = Arc::make_mut(references).extract_if(|uid, _| !is_there(uid));
        let gone = gone.map(|(_, reference)| reference).collect();
        Arc::make_mut(generations).retain(|uid, _| is_there(uid));
        gone
    }

    /// The jobs of the pass in their order: those that stay, and these. Each comes with whether its facts may have
    /// changed.
    pub(super) fn order(&mut self, mut looked: Vec<JobSnapshot>) -> (Vec<JobSnapshot>, Vec<bool>) {
        looked.sort_by(by_submission);
        self.is_lent = true;
        let last = std::mem::take(&mut self.last);
        let stay = std::mem::take(&mut self.stay);
        let most = last.len() + looked.len();
        let (mut jobs, mut changed) = (Vec::with_capacity(most), Vec::with_capacity(most));
        self.moved_from = usize::MAX;
        self.replaced.clear();
        let mut looked = looked.into_iter().peekable();
        for (before, (job, stays)) in last.into_iter().zip(stay).enumerate() {
            if !stays {
                continue;
            }
            while let Some(first) = looked.next_if(|it| by_submission(it, &job).is_lt()) {
                self.replaced.push(jobs.len());
                jobs.push(first);
                changed.push(true);
            }
            if jobs.len() != before {
                self.moved_from = self.moved_from.min(jobs.len());
            }
            jobs.push(job);
            changed.push(false);
        }
        for job in looked {
            self.replaced.push(jobs.len());
            jobs.push(job);
            changed.push(true);
        }
        (jobs, changed)
    }

    /// The nodes with the capacity that these jobs leave free.
    pub(super) fn free_nodes(
        &self,
        others: &BTreeMap<Arc<str>, Resources>,
        jobs: &[JobSnapshot],
    ) -> Vec<Node> {
        let Some(nodes) = self.nodes() else {
            return Vec::new();
        };
        let mut charges = self.charges.clone();
        let replaced = self.replaced.iter().filter_map(|at| jobs.get(*at));
        let unknown = replaced.filter(|job| !self.jobs.contains_key(&job.key.0));
        unknown.for_each(|job| charges.add(job));
        nodes.snapshot(others, &charges)
    }

    /// Addresses of the jobs of this pass.
    pub(super) fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    /// Takes the facts of a pass back.
    pub fn put_back(&mut self, jobs: Vec<JobSnapshot>) {
        let moved = self.moved_from..jobs.len();
        for at in self.replaced.drain(..).chain(moved) {
            if let Some(known) = jobs.get(at).and_then(|job| self.jobs.get_mut(&job.key.0)) {
                known.at = Some(at);
            }
        }
        self.stay = vec![false; jobs.len()];
        self.last = jobs;
        self.is_lent = false;
    }

    /// The jobs of the last pass.
    pub(super) fn last(&self) -> &[JobSnapshot] {
        &self.last
    }

    fn forget(&mut self, uid: &str) {
        if let Some(known) = self.jobs.remove(uid) {
            self.uids.remove(&known.rest.owner);
            let facts = known.at.and_then(|at| self.last.get(at));
            facts.into_iter().for_each(|job| self.charges.remove(job));
        }
    }

    fn forget_all(&mut self) {
        self.all_changed = true;
        self.jobs.clear();
        self.uids.clear();
        self.charges = NodeCharges::default();
        self.last.clear();
        self.stay.clear();
        self.live_version = None;
    }
}

/// The order of a snapshot.
fn by_submission(a: &JobSnapshot, b: &JobSnapshot) -> Ordering {
    (a.submitted, &a.key).cmp(&(b.submitted, &b.key))
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
