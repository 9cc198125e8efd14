//! The Jobs that the built-in controller runs and shed only watches, in the namespaces that an administrator has chosen.
//! Of each unfinished one a few figures are kept. A completed one teaches its class how long it took.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use shed_core::estimate::whole_run::{RunEstimate, WholeRun};
use shed_core::snapshot::ExpectedDuration;
use shed_core::time::{Instant, Span};
use shed_core::workflow::JobState;

use crate::adopt::{self, AdoptJobs, translate};
use crate::api;
use crate::clock;
use crate::cluster::batch::BatchObject;
use crate::cluster::{PAGE, Stores, version};
use crate::completion_history::{Completion, CompletionHistory};
use crate::validate::{self, DeadlineRule, InvalidSpec, Workflow};
use crate::workflow_runs::StageOfRun;

/// A Job that shed only watches.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchOnlyJob {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its class, without the namespace.
    pub class: Option<Arc<str>>,
    /// What its annotations say, or the annotation that cannot be read.
    pub terms: Result<WatchTerms, Arc<str>>,
    /// Its creation, or the time for which a CronJob scheduled it.
    pub from: Instant,
    /// When its controller started it; absent while it is suspended.
    pub started: Option<Instant>,
    /// Its tasks.
    pub run: WholeRun,
    /// Its end, once there is one.
    pub end: Option<RunEnd>,
}

/// The annotations that matter for a Job that shed does not run.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchTerms {
    /// When it must be complete.
    pub deadline: DeadlineRule,
    /// The probability that is high enough.
    pub target: Option<f64>,
    /// How long a task takes.
    pub expected: Option<ExpectedDuration>,
    /// The run of a workflow that the Job is a stage of.
    pub workflow: Option<Workflow>,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    /// When it was.
    pub at: Instant,
    /// Whether the Job is complete; otherwise it has failed.
    pub is_complete: bool,
}

impl WatchOnlyJob {
    /// What is kept of this Job.
    pub fn of(job: &Job) -> Option<Self> {
        let metadata = &job.metadata;
        let (spec, status) = (job.spec.as_ref()?, job.status.clone().unwrap_or_default());
        let count = |number: Option<i32>| u32::try_from(number.unwrap_or(0)).unwrap_or(0);
        let text = |field: &Option<String>| field.as_deref().map(Arc::from);
        let tasks = count(Some(translate::tasks(spec)));
        Some(Self {
            uid: text(&metadata.uid)?,
            namespace: text(&metadata.namespace)?,
            name: text(&metadata.name)?,
            class: adopt::class(metadata).map(Arc::from),
            terms: WatchTerms::of(metadata),
            from: adopt::counts_from(metadata)?,
            started: status.start_time.as_ref().map(clock::instant),
            run: WholeRun {
                tasks,
                width: count(spec.parallelism.or(Some(1))).min(tasks),
                done: count(status.succeeded).min(tasks),
                running: count(status.active),
            },
            end: RunEnd::of(job),
        })
    }

    /// The key of its class in the history.
    pub fn history_class(&self) -> Option<String> {
        let class = self.class.as_ref()?;
        Some(format!("{}/{class}", self.namespace))
    }

    /// What is known of its end, by the completion times of its class in seconds.
    pub fn estimate(
        &self,
        runs: &[f64],
        deadline: Option<Instant>,
        now: Instant,
    ) -> Option<RunEstimate> {
        let terms = self.terms.as_ref().ok();
        let expected = terms.and_then(|terms| terms.expected.as_ref());
        let elapsed = self.started.map_or(Span(0), |started| now.since(started));
        let slack = deadline.map(|deadline| deadline.since(now).seconds());
        let known = (expected, runs);
        self.run.estimate(known, elapsed.seconds(), slack)
    }

    /// Its deadline. One from history is computed from what the history has now.
    pub fn deadline(&self, history: &CompletionHistory) -> Option<Instant> {
        let terms = self.terms.as_ref().ok()?;
        let DeadlineRule::History(rule) = &terms.deadline else {
            return terms.deadline.computed(self.from, self.started);
        };
        let known = history.known(&self.history_class()?, rule.quantile);
        Some(self.started?.plus(rule.limit(known.quantile?)))
    }

    /// Its place in a workflow.
    pub fn stage(&self) -> Option<StageOfRun<'_>> {
        Some(StageOfRun {
            uid: &self.uid,
            namespace: &self.namespace,
            stage: self.class.as_deref(),
            created: self.from,
            workflow: self.terms.as_ref().ok()?.workflow.as_ref()?,
        })
    }

    fn state(&self) -> JobState {
        match self.end {
            Some(end) if end.is_complete => JobState::Complete(end.at),
            Some(_) => JobState::Failed,
            None => JobState::Open,
        }
    }

    /// What its class learns from it.
    pub fn completion(&self) -> Option<(String, Completion)> {
        let end = self.end.filter(|end| end.is_complete)?;
        let completion = Completion::between(self.started?, end.at);
        Some((self.history_class()?, completion))
    }
}

impl WatchTerms {
    fn of(job: &ObjectMeta) -> Result<Self, Arc<str>> {
        let wishes = translate::wishes(job).map_err(|bad| bad.to_string())?;
        let words = |invalid: InvalidSpec| invalid.to_string();
        let deadline = wishes.deadline.as_ref().map(validate::rule_of).transpose();
        let deadline = deadline.map_err(words)?.unwrap_or(DeadlineRule::Never);
        let expected = validate::expected_duration(wishes.expected_task_duration.as_ref());
        Ok(Self {
            deadline: deadline.within(wishes.workflow.as_ref()).map_err(words)?,
            target: wishes.target_pocd,
            expected: expected.map_err(words)?,
            workflow: wishes.workflow,
        })
    }
}

impl RunEnd {
    fn of(job: &Job) -> Option<Self> {
        let conditions = job.status.as_ref()?.conditions.as_ref()?;
        let mut conditions = conditions.iter().filter(|it| it.status == "True");
        let end = conditions.find(|it| [api::COMPLETE, api::FAILED].contains(&&*it.type_))?;
        let is_complete = end.type_ == api::COMPLETE;
        let completed = job.status.as_ref()?.completion_time.as_ref();
        let at = completed.filter(|_| is_complete);
        let at = at.or(end.last_transition_time.as_ref())?;
        Some(Self {
            at: clock::instant(at),
            is_complete,
        })
    }
}

/// The Jobs that are only watched, by uid. The ended ones among them are those whose end is not reported yet.
#[derive(Default)]
pub struct WatchOnlyJobs(Mutex<HashMap<Arc<str>, Arc<WatchOnlyJob>>>);

impl WatchOnlyJobs {
    /// All of them.
    pub fn all(&self) -> Vec<Arc<WatchOnlyJob>> {
        self.0.lock().values().cloned().collect()
    }

    /// Drops a Job whose end was taken note of, or that is gone.
    pub fn remove(&self, uid: &str) -> Option<Arc<WatchOnlyJob>> {
        self.0.lock().remove(uid)
    }

    /// Keeps these.
    pub fn retain(&self, is_kept: impl Fn(&WatchOnlyJob) -> bool) {
        self.0.lock().retain(|_, job| is_kept(job));
    }
}

impl Stores {
    /// What is kept of a Job, if it is only watched.
    pub(super) fn read_watch_only(&self, object: &BatchObject) -> Option<WatchOnlyJob> {
        let namespace = object.metadata().namespace.as_deref()?;
        let is_chosen = self.namespaces.read().as_ref()?.watches_jobs(namespace);
        let job = object.job().filter(|_| is_chosen)?;
        let is_built_in = self.jobs.batch()?.mode.leaves(job);
        WatchOnlyJob::of(job).filter(|_| is_built_in)
    }

    /// Takes a Job in that is only watched. One that had ended before teaches its class, and is not kept.
    pub(super) fn note_watch_only(&self, job: WatchOnlyJob) {
        self.put_watch_only(&mut self.watch_only.0.lock(), job);
    }

    fn put_watch_only(&self, jobs: &mut HashMap<Arc<str>, Arc<WatchOnlyJob>>, job: WatchOnlyJob) {
        if let Some((class, completion)) = job.completion() {
            self.jobs.completions().see(&job.uid, &class, completion);
        }
        if let Some(stage) = job.stage() {
            self.jobs.workflows().see(&stage, job.state());
        }
        if job.end.is_none() || jobs.contains_key(&job.uid) {
            jobs.insert(Arc::clone(&job.uid), Arc::new(job));
        }
    }

    /// A Job that was only watched is gone. One that has ended stays in its run.
    pub(super) fn leave_run(&self, job: &WatchOnlyJob) {
        if let Some(stage) = job.stage().filter(|_| job.end.is_none()) {
            self.jobs.workflows().see(&stage, JobState::Gone);
        }
    }

    /// Lists the Jobs of a namespace that was chosen after the watch had shown them.
    pub async fn list_watch_only(
        &self,
        client: &Client,
        namespace: &str,
    ) -> Result<(), kube::Error> {
        let api: Api<BatchObject> = Api::namespaced(self.reader(client), namespace);
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&params).await?;
            page.items
                .iter()
                .for_each(|object| self.note_listed(object));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(());
            }
        }
    }

    /// Takes a listed Job in, unless the watch has shown that it is gone, or a newer version of it.
    fn note_listed(&self, object: &BatchObject) {
        let Some(job) = self.read_watch_only(object) else {
            return;
        };
        let listed = object.metadata();
        // The watch updates its store first, and takes this lock then.
        let mut jobs = self.watch_only.0.lock();
        let known = self.jobs.batch().and_then(|jobs| jobs.known(listed));
        let is_newest = known.is_some_and(|known| {
            known.meta().uid == listed.uid && version(known.meta()) <= version(listed)
        });
        if is_newest {
            self.put_watch_only(&mut jobs, job);
        }
    }

    /// The mode in which Jobs are adopted, if they are watched at all.
    pub fn adopts(&self) -> AdoptJobs {
        self.jobs.batch().map_or(AdoptJobs::None, |jobs| jobs.mode)
    }
}

#[cfg(test)]
mod tests;
