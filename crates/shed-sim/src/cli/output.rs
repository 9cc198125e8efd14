//! Results as a table for people, or as JSON lines or CSV for programs.

use std::io::Write;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::CliError;
use crate::outcome::Figures;
use crate::settings::StageDeadlines;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One object per line.
    Json,
    /// With a header line.
    Csv,
}

/// One result: the run and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The trace's file.
    pub trace: String,
    /// The policy with all its parameters.
    pub policy: String,
    /// The order of first attempts.
    pub order: String,
    /// Slots, or nothing for a file of nodes.
    pub slots: Option<u32>,
    /// `--load`.
    pub load: Option<f64>,
    /// `--deadline-factor`.
    pub deadline_factor: Option<f64>,
    /// The attempt-time model with its parameters.
    pub attempt_model: String,
    /// `--stage-deadlines`.
    #[serde(default)]
    pub stage_deadlines: StageDeadlines,
    /// The seed.
    pub seed: u64,
    /// The figures of the run.
    #[serde(flatten)]
    pub figures: Figures,
    /// Wall-clock time of the run in seconds, reading not included.
    pub wall_s: f64,
}

/// Rows in a format.
pub(super) fn render(rows: &[Row], format: Format) -> Result<Vec<u8>, CliError> {
    match format {
        Format::Json => json_lines(rows),
        Format::Csv => csv(rows),
        Format::Table => Ok(table(rows).into_bytes()),
    }
}

fn failed(error: std::io::Error) -> CliError {
    CliError::Write {
        what: "results".into(),
        error,
    }
}

/// One JSON object per line.
pub fn json_lines<T: Serialize>(rows: &[T]) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut text, row).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
    }
    Ok(text)
}

/// CSV whose columns are the fields of the rows.
pub fn csv<T: Serialize>(rows: &[T]) -> Result<Vec<u8>, CliError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (position, row) in rows.iter().enumerate() {
        let value = serde_json::to_value(row).map_err(|error| failed(error.into()))?;
        let Some(object) = value.as_object() else {
            continue;
        };
        if position == 0 {
            let header = writer.write_record(object.keys());
            header.map_err(|error| failed(error.into()))?;
        }
        let fields = object.values().map(|value| match value {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let record = writer.write_record(fields);
        record.map_err(|error| failed(error.into()))?;
    }
    writer
        .into_inner()
        .map_err(|error| failed(error.into_error()))
}

/// A table whose columns are as wide as their widest cell; numbers are right-aligned.
fn table(rows: &[Row]) -> String {
    let head = [
        "policy", "order", "load", "k", "seed", "jobs", "met %", "mean s", "p50 s", "p90 s",
        "p99 s", "util %", "wasted %", "clones", "won", "events/s",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let mut widths = [0; 16];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in &lines {
        let mut rendered = String::new();
        for (at, (cell, width)) in line.iter().zip(widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            let padded = if at < 2 {
                format!("{gap}{cell:<width$}")
            } else {
                format!("{gap}{cell:>width$}")
            };
            rendered.push_str(&padded);
        }
        text.push_str(rendered.trim_end());
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; 16] {
    let figures = &row.figures;
    let number = |value: Option<f64>, digits: usize| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    let percent = |value: Option<f64>| number(value.map(|v| v * 100.0), 1);
    let wasted = figures.machine_seconds_wasted / figures.machine_seconds;
    let name = row.policy.split('{').next().unwrap_or_default();
    [
        name.to_owned(),
        row.order.clone(),
        number(row.load, 2),
        number(row.deadline_factor, 2),
        row.seed.to_string(),
        figures.jobs.to_string(),
        percent(figures.pocd),
        number(figures.mean_flowtime_s, 1),
        number(figures.p50_flowtime_s, 1),
        number(figures.p90_flowtime_s, 1),
        number(figures.p99_flowtime_s, 1),
        percent(figures.utilisation),
        percent(Some(wasted).filter(|wasted| wasted.is_finite())),
        figures.clones.to_string(),
        figures.clone_wins.to_string(),
        format!("{:.0}", figures.events as f64 / row.wall_s.max(1e-9)),
    ]
}

/// Writes to standard output; a reader that closes it early (`| head`) causes no error.
pub fn write_to_stdout(text: &[u8]) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(CliError::Write {
            what: "to standard output".into(),
            error,
        }),
        _ => Ok(()),
    }
}
