//! Where a run takes place: its namespaces, nodes of its own if its fault is about nodes, and what
//! happens there that is not the proxy's doing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use shed::api::DeadlineJob;
use tokio::task::JoinSet;

use super::fault::{Fault, Point};
use super::foreign::{self, is_foreign};
use super::nodes::{self, Nodes};
use super::tasks::Tasks;
use super::workload::{FINISHED, Home, OLD, QUOTA, Workload, finished};
use crate::bench::namespace::{AT_ONCE, Arrival, make_namespace, submit_all};
use crate::jobs::shell_or_fake;
use crate::patches::merge;
use crate::wait;

const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often something is edited that no job depends on, so that the planner looks again.
const TICK: Duration = Duration::from_millis(500);

/// Where a run takes place.
pub struct Environment {
    client: Client,
    point: Option<Point>,
    /// The namespace of the workload.
    pub own: String,
    /// Another one that the operator sees, if the run needs it.
    pub other: Option<String>,
    /// The run's own nodes, if its fault is about nodes.
    pub nodes: Option<Nodes>,
    ticks: Mutex<JoinSet<()>>,
}

impl Environment {
    /// Makes what the run needs.
    pub async fn prepare(
        client: Client,
        workload: Workload,
        point: Option<Point>,
        tasks: &Arc<Tasks>,
        name: &str,
    ) -> Result<Self> {
        let own = format!("campaign-{name}");
        let fault = point.map(|point| point.fault);
        let needs_other = workload.has_other_namespace()
            || fault.is_some_and(|fault| fault == Fault::ForeignPods || fault.has_neighbor());
        let other = needs_other.then(|| format!("{own}-other"));
        for namespace in std::iter::once(&own).chain(&other) {
            make_namespace(&client, namespace).await?;
        }
        let nodes = match fault.is_some_and(Fault::needs_nodes) {
            true => {
                let tasks = Arc::clone(tasks);
                Some(Nodes::register(client.clone(), name, &own, tasks).await?)
            }
            false => None,
        };
        let ticks = match fault.is_none_or(Fault::spares_operator) {
            true => tick(client.clone(), &own).await?,
            false => JoinSet::new(),
        };
        if workload == Workload::ManyFinished {
            make_finished(&client, &own).await?;
        }
        // Last, so that nothing else is counted.
        if workload == Workload::Quota {
            make_quota(&client, &own).await?;
        }
        Ok(Self {
            client,
            point,
            own,
            other,
            nodes,
            ticks: Mutex::new(ticks),
        })
    }

    /// All namespaces of the run.
    pub fn namespaces(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.own).chain(&self.other)
    }

    /// The namespace of a job.
    pub fn home(&self, home: Home) -> &str {
        match (home, &self.other) {
            (Home::Other, Some(other)) => other,
            _ => &self.own,
        }
    }

    /// By which labels the nodes are found that the operator sees.
    pub fn node_selector(&self, run: &str) -> String {
        match self.nodes {
            Some(_) => format!("{}={run}", nodes::RUN),
            None => format!("!{}", nodes::RUN),
        }
    }

    /// The part of the fault that the proxy does not do.
    pub async fn strike(&self) -> Result<()> {
        match (
            self.point.map(|point| point.fault),
            &self.nodes,
            &self.other,
        ) {
            (Some(Fault::ForeignPods), _, Some(other)) => {
                foreign::plant(&self.client, &self.own, other).await
            }
            (Some(Fault::Cordon), Some(nodes), _) => nodes.cordon().await,
            (Some(Fault::NodeLost), Some(nodes), _) => nodes.lose().await,
            (Some(Fault::ClockSkew), Some(nodes), _) => {
                nodes.skew();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts right what has been wrong for long enough; `decided` says that the fate of every job is
    /// known.
    pub async fn tend(&self, decided: bool) -> Result<()> {
        let (Some(nodes), Some(point)) = (&self.nodes, self.point) else {
            return Ok(());
        };
        let Some(since) = nodes.harmed_since() else {
            return Ok(());
        };
        let is_enough = match point.fault {
            Fault::NodeLost if point.stays_lost() => decided,
            _ => decided || since.elapsed() >= point.lasts,
        };
        if is_enough {
            nodes.restore().await?;
        }
        Ok(())
    }

    /// Deletes pods that only look like attempts. Edits end with it.
    pub async fn weed(&self) -> Result<()> {
        self.ticks.lock().abort_all();
        for namespace in self.namespaces() {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            for pod in pods.list(&ListParams::default()).await? {
                if is_foreign(&pod) {
                    // It may be gone by now, with its job.
                    drop(pods.delete(&pod.name_any(), &DeleteParams::default()).await);
                }
            }
        }
        Ok(())
    }

    /// Takes away what the run made.
    pub async fn remove(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for name in self.namespaces() {
            drop(namespaces.delete(name, &DeleteParams::background()).await?);
        }
        match &self.nodes {
            Some(nodes) => nodes.remove().await,
            None => Ok(()),
        }
    }
}

/// Jobs that had finished before the operator started.
async fn make_finished(client: &Client, namespace: &str) -> Result<()> {
    let jobs: Api<DeadlineJob> = Api::namespaced(client.clone(), namespace);
    let template = shell_or_fake("exit 0", 1000, 0);
    let arrivals = (0..FINISHED).map(|index| {
        let (job, status) = finished(&template, &format!("{OLD}{index}"));
        let (after, status) = (Duration::ZERO, Some(status));
        Arrival { after, job, status }
    });
    submit_all(&jobs, arrivals, AT_ONCE).await
}

/// Waits until the quota is counted: before, the apiserver refuses every pod.
async fn make_quota(client: &Client, namespace: &str) -> Result<()> {
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), namespace);
    let quota: ResourceQuota = serde_json::from_value(json!({
        "metadata": {"name": "few"}, "spec": {"hard": {"pods": QUOTA.to_string()}}}))?;
    quotas.create(&PostParams::default(), &quota).await?;
    let what = "the quota to be counted";
    wait::for_object(&quotas, "few", what, READY_WITHIN, |quota| {
        let status = quota.status.as_ref();
        status.is_some_and(|status| status.used.is_some())
    })
    .await
    .map(drop)
}

/// Edits a pod without an owner, again and again: the planner looks again at every waiting task, as it
/// does in a busy cluster.
async fn tick(client: Client, namespace: &str) -> Result<JoinSet<()>> {
    foreign::make_ticker(&client, namespace).await?;
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    Ok(JoinSet::from_iter([async move {
        let mut ticks = tokio::time::interval(TICK);
        for count in 0_u64.. {
            ticks.tick().await;
            let edited =
                json!({"metadata": {"annotations": {"e2e.shed.dev/tick": count.to_string()}}});
            // One that does not come through is one less.
            drop(merge(&pods, foreign::TICKER, &edited).await);
        }
    }]))
}
