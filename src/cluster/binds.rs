//! When each scheduler last gave a pod its node. A scheduler that places pods is alive, however
//! long its queue is.

use std::collections::HashMap;
use std::sync::Arc;

use shed_core::time::{Instant, Span};

use crate::cluster::index::PodIndex;
use crate::cluster::pod::PodFacts;

/// Names of schedulers are chosen by whoever creates pods, so they are not kept without limit …
const SCHEDULERS_MAX: usize = 256;
/// … and an older placement proves nothing.
const KEPT: Span = Span::from_seconds(60);

/// When each scheduler last gave a pod its node.
#[derive(Default)]
pub(super) struct Binds(pub(super) HashMap<Arc<str>, Instant>);

impl Binds {
    fn note(&mut self, pod: &PodFacts, at: Instant, now: Instant) {
        if self.0.len() >= SCHEDULERS_MAX {
            self.0.retain(|_, last| now.since(*last) < KEPT);
        }
        let name = pod.scheduling.scheduler();
        let is_full = self.0.len() >= SCHEDULERS_MAX;
        if let Some(last) = self.0.get_mut(name) {
            *last = at.max(*last);
        } else if !is_full {
            self.0.insert(name.into(), at);
        }
    }
}

impl PodIndex {
    /// Notes that a pod has got its node since it was seen last, before the index takes it in.
    pub(super) fn note_bind(&mut self, pod: &PodFacts, now: Instant) {
        if pod.node.is_none() {
            return;
        }
        let key = (Arc::clone(&pod.namespace), Arc::clone(&pod.name));
        let before = self.all.get(&key).filter(|before| before.uid == pod.uid);
        let at = match before {
            Some(before) if before.node.is_some() => return,
            Some(_) => Some(now),
            // Placed before this process saw it.
            None => pod.scheduling.placed.map(|at| at.min(now)),
        };
        if let Some(at) = at {
            self.binds.note(pod, at, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, scheduler: &str, node: &str, placed: &str) -> PodFacts {
        let yaml = format!(
            "{{metadata: {{name: {name}, namespace: n, uid: {name}}}, spec: {{schedulerName: {scheduler}, \
             {node} containers: []}}, status: {{conditions: [{placed}]}}}}"
        );
        PodFacts::from_pod(&serde_saphyr::from_str(&yaml).unwrap(), Instant(0))
    }

    const PLACED: &str =
        "{type: PodScheduled, status: 'True', lastTransitionTime: '1970-01-01T00:00:05Z'}";
    const ON: &str = "nodeName: n,";

    #[test]
    fn a_scheduler_is_seen_to_live_when_a_pod_of_its_gets_a_node() {
        let mut index = PodIndex::default();
        let last = |index: &PodIndex, name: &str| index.binds.0.get(name).copied();
        let show = |index: &mut PodIndex, pod: PodFacts, at: i64| {
            index.note_bind(&pod, Instant(at));
            index.put(pod);
        };
        show(&mut index, pod("a", "own", "", ""), 7000);
        assert_eq!(last(&index, "own"), None);
        show(&mut index, pod("a", "own", ON, PLACED), 9000);
        assert_eq!(last(&index, "own"), Some(Instant(9000)));
        // It has its node already.
        show(&mut index, pod("a", "own", ON, PLACED), 12_000);
        assert_eq!(last(&index, "own"), Some(Instant(9000)));
        // A pod that was placed before the watch first showed it.
        show(&mut index, pod("b", "other", ON, PLACED), 12_000);
        assert_eq!(last(&index, "other"), Some(Instant(5000)));
        // The choice of another scheduler is not an answer of this one.
        show(&mut index, pod("c", "third", ON, ""), 12_000);
        assert_eq!(last(&index, "third"), None);
    }

    #[test]
    fn not_every_name_that_a_user_makes_up_is_kept() {
        let mut index = PodIndex::default();
        for number in 0..1000 {
            let name = format!("s-{number}");
            index.note_bind(&pod(&name, &name, ON, PLACED), Instant(6000));
        }
        assert_eq!(index.binds.0.len(), SCHEDULERS_MAX);
        let late =
            "{type: PodScheduled, status: 'True', lastTransitionTime: '1970-01-01T00:02:00Z'}";
        index.note_bind(&pod("new", "new", ON, late), Instant(120_000));
        assert_eq!(index.binds.0.len(), 1);
    }
}
