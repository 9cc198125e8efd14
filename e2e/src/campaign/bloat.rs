//! A user edits the status of a job until etcd takes no byte more, and makes it smaller again once
//! the operator says what is wrong.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};

use super::foreign::is_foreign;
use super::history::Entry;
use super::states::latest_pods;
use crate::jobs::reason;
use crate::patches::merge_status;
use crate::wait::phase;

/// The type of the condition that the user adds.
const CONDITION: &str = "example.com/Notes";
/// More than etcd takes, 1.5 MiB.
const TOO_MANY: usize = 1_600_000;
/// The event that says that a job is too large.
const REPORTED: &str = "ObjectTooLarge";
/// How often it is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// The operator tries again each minute.
const REPORTED_WITHIN: Duration = Duration::from_secs(75);

/// The user's acts so far.
enum Stage {
    Before,
    Large {
        job: &'static str,
        since: Instant,
        looked: Instant,
    },
    After,
}

/// The user.
pub struct Bloat {
    jobs: Api<DeadlineJob>,
    events: Api<Event>,
    stage: Stage,
}

impl Bloat {
    /// A user of this namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            jobs: Api::namespaced(client.clone(), namespace),
            events: Api::namespaced(client, namespace),
            stage: Stage::Before,
        }
    }

    /// Edits the job's status, once the job has a running attempt.
    pub async fn begin(&mut self, job: &'static str, states: &[Entry]) -> Result<()> {
        let mut pods = latest_pods(states).into_iter();
        let runs = pods.any(|pod| {
            let own = pod.labels().get(api::LABEL_JOB_NAME);
            own.is_some_and(|own| own == job) && !is_foreign(&pod) && phase(&pod) == "Running"
        });
        if !matches!(self.stage, Stage::Before) || !runs {
            return Ok(());
        }
        // As far as etcd takes it: the next byte of the operator's is one too many.
        let (mut taken, mut refused) = (0, TOO_MANY);
        while refused - taken > 1 {
            let middle = usize::midpoint(taken, refused);
            match self.edit(job, middle).await {
                Ok(()) => taken = middle,
                // The operator was faster: once more, on what it wrote.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(kube::Error::Api(_)) => refused = middle,
                Err(error) => return Err(error.into()),
            }
        }
        if taken < TOO_MANY / 2 {
            bail!("the apiserver takes no status of {} bytes", TOO_MANY / 2);
        }
        let now = Instant::now();
        self.stage = Stage::Large {
            job,
            since: now,
            looked: now,
        };
        Ok(())
    }

    /// Makes the status smaller again once the operator has said that it is too large.
    pub async fn tend(&mut self) -> Result<()> {
        let Stage::Large { job, since, looked } = &mut self.stage else {
            return Ok(());
        };
        if looked.elapsed() < LOOK {
            return Ok(());
        }
        *looked = Instant::now();
        let (job, since) = (*job, *since);
        let selector = format!("involvedObject.name={job},reason={REPORTED}");
        let reported = self
            .events
            .list(&ListParams::default().fields(&selector))
            .await;
        // Asked again if the apiserver does not answer.
        if reported.is_ok_and(|reported| !reported.items.is_empty()) || self.is_bounded(job).await {
            self.edit(job, 0).await?;
            self.stage = Stage::After;
        } else if since.elapsed() > REPORTED_WITHIN {
            bail!(
                "I13: neither an event {REPORTED} nor a condition says that {job} is too large, {REPORTED_WITHIN:?} after \
                 an edit"
            );
        }
        Ok(())
    }

    /// Whether a condition says that the job may have no further attempts for its size. The operator has then
    /// nothing to write, so no write is refused.
    async fn is_bounded(&self, job: &str) -> bool {
        let Ok(live) = self.jobs.get(job).await else {
            return false;
        };
        reason(&live, api::TASKS_PENDING) == Some(api::reason::OBJECT_SIZE_LIMIT)
    }

    /// A condition of another writer with a message of this length.
    async fn edit(&self, job: &str, length: usize) -> Result<(), kube::Error> {
        let is_ours = |own: &Value| own["type"] == CONDITION;
        let live = self.jobs.get(job).await?;
        let conditions = live.status.unwrap_or_default().conditions;
        let mut conditions = serde_json::to_value(conditions).map_err(kube::Error::SerdeError)?;
        if let Some(list) = conditions.as_array_mut() {
            list.retain(|own| !is_ours(own));
            list.push(
                json!({"type": CONDITION, "status": "True", "reason": "Noted",
                "message": "x".repeat(length), "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}),
            );
        }
        let edited = json!({"metadata": {"resourceVersion": live.metadata.resource_version},
            "status": {"conditions": conditions}});
        merge_status(&self.jobs, job, &edited).await.map(drop)
    }
}
