//! One run of a case under one controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, GroupVersionKind, PostParams,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::case::{Act, Case, Controller, OnDelete, Propagation};
use super::kubelet;
use super::outcome::Outcome;
use super::view::{View, Views, is_tracked};
use crate::campaign::draw;
use crate::campaign::kubelet::remove;
use crate::jobs::node_of;
use crate::patches::{merge, merge_status};
use crate::wait::{is_deleted, is_over, phase};

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// The built-in controller looks at its pods a second after they changed.
const QUIET: Duration = Duration::from_millis(1600);
/// The longest time for which a controller waits before it tries again, with limits of at most two.
const PATIENCE: Duration = Duration::from_secs(45);
/// The same after an edit, which may change nothing that is seen.
const QUIET_AFTER_EDIT: Duration = Duration::from_secs(4);
/// How long a kubelet lets a deleted pod run, unless the controller has counted it before.
const KILLED_AFTER: Duration = Duration::from_secs(30);
/// The same where an end is counted only after it.
const KILLED_SOON: Duration = Duration::from_secs(2);
/// After this a run is over, whatever is missing.
const LONGEST: Duration = Duration::from_secs(300);
/// How long the garbage collector may take.
const GONE_WITHIN: Duration = Duration::from_secs(120);
/// Acts after those of the case that bring a Job to its end.
const LAST_ACTS: usize = 24;

/// One run of a case.
pub struct CaseRun<'s> {
    pub client: Client,
    pub views: &'s Views,
    pub namespace: String,
    pub case: &'s Case,
    pub controller: Controller,
    /// What each act led to.
    acted: Vec<String>,
    /// The state before each act, to be read next to the other controller's.
    trail: Vec<String>,
    /// When the last act was.
    since: Instant,
    /// When kubelets last wrote the status of a pod, keyed by the status.
    written: BTreeMap<(String, &'static str), Instant>,
    /// When a pod was first seen to be deleted.
    deleted: BTreeMap<String, Instant>,
    /// Deleted pods that may end now.
    released: BTreeSet<String>,
    last_acts: usize,
    /// Whether the last act was an edit.
    edited: bool,
    was_stuck: bool,
    /// Whether a user deleted the Job before it had finished.
    was_deleted_early: bool,
}

impl<'s> CaseRun<'s> {
    pub fn new(
        client: Client,
        views: &'s Views,
        namespace: String,
        case: &'s Case,
        controller: Controller,
    ) -> Self {
        Self {
            client,
            views,
            namespace,
            case,
            controller,
            acted: Vec::new(),
            trail: Vec::new(),
            since: Instant::now(),
            written: BTreeMap::new(),
            deleted: BTreeMap::new(),
            released: BTreeSet::new(),
            last_acts: 0,
            edited: false,
            was_stuck: false,
            was_deleted_early: false,
        }
    }

    /// From the creation of the Job to its outcome.
    pub async fn run(mut self) -> Result<Outcome> {
        let job: DynamicObject = serde_json::from_value(self.case.manifest(self.controller))?;
        if let Err(error) = self.jobs().create(&PostParams::default(), &job).await {
            let code = refusal(error)?;
            return Ok(Outcome::refused(code));
        }
        let began = Instant::now();
        let mut next = 0;
        let view = loop {
            tokio::time::sleep(LOOK).await;
            let view = self.view();
            self.tend(&view).await?;
            if !self.is_due(&view) && began.elapsed() < LONGEST {
                continue;
            }
            let act = self.case.acts.get(next).cloned();
            let Some(act) = act.or_else(|| self.last_act(&view)) else {
                break view;
            };
            if began.elapsed() >= LONGEST {
                break view;
            }
            next += 1;
            self.trail
                .push(format!("{} then {act:?}", Outcome::glance(&view)));
            self.edited = act.is_edit();
            self.was_deleted_early |= matches!(act, Act::DeleteJob { .. }) && !view.is_finished();
            let went = self.act(&view, act).await;
            let went = went.or_else(refusal)?;
            self.acted.push(went);
            self.since = Instant::now();
        };
        self.trail.push(Outcome::glance(&view));
        // Acts after those of the case depend on the state.
        self.acted.truncate(self.case.acts.len());
        let outcome = Outcome::of(
            &view,
            &self.acted,
            self.was_stuck,
            self.was_deleted_early,
            self.trail.clone(),
        );
        self.clean_up().await?;
        Ok(outcome)
    }

    /// Whether the next act may come, since the controller has done everything.
    fn is_due(&mut self, view: &View) -> bool {
        let quiet = view.quiet().min(self.since.elapsed());
        let is_settled = view.is_settled(self.case.has_ttl(), self.lingers());
        let is_stuck = !is_settled && quiet >= PATIENCE;
        self.was_stuck |= is_stuck;
        let enough = if self.edited { QUIET_AFTER_EDIT } else { QUIET };
        is_stuck || (is_settled && quiet >= enough)
    }

    fn view(&self) -> View {
        self.views.of(&self.namespace, &self.case.name)
    }

    fn jobs(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("batch", "v1", "Job");
        let kind = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// What kubelets do by themselves: start pods, and end deleted ones.
    async fn tend(&mut self, view: &View) -> Result<()> {
        for pod in view.left() {
            let is_placed = node_of(pod).is_some();
            let uid = pod.uid().unwrap_or_default();
            if !is_deleted(pod) {
                if is_placed && phase(pod) == "Pending" && self.may_write(&uid, "running") {
                    let status = kubelet::running(pod, self.acted.len());
                    self.report(pod, &status).await?;
                }
                continue;
            }
            if is_over(pod) {
                if self.may_write(&uid, "gone") {
                    reported(remove(&self.pods(), pod).await)?;
                }
                continue;
            }
            let since = self.deleted.entry(uid.clone()).or_insert_with(Instant::now);
            let counts_late = self.case.spec["podReplacementPolicy"] == "Failed";
            let patience = if counts_late || view.is_deleted() {
                KILLED_SOON
            } else {
                KILLED_AFTER
            };
            // A limit per index has such a pod counted when it is replaced, after a wait.
            let is_known = self.case.spec["backoffLimitPerIndex"].is_null()
                && view.knows_deleted()
                && since.elapsed() > KILLED_SOON;
            let waits = is_tracked(pod) && !is_known && since.elapsed() < patience;
            let may_end = self.released.contains(&uid) || !(waits || self.lingers());
            if may_end && self.may_write(&uid, "killed") {
                self.report(pod, &kubelet::killed(pod, self.case.on_delete))
                    .await?;
            }
        }
        Ok(())
    }

    /// Whether deleted pods run until they are released.
    fn lingers(&self) -> bool {
        self.case.on_delete == OnDelete::Linger
    }

    /// Whether there is something to write that was not written just now: the watch may lag.
    fn may_write(&mut self, uid: &str, what: &'static str) -> bool {
        let key = (uid.to_owned(), what);
        let is_due = self
            .written
            .get(&key)
            .is_none_or(|last| last.elapsed() > Duration::from_secs(5));
        if is_due {
            self.written.insert(key, Instant::now());
        }
        is_due
    }

    async fn report(&self, pod: &Pod, status: &Value) -> Result<()> {
        let change = json!({"metadata": {"uid": pod.uid()}, "status": status});
        reported(merge_status(&self.pods(), &pod.name_any(), &change).await)
    }

    /// An act that brings a Job closer to its end.
    fn last_act(&mut self, view: &View) -> Option<Act> {
        self.last_acts += 1;
        if self.last_acts > LAST_ACTS {
            return None;
        }
        if self.was_stuck {
            return view.lingering().next().map(|_| Act::Release);
        }
        let (pod, end) = (0, super::case::End::Success);
        if !view.live().is_empty() && !view.job_is_gone {
            return Some(Act::End { pod, end });
        }
        if view.lingering().next().is_some() {
            return Some(Act::Release);
        }
        let job = view.job.as_ref()?;
        let is_over = view.is_finished() || job.metadata.deletion_timestamp.is_some();
        let spec = job.spec.as_ref()?;
        match (is_over, spec.suspend, spec.parallelism) {
            (false, Some(true), _) => Some(Act::Resume),
            (false, _, Some(0)) => Some(Act::Parallelism { to: 1 }),
            _ => None,
        }
    }

    async fn act(&mut self, view: &View, act: Act) -> Result<String, kube::Error> {
        let live = view.live();
        let at = |pod: usize| live.get(pod % live.len().max(1));
        match act {
            Act::End { pod, end } => self.end(at(pod), end).await,
            Act::EndAll { code } => {
                use super::case::End;
                let end = match code {
                    0 => End::Success,
                    42 => End::Exit42,
                    _ => End::Error,
                };
                let ends = live.iter().map(|pod| self.end(Some(pod), end));
                Ok(format!("{:?}", try_join_all(ends).await?))
            }
            Act::Restart { pod, container } => {
                let status = at(pod).and_then(|pod| kubelet::restarted(pod, container));
                self.announce(at(pod), status).await
            }
            Act::NotReady { pod } => {
                let status = at(pod).map(|pod| kubelet::not_ready(pod));
                self.announce(at(pod), status).await
            }
            Act::Suspend => self.edit(json!({"suspend": true})).await,
            Act::Resume => self.edit(json!({"suspend": false})).await,
            Act::Parallelism { to } => self.edit(json!({"parallelism": to})).await,
            Act::Completions { to } => {
                self.edit(json!({"parallelism": to, "completions": to}))
                    .await
            }
            Act::BackoffLimit { to } => self.edit(json!({"backoffLimit": to})).await,
            Act::ActiveDeadline => self.edit(json!({"activeDeadlineSeconds": 1})).await,
            Act::Template => self.edit(changed_template()).await,
            Act::DeletePod { pod, force } => self.delete_pod(at(pod), force).await,
            Act::Evict { pod } => {
                let Some(pod) = at(pod) else {
                    return Ok("nothing".to_owned());
                };
                let parameters = EvictParams::default();
                self.pods()
                    .evict(&pod.name_any(), &parameters)
                    .await
                    .map(|_| "done".to_owned())
            }
            Act::Release => {
                let lingering = view.lingering().filter_map(|pod| pod.uid());
                self.released.extend(lingering);
                Ok("done".to_owned())
            }
            Act::DeleteJob { propagation } => self.delete_job(propagation).await,
        }
    }

    /// Under OnFailure a container that fails by itself is started again.
    async fn end(
        &self,
        pod: Option<&Arc<Pod>>,
        end: super::case::End,
    ) -> Result<String, kube::Error> {
        use super::case::End;
        let fails = matches!(
            end,
            End::Error | End::Exit42 | End::OomKilled | End::InitFailed
        );
        let container = usize::from(end == End::InitFailed);
        let status = pod.and_then(|pod| match fails && self.case.restarts_in_place() {
            true => kubelet::restarted(pod, container),
            false => Some(kubelet::ended(pod, end)),
        });
        let went = self.announce(pod, status).await?;
        if let (End::Collected, Some(pod)) = (end, pod) {
            let at_once = DeleteParams::default().grace_period(0);
            self.pods().delete(&pod.name_any(), &at_once).await?;
        }
        Ok(went)
    }

    async fn announce(
        &self,
        pod: Option<&Arc<Pod>>,
        status: Option<Value>,
    ) -> Result<String, kube::Error> {
        let (Some(pod), Some(status)) = (pod, status) else {
            return Ok("nothing".to_owned());
        };
        let change = json!({"status": status});
        merge_status(&self.pods(), &pod.name_any(), &change).await?;
        Ok("done".to_owned())
    }

    async fn edit(&self, spec: Value) -> Result<String, kube::Error> {
        merge(&self.jobs(), &self.case.name, &json!({"spec": spec})).await?;
        Ok("done".to_owned())
    }

    async fn delete_pod(&self, pod: Option<&Arc<Pod>>, force: bool) -> Result<String, kube::Error> {
        let Some(pod) = pod else {
            return Ok("nothing".to_owned());
        };
        let parameters = match force {
            true => DeleteParams::default().grace_period(0),
            false => DeleteParams::default(),
        };
        self.pods().delete(&pod.name_any(), &parameters).await?;
        Ok("done".to_owned())
    }

    async fn delete_job(&self, propagation: Propagation) -> Result<String, kube::Error> {
        let parameters = match propagation {
            Propagation::Background => DeleteParams::background(),
            Propagation::Foreground => DeleteParams::foreground(),
            Propagation::Orphan => DeleteParams::orphan(),
        };
        self.jobs().delete(&self.case.name, &parameters).await?;
        Ok("done".to_owned())
    }

    /// Deletes what is left, without regard to finalizers that a controller forgot: a later run may have the same name.
    pub async fn clean_up(&self) -> Result<()> {
        let free = json!({"metadata": {"finalizers": null}});
        let name = &self.case.name;
        let began = Instant::now();
        loop {
            let view = self.view();
            let job_is_gone = view.job_is_gone || view.job.is_none();
            if job_is_gone && view.left().next().is_none() {
                self.views.forget(&self.namespace, name);
                return Ok(());
            }
            ensure!(
                began.elapsed() < GONE_WITHIN,
                "{name} does not go: {}",
                Outcome::glance(&view)
            );
            if !job_is_gone {
                let jobs = self.jobs();
                reported(merge(&jobs, name, &free).await)?;
                reported(jobs.delete(name, &DeleteParams::background()).await)?;
            }
            for pod in view.left() {
                reported(merge(&self.pods(), &pod.name_any(), &free).await)?;
                reported(remove(&self.pods(), pod).await)?;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

fn changed_template() -> Value {
    let selector = json!({super::case::LABEL: "yes", "kubernetes.io/os": "linux"});
    let label = json!({super::case::LABEL: "yes", "changed": "yes"});
    json!({"template": {"metadata": {"labels": label, "annotations": {"example.com/changed": "yes"}},
        "spec": {"nodeSelector": selector}}})
}

/// Whether the apiserver answered: what is gone meanwhile needs nothing any more.
fn reported<T>(answer: Result<T, kube::Error>) -> Result<()> {
    answer.map(drop).or_else(|error| refusal(error).map(drop))
}

/// What the apiserver answered to a request that it refused.
fn refusal(error: kube::Error) -> Result<String> {
    let kube::Error::Api(status) = error else {
        return Err(error.into());
    };
    ensure!(
        status.code < 500 && status.code != 429,
        "the apiserver: {}",
        status.message
    );
    Ok(format!("refused with {}", status.code))
}

/// The namespace of a run: one of a few.
pub fn namespace(case: &Case, controller: Controller) -> String {
    let number = case
        .name
        .bytes()
        .fold(0, |sum, byte| draw(sum, u64::from(byte)))
        % NAMESPACES;
    match controller {
        Controller::Builtin => format!("builtin-{number}"),
        Controller::Shed => format!("shed-{number}"),
    }
}

/// How many namespaces each controller has.
pub const NAMESPACES: u64 = 8;
