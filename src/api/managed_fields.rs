//! Objects without `metadata.managedFields`. Nothing here reads that field, and it is often larger than
//! the rest of the metadata, so it is skipped while an object is decoded; only its size is counted. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::api::{LABEL_CLASS, LABEL_RESTORED, WORKFLOW_ANNOTATIONS, WORKFLOW_VALUE_MAX};
use crate::size;

/// A decoded object: its parts, and the number of bytes that were skipped.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "S: DeserializeOwned, T: DeserializeOwned")]
pub struct Parts<S, T> {
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its specification.
    pub spec: Option<S>,
    /// Its status.
    pub status: Option<T>,
}

/// Metadata without `managedFields`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    managed_fields: Skipped,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    self_link: Option<String>,
    uid: Option<String>,
}

impl Metadata {
    /// The metadata, and the bytes of JSON that were skipped.
    pub fn split(self) -> (ObjectMeta, usize) {
        let metadata = ObjectMeta {
            annotations: self.annotations,
            creation_timestamp: self.creation_timestamp,
            deletion_grace_period_seconds: self.deletion_grace_period_seconds,
            deletion_timestamp: self.deletion_timestamp,
            finalizers: self.finalizers,
            generate_name: self.generate_name,
            generation: self.generation,
            labels: self.labels,
            managed_fields: None,
            name: self.name,
            namespace: self.namespace,
            owner_references: self.owner_references,
            resource_version: self.resource_version,
            self_link: self.self_link,
            uid: self.uid,
        };
        (metadata, self.managed_fields.0)
    }
}

/// The annotations that make a job a stage of a workflow. A value that is too long is cut to one that is still too long.
fn of_workflow(metadata: &ObjectMeta) -> Option<BTreeMap<String, String>> {
    let annotations = metadata.annotations.as_ref()?;
    let known = WORKFLOW_ANNOTATIONS
        .iter()
        .filter_map(|key| annotations.get_key_value(*key));
    let cut = |value: &str| value[..value.ceil_char_boundary(WORKFLOW_VALUE_MAX + 1)].to_owned();
    let kept: BTreeMap<String, String> = known
        .map(|(key, value)| (key.clone(), cut(value)))
        .collect();
    (!kept.is_empty()).then_some(kept)
}

/// The labels of a job that decide anything.
const LABELS: [&str; 2] = [LABEL_CLASS, LABEL_RESTORED];

/// The metadata that identifies an object, its owner and its workflow, without other annotations, finalizers, and labels
/// that decide nothing.
pub fn essentials(metadata: &ObjectMeta) -> ObjectMeta {
    let labels = metadata.labels.iter().flatten();
    let kept = labels.filter(|(key, _)| LABELS.contains(&&***key));
    let kept: BTreeMap<String, String> = kept
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        generation: metadata.generation,
        creation_timestamp: metadata.creation_timestamp.clone(),
        deletion_timestamp: metadata.deletion_timestamp.clone(),
        owner_references: metadata.owner_references.clone(),
        labels: (!kept.is_empty()).then_some(kept),
        annotations: of_workflow(metadata),
        ..ObjectMeta::default()
    }
}

/// A kind that is put together from its parts.
pub trait Whole: Sized {
    /// Its specification.
    type Spec: DeserializeOwned;
    /// Its status.
    type Status: DeserializeOwned;
    /// The whole.
    fn of(metadata: ObjectMeta, spec: Option<Self::Spec>, status: Option<Self::Status>) -> Self;
}

macro_rules! whole {
    ($kind:ident, $spec:ident, $status:ident) => {
        impl Whole for $kind {
            type Spec = k8s_openapi::api::core::v1::$spec;
            type Status = k8s_openapi::api::core::v1::$status;

            fn of(
                metadata: ObjectMeta,
                spec: Option<Self::Spec>,
                status: Option<Self::Status>,
            ) -> Self {
                Self {
                    metadata,
                    spec,
                    status,
                }
            }
        }
    };
}

whole!(Pod, PodSpec, PodStatus);
whole!(Node, NodeSpec, NodeStatus);

/// An object as watches and lists decode it, without its `managedFields`. Decoding is the only way to
/// make one, so a test can't set a field that is dropped.
#[derive(Clone, Debug)]
pub struct Trimmed<K>(K);

impl<K> Deref for Trimmed<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

/// As the apiserver would send it.
#[cfg(test)]
impl<K: Whole + Serialize> From<K> for Trimmed<K> {
    fn from(object: K) -> Self {
        let object = serde_json::to_value(object).expect("an object");
        serde_json::from_value(object).expect("the same object")
    }
}

impl<'de, K: Whole> Deserialize<'de> for Trimmed<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parts = Parts::<K::Spec, K::Status>::deserialize(from)?;
        let (metadata, _) = parts.metadata.split();
        Ok(Self(K::of(metadata, parts.spec, parts.status)))
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Trimmed<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(_: &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group(_: &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version(_: &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural(_: &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// Makes a reduced type a resource of the kind that it represents. It needs the methods `metadata`
/// and `metadata_mut`.
macro_rules! stands_for {
    ($own:ty, $kind:ty) => {
        impl kube::Resource for $own {
            type DynamicType = ();
            type Scope = <$kind as kube::Resource>::Scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::kind(&())
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::group(&())
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::version(&())
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::plural(&())
            }

            fn meta(&self) -> &kube::api::ObjectMeta {
                self.metadata()
            }

            fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
                self.metadata_mut()
            }
        }
    };
}
pub(crate) use stands_for;

/// The bytes of JSON of a value that is not kept.
#[derive(Clone, Copy, Debug, Default)]
struct Skipped(usize);

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Count).map(Skipped)
    }
}

struct Count;

fn text<T: Serialize + ?Sized, E>(value: &T) -> Result<usize, E> {
    Ok(size::bytes(value))
}

impl<'de> Visitor<'de> for Count {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<usize, E> {
        text(&value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<usize, E> {
        text(&value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<usize, E> {
        text(&value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<usize, E> {
        text(&value)
    }

    fn visit_str<E>(self, value: &str) -> Result<usize, E> {
        text(value)
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        text(&())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<usize, A::Error> {
        // Brackets, and a comma between two entries.
        let mut bytes = 2;
        while let Some(Skipped(entry)) = entries.next_element()? {
            bytes += entry + usize::from(bytes > 2);
        }
        Ok(bytes)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<usize, A::Error> {
        let mut bytes = 2;
        while let Some((Skipped(key), Skipped(value))) = entries.next_entry()? {
            bytes += key + 1 + value + usize::from(bytes > 2);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_counted_and_not_kept() {
        let managed = json!([{"manager": "kubectl \"x\"", "fieldsV1": {"f:spec": {".": {}, "f:a": null,
            "f:list": [1, -2, 0.5, true, "é", [], {}]}}}, {}]);
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"b": "c"},
            "managedFields": managed}, "spec": {"nodeName": "n", "containers": []}, "novel": 1});
        let parts: Parts<serde_json::Value, serde_json::Value> =
            serde_json::from_value(pod.clone()).unwrap();
        let (metadata, skipped) = parts.metadata.split();
        assert_eq!(skipped, managed.to_string().len());
        let Trimmed(trimmed): Trimmed<Pod> = serde_json::from_str(&pod.to_string()).unwrap();
        assert_eq!(trimmed.metadata, metadata);
        let mut whole: Pod = serde_json::from_value(pod).unwrap();
        assert!(whole.metadata.managed_fields.take().is_some());
        assert_eq!(trimmed, whole, "all else is kept");
    }

    #[test]
    fn labels_that_decide_something_are_essential() {
        let labels =
            json!({"shed.dev/class": "nightly", "velero.io/restore-name": "r", "team": "a"});
        let metadata: ObjectMeta = serde_json::from_value(json!({"labels": labels})).unwrap();
        let kept = essentials(&metadata).labels.unwrap();
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), LABELS);
        assert_eq!(essentials(&ObjectMeta::default()), ObjectMeta::default());
    }

    #[test]
    fn an_object_without_metadata_is_read_as_such() {
        let parts: Parts<u8, u8> = serde_json::from_str("{}").unwrap();
        assert_eq!(parts.metadata.split(), (ObjectMeta::default(), 0));
    }
}
