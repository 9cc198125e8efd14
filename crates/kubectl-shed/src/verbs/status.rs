//! `status`: the deadline of a job and its attempts.

use std::process::ExitCode;

use kube::Api;
use shed::api::DeadlineJob;

use crate::access::Access;
use crate::connection::Connection;
use crate::terminal::Terminal;

/// Show a job's deadline, its probability of completion in time (PoCD) and its attempts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The job and its attempts
  kubectl shed status nightly")]
pub struct StatusArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs.
    job: String,
}

/// Prints the status.
///
/// # Errors
/// The job cannot be read; the message names the fix.
pub async fn run(
    args: StatusArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let jobs: Api<DeadlineJob> = Api::namespaced(session.client, &session.namespace);
    let access = Access {
        verb: "get",
        resource: "deadlinejobs.shed.dev",
        namespace: Some(&session.namespace),
    };
    let job = jobs.get(&args.job).await;
    let job = job.map_err(|error| access.explain(error))?;
    let status = job.status.unwrap_or_default();
    let pocd = status
        .pocd
        .map_or("unknown".to_owned(), |pocd| pocd.to_string());
    let phase = status.phase.unwrap_or_default();
    terminal.print(&format!("{}: {phase}, PoCD {pocd}\n", args.job))?;
    Ok(ExitCode::SUCCESS)
}
