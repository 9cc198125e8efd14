//! Names that many pods have in common, each kept once: of namespaces, of nodes, and of what controls pods.

use std::collections::HashSet;
use std::sync::Arc;

use crate::observe::pod::PodFacts;

/// Names are looked through for those that no pod has any more when there are twice as many as after the
/// last time, and at least this many.
const LEAST: usize = 1024;

/// Names that are kept once.
#[derive(Default)]
pub(super) struct Names {
    all: HashSet<Arc<str>>,
    /// How many were in use when they were last looked through.
    used: usize,
}

impl Names {
    /// Lets the pod share its names with others.
    pub(super) fn share(&mut self, pod: &mut PodFacts) {
        self.put(&mut pod.namespace);
        if let Some(node) = &mut pod.node {
            self.put(node);
        }
        let identity = &mut pod.identity;
        if let Some(owner) = &mut identity.owner {
            self.put(&mut owner.namespace);
            self.put(&mut owner.name);
            self.put(&mut owner.uid);
        }
        if let Some(labelled) = &mut identity.labelled {
            self.put(labelled);
        }
    }

    fn put(&mut self, name: &mut Arc<str>) {
        if let Some(known) = self.all.get(name) {
            *name = Arc::clone(known);
            return;
        }
        if self.all.len() >= LEAST.max(2 * self.used) {
            self.all.retain(|name| Arc::strong_count(name) > 1);
            self.used = self.all.len();
        }
        self.all.insert(Arc::clone(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_as_long_as_a_pod_has_it() {
        let mut names = Names::default();
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
