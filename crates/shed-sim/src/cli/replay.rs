//! `replay`: decides a recording again.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use shed_core::policy::{Order, Policy};

use super::output::{self, Format};
use super::{CliError, values};
use crate::policies;
use crate::replay::{Counts, JobTally, Replayed, replay};

pub(super) const EXAMPLES: &str = "\
Examples:
  Does this version decide as the operator did? Ends with 1 if it does not:
    shed-sim replay recording/
  What would DollyMP have done with three quarters of the cluster?
    shed-sim replay recording/ --policy dollymp --lambda 0.75";

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The recording: the folder that `--record` named, or one of its files.
    recording: PathBuf,
    /// Decide under another policy. Each pass uses facts that followed from the recorded decisions. The result shows
    /// the policy's decisions there, not their consequences.
    #[arg(long, value_name = "POLICY", value_parser = values::policy)]
    policy: Option<String>,
    /// The order of first attempts, unless the policy names one.
    #[arg(long, requires = "policy")]
    order: Option<Order>,
    /// Decide under another λ, the share of the cluster that attempts may use.
    #[arg(long, value_name = "L", visible_alias = "capacity-share", value_parser = values::share)]
    lambda: Option<f64>,
    /// How the result is written.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// A replay under the recorded policy.
#[derive(Debug, Serialize)]
struct Verdict {
    recording: String,
    policy: String,
    files: u64,
    passes: u64,
    equal: u64,
    differing: u64,
    lost: u64,
    cut: usize,
    memories_compared: u64,
    first_difference: Option<String>,
}

/// One job under another policy.
#[derive(Debug, Serialize)]
struct JobRow {
    job: String,
    tasks: u32,
    originals: u64,
    originals_would_be: u64,
    clones: u64,
    clones_would_be: u64,
    retries: u64,
    retries_would_be: u64,
    kills: u64,
    kills_would_be: u64,
}

pub(super) fn run(args: &ReplayArgs) -> Result<(), CliError> {
    let other = args.policy.is_some() || args.lambda.is_some();
    let chosen = args.chosen()?;
    let found = replay(&args.recording, |recorded| Policy {
        capacity_share: args.lambda.unwrap_or(recorded.capacity_share),
        surge_max: recorded.surge_max,
        work_max: recorded.work_max,
        ..chosen.clone().unwrap_or_else(|| recorded.clone())
    })?;
    say_what_is_missing(&found);
    if found.passes == 0 {
        let path = args.recording.display();
        return Err(CliError::Usage(format!(
            "{path}: the recording holds no pass"
        )));
    }
    let text = if other {
        render_jobs(&found, args.format)?
    } else {
        render_verdict(args, &found)?
    };
    output::write_to_stdout(&text)?;
    match &found.first_difference {
        Some(first) if !other => Err(CliError::Differs(format!("{}: {}", first.at, first.what))),
        _ => Ok(()),
    }
}

impl ReplayArgs {
    fn chosen(&self) -> Result<Option<Policy>, CliError> {
        let parse = |text: &String| policies::known().parse(text, self.order.unwrap_or_default());
        let parsed = self.policy.as_ref().map(parse).transpose();
        parsed.map_err(|error| CliError::Usage(error.to_string()))
    }
}

fn say_what_is_missing(found: &Replayed) {
    for place in &found.cut {
        eprintln!("note: {place}: the file ends within this line; all before it was read");
    }
    if found.lost > 0 {
        eprintln!(
            "note: {} passes are missing: the operator could not write them",
            found.lost
        );
    }
}

fn render_verdict(args: &ReplayArgs, found: &Replayed) -> Result<Vec<u8>, CliError> {
    let first = found.first_difference.as_ref();
    let verdict = Verdict {
        recording: args.recording.display().to_string(),
        policy: found
            .policy
            .as_ref()
            .map(Policy::to_string)
            .unwrap_or_default(),
        files: found.files,
        passes: found.passes,
        equal: found.equal,
        differing: found.passes - found.equal,
        lost: found.lost,
        cut: found.cut.len(),
        memories_compared: found.memories,
        first_difference: first.map(|first| format!("{}: {}", first.at, first.what)),
    };
    match args.format {
        Format::Json => output::json_lines(&[verdict]),
        Format::Csv => output::csv(&[verdict]),
        Format::Table => Ok(format!(
            "policy     {}\npasses     {}\nequal      {}\ndiffering  {}\n",
            verdict.policy, verdict.passes, verdict.equal, verdict.differing
        )
        .into_bytes()),
    }
}

fn row(job: &JobTally) -> JobRow {
    let Counts {
        originals,
        clones,
        retries,
        kills,
    } = job.recorded;
    JobRow {
        job: job.name.clone(),
        tasks: job.tasks,
        originals,
        originals_would_be: job.again.originals,
        clones,
        clones_would_be: job.again.clones,
        retries,
        retries_would_be: job.again.retries,
        kills,
        kills_would_be: job.again.kills,
    }
}

fn render_jobs(found: &Replayed, format: Format) -> Result<Vec<u8>, CliError> {
    let rows: Vec<JobRow> = found.jobs.iter().map(row).collect();
    match format {
        Format::Json => output::json_lines(&rows),
        Format::Csv => output::csv(&rows),
        Format::Table => Ok(table(found, &rows).into_bytes()),
    }
}

fn table(found: &Replayed, rows: &[JobRow]) -> String {
    let width = rows.iter().map(|row| row.job.chars().count());
    let width = width.max().unwrap_or(0).max("job".len());
    let mut text = format!(
        "{:<width$}  {:>6}  {:>15}  {:>15}  {:>15}  {:>15}\n",
        "job", "tasks", "originals", "clones", "retries", "kills"
    );
    let pair = |recorded: u64, again: u64| format!("{recorded} → {again}");
    for row in rows {
        text.push_str(&format!(
            "{:<width$}  {:>6}  {:>15}  {:>15}  {:>15}  {:>15}\n",
            row.job,
            row.tasks,
            pair(row.originals, row.originals_would_be),
            pair(row.clones, row.clones_would_be),
            pair(row.retries, row.retries_would_be),
            pair(row.kills, row.kills_would_be),
        ));
    }
    let differing = found.passes - found.equal;
    text.push_str(&format!(
        "recorded → would be decided; {differing} of {} passes are decided otherwise. Each is decided on \
         what the recorded decisions led to; a wish that is repeated counts once.\n",
        found.passes
    ));
    text
}
