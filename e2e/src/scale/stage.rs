//! The common parts of scenarios: a control plane, namespaces, jobs, and measurements of the operator.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};

use super::Options;
use super::meter::{Fares, Meter};
use super::outcome::{Outcome, Phase};
use crate::bench;
use crate::bench::namespace::{AT_ONCE, Arrival, free_pods, make_namespace, submit, submit_all};
use crate::bench::operator;
use crate::campaign::tasks::Tasks;
use crate::host_operator::{HostOperator, kubeconfig_for};
use crate::jobs::{object_bytes, reason};
use crate::patches::merge;
use crate::wait;

/// How often the state of a large job is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Where a scenario takes place.
pub struct Stage<'o> {
    /// The user's settings.
    pub options: &'o Options,
    /// Past the meter.
    pub client: Client,
    /// Counts the operator's calls.
    pub meter: Meter,
    /// The reports of attempts.
    pub tasks: Arc<Tasks>,
    /// Where the log goes.
    pub folder: PathBuf,
    namespaces: Vec<String>,
}

impl<'o> Stage<'o> {
    /// Makes the namespaces of a scenario.
    pub async fn prepare(
        options: &'o Options,
        client: Client,
        name: &str,
        namespaces: &[&str],
        fares: Fares,
    ) -> Result<Self> {
        let tasks = Arc::new(Tasks::serve_padded(64).await?);
        let meter = Meter::serve(client.clone(), Arc::clone(&tasks), fares).await?;
        let folder = std::path::absolute(&options.folder)?.join(name);
        std::fs::create_dir_all(&folder)?;
        let mut stage = Self {
            options,
            client,
            meter,
            tasks,
            folder,
            namespaces: Vec::new(),
        };
        for namespace in namespaces {
            make_namespace(&stage.client, namespace).await?;
            stage.namespaces.push((*namespace).to_owned());
        }
        Ok(stage)
    }

    /// An operator, with its first lists in.
    pub async fn start(&self) -> Result<HostOperator> {
        let program = bench::program(self.options.operator.as_deref())?;
        let kubeconfig = self.folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_for(self.meter.address))?;
        operator::start(&program, &kubeconfig, &self.folder).await
    }

    /// The DeadlineJobs of a namespace.
    pub fn jobs(&self, namespace: &str) -> Api<DeadlineJob> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The objects of a kind in a namespace.
    pub fn all<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates an object.
    pub async fn create<K>(&self, namespace: &str, manifest: Value) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(manifest)?;
        submit(&self.all(namespace), &object).await
    }

    /// Creates a job.
    pub async fn submit(&self, namespace: &str, manifest: Value) -> Result<()> {
        self.create::<DeadlineJob>(namespace, manifest).await
    }

    /// Creates many jobs, each with its status if it has one.
    pub async fn submit_all(
        &self,
        namespace: &str,
        manifests: impl Iterator<Item = (Value, Option<Value>)>,
    ) -> Result<()> {
        let after = Duration::ZERO;
        let arrivals = manifests.map(|(job, status)| Arrival { after, job, status });
        submit_all(&self.jobs(namespace), arrivals, AT_ONCE).await
    }

    /// Merges into a job's specification.
    pub async fn edit(&self, namespace: &str, name: &str, spec: &Value) -> Result<()> {
        let change = json!({"spec": spec});
        Ok(merge(&self.jobs(namespace), name, &change)
            .await
            .map(drop)?)
    }

    /// How many pods a namespace has.
    pub async fn pods(&self, namespace: &str) -> Result<u64> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        // The apiserver counts what it does not list.
        let list = pods.list_metadata(&ListParams::default().limit(1)).await?;
        let more = list.metadata.remaining_item_count.unwrap_or(0);
        Ok(u64::try_from(more)? + list.items.len() as u64)
    }

    /// Whether a pod of the namespace does not run.
    pub async fn all_run(&self, namespace: &str) -> Result<bool> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let others = ListParams::default()
            .fields("status.phase!=Running")
            .limit(1);
        Ok(pods.list_metadata(&others).await?.items.is_empty())
    }

    /// Waits for `reached`, as long as one phase may take, and notes what that took.
    pub async fn phase(
        &self,
        outcome: &mut Outcome,
        subject: &HostOperator,
        name: &'static str,
        job: Option<(&str, &str)>,
        reached: impl AsyncFn() -> Result<bool>,
    ) -> Result<()> {
        let (began, before, taken) = (Instant::now(), self.meter.counts(), subject.taken()?);
        let most = Duration::from_secs(self.options.phase_seconds);
        while !reached().await? {
            // One that has ended by itself reaches nothing.
            subject.taken()?;
            if began.elapsed() > most {
                bail!("{name}: not within {most:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
        let mut now = subject.taken()?;
        now.cpu -= taken.cpu;
        let object = match job {
            Some((namespace, name)) => Some(object_bytes(&self.jobs(namespace).get(name).await?)),
            None => None,
        };
        let phase = Phase {
            name,
            took: began.elapsed(),
            counts: self.meter.counts().since(&before),
            taken: now,
            object,
        };
        eprintln!(
            "  {name}: {:.1} s, {:?}",
            phase.took.as_secs_f64(),
            phase.counts.calls
        );
        outcome.phases.push(phase);
        Ok(())
    }

    /// Takes away what the scenario made, also where it broke off and no operator runs.
    pub async fn remove(&self) -> Result<()> {
        let all: Api<Namespace> = Api::all(self.client.clone());
        for name in &self.namespaces {
            let (jobs, now) = (self.jobs(name), DeleteParams::background());
            drop(jobs.delete_collection(&now, &ListParams::default()).await?);
            free_pods(&self.client, name).await?;
            drop(all.delete(name, &now).await?);
        }
        for name in &self.namespaces {
            wait::for_absence(&all, name, Duration::from_secs(600)).await?;
        }
        Ok(())
    }
}

/// Why a job has failed, if it has.
pub async fn failed(jobs: &Api<DeadlineJob>, name: &str) -> Result<Option<String>> {
    let job = jobs
        .get(name)
        .await
        .with_context(|| format!("reading {name}"))?;
    Ok(reason(&job, api::FAILED).map(str::to_owned))
}
