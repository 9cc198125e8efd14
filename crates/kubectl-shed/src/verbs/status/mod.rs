//! `status`: the deadline of a job and its attempts.

mod bands;
#[cfg(test)]
mod tests;
pub mod text;

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use shed::api::JobRecord;

use crate::connection::Connection;
use crate::model::JobView;
use crate::output::{self, Canvas, ShowArgs};
use crate::terminal::Terminal;
use crate::{jobs, record};

/// Show a job's deadline, its probability of completion in time (PoCD) and its attempts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The deadline of a job, and what its tasks do
  kubectl shed status nightly
  # Again every 2 s, until the job has finished
  kubectl shed status nightly -n team-a --watch
  # PoCD alone
  kubectl shed status nightly -o json | jq -r .status.pocd")]
pub struct StatusArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs.
    job: String,
    #[command(flatten)]
    show: ShowArgs,
}

/// A job with its record.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    #[serde(flatten)]
    pub job: JobView,
    /// Replaces the bounded record of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<JobRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl StatusView {
    /// Reads the job and the most complete record that the user may read.
    pub async fn read(
        session: &crate::connection::Session,
        connection: &Connection,
        name: &str,
    ) -> anyhow::Result<Self> {
        let mut job = jobs::find(session, name).await?;
        let mut found = record::find(session, connection, &job).await;
        if let Some(record) = &mut found.record {
            record
                .attempts
                .sort_by_key(|attempt| (attempt.task, attempt.attempt));
        }
        job.status.record = None;
        Ok(Self {
            job,
            record: found.record,
            notes: found.notes,
        })
    }
}

/// Prints the status.
pub async fn run(
    args: StatusArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let format = args.show.output;
    output::show(terminal, args.show.watch, async |terminal: &Terminal| {
        let view = StatusView::read(&session, connection, &args.job).await?;
        let canvas = Canvas::new(terminal, format);
        let text = output::in_format(&view, format, || {
            text::render(&view, canvas, Timestamp::now())
        })?;
        Ok((text, view.job.is_finished()))
    })
    .await?;
    Ok(ExitCode::SUCCESS)
}
