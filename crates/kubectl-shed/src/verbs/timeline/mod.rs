//! `timeline`: the attempts of a job over time, as a Gantt chart.

mod axis;
mod chart;
mod html;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use jiff::Timestamp;

use crate::connection::Connection;
use crate::output::{self, Canvas, Format};
use crate::terminal::Terminal;
use crate::verbs::status::StatusView;

use self::chart::Chart;

/// Draw the attempts of a job over time (a Gantt chart), with clones, stops, resume points and the deadline.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # In the terminal, as wide as it is
  kubectl shed timeline nightly
  # As a page for a browser, or as a picture
  kubectl shed timeline nightly -o html > nightly.html
  kubectl shed timeline nightly -o svg > nightly.svg")]
pub struct TimelineArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs.
    job: String,
    /// Form of the output. Absent: text.
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<TimelineFormat>,
    /// Draw it again every 2 s, until the job has finished. A pipe gets it once.
    #[arg(short, long)]
    watch: bool,
}

/// Form of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TimelineFormat {
    /// A picture that needs no other file.
    Svg,
    /// A page that needs no other file: the picture and a table.
    Html,
    /// The data as JSON.
    Json,
    /// The data as YAML.
    Yaml,
}

/// Prints the timeline.
pub async fn run(
    args: TimelineArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    output::show(terminal, args.watch, async |terminal: &Terminal| {
        let view = StatusView::read(&session, connection, &args.job).await?;
        let is_last = view.job.is_finished();
        let canvas = Canvas::new(terminal, None);
        Ok((
            drawn(&view, args.output, canvas, Timestamp::now())?,
            is_last,
        ))
    })
    .await?;
    Ok(ExitCode::SUCCESS)
}

fn drawn(
    view: &StatusView,
    format: Option<TimelineFormat>,
    canvas: Canvas,
    now: Timestamp,
) -> anyhow::Result<String> {
    let chart = Chart::new(view, now);
    match format {
        None => Ok(text::render(view, chart.as_ref(), canvas)),
        Some(TimelineFormat::Svg) => Ok(svg::render(view, chart.as_ref())),
        Some(TimelineFormat::Html) => Ok(html::render(view, chart.as_ref())),
        Some(TimelineFormat::Json) => output::in_format(view, Some(Format::Json), String::new),
        Some(TimelineFormat::Yaml) => output::in_format(view, Some(Format::Yaml), String::new),
    }
}
