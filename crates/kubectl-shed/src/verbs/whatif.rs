//! `kubectl shed whatif`: a job's prediction with another deadline or other slots, computed by the leader.

use std::process::ExitCode;

use anyhow::{bail, ensure};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::connection::Connection;
use crate::leader;
use crate::terminal::Terminal;
use crate::words;

const EXAMPLES: &str = "\
Examples:
  # The same job with a deadline two hours from now
  kubectl shed whatif nightly --deadline 2h

  # The same job if it could use 40 slots
  kubectl shed whatif nightly --slots 40

The leader computes it from what it knows now, and nothing changes. It needs the right to forward ports in shed's namespace.";

const CUT_SHORT: &str = "\
The work budget of a planning pass ended before the policy was done with the job. Later passes may raise PoCD.
";

/// Predict a job with another deadline, or with other slots
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct WhatifArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs.
    job: String,
    /// Another deadline: an instant such as 2030-01-31T08:00:00Z, or a duration from now such as 90m.
    #[arg(
        long,
        value_name = "TIME",
        required_unless_present = "slots",
        conflicts_with = "slots"
    )]
    deadline: Option<String>,
    /// How many attempts the job could run at a time.
    #[arg(long, value_name = "N", value_parser = shed::api::parse_slots)]
    slots: Option<u32>,
    /// Print this format instead of a table.
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml"])]
    output: Option<String>,
}

/// The leader's answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Answer {
    #[serde(flatten)]
    then: Prediction,
    now: Prediction,
}

/// A prediction for a job.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prediction {
    #[serde(deserialize_with = "number_or_text")]
    pocd: Option<f64>,
    estimated_completion_time: Option<Timestamp>,
    slots: Option<u32>,
    clones: Option<u32>,
    waiting: Option<u32>,
    /// Whether the work budget of a planning pass ended before the policy was done with the job.
    is_cut_short: bool,
}

/// The status has decimals as text.
fn number_or_text<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Decimal {
        Number(f64),
        Text(String),
    }
    let found = Option::<Decimal>::deserialize(deserializer)?;
    let parse = |decimal| match decimal {
        Decimal::Number(number) => Ok(number),
        Decimal::Text(text) => text.parse().map_err(serde::de::Error::custom),
    };
    found.map(parse).transpose()
}

/// Asks the leader.
pub async fn run(
    args: WhatifArgs,
    connection: &Connection,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now();
    let (query, words) = match (&args.deadline, args.slots) {
        (Some(text), _) => {
            let deadline = instant(text, now)?;
            (
                format!("deadline={deadline}"),
                format!("deadline {deadline}"),
            )
        }
        (None, Some(slots)) => (format!("slots={slots}"), format!("{slots} slots")),
        (None, None) => bail!("nothing to change: add --deadline or --slots"),
    };
    ensure!(
        !args.job.is_empty()
            && args
                .job
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || one == '-' || one == '.'),
        "`{}` is not the name of a job",
        args.job
    );
    let session = connection.open().await?;
    let path = format!("/v1/whatif/{}/{}?{query}", session.namespace, args.job);
    let whole: serde_json::Value = leader::get(&session.client, connection, &path).await?;
    let text = match args.output.as_deref() {
        Some("json") => serde_json::to_string_pretty(&whole)? + "\n",
        Some(_) => serde_yaml_ng::to_string(&whole)?,
        None => serde_json::from_value::<Answer>(whole)?.text(&words, now),
    };
    terminal.print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// An instant, or a duration from now. Whole seconds, because a query must not hold more.
fn instant(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let from_now = || {
        let span: SignedDuration = text.parse().ok()?;
        now.checked_add(span.is_positive().then_some(span)?).ok()
    };
    let Some(found) = text.parse().ok().or_else(from_now) else {
        bail!(
            "--deadline {text}: use an instant such as 2030-01-31T08:00:00Z, or a duration from now such as 90m"
        );
    };
    ensure!(found > now, "--deadline {text} is over: choose a later one");
    Ok(Timestamp::from_second(found.as_second())?)
}

impl Answer {
    fn text(&self, change: &str, now: Timestamp) -> String {
        let width = change.len().max("now".len());
        let number =
            |value: Option<u32>| value.map_or("unknown".to_owned(), |value| value.to_string());
        let row = |name: &str, prediction: &Prediction| {
            let pocd = prediction.pocd.map_or("unknown".to_owned(), shown);
            let end = prediction.estimated_completion_time;
            let end = end.map_or("unknown".to_owned(), |end| {
                format!("{} ({})", words::instant(end), words::relative(now, end))
            });
            let (slots, clones) = (number(prediction.slots), number(prediction.clones));
            let waiting = number(prediction.waiting);
            format!("{name:<width$}  {pocd:<7}  {slots:<7}  {clones:<7}  {waiting:<7}  {end}\n")
        };
        let head = format!(
            "{:<width$}  {:<7}  {:<7}  {:<7}  {:<7}  ENDS AT\n",
            "", "POCD", "SLOTS", "CLONES", "WAITING"
        );
        let mut text = head + &row("now", &self.now) + &row(change, &self.then);
        if self.now.is_cut_short || self.then.is_cut_short {
            text.push_str(CUT_SHORT);
        }
        text
    }
}

/// Rounded down, so that a PoCD below the target never reads as the target.
fn shown(pocd: f64) -> String {
    format!("{:.3}", (pocd * 1000.0).floor() / 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2030-01-31T08:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_deadline_is_an_instant_or_a_duration_from_now() {
        let read = |text| instant(text, now()).map(|found| found.to_string());
        assert_eq!(read("90m").unwrap(), "2030-01-31T09:30:00Z");
        assert_eq!(
            read("2030-01-31T10:00:00+01:00").unwrap(),
            "2030-01-31T09:00:00Z"
        );
        for (text, words) in [
            ("soon", "use an instant such as"),
            ("-5m", "use an instant such as"),
            ("2029-01-01T00:00:00Z", "is over"),
        ] {
            assert!(
                read(text).unwrap_err().to_string().contains(words),
                "{text}"
            );
        }
    }

    #[test]
    fn both_predictions_are_shown() {
        let mut answer: Answer = serde_json::from_value(json!({
            "time": "2030-01-31T08:00:00Z", "pocd": "0.9499", "slots": 60, "clones": 3, "waiting": 0,
            "estimatedCompletionTime": "2030-01-31T09:00:00Z", "now": {"pocd": "0.62", "slots": 40, "clones": 1},
        }))
        .unwrap();
        let table = "          POCD     SLOTS    CLONES   WAITING  ENDS AT\n\
             now       0.620    40       1        unknown  unknown\n\
             60 slots  0.949    60       3        0        2030-01-31 09:00:00Z (in 1h00m)\n";
        assert_eq!(answer.text("60 slots", now()), table);
        answer.then.is_cut_short = true;
        let text = answer.text("60 slots", now());
        assert_eq!(text.strip_prefix(table), Some(CUT_SHORT));
    }
}
