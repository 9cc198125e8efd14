//! `kubectl shed suggest`: a deadline from the durations of earlier runs of the same class.

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use kube::Api;
use kube::api::{ListParams, Object};
use serde::Serialize;
use serde_json::Value;
use shed::api::{LABEL_CLASS, Ledger};
use shed::completion_history::{ClassFigures, Completion, CompletionHistory};
use shed_core::time::Span;

use crate::access;
use crate::connection::{Connection, Session};
use crate::output::DataArgs;
use crate::{jobs, words};

/// With fewer runs the suggestion is marked as uncertain.
const RUNS_MIN: usize = 5;

/// Suggest a deadline from earlier runs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # A deadline for the next run of a job, from earlier jobs with the same label shed.dev/class
  kubectl shed suggest nightly

  # The same by the class, with more headroom
  kubectl shed suggest --class nightly-report --factor 2

The suggestion is the 95th percentile of the runs times 1.5, rounded up to a minute. The runs are the completed jobs of the
class that are still in the namespace. It only prints.")]
pub struct SuggestArgs {
    /// Name of a DeadlineJob, or of a batch/v1 Job that shed runs, that has a class. cronjob/NAME is the newest Job
    /// of a CronJob.
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
    #[command(flatten)]
    data: DataArgs,
}

/// A deadline, and the completion times that it comes from, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    class: String,
    runs: usize,
    p50_seconds: f64,
    p95_seconds: f64,
    max_seconds: f64,
    within: String,
    basis: String,
}

pub async fn run(args: SuggestArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    ensure!(
        (1.0..=100.0).contains(&args.factor),
        "--factor {}: use a number from 1 to 100, e.g. 1.5",
        args.factor
    );
    let session = connection.open().await?;
    let class = match (&args.class, &args.job) {
        (Some(class), _) => class.clone(),
        (None, Some(name)) => {
            let none = || {
                format!(
                    "job {name} has no class: add the label shed.dev/class to it, or use --class"
                )
            };
            jobs::find(&session, name).await?.class.with_context(none)?
        }
        (None, None) => bail!("name a job or --class"),
    };
    let is_label = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    ensure!(
        !class.is_empty() && class.chars().all(is_label),
        "`{class}` is not a value of the label shed.dev/class"
    );
    let figures = figures(&session, &class).await?.into_iter().next();
    let Some(figures) = figures else {
        bail!(
            "namespace {} has no completed job of class {class}: the runs are counted from jobs that still exist",
            session.namespace
        );
    };
    let suggestion = suggest(figures, &args.percentile, args.factor);
    args.data.print(&suggestion, || suggestion.text())
}

/// The completion times of the class, as the operator counts them for `deadline.history`.
async fn figures(session: &Session, class: &str) -> anyhow::Result<Vec<ClassFigures>> {
    let namespace = &*session.namespace;
    let api: Api<Object<Value, Value>> = jobs::deadline_jobs(&session.client, Some(namespace));
    let labels = format!("{LABEL_CLASS}={class}");
    let wanted = ListParams::default().labels(&labels).limit(100);
    let history = CompletionHistory::default();
    for job in access::list(&api, &wanted, usize::MAX).await? {
        let ledger = job.status.unwrap_or_default()["ledger"].take();
        let ledger: Option<Ledger> = serde_json::from_value(ledger).ok();
        if let Some(completion) = ledger.as_ref().and_then(Completion::of) {
            let uid = job.metadata.uid.unwrap_or_default();
            history.see(&uid, &format!("{namespace}/{class}"), completion);
        }
    }
    Ok(history.figures(namespace, Some(class)))
}

fn suggest(figures: ClassFigures, percentile: &str, factor: f64) -> Suggestion {
    let in_seconds = |span: Span| span.0 as f64 / 1000.0;
    let [p50_seconds, _, p95_seconds, _, max_seconds] = figures.quantiles.map(in_seconds);
    let seconds = match percentile {
        "p50" => p50_seconds,
        "max" => max_seconds,
        _ => p95_seconds,
    };
    let minutes = (seconds * factor / 60.0).ceil().max(1.0) as i64;
    Suggestion {
        class: figures.class,
        runs: figures.runs,
        p50_seconds,
        p95_seconds,
        max_seconds,
        within: words::exact_span(minutes * 60),
        basis: format!("{percentile} of the runs times {factor}"),
    }
}

impl Suggestion {
    fn text(&self) -> String {
        let Self { class, runs, .. } = self;
        let span = |seconds: f64| words::span(seconds.ceil() as i64);
        let mut text = format!(
            "class {class}: {}, p50 {}, p95 {}, longest {}\nsuggested deadline: {} ({})\n\n\
             DeadlineJob: spec.deadline: {{within: {within}}}\n\
             Job:         metadata.annotations: {{shed.dev/deadline: {within}}}\n",
            words::count(*runs, "run", "runs"),
            span(self.p50_seconds),
            span(self.p95_seconds),
            span(self.max_seconds),
            self.within,
            self.basis,
            within = self.within,
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

    fn class(runs: usize) -> ClassFigures {
        ClassFigures {
            class: "nightly".to_owned(),
            runs,
            quantiles: [2_400_000, 0, 3_480_200, 0, 4_200_000].map(Span),
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
