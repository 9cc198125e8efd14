//! What the page shows: jobs from a watch of the DeadlineJobs, and of an open job its pods and events. All of it is read
//! with the user's own rights.

use std::cmp::Reverse;
use std::time::Duration;

use axum::http::StatusCode;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shed::api::JobRecord;
use shed::leader_api::answers::JobSummary;
use tokio::time::{Instant, timeout};

use crate::access::{self, Access};
use crate::connection::Session;
use crate::events::EventView;
use crate::jobs::{self, LenientJob};
use crate::model::{JobView, is_end};
use crate::record::{self, FoundRecord};
use crate::verbs::explain::{Explained, Explanation};
use crate::verbs::status::StatusView;
use crate::verbs::top::by_risk;

/// Pods and events of the open job are read again after this time.
const DETAIL_LIFE: Duration = Duration::from_secs(6);
/// The first list of the jobs is awaited for this time.
const LIST_PATIENCE: Duration = Duration::from_secs(20);
/// Events of a job that are shown.
const EVENTS_MAX: usize = 50;
/// Events of a job that are read. The apiserver does not sort them.
const EVENTS_READ_MAX: usize = 2000;

/// Why there is no answer.
#[derive(Debug)]
pub struct Unread {
    pub status: StatusCode,
    pub error: String,
}

impl Unread {
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let error = error.into();
        Self { status, error }
    }

    pub fn not_found(error: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }
}

/// The part of the list that is wanted.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct ListQuery {
    limit: usize,
    ended: bool,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            limit: 500,
            ended: false,
        }
    }
}

/// The kind of a job, if its name alone is not enough.
#[derive(Debug, Deserialize)]
pub struct Wanted {
    pub kind: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct List {
    time: Time,
    /// Absent: all.
    namespace: Option<String>,
    /// Jobs in all.
    total: usize,
    /// The first of them.
    jobs: Vec<JobSummary>,
    notes: Vec<String>,
}

/// One job with all that is known of it.
#[derive(Debug, Serialize)]
pub struct Detail {
    time: Time,
    #[serde(flatten)]
    summary: JobSummary,
    record: Option<JobRecord>,
    /// The decisions with their reasons, newest first.
    explained: Vec<Explained>,
    events: Vec<EventView>,
    notes: Vec<String>,
}

/// What was read of the open job.
#[derive(Debug, Clone)]
struct Read {
    at: Instant,
    status: StatusView,
    events: Vec<EventView>,
}

pub struct Source {
    session: Session,
    /// Absent: all namespaces.
    namespace: Option<String>,
    jobs: Store<LenientJob>,
    /// Why the watch of the jobs has no answer now.
    trouble: Mutex<Option<String>>,
    /// One open page is usual. Others wait here.
    open: tokio::sync::Mutex<Option<Read>>,
}

impl Source {
    /// Chooses the namespaces: the one that the user names, otherwise all of them, otherwise that of the kubeconfig.
    pub async fn open(session: Session) -> anyhow::Result<(Self, Writer<LenientJob>)> {
        let own = Some(session.namespace.clone());
        let namespace = match &session.options.namespace {
            Some(_) => own,
            None if may_list(&session, None).await.is_ok() => None,
            None => own,
        };
        may_list(&session, namespace.as_deref()).await?;
        let writer = Writer::new(jobs::resource());
        let source = Self {
            session,
            namespace,
            jobs: writer.as_reader(),
            trouble: Mutex::default(),
            open: tokio::sync::Mutex::default(),
        };
        Ok((source, writer))
    }

    pub fn scope_words(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("the jobs of namespace {namespace}"),
            None => "the jobs of all namespaces".to_owned(),
        }
    }

    /// Follows the jobs without end.
    pub async fn follow(&self, writer: Writer<LenientJob>) {
        let api: Api<LenientJob> =
            jobs::deadline_jobs(&self.session.client, self.namespace.as_deref());
        let changes = watcher(api, watcher::Config::default()).default_backoff();
        let changes = changes.modify(|job| job.metadata.managed_fields = None);
        let mut changes = std::pin::pin!(reflector::reflector(writer, changes));
        while let Some(change) = changes.next().await {
            let trouble = change.err().map(|error| self.explain(error));
            *self.trouble.lock() = trouble;
        }
    }

    fn explain(&self, error: watcher::Error) -> String {
        let access = Access::new("watch", "deadlinejobs.shed.dev", self.namespace.as_deref());
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => format!("{:#}", access.explain(error)),
            other => format!("cannot watch deadlinejobs.shed.dev: {other}"),
        }
    }

    /// A note about the watch, if it has no answer now.
    fn trouble(&self, effect: &str) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.as_ref().map(|why| format!("{effect}: {why}."))
    }

    /// The jobs, once the first list has come.
    async fn ready(&self) -> Result<Vec<JobView>, Unread> {
        let ready = timeout(LIST_PATIENCE, self.jobs.wait_until_ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            let why = self.trouble.lock().clone();
            let why = why.unwrap_or_else(|| "the first list of the jobs takes long".to_owned());
            return Err(Unread::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        let jobs = self.jobs.state().into_iter();
        Ok(jobs.map(|job| jobs::view((*job).clone())).collect())
    }

    /// The first jobs: those most at risk, and then those that ended last.
    pub async fn list(&self, query: &ListQuery) -> Result<List, Unread> {
        let jobs = self.ready().await?.into_iter().map(JobSummary::from);
        let (mut ended, live): (Vec<_>, Vec<_>) = jobs.partition(|job| is_end(&job.phase));
        ended.sort_by_key(|job| {
            let time = job.completion_time.as_ref().map(|time| time.0);
            (Reverse(time), job.namespace.clone(), job.name.clone())
        });
        let mut jobs = by_risk(live);
        if query.ended {
            jobs.append(&mut ended);
        }
        let total = jobs.len();
        jobs.truncate(query.limit);
        let notes = self.trouble("The list is old").into_iter();
        Ok(List {
            time: Timestamp::now().into(),
            namespace: self.namespace.clone(),
            total,
            jobs,
            notes: notes.collect(),
        })
    }

    /// A job by its name, or by that of its companion.
    pub async fn one(
        &self,
        namespace: &str,
        name: &str,
        kind: Option<&str>,
    ) -> Result<Detail, Unread> {
        let jobs = self.ready().await?.into_iter();
        let mut named = jobs.filter(|job| {
            let is_named = job.name == name || job.companion.as_deref() == Some(name);
            job.namespace == namespace && is_named && kind.is_none_or(|kind| kind == job.kind)
        });
        let job = named.next().ok_or_else(|| {
            Unread::not_found("no such job that you may read: check the namespace and the name")
        })?;
        let Read { status, events, .. } = self.read(job).await;
        let summary = JobSummary::from(status.job.clone());
        let mut notes = status.notes.clone();
        notes.extend(self.trouble("The status is old"));
        let explanation = Explanation::new(status, None);
        Ok(Detail {
            time: Timestamp::now().into(),
            summary,
            record: explanation.status.record,
            explained: explanation.explained,
            events,
            notes,
        })
    }

    /// The job's pods and events: those of a few seconds ago if nothing of the job has changed.
    async fn read(&self, job: JobView) -> Read {
        let mut open = self.open.lock().await;
        let known = open.as_ref().filter(|read| read.status.job == job);
        if let Some(known) = known.filter(|read| read.at.elapsed() < DETAIL_LIFE) {
            return known.clone();
        }
        let FoundRecord { record, mut notes } = record::find(&self.session, &job).await;
        let events = events(&self.session, &job).await.unwrap_or_else(|error| {
            notes.push(record::sentence(&format!("{error:#}")));
            Vec::new()
        });
        let read = Read {
            at: Instant::now(),
            status: StatusView { job, record, notes },
            events,
        };
        open.insert(read).clone()
    }
}

async fn may_list(session: &Session, namespace: Option<&str>) -> anyhow::Result<()> {
    let api: Api<LenientJob> = jobs::deadline_jobs(&session.client, namespace);
    let listed = api.list_metadata(&ListParams::default().limit(1)).await;
    let explain = |error| Access::of("list", &api).explain(error);
    listed.map(drop).map_err(explain)
}

/// The last events about the job, newest first.
async fn events(session: &Session, job: &JobView) -> anyhow::Result<Vec<EventView>> {
    let api: Api<Event> = Api::namespaced(session.client.clone(), &job.namespace);
    let about = format!(
        "involvedObject.kind={},involvedObject.name={}",
        job.kind, job.name
    );
    let wanted = ListParams::default().fields(&about).limit(500);
    let events = access::list(&api, &wanted, EVENTS_READ_MAX).await?;
    let mut events: Vec<EventView> = events.into_iter().map(EventView::from).collect();
    events.sort_by_key(|event| Reverse(event.time.as_ref().map(|time| time.0)));
    events.truncate(EVENTS_MAX);
    Ok(events)
}
