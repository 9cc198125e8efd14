//! How each symptom is caused and ended.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use shed::api::{Ledger, QuarantineEntry};
use shed::clock;
use shed_core::time::Span;
use tokio::task::JoinHandle;

use super::apiserver_line::ApiserverLine;
use super::operator::Operator;
use super::symptom::Symptom;
use super::workload::{Workload, hopeless, missed, overdue, reporting, suspended, unplaceable};
use crate::campaign::tasks::Tasks;
use crate::host_operator::free_address;
use crate::jobs::status;
use crate::patches::merge;
use crate::process::{signal, taken};
use crate::wait::{self, Seen};

/// Names of the Lease and of its namespace, as the operator's defaults are.
const LEASE: &str = "shed";
const LEASE_NAMESPACE: &str = "default";
/// The client that takes the Lease.
const INTRUDER: &str = "monitoring";
/// How often the Lease's holder is read, and how often a job is submitted that misses its deadline.
const LEASE_LOOK: Duration = Duration::from_millis(500);
const MISS_EVERY: Duration = Duration::from_secs(1);
/// How long a throttled operator stands, shorter than a scrape may take, and how much CPU time it has in between, in
/// seconds: less than half of a decision needs, so that two pauses fall into it.
const PAUSED: Duration = Duration::from_millis(600);
const RUNS: f64 = 0.01;
/// How often its CPU time is read, and how long an idle one may run.
const CPU_LOOK: Duration = Duration::from_millis(10);
const IDLE_MAX: Duration = Duration::from_secs(2);
/// Tasks of a busy planner, of jobs whose polls fail, and of jobs whose polls are late.
const BUSY_TASKS: u32 = 300;
const REFUSED_TASKS: u32 = 20;
const LATE_TASKS: u32 = 100;
/// How long a job is held in quarantine: longer than the symptom lasts.
const HELD: Span = Span::from_seconds(1800);
/// How long a status may take to change.
const SOON: Duration = Duration::from_secs(60);

/// The name of the symptom's job.
const JOB: &str = "symptom";
/// Duration of tasks that report progress.
const WHOLE: Duration = Duration::from_secs(1800);

/// Where symptoms are caused.
pub struct Stage {
    /// An administrator's.
    pub client: Client,
    /// The jobs.
    pub workload: Workload,
    /// The operator.
    pub operator: Operator,
    /// The operator's connection to the apiserver.
    pub line: ApiserverLine,
    /// Tasks that report progress.
    pub tasks: Tasks,
}

/// A symptom that lasts.
pub struct Lasting {
    symptom: Symptom,
    /// Keeps it up.
    actor: Option<JoinHandle<Result<()>>>,
}

impl Lasting {
    /// Waits until what keeps the symptom up fails; without end if nothing has to.
    pub async fn ended(&mut self) -> anyhow::Error {
        let Some(actor) = &mut self.actor else {
            return std::future::pending().await;
        };
        match actor.await {
            Ok(Ok(())) => anyhow::anyhow!("the symptom ended by itself"),
            Ok(Err(error)) => error.context("keeping the symptom up"),
            Err(error) => error.into(),
        }
    }
}

impl Stage {
    /// Causes a symptom.
    pub async fn begin(&mut self, symptom: Symptom) -> Result<Lasting> {
        let mut actor = None;
        match symptom {
            Symptom::MissedDeadlines => actor = Some(tokio::spawn(miss(self.workload.clone()))),
            Symptom::HopelessJob => self.workload.submit(JOB, &hopeless()).await?,
            Symptom::OverdueJob => self.workload.submit(JOB, &overdue()).await?,
            Symptom::NoOperator => self.operator.stop().await?,
            Symptom::TakenLease => {
                self.operator.restart_with_shipped_lease().await?;
                actor = Some(tokio::spawn(take_lease(self.client.clone())));
            }
            Symptom::QuarantinedJob => self.quarantine().await?,
            Symptom::UnadoptedJob => {
                self.workload.submit_batch(JOB).await?;
                self.workload.runs(JOB, 2).await?;
                self.operator.restart(&["--adopt-jobs", "none"]).await?;
            }
            Symptom::BlockedJob => self.workload.submit(JOB, &unplaceable()).await?,
            Symptom::RefusedPolls => {
                let port = free_address()?.port();
                let job = reporting(REFUSED_TASKS, Ipv4Addr::LOCALHOST, port);
                self.workload.submit(JOB, &job).await?;
            }
            Symptom::SmallPollBudget => {
                let budget = ["--progress-polls-per-second", "1"];
                self.operator.restart(&budget).await?;
                let job = self.reporting(LATE_TASKS);
                self.workload.submit(JOB, &job).await?;
            }
            Symptom::ThrottledOperator => {
                let job = self.reporting(BUSY_TASKS);
                self.workload.submit(JOB, &job).await?;
                self.workload.runs(JOB, BUSY_TASKS as usize).await?;
                actor = Some(tokio::spawn(throttle(self.operator.pid()?)));
            }
            Symptom::TwoClocks => self.line.let_clocks_disagree(true),
            Symptom::HeldWatches => self.line.hold_watches(true),
            Symptom::LowMemoryLimit => {
                let used = taken(self.operator.pid()?)?.rss * 1024;
                self.operator.restart_with_limit(used).await?;
            }
            Symptom::FaultyPolicy => {
                self.operator.restart_with_faulty_policy().await?;
                let job = self.reporting(1);
                self.workload.submit(JOB, &job).await?;
            }
        }
        Ok(Lasting { symptom, actor })
    }

    /// Ends a symptom.
    pub async fn end(&mut self, lasting: Lasting) -> Result<()> {
        if let Some(actor) = lasting.actor {
            actor.abort();
            // Its last step may be under way until then.
            let _ = actor.await;
        }
        match lasting.symptom {
            Symptom::MissedDeadlines => Ok(()),
            Symptom::HopelessJob
            | Symptom::OverdueJob
            | Symptom::QuarantinedJob
            | Symptom::BlockedJob
            | Symptom::RefusedPolls => self.workload.delete(JOB).await,
            Symptom::NoOperator | Symptom::LowMemoryLimit => self.operator.restart(&[]).await,
            Symptom::TakenLease => {
                self.operator.leads().await?;
                self.operator.restart(&[]).await
            }
            Symptom::UnadoptedJob => {
                self.operator.restart(&[]).await?;
                self.workload.delete_batch(JOB).await
            }
            Symptom::SmallPollBudget | Symptom::FaultyPolicy => {
                self.operator.restart(&[]).await?;
                self.workload.delete(JOB).await
            }
            Symptom::ThrottledOperator => {
                signal(self.operator.pid()?, "CONT").await?;
                self.workload.delete(JOB).await
            }
            Symptom::TwoClocks => {
                self.line.let_clocks_disagree(false);
                Ok(())
            }
            Symptom::HeldWatches => {
                self.line.hold_watches(false);
                Ok(())
            }
        }
    }

    /// A job whose tasks report progress.
    pub fn reporting(&self, tasks: u32) -> serde_json::Value {
        let task = (JOB.to_owned(), tasks);
        let address = self.tasks.begin(task, 0.0, WHOLE);
        reporting(tasks, address, self.tasks.port)
    }

    /// Leaves the record that an operator writes before it exits for a stuck step of a job.
    async fn quarantine(&self) -> Result<()> {
        self.workload.submit(JOB, &suspended()).await?;
        let jobs = self.workload.jobs();
        let what = "the job to be suspended";
        wait::for_object(&jobs, JOB, what, SOON, |job| {
            status(job).phase.as_deref() == Some("Suspended")
        })
        .await?;
        wait::until("the quarantine to be written", SOON, async || {
            let mut live = jobs.get(JOB).await?;
            let status = live.status.get_or_insert_default();
            let ledger: &mut Ledger = status.ledger.get_or_insert_default();
            ledger.revision += 1;
            ledger.quarantine = Some(QuarantineEntry {
                reason: "ReconcileStuck".to_owned(),
                count: 3,
                until: clock::wall().plus(HELD),
            });
            let written = jobs
                .replace_status(JOB, &PostParams::default(), &live)
                .await;
            match written {
                Ok(_) => Ok(Seen::Ready(())),
                // The operator was quicker.
                Err(kube::Error::Api(refused)) if refused.code == 409 => {
                    Ok(Seen::NotYet(refused.message.clone()))
                }
                Err(error) => Err(error.into()),
            }
        })
        .await?;
        let runs = json!({"spec": {"suspend": false}});
        Ok(merge(&jobs, JOB, &runs).await.map(drop)?)
    }
}

/// Submits jobs that miss their deadline, without end.
async fn miss(workload: Workload) -> Result<()> {
    let mut ticks = tokio::time::interval(MISS_EVERY);
    for index in 0_u32.. {
        ticks.tick().await;
        workload
            .submit(&format!("missed-{index}"), &missed())
            .await?;
    }
    Ok(())
}

/// Takes the Lease each time that the operator has it, without end.
async fn take_lease(client: Client) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client, LEASE_NAMESPACE);
    let taken = json!({"spec": {
        "holderIdentity": INTRUDER, "leaseDurationSeconds": 1, "renewTime": null,
    }});
    loop {
        let lease = leases.get(LEASE).await.context("reading the Lease")?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        if holder.is_some_and(|holder| !holder.is_empty() && holder != INTRUDER) {
            merge(&leases, LEASE, &taken).await?;
        }
        tokio::time::sleep(LEASE_LOOK).await;
    }
}

/// Pauses a process most of the time, without end. CPU time counts, so that it is the same on a busy machine.
async fn throttle(pid: u32) -> Result<()> {
    loop {
        let (began, used) = (Instant::now(), taken(pid)?.cpu);
        while taken(pid)?.cpu < used + RUNS && began.elapsed() < IDLE_MAX {
            tokio::time::sleep(CPU_LOOK).await;
        }
        signal(pid, "STOP").await?;
        tokio::time::sleep(PAUSED).await;
        signal(pid, "CONT").await?;
    }
}
