//! `kubectl shed check`: manifests against the rules of the CRD and of shed, without a cluster.

pub mod forecast;
pub mod judge;
pub mod rules;
pub mod schema;

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::documents;
use crate::terminal;
use judge::Judge;

/// Check manifests offline: the rules of the CRD and of shed, and a forecast of the deadline
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Check a manifest, and forecast its deadline with 40 slots
  kubectl shed check -f nightly.yaml --slots 40

  # Check what Helm renders, and fail if a deadline is not feasible
  helm template ./chart | kubectl shed check -f - --require-feasible

It needs no cluster. Exit code 1 means that an object is invalid, or with --strict that there is a warning.")]
pub struct CheckArgs {
    /// File with DeadlineJobs, Jobs or CronJobs, as YAML or JSON; `-` is standard input. May be repeated.
    #[arg(short, long, value_name = "FILE", required = true)]
    pub filename: Vec<String>,
    /// Slots that the job can use at a time. Absent: its parallelism.
    #[arg(long, value_name = "N", value_parser = shed::api::parse_slots)]
    pub slots: Option<u32>,
    /// Fail as well if PoCD at the deadline is below the target.
    #[arg(long)]
    pub require_feasible: bool,
    /// Fail as well on a warning, such as about a Job that shed would not run.
    #[arg(long)]
    pub strict: bool,
}

pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let judge = Judge {
        slots: args.slots,
        requires_feasible: args.require_feasible,
        ..Judge::new(jiff::Timestamp::now())
    };
    let mut is_valid = true;
    for name in &args.filename {
        let verdicts = judge
            .judge(&documents::parse(&content(name)?).with_context(|| shown(name).to_owned())?);
        if verdicts.iter().all(|verdict| verdict.is_foreign) {
            bail!("{}: no DeadlineJob, Job or CronJob in it", shown(name));
        }
        is_valid &= verdicts
            .iter()
            .all(|verdict| verdict.is_valid() && (!args.strict || verdict.warnings.is_empty()));
        for verdict in verdicts {
            terminal::print(&verdict.text(shown(name)))?;
        }
    }
    Ok(terminal::exit_code(is_valid))
}

/// The text of a file or of standard input.
pub fn content(name: &str) -> anyhow::Result<String> {
    if name != "-" {
        return std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"));
    }
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.context("cannot read standard input")?;
    Ok(text)
}

fn shown(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}
