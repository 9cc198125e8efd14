//! The fields of a batch/v1 Job that its attempts and decisions need.

use std::sync::Arc;

use kube::core::Selector;

use crate::validate::handed_on::HandedOn;

/// The fields of a batch/v1 Job that change its attempts and decisions.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether its pods have indexes.
    pub indexed: bool,
    /// Whether it has no number of completions: the first success says that no work is left.
    pub work_queue: bool,
    /// Whether failures are counted per index.
    pub per_index: bool,
    /// Whether containers are started again in place.
    pub restarts: bool,
    /// Whether it asks nothing of shed: its pods know nothing of shed either.
    pub plain: bool,
    /// Whether a pod that is being deleted counts as failed and is replaced at once, as batch/v1 does it:
    /// unless its `podReplacementPolicy` or its annotations say otherwise.
    pub replaces_deleted: bool,
    /// Whether an annotation says if two live copies of a task do harm. Where none does, batch/v1's rules
    /// hold for deleted pods.
    pub says_idempotency: bool,
    /// Selector of its pods.
    pub selector: Selector,
    /// Labels and annotations that its pods get unchanged.
    pub handed_on: Arc<HandedOn>,
}
