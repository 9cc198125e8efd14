//! Values that many pods share, stored once: names of namespaces, nodes and owners, and requests.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use shed_core::resources::Resources;

use crate::cluster::identity::Owner;
use crate::cluster::pod::PodFacts;

/// Unused names are removed when there are twice as many names as after the last removal, and at
/// least this many.
const LEAST: usize = 1024;

/// Values that many pods share.
#[derive(Default)]
pub(super) struct Names {
    names: Shared<str>,
    owners: Shared<Owner>,
    requests: Shared<Resources>,
}

/// Values that are kept once.
struct Shared<T: ?Sized> {
    all: HashSet<Arc<T>>,
    /// How many were in use when they were last looked through.
    used: usize,
}

impl<T: ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Self {
            all: HashSet::new(),
            used: 0,
        }
    }
}

impl Names {
    /// Lets the pod share its common values with other pods.
    pub(super) fn share(&mut self, pod: &mut PodFacts) {
        self.requests.put(&mut pod.requests);
        let names = &mut self.names;
        names.put(&mut pod.namespace);
        let identity = &mut pod.identity;
        for name in pod.node.iter_mut().chain(&mut identity.labelled) {
            names.put(name);
        }
        if let Some(owner) = &mut identity.owner {
            if let Some(owner) = Arc::get_mut(owner) {
                for name in [&mut owner.namespace, &mut owner.name, &mut owner.uid] {
                    names.put(name);
                }
            }
            self.owners.put(owner);
        }
    }
}

impl<T: Eq + Hash + ?Sized> Shared<T> {
    fn put(&mut self, value: &mut Arc<T>) {
        if let Some(known) = self.all.get(value) {
            *value = Arc::clone(known);
            return;
        }
        if self.all.len() >= LEAST.max(2 * self.used) {
            self.all.retain(|known| Arc::strong_count(known) > 1);
            self.used = self.all.len();
        }
        self.all.insert(Arc::clone(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_as_long_as_a_pod_has_it() {
        let mut names = Shared::<str>::default();
        let mut kept: Arc<str> = "kept".into();
        names.put(&mut kept);
        let mut again: Arc<str> = "kept".into();
        names.put(&mut again);
        assert!(Arc::ptr_eq(&kept, &again));
        for number in 0..10 * LEAST {
            names.put(&mut format!("gone-{number}").into());
            assert!(names.all.len() <= LEAST);
        }
        assert!(names.all.contains("kept"));
    }
}
