//! Index of pods.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use shed_core::resources::Resources;

use crate::cluster::binds::Binds;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::cluster::interned_names::Names;
use crate::cluster::pod::{JobPods, PodFacts};

/// Namespace and name of a pod.
pub(super) type PodKey = (Arc<str>, Arc<str>);

/// Pods by some key, each by namespace and name.
type Groups<K> = HashMap<K, BTreeMap<PodKey, Arc<PodFacts>>>;

/// Index of pods.
#[derive(Default)]
pub(super) struct PodIndex {
    pub(super) listed: bool,
    pub(super) all: HashMap<PodKey, Arc<PodFacts>>,
    /// Attempts by owner. A task and a number give one name, so no other pod takes their place.
    pub(super) by_owner: HashMap<Owner, JobPods>,
    /// Owners of attempts that have not ended, or that a finalizer holds. Most ended jobs have only
    /// pods that need nothing.
    pub(super) open: HashMap<Owner, Tally>,
    /// Raised by every notice of the watch.
    pub(super) version: u64,
    /// Pods that a batch/v1 Job controls and that are no attempts, by that Job.
    pub(super) unlabelled: Groups<Owner>,
    /// Pods that carry the label of a job and are no attempts, by namespace and the label's uid.
    pub(super) strangers: Groups<(Arc<str>, Arc<str>)>,
    /// Pods that are no attempts and that a finalizer of shed's may hold.
    pub(super) held: BTreeMap<PodKey, Arc<PodFacts>>,
    /// Requests, by node, of pods that are not attempts, or that are ended attempts that still hold
    /// their slot.
    pub(super) others: BTreeMap<Arc<str>, Resources>,
    /// Number of attempts that have not ended, by node.
    pub(super) nodes: BTreeMap<Arc<str>, usize>,
    /// When schedulers were last seen to place pods.
    pub(super) binds: Binds,
    /// Names that many pods have.
    pub(super) names: Names,
    /// The list that is coming in.
    pub(super) incoming: Option<Vec<PodFacts>>,
}

/// Attempts of one owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Number that have not ended.
    pub(super) running: usize,
    /// Number that a finalizer holds.
    pub(super) tracked: usize,
}

impl Tally {
    pub(super) fn of(pod: &PodFacts) -> Self {
        let is_tracked = pod.attempt.as_ref().is_some_and(|own| own.tracked);
        Self {
            running: usize::from(!pod.terminal),
            tracked: usize::from(is_tracked),
        }
    }
}

impl PodIndex {
    /// Stores a pod; returns it, and the earlier facts about it.
    pub(super) fn put(&mut self, facts: PodFacts) -> (Arc<PodFacts>, Option<Arc<PodFacts>>) {
        let key = (Arc::clone(&facts.namespace), Arc::clone(&facts.name));
        let before = self.remove(&key);
        let facts = match &before {
            Some(before) => facts.after(before),
            None => facts,
        };
        let facts = Arc::new(facts);
        let identity = &facts.identity;
        if let (Some(owner), Some(id)) = (&identity.owner, identity.attempt) {
            let pods = self.by_owner.entry(Owner::clone(owner));
            pods.or_default().insert(id, Arc::clone(&facts));
            let own = Tally::of(&facts);
            if own != Tally::default() {
                let tally = self.open.entry(Owner::clone(owner)).or_default();
                tally.running += own.running;
                tally.tracked += own.tracked;
            }
        }
        if let Some(node) = runs_on(&facts) {
            *self.nodes.entry(Arc::clone(node)).or_default() += 1;
        }
        if let Some(node) = in_the_way(&facts) {
            let used = self.others.entry(Arc::clone(node)).or_default();
            used.add(&facts.requests);
        }
        if let Some(owner) = unlabelled_of(&facts) {
            add(&mut self.unlabelled, owner.clone(), &key, &facts);
        }
        if let Some(claimed) = stranger_to(&facts) {
            add(&mut self.strangers, claimed, &key, &facts);
        }
        if is_held(&facts) {
            self.held.insert(key.clone(), Arc::clone(&facts));
        }
        self.all.insert(key, Arc::clone(&facts));
        (facts, before)
    }

    /// The pod of the same name as it was seen last.
    pub(super) fn known(&self, pod: &PodFacts) -> Option<&Arc<PodFacts>> {
        let key = (Arc::clone(&pod.namespace), Arc::clone(&pod.name));
        self.all.get(&key)
    }

    pub(super) fn remove(&mut self, key: &PodKey) -> Option<Arc<PodFacts>> {
        let old = self.all.remove(key)?;
        let identity = &old.identity;
        if let (Some(owner), Some(id)) = (&identity.owner, identity.attempt)
            && let Some(pods) = self.by_owner.get_mut(owner)
        {
            pods.remove(&id);
            if pods.is_empty() {
                self.by_owner.remove(owner);
            }
            self.close(owner, &old);
        }
        if let Some(node) = runs_on(&old)
            && let Some(attempts) = self.nodes.get_mut(node)
        {
            *attempts -= 1;
            if *attempts == 0 {
                self.nodes.remove(node);
            }
        }
        if let Some(node) = in_the_way(&old)
            && let Some(used) = self.others.get_mut(node)
        {
            used.subtract(&old.requests);
        }
        if let Some(owner) = unlabelled_of(&old) {
            take(&mut self.unlabelled, owner, key);
        }
        if let Some(claimed) = stranger_to(&old) {
            take(&mut self.strangers, &claimed, key);
        }
        self.held.remove(key);
        Some(old)
    }

    fn close(&mut self, owner: &Owner, pod: &PodFacts) {
        let own = Tally::of(pod);
        let Some(tally) = self.open.get_mut(owner) else {
            return;
        };
        tally.running -= own.running;
        tally.tracked -= own.tracked;
        if *tally == Tally::default() {
            self.open.remove(owner);
        }
    }

    pub(super) fn replace_all(&mut self, pods: Vec<PodFacts>) {
        let before = std::mem::take(&mut self.all);
        self.by_owner.clear();
        self.open.clear();
        self.unlabelled.clear();
        self.strangers.clear();
        self.held.clear();
        self.others.clear();
        self.nodes.clear();
        for pod in pods {
            let known = before.get(&(Arc::clone(&pod.namespace), Arc::clone(&pod.name)));
            self.put(match known {
                Some(known) => pod.after(known),
                None => pod,
            });
        }
        self.listed = true;
    }
}

fn add<K: Eq + Hash>(groups: &mut Groups<K>, group: K, key: &PodKey, pod: &Arc<PodFacts>) {
    let pods = groups.entry(group).or_default();
    pods.insert(key.clone(), Arc::clone(pod));
}

fn take<K: Eq + Hash>(groups: &mut Groups<K>, group: &K, key: &PodKey) {
    if let Some(pods) = groups.get_mut(group) {
        pods.remove(key);
        if pods.is_empty() {
            groups.remove(group);
        }
    }
}

/// The node of an attempt that has not ended.
fn runs_on(pod: &PodFacts) -> Option<&Arc<str>> {
    pod.node
        .as_ref()
        .filter(|_| pod.is_attempt() && !pod.terminal)
}

/// The node on which a pod takes capacity that no attempt counts. An attempt leaves only after the
/// kubelet reported the end of its task, and where the end must be proven this report is the proof.
/// A pod that only has an attempt's labels stops counting when it ends.
fn in_the_way(pod: &PodFacts) -> Option<&Arc<str>> {
    let is_in_the_way = match pod.is_attempt() {
        true => pod.is_leaving,
        false => pod.is_leaving || !pod.terminal,
    };
    pod.node.as_ref().filter(|_| is_in_the_way)
}

/// The batch/v1 Job that controls a pod which is no attempt.
pub(super) fn unlabelled_of(pod: &PodFacts) -> Option<&Owner> {
    let owner = pod.identity.owner.as_deref().filter(|_| !pod.is_attempt());
    owner.filter(|owner| owner.kind == OwnerKind::Job)
}

/// Namespace and uid of the job in the label of a pod that is not an attempt.
fn stranger_to(pod: &PodFacts) -> Option<(Arc<str>, Arc<str>)> {
    let labelled = pod.identity.labelled.as_ref().filter(|_| !pod.is_attempt());
    labelled.map(|uid| (Arc::clone(&pod.namespace), Arc::clone(uid)))
}

/// Whether a finalizer of shed holds a pod that is not an attempt. Pods of the built-in controller
/// have batch/v1's finalizer too. It counts only if the pod is being deleted, or if a label marks
/// it as shed's.
fn is_held(pod: &PodFacts) -> bool {
    let identity = &pod.identity;
    let is_doubtful = identity.deleting || identity.labelled.is_some();
    !pod.is_attempt() && (identity.tracked || (identity.tracked_for_batch && is_doubtful))
}

#[cfg(test)]
mod tests;
