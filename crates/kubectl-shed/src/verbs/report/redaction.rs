//! What of an object may leave the cluster. Fields that may hold a secret are removed, and their values are remembered, so that
//! they are found in logs and events as well. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Event, Pod};
use regex::Regex;
use serde_json::{Map, Value, json};
use shed::api::{GROUP, Ledger};

use crate::events::EventView;

/// Stands in the place of a removed value.
const REMOVED: &str = "REMOVED";
/// Shorter texts are words such as `true` or `info`, and removing them everywhere would make logs useless.
const SECRET_MIN: usize = 8;

/// Fields of a container that are kept. What is not named here may hold a secret.
const CONTAINER: [&str; 7] = [
    "image",
    "imagePullPolicy",
    "name",
    "resources",
    "restartPolicy",
    "terminationMessagePolicy",
    "workingDir",
];
/// Fields of a pod specification that are kept.
const POD: [&str; 16] = [
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "hostNetwork",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "preemptionPolicy",
    "priorityClassName",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
];
/// Prefixes of labels and annotations whose values are kept.
const PREFIXES: [&str; 3] = ["shed.dev/", "app.kubernetes.io/", "batch.kubernetes.io/"];

#[derive(Debug, Default)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    fn remember(&mut self, value: &Value) {
        match value {
            Value::String(text) => drop(self.0.insert(text.clone())),
            Value::Array(values) => values.iter().for_each(|value| self.remember(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.remember(value)),
            _ => {}
        }
    }

    /// The text without the removed values, and without bearer tokens.
    pub fn scrubbed(&self, text: &str) -> String {
        // In YAML a value of several lines stands in several lines.
        let parts = self.0.iter().flat_map(|value| value.lines().map(str::trim));
        let mut parts: Vec<&str> = parts.filter(|part| part.len() >= SECRET_MIN).collect();
        // Long ones first, so that a part of one does not keep the whole from being found.
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        let text = parts
            .into_iter()
            .fold(text.to_owned(), |text, part| text.replace(part, REMOVED));
        match Regex::new(
            r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|(?i)bearer +[^ \n]+",
        ) {
            Ok(tokens) => tokens.replace_all(&text, REMOVED).into_owned(),
            Err(_) => text,
        }
    }
}

pub fn deadline_job(job: Value, secrets: &mut Secrets) -> Value {
    let mut job = object(job, secrets);
    if !job["spec"]["template"].is_null() {
        template(&mut job["spec"]["template"], secrets);
    }
    for place in ["/spec/progress/httpGet/path", "/spec/progress/metric/path"] {
        if let Some(Value::String(path)) = job.pointer_mut(place)
            && let Some((kept, query)) = path.split_once('?')
        {
            secrets.remember(&query.into());
            *path = format!("{kept}?{REMOVED}");
        }
    }
    if let Some(ledger) = job.pointer_mut("/status/ledger") {
        *ledger = without_checkpoints(ledger, secrets);
    }
    job
}

/// A Deployment for the bundle. Values of shed's own settings stay.
pub fn workload(workload: Value, secrets: &mut Secrets) -> Value {
    let mut workload = object(workload, secrets);
    let containers = workload.pointer_mut("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array_mut);
    let containers = containers.into_iter().flatten();
    let settings: Vec<Value> = containers.map(settings).collect();
    template(&mut workload["spec"]["template"], secrets);
    workload["settings"] = settings.into();
    workload
}

/// Takes the environment variables that set the operator up out of a container.
fn settings(container: &mut Value) -> Value {
    let is_own = |variable: &Value| {
        let name = variable["name"].as_str();
        name.is_some_and(|name| name.starts_with("SHED_"))
    };
    let mut own = Map::new();
    if let Some(variables) = container["env"].as_array_mut() {
        for variable in variables.iter().filter(|variable| is_own(variable)) {
            let name = variable["name"].as_str().unwrap_or_default();
            own.insert(name.to_owned(), variable["value"].clone());
        }
        variables.retain(|variable| !is_own(variable));
    }
    json!({ "container": container["name"], "env": own })
}

/// An object's metadata without foreign annotations and labels; all else as it is.
pub fn object(mut object: Value, secrets: &mut Secrets) -> Value {
    metadata(&mut object["metadata"], secrets);
    object
}

fn metadata(metadata: &mut Value, secrets: &mut Secrets) {
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    metadata.remove("managedFields");
    for field in ["annotations", "labels"] {
        let values = metadata.get_mut(field).and_then(Value::as_object_mut);
        for (name, value) in values.into_iter().flatten() {
            if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                secrets.remember(value);
                *value = REMOVED.into();
            }
        }
    }
}

fn template(template: &mut Value, secrets: &mut Secrets) {
    metadata(&mut template["metadata"], secrets);
    let pod = &mut template["spec"];
    for list in ["containers", "initContainers"] {
        let containers = pod.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            keep(container, &CONTAINER, secrets);
        }
    }
    let volumes = pod["volumes"].as_array();
    let kinds = volumes.map(|volumes| volumes.iter().map(kind_of_volume).collect());
    keep(pod, &POD, secrets);
    if let (Some(kinds), Some(pod)) = (kinds, pod.as_object_mut()) {
        pod.insert("volumes".to_owned(), Value::Array(kinds));
    }
}

/// The name of a volume and its kind.
fn kind_of_volume(volume: &Value) -> Value {
    let fields = volume.as_object().into_iter().flat_map(Map::keys);
    let kind = fields.into_iter().find(|name| *name != "name");
    json!({ "name": volume["name"], "kind": kind })
}

/// Keeps the named fields and remembers the values of the others.
fn keep(object: &mut Value, names: &[&str], secrets: &mut Secrets) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let all = std::mem::take(fields);
    for (name, value) in all {
        if names.contains(&name.as_str()) {
            fields.insert(name, value);
        } else {
            remember_free_text(&name, &value, secrets);
        }
    }
}

/// Remembers what a user wrote freely: values of variables, commands, arguments, headers. Names of fields, volumes and the
/// like occur everywhere and are no secrets.
fn remember_free_text(name: &str, value: &Value, secrets: &mut Secrets) {
    match (name, value) {
        ("value" | "command" | "args" | "path", _) => secrets.remember(value),
        (_, Value::Array(values)) => values
            .iter()
            .for_each(|value| remember_free_text("", value, secrets)),
        (_, Value::Object(fields)) => {
            let fields = fields.iter();
            fields.for_each(|(name, value)| remember_free_text(name, value, secrets));
        }
        _ => {}
    }
}

/// The ledger without checkpoints, which may be signed addresses. One that this version cannot read is left out.
fn without_checkpoints(ledger: &Value, secrets: &mut Secrets) -> Value {
    let unreadable = json!("not readable by this version of kubectl shed, and left out");
    let Ok(mut read) = serde_json::from_value::<Ledger>(ledger.clone()) else {
        return unreadable;
    };
    for task in read.tasks.values_mut() {
        task.unknown.clear();
        let mut points: Vec<_> = task.resume.iter_mut().collect();
        for attempt in &mut task.attempts {
            attempt.unknown.clear();
            points.extend(&mut attempt.resume);
        }
        for point in points {
            secrets.remember(&Value::from(&*point.checkpoint));
            point.checkpoint = REMOVED.into();
        }
    }
    serde_json::to_value(read).unwrap_or(unreadable)
}

/// Whether shed sent an event, or it is about one of shed's objects.
pub fn is_sheds_event(event: &Event) -> bool {
    let reporter = event.reporting_component.as_deref().unwrap_or_default();
    let object = &event.involved_object;
    let version = object.api_version.as_deref().unwrap_or_default();
    reporter.starts_with("shed") || version.starts_with(GROUP)
}

/// An event with the object that it is about.
pub fn event(event: Event) -> Value {
    let object = event.involved_object.clone();
    let mut shown = json!(EventView::from(event));
    shown["object"] =
        json!({"kind": object.kind, "namespace": object.namespace, "name": object.name});
    shown
}

/// Phase, conditions and restarts of an operator's pod.
pub fn pod_status(pod: &Pod) -> Value {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default().into_iter();
    let containers = containers.map(|container| {
        json!({
            "name": container.name, "ready": container.ready, "restarts": container.restart_count,
            "image": container.image, "imageID": container.image_id, "state": container.state,
            "lastState": container.last_state,
        })
    });
    json!({
        "phase": status.phase,
        "conditions": status.conditions,
        "containers": containers.collect::<Vec<_>>(),
        "node": pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
    })
}

/// The port on which an operator's pod serves its metrics.
pub fn metrics_port(pod: &Pod) -> Option<i32> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some("metrics"))?;
    Some(port.container_port)
}

#[cfg(test)]
mod tests;
