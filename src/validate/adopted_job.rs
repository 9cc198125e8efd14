//! The fields of a batch/v1 Job that its attempts and decisions need.

use std::sync::Arc;

use kube::core::Selector;

use crate::validate::template_extras::TemplateExtras;

/// The fields of a batch/v1 Job that change its attempts and decisions.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether its pods have indexes.
    pub indexed: bool,
    /// Whether it has no number of completions: the first success proves that no work is left.
    pub work_queue: bool,
    /// Whether failures are counted per index.
    pub per_index: bool,
    /// Whether it has no settings of shed. Its pods then have none either.
    pub plain: bool,
    /// Whether a pod that is being deleted counts as failed and is replaced at once, as in
    /// batch/v1. False if its `podReplacementPolicy` or its annotations specify otherwise.
    pub replaces_deleted: bool,
    /// Whether an annotation specifies the effect of two live copies of a task. Without one,
    /// batch/v1's rules apply to deleted pods.
    pub says_idempotency: bool,
    /// Whether it is in a queue of Kueue, if the cluster has Kueue.
    pub queued: bool,
    /// Selector of its pods.
    pub selector: Selector,
    /// Labels and annotations that its pods get unchanged.
    pub template_extras: Arc<TemplateExtras>,
}
