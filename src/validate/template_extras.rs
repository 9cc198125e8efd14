//! Unknown fields of a Job's pod template, such as one that makes pods stricter. The Job's pods get
//! them unchanged, because a pod without them would not be the pod its user specified.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ObjectMeta};
use parking_lot::RwLock;
use serde_json::Value;
use shed_core::snapshot::AttemptKind;

use crate::api;
use crate::api::unknown_fields::{self, Part};

/// Fields of a Job that make one unit of its pods (Kubernetes 1.37). shed starts pod by pod, so these would be lost.
const GROUPING: [&str; 4] = [
    "scheduling.schedulingPolicy.gang",
    "scheduling.schedulingConstraints",
    "scheduling.resourceClaims",
    "scheduling.disruptionMode.all",
];

/// Fields that pods get as they are, with their places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateExtras {
    fields: Vec<Field>,
    /// The field of the Job that makes one unit of its pods.
    pub grouping: Option<&'static str>,
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    /// As `template.spec.novel`.
    words: String,
    /// The path from the template to the object with the field.
    way: Vec<Step>,
    name: String,
    value: Value,
}

/// The group of pods that the scheduler places together (Kubernetes 1.36). A clone is not in it: it
/// would count as a member, and preempting the group would delete the clone with it.
const SCHEDULING_GROUP: &str = "template.spec.schedulingGroup";

/// One step from the whole to a part of it.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// The entry of a list: containers, volumes and such are found by their names, as pods have some
    /// that the template has not; all other lists only get longer.
    Entry(usize, Option<String>),
}

/// Decodes a Job from its parts, with the unknown fields of its template.
pub fn read(
    metadata: ObjectMeta,
    spec: &Value,
    status: &Value,
) -> Result<(Job, TemplateExtras), String> {
    let (read, passed_over) = unknown_fields::read_with_places::<Option<JobSpec>>(spec)
        .map_err(|problem| format!("spec{problem}"))?;
    let (status, _) = unknown_fields::read::<Option<JobStatus>>(status)
        .map_err(|problem| format!("status{problem}"))?;
    let fields = passed_over
        .iter()
        .filter_map(|parts| Field::of(spec, parts));
    let template_extras = TemplateExtras {
        fields: fields.collect(),
        grouping: GROUPING.into_iter().find(|field| has(spec, field)),
    };
    let job = Job {
        metadata,
        spec: read,
        status,
    };
    Ok((job, template_extras))
}

/// Whether the specification has the field, such as `scheduling.resourceClaims`.
fn has(spec: &Value, field: &str) -> bool {
    let mut parts = field.split('.');
    let found = parts.try_fold(spec, |here, part| here.get(part));
    match found {
        Some(Value::Array(entries)) => !entries.is_empty(),
        Some(value) => !value.is_null(),
        None => false,
    }
}

impl Field {
    /// None if it is not of the template.
    fn of(spec: &Value, parts: &[Part]) -> Option<Self> {
        let (Part::Field(name), way) = parts.split_last()? else {
            return None;
        };
        let mut here = spec;
        let mut steps = Vec::with_capacity(way.len());
        for part in way {
            let (step, next) = match part {
                Part::Field(name) => (Step::Field(name.clone()), here.get(name)?),
                Part::Position(position) => {
                    let entry = here.get(position)?;
                    (Step::Entry(*position, name_of(entry)), entry)
                }
            };
            steps.push(step);
            here = next;
        }
        let is_of_template = steps.first() == Some(&Step::Field("template".to_owned()));
        is_of_template.then(|| Self {
            words: unknown_fields::words(parts),
            way: steps.split_off(1),
            name: name.clone(),
            value: here.get(name).cloned().unwrap_or_default(),
        })
    }
}

fn name_of(entry: &Value) -> Option<String> {
    Some(entry.get("name")?.as_str()?.to_owned())
}

impl TemplateExtras {
    /// Whether all of the template is known.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.grouping.is_none()
    }

    /// The pod with all of these fields; a clone has no scheduling group.
    pub fn on(&self, pod: &Pod) -> Result<DynamicObject, String> {
        let mut whole = serde_json::to_value(pod).map_err(|error| error.to_string())?;
        let is_clone = is_clone(pod);
        let of_this = |field: &&Field| !(is_clone && field.words == SCHEDULING_GROUP);
        for field in self.fields.iter().filter(of_this) {
            let mut steps = field.way.iter();
            let place = steps.try_fold(&mut whole, |here, step| match step {
                Step::Field(name) => here.get_mut(name),
                Step::Entry(position, name) => entry_of(here, *position, name.as_ref()),
            });
            let fields = place.and_then(Value::as_object_mut);
            let fields = fields.ok_or_else(|| field.words.clone())?;
            fields.insert(field.name.clone(), field.value.clone());
        }
        serde_json::from_value(whole).map_err(|error| error.to_string())
    }
}

fn is_clone(pod: &Pod) -> bool {
    let kind = pod.metadata.labels.as_ref();
    let kind = kind.and_then(|labels| labels.get(api::LABEL_KIND));
    kind.is_some_and(|kind| kind == AttemptKind::Clone.label())
}

fn entry_of<'v>(
    list: &'v mut Value,
    position: usize,
    name: Option<&String>,
) -> Option<&'v mut Value> {
    let entries = list.as_array_mut()?;
    let is_it = |entry: &Value| name_of(entry).as_ref() == name;
    // Several may have one name, as the mounts of a volume do.
    let at = match entries.get(position) {
        Some(entry) if is_it(entry) => position,
        _ => entries
            .iter()
            .position(|entry| name.is_some() && is_it(entry))?,
    };
    entries.get_mut(at)
}

/// Fields that each Job hands on to its pods, by uid. Most Jobs have none.
#[derive(Debug, Default)]
pub struct TemplateExtrasTable(RwLock<BTreeMap<String, Arc<TemplateExtras>>>);

impl TemplateExtrasTable {
    /// Fields that the Job hands on to its pods.
    pub fn of(&self, uid: &str) -> Arc<TemplateExtras> {
        let all = self.0.read();
        all.get(uid).cloned().unwrap_or_default()
    }

    /// The Job is as it was just read.
    pub fn note(&self, job: &ObjectMeta, template_extras: TemplateExtras) {
        let uid = job.uid.clone().unwrap_or_default();
        let mut all = self.0.write();
        if template_extras.is_empty() {
            all.remove(&uid);
        } else {
            all.insert(uid, Arc::new(template_extras));
        }
    }

    /// Forgets a Job that is gone.
    pub fn forget(&self, uid: &str) {
        let mut all = self.0.write();
        all.remove(uid);
    }

    /// Forgets Jobs that are gone.
    pub fn retain(&self, exists: impl Fn(&str) -> bool) {
        let mut all = self.0.write();
        all.retain(|uid, _| exists(uid));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shed_core::plan::Move;
    use shed_core::time::Instant;

    use super::*;
    use crate::api::Ledger;
    use crate::attempt_pod;
    use crate::fixtures;
    use crate::reconcile::mock::launch;

    /// A Job as the apiserver sends it, with these changes to its template's spec.
    fn object(change: impl FnOnce(&mut Value)) -> Value {
        let job = fixtures::batch_job("completions: 3, completionMode: Indexed");
        let mut whole = serde_json::to_value(job).unwrap();
        change(&mut whole["spec"]["template"]["spec"]);
        whole
    }

    fn read(object: &Value) -> Result<(Job, TemplateExtras), String> {
        let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
        super::read(metadata, &object["spec"], &object["status"])
    }

    fn agent() -> attempt_pod::AgentSettings {
        attempt_pod::AgentSettings {
            image: "agent".to_owned(),
            pull_policy: "IfNotPresent".to_owned(),
            pull_secret: None,
            security_context: attempt_pod::agent_context::restricted(),
            keys: fixtures::keys(),
        }
    }

    /// Pod of an attempt that has a sidecar in front, and a volume.
    fn pod_of(job: &Job, kind: AttemptKind) -> Pod {
        let mut companion = fixtures::companion(job);
        companion.spec.progress = serde_json::from_value(json!({"file": {}})).unwrap();
        let validated = crate::adopt::translate::validated(&companion, job).unwrap();
        let mut ledger = Ledger::default();
        let Move::Launch(launch) = launch(0, kind) else {
            panic!("no launch");
        };
        ledger.launch(&launch, Instant(0));
        let attempt = ledger.attempt(0, 0).unwrap();
        attempt_pod::pod(&companion, &validated, 0, attempt, None, &agent(), None)
    }

    #[test]
    fn a_field_that_groups_pods_is_noticed() {
        let grouping = |scheduling: Value| {
            let mut object = object(|_| {});
            object["spec"]["scheduling"] = scheduling;
            read(&object).unwrap().1.grouping
        };
        let gang = json!({"schedulingPolicy": {"gang": {"minCount": 3}}});
        assert_eq!(grouping(gang), Some("scheduling.schedulingPolicy.gang"));
        let topology = json!({"schedulingConstraints": {"topology": [{"key": "rack"}]}});
        assert_eq!(grouping(topology), Some("scheduling.schedulingConstraints"));
        let claims = json!({"resourceClaims": [{"name": "gpus"}]});
        assert_eq!(grouping(claims), Some("scheduling.resourceClaims"));
        let all = json!({"disruptionMode": {"all": {}}});
        assert_eq!(grouping(all), Some("scheduling.disruptionMode.all"));
        let harmless = json!({"schedulingPolicy": {"basic": {}}, "resourceClaims": [],
            "disruptionMode": {"single": {}}});
        assert_eq!(grouping(harmless), None);
        assert_eq!(grouping(Value::Null), None);
    }

    #[test]
    fn a_job_is_read_as_it_is() {
        let job = fixtures::batch_job("completions: 3");
        let whole = serde_json::to_value(&job).unwrap();
        let (read, template_extras) = read(&whole).unwrap();
        assert_eq!(read, job);
        assert!(template_extras.is_empty());
    }

    #[test]
    fn pods_get_the_fields_of_the_template_that_are_not_known_here() {
        let object = object(|spec| {
            spec["hardened"] = json!({"level": 3});
            spec["containers"][0]["sealed"] = json!(true);
            spec["containers"][0]["securityContext"] = json!({"novel": "strict"});
            spec["tolerations"] = json!([{"key": "a"}, {"key": "b", "novel": 7}]);
        });
        let (job, template_extras) = read(&object).unwrap();
        let pod = pod_of(&job, AttemptKind::Original);
        let pod = template_extras.on(&pod).unwrap();
        let spec = &pod.data["spec"];
        assert_eq!(spec["hardened"], json!({"level": 3}));
        assert_eq!(spec["containers"][0]["sealed"], json!(true));
        let context = &spec["containers"][0]["securityContext"];
        assert_eq!(context["novel"], json!("strict"));
        assert_eq!(spec["tolerations"][1], json!({"key": "b", "novel": 7}));
        assert!(spec["initContainers"][0].get("sealed").is_none());
        assert!(pod.metadata.owner_references.is_some());
    }

    #[test]
    fn the_scheduling_group_is_for_all_attempts_but_clones() {
        let group = json!({"podGroupName": "together"});
        let object = object(|spec| {
            spec["schedulingGroup"] = group.clone();
            spec["hardened"] = json!(true);
        });
        let (job, template_extras) = read(&object).unwrap();
        for (kind, expected) in [
            (AttemptKind::Original, Some(&group)),
            (AttemptKind::Retry, Some(&group)),
            (AttemptKind::Clone, None),
        ] {
            let pod = template_extras.on(&pod_of(&job, kind)).unwrap();
            let spec = &pod.data["spec"];
            assert_eq!(spec.get("schedulingGroup"), expected, "{kind:?}");
            assert_eq!(spec["hardened"], json!(true));
        }
    }

    #[test]
    fn a_field_that_a_pod_has_no_place_for_is_named() {
        let object = object(|spec| spec["containers"][0]["sealed"] = json!(true));
        let (_, template_extras) = read(&object).unwrap();
        let error = template_extras.on(&Pod::default()).unwrap_err();
        assert_eq!(error, "template.spec.containers[0].sealed");
    }

    #[test]
    fn what_is_not_the_templates_is_not_handed_on() {
        let mut object = object(|_| {});
        object["spec"]["novel"] = json!(1);
        assert!(read(&object).unwrap().1.is_empty());
    }
}
