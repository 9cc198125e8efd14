//! The answers of the page. Each one is about the namespaces that the visitor may see, and about nothing else.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{Page, Visitor, access, unreviewed};
use crate::answers::jobs::{self, Wanted};
use crate::answers::query::Query;
use crate::answers::{Refusal, Scope, nodes};
use crate::api::DeadlineJob;
use crate::cluster::Skeleton;
use crate::context::Context;
use crate::planner_copies::PlannerCopy;

/// Visitors share a copy of the planner's state for this long.
const COPY_LIFE: Duration = Duration::from_secs(5);
/// A visitor waits this long for one.
const COPY_WAIT: Duration = Duration::from_secs(15);
/// A job that has ended is read from the apiserver within this time.
const READ_WAIT: Duration = Duration::from_secs(5);

/// A page of the list.
#[derive(serde::Serialize)]
struct Jobs {
    #[serde(flatten)]
    list: jobs::List,
    namespaces: Namespaces,
}

/// The namespaces that a list is limited to.
struct Namespaces(Scope);

impl Serialize for Namespaces {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Scope::Namespaces(names) = &self.0 else {
            return to.serialize_str("all");
        };
        let mut list = to.serialize_seq(Some(names.len()))?;
        for name in names {
            list.serialize_element(name)?;
        }
        list.end()
    }
}

impl Page {
    /// The namespaces that the visitor may see.
    pub(super) async fn scope(&self, visitor: &Visitor) -> Result<Scope, Refusal> {
        let context = self.leading()?;
        let with_jobs = || context.stores.namespaces_of_jobs();
        let scope = access::scope(&self.reviewer, &visitor.user, with_jobs).await;
        scope.map_err(unreviewed)
    }

    pub(super) async fn jobs(&self, visitor: &Visitor, query: Query) -> Result<Vec<u8>, Refusal> {
        let page = jobs::Page::with_ended(query)?;
        let scope = self.scope(visitor).await?;
        self.list(page, scope).await
    }

    /// A page of the jobs in these namespaces.
    pub(super) async fn list(&self, page: jobs::Page, scope: Scope) -> Result<Vec<u8>, Refusal> {
        let context = self.leading()?;
        let list = move || {
            Ok(Jobs {
                list: jobs::list(&context, &page, &scope),
                namespaces: Namespaces(scope),
            })
        };
        self.answers.list(list).await
    }

    /// One job with its record. A job that does not exist and one that may not be seen have the same answer.
    pub(super) async fn job(
        &self,
        visitor: &Visitor,
        wanted: Arc<Wanted>,
    ) -> Result<Vec<u8>, Refusal> {
        let context = self.leading()?;
        let name = visitor.user.username.clone().unwrap_or_default();
        if !access::is_known(&self.reviewer, &visitor.user, wanted.namespace())
            && !self.reviews.admit(name, self.clock.ticks())
        {
            let error = "your user asks for too many namespaces: try again in a few seconds";
            return Err(Refusal::busy(error));
        }
        let may = access::may_see(&self.reviewer, &visitor.user, wanted.namespace()).await;
        if !may.map_err(unreviewed)? {
            return Err(absent());
        }
        if wanted.find(&context).is_ok() {
            let one = move || jobs::one(&context, &wanted).map_err(|_| absent());
            return self.answers.list(one).await;
        }
        let skeleton = wanted.find_ended(&context).ok_or_else(absent)?;
        let job = self.read_ended(&skeleton).await?;
        let one = move || Ok(jobs::one_ended(&context, &job));
        self.answers.list(one).await
    }

    /// Reads a job that has ended from the apiserver, because the operator keeps little of it.
    async fn read_ended(&self, job: &Skeleton) -> Result<DeadlineJob, Refusal> {
        let metadata = &job.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let api: Api<DeadlineJob> = Api::namespaced(self.client.clone(), namespace);
        let unread =
            || Refusal::busy("the apiserver does not return the job: try again in a few seconds");
        let read = timeout(READ_WAIT, api.get_opt(name)).await;
        let read = read.map_err(|_| unread())?.map_err(|error| {
            tracing::warn!(%error, "live page: a job that has ended");
            unread()
        })?;
        let is_same = |read: &DeadlineJob| read.metadata.uid == metadata.uid;
        read.filter(is_same).ok_or_else(absent)
    }

    pub(super) async fn nodes(&self, visitor: &Visitor) -> Result<Vec<u8>, Refusal> {
        let scope = self.scope(visitor).await?;
        self.list_nodes(scope).await
    }

    /// The nodes as the jobs in these namespaces show them.
    pub(super) async fn list_nodes(&self, scope: Scope) -> Result<Vec<u8>, Refusal> {
        let context = self.leading()?;
        let copy = self.copies.get(&context).await?;
        let list = move || Ok(nodes::list(&context, &copy, &scope));
        self.answers.list(list).await
    }
}

fn absent() -> Refusal {
    Refusal::not_found(
        "there is no such job that you may see: check the namespace and the name, and whether your user may list \
         deadlinejobs.shed.dev there",
    )
}

/// A copy of the planner's state that visitors share. It may be large, so it is dropped when it is
/// too old.
#[derive(Default)]
pub(super) struct Copies(Mutex<Option<(Instant, Arc<PlannerCopy>)>>);

impl Copies {
    async fn get(self: &Arc<Self>, context: &Context) -> Result<Arc<PlannerCopy>, Refusal> {
        let busy = || {
            Refusal::busy("the planner is busy, or its term has ended: try again in a few seconds")
        };
        let end = Instant::now() + COPY_WAIT;
        let mut kept = timeout_at(end, self.0.lock()).await.map_err(|_| busy())?;
        if let Some((made, copy)) = &*kept
            && made.elapsed() < COPY_LIFE
        {
            return Ok(Arc::clone(copy));
        }
        let copy = timeout_at(end, context.copies.copy()).await;
        let copy = Arc::new(copy.ok().flatten().ok_or_else(busy)?);
        let made = Instant::now();
        *kept = Some((made, Arc::clone(&copy)));
        let copies = Arc::clone(self);
        tokio::spawn(async move {
            sleep(COPY_LIFE).await;
            let mut kept = copies.0.lock().await;
            if kept.as_ref().is_some_and(|(other, _)| *other == made) {
                *kept = None;
            }
        });
        Ok(copy)
    }
}
