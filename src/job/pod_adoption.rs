//! Pods of an adopted Job: those that it controls and whose labels match its selector. The Job
//! adopts a matching pod without a controller, and releases one that no longer matches.

use std::sync::Arc;

use kube::core::SelectorExt;

use crate::cluster::pod::{JobPods, PodFacts, PodRef};
use crate::validate::Adopted;

/// Changes of ownership.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Pods to take in again.
    pub adopt: Vec<PodRef>,
    /// Pods to let go.
    pub release: Vec<PodRef>,
}

/// Sorts the attempts of a Job (see `cluster::identity`) and the pods that it only controls.
/// Returns its own attempts.
pub fn sort(job: &Adopted, mut pods: JobPods, unlabelled: &[Arc<PodFacts>]) -> (JobPods, Claims) {
    let mut claims = Claims::default();
    pods.retain(|_, pod| {
        let Some(belongs) = &pod.belongs else {
            return false;
        };
        let matches = job.selector.matches(&belongs.labels);
        match &belongs.controller {
            Some(uid) if *uid != job.uid => false,
            Some(_) if matches => true,
            Some(_) => {
                claims.release.push(pod.reference());
                false
            }
            None => {
                let deleting = pod.attempt.as_ref().is_none_or(|attempt| attempt.deleting);
                if matches && !deleting {
                    claims.adopt.push(pod.reference());
                }
                matches
            }
        }
    });
    claims
        .release
        .extend(unlabelled.iter().map(|pod| pod.reference()));
    (pods, claims)
}

#[cfg(test)]
mod tests;
