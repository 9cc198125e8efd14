//! Jobs by risk, from the watched objects and the planner's last reports.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use kube::Resource;
use serde::{Deserialize, Deserializer, de};
use shed_core::ids::JobKey;
use shed_core::plan::JobReport;
use shed_core::risk::{Risk, RiskCause};
use shed_core::time::Instant;

use super::answers::{JobList, JobSummary, RiskSummary};
use super::shares;
use crate::api::{self, DeadlineJob, DeadlineJobStatus, Pocd, reason};
use crate::clock;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::cluster::job_version;
use crate::context::Context;
use crate::job::view;

/// Jobs of a page, unless the question sets a lower limit.
const PAGE: u32 = 500;

/// The part of the list that is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    #[serde(default = "whole_page", deserialize_with = "limit")]
    limit: usize,
    #[serde(default, rename = "continue", deserialize_with = "rank")]
    after: Option<Rank>,
}

fn whole_page() -> usize {
    PAGE as usize
}

fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let text = String::deserialize(from)?;
    let limit = api::parse_whole(&text, PAGE);
    let limit = limit.map_err(|why| de::Error::custom(format!("{text}: {why}")))?;
    Ok(limit as usize)
}

fn rank<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rank>, D::Error> {
    let text = String::deserialize(from)?;
    let rank = Rank::read(&text);
    let fix = "use the value that the page before has, or leave it out";
    rank.map(Some)
        .ok_or_else(|| de::Error::custom(format!("{text}: {fix}")))
}

/// The place of a job in the list: the lowest PoCD first, then jobs without one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rank {
    pocd: Option<Pocd>,
    namespace: Arc<str>,
    name: Arc<str>,
    kind: Cow<'static, str>,
}

impl Rank {
    fn of(job: &JobSummary) -> Self {
        Self {
            pocd: job.pocd,
            namespace: Arc::clone(&job.namespace),
            name: Arc::clone(&job.name),
            kind: job.kind.clone(),
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
            kind: kinds.into_iter().find(|known| *known == kind)?.into(),
        })
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        fn key(rank: &Rank) -> (bool, Option<Pocd>, &str, &str, &str) {
            let Rank {
                pocd,
                namespace,
                name,
                kind,
            } = rank;
            (pocd.is_none(), *pocd, namespace, name, kind)
        }
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A page of the unfinished jobs.
pub fn list(context: &Context, page: &Page) -> JobList {
    let live = context.stores.jobs.live();
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
    JobList {
        time: Some(clock::time(context.clock.now())),
        total,
        shares: match page.after {
            None => shares::list(context, page.limit),
            Some(_) => Vec::new(),
        },
        next: last.map(|job| Rank::of(job).text()),
        jobs,
    }
}

/// The job as the watch shows it, or as the last own write left it.
fn newest(context: &Context, watched: &Arc<DeadlineJob>) -> Arc<DeadlineJob> {
    let own = context
        .job_memories
        .peek(uid(watched), |memory| memory.planned.newest.clone());
    let own = own.flatten();
    let own = own.filter(|own| job_version(own) > job_version(watched));
    own.unwrap_or_else(|| Arc::clone(watched))
}

fn uid(job: &DeadlineJob) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

/// The name by which users know the job of this key.
pub fn name(context: &Context, key: &JobKey) -> Option<Arc<str>> {
    let job = context.stores.jobs.live_job(&key.0)?;
    Some(Owner::of(job.meta()).name)
}

fn kind_name(kind: OwnerKind) -> &'static str {
    match kind {
        OwnerKind::DeadlineJob => "DeadlineJob",
        OwnerKind::Job => "Job",
    }
}

/// The cause as in JSON. The planner does not distinguish tasks that have not started from slow ones; the conditions do.
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
    let calibrated = context
        .job_memories
        .peek(uid(job), |memory| memory.calibrated);
    let none = DeadlineJobStatus::default();
    let status = job.status.as_ref().unwrap_or(&none);
    let ledger = status.ledger.as_ref();
    let report = context.plan_slices.read_report(uid(job), Figures::of);
    let report = report.unwrap_or_default();
    let deadline = view::deadline(job, context.stores.jobs.batch());
    let is_ending = ledger.is_some_and(|ledger| ledger.ending.is_some());
    // The status has what became of the deadline.
    let fresh = report.pocd.filter(|_| !is_ending);
    let calibrated = calibrated.flatten().filter(|_| !is_ending);
    let slack = deadline.zip(report.completion.filter(|_| !is_ending));
    let owner = Owner::of(job.meta());
    JobSummary {
        kind: kind_name(owner.kind).into(),
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
            cause: cause_name(status, risk.cause).into(),
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
