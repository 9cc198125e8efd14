//! `kubectl shed whatif`: a job's prediction with another deadline or other slots, from the job's own status, record and
//! pods. The planner's code decides on them as if the job were alone.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use serde::Serialize;
use shed::adopt::translate;
use shed::api::{DeadlineJob, JobRecord, Ledger, Pocd};
use shed::job::facts::{self, Reported};
use shed::job::view::JobView as Facts;
use shed::{clock, validate};
use shed_core::snapshot::{Progress, ResumePoint};
use shed_core::time::Instant;

use crate::connection::{Connection, Session};
use crate::jobs;
use crate::model::JobView;
use crate::output::DataArgs;
use crate::pods::{self, SeenPod};
use crate::single_job::{self, Change, SingleJob};
use crate::table::{self, Cell, Column, fixed};
use crate::words;

const ALONE: &str = "\
Computed from this job alone, with the default policy. It does not show what the change does to other jobs.
";

const CUT_SHORT: &str = "\
The work budget of a planning pass ended before the policy was done with the job. Later passes may raise PoCD.
";

/// Predict a job with another deadline, or with other slots
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The same job with a deadline two hours from now
  kubectl shed whatif nightly --deadline 2h

  # The same job if it could use 40 slots
  kubectl shed whatif nightly --slots 40

It computes the prediction from the job alone: its status, the record in it, and its pods. Other jobs keep their slots, and
nothing changes.")]
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
    #[command(flatten)]
    data: DataArgs,
}

/// The predictions without and with the change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    time: Time,
    #[serde(flatten)]
    then: Prediction,
    now: Prediction,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
    /// Slots that the job can use.
    slots: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pocd: Option<Pocd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_completion_time: Option<Time>,
    /// Clones that a planning pass would start now.
    clones: usize,
    /// First attempts and retries that would wait.
    waiting: u32,
    /// Whether the work budget of a planning pass ended before the policy was done with the job.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_cut_short: bool,
}

pub async fn run(args: WhatifArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now();
    let (change, words) = match (&args.deadline, args.slots) {
        (Some(text), _) => {
            let deadline = instant(text, now)?;
            let change = Change::Deadline(clock::instant(&deadline.into()));
            (change, format!("deadline {deadline}"))
        }
        (None, Some(slots)) => (Change::Slots(slots), format!("{slots} slots")),
        (None, None) => bail!("nothing to change: add --deadline or --slots"),
    };
    let session = connection.open().await?;
    let view = jobs::find(&session, &args.job).await?;
    ensure!(
        view.watched.is_none(),
        "shed only watches the Job {}: whatif is about a job that shed runs",
        view.name
    );
    ensure!(
        !view.is_finished(),
        "the job has finished ({}): whatif is about a job that runs",
        view.phase()
    );
    let facts = facts(&session, &view, now).await?;
    let job = SingleJob::new(facts::facts(&facts), slots(&view)?);
    let answer = predict(job, facts.now, change)?;
    args.data.print(&answer, || answer.text(&words, now))
}

/// As many slots as live attempts while tasks wait, and otherwise as many as the job's parallelism.
fn slots(view: &JobView) -> anyhow::Result<u32> {
    let waits = view.record().is_some_and(|record| record.waiting.is_some());
    let wanted = view.spec.parallelism.unwrap_or(view.spec.completions);
    let slots = if waits { 0 } else { wanted }.max(view.status.active);
    Ok(u32::try_from(slots.max(1))?)
}

/// What is known of the job's tasks.
async fn facts(session: &Session, view: &JobView, now: Timestamp) -> anyhow::Result<Facts> {
    let object = view.companion.as_ref().unwrap_or(&view.name);
    let own: Api<DeadlineJob> = Api::namespaced(session.client.clone(), &view.namespace);
    let object = own.get(object).await.context(
        "this program cannot read the job whole: use the kubectl-shed of the operator's version",
    )?;
    let job = match view.companion {
        None => validate::validate(&object),
        Some(_) => {
            let jobs: Api<Job> = Api::namespaced(session.client.clone(), &view.namespace);
            translate::validated(&object, &jobs.get(&view.name).await?)
        }
    };
    let job = job.context("the job's specification is not valid")?;
    let ledger = Ledger::from_status(object.status.as_ref())?;
    let seen = pods::list(&session.client, view).await?;
    let now = clock::instant(&now.into());
    let facts = Facts::new(Arc::new(job), ledger, now, now);
    Ok(observed(facts, view.record(), seen))
}

/// Adds what the pods and the record show.
fn observed(facts: Facts, record: Option<JobRecord>, seen: Vec<SeenPod>) -> Facts {
    let reports = seen.iter().filter_map(|(attempt, pod)| {
        let record = record.as_ref()?;
        let same = |one: &&_| key(one) == key(attempt);
        let reported = record.attempts.iter().find(same)?;
        let first = reported.resumed_from.map_or(0.0, |from| from.value());
        let started = attempt.start_time.as_ref();
        let started = started.or(reported.start_time.as_ref())?;
        let progress = Progress {
            first_at: clock::instant(started),
            first,
            last_at: clock::instant(&record.time),
            last: reported.progress?.value(),
        };
        let checkpoint = reported.resume_point.map(|point| ResumePoint {
            progress: point.value(),
            checkpoint: Arc::from(""),
        });
        let reported = Reported {
            progress,
            checkpoint,
            units: None,
        };
        Some((pod.uid.clone(), reported))
    });
    let reports = reports.collect();
    let nodes = seen.iter().filter_map(|(_, pod)| pod.node.clone());
    let places = single_job::places(nodes);
    let pods = seen.into_iter().filter_map(|(_, pod)| {
        let attempt = pod.attempt.as_ref()?;
        Some(((attempt.task, attempt.number), Arc::new(pod)))
    });
    Facts {
        pods: pods.collect(),
        reports,
        places,
        facts_as_of: facts.now,
        ..facts
    }
}

fn key(attempt: &shed::api::AttemptRecord) -> (i32, i32) {
    (attempt.task, attempt.attempt)
}

fn predict(now: SingleJob, time: Instant, change: Change) -> anyhow::Result<Answer> {
    let then = now.changed(change);
    Ok(Answer {
        time: clock::time(time),
        then: Prediction::of(&then, time)?,
        now: Prediction::of(&now, time)?,
    })
}

impl Prediction {
    fn of(alone: &SingleJob, time: Instant) -> anyhow::Result<Self> {
        let report = alone.report(time)?;
        let deadline = alone.job.deadline;
        Ok(Self {
            deadline: deadline.map(clock::time),
            slots: alone.slots,
            pocd: deadline.and(report.pocd_after).map(Pocd::nearest),
            estimated_completion_time: report.estimated_completion.map(clock::time),
            clones: report.clones.len(),
            waiting: report.waiting,
            is_cut_short: report.is_cut_short,
        })
    }
}

/// An instant, or a duration from now, in whole seconds.
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

const COLUMNS: [Column; 6] = [
    fixed(""),
    fixed("POCD").number(),
    fixed("SLOTS").number(),
    fixed("CLONES").number(),
    fixed("WAITING").number(),
    fixed("ENDS AT"),
];

impl Answer {
    fn text(&self, change: &str, now: Timestamp) -> String {
        let unknown = || "unknown".to_owned();
        let row = |name: &str, prediction: &Prediction| -> Vec<Cell> {
            let end = prediction.estimated_completion_time.as_ref();
            let end = end.map(|end| {
                let (at, relative) = (words::instant(end.0), words::relative(now, end.0));
                format!("{at} ({relative})")
            });
            let pocd = prediction.pocd.map(|pocd| pocd.to_string());
            vec![
                name.into(),
                pocd.unwrap_or_else(unknown).into(),
                prediction.slots.to_string().into(),
                prediction.clones.to_string().into(),
                prediction.waiting.to_string().into(),
                end.unwrap_or_else(unknown).into(),
            ]
        };
        let rows = [row("now", &self.now), row(change, &self.then)];
        let mut text = table::render(&COLUMNS, &rows, usize::MAX, false) + ALONE;
        if self.now.is_cut_short || self.then.is_cut_short {
            text.push_str(CUT_SHORT);
        }
        text
    }
}

#[cfg(test)]
mod tests;
