//! What the apiserver shows of all cases: their Jobs and pods, and whether a controller has anything left to do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::case::{HOLD, LABEL};
use crate::wait::{is_deleted, is_over, is_ready, phase};

const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A pod, as it came and as it is now.
#[derive(Clone)]
pub struct SeenPod {
    pub first: Arc<Pod>,
    pub now: Arc<Pod>,
    pub is_gone: bool,
}

/// One run of a case.
#[derive(Clone)]
pub struct View {
    /// As it was last seen.
    pub job: Option<Arc<Job>>,
    pub job_is_gone: bool,
    /// In the order in which they came.
    pub pods: Vec<SeenPod>,
    pub changed: Instant,
}

type All = Arc<Mutex<HashMap<(String, String), View>>>;

/// The runs of all cases.
pub struct Views {
    all: All,
    _watches: JoinSet<()>,
}

impl Views {
    /// Starts to watch.
    pub fn watch(client: &Client) -> Self {
        let all = All::default();
        let mut _watches = JoinSet::new();
        _watches.spawn(follow(client.clone(), Arc::clone(&all), View::take_job));
        _watches.spawn(follow(client.clone(), Arc::clone(&all), View::take_pod));
        Self { all, _watches }
    }

    /// What is seen of a Job.
    pub fn of(&self, namespace: &str, job: &str) -> View {
        let key = (namespace.to_owned(), job.to_owned());
        let all = self.all.lock();
        all.get(&key).cloned().unwrap_or_default()
    }

    /// Frees the memory of a run that is over.
    pub fn forget(&self, namespace: &str, job: &str) {
        self.all
            .lock()
            .remove(&(namespace.to_owned(), job.to_owned()));
    }
}

/// Tells the runs what a watch shows.
async fn follow<K>(client: Client, all: All, take: fn(&mut View, K, bool))
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
    K::DynamicType: Default,
{
    let config = watcher::Config::default().labels(LABEL);
    let events = watch(Api::<K>::all(client), config).default_backoff();
    let mut events = events.boxed();
    while let Some(event) = events.next().await {
        let (object, is_gone) = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
            Ok(Event::Delete(object)) => (object, true),
            // Errors are waited through.
            _ => continue,
        };
        let name = object.labels().get(JOB_NAME).cloned();
        let name = name.unwrap_or_else(|| object.name_any());
        let key = (object.namespace().unwrap_or_default(), name);
        let mut all = all.lock();
        let view = all.entry(key).or_default();
        view.changed = Instant::now();
        take(view, object, is_gone);
    }
}

impl Default for View {
    fn default() -> Self {
        Self {
            job: None,
            job_is_gone: false,
            pods: Vec::new(),
            changed: Instant::now(),
        }
    }
}

impl View {
    fn take_job(&mut self, job: Job, is_gone: bool) {
        self.job = Some(Arc::new(job));
        self.job_is_gone = is_gone;
    }

    fn take_pod(&mut self, pod: Pod, is_gone: bool) {
        let pod = Arc::new(pod);
        let known = self.pods.iter_mut();
        match known.into_iter().find(|known| known.now.uid() == pod.uid()) {
            Some(known) => (known.now, known.is_gone) = (pod, is_gone),
            None => self.pods.push(SeenPod {
                first: Arc::clone(&pod),
                now: pod,
                is_gone,
            }),
        }
    }

    /// The Job's status; empty before its first write.
    pub fn status(&self) -> JobStatus {
        let job = self.job.as_ref();
        job.and_then(|job| job.status.clone()).unwrap_or_default()
    }

    /// How long nothing has changed.
    pub fn quiet(&self) -> Duration {
        self.changed.elapsed()
    }

    /// Pods that are there.
    pub fn left(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods
            .iter()
            .filter(|seen| !seen.is_gone)
            .map(|seen| &seen.now)
    }

    /// Pods that have not ended and are not deleted, by index and age.
    pub fn live(&self) -> Vec<Arc<Pod>> {
        let is_live = |pod: &&Arc<Pod>| !is_over(pod) && !is_deleted(pod);
        let mut live: Vec<_> = self.left().filter(is_live).cloned().collect();
        live.sort_by_key(|pod| index(pod));
        live
    }

    /// Deleted pods whose containers run on.
    pub fn lingering(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.left().filter(|pod| is_deleted(pod) && !is_over(pod))
    }

    /// Whether the Job has a condition.
    pub fn is(&self, type_: &str) -> bool {
        let conditions = self.status().conditions;
        let mut conditions = conditions.iter().flatten();
        conditions.any(|own| own.type_ == type_ && own.status == "True")
    }

    /// Whether a user has deleted the Job.
    pub fn is_deleted(&self) -> bool {
        let job = self.job.as_ref();
        self.job_is_gone || job.is_some_and(|job| job.metadata.deletion_timestamp.is_some())
    }

    /// Whether the Job has come to its end.
    pub fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    /// Whether the controller, the garbage collector and kubelets have done all that is known to be due. `ttl`
    /// tells that a finished Job is deleted, `may_linger` that deleted pods run on. A wrong answer costs time, or
    /// makes a difference that is seen; it hides none.
    pub fn is_settled(&self, ttl: bool, may_linger: bool) -> bool {
        let Some(job) = &self.job else {
            return false;
        };
        let is_counted = |pod: &Arc<Pod>| !is_over(pod) || !is_tracked(pod);
        let is_going = |pod: &Arc<Pod>| is_deleted(pod) && is_over(pod);
        if !self.left().all(is_counted) || self.left().any(is_going) {
            return false;
        }
        let lingers = self.lingering().next().is_some();
        if lingers && !may_linger {
            return false;
        }
        if self.job_is_gone {
            let stays = |pod: &Arc<Pod>| is_deleted(pod) || pod.owner_references().is_empty();
            return self.left().all(|pod| !is_tracked(pod) && stays(pod));
        }
        if job.metadata.deletion_timestamp.is_some() {
            let has = |finalizer: &str| job.finalizers().iter().any(|own| own == finalizer);
            return match has("foregroundDeletion") {
                true => lingers && self.left().all(|pod| is_deleted(pod)),
                false => has(HOLD) && !has("orphan"),
            };
        }
        if self.is_finished() {
            return !ttl && !lingers;
        }
        let live = self.live();
        if self.is("FailureTarget") || self.is("SuccessCriteriaMet") {
            return lingers && live.is_empty();
        }
        let (spec, status) = (job.spec.as_ref(), self.status());
        let is_suspended = spec.is_some_and(|spec| spec.suspend == Some(true));
        let is_overdue = spec.is_some_and(|spec| spec.active_deadline_seconds == Some(1));
        let is_due = is_overdue || status.start_time.is_none();
        if is_suspended != self.is("Suspended") || (is_due && !is_suspended) {
            return false;
        }
        let limit = spec.and_then(|spec| spec.backoff_limit);
        if status.failed.unwrap_or(0) > limit.unwrap_or(i32::MAX) {
            return false;
        }
        // The number of ready pods proves that the controller has seen their last status.
        let ready = live.iter().filter(|pod| is_ready(pod)).count();
        let says = |number: Option<i32>| usize::try_from(number.unwrap_or(0)).unwrap_or(0);
        let completions = spec.and_then(|spec| spec.completions);
        let completions = completions.and_then(|number| u32::try_from(number).ok());
        let is_wanted = |pod: &Pod| index(pod).is_none_or(|index| Some(index) < completions);
        live.iter()
            .all(|pod| phase(pod) == "Running" && is_wanted(pod))
            && says(status.active) == live.len()
            && says(status.ready) == ready
            && Some(live.len()) == self.wanted(job, live.len())
    }

    /// How many pods may run; `None` if the Job is about to finish.
    fn wanted(&self, job: &Job, live: usize) -> Option<usize> {
        let (spec, status) = (job.spec.as_ref()?, self.status());
        if spec.suspend == Some(true) {
            return Some(0);
        }
        let count = |number: Option<i32>| usize::try_from(number.unwrap_or(0)).unwrap_or(0);
        let parallelism = count(spec.parallelism.or(Some(1)));
        let succeeded = count(status.succeeded);
        let open = match (spec.completions, spec.completion_mode.as_deref()) {
            (None, _) if succeeded > 0 => live,
            (None, _) => parallelism.max(1),
            (Some(_), Some("Indexed")) => {
                let decided = members(status.completed_indexes.as_deref())
                    + members(status.failed_indexes.as_deref());
                count(spec.completions).saturating_sub(decided)
            }
            _ => count(spec.completions).saturating_sub(succeeded),
        };
        let lingering = self.lingering().count();
        let waits_for_ends = spec.pod_replacement_policy.as_deref() == Some("Failed");
        let taken = if waits_for_ends { lingering } else { 0 };
        (open > 0 || lingering > 0).then(|| open.min(parallelism).saturating_sub(taken))
    }

    /// Whether the controller has seen that the deleted pods are deleted.
    pub fn knows_deleted(&self) -> bool {
        let known = self.status().terminating.unwrap_or(0);
        usize::try_from(known).is_ok_and(|known| known >= self.lingering().count())
    }
}

/// How many indexes a list such as `0,2-4` has.
pub fn members(list: Option<&str>) -> usize {
    let ranges = list
        .unwrap_or_default()
        .split(',')
        .filter(|range| !range.is_empty());
    let of_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (
            first.parse().unwrap_or(0),
            last.parse::<usize>().unwrap_or(0),
        );
        (last + 1).saturating_sub(first)
    };
    ranges.map(of_range).sum()
}

/// The completion index of a pod.
pub fn index(pod: &Pod) -> Option<u32> {
    pod.annotations().get(INDEX)?.parse().ok()
}

/// Whether a controller has yet to count the pod.
pub fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|own| own == TRACKING)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn view(spec: Value, status: Value, pods: &[Value]) -> View {
        let job = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        let mut view = View::default();
        let mut spec: Job = serde_json::from_value(job).unwrap();
        if let Some(spec) = &mut spec.spec {
            spec.template = Default::default();
        }
        view.take_job(spec, false);
        for (number, pod) in pods.iter().enumerate() {
            let mut pod = pod.clone();
            pod["metadata"]["uid"] = json!(number.to_string());
            view.take_pod(serde_json::from_value(pod).unwrap(), false);
        }
        view
    }

    fn runs() -> Value {
        json!({"metadata": {"finalizers": [TRACKING]}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}})
    }

    #[test]
    fn indexes_of_a_list_are_counted() {
        assert_eq!(members(None), 0);
        assert_eq!(members(Some("0,2-4,7")), 5);
    }

    #[test]
    fn a_job_is_settled_once_its_pods_run_and_are_counted() {
        let spec = json!({"parallelism": 2, "completions": 3, "template": {}});
        let start = "2030-01-01T00:00:00Z";
        let active = json!({"active": 2, "ready": 2, "startTime": start});
        assert!(view(spec.clone(), active.clone(), &[runs(), runs()]).is_settled(false, false));
        assert!(!view(spec.clone(), active.clone(), &[runs()]).is_settled(false, false));
        assert!(
            !view(
                spec.clone(),
                json!({"active": 2, "ready": 1, "startTime": start}),
                &[runs(), runs()]
            )
            .is_settled(false, false)
        );
        let mut uncounted = runs();
        uncounted["status"]["phase"] = json!("Failed");
        assert!(!view(spec, active, &[runs(), runs(), uncounted]).is_settled(false, false));
    }

    #[test]
    fn a_finished_job_is_settled_unless_it_is_about_to_go() {
        let done = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let spec = json!({"completions": 1, "template": {}});
        assert!(view(spec.clone(), done.clone(), &[]).is_settled(false, false));
        assert!(!view(spec, done, &[]).is_settled(true, false));
    }
}
