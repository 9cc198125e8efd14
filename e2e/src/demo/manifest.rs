//! The demo's manifests: one pod template, as a batch/v1 Job and as a DeadlineJob.

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, PodTemplateSpec};
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};

use super::NAMESPACE;

/// The claim that all pods share, and the volume behind it in the local cluster.
pub const CLAIM: &str = "wordcount";
/// Where pods see the shared volume.
const DATA: &str = "/data";

/// Holds a simulated pod back until its duration is drawn; see [`super::kwok`].
pub const GATE: &str = "shed.dev/demo-draw";

/// The parameters of one run; the same for all three.
pub struct Work {
    pub image: String,
    /// The text's file name; none if the pods are simulated.
    pub input: Option<String>,
    pub tasks: i32,
    /// CPU that an attempt may use, in thousandths.
    pub cpu_limit: u32,
}

/// How shed is asked to treat a DeadlineJob.
pub struct Wish<'a> {
    pub mode: &'a str,
    pub on_miss: &'a str,
    pub within_seconds: i64,
}

/// When the Jobs of a CronJob start, and when they must be done.
pub struct Times {
    pub schedule: String,
    /// Time of day, such as 06:00.
    pub due: String,
    /// For both, such as Europe/Zurich.
    pub zone: &'static str,
}

impl Work {
    /// One container that counts a part of the text. The job's name comes from a label that both
    /// controllers set, so that the very same template serves all three runs.
    fn template(&self) -> Value {
        let Some(input) = &self.input else {
            return self.simulated();
        };
        let arguments = [
            "task".to_owned(),
            // shed says so itself, in SHED_COMPLETIONS; a batch/v1 Job doesn't.
            format!("-tasks={}", self.tasks),
            format!("-input={DATA}/input/{input}"),
            format!("-state={DATA}/state/$(JOB_NAME)"),
            format!("-out={DATA}/out/$(JOB_NAME)"),
        ];
        let label = format!("metadata.labels['{}']", api::LABEL_BATCH_JOB_NAME);
        let env = json!([{"name": "JOB_NAME", "valueFrom": {"fieldRef": {"fieldPath": label}}}]);
        json!({"spec": self.pod_spec(&arguments, &env)})
    }

    /// A pod with a simulated life.
    fn simulated(&self) -> Value {
        let resources = json!({"requests": self.requests()});
        json!({"spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "schedulingGates": [{"name": GATE}],
            "containers": [{"name": "wordcount", "image": self.image, "resources": resources}],
        }})
    }

    /// A machine with two CPUs then fits twelve tasks and six clones.
    fn requests(&self) -> Value {
        json!({"cpu": format!("{}m", self.cpu_limit.min(100)), "memory": "64Mi"})
    }

    /// So little CPU that the tasks and the clones of the slow ones run side by side on two CPUs: a clone
    /// then takes nothing from the healthy tasks.
    fn limits(&self) -> Value {
        json!({"cpu": format!("{}m", self.cpu_limit), "memory": "256Mi"})
    }

    fn pod_spec(&self, arguments: &[String], env: &Value) -> Value {
        json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "wordcount",
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "args": arguments,
                "env": env,
                "resources": {"requests": self.requests(), "limits": self.limits()},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "data", "mountPath": DATA}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}],
        })
    }

    /// The plain Job.
    pub fn job(&self, name: &str) -> Result<Job> {
        typed(json!({
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "completionMode": "Indexed", "completions": self.tasks, "parallelism": self.tasks,
                "backoffLimit": 3, "template": self.template(),
            },
        }))
    }

    /// A CronJob of such Jobs, adopted by shed, each due at a time of day.
    pub fn cron_job(&self, name: &str, times: &Times) -> Result<CronJob> {
        let mut template = self.job(name)?;
        template.metadata = ObjectMeta::default();
        let spec = template.spec.get_or_insert_default();
        spec.managed_by = Some(api::MANAGED_BY.to_owned());
        typed(json!({
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "schedule": times.schedule, "timeZone": times.zone, "concurrencyPolicy": "Forbid",
                "jobTemplate": {
                    "metadata": {"annotations": {
                        "shed.dev/deadline": format!("{} {}", times.due, times.zone),
                        "shed.dev/idempotency": "Safe",
                        "shed.dev/progress": "{file: {}, periodSeconds: 1}",
                        "shed.dev/resume": "Checkpoint",
                    }},
                    "spec": template.spec,
                },
            },
        }))
    }

    /// The DeadlineJob.
    pub fn deadline_job(&self, name: &str, wish: &Wish<'_>) -> Result<DeadlineJob> {
        let template: PodTemplateSpec = typed(self.template())?;
        let mut job = json!({
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "completions": self.tasks,
                "deadline": {"within": format!("{}s", wish.within_seconds)},
                "idempotency": "Safe",
                "onMiss": wish.on_miss,
                "speculation": {"mode": wish.mode},
                "template": template,
            },
        });
        if self.input.is_some() {
            job["spec"]["progress"] = json!({"file": {}, "periodSeconds": 1});
            job["spec"]["resume"] = json!("Checkpoint");
        }
        typed(job)
    }

    /// A pod that runs one command of the word count next to the volume, for clusters whose volumes
    /// can't be reached from here.
    pub fn helper(&self, name: &str, arguments: &[String]) -> Result<Pod> {
        typed(json!({
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": self.pod_spec(arguments, &json!([])),
        }))
    }
}

/// A claim of many writers. With a class, the cluster makes the volume; without, it binds to [`volume`].
pub fn claim(storage_class: Option<&str>) -> Result<PersistentVolumeClaim> {
    let bound_to = if storage_class.is_none() {
        json!(NAMESPACE)
    } else {
        Value::Null
    };
    typed(json!({
        "metadata": {"name": CLAIM, "namespace": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": storage_class.unwrap_or_default(),
            "volumeName": bound_to,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }))
}

/// The local cluster's volume: a folder of this machine, which is all its nodes.
pub fn volume(folder: &std::path::Path) -> Result<PersistentVolume> {
    typed(json!({
        "metadata": {"name": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": NAMESPACE, "name": CLAIM},
            "hostPath": {"path": folder, "type": "Directory"},
        },
    }))
}

fn typed<T: serde::de::DeserializeOwned>(manifest: Value) -> Result<T> {
    serde_json::from_value(manifest).context("a manifest of the demo is malformed")
}
