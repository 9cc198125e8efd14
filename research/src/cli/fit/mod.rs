//! `fit`: the distribution of a trace's task times, all together and job by job, how heavy the tail
//! is, and how far tasks of one job differ.

mod analysis;
mod table;

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use analysis::Fit;
use shed_sim::cli::output::{self, Format};
use shed_sim::cli::{CliError, options, values};

pub(super) const EXAMPLES: &str = "\
Distributions are fitted by maximum likelihood; the best has the least AIC. The empirical distribution has
no likelihood and therefore no AIC. Its distance shows how close a fit can be.

Examples:
  A table for people:
    shed-lab fit --trace google2011_hawk_a.csv.gz
  The tail's exponent from the longest 1 % of the tasks, as CSV (field, value):
    shed-lab fit --trace jobs.csv --tail-share 0.01 --format csv
  A made-up workload, as one JSON object:
    shed-lab fit --trace setup:P-4 --seed 3 --format json";

#[derive(Debug, Args)]
pub(super) struct FitArgs {
    /// The trace: any trace that `shed-sim run` accepts.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Minimum number of tasks of a job that counts for the differences between tasks of one job.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    min_tasks: u32,
    /// The share of the longest times that is the tail.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = values::share)]
    tail_share: f64,
    /// Seed of a made-up workload.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How the result is written.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(super) fn run(args: &FitArgs) -> Result<(), CliError> {
    let trace = options::read_trace(&args.trace, args.seed)?;
    let name = args.trace.display().to_string();
    let fit = Fit::of(name, &trace, args.min_tasks as usize, args.tail_share);
    let text = match args.format {
        Format::Table => table::render(&fit).into_bytes(),
        Format::Json => output::json_lines(&[fit])?,
        Format::Csv => long_csv(&fit)?,
    };
    output::write_to_stdout(&text)
}

/// `field,value`, a field being the path to a value of the JSON object.
fn long_csv(fit: &Fit) -> Result<Vec<u8>, CliError> {
    let failed = |error: std::io::Error| CliError::Write {
        what: "results".into(),
        error,
    };
    let value = serde_json::to_value(fit).map_err(|error| failed(error.into()))?;
    let mut lines = Vec::new();
    flatten(String::new(), &value, &mut lines);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = ("field".to_owned(), "value".to_owned());
    for (field, value) in std::iter::once(&header).chain(&lines) {
        let written = writer.write_record([field, value]);
        written.map_err(|error| failed(error.into()))?;
    }
    writer
        .into_inner()
        .map_err(|error| failed(error.into_error()))
}

fn flatten(path: String, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(format!("{path}{dot}{name}"), value, lines);
            }
        }
        Value::Null => lines.push((path, String::new())),
        Value::String(text) => lines.push((path, text.clone())),
        other => lines.push((path, other.to_string())),
    }
}
