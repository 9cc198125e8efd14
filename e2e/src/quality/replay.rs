//! The excerpt on the cluster, under one policy.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use shed::api::{self, DeadlineJob};
use shed_sim::trace::Trace;

use super::NAMESPACE;
use super::run_result::{AttemptResult, JobResult, RunResult};
use super::task::{self, Tasks};
use crate::cluster::Cluster;
use crate::demo::screen::Screen;
use crate::jobs::{has_ended, is_true, label, node_of};
use crate::sightings::{Sighting, Sightings};
use crate::wait;

/// From the start of the clock to the first arrival.
const LEAD: Duration = Duration::from_secs(2);
/// How often jobs are looked at, and how often counts are printed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const SAY_EVERY: Duration = Duration::from_secs(20);
/// A replay that takes this many times as long as its arrivals hangs.
const PATIENCE: f64 = 5.0;
const PATIENCE_MIN: Duration = Duration::from_secs(300);

/// The start of the replay by the two clocks that are read.
#[derive(Clone, Copy)]
struct Origin {
    at: Instant,
    /// Seconds since the machine's start, by which tasks tell their times.
    uptime: f64,
}

impl Origin {
    fn soon() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/uptime").context("reading /proc/uptime")?;
        let first = text
            .split_whitespace()
            .next()
            .context("/proc/uptime is empty")?;
        let uptime: f64 = first.parse().context("/proc/uptime")?;
        Ok(Self {
            at: Instant::now() + LEAD,
            uptime: uptime + LEAD.as_secs_f64(),
        })
    }

    fn seconds(self, at: Instant) -> f64 {
        match at.checked_duration_since(self.at) {
            Some(after) => after.as_secs_f64(),
            None => -self.at.duration_since(at).as_secs_f64(),
        }
    }
}

/// The replayed excerpt.
pub struct Replay<'a> {
    pub cluster: &'a Cluster,
    pub screen: &'a Screen,
    pub workload: &'a Trace,
    pub tasks: &'a Tasks,
}

impl Replay<'_> {
    /// Submits each job when it arrives, and returns when all have ended.
    pub async fn play(&self, policy: &str) -> Result<RunResult> {
        self.cluster.fresh_namespace(NAMESPACE).await?;
        let seen = Sightings::of(self.cluster, NAMESPACE);
        let origin = Origin::soon()?;
        let (arrived, ended) = tokio::try_join!(self.submit(origin), self.watch(origin, policy))?;
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), NAMESPACE);
        wait::for_pods_to_end(&pods, "the last attempts to end").await?;
        collect(self.workload, &arrived, &ended, &seen.timed(), origin)
    }

    async fn submit(&self, origin: Origin) -> Result<Vec<f64>> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let mut arrived = Vec::new();
        for (position, job) in self.workload.jobs.iter().enumerate() {
            let at = origin.at + Duration::from_millis(u64::try_from(job.arrival.0)?);
            let manifest = serde_json::from_value(self.tasks.job(self.workload, position)?)?;
            tokio::time::sleep_until(at.into()).await;
            arrived.push(origin.seconds(Instant::now()));
            jobs.create(&PostParams::default(), &manifest).await?;
        }
        Ok(arrived)
    }

    async fn watch(&self, origin: Origin, policy: &str) -> Result<Vec<DeadlineJob>> {
        let jobs: Api<DeadlineJob> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let wanted = self.workload.jobs.len();
        let last = self
            .workload
            .jobs
            .last()
            .map_or(0.0, |job| job.arrival.0 as f64 / 1000.0);
        let patience = Duration::from_secs_f64(last * PATIENCE).max(PATIENCE_MIN);
        let mut look = tokio::time::interval(LOOK_EVERY);
        let mut said = Instant::now();
        loop {
            look.tick().await;
            let all = jobs.list(&ListParams::default()).await?.items;
            let ended = all.iter().filter(|job| has_ended(job)).count();
            if ended == wanted || said.elapsed() > SAY_EVERY {
                self.screen.say(policy, &line(&all, wanted));
                said = Instant::now();
            }
            if ended == wanted {
                return Ok(all);
            }
            if origin.seconds(Instant::now()) > patience.as_secs_f64() {
                bail!(
                    "jobs have not ended after {patience:?}: {}",
                    line(&all, wanted)
                );
            }
        }
    }
}

/// Whether the job's status says that its last task was done in time.
fn met(job: &DeadlineJob) -> bool {
    let status = job.status.as_ref();
    let times = status.and_then(|status| {
        status
            .completion_time
            .as_ref()
            .zip(status.deadline.as_ref())
    });
    is_true(job, api::COMPLETE) && times.is_some_and(|(done, deadline)| done.0 <= deadline.0)
}

fn line(jobs: &[DeadlineJob], wanted: usize) -> String {
    let sum = |count: fn(&api::DeadlineJobStatus) -> i64| -> i64 {
        jobs.iter()
            .filter_map(|job| job.status.as_ref())
            .map(count)
            .sum()
    };
    format!(
        "{} of {wanted} jobs submitted, {} ended, {} in time; tasks: {} done, {} attempts at work; {} clones so far",
        jobs.len(),
        jobs.iter().filter(|job| has_ended(job)).count(),
        jobs.iter().filter(|job| met(job)).count(),
        sum(|status| i64::from(status.succeeded)),
        sum(|status| i64::from(status.active)),
        sum(|status| status.attempts.clones),
    )
}

fn collect(
    workload: &Trace,
    arrived: &[f64],
    ended: &[DeadlineJob],
    seen: &[Sighting],
    origin: Origin,
) -> Result<RunResult> {
    let mut attempts = Vec::new();
    for sighting in seen {
        attempts.extend(ran(sighting, origin)?);
    }
    keep_first_winners(&mut attempts);
    let mut jobs = Vec::new();
    for (position, &arrived) in arrived.iter().enumerate() {
        let job = ended
            .iter()
            .find(|job| job.name_any() == task::name(position));
        let job = job.with_context(|| format!("{} is gone", task::name(position)))?;
        let winners = attempts
            .iter()
            .filter(|ran: &&AttemptResult| ran.won && ran.job == position);
        let within = workload.jobs[position].deadline;
        let done = winners.filter_map(|ran| ran.ended).max_by(f64::total_cmp);
        let done = done.filter(|_| is_true(job, api::COMPLETE));
        jobs.push(JobResult {
            arrived,
            within: within.map_or(0.0, |span| span.seconds()),
            done,
            met: met(job),
        });
    }
    Ok(RunResult { jobs, attempts })
}

/// The outcome of a pod's attempt; absent if the pod is not an attempt.
fn ran(sighting: &Sighting, origin: Origin) -> Result<Option<AttemptResult>> {
    let pod = &sighting.pod;
    let Some(job) = task::position(label(pod, api::LABEL_JOB_NAME)) else {
        return Ok(None);
    };
    let said = task::heard(pod)?;
    let freed = sighting
        .over
        .with_context(|| format!("{} has not ended", pod.name_any()))?;
    let freed = origin.seconds(freed);
    let since = |uptime: f64| uptime - origin.uptime;
    Ok(Some(AttemptResult {
        job,
        task: label(pod, api::LABEL_INDEX).parse()?,
        number: label(pod, api::LABEL_ATTEMPT).parse()?,
        clone: label(pod, api::LABEL_KIND) == "clone",
        node: node_of(pod).map(str::to_owned),
        launched: origin.seconds(sighting.first),
        started: said.map(|said| since(said.start)),
        ended: said.map(|said| said.end.map_or(freed, since)),
        killed: sighting.doomed.map(|at| origin.seconds(at)),
        freed,
        begin: said.map_or(0.0, |said| said.begin),
        won: wait::phase(pod) == "Succeeded",
    }))
}

/// Of two attempts of a task that both did it, the one that was done first counts.
fn keep_first_winners(attempts: &mut [AttemptResult]) {
    attempts.sort_by(|a, b| {
        let end = |ran: &AttemptResult| ran.ended.unwrap_or(f64::INFINITY);
        (a.job, a.task)
            .cmp(&(b.job, b.task))
            .then(end(a).total_cmp(&end(b)))
    });
    let mut last = None;
    for ran in attempts.iter_mut().filter(|ran| ran.won) {
        ran.won = last != Some((ran.job, ran.task));
        last = Some((ran.job, ran.task));
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_result::tests::ran;
    use super::*;

    #[test]
    fn a_task_has_one_winner_the_first() {
        let mut all = vec![
            ran(1, 0, "n1", 0.0, 12.0, true),
            ran(0, 0, "n1", 0.0, 9.0, true),
            ran(1, 1, "n2", 5.0, 11.0, true),
        ];
        keep_first_winners(&mut all);
        let won: Vec<(u32, u32)> = all
            .iter()
            .filter(|r| r.won)
            .map(|r| (r.task, r.number))
            .collect();
        assert_eq!(won, [(0, 0), (1, 1)]);
    }
}
