//! One run: a namespace, a proxy, an operator, a workload, and at most one fault.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shed::api::{self, DeadlineJob};

use super::check::{self, Known};
use super::fault::{Fault, Point};
use super::history::{Entry, History};
use super::operator::{self, Launcher};
use super::proxy::{Proxy, Script, Seen};
use super::snapshot::Snapshot;
use super::states::{self, gone_jobs, latest_pods, users_jobs};
use super::tasks::Tasks;
use super::workload::{Meddling, Workload};
use crate::cluster::Cluster;
use crate::wait::{self, phase};

/// Attempts that the operator has room for: few, so that clones and first attempts compete.
pub const ROOM: usize = 6;
/// How long a run may take beside what its fault lasts.
const PATIENCE: Duration = Duration::from_secs(150);
/// An operator that has nothing to do writes nothing for so long.
const QUIET: Duration = Duration::from_millis(2500);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);
/// How long after it was kept etcd's data is put back.
const RESTORED_AFTER: Duration = Duration::from_secs(4);
/// How often a job or pod is edited under [`Fault::Conflicts`].
const EDIT_EVERY: Duration = Duration::from_millis(50);

/// What all runs share.
pub struct Stage {
    /// Where they run.
    pub cluster: Cluster,
    /// Starts operators.
    pub launcher: Launcher,
    /// What attempts report.
    pub tasks: Arc<Tasks>,
    /// Where what is left of a failed run goes.
    pub folder: PathBuf,
}

/// What came of a run.
pub struct Outcome {
    /// What was broken, in words.
    pub broken: Vec<String>,
    /// What was seen of the operator.
    pub seen: Seen,
    /// States in the history.
    pub states: usize,
    /// How long it took.
    pub took: Duration,
}

/// One run that is under way.
struct Run<'s> {
    stage: &'s Stage,
    workload: Workload,
    point: Option<Point>,
    proxy: Proxy,
    history: History,
    namespace: String,
    folder: PathBuf,
    /// Where the operator serves its metrics, once it runs.
    http: Option<SocketAddr>,
    deleted_by_user: BTreeSet<String>,
    meddled: BTreeSet<&'static str>,
    /// What was broken before etcd was put back; the history begins anew there.
    before_restore: Option<Vec<String>>,
    snapshot: Option<(Snapshot, Instant)>,
    /// Jobs that were gone when the snapshot was taken: no later history tells of them.
    gone_before: BTreeSet<String>,
}

/// Goes through one run.
///
/// # Errors
/// If it can't be set up; what the operator does wrong is in the outcome.
pub async fn run(
    stage: &Stage,
    workload: Workload,
    point: Option<Point>,
    name: &str,
) -> Result<Outcome> {
    let started = Instant::now();
    let folder = stage.folder.join(name);
    std::fs::create_dir_all(&folder)?;
    let namespace = format!("campaign-{name}");
    make_namespace(&stage.cluster, &namespace).await?;
    let script = Script {
        namespace: namespace.clone(),
        workload,
        point,
        tasks: Arc::clone(&stage.tasks),
    };
    let client = stage.cluster.client();
    let mut run = Run {
        stage,
        workload,
        point,
        proxy: Proxy::serve(client.clone(), script).await?,
        history: History::record(client, &namespace, workload.is_adopted()).await?,
        namespace,
        folder,
        http: None,
        deleted_by_user: BTreeSet::new(),
        meddled: BTreeSet::new(),
        before_restore: None,
        snapshot: None,
        gone_before: BTreeSet::new(),
    };
    let broken = run.go().await;
    run.proxy.kill().await;
    let seen = run.proxy.seen();
    let states = run.history.count();
    let broken = run.verdict(broken, &seen);
    run.clean_up(&broken, &seen).await?;
    Ok(Outcome {
        broken,
        seen,
        states,
        took: started.elapsed(),
    })
}

async fn make_namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let all: Api<Namespace> = Api::all(cluster.client());
    all.create(&PostParams::default(), &namespace).await?;
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::namespaced(cluster.client(), name);
    let what = "the namespace's service account";
    wait::for_object(&accounts, "default", what, Duration::from_secs(60), |_| {
        true
    })
    .await
    .map(drop)
}

impl Run<'_> {
    /// From the submission to the deletion; what goes wrong on the way is a violation.
    async fn go(&mut self) -> Result<()> {
        self.start_operator().await?;
        self.submit().await?;
        let editing = self.point.is_some_and(|p| p.fault == Fault::Conflicts);
        let editor =
            editing.then(|| tokio::spawn(edit(self.stage.cluster.clone(), self.namespace.clone())));
        let ended = self.until_ended().await;
        if let Some(editor) = editor {
            editor.abort();
        }
        ended?;
        self.until_quiet().await?;
        self.ends_as_expected()?;
        self.delete_all().await
    }

    async fn start_operator(&mut self) -> Result<()> {
        let launcher = &self.stage.launcher;
        let started = launcher.start(self.proxy.address, &self.folder)?;
        self.http = Some(started.http);
        self.proxy.watch_over(started.process);
        operator::ready(started.http).await
    }

    async fn submit(&self) -> Result<()> {
        for manifest in self.workload.jobs(self.stage.tasks.port) {
            match self.workload.is_adopted() {
                true => create(&self.all::<batch::Job>(), manifest).await?,
                false => create(&self.all::<DeadlineJob>(), manifest).await?,
            }
        }
        Ok(())
    }

    fn all<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.stage.cluster.client(), &self.namespace)
    }

    fn patience(&self) -> Duration {
        PATIENCE + self.point.map_or(Duration::ZERO, |point| 2 * point.lasts)
    }

    /// Until every job has come to its end, and all that is to be done after it is done.
    async fn until_ended(&mut self) -> Result<()> {
        let started = Instant::now();
        let mut looked_at = None;
        loop {
            self.keep_operator().await?;
            self.put_back().await?;
            // Once etcd is put back, another history begins.
            let now = Some((self.before_restore.is_some(), self.history.count()));
            if now != looked_at {
                looked_at = now;
                let states = self.history.so_far();
                self.meddle(&states).await?;
                // What has ended will not have ended once etcd is put back.
                if self.all_ended(&states) && self.snapshot.is_none() {
                    return Ok(());
                }
            }
            if started.elapsed() > self.patience() {
                bail!(
                    "I3: not every job came to its end within {:?}",
                    self.patience()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A killed operator is started again, as a Deployment does; one that ended by itself is not.
    async fn keep_operator(&mut self) -> Result<()> {
        if self.proxy.operator_runs() {
            return Ok(());
        }
        // It says that it starts anew when it notices that etcd was put back.
        let may_end = self
            .point
            .is_some_and(|point| matches!(point.fault, Fault::Crash | Fault::EtcdRestore));
        if !may_end || !self.proxy.seen().struck {
            bail!("I9: the operator ended by itself");
        }
        self.proxy.kill().await;
        self.start_operator().await
    }

    /// Keeps etcd's data at the point, and puts it back some seconds later.
    async fn put_back(&mut self) -> Result<()> {
        let Some(point) = self.point.filter(|p| p.fault == Fault::EtcdRestore) else {
            return Ok(());
        };
        let seen = self.proxy.seen();
        match self.snapshot.take() {
            None if !seen.struck && seen.writes >= point.at => {
                self.gone_before = gone_jobs(&self.history.so_far());
                self.snapshot = Some((Snapshot::take().await?, Instant::now()));
            }
            Some((snapshot, since)) if since.elapsed() >= RESTORED_AFTER => {
                let known = self.known(false);
                let mut broken = check::check(&self.history.complete(), &known);
                broken.retain(|line| !line.contains("I3"));
                self.before_restore = Some(broken);
                snapshot.put_back().await?;
                let client = self.stage.cluster.client();
                let with_batch = self.workload.is_adopted();
                self.history = History::record(client, &self.namespace, with_batch).await?;
                // What a user did after the snapshot never happened.
                self.meddled.clear();
                self.proxy.strike();
            }
            earlier => self.snapshot = earlier,
        }
        Ok(())
    }

    fn known(&self, emptied: bool) -> Known {
        Known {
            room: ROOM,
            begins_at: self.history.begins_at(),
            deleted_by_user: self.deleted_by_user.clone(),
            emptied,
        }
    }

    fn all_ended(&self, states: &[Entry]) -> bool {
        let jobs = users_jobs(states);
        self.workload.expected().iter().all(|expected| {
            match jobs.iter().find(|job| job.name == expected.job) {
                // The watch may not have shown it yet.
                None => {
                    let gone = expected.job;
                    self.gone_before.contains(gone) || gone_jobs(states).contains(gone)
                }
                Some(job) => expected.end.is_some() && job.is_finished,
            }
        })
    }

    async fn meddle(&mut self, states: &[Entry]) -> Result<()> {
        for meddling in self.workload.meddling() {
            let (job, task) = match meddling {
                Meddling::DeletePod { job } => (*job, Some("2")),
                Meddling::DeleteJob { job } => (*job, None),
            };
            let found = latest_pods(states).into_iter().find(|pod| {
                let label = |name: &str| pod.labels().get(name).map(String::as_str);
                label(api::LABEL_JOB_NAME) == Some(job)
                    && phase(pod) == "Running"
                    && task.is_none_or(|task| label(api::LABEL_INDEX) == Some(task))
            });
            let Some(pod) = found.filter(|_| self.meddled.insert(job)) else {
                continue;
            };
            let now = DeleteParams::background();
            if task.is_none() {
                drop(self.all::<DeadlineJob>().delete(job, &now).await?);
            } else {
                self.deleted_by_user.insert(pod.uid().unwrap_or_default());
                drop(self.all::<Pod>().delete(&pod.name_any(), &now).await?);
            }
        }
        Ok(())
    }

    /// I6: what has come to rest stays so, without a write.
    async fn until_quiet(&mut self) -> Result<()> {
        let started = Instant::now();
        let (mut writes, mut since) = (self.proxy.seen().writes, Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(LOOK).await;
            self.keep_operator().await?;
            let now = self.proxy.seen().writes;
            if now != writes {
                (writes, since) = (now, Instant::now());
            }
            if started.elapsed() > self.patience() {
                bail!("I6: all jobs have ended, and the operator goes on writing");
            }
        }
        Ok(())
    }

    /// How each job ended, where no deadline passed during the fault.
    fn ends_as_expected(&self) -> Result<()> {
        let is_open = self
            .point
            .is_some_and(|point| point.fault.outlasts_deadlines());
        let jobs = users_jobs(&self.history.so_far());
        for expected in self.workload.expected() {
            let found = jobs.iter().find(|job| job.name == expected.job);
            let (Some((type_, reason)), Some(job)) = (expected.end, found) else {
                continue;
            };
            if !job.says(type_, reason) && !is_open {
                bail!("I3: {} did not end as {type_} {reason}: {job:?}", job.name);
            }
        }
        Ok(())
    }

    /// I8: nothing is left of deleted jobs, neither objects nor metrics.
    async fn delete_all(&mut self) -> Result<()> {
        let (now, all) = (DeleteParams::background(), ListParams::default());
        // The garbage collector takes companions away with their Jobs.
        match self.workload.is_adopted() {
            true => drop(
                self.all::<batch::Job>()
                    .delete_collection(&now, &all)
                    .await?,
            ),
            false => drop(
                self.all::<DeadlineJob>()
                    .delete_collection(&now, &all)
                    .await?,
            ),
        }
        let started = Instant::now();
        loop {
            self.keep_operator().await?;
            let states = self.history.so_far();
            let (pods, jobs) = (latest_pods(&states).len(), states::jobs(&states));
            let series = match self.http {
                Some(http) => operator::series_of(http, &self.namespace).await,
                None => None,
            };
            if pods + jobs == 0 && series == Some(0) {
                return Ok(());
            }
            if started.elapsed() > Duration::from_secs(60) {
                bail!(
                    "I8: a minute after the deletion of all jobs there are {jobs} jobs, {pods} pods, {series:?} series"
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn verdict(&self, went: Result<()>, seen: &Seen) -> Vec<String> {
        let emptied = went.is_ok();
        let mut broken: Vec<String> = went
            .err()
            .map(|error| format!("{error:#}"))
            .into_iter()
            .collect();
        broken.extend(self.history.broken());
        broken.extend(self.before_restore.iter().flatten().cloned());
        let known = self.known(emptied);
        broken.extend(check::check(&self.history.so_far(), &known));
        broken.extend(seen.unguarded.iter().cloned());
        broken
    }

    /// Keeps what explains a failure, and nothing else.
    async fn clean_up(&self, broken: &[String], seen: &Seen) -> Result<()> {
        if broken.is_empty() {
            std::fs::remove_dir_all(&self.folder)?;
        } else {
            std::fs::write(self.folder.join("violations"), broken.join("\n"))?;
            std::fs::write(self.folder.join("calls"), seen.log.join("\n"))?;
            std::fs::write(
                self.folder.join("history"),
                states::told(&self.history.so_far())?,
            )?;
            self.strip_finalizers().await?;
        }
        let namespaces: Api<Namespace> = Api::all(self.stage.cluster.client());
        drop(
            namespaces
                .delete(&self.namespace, &DeleteParams::background())
                .await?,
        );
        Ok(())
    }

    async fn strip_finalizers(&self) -> Result<()> {
        let pods: Api<Pod> = self.all();
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        for pod in pods.list(&ListParams::default()).await? {
            // Another may still be freed though this one is gone by now.
            drop(
                pods.patch(&pod.name_any(), &PatchParams::default(), &none)
                    .await,
            );
        }
        Ok(())
    }
}

async fn create<K>(api: &Api<K>, manifest: Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(manifest)?;
    drop(api.create(&PostParams::default(), &object).await?);
    Ok(())
}

/// Edits labels of every job and pod of the namespace, again and again.
async fn edit(cluster: Cluster, namespace: String) {
    let jobs: Api<DeadlineJob> = Api::namespaced(cluster.client(), &namespace);
    let batch: Api<batch::Job> = Api::namespaced(cluster.client(), &namespace);
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    let mut ticks = tokio::time::interval(EDIT_EVERY);
    for count in 0_u32.. {
        ticks.tick().await;
        edit_all(&jobs, count).await;
        edit_all(&batch, count).await;
        if count.is_multiple_of(5) {
            edit_all(&pods, count).await;
        }
    }
}

/// An edit that doesn't come through is one less.
async fn edit_all<K>(api: &Api<K>, count: u32)
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let parameters = PatchParams::default();
    let label = Patch::Merge(json!({"metadata": {"labels": {"edited": count.to_string()}}}));
    for object in api.list(&ListParams::default()).await.into_iter().flatten() {
        drop(api.patch(&object.name_any(), &parameters, &label).await);
    }
}
