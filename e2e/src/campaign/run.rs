//! One run: a namespace, a proxy, an operator, a workload, and at most one fault.

mod end;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, Resource, ResourceExt};
use shed::api::{self, DeadlineJob};

use super::bloat::Bloat;
use super::check::{self, Known};
use super::edits::edit;
use super::environment::Environment;
use super::fault::{Fault, Point};
use super::foreign::is_foreign;
use super::history::{Entry, History};
use super::operator::Launcher;
use super::passes::Passes;
use super::proxy::{Proxy, Scope, Script, Seen};
use super::snapshot::Snapshot;
use super::states::{gone_jobs, latest_pods, users_jobs};
use super::tasks::Tasks;
use super::workload::{Expected, Meddling, Submission, When, Workload};
use crate::bench::namespace;
use crate::cluster::Cluster;
use crate::host_operator;
use crate::wait::phase;

/// Attempts that fit into the operator's capacity: few, so that clones and first attempts compete.
pub const CAPACITY: usize = 6;
/// How long a run may take in addition to the duration of its fault.
const PATIENCE: Duration = Duration::from_secs(150);
/// An operator that writes nothing for this long has nothing to do.
const QUIET: Duration = Duration::from_millis(2500);
/// How long an operator may take until its first lists are in.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);
/// How long after it was kept etcd's data is put back.
const RESTORED_AFTER: Duration = Duration::from_secs(4);

/// The state that all runs share.
pub struct Stage {
    /// Where they run.
    pub cluster: Cluster,
    /// Starts operators.
    pub launcher: Launcher,
    /// The reports of attempts.
    pub tasks: Arc<Tasks>,
    /// Where what is left of a failed run goes.
    pub folder: PathBuf,
}

/// The result of a run.
pub struct Outcome {
    /// The violations, in words.
    pub broken: Vec<String>,
    /// Observations of the operator.
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
    environment: Arc<Environment>,
    /// Objects that are not submitted yet.
    to_submit: Vec<Submission>,
    since: Instant,
    folder: PathBuf,
    /// Passes of the operator, where these matter.
    passes: Option<Passes>,
    /// Where the operator serves its metrics, once it runs.
    http: Option<SocketAddr>,
    meddled: BTreeSet<&'static str>,
    bloat: Bloat,
    /// Violations before the etcd restore; the history restarts there.
    before_restore: Option<Vec<String>>,
    snapshot: Option<(Snapshot, Instant)>,
    /// Jobs that were gone when the snapshot was taken: no later history tells of them.
    gone_before: BTreeSet<String>,
}

/// Goes through one run.
pub async fn run(
    stage: &Stage,
    workload: Workload,
    point: Option<Point>,
    name: &str,
) -> Result<Outcome> {
    let started = Instant::now();
    let folder = stage.folder.join(name);
    std::fs::create_dir_all(&folder)?;
    let client = stage.cluster.client();
    let environment =
        Environment::prepare(client.clone(), workload, point, &stage.tasks, name).await?;
    let environment = Arc::new(environment);
    let script = Script {
        scope: Scope {
            namespaces: environment.namespaces().cloned().collect(),
            nodes: environment.node_selector(name),
        },
        environment: Some(Arc::clone(&environment)),
        fares: Arc::new(move |job, task, attempt| workload.fare(job, task, attempt)),
        point,
        tasks: Arc::clone(&stage.tasks),
    };
    let own_nodes = environment.nodes.is_some().then_some(name);
    let namespaces = environment.namespaces();
    let history = History::record(client.clone(), namespaces, workload.is_adopted()).await?;
    let bloat = Bloat::new(stage.cluster.client(), &environment.own);
    let mut run = Run {
        stage,
        workload,
        point,
        proxy: Proxy::serve(client, script).await?,
        history,
        environment,
        to_submit: workload.jobs(stage.tasks.port, point, own_nodes),
        since: started,
        folder,
        passes: None,
        http: None,
        meddled: BTreeSet::new(),
        bloat,
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

impl Run<'_> {
    /// From the submission to the deletion; what goes wrong on the way is a violation.
    async fn go(&mut self) -> Result<()> {
        self.start_operator().await?;
        self.since = Instant::now();
        self.submit().await?;
        let editing = self.point.is_some_and(|p| p.fault == Fault::Conflicts);
        let editor = editing.then(|| {
            tokio::spawn(edit(
                self.stage.cluster.clone(),
                self.environment.own.clone(),
            ))
        });
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
        let own_nodes = self.environment.nodes.is_some();
        let operator = launcher.start(self.proxy.address, &self.folder, own_nodes)?;
        let http = operator.http;
        self.http = Some(http);
        self.proxy.watch_over(operator);
        host_operator::ready(http, READY_WITHIN).await?;
        if self.may_wait_for_none() {
            self.passes = Some(Passes::of(http));
        }
        Ok(())
    }

    /// Whether nothing that goes wrong is a reason for the operator to launch late.
    fn may_wait_for_none(&self) -> bool {
        let fault = self.point.map(|point| point.fault);
        fault.is_none_or(Fault::spares_operator)
    }

    /// Submits what is due.
    async fn submit(&mut self) -> Result<()> {
        let seen = self.proxy.seen();
        let is_due = |job: &mut Submission| match job.when {
            When::AtOnce => true,
            When::After(time) => self.since.elapsed() >= time,
            When::Struck => seen.struck,
            When::Refused => seen.struck && !seen.refused.is_empty(),
        };
        let due: Vec<Submission> = self.to_submit.extract_if(.., is_due).collect();
        for Submission { manifest, home, .. } in due {
            let home = self.environment.home(home);
            if manifest["kind"] == "Job" {
                let job: batch::Job = serde_json::from_value(manifest)?;
                namespace::submit(&self.all_in(home), &job).await?;
            } else {
                let job: DeadlineJob = serde_json::from_value(manifest)?;
                namespace::submit(&self.all_in(home), &job).await?;
            }
        }
        Ok(())
    }

    /// The fault, once it has struck.
    fn struck(&self) -> Option<Point> {
        self.point.filter(|_| self.proxy.seen().struck)
    }

    fn expected(&self) -> Vec<Expected> {
        self.workload.expected(self.struck())
    }

    fn all<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        self.all_in(&self.environment.own)
    }

    fn all_in<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.stage.cluster.client(), namespace)
    }

    fn patience(&self) -> Duration {
        PATIENCE + self.point.map_or(Duration::ZERO, |point| 2 * point.lasts)
    }

    /// Until every job has finished, and all work after its end is done.
    async fn until_ended(&mut self) -> Result<()> {
        let started = Instant::now();
        let mut looked_at = None;
        loop {
            self.keep_operator().await?;
            self.put_back().await?;
            self.submit().await?;
            // Once etcd is put back, another history begins.
            let now = Some((self.before_restore.is_some(), self.history.count()));
            if now != looked_at {
                looked_at = now;
                let states = self.history.so_far();
                self.meddle(&states).await?;
                self.environment.tend(self.all_decided(&states)).await?;
                // Finished work will be unfinished after the etcd restore.
                if self.all_ended(&states) && self.snapshot.is_none() {
                    return Ok(());
                }
            }
            self.bloat.tend().await?;
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
        // It logs a restart when it notices the etcd restore.
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
                let namespaces = self.environment.namespaces();
                self.history = History::record(client, namespaces, with_batch).await?;
                // Acts of users after the snapshot never happened.
                self.meddled.clear();
                self.proxy.strike();
            }
            earlier => self.snapshot = earlier,
        }
        Ok(())
    }

    fn known(&self, emptied: bool) -> Known {
        Known {
            capacity: CAPACITY,
            begins_at: self.history.begins_at(),
            deleted: self.proxy.seen().deleted,
            troubled: self.troubled(),
            bloated: self.bloated(),
            emptied,
        }
    }

    fn bloated(&self) -> BTreeSet<String> {
        let meddling = self.workload.meddling().iter();
        let bloated = meddling.filter_map(|meddling| match meddling {
            Meddling::Bloat { job } => Some((*job).to_owned()),
            _ => None,
        });
        bloated.collect()
    }

    fn troubled(&self) -> BTreeSet<String> {
        let names = self.workload.troubled().iter();
        names.map(ToString::to_string).collect()
    }

    fn all_decided(&self, states: &[Entry]) -> bool {
        let (jobs, gone) = (users_jobs(states), gone_jobs(states));
        self.expected().iter().all(|expected| {
            let mut jobs = jobs.iter();
            let job = jobs.find(|job| job.name == expected.job);
            job.map_or(gone.contains(expected.job), |job| job.is_decided)
        })
    }

    fn all_ended(&self, states: &[Entry]) -> bool {
        let jobs = users_jobs(states);
        self.expected().iter().all(|expected| {
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
                Meddling::Bloat { job } => {
                    self.bloat.begin(job, states).await?;
                    continue;
                }
            };
            let found = latest_pods(states).into_iter().find(|pod| {
                let label = |name: &str| pod.labels().get(name).map(String::as_str);
                label(api::LABEL_JOB_NAME) == Some(job)
                    && !is_foreign(pod)
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
                drop(self.all::<Pod>().delete(&pod.name_any(), &now).await?);
            }
        }
        Ok(())
    }

    /// I6: what has come to rest stays so, without a write.
    async fn until_quiet(&mut self) -> Result<()> {
        let started = Instant::now();
        let (mut writes, mut since) = (self.proxy.seen().writes, Instant::now());
        let quiet = match self.workload {
            // Long enough for whatever looks at every job now and then.
            Workload::ManyFinished => 4 * QUIET,
            _ => QUIET,
        };
        while since.elapsed() < quiet {
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
}
