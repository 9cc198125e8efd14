//! `top`: unfinished jobs by risk.

#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use shed::api::DEADLINE_AT_RISK;

use crate::connection::{Connection, Session};
use crate::model::JobView;
use crate::output::{self, ShowArgs};
use crate::{jobs, leader};

/// List unfinished jobs, those most likely to miss their deadline first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The jobs of your namespace, again every 2 s
  kubectl shed top --watch
  # The jobs of all namespaces
  kubectl shed top -A

With -A it asks the leading operator, which takes the right to create pods/portforward and to get leases in shed's
namespace. Without these rights it lists the DeadlineJobs that you may read.")]
pub struct TopArgs {
    /// Jobs of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// Jobs by risk.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopView {
    pub jobs: Vec<TopJob>,
    /// Whether rows name their namespace.
    #[serde(skip)]
    pub has_namespaces: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One job, as the leader's listener serves it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopJob {
    pub namespace: String,
    pub name: String,
    pub kind: String,
    pub phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When it ended; absent for unfinished jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_completion_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pocd: Option<String>,
    #[serde(rename = "calibratedPoCD", skip_serializing_if = "Option::is_none")]
    pub calibrated_pocd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack_seconds: Option<f64>,
    pub tasks: i64,
    pub succeeded: i64,
    pub active: i64,
    pub clones: i64,
    pub waiting: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
}

/// Why a job is at risk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Risk {
    pub cause: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// A page of the leader's answer.
#[derive(Debug, Deserialize)]
pub struct JobsAnswer {
    jobs: Vec<TopJob>,
    /// The parameter of the next page.
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl From<JobView> for TopJob {
    fn from(job: JobView) -> Self {
        let risk = job.condition(DEADLINE_AT_RISK);
        let risk = risk.map(|condition| Risk {
            cause: condition.reason.clone(),
            ..Risk::default()
        });
        let waiting = job.record().and_then(|record| record.waiting);
        let waiting = waiting.map_or(0, |waiting| waiting.tasks);
        Self {
            phase: job.phase().to_owned(),
            slack_seconds: job.slack().map(|slack| slack as f64),
            deadline: job.status.deadline,
            completion_time: job.status.completion_time,
            estimated_completion_time: job.status.estimated_completion_time,
            pocd: job.status.pocd,
            calibrated_pocd: job.status.calibrated_pocd,
            tasks: job.spec.completions.into(),
            succeeded: job.status.succeeded.into(),
            active: job.status.active.into(),
            clones: job.status.clones.into(),
            waiting: waiting.into(),
            risk,
            namespace: job.namespace,
            name: job.name,
            kind: job.kind.to_owned(),
        }
    }
}

impl TopJob {
    pub fn is_finished(&self) -> bool {
        matches!(self.phase.as_str(), "Complete" | "Failed")
    }

    fn pocd(&self) -> Option<f64> {
        self.pocd.as_ref()?.parse().ok()
    }
}

/// Unfinished jobs: the lowest PoCD first, then those without one, and of equals the earliest deadline first.
pub fn by_risk(mut jobs: Vec<TopJob>) -> Vec<TopJob> {
    jobs.retain(|job| !job.is_finished());
    jobs.sort_by(|a, b| {
        let pocd = |job: &TopJob| job.pocd().unwrap_or(2.0);
        let deadline = |job: &TopJob| job.deadline.as_ref().map_or(Timestamp::MAX, |time| time.0);
        let order = pocd(a)
            .total_cmp(&pocd(b))
            .then(deadline(a).cmp(&deadline(b)));
        order.then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
    jobs
}

/// Prints the jobs.
pub async fn run(args: TopArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let read = async || match args.all_namespaces {
        true => everywhere(&session).await,
        false => Ok(TopView {
            jobs: listed(&session, Some(&session.namespace)).await?,
            ..TopView::default()
        }),
    };
    output::show(&args.show, read, |_| false, text::render).await
}

async fn listed(session: &Session, namespace: Option<&str>) -> anyhow::Result<Vec<TopJob>> {
    let jobs = jobs::list(&session.client, namespace).await?;
    Ok(by_risk(jobs.into_iter().map(TopJob::from).collect()))
}

async fn from_leader(session: &Session) -> anyhow::Result<Vec<TopJob>> {
    let (mut jobs, mut path) = (Vec::new(), "/v1/jobs".to_owned());
    loop {
        let page: JobsAnswer = leader::get(session, &path).await?;
        jobs.extend(page.jobs);
        match page.next {
            Some(next) => path = format!("/v1/jobs?continue={next}"),
            None => return Ok(jobs),
        }
    }
}

/// From the leader; without the right to it, from the apiserver; without that right, the user's own namespace.
async fn everywhere(session: &Session) -> anyhow::Result<TopView> {
    let mut notes = Vec::new();
    let jobs = match from_leader(session).await {
        Ok(answer) => by_risk(answer),
        Err(error) => {
            notes.push(format!(
                "From the status of DeadlineJobs, not from the operator: {error:#}."
            ));
            match listed(session, None).await {
                Ok(jobs) => jobs,
                Err(all) => {
                    let namespace = &session.namespace;
                    notes.push(format!(
                        "Only namespace {namespace}: you may not list deadlinejobs.shed.dev in all namespaces."
                    ));
                    // The error about all namespaces tells more than the one about the last resort.
                    listed(session, Some(namespace)).await.map_err(|_| all)?
                }
            }
        }
    };
    Ok(TopView {
        jobs,
        has_namespaces: true,
        notes,
    })
}
