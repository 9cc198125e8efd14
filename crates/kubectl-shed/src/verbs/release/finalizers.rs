//! Objects that a finalizer of shed holds, and what a release does to each. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use shed::api::{
    ATTEMPT_FINALIZER, GROUP, JOB_TRACKING_FINALIZER, LABEL_JOB_NAME, LABEL_JOB_UID, MANAGED_BY,
};

use crate::jobs;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Pod,
    DeadlineJob,
}

/// An object that a finalizer of shed holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The job that it belongs to.
    pub job: Option<String>,
    /// What it does now, such as `Running`.
    pub state: String,
    /// What a release does to it, or why it is not released.
    pub effect: Effect,
    finalizers: Vec<String>,
    version: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is being deleted, and no other finalizer holds it.
    Deleted,
    /// It is being deleted, and other finalizers hold it.
    HeldByOthers,
    Continues,
    /// It has finished.
    Uncounted,
    /// It has only a finalizer left from shed.
    Freed,
    /// The built-in Job controller counts by the same finalizer.
    BuiltIn,
}

impl Effect {
    fn words(self) -> &'static str {
        match self {
            Self::Deleted => "the apiserver completes its deletion",
            Self::HeldByOthers => "stays until the other finalizers are removed",
            Self::Continues => {
                "continues to run; a later operator cannot count its end, and starts its task again"
            }
            Self::Uncounted => {
                "stays; a later operator may run its task again, because its end may not be counted"
            }
            Self::Freed => "stays, and can be deleted",
            Self::BuiltIn => {
                "kept: the built-in Job controller runs its Job and needs the finalizer"
            }
        }
    }
}

impl Held {
    pub fn is_releasable(&self) -> bool {
        self.effect != Effect::BuiltIn
    }

    /// The strategic merge patch that takes shed's finalizers off a pod.
    pub fn pod_patch(&self) -> Value {
        json!({ "metadata": {
            "uid": self.uid,
            "$deleteFromPrimitiveList/finalizers": [ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER],
        } })
    }

    /// The merge patch that keeps the finalizers of others. The version is a precondition, because the patch replaces the list.
    pub fn merge_patch(&self) -> Value {
        let finalizers = self.finalizers.iter();
        let others: Vec<_> = finalizers.filter(|name| !is_sheds(name)).collect();
        json!({ "metadata": { "uid": self.uid, "resourceVersion": self.version, "finalizers": others } })
    }
}

/// What is known of the Jobs of a cluster.
pub struct Facts {
    /// By uid: whether shed runs the Job.
    jobs: BTreeMap<String, bool>,
}

impl Facts {
    /// From all Jobs of the namespaces in question.
    pub fn new(jobs: &[Job]) -> Self {
        let entry = |job: &Job| {
            let is_ours = jobs::manager(job) == Some(MANAGED_BY);
            Some((job.metadata.uid.clone()?, is_ours))
        };
        Self {
            jobs: jobs.iter().filter_map(entry).collect(),
        }
    }

    /// The pod, if a finalizer of shed may hold it.
    pub fn pod(&self, pod: &Pod) -> Option<Held> {
        let metadata = &pod.metadata;
        let is_attempt = has_finalizer(metadata, |name| name == ATTEMPT_FINALIZER);
        if !is_attempt && !has_finalizer(metadata, |name| name == JOB_TRACKING_FINALIZER) {
            return None;
        }
        let mut owners = metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true));
        let labels = metadata.labels.as_ref();
        let label = |name: &str| labels.and_then(|labels| labels.get(name));
        let is_labelled = label(LABEL_JOB_UID).is_some();
        let is_deleting = metadata.deletion_timestamp.is_some();
        let job = owner.filter(|owner| owner.kind == "Job");
        let job = job.map(|owner| self.jobs.get(&owner.uid));
        let is_built_in = match (is_attempt, job) {
            (true, _) | (false, Some(Some(true))) => false,
            (false, Some(Some(false))) => true,
            // The Job is gone: nothing counts its pods, and the built-in controller releases those of its own.
            (false, Some(None)) => !is_labelled && !is_deleting,
            (false, None) => !is_labelled,
        };
        // Pods of other controllers do not concern shed, unless shed's label is on them.
        if is_built_in && !is_labelled {
            return None;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        let phase = phase.unwrap_or_else(|| "Unknown".to_owned());
        let kept = match phase.as_str() {
            "Succeeded" | "Failed" => Effect::Uncounted,
            _ => Effect::Continues,
        };
        let state = match is_deleting {
            true => format!("{phase}, being deleted"),
            false => phase,
        };
        let job = owner.map(|owner| owner.name.clone());
        let job = job.or_else(|| label(LABEL_JOB_NAME).cloned());
        let mut held = held(Kind::Pod, metadata, job, state, kept);
        if is_built_in {
            held.effect = Effect::BuiltIn;
        }
        Some(held)
    }
}

/// The DeadlineJob, if a finalizer of shed holds it.
pub fn deadline_job(metadata: &ObjectMeta) -> Option<Held> {
    has_finalizer(metadata, is_sheds).then(|| {
        let is_deleting = metadata.deletion_timestamp.is_some();
        let state = if is_deleting {
            "being deleted"
        } else {
            "present"
        }
        .to_owned();
        let (kind, job) = (Kind::DeadlineJob, metadata.name.clone());
        held(kind, metadata, job, state, Effect::Freed)
    })
}

/// An object, and `kept` if it is not being deleted.
fn held(
    kind: Kind,
    metadata: &ObjectMeta,
    job: Option<String>,
    state: String,
    kept: Effect,
) -> Held {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let others = has_finalizer(metadata, |name| !is_sheds(name));
    let effect = match metadata.deletion_timestamp {
        Some(_) if others => Effect::HeldByOthers,
        Some(_) => Effect::Deleted,
        None => kept,
    };
    Held {
        kind,
        namespace: text(&metadata.namespace),
        name: text(&metadata.name),
        uid: text(&metadata.uid),
        job,
        state,
        effect,
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        version: metadata.resource_version.clone(),
    }
}

fn has_finalizer(metadata: &ObjectMeta, is: impl Fn(&str) -> bool) -> bool {
    let finalizers = metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|name| is(name))
}

/// Whether a finalizer is one of shed's own or the one that shed uses for pods of Jobs.
fn is_sheds(finalizer: &str) -> bool {
    let group = finalizer.split_once('/').map(|(group, _)| group);
    group == Some(GROUP) || finalizer == JOB_TRACKING_FINALIZER
}

pub fn listing(found: &[Held]) -> String {
    let line = |held: &Held| {
        let kind = match held.kind {
            Kind::Pod => "pod",
            Kind::DeadlineJob => "deadlinejob",
        };
        let Held {
            namespace,
            name,
            state,
            effect,
            ..
        } = held;
        format!("{kind} {namespace}/{name} ({state}): {}\n", effect.words())
    };
    found.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(finalizers: &[&str], owner: (&str, &str), change: Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": "p", "namespace": "team", "uid": "u", "finalizers": finalizers,
                "ownerReferences": [{"apiVersion": "v", "kind": owner.0, "name": "nightly", "uid": owner.1,
                    "controller": true}],
            },
            "status": {"phase": "Running"},
        });
        for (place, value) in change.as_object().unwrap() {
            let (parent, field) = place.rsplit_once('/').unwrap();
            pod.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    fn facts() -> Facts {
        let job = |uid: &str, manager: Option<&str>| {
            serde_json::from_value(json!({
                "metadata": {"name": "nightly", "uid": uid},
                "spec": {"managedBy": manager, "template": {}},
            }))
            .unwrap()
        };
        Facts::new(&[job("ours", Some(MANAGED_BY)), job("theirs", None)])
    }

    fn effect(finalizers: &[&str], owner: (&str, &str), change: Value) -> Option<Effect> {
        facts()
            .pod(&pod(finalizers, owner, change))
            .map(|held| held.effect)
    }

    #[test]
    fn each_pod_is_reported_what_happens_to_it() {
        let deadline_job = ("DeadlineJob", "d");
        let deleted = json!({"/metadata/deletionTimestamp": "2030-01-01T00:00:00Z"});
        let ended = json!({"/status/phase": "Succeeded"});
        let of = |change| effect(&[ATTEMPT_FINALIZER], deadline_job, change);
        assert_eq!(of(json!({})), Some(Effect::Continues));
        assert_eq!(of(ended), Some(Effect::Uncounted));
        assert_eq!(of(deleted.clone()), Some(Effect::Deleted));
        let both = &[ATTEMPT_FINALIZER, "example.com/other"];
        assert_eq!(
            effect(both, deadline_job, deleted),
            Some(Effect::HeldByOthers)
        );
        assert_eq!(
            effect(&["example.com/other"], deadline_job, json!({})),
            None
        );
    }

    #[test]
    fn pods_that_the_built_in_controller_counts_keep_its_finalizer() {
        let tracked = |owner, change| effect(&[JOB_TRACKING_FINALIZER], ("Job", owner), change);
        let label = json!({"/metadata/labels": {LABEL_JOB_UID: "x"}});
        assert_eq!(tracked("ours", json!({})), Some(Effect::Continues));
        assert_eq!(tracked("theirs", json!({})), None);
        assert_eq!(tracked("theirs", label.clone()), Some(Effect::BuiltIn));
        assert_eq!(tracked("gone", json!({})), None);
        assert_eq!(tracked("gone", label), Some(Effect::Continues));
        let deleted = json!({"/metadata/deletionTimestamp": "2030-01-01T00:00:00Z"});
        assert_eq!(tracked("gone", deleted), Some(Effect::Deleted));
    }

    #[test]
    fn a_patch_names_the_uid_and_leaves_finalizers_of_others() {
        let metadata: ObjectMeta = serde_json::from_value(json!({
            "name": "nightly", "namespace": "team", "uid": "u", "resourceVersion": "7",
            "finalizers": ["shed.dev/x", "example.com/other"],
        }))
        .unwrap();
        let held = deadline_job(&metadata).unwrap();
        assert_eq!(held.effect, Effect::Freed);
        assert_eq!(
            held.merge_patch(),
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["example.com/other"]}})
        );
        let held = facts()
            .pod(&pod(&[ATTEMPT_FINALIZER], ("DeadlineJob", "d"), json!({})))
            .unwrap();
        assert_eq!(held.pod_patch()["metadata"]["uid"], "u");
        assert_eq!(
            listing(&[held]),
            "pod team/p (Running): continues to run; a later operator cannot count its end, and starts its task again\n"
        );
    }
}
