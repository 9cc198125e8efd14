//! `timeline`: the attempts of a job over time, as a Gantt chart.

mod axis;
mod chart;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use jiff::Timestamp;

use crate::connection::Connection;
use crate::output::{self, Canvas, ShowArgs};
use crate::terminal::Terminal;
use crate::verbs::status::StatusView;

use self::chart::Chart;

/// Draw the attempts of a job over time (a Gantt chart), with clones, stops, resume points and the deadline.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # In the terminal, as wide as it is
  kubectl shed timeline nightly
  # Again every 2 s, until the job has finished
  kubectl shed timeline nightly --watch

In a browser: kubectl shed page")]
pub struct TimelineArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs.
    job: String,
    #[command(flatten)]
    show: ShowArgs,
}

/// Prints the timeline.
pub async fn run(
    args: TimelineArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let format = args.show.output;
    output::show(terminal, args.show.watch, async |terminal: &Terminal| {
        let view = StatusView::read(&session, connection, &args.job).await?;
        let canvas = Canvas::new(terminal, format);
        let chart = Chart::new(&view, Timestamp::now());
        let text = || text::render(&view, chart.as_ref(), canvas);
        Ok((
            output::in_format(&view, format, text)?,
            view.job.is_finished(),
        ))
    })
    .await?;
    Ok(ExitCode::SUCCESS)
}
