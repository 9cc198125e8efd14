//! `timeline`: the attempts of a job over time, as a Gantt chart.

mod axis;
mod chart;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use crate::connection::Connection;
use crate::verbs::status::{JobArgs, StatusView};

/// Draw the attempts of a job over time (a Gantt chart), with clones, stops, resume points and the deadline.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # In the terminal, as wide as it is
  kubectl shed timeline nightly
  # Again every 2 s, until the job has finished
  kubectl shed timeline nightly --watch

In a browser: kubectl shed page")]
pub struct TimelineArgs {
    #[command(flatten)]
    job: JobArgs,
}

pub async fn run(args: TimelineArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    StatusView::show(&args.job, connection, text::render).await
}
