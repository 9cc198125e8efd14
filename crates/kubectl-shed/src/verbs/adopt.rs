//! `kubectl shed adopt`: the lines that let shed run a Job or the Jobs of a CronJob.

pub mod lines;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::Api;
use serde_json::Value;

use super::check;
use crate::access;
use crate::connection::{Connection, Session};
use crate::documents::{self, Document};
use crate::terminal;
use lines::{Adoption, Settings};

/// Print the lines that let shed run a Job, or the Jobs of a CronJob
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The lines to add to the Jobs of a manifest
  kubectl shed adopt nightly.yaml --deadline \"06:00 Europe/Zurich\"

  # The manifest with the lines
  kubectl shed adopt -f nightly.yaml --deadline 5h -o yaml | kubectl apply -f -

  # The whole CronJob of the cluster with the lines
  kubectl shed adopt cronjob/nightly --deadline 5h --idempotency Safe -o yaml > nightly.yaml

It only prints. Nothing is changed in the cluster.")]
pub struct AdoptArgs {
    /// File with Jobs or CronJobs, `-` for standard input, or `job/NAME` or `cronjob/NAME` in the cluster.
    #[arg(
        value_name = "FILE|JOB",
        required_unless_present = "filename",
        conflicts_with = "filename"
    )]
    what: Option<String>,
    /// File with Jobs or CronJobs, as YAML or JSON; `-` is standard input. May be repeated.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Print the whole manifests instead of the lines.
    #[arg(short, long, value_name = "FORMAT", value_parser = ["yaml", "json"])]
    output: Option<String>,
}

/// Prints the lines or the manifests. What shed would refuse goes to standard error.
pub async fn run(args: AdoptArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let mut adoptions: Vec<Adoption> = Vec::new();
    let adopt =
        |document: &Document| lines::adopt(document, &args.settings, jiff::Timestamp::now());
    if let Some(what) = &args.what {
        let documents = read(what, connection).await?;
        adoptions.extend(found(what, documents.iter().filter_map(adopt))?);
    }
    for name in &args.filename {
        let documents = of_file(name)?;
        adoptions.extend(found(name, documents.iter().filter_map(adopt))?);
    }
    let mut code = ExitCode::SUCCESS;
    let mut printed = Vec::new();
    for adoption in &adoptions {
        for note in &adoption.notes {
            terminal::warn(&format!("{}: {note}", adoption.title));
        }
        match adoption.refusals.as_slice() {
            [] => printed.push(adoption.text(args.output.as_deref())?),
            refusals => {
                code = ExitCode::FAILURE;
                for refusal in refusals {
                    terminal::warn(&format!(
                        "error: {} cannot be adopted: {refusal}",
                        adoption.title
                    ));
                }
            }
        }
    }
    let is_json = args.output.as_deref() == Some("json");
    terminal::print(&printed.join(if is_json { "" } else { "---\n" }))?;
    Ok(code)
}

/// The adoptions of one source, which must have some.
fn found(what: &str, adoptions: impl Iterator<Item = Adoption>) -> anyhow::Result<Vec<Adoption>> {
    let adoptions: Vec<Adoption> = adoptions.collect();
    match adoptions.is_empty() {
        true => bail!("{what}: no Job or CronJob in it"),
        false => Ok(adoptions),
    }
}

fn of_file(name: &str) -> anyhow::Result<Vec<Document>> {
    documents::parse(&check::content(name)?).with_context(|| name.to_owned())
}

async fn read(what: &str, connection: &Connection) -> anyhow::Result<Vec<Document>> {
    if what == "-" || std::path::Path::new(what).is_file() {
        return of_file(what);
    }
    let (kind, name) = match what.split_once('/') {
        Some((kind, name)) if !name.is_empty() => (kind, name),
        None if !what.contains('.') => ("job", what),
        _ => bail!("{what} is neither a file nor job/NAME or cronjob/NAME"),
    };
    let session = connection.open().await?;
    let object = match kind {
        "job" | "jobs" | "job.batch" | "jobs.batch" => live::<Job>(&session, name).await?,
        "cronjob" | "cronjobs" | "cj" | "cronjob.batch" | "cronjobs.batch" => {
            live::<CronJob>(&session, name).await?
        }
        _ => bail!("{what}: `{kind}` cannot be adopted: use job/NAME or cronjob/NAME"),
    };
    Ok(vec![Document { number: 1, object }])
}

/// An object of the cluster.
async fn live<K>(session: &Session, name: &str) -> anyhow::Result<Value>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + serde::Serialize,
{
    let api: Api<K> = Api::namespaced(session.client.clone(), &session.namespace);
    let Some(found) = access::get(&api, name).await? else {
        bail!(
            "no {} {name} in namespace {}, and no such file: check the name and -n",
            K::kind(&()),
            session.namespace
        );
    };
    let mut object = serde_json::to_value(found)?;
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    Ok(object)
}
