//! One load: jobs arrive in a namespace of their own, complete, and are removed again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use shed::api::{self, DeadlineJob};

use super::load::{Rate, STORM_AFTER, job, storm_job};
use super::timeline::{Latencies, Timeline};
use crate::bench_scale::audit::AuditLog;
use crate::bench_scale::run::{make_namespace, remove, submit};
use crate::scale::stage::reason;
use crate::scale::subject::Subject;

/// Creates of jobs that may be under way at once.
const AT_ONCE: usize = 64;
/// How often the audit log is read.
const LOOK: Duration = Duration::from_millis(500);
/// How often jobs are counted, once all are created.
const COUNT: Duration = Duration::from_secs(5);
/// Objects of a page.
const PAGE: u32 = 500;
/// How long jobs may take to complete after the last arrival.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where loads run.
pub struct Site {
    /// An administrator's.
    pub client: Client,
    /// Its kubeconfig, in the cluster's state folder.
    pub kubeconfig: PathBuf,
    /// The operator's kubeconfig.
    pub operator_kubeconfig: PathBuf,
    /// The operator's program.
    pub program: PathBuf,
    /// For the operator's log.
    pub folder: PathBuf,
}

impl Site {
    /// Runs one load next to an operator of its own: its latencies, and the time until all jobs were complete.
    /// `storm` further jobs arrive at once in the same namespace, while the load goes on.
    pub async fn run(
        &self,
        rate: Rate,
        time: Duration,
        storm: u32,
    ) -> Result<(Latencies, Duration)> {
        let namespace = format!("latency-{rate}-{storm}").replace('.', "-");
        make_namespace(&self.client, &namespace).await?;
        let went = self.measure(rate, time, storm, &namespace).await;
        remove(&self.client, &namespace).await?;
        went
    }

    async fn measure(
        &self,
        rate: Rate,
        time: Duration,
        storm: u32,
        namespace: &str,
    ) -> Result<(Latencies, Duration)> {
        let subject =
            Subject::start_with(&self.program, &self.operator_kubeconfig, &self.folder).await?;
        let mut audit = AuditLog::at_end(&self.kubeconfig)?;
        let mut timeline = Timeline::default();
        let began = Instant::now();
        let complete = async {
            let storming = self.storm(storm, namespace);
            tokio::try_join!(self.create(rate, time, namespace), storming)?;
            self.completed(rate.jobs_in(time) + storm, namespace).await
        };
        tokio::pin!(complete);
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                done = &mut complete => { done?; break }
                _ = looks.tick() => {
                    audit.read(|event| timeline.add(event, namespace))?;
                    // At the first pod, not after minutes.
                    ensure_bodies(&timeline)?;
                }
            }
        }
        let took = began.elapsed();
        // Losers of the last winners are deleted by then.
        tokio::time::sleep(COUNT).await;
        audit.read(|event| timeline.add(event, namespace))?;
        subject.stop().await?;
        Ok((timeline.latencies(), took))
    }

    async fn create(&self, rate: Rate, time: Duration, namespace: &str) -> Result<()> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.client.clone(), namespace);
        let began = tokio::time::Instant::now();
        let made = (0..rate.jobs_in(time)).map(|index| {
            let jobs = &jobs;
            async move {
                tokio::time::sleep_until(began + rate.arrival(index)).await;
                let job: DeadlineJob = serde_json::from_value(job(index))?;
                submit(jobs, &job).await
            }
        });
        let made = stream::iter(made).buffered(AT_ONCE);
        made.try_collect().await
    }

    async fn storm(&self, size: u32, namespace: &str) -> Result<()> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.client.clone(), namespace);
        tokio::time::sleep(STORM_AFTER).await;
        let made = (0..size).map(|index| {
            let jobs = &jobs;
            async move {
                let job: DeadlineJob = serde_json::from_value(storm_job(index))?;
                submit(jobs, &job).await
            }
        });
        stream::iter(made).buffered(AT_ONCE).try_collect().await
    }

    /// Waits until this number of jobs is complete.
    async fn completed(&self, wanted: u32, namespace: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            let complete = self.count_complete(namespace).await?;
            if complete >= wanted {
                return Ok(());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "{complete} of {wanted} jobs were complete {PATIENCE:?} after the last arrival"
            );
            tokio::time::sleep(COUNT).await;
        }
    }

    async fn count_complete(&self, namespace: &str) -> Result<u32> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.client.clone(), namespace);
        let mut page = ListParams::default().limit(PAGE).match_any();
        let mut complete = 0;
        loop {
            let list = jobs.list(&page).await.context("counting complete jobs")?;
            for job in &list.items {
                let failed = reason(job, api::FAILED);
                ensure!(failed.is_none(), "{} failed: {failed:?}", job.name_any());
                complete += u32::from(reason(job, api::COMPLETE).is_some());
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(complete),
            }
        }
    }
}

fn ensure_bodies(timeline: &Timeline) -> Result<()> {
    ensure!(
        timeline.bodiless() == 0,
        "the audit log has {} patches of pods' status without their bodies: start the cluster with --audit-pod-status, as e2e/bench-latency.sh does",
        timeline.bodiless()
    );
    Ok(())
}
