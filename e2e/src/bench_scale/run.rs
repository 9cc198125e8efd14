//! One run: jobs are created in a namespace of their own, complete, and are removed again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shed::api::DeadlineJob;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::audit::Tally;
use super::load::{Kind, Size, finished_deadline_job};
use super::results::{Bytes, Figures, rest};
use super::window::{Pids, Window};
use crate::scale::stage::free_pods;
use crate::wait::{self, Seen};

/// Jobs that are created at once.
const AT_ONCE: usize = 16;
/// How often the audit log is read.
const LOOK: Duration = Duration::from_millis(250);
/// A run ends when nothing in its namespace was written for this long.
const QUIET: Duration = Duration::from_secs(3);
/// For how long processes with nothing to do are measured.
const IDLE: Duration = Duration::from_secs(60);
/// How often a request without an answer is sent.
const TRIES: u32 = 5;
/// Objects of a page.
const PAGE: u32 = 500;
/// Pods of a node, as e2e/bench-scale.sh sets it.
const PODS_PER_NODE: u32 = 110;
/// How long objects may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(900);

/// The common parts of runs.
pub struct Bench {
    /// An administrator's.
    pub client: Client,
    /// Its kubeconfig, in the cluster's state folder.
    pub kubeconfig: PathBuf,
    /// How long one run may take.
    pub limit: Duration,
}

/// A run's jobs.
pub struct Load<'b> {
    bench: &'b Bench,
    size: Size,
    kind: Kind,
    namespace: String,
}

impl<'b> Load<'b> {
    /// Makes the namespace.
    pub async fn prepare(bench: &'b Bench, size: Size, kind: Kind) -> Result<Self> {
        let namespace = format!("bench-{}-{}", size.name(), kind.name());
        make_namespace(&bench.client, &namespace).await?;
        Ok(Self {
            bench,
            size,
            kind,
            namespace,
        })
    }

    fn jobs(&self) -> Api<DynamicObject> {
        let resource = if self.kind.is_batch() {
            ApiResource::erase::<Job>(&())
        } else {
            ApiResource::erase::<DeadlineJob>(&())
        };
        Api::namespaced_with(self.bench.client.clone(), &self.namespace, &resource)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.bench.client.clone(), &self.namespace)
    }

    /// Runs the jobs, and measures the processes meanwhile.
    pub async fn measure(&self, pids: &Pids) -> Result<Figures> {
        // The namespace's own objects are written first.
        let mut window = Window::open(&self.bench.kubeconfig, &self.namespace, pids)?;
        timeout(self.bench.limit, self.quiet(&mut window)).await??;
        let mut window = Window::open(&self.bench.kubeconfig, &self.namespace, pids)?;
        let went = timeout(self.bench.limit, self.complete(&mut window)).await;
        let (wall, completed) = went.with_context(|| self.too_slow("jobs to complete"))??;
        let went = timeout(self.bench.limit, self.released(&mut window)).await;
        went.with_context(|| self.too_slow("pods to be released"))??;
        let processes = window.used()?;
        let rest_cpu_seconds = Some(rest(window.machine_used()?, &processes));
        let last = window.tally.last_write.as_deref();
        let last: Timestamp = last.context("no controller wrote anything")?.parse()?;
        let (objects, clones) = self.objects().await?;
        Ok(Figures {
            tasks: self.size.tasks(),
            wall_seconds: wall.as_secs_f64(),
            settled_seconds: last.duration_since(completed).as_secs_f64().max(0.0),
            window_seconds: window.elapsed().as_secs_f64(),
            requests: requests(&window.tally),
            rest_cpu_seconds,
            processes,
            objects,
            clones,
        })
    }

    /// Makes jobs that have finished.
    pub async fn finish(&self, pids: &Pids) -> Result<()> {
        let mut window = Window::open(&self.bench.kubeconfig, &self.namespace, pids)?;
        let went = timeout(self.bench.limit, self.complete(&mut window)).await;
        went.with_context(|| self.too_slow("jobs to finish"))?
            .map(drop)
    }

    /// Measures the processes while nothing happens.
    pub async fn idle(&self, pids: &Pids) -> Result<Figures> {
        let mut window = Window::open(&self.bench.kubeconfig, &self.namespace, pids)?;
        while window.elapsed() < IDLE {
            tokio::time::sleep(LOOK).await;
            window.look()?;
        }
        let processes = window.used()?;
        Ok(Figures {
            window_seconds: window.elapsed().as_secs_f64(),
            requests: requests(&window.tally),
            rest_cpu_seconds: Some(rest(window.machine_used()?, &processes)),
            processes,
            objects: self.objects().await?.0,
            ..Figures::default()
        })
    }

    fn too_slow(&self, what: &str) -> String {
        format!("waited {:?} for the {what}", self.bench.limit)
    }

    /// Creates the jobs and waits until all are complete: how long that took, and when it was.
    async fn complete(&self, window: &mut Window) -> Result<(Duration, Timestamp)> {
        let began = Instant::now();
        let mut complete = BTreeSet::new();
        let mut seen = watcher(self.jobs(), watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let creating = self.create();
        tokio::pin!(creating);
        let mut is_created = false;
        loop {
            tokio::select! {
                made = &mut creating, if !is_created => {
                    made?;
                    is_created = true;
                }
                // A watch that broke begins again.
                job = seen.next() => if let Some(Ok(job)) = job && is_complete(&job)? {
                    complete.insert(job.name_any());
                },
                _ = looks.tick() => drop(window.look()?),
            }
            if is_created && complete.len() == self.size.jobs() as usize {
                return Ok((began.elapsed(), Timestamp::now()));
            }
        }
    }

    async fn create(&self) -> Result<()> {
        let (jobs, spacing) = (self.jobs(), self.size.spacing());
        let tasks = self.size.tasks_per_job();
        let began = tokio::time::Instant::now();
        let made = (0..self.size.jobs()).map(|index| {
            let jobs = &jobs;
            async move {
                tokio::time::sleep_until(began + spacing * index).await;
                let name = format!("job-{index}");
                // A batch/v1 Job without tasks is finished by its controller.
                let (job, status) = if self.size == Size::Finished && !self.kind.is_batch() {
                    let (job, status) = finished_deadline_job(&name);
                    (job, Some(status))
                } else {
                    (self.kind.manifest(&name, tasks), None)
                };
                let job: DynamicObject = serde_json::from_value(job)?;
                submit(jobs, &job).await?;
                if let Some(status) = status {
                    set_status(jobs, &name, status).await?;
                }
                anyhow::Ok(())
            }
        });
        stream::iter(made)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn quiet(&self, window: &mut Window) -> Result<()> {
        while window.look()? < QUIET {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until nothing is written and no finalizer of a controller is left on a pod.
    async fn released(&self, window: &mut Window) -> Result<()> {
        loop {
            self.quiet(window).await?;
            if pages(&self.pods(), |pod| !pod.finalizers().is_empty()).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Sizes of all jobs and of a page of pods, and the clones that the jobs count.
    async fn objects(&self) -> Result<(BTreeMap<String, Bytes>, u64)> {
        let mut sizes: BTreeMap<String, Bytes> = BTreeMap::new();
        let mut clones = 0;
        for (resource, pages) in [
            (ApiResource::erase::<Job>(&()), usize::MAX),
            (ApiResource::erase::<DeadlineJob>(&()), usize::MAX),
            (ApiResource::erase::<Pod>(&()), 1),
        ] {
            let client = self.bench.client.clone();
            let api: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &resource);
            let mut page = ListParams::default().limit(PAGE);
            for _ in 0..pages {
                let list = api.list(&page).await?;
                for object in &list.items {
                    let bytes = u64::try_from(shed::size::bytes(object))?;
                    sizes.entry(resource.plural.clone()).or_default().add(bytes);
                    let own = &object.data["status"]["attempts"]["clones"];
                    clones += own.as_u64().unwrap_or(0);
                }
                match list.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => page = page.continue_token(&token),
                    None => break,
                }
            }
        }
        Ok((sizes, clones))
    }

    /// Removes all of it, also after a run that broke off.
    pub async fn remove(&self) -> Result<()> {
        remove(&self.bench.client, &self.namespace).await
    }
}

/// Makes a namespace in which pods can be created.
pub async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let wanted: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let all: Api<Namespace> = Api::all(client.clone());
    all.create(&PostParams::default(), &wanted).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    let (what, within) = ("the namespace's service account", Duration::from_secs(60));
    let account = wait::for_object(&accounts, "default", what, within, |_| true);
    account.await.map(drop)
}

/// Creates an object. Of ten thousand requests one may have no answer, and may have been carried out.
pub async fn submit<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    for tries in 1.. {
        match api.create(&PostParams::default(), object).await {
            Ok(_) => break,
            Err(kube::Error::Api(status)) if status.code == 409 && tries > 1 => break,
            Err(error) => unanswered(error, tries).await?,
        }
    }
    Ok(())
}

async fn set_status(jobs: &Api<DynamicObject>, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    for tries in 1.. {
        match jobs
            .patch_status(name, &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => break,
            Err(error) => unanswered(error, tries).await?,
        }
    }
    Ok(())
}

/// Waits a moment after a request without an answer.
async fn unanswered(error: kube::Error, tries: u32) -> Result<()> {
    if tries == TRIES || matches!(error, kube::Error::Api(_)) {
        return Err(error.into());
    }
    tokio::time::sleep(LOOK).await;
    Ok(())
}

/// Removes a namespace with its jobs and pods, whether their controllers run or not.
pub async fn remove(client: &Client, namespace: &str) -> Result<()> {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let deadline_jobs: Api<DeadlineJob> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let (now, all) = (DeleteParams::background(), ListParams::default());
    let at_once = DeleteParams::default().grace_period(0);
    // The apiserver gives up on a collection after a minute; the next call deletes the rest.
    wait::until("jobs and pods to be gone", GONE_WITHIN, async || {
        drop(jobs.delete_collection(&now, &all).await?);
        drop(deadline_jobs.delete_collection(&now, &all).await?);
        free_pods(client, namespace).await?;
        drop(pods.delete_collection(&at_once, &all).await?);
        let left = pages(&pods, |_| true).await?;
        Ok(Seen::from_option((left == 0).then_some(()), || {
            format!("{left} pods")
        }))
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    drop(namespaces.delete(namespace, &now).await?);
    wait::for_absence(&namespaces, namespace, GONE_WITHIN).await
}

/// Counts pods for which `counts` is true.
async fn pages(
    pods: &Api<Pod>,
    counts: impl Fn(&kube::core::PartialObjectMeta<Pod>) -> bool,
) -> Result<usize> {
    let mut page = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let list = pods.list_metadata(&page).await?;
        count += list.items.iter().filter(|pod| counts(pod)).count();
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(count),
        }
    }
}

fn is_complete(job: &DynamicObject) -> Result<bool> {
    let conditions = job.data["status"]["conditions"].as_array();
    let has = |type_: &str| {
        let mut all = conditions.into_iter().flatten();
        all.any(|own| own["type"] == type_ && own["status"] == "True")
    };
    ensure!(
        !has("Failed"),
        "{} failed: {}",
        job.name_any(),
        job.data["status"]
    );
    Ok(has("Complete"))
}

fn requests(tally: &Tally) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut requests: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (request, count) in &tally.counts {
        let mut kind = format!("{} {}", request.verb, request.resource);
        if request.code >= 300 {
            kind = format!("{kind} {}", request.code);
        }
        let of_agent = requests.entry(request.agent.clone()).or_default();
        *of_agent.entry(kind).or_default() += count;
    }
    requests
}

/// Refuses sizes with more pods at once than the nodes take.
pub async fn ensure_capacity(client: &Client, sizes: &[Size]) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut capacity = 0;
    for node in nodes.list(&ListParams::default()).await? {
        let allocatable = node.status.and_then(|status| status.allocatable);
        let pods = allocatable.and_then(|all| all.get("pods")?.0.parse::<u32>().ok());
        capacity += pods.unwrap_or(0);
    }
    ensure_fit(capacity, sizes)
}

fn ensure_fit(capacity: u32, sizes: &[Size]) -> Result<()> {
    for size in sizes {
        ensure!(
            size.live() <= capacity,
            "the size {} has {} pods at once, and the cluster's nodes take {capacity}: set SHED_BENCH_NODES to {} or more, or choose another --size",
            size.name(),
            size.live(),
            size.live().div_ceil(PODS_PER_NODE)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_does_not_fit_is_refused_with_the_nodes_that_it_needs() {
        let sizes = [Size::OneBy1000, Size::OneBy10000];
        assert!(ensure_fit(11_000, &sizes).is_ok());
        let said = ensure_fit(1100, &sizes).unwrap_err().to_string();
        for part in ["1x10000", "take 1100", "SHED_BENCH_NODES to 91"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_failed_job_ends_a_run() {
        let job = |type_: &str| -> DynamicObject {
            let conditions = json!([{"type": type_, "status": "True"}]);
            let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
                "status": {"conditions": conditions}});
            serde_json::from_value(job).unwrap()
        };
        assert!(is_complete(&job("Complete")).unwrap());
        assert!(!is_complete(&job("Suspended")).unwrap());
        assert!(is_complete(&job("Failed")).is_err());
    }
}
