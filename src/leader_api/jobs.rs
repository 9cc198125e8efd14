//! Jobs by risk, from the watched objects and the planner's last reports.

use std::cmp::Ordering;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use serde::Serialize;
use shed_core::ids::JobKey;
use shed_core::plan::JobReport;
use shed_core::risk::{Risk, RiskCause};

use super::Refusal;
use super::query::{Query, decoded};
use crate::api::{DeadlineJob, DeadlineJobStatus, JobRecord, Pocd};
use crate::clock;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::cluster::job_version;
use crate::context::Context;
use crate::job::view;

/// Jobs of a page, unless the question sets a lower limit.
const PAGE: u32 = 500;

/// One job as people list it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobSummary {
    namespace: Arc<str>,
    name: Arc<str>,
    kind: &'static str,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pocd: Option<Pocd>,
    #[serde(rename = "calibratedPoCD", skip_serializing_if = "Option::is_none")]
    calibrated: Option<Pocd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_completion_time: Option<Time>,
    /// From the estimated completion to the deadline; negative if the job is expected to be late.
    #[serde(skip_serializing_if = "Option::is_none")]
    slack_seconds: Option<i64>,
    tasks: i32,
    succeeded: i32,
    active: i32,
    clones: i32,
    waiting: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<RiskSummary>,
}

#[derive(Debug, Serialize)]
struct RiskSummary {
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Arc<str>>,
}

/// One job with its record.
#[derive(Debug, Serialize)]
pub(super) struct JobDetail {
    #[serde(flatten)]
    summary: JobSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<JobRecord>,
}

/// A page of the list.
#[derive(Debug, Serialize)]
pub(super) struct List {
    time: Time,
    /// Unfinished jobs in all.
    total: usize,
    jobs: Vec<JobSummary>,
    /// The parameter of the next page.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The part of the list that is wanted.
#[derive(Debug)]
pub(super) struct Page {
    limit: usize,
    after: Option<Rank>,
}

/// The place of a job in the list: the lowest PoCD first, then jobs without one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rank {
    pocd: Option<Pocd>,
    namespace: Arc<str>,
    name: Arc<str>,
    kind: &'static str,
}

impl Rank {
    fn of(job: &JobSummary) -> Self {
        Self {
            pocd: job.pocd,
            namespace: Arc::clone(&job.namespace),
            name: Arc::clone(&job.name),
            kind: job.kind,
        }
    }

    fn text(&self) -> String {
        let pocd = self.pocd.map_or_else(String::new, |pocd| pocd.to_string());
        format!("{pocd}/{}/{}/{}", self.namespace, self.name, self.kind)
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [pocd, namespace, name, kind] = *parts.as_slice() else {
            return None;
        };
        let pocd = match pocd {
            "" => None,
            pocd => Some(Pocd::nearest(pocd.parse().ok()?)),
        };
        let kinds = [OwnerKind::DeadlineJob, OwnerKind::Job].map(kind_name);
        Some(Self {
            pocd,
            namespace: namespace.into(),
            name: name.into(),
            kind: kinds.into_iter().find(|known| *known == kind)?,
        })
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |rank: &Self| (rank.pocd.is_none(), rank.pocd);
        key(self)
            .cmp(&key(other))
            .then_with(|| self.namespace.cmp(&other.namespace))
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.kind.cmp(other.kind))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Page {
    pub(super) fn of(mut query: Query) -> Result<Self, Refusal> {
        let limit = query.take_number("limit", PAGE)?.unwrap_or(PAGE);
        let after = match query.take("continue") {
            None => None,
            Some(text) => Some(Rank::read(&text).ok_or_else(|| {
                Refusal::bad(format!(
                    "continue={text}: use the value that the page before has, or leave it out"
                ))
            })?),
        };
        query.none_left(&["limit", "continue"])?;
        Ok(Self {
            limit: limit as usize,
            after,
        })
    }
}

/// A page of the unfinished jobs.
pub(super) fn list(context: &Context, page: &Page) -> Result<List, Refusal> {
    let live = context.stores.live();
    let jobs = live
        .iter()
        .map(|job| summary(context, &newest(context, job)));
    let mut jobs: Vec<JobSummary> = jobs.collect();
    let total = jobs.len();
    if let Some(after) = &page.after {
        jobs.retain(|job| Rank::of(job) > *after);
    }
    jobs.sort_by_cached_key(Rank::of);
    let has_more = jobs.len() > page.limit;
    jobs.truncate(page.limit);
    let last = jobs.last().filter(|_| has_more);
    Ok(List {
        time: clock::time(context.clock.now()),
        total,
        next: last.map(|job| Rank::of(job).text()),
        jobs,
    })
}

/// The job that a question names.
#[derive(Debug)]
pub(super) struct Wanted {
    namespace: String,
    name: String,
    kind: Option<OwnerKind>,
}

impl Wanted {
    /// `kind` tells a DeadlineJob from a Job of the same name.
    pub(super) fn of(namespace: &str, name: &str, mut query: Query) -> Result<Self, Refusal> {
        let wanted = Self::take(namespace, name, &mut query)?;
        query.none_left(&["kind"])?;
        Ok(wanted)
    }

    /// The same, for paths with more parameters.
    pub(super) fn take(namespace: &str, name: &str, query: &mut Query) -> Result<Self, Refusal> {
        let kind = match query.take("kind").as_deref() {
            None => None,
            Some("DeadlineJob") => Some(OwnerKind::DeadlineJob),
            Some("Job") => Some(OwnerKind::Job),
            Some(other) => {
                let error = format!("kind={other}: use DeadlineJob or Job");
                return Err(Refusal::bad(error));
            }
        };
        Ok(Self {
            namespace: decoded(namespace)?,
            name: decoded(name)?,
            kind,
        })
    }

    /// The watched object. A Job's companion is found by the Job's name and by its own.
    pub(super) fn find(&self, context: &Context) -> Result<Arc<DeadlineJob>, Refusal> {
        let live = context.stores.live();
        let here = live.into_iter().filter_map(|job| {
            let meta = job.meta();
            let is_here = meta.namespace.as_deref() == Some(&*self.namespace);
            let owner = is_here.then(|| Owner::of(meta))?;
            let is_named = *owner.name == *self.name || meta.name.as_deref() == Some(&*self.name);
            let is_wanted = is_named && self.kind.is_none_or(|kind| kind == owner.kind);
            is_wanted.then_some((owner.kind, job))
        });
        let found = here.min_by_key(|(kind, _)| *kind);
        found.map(|(_, job)| job).ok_or_else(|| {
            Refusal::not_found(format!(
                "shed runs no job {}/{} now: check the namespace and the name; the status of a job that has ended or \
                 is suspended has its record",
                self.namespace, self.name
            ))
        })
    }
}

/// One job with its record.
pub(super) fn one(context: &Context, wanted: &Wanted) -> Result<JobDetail, Refusal> {
    let job = newest(context, &wanted.find(context)?);
    Ok(JobDetail {
        summary: summary(context, &job),
        record: job.status.as_ref().and_then(|status| status.record.clone()),
    })
}

/// The job as the watch shows it, or as the last own write left it.
fn newest(context: &Context, watched: &Arc<DeadlineJob>) -> Arc<DeadlineJob> {
    let own = context.memos.peek(uid(watched), |memo| memo.newest.clone());
    let own = own.flatten();
    let own = own.filter(|own| job_version(own) > job_version(watched));
    own.unwrap_or_else(|| Arc::clone(watched))
}

pub(super) fn uid(job: &DeadlineJob) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

/// The namespace and the name by which users know the job of this key.
pub(super) fn names(context: &Context, key: &JobKey) -> Option<(Arc<str>, Arc<str>)> {
    let job = context.stores.live_job(&key.0)?;
    let owner = Owner::of(job.meta());
    Some((owner.namespace, owner.name))
}

fn kind_name(kind: OwnerKind) -> &'static str {
    match kind {
        OwnerKind::DeadlineJob => "DeadlineJob",
        OwnerKind::Job => "Job",
    }
}

/// The cause as in JSON.
fn cause_name(cause: RiskCause) -> &'static str {
    match cause {
        RiskCause::Waiting => "Waiting",
        RiskCause::Straggler => "Straggler",
        RiskCause::Restarts => "Restarts",
        RiskCause::Silent => "Silent",
        RiskCause::Slow => "Slow",
    }
}

fn summary(context: &Context, job: &DeadlineJob) -> JobSummary {
    let calibrated = context.memos.peek(uid(job), |memo| memo.calibrated);
    let none = DeadlineJobStatus::default();
    let status = job.status.as_ref().unwrap_or(&none);
    let ledger = status.ledger.as_ref();
    let report = context.board.read_report(uid(job), Figures::of);
    let report = report.unwrap_or_default();
    let deadline = view::deadline(job, context.stores.batch());
    let is_ending = ledger.is_some_and(|ledger| ledger.ending.is_some());
    // The status has what became of the deadline.
    let fresh = report.pocd.filter(|_| !is_ending);
    let calibrated = calibrated.flatten().filter(|_| !is_ending);
    let slack = deadline.zip(report.completion.filter(|_| !is_ending));
    let owner = Owner::of(job.meta());
    JobSummary {
        kind: kind_name(owner.kind),
        namespace: owner.namespace,
        name: owner.name,
        phase: status.phase.clone().unwrap_or_else(|| "Pending".to_owned()),
        pocd: deadline.and(fresh.or(status.pocd)),
        calibrated: deadline.and(calibrated.map(Pocd::nearest).or(status.calibrated_pocd)),
        deadline: deadline.map(clock::time),
        estimated_completion_time: report.completion.map(clock::time),
        slack_seconds: slack.map(|(deadline, end)| deadline.since(end).0.div_euclid(1000)),
        tasks: job.spec.completions,
        succeeded: status.succeeded,
        active: status.active,
        clones: status.clones,
        waiting: report.waiting,
        risk: report.risk.map(|risk| RiskSummary {
            cause: cause_name(risk.cause),
            task: risk
                .task
                .map(|task| ledger.map_or(task.0, |ledger| ledger.task_of(task.0))),
            node: risk.node.map(|node| node.0),
        }),
    }
}

/// The figures of a report that a list shows.
#[derive(Debug, Default)]
struct Figures {
    pocd: Option<Pocd>,
    completion: Option<shed_core::time::Instant>,
    waiting: u32,
    risk: Option<Risk>,
}

impl Figures {
    fn of(report: &JobReport) -> Self {
        Self {
            pocd: report.pocd_after.map(Pocd::nearest),
            completion: report.estimated_completion,
            waiting: report.waiting,
            risk: report.risk.clone(),
        }
    }
}
