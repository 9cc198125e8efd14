//! One load: jobs arrive in a namespace of their own, complete, and are removed again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use shed::api::{self, DeadlineJob};

use super::load::{Load, STORM_AFTER, job, storm_job};
use super::timeline::{Latencies, Timeline};
use crate::bench::audit::AuditLog;
use crate::bench::namespace::{Arrival, PAGE, each, make_namespace, remove, submit_all};
use crate::bench::operator;
use crate::bench::site::Site;
use crate::jobs::{is_true, reason};

/// Creates of jobs that may be under way at once.
const AT_ONCE: usize = 64;
/// How often the audit log is read.
const LOOK: Duration = Duration::from_millis(500);
/// How often jobs are counted, once all are created.
const COUNT: Duration = Duration::from_secs(5);
/// How long jobs may take to complete after the last arrival.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs one load next to an operator of its own: jobs arrive for this time, and those of a storm at once in the same
/// namespace, while the load goes on.
pub async fn measure(site: &Site, load: Load, time: Duration) -> Result<Latencies> {
    let namespace = format!("latency-{}-{}", load.rate, load.storm).replace('.', "-");
    make_namespace(&site.client, &namespace).await?;
    let went = measure_in(site, load, time, &namespace).await;
    remove(&site.client, &namespace).await?;
    went
}

async fn measure_in(site: &Site, load: Load, time: Duration, namespace: &str) -> Result<Latencies> {
    let kubeconfig = site.operator_kubeconfig();
    let operator = operator::start(&site.program, &kubeconfig, &site.folder).await?;
    let mut audit = AuditLog::at_end(&site.kubeconfig)?;
    let mut timeline = Timeline::default();
    let began = Instant::now();
    let jobs: Api<DeadlineJob> = Api::namespaced(site.client.clone(), namespace);
    let (rate, size) = (load.rate, load.rate.jobs_in(time));
    let complete = async {
        let steady = (0..size).map(|index| Arrival::new(rate.arrival(index), job(index)));
        let storm = (0..load.storm).map(|index| Arrival::new(STORM_AFTER, storm_job(index)));
        tokio::try_join!(
            submit_all(&jobs, steady, AT_ONCE),
            submit_all(&jobs, storm, AT_ONCE)
        )?;
        completed(&jobs, size + load.storm).await
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
    let wall_seconds = began.elapsed().as_secs_f64();
    // Losers of the last winners are deleted by then.
    tokio::time::sleep(COUNT).await;
    audit.read(|event| timeline.add(event, namespace))?;
    operator.stop().await?;
    Ok(Latencies {
        wall_seconds,
        ..timeline.latencies()
    })
}

/// Waits until this number of jobs is complete.
async fn completed(jobs: &Api<DeadlineJob>, wanted: u32) -> Result<()> {
    let began = Instant::now();
    loop {
        let complete = count_complete(jobs).await?;
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

async fn count_complete(jobs: &Api<DeadlineJob>) -> Result<u32> {
    let mut complete = 0;
    let page = ListParams::default().limit(PAGE).match_any();
    each(jobs, page, |job| {
        let failed = reason(&job, api::FAILED);
        ensure!(failed.is_none(), "{} failed: {failed:?}", job.name_any());
        complete += u32::from(is_true(&job, api::COMPLETE));
        Ok(())
    })
    .await?;
    Ok(complete)
}

fn ensure_bodies(timeline: &Timeline) -> Result<()> {
    ensure!(
        timeline.bodiless() == 0,
        "the audit log has {} patches of pods' status without their bodies: start the cluster with --audit-pod-status, as e2e/bench-latency.sh does",
        timeline.bodiless()
    );
    Ok(())
}
