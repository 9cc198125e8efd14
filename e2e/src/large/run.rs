//! One run: jobs arrive, complete and are deleted, while every state is checked.

mod observed;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use shed::api::DeadlineJob;
use tokio::time::{MissedTickBehavior, interval};

use self::observed::Observed;
use super::Options;
use super::figures::{Figures, Load, Moment, Trouble};
use super::nodes::{EVERY, Losses};
use super::replicas::Replicas;
use crate::bench::components::components;
use crate::bench::namespace::{AT_ONCE, Arrival, make_namespace, remove, submit_all};
use crate::bench::site::Site;
use crate::campaign::fault::{Fault, Point};
use crate::campaign::history::History;
use crate::campaign::proxy::{Proxy, Scope, Script};
use crate::campaign::tasks::Tasks;
use crate::campaign::workload::Fare;
use crate::campaign::{draw, nodes};
use crate::jobs::{manifest, shell_or_fake};
use crate::process::{machine_memory, taken};

/// How often new states are checked.
const LOOK: Duration = Duration::from_millis(500);
/// How often memory is read.
const SAMPLE: Duration = Duration::from_secs(5);
/// Operators that write nothing for this long have nothing to do.
const QUIET: Duration = Duration::from_secs(10);
/// How long it may take until they are quiet, and until deleted jobs are gone.
const PATIENCE: Duration = Duration::from_secs(300);
/// With less free memory, in KiB, the machine is the limit.
const MEMORY_MIN: u64 = 1 << 20;
/// One task of this many is a straggler.
const STRAGGLER: u64 = 20;
/// One job of this many reports progress, and its clones resume.
const REPORTING: u32 = 10;
/// Pods leave a lost node after this time, in seconds.
const TOLERATED_SECONDS: u32 = 10;

/// A run that is under way.
struct Live<'s> {
    site: &'s Site,
    load: Load,
    /// How long jobs may take to complete.
    limit: Duration,
    namespace: String,
    proxy: Proxy,
    history: History,
    replicas: Replicas,
    observed: Observed,
    losses: Option<Losses>,
    began: Instant,
    memory: Vec<Moment>,
}

impl Options {
    /// Goes through one run.
    ///
    /// # Errors
    /// If it can't be set up or cleaned up. What goes wrong in between is in the figures.
    pub(super) async fn run(&self, site: &Site, load: Load) -> Result<Figures> {
        let namespace = match load.trouble {
            Trouble::None => "large-calm".to_owned(),
            Trouble::All => "large-trouble".to_owned(),
        };
        make_namespace(&site.client, &namespace).await?;
        let folder = std::path::absolute(&self.folder)?.join(&namespace);
        std::fs::create_dir_all(&folder)?;
        let script = script(load.trouble, &namespace).await?;
        let proxy = Proxy::serve(site.client.clone(), script).await?;
        let history = History::record(site.client.clone(), std::iter::once(&namespace), false);
        let history = history.await?;
        let observed = Observed::new(load, history.begins_at());
        let losses = match load.trouble {
            Trouble::None => None,
            Trouble::All => Some(Losses::of(site.client.clone()).await?),
        };
        let replicas = Replicas::start(&site.program, proxy.address, &folder).await?;
        let run = Live {
            site,
            load,
            limit: Duration::from_secs(self.run_seconds),
            namespace: namespace.clone(),
            proxy,
            history,
            replicas,
            observed,
            losses,
            began: Instant::now(),
            memory: Vec::new(),
        };
        let kill_every = Duration::from_secs(self.kill_seconds);
        let figures = run.go(self.rate, kill_every).await;
        remove(&site.client, &namespace).await?;
        figures
    }
}

async fn script(trouble: Trouble, namespace: &str) -> Result<Script> {
    let point = Point {
        fault: Fault::Turmoil,
        at: 1,
        lasts: Duration::ZERO,
    };
    Ok(Script {
        scope: Scope {
            namespaces: vec![namespace.to_owned()],
            nodes: format!("!{}", nodes::RUN),
        },
        environment: None,
        fares: Arc::new(fare),
        point: (trouble == Trouble::All).then_some(point),
        tasks: Arc::new(Tasks::serve().await?),
    })
}

/// A straggler would miss its job's deadline; the others take 5 to 15 s.
fn fare(job: &str, task: u32, attempt: u32) -> Fare {
    let seed = job.bytes().fold(7, |seed, byte| draw(seed, byte.into()));
    let is_straggler = attempt == 0 && draw(seed, task.into()).is_multiple_of(STRAGGLER);
    let usual = 5000 + draw(seed, u64::from(task) << 8 | u64::from(attempt)) % 10_000;
    Fare {
        whole: Duration::from_millis(if is_straggler { 240_000 } else { usual }),
        exit: 0,
    }
}

fn job(index: u32, tasks: u32, port: u16) -> Value {
    let mut template = shell_or_fake("exit 0", 1000, 0);
    let leaves = |key: &str| {
        json!({"key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": TOLERATED_SECONDS})
    };
    template["spec"]["tolerations"] = json!([
        leaves("node.kubernetes.io/unreachable"),
        leaves("node.kubernetes.io/not-ready"),
    ]);
    let mut spec = json!({
        "completions": tasks,
        "deadline": {"within": "3m"},
        "onMiss": "Continue",
        "expectedTaskDuration": {"p50": "10s", "p90": "14s"},
        "template": template,
    });
    if index.is_multiple_of(REPORTING) {
        spec["progress"] = json!({"httpGet": {"port": port}, "periodSeconds": 5});
        spec["resume"] = json!("Checkpoint");
    }
    manifest(&format!("job-{index}"), &spec)
}

impl Live<'_> {
    async fn go(mut self, rate: f64, kill_every: Duration) -> Result<Figures> {
        let apiserver = self.component("kube-apiserver")?;
        let before = taken(apiserver)?.cpu;
        let went = self.complete(rate, kill_every).await;
        let wall = self.began.elapsed();
        let mut stopped = went.err().map(|error| format!("{error:#}"));
        if let Some(losses) = &mut self.losses {
            losses.restore(None).await?;
        }
        if stopped.is_none() {
            let ended = self.end().await;
            stopped = ended.err().map(|error| format!("{error:#}"));
        }
        let cpu_seconds = self.replicas.cpu();
        let (requests, writes) = self.proxy.counts();
        let figures = Figures {
            rate,
            wall_seconds: wall.as_secs_f64(),
            stopped,
            requests,
            writes,
            cpu_seconds,
            apiserver_cpu_seconds: taken(apiserver)?.cpu - before,
            killed: self.replicas.killed,
            lost_nodes: self.losses.as_ref().map_or(0, |losses| losses.count),
            memory: std::mem::take(&mut self.memory),
            ..Figures::default()
        };
        self.observe();
        let (rest, unguarded) = (self.history.so_far(), self.proxy.seen().unguarded);
        let mut broken: Vec<String> = self.history.broken().into_iter().collect();
        broken.extend(unguarded);
        Ok(self.observed.end(&rest, broken, figures))
    }

    fn component(&self, name: &str) -> Result<u32> {
        let pids = components(&self.site.kubeconfig)?;
        pids.get(name).copied().with_context(|| name.to_owned())
    }

    /// Creates the jobs and waits until all are complete.
    async fn complete(&mut self, rate: f64, kill_every: Duration) -> Result<()> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.site.client.clone(), &self.namespace);
        let (tasks, port) = (self.load.tasks, self.proxy.port());
        let arrivals = (0..self.load.jobs).map(move |index| {
            let after = Duration::from_secs_f64(f64::from(index) / rate);
            Arrival::new(after, job(index, tasks, port))
        });
        let creating = async move { submit_all(&jobs, arrivals, AT_ONCE).await };
        let mut creating = tokio::spawn(creating);
        let timer = |period| {
            let begin = tokio::time::Instant::now() + period;
            let mut timer = tokio::time::interval_at(begin, period);
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            timer
        };
        let (mut kills, mut losses) = (timer(kill_every), timer(EVERY));
        let (mut looks, mut samples) = (interval(LOOK), interval(SAMPLE));
        let mut is_created = false;
        loop {
            tokio::select! {
                made = &mut creating, if !is_created => {
                    made??;
                    is_created = true;
                }
                _ = kills.tick(), if self.losses.is_some() => self.replicas.kill_leader().await?,
                _ = losses.tick(), if self.losses.is_some() => if let Some(losses) = &mut self.losses {
                    losses.next().await?;
                },
                _ = samples.tick() => self.sample()?,
                _ = looks.tick() => self.look()?,
            }
            if self.observed.complete() == u64::from(self.load.jobs) {
                return Ok(());
            }
            ensure!(
                self.began.elapsed() < self.limit,
                "{} of {} jobs were complete after {:?}",
                self.observed.complete(),
                self.load.jobs,
                self.limit
            );
        }
    }

    fn look(&mut self) -> Result<()> {
        self.observe();
        if let Some(gap) = self.history.broken() {
            bail!("the apiserver was too slow for the watches of this bench: {gap}");
        }
        self.replicas.ensure_alive()
    }

    /// Checks the states that are new.
    fn observe(&mut self) {
        let states = self.history.take_complete();
        // Later than the states: an operator asks for a deletion before that is seen.
        let deleted = self.proxy.take_deleted();
        self.observed.take(&states, deleted);
    }

    fn sample(&mut self) -> Result<()> {
        let mebibytes = |name: &str| anyhow::Ok(taken(self.component(name)?)?.rss >> 10);
        let moment = Moment {
            seconds: self.began.elapsed().as_secs_f64(),
            live: self.observed.live(),
            complete: self.observed.complete(),
            operator: self.replicas.memory() >> 10,
            apiserver: mebibytes("kube-apiserver")?,
            etcd: mebibytes("etcd")?,
        };
        eprintln!(
            "  {:5.0} s: {} live, {} of {} jobs complete, MiB: operator {}, apiserver {}, etcd {}",
            moment.seconds,
            moment.live,
            moment.complete,
            self.load.jobs,
            moment.operator,
            moment.apiserver,
            moment.etcd
        );
        self.memory.push(moment);
        let free = machine_memory("MemAvailable:")?;
        ensure!(
            free > MEMORY_MIN,
            "the machine has {} MiB of free memory left",
            free >> 10
        );
        Ok(())
    }

    /// I6 and I8: what has come to rest stays so, and nothing is left of deleted jobs.
    async fn end(&mut self) -> Result<()> {
        let began = Instant::now();
        let (mut writes, mut since) = (self.proxy.counts().1, Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(LOOK).await;
            self.look()?;
            let now = self.proxy.counts().1;
            if now != writes {
                (writes, since) = (now, Instant::now());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "I6: all jobs are complete, and the operators still write after {PATIENCE:?}"
            );
        }
        self.delete().await
    }

    async fn delete(&mut self) -> Result<()> {
        let client = self.site.client.clone();
        let jobs: Api<DeadlineJob> = Api::namespaced(client, &self.namespace);
        let (now, all) = (DeleteParams::background(), ListParams::default());
        let began = Instant::now();
        loop {
            // The apiserver gives up on a collection after a minute; the next call deletes the rest.
            drop(jobs.delete_collection(&now, &all).await);
            tokio::time::sleep(SAMPLE).await;
            self.look()?;
            let (left, series) = (
                self.observed.objects(),
                self.replicas.series_of(&self.namespace).await,
            );
            if left == 0 && series == Some(0) {
                self.observed.all_deleted();
                return Ok(());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "I8: {left} jobs and pods and {series:?} series are left {PATIENCE:?} after the deletion of all jobs"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_task_in_twenty_is_a_straggler_and_its_clone_is_none() {
        let slow = |attempt: u32| {
            let all = (0..2000).filter(|task| fare("job-3", *task, attempt).whole.as_secs() > 15);
            all.count()
        };
        assert!((70..130).contains(&slow(0)), "{}", slow(0));
        assert_eq!(slow(1), 0);
    }

    #[test]
    fn one_job_in_ten_reports_progress() {
        let reports = |index| job(index, 5, 80)["spec"]["progress"].is_object();
        assert_eq!((0..30).filter(|index| reports(*index)).count(), 3);
        let job: DeadlineJob = serde_json::from_value(job(0, 5, 80)).unwrap();
        assert_eq!(job.spec.completions, 5);
    }
}
