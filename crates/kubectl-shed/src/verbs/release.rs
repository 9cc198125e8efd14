//! `kubectl shed release`: takes shed's finalizers off pods and DeadlineJobs when no operator runs.

pub mod held;

use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::access::{self, Access};
use crate::connection::{Connection, Session};
use crate::jobs;
use crate::lease::{self, Leadership};
use crate::terminal::{self, Terminal};
use held::{Facts, Held, Kind};

const EXAMPLES: &str = "\
Examples:
  # What would be released if shed is gone for good
  kubectl shed release --all --dry-run

  # Release the pods of one job without a question
  kubectl shed release nightly -n team --yes

It deletes nothing. It refuses while an operator holds the Lease, because a running operator releases pods itself.";

/// Objects of one page of a list.
const PAGE: u32 = 500;
/// Patches under way at once.
const WRITES_AT_ONCE: usize = 8;

/// Take shed's finalizers off pods and DeadlineJobs when the operator is gone (writes)
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReleaseArgs {
    /// Name of a DeadlineJob or of a batch/v1 Job that shed ran. It may be deleted already.
    #[arg(
        value_name = "JOB",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    job: Option<String>,
    /// The pods of all jobs: of one namespace with -n, otherwise of the cluster.
    #[arg(long)]
    all: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    /// Print what would be released, and release nothing.
    #[arg(long)]
    dry_run: bool,
    /// Release even if an operator runs, or if that is unknown. It then cannot count the ends of these pods.
    #[arg(long)]
    force: bool,
}

/// Finds, shows, asks, releases.
pub async fn run(
    args: ReleaseArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let found = find(&args, connection, &session).await?;
    if found.is_empty() {
        terminal.print("nothing to release: no object has a finalizer of shed\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal.print(&held::listing(&found))?;
    let releasable: Vec<Held> = found.into_iter().filter(Held::is_releasable).collect();
    if args.dry_run || releasable.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.force {
        refuse_while_led(&session.client, connection).await?;
    }
    if !args.yes && !is_confirmed(releasable.len(), terminal)? {
        terminal.print("nothing was released\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let count = releasable.len();
    let releases = futures::stream::iter(releasable);
    let failures: Vec<String> = releases
        .map(|held| release(&session.client, held))
        .buffer_unordered(WRITES_AT_ONCE)
        .filter_map(|done| async { done.err() })
        .collect()
        .await;
    for failure in &failures {
        terminal::warn(&format!("error: {failure}"));
    }
    terminal.print(&format!("released {} of {count}\n", count - failures.len()))?;
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn refuse_while_led(client: &Client, connection: &Connection) -> anyhow::Result<()> {
    terminal::warn("watching the Lease for its duration, to see whether an operator runs");
    match lease::watch(client, connection).await {
        Ok(Leadership::Free) => Ok(()),
        Ok(Leadership::Held { namespace, holder }) => bail!(
            "{holder} leads in namespace {namespace} and releases pods itself: wait for it, or stop it first with \
             `kubectl -n {namespace} scale deployment --all --replicas 0`; --force releases all the same"
        ),
        Err(error) => {
            Err(error.context("nothing was released; --force releases without this check"))
        }
    }
}

/// Asks on the terminal. Without one the answer is no.
fn is_confirmed(count: usize, terminal: &Terminal) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    ensure!(
        input.is_terminal(),
        "no terminal to ask on: add --yes to release, or --dry-run to look"
    );
    terminal.print(&format!("Release {count}? Type yes: "))?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// Objects that a finalizer of shed holds.
async fn find(
    args: &ReleaseArgs,
    connection: &Connection,
    session: &Session,
) -> anyhow::Result<Vec<Held>> {
    let namespace = match (&args.job, &connection.namespace) {
        (None, None) => None,
        _ => Some(session.namespace.as_str()),
    };
    let client = &session.client;
    let jobs: Vec<Job> = list(client, "jobs.batch", namespace).await?;
    let deadline_jobs = deadline_jobs(client, namespace).await?;
    let facts = Facts::new(&jobs);
    let pods: Vec<Pod> = list(client, "pods", namespace).await?;
    let pods = pods.iter().filter_map(|pod| facts.pod(pod));
    let of_jobs = deadline_jobs
        .iter()
        .filter_map(|job| held::deadline_job(&job.metadata));
    let mut found: Vec<Held> = pods.chain(of_jobs).collect();
    if let Some(name) = &args.job {
        let known = jobs.iter().map(|job| &job.metadata);
        let known = known.chain(deadline_jobs.iter().map(|job| &job.metadata));
        let is_known = known
            .into_iter()
            .any(|metadata| metadata.name.as_ref() == Some(name));
        found.retain(|held| held.job.as_ref() == Some(name));
        ensure!(
            is_known || !found.is_empty(),
            "no job {name} in namespace {}, and no pod of it: check the name and -n",
            session.namespace
        );
    }
    let mut seen = BTreeSet::new();
    found.retain(|held| seen.insert((held.kind, held.uid.clone())));
    Ok(found)
}

/// DeadlineJobs by their metadata: one that this version cannot decode may be held as well.
async fn deadline_jobs(
    client: &Client,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<DynamicObject>> {
    let access = Access::new("list", "deadlinejobs.shed.dev", namespace);
    let api: Api<DynamicObject> = jobs::deadline_jobs(client, namespace);
    match access::list(&api, &all(), usize::MAX).await {
        // The CRD is gone, and all DeadlineJobs with it.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        found => found.map_err(|error| access.explain(error)),
    }
}

async fn list<K>(
    client: &Client,
    resource: &'static str,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<K>>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let access = Access::new("list", resource, namespace);
    let listed = access::list(&access::objects(client, namespace), &all(), usize::MAX).await;
    listed.map_err(|error| access.explain(error))
}

fn all() -> ListParams {
    ListParams::default().limit(PAGE)
}

/// Takes the finalizers off. The uid is a precondition, and finalizers of others stay.
async fn release(client: &Client, held: Held) -> Result<(), String> {
    let params = PatchParams {
        field_manager: Some("kubectl-shed".to_owned()),
        ..PatchParams::default()
    };
    let (resource, done) = match held.kind {
        Kind::Pod => {
            let api: Api<Pod> = Api::namespaced(client.clone(), &held.namespace);
            let patch = Patch::Strategic(held.pod_patch());
            let done = api.patch_metadata(&held.name, &params, &patch).await;
            ("pods", done.map(drop))
        }
        Kind::DeadlineJob => {
            let api: Api<DynamicObject> = jobs::deadline_jobs(client, Some(&held.namespace));
            let patch = Patch::Merge(held.merge_patch());
            let done = api.patch_metadata(&held.name, &params, &patch).await;
            ("deadlinejobs.shed.dev", done.map(drop))
        }
    };
    let access = Access::new("patch", resource, &*held.namespace);
    match done {
        Ok(()) => Ok(()),
        // It is gone, which is what a release is for.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(format!(
            "{}/{}: {:#}",
            held.namespace,
            held.name,
            access.explain(error)
        )),
    }
}
