//! The verdict on each object of a manifest. Pure.

use std::sync::LazyLock;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use shed::adopt::annotation_names::by_annotations;
use shed::adopt::{annotations, translate};
use shed::api::{self, DeadlineJob, decoding, unknown_fields};
use shed::validate::{ValidatedJob, validate};

use super::forecast::{self, forecast};
use super::rules::{self, Rules};
use super::schema;
use crate::documents::{Document, text};
use crate::{jobs, words};

/// What was found about one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Its kind and name.
    pub title: String,
    /// Faults, each with its field and the fix.
    pub errors: Vec<String>,
    /// What shed accepts, and the user may not intend.
    pub warnings: Vec<String>,
    /// Deadline, tasks and forecast.
    pub notes: Vec<String>,
    /// Whether it is of a kind that shed does not run.
    pub is_foreign: bool,
}

impl Verdict {
    fn fault(&mut self, words: impl Into<String>) {
        self.errors.push(words.into());
    }

    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub fn text(&self, file: &str) -> String {
        let head = match (self.is_foreign, self.is_valid()) {
            (true, _) => "not checked, because shed does not run this kind",
            (false, true) => "valid",
            (false, false) => "invalid",
        };
        let mut text = format!("{file}: {}: {head}\n", self.title);
        let lines = [
            ("error: ", &self.errors),
            ("warning: ", &self.warnings),
            ("", &self.notes),
        ];
        for (prefix, lines) in lines {
            for line in lines {
                text.push_str(&format!("  {prefix}{line}\n"));
            }
        }
        text
    }
}

/// A Job whose pods must start together.
const GANG: &str = "spec.scheduling.schedulingPolicy.gang: shed starts each pod by itself and cannot start a gang: use the \
                    policy `basic`, or remove spec.managedBy";

/// How objects are judged.
pub struct Judge {
    /// Slots of the forecast. Absent: the job's parallelism.
    pub slots: Option<u32>,
    /// Whether a PoCD below the target is an error.
    pub requires_feasible: bool,
    /// The time of creation that is assumed.
    pub now: jiff::Timestamp,
}

/// The rules of the CRD's served version.
static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new(crd_schema()));

/// The schema of the CRD's served version, as `shed crds` prints it.
pub fn crd_schema() -> Value {
    let crd = serde_json::to_value(DeadlineJob::crd()).unwrap_or_default();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

impl Judge {
    pub fn new(now: jiff::Timestamp) -> Self {
        Self {
            slots: None,
            requires_feasible: false,
            now,
        }
    }

    pub fn judge(&self, documents: &[Document]) -> Vec<Verdict> {
        let verdicts = documents.iter().map(|document| self.verdict(document));
        verdicts.collect()
    }

    fn verdict(&self, document: &Document) -> Verdict {
        let object = &document.object;
        let mut verdict = Verdict {
            title: document.title(),
            ..Verdict::default()
        };
        match document.kind() {
            ("shed.dev/v1alpha1", "DeadlineJob") => self.deadline_job(object, &mut verdict),
            ("batch/v1", "Job") => self.job(object, "", &mut verdict),
            ("batch/v1", "CronJob") => self.cron_job(object, &mut verdict),
            ("", _) => verdict.fault("apiVersion: Required value: add it"),
            (_, "") => verdict.fault("kind: Required value: add it"),
            (version, kind @ ("DeadlineJob" | "Job" | "CronJob"))
                if version.starts_with("shed.dev/") || version.starts_with("batch/") =>
            {
                let is_own = kind == "DeadlineJob";
                let served = if is_own {
                    "shed.dev/v1alpha1"
                } else {
                    "batch/v1"
                };
                verdict.fault(format!(
                    "apiVersion: `{version}` has no {kind}: use {served}"
                ));
            }
            _ => verdict.is_foreign = true,
        }
        verdict
    }

    fn deadline_job(&self, object: &Value, verdict: &mut Verdict) {
        let object = &rules::without_nulls(object);
        if object["spec"].is_null() {
            return verdict.fault("spec: Required value: add it");
        }
        let defaulted = RULES.defaulted(object);
        let mut found = names(object);
        found.extend(schema::violations(RULES.spec(), &defaulted["spec"], "spec"));
        found.extend(RULES.violations(object, found.is_empty()));
        verdict.errors.append(&mut found);
        if !verdict.is_valid() {
            return;
        }
        match decoding::read(self.metadata(object), &defaulted["spec"], &Value::Null) {
            Err(problem) => verdict.fault(problem),
            Ok(read) => {
                if !read.job.spec.is_ours() {
                    let manager = read.job.spec.managed_by.unwrap_or_default();
                    let note = format!(
                        "spec.managedBy: shed ignores this job, because `{manager}` runs it"
                    );
                    return verdict.warnings.push(note);
                }
                self.validated(
                    validate(&read.job).map_err(|fault| fault.to_string()),
                    verdict,
                );
            }
        }
    }

    /// A Job, or the template of a CronJob's Jobs at `place`.
    fn job(&self, object: &Value, place: &str, verdict: &mut Verdict) {
        let prefix = |problem: String| format!("{place}{problem}");
        if place.is_empty() {
            verdict.errors.append(&mut names(object));
        }
        let words = misplaced(
            &object["spec"]["template"],
            "has no effect on a pod template: move it to the metadata of the Job",
        );
        let of_pods = words.map(|problem| prefix(format!("spec.template.{problem}")));
        verdict.errors.extend(of_pods);
        let gang = "/spec/scheduling/schedulingPolicy/gang";
        if object.pointer(gang).is_some() {
            verdict.fault(prefix(GANG.to_owned()));
        }
        let fields = json!({ "metadata": object["metadata"], "spec": object["spec"] });
        match unknown_fields::read::<Job>(&fields) {
            Err(problem) => verdict.fault(prefix(problem.trim_start_matches('.').to_owned())),
            Ok((_, unknown)) => {
                let unknown = unknown.into_iter();
                // shed hands fields of a newer Kubernetes on to pods.
                let words = unknown.map(|field| {
                    prefix(format!(
                        "{field}: not checked, because Kubernetes 1.33 has no such field"
                    ))
                });
                verdict.warnings.extend(words);
            }
        }
        if !verdict.is_valid() {
            return;
        }
        let mut job: Job = match serde_json::from_value(fields) {
            Ok(job) => job,
            Err(error) => return verdict.fault(prefix(error.to_string())),
        };
        job.metadata = self.metadata(object);
        job.metadata.annotations =
            serde_json::from_value(object["metadata"]["annotations"].clone()).ok();
        let companion =
            translate::companion(&job).map_err(|fault| prefix(format!("metadata: {fault}")));
        let validated = companion.and_then(|mut companion| {
            companion.metadata.uid.clone_from(&job.metadata.uid);
            let validated = translate::validated(&companion, &job);
            validated.map_err(|fault| prefix(by_annotations(&fault.to_string()).into_owned()))
        });
        let words = manager_words(jobs::manager(&job), place, wishes_something(&job));
        verdict.warnings.extend(words);
        verdict.warnings.extend(index_words(&job).map(prefix));
        let mut found = Verdict::default();
        self.validated(validated, &mut found);
        let named = |text: String| by_annotations(&text).into_owned();
        verdict.errors.extend(found.errors.into_iter().map(named));
        let warnings = found.warnings.into_iter();
        verdict.warnings.extend(warnings.map(named));
        verdict.notes.extend(found.notes.into_iter().map(named));
    }

    fn cron_job(&self, object: &Value, verdict: &mut Verdict) {
        verdict.errors.append(&mut names(object));
        let words = misplaced(
            object,
            "has no effect on a CronJob: move it to spec.jobTemplate.metadata.annotations",
        );
        verdict.errors.extend(words);
        let template = &object["spec"]["jobTemplate"];
        if !template.is_object() {
            return verdict.fault("spec.jobTemplate: Required value: add the template of the Jobs");
        }
        let mut template = template.clone();
        if !template["metadata"].is_object() {
            template["metadata"] = json!({});
        }
        template["metadata"]["name"] = text(object, "/metadata/name").unwrap_or("cron").into();
        template["metadata"]["namespace"] = object["metadata"]["namespace"].clone();
        template["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "CronJob", "controller": true,
            "name": template["metadata"]["name"], "uid": "",
        }]);
        self.job(&template, "spec.jobTemplate.", verdict);
    }

    /// The metadata that the apiserver would set.
    fn metadata(&self, object: &Value) -> ObjectMeta {
        let field = |place| text(object, place).map(str::to_owned);
        let labels = object["metadata"]["labels"].clone();
        let owners = object["metadata"]["ownerReferences"].clone();
        let generated = || field("/metadata/generateName").map(|prefix| format!("{prefix}0"));
        ObjectMeta {
            name: field("/metadata/name").or_else(generated),
            namespace: field("/metadata/namespace").or_else(|| Some("default".to_owned())),
            labels: serde_json::from_value(labels).ok(),
            owner_references: serde_json::from_value(owners).ok(),
            uid: Some("00000000-0000-0000-0000-000000000000".to_owned()),
            generation: Some(1),
            creation_timestamp: Some(Time(self.now)),
            ..ObjectMeta::default()
        }
    }

    /// What follows from a job that shed accepts.
    fn validated(&self, job: Result<ValidatedJob, String>, verdict: &mut Verdict) {
        let job = match job {
            Ok(job) => job,
            Err(fault) => return verdict.fault(fault),
        };
        let tasks = job.rules.completions;
        let parallelism = job.rules.parallelism.min(tasks);
        let counted = words::count(tasks as usize, "task", "tasks");
        let deadline = forecast::deadline_words(&job);
        verdict
            .notes
            .push(format!("{counted}, {parallelism} at a time; {deadline}"));
        verdict.warnings.extend(forecast::time_limit_words(&job));
        let Some(forecast) = forecast(&job, self.slots.unwrap_or(parallelism)) else {
            return;
        };
        match forecast.is_feasible() {
            Some(false) if self.requires_feasible => {
                let words = forecast.words();
                verdict.fault(format!(
                    "spec.deadline: {words}: choose a later deadline or more slots"
                ));
            }
            Some(false) => verdict.warnings.push(format!(
                "spec.deadline is not feasible: {}",
                forecast.words()
            )),
            None if self.requires_feasible => verdict.fault(forecast.words()),
            _ => verdict.notes.push(forecast.words()),
        }
    }
}

/// The object's annotations of shed, which `why` says are in the wrong place.
fn misplaced(object: &Value, why: &str) -> impl Iterator<Item = String> {
    let own = object["metadata"]["annotations"].as_object();
    let names = own.into_iter().flat_map(|own| own.keys());
    let names = names.filter(|name| name.starts_with("shed.dev/"));
    names.map(move |name| format!("metadata.annotations: {name} {why}"))
}

/// Faults of the metadata that the apiserver finds in any object.
fn names(object: &Value) -> Vec<String> {
    let metadata = &object["metadata"];
    let mut found = Vec::new();
    if !metadata["name"].is_string() && !metadata["generateName"].is_string() {
        found.push("metadata.name: Required value: add it".to_owned());
    }
    for field in ["labels", "annotations"] {
        let values = metadata[field].as_object().into_iter().flatten();
        let wrong = values.filter(|(_, value)| !value.is_string());
        let words = wrong.map(|(name, value)| {
            format!("metadata.{field}.{name}: `{value}` is not a string: put it in quotes")
        });
        found.extend(words);
    }
    found
}

fn wishes_something(job: &Job) -> bool {
    let annotations = job.metadata.annotations.iter().flatten();
    let mut names = annotations.map(|(name, _)| name);
    names.any(|name| name.starts_with("shed.dev/"))
}

/// A warning if a task would get checkpoints without knowing whose they are.
fn index_words(job: &Job) -> Option<String> {
    let spec = job.spec.as_ref()?;
    let wishes = annotations::read(job.metadata.annotations.as_ref()).ok()?;
    let tasks = spec.completions.or(spec.parallelism).unwrap_or(1);
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    (wishes.resume != api::Resume::None && tasks > 1 && !is_indexed).then(|| {
        "spec.completionMode: a task cannot see which of the tasks it resumes: use Indexed, which sets \
         JOB_COMPLETION_INDEX"
            .to_owned()
    })
}

/// A warning if shed would not run the Job, or would run it without a deadline.
fn manager_words(manager: Option<&str>, place: &str, has_wishes: bool) -> Option<String> {
    let field = format!("{place}spec.managedBy");
    match (manager, has_wishes) {
        (Some(api::MANAGED_BY), true) | (None, false) => None,
        (Some(api::MANAGED_BY), false) => Some(format!(
            "{place}metadata.annotations: shed runs this Job without a deadline: add shed.dev/deadline, e.g. 1h"
        )),
        (None, true) => Some(format!(
            "{field} is absent: shed runs this Job only in a namespace with the label {}: {}, or with --adopt-jobs=all: \
             add `managedBy: {}`",
            api::LABEL_JOBS,
            api::JOBS_RUN,
            api::MANAGED_BY
        )),
        (Some(other), _) => Some(format!(
            "{field}: shed ignores this Job, because `{other}` runs it"
        )),
    }
}

#[cfg(test)]
mod tests;
