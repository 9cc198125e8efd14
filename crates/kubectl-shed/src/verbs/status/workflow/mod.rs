//! `status workflow/NAME`: the stages of a workflow's run, and whether the whole run is in time.

#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use serde::Serialize;
use shed::api::{ANNOTATION_WORKFLOW, ANNOTATION_WORKFLOW_DEADLINE, Pocd, StageOverrun};
use shed::validate::Workflow;

use crate::connection::{Connection, Session};
use crate::jobs::{self, LenientJob};
use crate::model::JobView;
use crate::output::{self, ShowArgs};
use crate::watched;

/// A run, by the jobs that still exist.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkflowView {
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// Whether a stage that is marked as the last one is complete, and no other is open.
    is_complete: bool,
    /// Whether a job specifies a deadline of the run.
    has_deadline: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
    /// When its last stage ended, or when it should end.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slack_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pocd: Option<Pocd>,
    /// The stage that exceeds its usual time most.
    #[serde(skip_serializing_if = "Option::is_none")]
    overrun: Option<StageOverrun>,
    /// In the order in which they were created.
    stages: Vec<StageView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A job of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct StageView {
    /// Its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    kind: &'static str,
    name: String,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_completion_time: Option<Time>,
}

/// A job that has the annotation of a run.
struct StageJob {
    created: Option<Timestamp>,
    run: Option<Workflow>,
    has_deadline: bool,
    job: JobView,
}

impl StageJob {
    /// The job with the metadata of the object that has its annotations.
    fn new(metadata: &ObjectMeta, job: JobView) -> Self {
        let annotations = metadata.annotations.as_ref();
        Self {
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            run: Workflow::read(annotations).ok().flatten(),
            has_deadline: annotations
                .is_some_and(|all| all.contains_key(ANNOTATION_WORKFLOW_DEADLINE)),
            job,
        }
    }

    fn is_open(&self) -> bool {
        !self.job.is_finished()
    }

    /// When it was complete, or failed.
    fn end(&self) -> Option<Time> {
        let failed = self
            .job
            .condition("Failed")
            .map(|it| it.last_transition_time.clone());
        self.job.status.completion_time.clone().or(failed)
    }

    fn view(&self) -> StageView {
        let JobView {
            class,
            kind,
            name,
            status,
            ..
        } = &self.job;
        let estimate = status.estimated_completion_time.clone();
        StageView {
            stage: class.clone(),
            kind,
            name: name.clone(),
            phase: self.job.phase().to_owned(),
            start_time: status.start_time.clone(),
            end_time: self.end(),
            estimated_completion_time: estimate.filter(|_| self.is_open()),
        }
    }
}

/// The run that an object names.
fn run_of(metadata: &ObjectMeta) -> Option<&str> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(ANNOTATION_WORKFLOW).map(|run| run.trim())
}

pub async fn show(run: &str, args: &ShowArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let read = async || read(&session, run).await;
    output::show(args, read, |view| view.is_complete, text::render).await
}

async fn read(session: &Session, run: &str) -> anyhow::Result<WorkflowView> {
    let own = jobs::list_lenient(&session.client, Some(&session.namespace)).await?;
    // A user may have the right to read DeadlineJobs alone, which include the companions of Jobs.
    let (all, problem) = match watched::list(session).await {
        Ok(jobs) => (jobs, None),
        Err(error) => (
            Vec::new(),
            Some(format!(
                "Jobs that shed does not run are missing: {error:#}."
            )),
        ),
    };
    let mut view = view(run, own, &all, Timestamp::now())
        .map_err(|names| no_job(run, &session.namespace, &names))?;
    view.notes.extend(problem);
    Ok(view)
}

fn no_job(run: &str, namespace: &str, names: &[String]) -> anyhow::Error {
    let hint = jobs::hint(run, names);
    anyhow::anyhow!(
        "no job in namespace {namespace} has the annotation {ANNOTATION_WORKFLOW}: {run}; {hint}"
    )
}

/// The run by the jobs of its namespace. Without one of its jobs it returns the names of the other runs.
fn view(
    run: &str,
    own: Vec<LenientJob>,
    all: &[Job],
    now: Timestamp,
) -> Result<WorkflowView, Vec<String>> {
    let is_of_run = |metadata: &ObjectMeta| run_of(metadata) == Some(run);
    let names = own
        .iter()
        .map(|job| &job.metadata)
        .chain(all.iter().map(|job| &job.metadata));
    let mut names: Vec<String> = names.filter_map(run_of).map(str::to_owned).collect();
    let own = own.into_iter().filter(|job| is_of_run(&job.metadata));
    let mut stages: Vec<StageJob> = own
        .map(|job| StageJob::new(&job.metadata.clone(), jobs::view(job)))
        .collect();
    let is_run = |job: &Job| {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        stages.iter().any(|stage| stage.job.uid == uid)
    };
    let others = all
        .iter()
        .filter(|job| is_of_run(&job.metadata) && !is_run(job));
    let others =
        others.filter_map(|job| Some(StageJob::new(&job.metadata, watched::view(job, all, now)?)));
    let others: Vec<StageJob> = others.collect();
    let foreign: Vec<&str> = others.iter().map(|stage| &*stage.job.name).collect();
    let notes = match foreign.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "shed does not run {}. `kubectl shed status job/<name>` shows why.",
            foreign.join(", ")
        )],
    };
    stages.extend(others);
    if stages.is_empty() {
        names.sort_unstable();
        names.dedup();
        return Err(names);
    }
    stages.sort_by(|a, b| (a.created, &a.job.name).cmp(&(b.created, &b.job.name)));
    Ok(WorkflowView {
        notes,
        ..of_stages(run, &stages)
    })
}

/// What the statuses of the stages, which are in the order of their creation, tell of the run.
fn of_stages(run: &str, stages: &[StageJob]) -> WorkflowView {
    let is_open = stages.iter().any(StageJob::is_open);
    // Of stages at the same time the one most at risk, and between two stages the one that was created last.
    let mut known = stages.iter().filter_map(|stage| {
        let known = stage.job.status.workflow.as_ref();
        Some((stage, known.filter(|it| it.run == run)?))
    });
    let open = known.clone().filter(|(stage, _)| stage.is_open());
    let open = open.min_by(|(_, a), (_, b)| {
        let chance = |pocd: Option<Pocd>| pocd.map_or(1.0, Pocd::value);
        chance(a.pocd).total_cmp(&chance(b.pocd))
    });
    let known = open.or(known.next_back()).map(|(_, known)| known);
    let marked = stages
        .iter()
        .filter(|stage| stage.run.as_ref().is_some_and(|run| run.is_last));
    let is_complete = !is_open
        && marked
            .into_iter()
            .any(|stage| stage.job.phase() == "Complete");
    let last_end = stages.iter().filter_map(StageJob::end).max();
    let estimate = known.and_then(|known| known.estimated_completion_time.clone());
    let end = match is_complete {
        true => last_end,
        false => estimate.max(last_end.filter(|_| !is_open)),
    };
    let deadline = known.map(|known| known.deadline.clone());
    let slack = deadline.as_ref().zip(end.as_ref());
    WorkflowView {
        namespace: stages
            .first()
            .map(|stage| stage.job.namespace.clone())
            .unwrap_or_default(),
        name: run.to_owned(),
        class: stages
            .iter()
            .find_map(|stage| Some(stage.run.as_ref()?.class.to_string())),
        is_complete,
        has_deadline: stages.iter().any(|stage| stage.has_deadline),
        slack_seconds: slack.map(|(deadline, end)| deadline.0.as_second() - end.0.as_second()),
        deadline,
        end,
        pocd: known.and_then(|known| known.pocd).filter(|_| !is_complete),
        overrun: known.and_then(|known| known.overrun.clone()),
        stages: stages.iter().map(StageJob::view).collect(),
        notes: Vec::new(),
    }
}
