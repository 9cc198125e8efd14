//! `kubectl shed release`: takes shed's finalizers off pods and DeadlineJobs when no operator runs.

pub mod finalizers;

use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams, Patch};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::{self, Access};
use crate::connection::{Connection, Session};
use crate::jobs;
use crate::lease;
use crate::terminal;
use finalizers::{Facts, Held, Kind};

/// Objects of one page of a list.
const PAGE: u32 = 500;
/// Patches under way at once.
const WRITES_AT_ONCE: usize = 8;

/// Take shed's finalizers off pods and DeadlineJobs when the operator is gone (writes)
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # What would be released if shed is gone for good
  kubectl shed release --all --dry-run

  # Release the pods of one job without a question
  kubectl shed release nightly -n team --yes

It deletes nothing. It refuses while an operator holds the Lease, because a running operator releases pods itself.")]
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
pub async fn run(args: ReleaseArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let found = find(&args, &session).await?;
    if found.is_empty() {
        terminal::print("nothing to release: no object has a finalizer of shed\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::print(&finalizers::listing(&found))?;
    let releasable: Vec<Held> = found.into_iter().filter(Held::is_releasable).collect();
    if args.dry_run || releasable.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.force {
        refuse_while_led(&session).await?;
    }
    if !args.yes && !is_confirmed(releasable.len())? {
        terminal::print("nothing was released\n")?;
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
    terminal::print(&format!("released {} of {count}\n", count - failures.len()))?;
    Ok(terminal::exit_code(failures.is_empty()))
}

async fn refuse_while_led(session: &Session) -> anyhow::Result<()> {
    terminal::warn("watching the Lease for its duration, to see whether an operator runs");
    let leads = lease::watch(session).await;
    let leads = leads.context("nothing was released; --force releases without this check")?;
    if let Some((namespace, holder)) = leads {
        bail!(
            "{holder} leads in namespace {namespace} and releases pods itself: wait for it, or stop it first with \
             `kubectl -n {namespace} scale deployment --all --replicas 0`; --force releases all the same"
        )
    }
    Ok(())
}

/// Asks on the terminal. Without one the answer is no.
fn is_confirmed(count: usize) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    ensure!(
        input.is_terminal(),
        "no terminal to ask on: add --yes to release, or --dry-run to look"
    );
    terminal::print(&format!("Release {count}? Type yes: "))?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// Objects that a finalizer of shed holds.
async fn find(args: &ReleaseArgs, session: &Session) -> anyhow::Result<Vec<Held>> {
    let namespace = match (&args.job, &session.options.namespace) {
        (None, None) => None,
        _ => Some(session.namespace.as_str()),
    };
    let client = &session.client;
    let all = ListParams::default().limit(PAGE);
    let jobs = access::objects(client, namespace);
    let jobs: Vec<Job> = access::list(&jobs, &all, usize::MAX).await?;
    // One that this version cannot decode may be held as well.
    let deadline_jobs: Api<DynamicObject> = jobs::deadline_jobs(client, namespace);
    let deadline_jobs = match access::list_parts(&deadline_jobs, &all, usize::MAX).await {
        // The CRD is gone, and all DeadlineJobs with it.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        found => found.map_err(|error| Access::of("list", &deadline_jobs).explain(error))?,
    };
    let facts = Facts::new(&jobs);
    let pods = access::objects(client, namespace);
    let pods: Vec<Pod> = access::list(&pods, &all, usize::MAX).await?;
    let pods = pods.iter().filter_map(|pod| facts.pod(pod));
    let of_jobs = deadline_jobs
        .iter()
        .filter_map(|job| finalizers::deadline_job(&job.metadata));
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

/// Takes the finalizers off. The uid is a precondition, and finalizers of others stay.
async fn release(client: &Client, held: Held) -> Result<(), String> {
    let Held {
        namespace, name, ..
    } = &held;
    let done = match held.kind {
        Kind::Pod => {
            let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
            patched(&api, name, Patch::Strategic(held.pod_patch())).await
        }
        Kind::DeadlineJob => {
            let api: Api<DynamicObject> = jobs::deadline_jobs(client, Some(namespace));
            patched(&api, name, Patch::Merge(held.merge_patch())).await
        }
    };
    done.map_err(|error| format!("{namespace}/{name}: {error:#}"))
}

async fn patched<K>(api: &Api<K>, name: &str, patch: Patch<Value>) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    match api.patch_metadata(name, &access::writer(), &patch).await {
        Ok(_) => Ok(()),
        // It is gone, which is what a release is for.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(Access::of("patch", api).explain(error)),
    }
}
