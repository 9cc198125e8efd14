//! `kubectl shed suggest`: a deadline from the durations of earlier runs of the same class.

use std::process::ExitCode;

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::terminal::Terminal;
use crate::{jobs, leader, words};

const EXAMPLES: &str = "\
Examples:
  # A deadline for the next run of a job, from earlier jobs with the same label shed.dev/class
  kubectl shed suggest nightly

  # The same by the class, with more headroom
  kubectl shed suggest --class nightly-report --factor 2

The suggestion is the 95th percentile of the runs times 1.5, rounded up to a minute. It only prints.";

/// With fewer runs the suggestion is marked as uncertain.
const RUNS_MIN: u32 = 5;

/// Suggest a deadline from earlier runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SuggestArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs, with the label `shed.dev/class`.
    #[arg(required_unless_present = "class", conflicts_with = "class")]
    job: Option<String>,
    /// Class of the runs, instead of a job that has it.
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Which duration of the runs counts.
    #[arg(long, value_name = "WORD", value_parser = ["p50", "p95", "max"], default_value = "p95")]
    percentile: String,
    /// The suggestion is the duration times this, from 1 to 100.
    #[arg(long, value_name = "NUMBER", default_value_t = 1.5)]
    factor: f64,
    /// Print this format instead of lines.
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml"])]
    output: Option<String>,
}

/// The leader's answer.
#[derive(Debug, Deserialize)]
pub struct History {
    classes: Vec<Class>,
}

/// Completion times of a class, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Class {
    class: String,
    runs: u32,
    p50_seconds: f64,
    p95_seconds: f64,
    max_seconds: f64,
}

/// A deadline and its basis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    #[serde(flatten)]
    class: Class,
    within: String,
    basis: String,
}

/// Asks the leader for the history.
pub async fn run(
    args: SuggestArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    ensure!(
        (1.0..=100.0).contains(&args.factor),
        "--factor {}: use a number from 1 to 100, e.g. 1.5",
        args.factor
    );
    let session = connection.open().await?;
    let class = match (&args.class, &args.job) {
        (Some(class), _) => class.clone(),
        (None, Some(name)) => {
            let job = jobs::find(&session, name).await?;
            let Some(class) = job.class else {
                bail!(
                    "job {name} has no class: add the label shed.dev/class to it, or use --class"
                );
            };
            class
        }
        (None, None) => bail!("name a job or --class"),
    };
    let is_label = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    ensure!(
        !class.is_empty() && class.chars().all(is_label),
        "`{class}` is not a value of the label shed.dev/class"
    );
    let path = format!("/v1/history/{}?class={class}", session.namespace);
    let history: History = leader::get(&session.client, connection, &path).await?;
    let found = history
        .classes
        .into_iter()
        .find(|found| found.class == class && found.runs > 0);
    let Some(found) = found else {
        bail!(
            "no run of class {class} in namespace {} is known: shed learns a class from jobs that have completed",
            session.namespace
        );
    };
    let suggestion = suggest(found, &args.percentile, args.factor);
    let text = match args.output.as_deref() {
        Some("json") => serde_json::to_string_pretty(&suggestion)? + "\n",
        Some(_) => serde_yaml_ng::to_string(&suggestion)?,
        None => suggestion.text(),
    };
    terminal.print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn suggest(class: Class, percentile: &str, factor: f64) -> Suggestion {
    let seconds = match percentile {
        "p50" => class.p50_seconds,
        "max" => class.max_seconds,
        _ => class.p95_seconds,
    };
    let minutes = (seconds * factor / 60.0).ceil().max(1.0) as i64;
    let within = match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    };
    Suggestion {
        class,
        within,
        basis: format!("{percentile} of the runs times {factor}"),
    }
}

impl Suggestion {
    fn text(&self) -> String {
        let Class { class, runs, .. } = &self.class;
        let span = |seconds: f64| words::span(seconds.ceil() as i64);
        let (p50, p95, max) = (
            &self.class.p50_seconds,
            &self.class.p95_seconds,
            &self.class.max_seconds,
        );
        let runs_words = if *runs == 1 {
            "1 run".to_owned()
        } else {
            format!("{runs} runs")
        };
        let mut text = format!(
            "class {class}: {runs_words}, p50 {}, p95 {}, longest {}\nsuggested deadline: {} ({})\n\n\
             DeadlineJob: spec.deadline: {{within: {}}}\nJob:         metadata.annotations: {{shed.dev/deadline: {}}}\n",
            span(*p50),
            span(*p95),
            span(*max),
            self.within,
            self.basis,
            self.within,
            self.within
        );
        if *runs < RUNS_MIN {
            text.push_str(&format!(
                "warning: fewer than {RUNS_MIN} runs are little evidence for a percentile\n"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(runs: u32) -> Class {
        Class {
            class: "nightly".to_owned(),
            runs,
            p50_seconds: 2400.0,
            p95_seconds: 3480.2,
            max_seconds: 4200.0,
        }
    }

    #[test]
    fn a_deadline_is_rounded_up_to_a_minute() {
        let within = |percentile, factor| suggest(class(20), percentile, factor).within;
        assert_eq!(within("p95", 1.5), "1h28m");
        assert_eq!(within("p50", 1.5), "1h");
        assert_eq!(within("max", 1.0), "1h10m");
        assert_eq!(within("p50", 1.0), "40m");
    }

    #[test]
    fn few_runs_are_said_to_be_few() {
        let text = suggest(class(20), "p95", 1.5).text();
        assert_eq!(
            text,
            "class nightly: 20 runs, p50 40m00s, p95 58m01s, longest 1h10m\n\
             suggested deadline: 1h28m (p95 of the runs times 1.5)\n\n\
             DeadlineJob: spec.deadline: {within: 1h28m}\n\
             Job:         metadata.annotations: {shed.dev/deadline: 1h28m}\n"
        );
        assert!(
            suggest(class(1), "p95", 1.5)
                .text()
                .ends_with("evidence for a percentile\n")
        );
    }
}
