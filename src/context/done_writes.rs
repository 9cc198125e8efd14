//! Deletes and releases of pods that the apiserver has acknowledged, until the watch shows them. Without this memory each
//! pass in between would send them again.

use std::collections::HashMap;

use shed_core::time::Instant;

use crate::cluster::pod::PodRef;
use crate::job::facts::CREATION_SEEN_WITHIN;

/// The acknowledged writes of a job's pods.
#[derive(Debug, Clone, Default)]
pub struct DoneWrites {
    /// Deletes.
    pub deletes: Done,
    /// Releases.
    pub releases: Done,
}

/// The acknowledged writes of one kind: the pods by uid, with the instant of the answer.
#[derive(Debug, Clone, Default)]
pub struct Done(HashMap<String, Instant>);

impl Done {
    /// The wanted writes that are still to be sent. Others are forgotten: the watch has shown them, or has had enough
    /// time to.
    pub fn to_send(&mut self, wanted: &[PodRef], ticks: Instant) -> Vec<PodRef> {
        if self.0.is_empty() {
            return wanted.to_vec();
        }
        let mut known = std::mem::take(&mut self.0);
        let mut to_send = Vec::new();
        for pod in wanted {
            match known.remove_entry(&pod.uid) {
                Some((uid, at)) if ticks.since(at) < CREATION_SEEN_WITHIN => {
                    self.0.insert(uid, at);
                }
                _ => to_send.push(pod.clone()),
            }
        }
        to_send
    }

    /// Whether the apiserver has acknowledged the write, and the watch still has time to show it.
    pub fn has(&self, pod: &str, ticks: Instant) -> bool {
        let noted = self.0.get(pod);
        noted.is_some_and(|at| ticks.since(*at) < CREATION_SEEN_WITHIN)
    }

    /// The apiserver has acknowledged these.
    pub fn note(&mut self, uids: impl IntoIterator<Item = String>, ticks: Instant) {
        self.0.extend(uids.into_iter().map(|uid| (uid, ticks)));
    }
}

#[cfg(test)]
mod tests {
    use shed_core::time::Span;

    use super::*;

    fn pods(uids: &[&str]) -> Vec<PodRef> {
        let pod = |uid: &&str| PodRef {
            name: format!("pod-{uid}"),
            uid: (*uid).to_owned(),
        };
        uids.iter().map(pod).collect()
    }

    #[test]
    fn a_done_write_is_sent_again_only_if_the_watch_never_shows_it() {
        let (mut done, start) = (Done::default(), Instant(1000));
        assert_eq!(done.to_send(&pods(&["a", "b"]), start), pods(&["a", "b"]));
        done.note(["a".to_owned()], start);
        assert_eq!(done.to_send(&pods(&["a", "b"]), start), pods(&["b"]));
        let late = start.plus(CREATION_SEEN_WITHIN);
        assert_eq!(done.to_send(&pods(&["a"]), late.plus(Span(-1))), pods(&[]));
        assert_eq!(done.to_send(&pods(&["a"]), late), pods(&["a"]));
        assert!(done.0.is_empty());
    }

    #[test]
    fn writes_that_the_watch_has_shown_are_forgotten() {
        let mut done = Done::default();
        done.note(["a".to_owned()], Instant(0));
        assert_eq!(done.to_send(&[], Instant(0)), pods(&[]));
        assert!(done.0.is_empty());
    }
}
