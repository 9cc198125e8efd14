//! Progress of the watches, for comparison with a fresh list after they broke.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::Stores;

/// Progress of the watch of one kind of object.
#[derive(Debug, Default)]
pub struct Shown {
    /// The newest version that it has shown: an object that is not newer is among `versions`, or gone.
    pub reached: u64,
    /// The version of each object, by uid.
    pub versions: BTreeMap<String, u64>,
    /// Uids of the objects in a list that were not deleted since.
    pub expected: BTreeSet<String>,
}

impl Stores {
    /// Progress of the watch of pods. A list of the pods with a job's label need not show the
    /// others.
    #[must_use]
    pub fn shown_pods(&self) -> Shown {
        let pods = self.pods();
        let all = pods.all.values();
        let labelled = all.filter(|pod| pod.identity.labelled.is_some());
        Shown {
            reached: pods.reached,
            expected: labelled.map(|pod| pod.uid.clone()).collect(),
            versions: pods
                .all
                .values()
                .map(|pod| (pod.uid.clone(), pod.version))
                .collect(),
        }
    }
}
