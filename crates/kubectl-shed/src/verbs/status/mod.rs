//! `status`: the deadline of a job and its attempts.

mod bands;
#[cfg(test)]
mod tests;
pub mod text;
mod workflow;

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use shed::api::JobRecord;

use crate::connection::{Connection, Session};
use crate::jobs;
use crate::model::JobView;
use crate::output::{self, Canvas, ShowArgs};
use crate::record::{self, FoundRecord};

/// Show a job's deadline, its probability of completion in time (PoCD) and its attempts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The deadline of a job, and what its tasks do
  kubectl shed status nightly
  # The newest Job of a CronJob
  kubectl shed status cronjob/nightly
  # The stages of a workflow's run
  kubectl shed status workflow/etl-20300131
  # Again every 2 s, until the job has finished
  kubectl shed status nightly -n team-a --watch
  # PoCD alone
  kubectl shed status nightly -o json | jq -r .status.pocd")]
pub struct StatusArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// The arguments of verbs that show one job.
#[derive(Debug, clap::Args)]
pub struct JobArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs. cronjob/NAME is the newest Job of a CronJob.
    pub job: String,
    #[command(flatten)]
    pub show: ShowArgs,
}

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
    pub async fn read(session: &Session, name: &str) -> anyhow::Result<Self> {
        let mut job = jobs::find(session, name).await?;
        let FoundRecord { record, notes } = match job.watched.clone() {
            // Its attempts are those of the built-in controller.
            Some(note) => FoundRecord {
                record: None,
                notes: vec![note],
            },
            None => record::find(session, &job).await,
        };
        job.status.record = None;
        Ok(Self { job, record, notes })
    }

    /// Shows the job as `render` puts it.
    pub async fn show(
        args: &JobArgs,
        connection: &Connection,
        render: impl Fn(&Self, Canvas, Timestamp) -> String,
    ) -> anyhow::Result<ExitCode> {
        let session = connection.open().await?;
        let read = async || Self::read(&session, &args.job).await;
        output::show(&args.show, read, Self::is_last, render).await
    }

    pub fn is_last(&self) -> bool {
        self.job.is_finished()
    }
}

pub async fn run(args: StatusArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    match args.job.job.strip_prefix("workflow/") {
        Some(run) => workflow::show(run, &args.job.show, connection).await,
        None => StatusView::show(&args.job, connection, text::render).await,
    }
}
