//! `top`: unfinished jobs by risk.

#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use shed::api::DEADLINE_AT_RISK;
use shed::leader_api::answers::{JobList, JobSummary, RiskSummary, ShareSummary};

use crate::connection::{Connection, Session};
use crate::model::{JobView, is_end, probability};
use crate::output::{self, ShowArgs};
use crate::{jobs, leader, watched};

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

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopView {
    pub jobs: Vec<JobSummary>,
    /// The division of capacity between namespaces, as the leader has it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareSummary>,
    /// Whether rows name their namespace.
    #[serde(skip)]
    pub has_namespaces: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl From<JobView> for JobSummary {
    fn from(job: JobView) -> Self {
        let risk = job.condition(DEADLINE_AT_RISK);
        let risk = risk.map(|condition| RiskSummary {
            cause: condition.reason.clone().into(),
            ..RiskSummary::default()
        });
        let waiting = job.record().and_then(|record| record.waiting);
        let waiting = waiting.map_or(0, |waiting| waiting.tasks.unsigned_abs());
        Self {
            phase: job.phase().to_owned(),
            slack_seconds: job.slack(),
            pocd: job.pocd(),
            deadline: job.status.deadline,
            completion_time: job.status.completion_time,
            estimated_completion_time: job.status.estimated_completion_time,
            calibrated: probability(job.status.calibrated_pocd.as_deref()),
            tasks: job.spec.completions,
            succeeded: job.status.succeeded,
            active: job.status.active,
            clones: job.status.clones,
            waiting,
            risk,
            namespace: job.namespace.into(),
            name: job.name.into(),
            kind: job.kind.into(),
        }
    }
}

/// Unfinished jobs: the lowest PoCD first, then those without one, and of equals the earliest deadline first.
pub fn by_risk(mut jobs: Vec<JobSummary>) -> Vec<JobSummary> {
    jobs.retain(|job| !is_end(&job.phase));
    jobs.sort_by(|a, b| {
        let pocd = |job: &JobSummary| (job.pocd.is_none(), job.pocd);
        let deadline =
            |job: &JobSummary| job.deadline.as_ref().map_or(Timestamp::MAX, |time| time.0);
        let order = (pocd(a), deadline(a)).cmp(&(pocd(b), deadline(b)));
        order.then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
    jobs
}

pub async fn run(args: TopArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let read = async || match args.all_namespaces {
        true => everywhere(&session).await,
        false => own_namespace(&session).await,
    };
    output::show(&args.show, read, |_| false, text::render).await
}

/// The jobs of the user's namespace, also those that shed only watches there.
async fn own_namespace(session: &Session) -> anyhow::Result<TopView> {
    let mut jobs = jobs::list(&session.client, Some(&session.namespace)).await?;
    let mut notes = Vec::new();
    match watched::unfinished(session).await {
        Ok(watched) => {
            let note = "shed only watches the Jobs here that the built-in controller runs.";
            notes.extend(watched.first().map(|_| note.to_owned()));
            jobs.extend(watched);
        }
        Err(error) => notes.push(format!(
            "Without the Jobs that shed only watches: {error:#}."
        )),
    }
    Ok(TopView {
        jobs: by_risk(jobs.into_iter().map(JobSummary::from).collect()),
        notes,
        ..TopView::default()
    })
}

async fn listed(session: &Session, namespace: Option<&str>) -> anyhow::Result<Vec<JobSummary>> {
    let jobs = jobs::list(&session.client, namespace).await?;
    Ok(by_risk(jobs.into_iter().map(JobSummary::from).collect()))
}

async fn from_leader(session: &Session) -> anyhow::Result<(Vec<JobSummary>, Vec<ShareSummary>)> {
    let mut path = "/v1/jobs".to_owned();
    let (mut jobs, mut shares) = (Vec::new(), Vec::new());
    loop {
        let page: JobList = leader::get(session, &path).await?;
        jobs.extend(page.jobs);
        shares.extend(page.shares);
        match page.next {
            Some(next) => path = format!("/v1/jobs?continue={next}"),
            None => return Ok((jobs, shares)),
        }
    }
}

/// From the leader; without the right to it, from the apiserver; without that right, the user's own namespace.
async fn everywhere(session: &Session) -> anyhow::Result<TopView> {
    let (mut notes, mut shares) = (Vec::new(), Vec::new());
    let jobs = match from_leader(session).await {
        Ok((jobs, divided)) => {
            shares = divided;
            by_risk(jobs)
        }
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
        shares,
        has_namespaces: true,
        notes,
    })
}
