//! Jobs by risk, from the watched objects and the planner's last reports.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::Serialize;
use shed_core::ids::JobKey;
use shed_core::plan::JobReport;
use shed_core::risk::{Risk, RiskCause};
use shed_core::time::Instant;

use super::query::{Query, decoded};
use super::{Refusal, Scope, record};
use crate::api::{self, DeadlineJob, DeadlineJobStatus, JobRecord, Pocd, reason};
use crate::clock;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::cluster::{Rest, Skeleton, job_version};
use crate::context::Context;
use crate::job::view;

/// Begins the place of a job that has ended.
const ENDED: char = '@';
/// Jobs of a page, unless the question sets a lower limit.
const PAGE: u32 = 500;

/// One job as people list it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSummary {
    namespace: Arc<str>,
    name: Arc<str>,
    kind: &'static str,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
    /// When it ended; absent for unfinished jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_time: Option<Time>,
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
pub struct JobDetail {
    #[serde(flatten)]
    summary: JobSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<JobRecord>,
}

/// A page of the list.
#[derive(Debug, Serialize)]
pub struct List {
    time: Time,
    /// Jobs in all, on this page or another one.
    total: usize,
    jobs: Vec<JobSummary>,
    /// The parameter of the next page.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The part of the list that is wanted.
#[derive(Debug)]
pub struct Page {
    limit: usize,
    after: Option<Rank>,
    has_ended: bool,
}

/// The place of a job in the list: the lowest PoCD first, then jobs without one, then those that ended last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rank {
    /// Milliseconds since the epoch, of a job that has ended.
    ended: Option<Reverse<i64>>,
    pocd: Option<Pocd>,
    namespace: Arc<str>,
    name: Arc<str>,
    kind: &'static str,
}

impl Rank {
    fn of(job: &JobSummary) -> Self {
        let ended = job.completion_time.as_ref();
        Self {
            ended: ended.map(|time| Reverse(clock::instant(time).0)),
            pocd: job.pocd,
            namespace: Arc::clone(&job.namespace),
            name: Arc::clone(&job.name),
            kind: job.kind,
        }
    }

    fn text(&self) -> String {
        let pocd = || self.pocd.map_or_else(String::new, |pocd| pocd.to_string());
        let first = match self.ended {
            Some(Reverse(ended)) => format!("{ENDED}{ended}"),
            None => pocd(),
        };
        format!("{first}/{}/{}/{}", self.namespace, self.name, self.kind)
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [first, namespace, name, kind] = *parts.as_slice() else {
            return None;
        };
        let (ended, pocd) = match first.strip_prefix(ENDED) {
            Some(ended) => (Some(Reverse(ended.parse().ok()?)), None),
            None if first.is_empty() => (None, None),
            None => (None, Some(Pocd::nearest(first.parse().ok()?))),
        };
        let kinds = [OwnerKind::DeadlineJob, OwnerKind::Job].map(kind_name);
        Some(Self {
            ended,
            pocd,
            namespace: namespace.into(),
            name: name.into(),
            kind: kinds.into_iter().find(|known| *known == kind)?,
        })
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        // Those that have not ended come first, and among them those with a PoCD.
        let key = |rank: &Self| {
            let pocd = rank.pocd.filter(|_| rank.ended.is_none());
            (rank.ended, pocd.is_none(), pocd)
        };
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
    /// The parameters `limit` and `continue`.
    pub fn of(mut query: Query) -> Result<Self, Refusal> {
        let page = Self::take(&mut query)?;
        query.none_left(&["limit", "continue"])?;
        Ok(page)
    }

    /// The same with the parameter `ended`, for lists with the jobs that have ended.
    pub fn with_ended(mut query: Query) -> Result<Self, Refusal> {
        let has_ended = query.take_flag("ended")?;
        let page = Self::take(&mut query)?;
        query.none_left(&["limit", "continue", "ended"])?;
        Ok(Self { has_ended, ..page })
    }

    /// The first page of the unfinished jobs.
    pub fn first() -> Self {
        Self {
            limit: PAGE as usize,
            after: None,
            has_ended: false,
        }
    }

    fn take(query: &mut Query) -> Result<Self, Refusal> {
        let limit = query.take_number("limit", PAGE)?.unwrap_or(PAGE);
        let after = match query.take("continue") {
            None => None,
            Some(text) => Some(Rank::read(&text).ok_or_else(|| {
                Refusal::bad(format!(
                    "continue={text}: use the value that the page before has, or leave it out"
                ))
            })?),
        };
        Ok(Self {
            limit: limit as usize,
            after,
            has_ended: false,
        })
    }
}

/// A page of the jobs in these namespaces.
pub fn list(context: &Context, page: &Page, scope: &Scope) -> List {
    let live = context.stores.live();
    let live = live.iter().filter(|job| is_in(scope, &job.metadata));
    let jobs = live.map(|job| summary(context, &newest(context, job)));
    let mut jobs: Vec<JobSummary> = jobs.collect();
    if page.has_ended {
        let ended = context.stores.skeletons();
        let ended = ended.iter().filter(|job| is_in(scope, &job.metadata));
        jobs.extend(ended.filter_map(|job| ended_summary(job)));
    }
    let total = jobs.len();
    if let Some(after) = &page.after {
        jobs.retain(|job| Rank::of(job) > *after);
    }
    jobs.sort_by_cached_key(Rank::of);
    let has_more = jobs.len() > page.limit;
    jobs.truncate(page.limit);
    let last = jobs.last().filter(|_| has_more);
    List {
        time: clock::time(context.clock.now()),
        total,
        next: last.map(|job| Rank::of(job).text()),
        jobs,
    }
}

fn is_in(scope: &Scope, metadata: &ObjectMeta) -> bool {
    scope.has(metadata.namespace.as_deref().unwrap_or_default())
}

/// The job that a question names.
#[derive(Debug)]
pub struct Wanted {
    namespace: String,
    name: String,
    kind: Option<OwnerKind>,
}

impl Wanted {
    /// `kind` tells a DeadlineJob from a Job of the same name.
    pub fn of(namespace: &str, name: &str, mut query: Query) -> Result<Self, Refusal> {
        let wanted = Self::take(namespace, name, &mut query)?;
        query.none_left(&["kind"])?;
        Ok(wanted)
    }

    /// The same, for paths with more parameters.
    pub fn take(namespace: &str, name: &str, query: &mut Query) -> Result<Self, Refusal> {
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

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The watched object. A Job's companion is found by the Job's name and by its own.
    pub fn find(&self, context: &Context) -> Result<Arc<DeadlineJob>, Refusal> {
        let live = context.stores.live();
        let here = live.into_iter();
        let here = here.filter_map(|job| Some((self.kind_of(job.meta())?, job)));
        let found = here.min_by_key(|(kind, _)| *kind);
        found.map(|(_, job)| job).ok_or_else(|| {
            Refusal::not_found(format!(
                "shed runs no job {}/{} now: check the namespace and the name; the status of a job that has ended or \
                 is suspended has its record",
                self.namespace, self.name
            ))
        })
    }

    /// What is kept of the job, if it has ended.
    pub fn find_ended(&self, context: &Context) -> Option<Arc<Skeleton>> {
        let ended = context.stores.skeletons().into_iter();
        let ended = ended.filter(|job| matches!(job.rest, Rest::Finished(_)));
        let ended = ended.filter_map(|job| Some((self.kind_of(&job.metadata)?, job)));
        // Of two Jobs of the same name, one after the other, the later one is meant.
        let order = |(kind, job): &(OwnerKind, Arc<Skeleton>)| {
            (*kind, Reverse(job.metadata.creation_timestamp.clone()))
        };
        ended.min_by_key(order).map(|(_, job)| job)
    }

    /// The kind of the job with this metadata, if it is the wanted one.
    fn kind_of(&self, metadata: &ObjectMeta) -> Option<OwnerKind> {
        let is_here = metadata.namespace.as_deref() == Some(&*self.namespace);
        let owner = is_here.then(|| Owner::of(metadata))?;
        let is_named = *owner.name == *self.name || metadata.name.as_deref() == Some(&*self.name);
        let is_wanted = is_named && self.kind.is_none_or(|kind| kind == owner.kind);
        is_wanted.then_some(owner.kind)
    }
}

/// One job with its record.
pub fn one(context: &Context, wanted: &Wanted) -> Result<JobDetail, Refusal> {
    let job = newest(context, &wanted.find(context)?);
    Ok(JobDetail {
        summary: summary(context, &job),
        record: record::of(context, &job),
    })
}

/// One job that has ended, with the record of its status and what its pods still show.
pub fn one_ended(context: &Context, job: &DeadlineJob) -> JobDetail {
    let status = job.status.as_ref();
    let ended = status.and_then(|status| status.completion_time.clone());
    let ledger = status.and_then(|status| status.ledger.as_ref());
    let ended = ended.or_else(|| ledger?.ended.map(clock::time));
    JobDetail {
        summary: JobSummary {
            completion_time: ended,
            ..summary(context, job)
        },
        record: record::of_ended(context, job),
    }
}

/// The job as the watch shows it, or as the last own write left it.
fn newest(context: &Context, watched: &Arc<DeadlineJob>) -> Arc<DeadlineJob> {
    let own = context.memos.peek(uid(watched), |memo| memo.newest.clone());
    let own = own.flatten();
    let own = own.filter(|own| job_version(own) > job_version(watched));
    own.unwrap_or_else(|| Arc::clone(watched))
}

/// The uid of a job.
pub fn uid(job: &DeadlineJob) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

/// The namespace and the name by which users know the job of this key.
pub fn names(context: &Context, key: &JobKey) -> Option<(Arc<str>, Arc<str>)> {
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

/// The cause as in JSON. The planner does not tell tasks that have not started from slow ones; the conditions do.
fn cause_name(status: &DeadlineJobStatus, cause: RiskCause) -> &'static str {
    let mut conditions = status.conditions.iter();
    let stated = conditions.find(|one| one.type_ == api::DEADLINE_AT_RISK && one.status == "True");
    if stated.is_some_and(|one| one.reason == reason::ATTEMPTS_NOT_STARTED) {
        return "NotStarted";
    }
    match cause {
        RiskCause::Failed => "Failed",
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
        completion_time: None,
        estimated_completion_time: report.completion.map(clock::time),
        slack_seconds: slack.map(|(deadline, end)| deadline.since(end).0.div_euclid(1000)),
        tasks: job.spec.completions,
        succeeded: status.succeeded,
        active: status.active,
        clones: status.clones,
        waiting: report.waiting,
        risk: report.risk.map(|risk| RiskSummary {
            cause: cause_name(status, risk.cause),
            task: risk
                .task
                .map(|task| ledger.map_or(task.0, |ledger| ledger.task_of(task.0))),
            node: risk.node.map(|node| node.0),
        }),
    }
}

/// The job as a list shows it, if it has ended; only this much is kept of it.
fn ended_summary(job: &Skeleton) -> Option<JobSummary> {
    let Rest::Finished(finished) = &job.rest else {
        return None;
    };
    let owner = Owner::of(&job.metadata);
    let phase = if finished.is_complete {
        "Complete"
    } else {
        "Failed"
    };
    Some(JobSummary {
        kind: kind_name(owner.kind),
        namespace: owner.namespace,
        name: owner.name,
        phase: phase.to_owned(),
        deadline: finished.deadline.map(clock::time),
        completion_time: Some(clock::time(finished.ended.unwrap_or(Instant(0)))),
        pocd: None,
        calibrated: None,
        estimated_completion_time: None,
        slack_seconds: None,
        tasks: finished.tasks,
        succeeded: finished.succeeded,
        active: 0,
        clones: 0,
        waiting: 0,
        risk: None,
    })
}

/// The figures of a report that a list shows.
#[derive(Debug, Default)]
struct Figures {
    pocd: Option<Pocd>,
    completion: Option<Instant>,
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
