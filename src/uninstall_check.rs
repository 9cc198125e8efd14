//! The check before shed is uninstalled: what still needs its operator. Without the operator no controller
//! runs an unfinished job, and nothing removes shed's finalizer from pods, so their namespaces cannot be deleted.
//! The chart runs this as a hook.

use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, ListParams};
use kube::core::{ObjectList, ObjectMeta};
use kube::{Api, Client};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::{Instant, sleep};

use crate::api::DeadlineJob;
use crate::cluster::PAGE;
use crate::cluster::identity::{Identity, Owner, OwnerKind};
use crate::operator::infer_cluster;

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Time that an answer of the apiserver may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Objects of a kind that a refusal names.
const NAMED: usize = 10;

/// Arguments of `shed uninstall-check`.
#[derive(Debug, clap::Args)]
pub struct UninstallCheckArgs {
    /// Time that deleted jobs and their pods, and pods of finished jobs, may take to go.
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = crate::lease::args::duration)]
    timeout: Duration,
}

/// A job as the check reads it, which also decodes a job that this version cannot run.
type SeenJob = kube::core::Object<IgnoredAny, SeenStatus>;

#[derive(Debug, Clone, Default, Deserialize)]
struct SeenStatus {
    phase: Option<String>,
}

/// Connects to the cluster and checks it.
pub async fn run(args: UninstallCheckArgs) -> anyhow::Result<()> {
    let mut config = infer_cluster().await?;
    config.read_timeout = Some(CALL_TIMEOUT);
    check(&Client::try_from(config)?, args.timeout).await
}

/// Returns once nothing needs the operator. Unfinished jobs are refused at once, because they may run for hours. What
/// goes by itself may take as long as `patience`.
///
/// # Errors
/// A refusal that names what needs the operator and the ways out, or a list that fails until the end.
async fn check(client: &Client, patience: Duration) -> anyhow::Result<()> {
    let end = Instant::now() + patience;
    loop {
        let found = find(client).await;
        let is_over = Instant::now() >= end;
        match found {
            Ok(found) if found.is_empty() => return Ok(()),
            Ok(found) if is_over || !found.unfinished.is_empty() => bail!(found.refusal()),
            // The hook's role may be younger than the authorizer's view of it.
            Err(error) if is_over => {
                return Err(error).context(
                    "shed is not uninstalled, because its jobs and pods could not be listed; to skip this check, \
                     use `helm uninstall --no-hooks`",
                );
            }
            Ok(_) | Err(_) => sleep(PERIOD).await,
        }
    }
}

/// What needs the operator, by name.
#[derive(Debug, Default)]
struct Remains {
    /// Jobs that have not ended.
    unfinished: Vec<String>,
    /// Jobs that are being deleted.
    deleted: Vec<String>,
    /// Pods that a finalizer of shed holds.
    pods: Vec<String>,
}

async fn find(client: &Client) -> Result<Remains, kube::Error> {
    let mut remains = Remains::default();
    let resource = ApiResource::erase::<DeadlineJob>(&());
    let jobs: Api<SeenJob> = Api::all_with(client.clone(), &resource);
    let listed = each(
        async |parameters| jobs.list(parameters).await,
        |job| remains.add_job(job),
    );
    match listed.await {
        // The CRD is gone, and all jobs with it.
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        listed => listed?,
    }
    let pods: Api<Pod> = Api::all(client.clone());
    let listed = each(
        async |parameters| pods.list_metadata(parameters).await,
        |pod| remains.add_pod(&pod.metadata),
    );
    listed.await?;
    Ok(remains)
}

/// Shows each object of a list that is read page by page.
async fn each<K: Clone>(
    list: impl AsyncFn(&ListParams) -> Result<ObjectList<K>, kube::Error>,
    mut see: impl FnMut(&K),
) -> Result<(), kube::Error> {
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = list(&parameters).await?;
        page.items.iter().for_each(&mut see);
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => return Ok(()),
        }
    }
}

impl Remains {
    fn is_empty(&self) -> bool {
        self.unfinished.is_empty() && self.deleted.is_empty() && self.pods.is_empty()
    }

    /// A job that has ended and stays needs no operator.
    fn add_job(&mut self, job: &SeenJob) {
        let owner = Owner::of(&job.metadata);
        let kind = match owner.kind {
            OwnerKind::DeadlineJob => "DeadlineJob",
            // The companion of a Job that shed runs: the user knows the Job.
            OwnerKind::Job => "Job",
        };
        let name = format!("{kind} {}/{}", owner.namespace, owner.name);
        let phase = job
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if job.metadata.deletion_timestamp.is_some() {
            self.deleted.push(name);
        } else if !matches!(phase, Some("Complete" | "Failed")) {
            self.unfinished.push(name);
        }
    }

    /// Labels are of no interest, because a client may have removed them. Only of pods with batch/v1's finalizer,
    /// which the built-in controller uses too, they tell whose it is.
    fn add_pod(&mut self, metadata: &ObjectMeta) {
        let identity = Identity::of(metadata);
        if identity.tracked || (identity.tracked_for_batch && identity.labelled.is_some()) {
            let [namespace, name] =
                [&metadata.namespace, &metadata.name].map(|part| part.as_deref().unwrap_or("?"));
            self.pods.push(format!("{namespace}/{name}"));
        }
    }

    fn refusal(&self) -> String {
        let groups = [
            (&self.unfinished, "unfinished jobs"),
            (&self.deleted, "jobs that are being deleted"),
            (&self.pods, "pods with a finalizer of shed"),
        ];
        let groups = groups.into_iter().filter(|(names, _)| !names.is_empty());
        let groups: Vec<String> = groups
            .map(|(names, kind)| format!("{kind} ({})", some(names)))
            .collect();
        format!(
            "shed is not uninstalled, because the cluster still has {}. Wait until these jobs have ended, or delete \
             them, and repeat `helm uninstall`. To skip this check, use `helm uninstall --no-hooks`: then these jobs \
             start no more pods, and the namespaces of their pods cannot be deleted until shed is installed again or \
             `kubectl shed release --all` has removed the finalizers.",
            groups.join(" and ")
        )
    }
}

/// The first names, and the number of the others.
fn some(names: &[String]) -> String {
    let named = names
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        others => format!("{named} and {others} more"),
    }
}

#[cfg(test)]
mod tests;
