//! `explain`: why a job has the clones that it has, and why it has no more.

mod fields;
pub mod reasons;
mod settings;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use serde::Serialize;
use shed::api::DecisionRecord;

use crate::connection::Connection;
use crate::output;
use crate::verbs::status::{JobArgs, StatusView};
use reasons::Reason;

/// Explain each clone that a job got or did not get, and what holds the job up.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Why the job is late, and what shed does about it
  kubectl shed explain nightly
  # Only about task 3
  kubectl shed explain nightly --task 3")]
pub struct ExplainArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Only this task.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    task: Option<i32>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    #[serde(flatten)]
    pub status: StatusView,
    /// Only this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<i32>,
    /// What limits clones and attempts of the job now.
    pub limits: Vec<Reason>,
    /// Newest first.
    pub explained: Vec<Explained>,
}

/// A decision with its reason in words.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    #[serde(flatten)]
    pub decision: DecisionRecord,
    #[serde(flatten)]
    pub reason: Reason,
}

impl Explanation {
    /// Explains a job, or one task of it.
    pub fn new(mut status: StatusView, task: Option<i32>) -> Self {
        let is_asked = |of: i32| task.is_none_or(|task| task == of);
        if let Some(record) = &mut status.record {
            record.attempts.retain(|attempt| is_asked(attempt.task));
        }
        let named = |reason: Reason| reason.map(|text| fields::named(status.job.kind, &text));
        let limits = settings::limits(&status.job, status.record.as_ref());
        let limits = limits.into_iter().map(named).collect();
        let decisions = status.record.iter();
        let decisions = decisions.flat_map(|record| record.decisions.iter().rev());
        let decisions = decisions.filter(|decision| is_asked(decision.task));
        let explained = decisions.map(|decision| Explained {
            decision: decision.clone(),
            reason: named(reasons::of(decision)),
        });
        let explained = explained.collect();
        Self {
            status,
            task,
            limits,
            explained,
        }
    }
}

pub async fn run(args: ExplainArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let read = async || {
        let status = StatusView::read(&session, &args.job.job).await?;
        let tasks = status.job.spec.completions;
        if let Some(task) = args.task.filter(|task| *task >= tasks) {
            anyhow::bail!("--task {task}: the job has the tasks 0 to {}", tasks - 1);
        }
        Ok(Explanation::new(status, args.task))
    };
    let is_last = |explanation: &Explanation| explanation.status.is_last();
    output::show(&args.job.show, read, is_last, text::render).await
}
