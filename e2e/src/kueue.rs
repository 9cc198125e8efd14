//! A stand-in for Kueue: it changes Jobs as Kueue's controller does. It has no quota, so that a test decides when a Job is
//! admitted and when it is preempted.

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use crate::jobs::SOON;
use crate::patches::{merge, merge_status};
use crate::scenario::World;
use crate::sightings::Sighting;
use crate::wait::{self, Seen};

/// The label of a Job in a queue.
pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";
/// The gate of pods that Kueue places by topology.
pub const TOPOLOGY_GATE: &str = "kueue.x-k8s.io/topology";
/// The label of a template that Kueue has admitted.
const POD_SET: &str = "kueue.x-k8s.io/podset";
/// The annotation of a Job that Kueue stops.
const STOPPING: &str = "kueue.x-k8s.io/stopping";
/// An object of Kueue's API group that Kueue does not have.
const STAND_IN: &str = "standins.kueue.x-k8s.io";

/// Has the cluster serve Kueue's API group, and waits until the operator has noticed. The group stays for the tests that
/// follow, whose operator knows it; `e2e/run.sh` removes it.
pub async fn serve_its_api(world: &World) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(world.cluster.client());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "metadata": {
            "name": STAND_IN,
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "kueue.x-k8s.io",
            "names": {"kind": "StandIn", "plural": "standins"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1beta2",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let notices = async || {
        let log = world.operator.log("the cluster has Kueue").await;
        log.matches("its quota orders the Jobs").count()
    };
    let before = notices().await;
    match crds
        .create(&PostParams::default(), &serde_json::from_value(crd)?)
        .await
    {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    wait::until("the operator to notice Kueue", SOON, || async {
        let now = notices().await;
        Ok(Seen::when(now > before, || format!("{now} lines")))
    })
    .await
}

/// What Kueue assigns to a Job when it admits it.
#[derive(Default)]
pub struct Admission<'a> {
    /// The node of its flavor.
    pub node: Option<&'a str>,
    /// Whether its pods are placed by topology.
    pub by_topology: bool,
    /// A lower parallelism.
    pub parallelism: Option<i32>,
}

/// A queue that a test drives.
pub struct Queue {
    jobs: Api<Job>,
    pods: Api<Pod>,
}

impl Queue {
    /// In the test's namespace.
    pub fn of(world: &World) -> Self {
        Self {
            jobs: world.api(),
            pods: world.api(),
        }
    }

    /// Admits a suspended Job in one write.
    pub async fn admit(&self, name: &str, admission: &Admission<'_>) -> Result<()> {
        let mut template = json!({"metadata": {"labels": {POD_SET: "main"}}, "spec": {}});
        if let Some(node) = admission.node {
            template["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        if admission.by_topology {
            template["spec"]["schedulingGates"] = json!([{"name": TOPOLOGY_GATE}]);
        }
        let mut change = json!({"spec": {"suspend": false, "template": template}});
        if let Some(parallelism) = admission.parallelism {
            change["spec"]["parallelism"] = json!(parallelism);
        }
        merge(&self.jobs, name, &change).await?;
        Ok(())
    }

    /// Preempts a Job in three writes. The apiserver accepts the last one once nothing of the Job is active.
    pub async fn preempt(&self, name: &str, parallelism: i32) -> Result<()> {
        let stop =
            json!({"metadata": {"annotations": {STOPPING: "true"}}, "spec": {"suspend": true}});
        merge(&self.jobs, name, &stop).await?;
        let reset = json!({"status": {"startTime": null}});
        merge_status(&self.jobs, name, &reset).await?;
        let template = json!({
            "metadata": {"labels": {POD_SET: null}},
            "spec": {"nodeSelector": null, "schedulingGates": null},
        });
        let restore = json!({
            "metadata": {"annotations": {STOPPING: null}},
            "spec": {"parallelism": parallelism, "template": template},
        });
        wait::until("the template to be restored", SOON, || async {
            Ok(Seen::Ready(
                merge(&self.jobs, name, &restore).await.map(drop)?,
            ))
        })
        .await?;
        // Kueue frees the quota then.
        wait::for_object(&self.jobs, name, "no active pod", SOON, |job| {
            let status = job.status.as_ref();
            status.is_some_and(|status| {
                status.active.unwrap_or(0) == 0 && status.start_time.is_none()
            })
        })
        .await?;
        Ok(())
    }

    /// Removes the gates of all pods.
    pub async fn open_gates(&self) -> Result<()> {
        let open = json!({"spec": {"schedulingGates": null}});
        for pod in self.pods.list(&ListParams::default()).await?.items {
            let gates = pod.spec.and_then(|spec| spec.scheduling_gates);
            let is_gated = gates.is_some_and(|gates| !gates.is_empty());
            if let Some(name) = pod.metadata.name.filter(|_| is_gated) {
                merge(&self.pods, &name, &open).await?;
            }
        }
        Ok(())
    }
}

/// The metadata of a Job in a queue.
pub fn queued(name: &str, annotations: &Value) -> Value {
    json!({"name": name, "labels": {QUEUE_NAME: "team"}, "annotations": annotations})
}

/// The most pods that were live at a time: created, neither deleted nor ended.
pub fn most_at_once(pods: &[Sighting]) -> usize {
    let lives_at = |pod: &Sighting, instant| {
        let end = pod.doomed.into_iter().chain(pod.over).min();
        pod.first <= instant && end.is_none_or(|end| end > instant)
    };
    let count = |at: &Sighting| pods.iter().filter(|pod| lives_at(pod, at.first)).count();
    pods.iter().map(count).max().unwrap_or(0)
}
