//! What an object needs so that shed runs it, and why it may not have it. Pure.

use serde_json::{Map, Value, json};
use shed::api::MANAGED_BY;

use crate::documents::{Document, text};
use crate::output;
use crate::verbs::check::judge::Judge;

/// What the user wants from shed.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Settings {
    /// Deadline of each Job: a time of day such as "06:00 Europe/Zurich", a duration from its creation such as 5h, a
    /// quantile of earlier runs such as "history(p95)*1.5", or an instant such as 2030-01-31T08:00:00Z. Absent: the
    /// one that the object has.
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// Whether two live copies of a task do harm: Safe and Fenced allow clones, None excludes them.
    #[arg(long, value_name = "WORD", value_parser = ["Safe", "Fenced", "None"])]
    pub idempotency: Option<String>,
    /// How tasks report progress, such as `file`.
    #[arg(long, value_name = "SOURCE")]
    pub progress: Option<String>,
    /// Action at the deadline.
    #[arg(long, value_name = "WORD", value_parser = ["Fail", "Continue"])]
    pub on_miss: Option<String>,
}

impl Settings {
    fn annotations(&self) -> Map<String, Value> {
        let all = [
            ("shed.dev/deadline", &self.deadline),
            ("shed.dev/idempotency", &self.idempotency),
            ("shed.dev/on-miss", &self.on_miss),
            ("shed.dev/progress", &self.progress),
        ];
        let set = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)));
        set.map(|(name, value)| (name.to_owned(), value.as_str().into()))
            .collect()
    }
}

/// An object with what it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Adoption {
    pub title: String,
    /// The fields to add.
    pub lines: Value,
    /// The object with them.
    pub manifest: Value,
    /// Why shed would refuse it, each with its field and the fix.
    pub refusals: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Adoption {
    /// The lines, or the manifest in this format.
    pub fn text(&self, output: Option<&str>) -> anyhow::Result<String> {
        Ok(match output {
            Some("json") => serde_json::to_string_pretty(&self.manifest)? + "\n",
            Some(_) => output::yaml(&self.manifest)?,
            None if self.lines == json!({}) => format!("# {} has all it needs\n", self.title),
            None => format!("# add to {}\n{}", self.title, output::yaml(&self.lines)?),
        })
    }
}

/// The adoption of a Job or a CronJob. Absent for other kinds.
pub fn adopt(document: &Document, settings: &Settings, now: jiff::Timestamp) -> Option<Adoption> {
    let is_cron = match document.kind() {
        ("batch/v1", "Job") => false,
        ("batch/v1", "CronJob") => true,
        _ => return None,
    };
    let object = &document.object;
    let job = if is_cron {
        &object["spec"]["jobTemplate"]
    } else {
        object
    };
    let mut refusals = Vec::new();
    if let Some(manager) = text(job, "/spec/managedBy").filter(|manager| *manager != MANAGED_BY) {
        refusals.push(format!(
            "spec.managedBy: `{manager}` runs it: remove the field to hand it to shed"
        ));
    }
    if settings.deadline.is_none() && job["metadata"]["annotations"]["shed.dev/deadline"].is_null()
    {
        refusals.push("it has no deadline: add --deadline, e.g. --deadline 1h".to_owned());
    }
    let lines = wrap(missing(job, settings), is_cron);
    let mut manifest = object.clone();
    merge(&mut manifest, &lines);
    if refusals.is_empty() {
        let adopted = Document {
            number: document.number,
            object: manifest.clone(),
        };
        let verdicts = Judge::new(now).judge(&[adopted]);
        refusals.extend(verdicts.into_iter().flat_map(|verdict| verdict.errors));
    }
    let exists = !object["metadata"]["uid"].is_null();
    Some(Adoption {
        title: document.title(),
        notes: notes(is_cron, exists, settings, job),
        lines,
        manifest: as_manifest(manifest),
        refusals,
    })
}

/// The fields that a Job lacks.
fn missing(job: &Value, settings: &Settings) -> Value {
    let mut lines = json!({});
    let annotations = settings.annotations().into_iter();
    let annotations =
        annotations.filter(|(name, value)| job["metadata"]["annotations"][name] != *value);
    let annotations: Map<String, Value> = annotations.collect();
    if !annotations.is_empty() {
        lines["metadata"] = json!({ "annotations": annotations });
    }
    if text(job, "/spec/managedBy").is_none() {
        lines["spec"] = json!({ "managedBy": MANAGED_BY });
    }
    lines
}

fn wrap(lines: Value, is_cron: bool) -> Value {
    match is_cron && lines != json!({}) {
        true => json!({ "spec": { "jobTemplate": lines } }),
        false => lines,
    }
}

fn merge(object: &mut Value, lines: &Value) {
    let Value::Object(lines) = lines else {
        object.clone_from(lines);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in lines {
        merge(&mut object[name.as_str()], value);
    }
}

fn notes(is_cron: bool, exists: bool, settings: &Settings, job: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    if exists && is_cron {
        notes.push("the lines take effect with its next Job".to_owned());
    } else if exists {
        let note = "managedBy of an existing Job cannot be changed: delete the Job and create the printed one. \
                    Its pods stop, and its tasks start from zero";
        notes.push(note.to_owned());
    }
    let annotated = &job["metadata"]["annotations"]["shed.dev/idempotency"];
    if settings.idempotency.is_none() && annotated.is_null() {
        let note =
            "it gets no clones: add --idempotency Safe if two live copies of a task do no harm";
        notes.push(note.to_owned());
    }
    notes
}

/// Labels that the Job controller sets on a Job and its template.
const CONTROLLERS_LABELS: [&str; 4] = [
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
];

/// An object without what the apiserver and controllers have set.
pub fn as_manifest(mut object: Value) -> Value {
    let fields = object.as_object_mut();
    fields.map(|fields| fields.remove("status"));
    let set = [
        "creationTimestamp",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, _| !set.contains(&name.as_str()));
        let annotations = metadata.get_mut("annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let is_manual = object["spec"]["manualSelector"] == Value::Bool(true);
    if object["kind"] == "Job" && !is_manual {
        let spec = object["spec"].as_object_mut();
        spec.map(|spec| spec.remove("selector"));
        for place in ["/metadata/labels", "/spec/template/metadata/labels"] {
            let labels = object.pointer_mut(place).and_then(Value::as_object_mut);
            if let Some(labels) = labels {
                labels.retain(|name, _| !CONTROLLERS_LABELS.contains(&name.as_str()));
            }
        }
    }
    object
}

#[cfg(test)]
mod tests;
