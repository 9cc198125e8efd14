//! Jobs whose outcome is known: they meet or miss their deadline, are cloned, fail, are disturbed, or go on.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use shed::api::{self, DeadlineJob, MANAGED_BY};

use crate::bench::namespace::submit;
use crate::campaign::kubelet::{POD_IP, RUN_MS};
use crate::jobs::{has_ended, is_running, manifest, shell_or_fake};
use crate::wait::{self, Seen};

/// The namespace of all jobs.
pub const NAMESPACE: &str = "watched";
/// Jobs that meet their deadline. The calibrated PoCD needs 30 ended jobs.
const MET: u32 = 36;
/// Jobs with a straggler, and jobs whose tasks fail.
const CLONED: u32 = 4;
const FAILED: u32 = 2;
/// Jobs that lose an attempt, one after the other. A counter's first event makes its series and is no increase of it.
const DISTURBED: u32 = 2;
/// Several scrapes.
const SCRAPES: Duration = Duration::from_secs(5);
/// Duration of a task that goes on until its job is deleted, in milliseconds.
const LONG_MS: u32 = 1_800_000;
/// How long jobs may take to end or to be gone.
const WITHIN: Duration = Duration::from_secs(240);

/// The jobs of a run.
#[derive(Clone)]
pub struct Workload {
    client: Client,
}

impl Workload {
    /// Jobs in a namespace that exists.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The DeadlineJobs.
    pub fn jobs(&self) -> Api<DeadlineJob> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The batch/v1 Jobs.
    pub fn batch_jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Submits a DeadlineJob.
    pub async fn submit(&self, name: &str, spec: &Value) -> Result<()> {
        let job: DeadlineJob = serde_json::from_value(manifest(name, spec))?;
        submit(&self.jobs(), &job).await
    }

    /// Submits a batch/v1 Job that shed runs.
    pub async fn submit_batch(&self, name: &str) -> Result<()> {
        let mut template = shell_or_fake("sleep 1800", LONG_MS, 0);
        template["spec"]["restartPolicy"] = json!("Never");
        let job = json!({
            "metadata": {"name": name, "annotations": {"shed.dev/deadline": "2h"}},
            "spec": {
                "completionMode": "Indexed", "completions": 2, "parallelism": 2,
                "managedBy": MANAGED_BY, "template": template,
            },
        });
        submit(&self.batch_jobs(), &serde_json::from_value(job)?).await
    }

    /// Waits until this many attempts of a job run.
    pub async fn runs(&self, name: &str, attempts: usize) -> Result<()> {
        let what = format!("{attempts} attempts of {name} to run");
        wait::until(&what, WITHIN, async || {
            let running = self.running(name).await?.len();
            Ok(Seen::when(running >= attempts, || format!("{running} run")))
        })
        .await
    }

    async fn running(&self, name: &str) -> Result<Vec<Pod>> {
        let of_job = ListParams::default().labels(&format!("{}={name}", api::LABEL_JOB_NAME));
        let mut pods = self.pods().list(&of_job).await?.items;
        pods.retain(is_running);
        Ok(pods)
    }

    /// Deletes a DeadlineJob, and waits until it is gone.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.jobs()
            .delete(name, &DeleteParams::background())
            .await?;
        wait::for_absence(&self.jobs(), name, WITHIN).await
    }

    /// Deletes a batch/v1 Job, and waits until it is gone.
    pub async fn delete_batch(&self, name: &str) -> Result<()> {
        let jobs = self.batch_jobs();
        jobs.delete(name, &DeleteParams::background()).await?;
        wait::for_absence(&jobs, name, WITHIN).await
    }

    /// Runs jobs that meet their deadline, need clones, fail or are disturbed, and waits until all have ended.
    pub async fn run_healthy(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for (kind, count, spec) in [
            ("met", MET, met()),
            ("cloned", CLONED, cloned()),
            ("failed", FAILED, failed()),
            ("late", 1, late()),
            ("disturbed", DISTURBED, disturbed()),
        ] {
            for index in 0..count {
                let name = format!("{kind}-{index}");
                self.submit(&name, &spec).await?;
                names.insert(name);
            }
        }
        for index in 0..DISTURBED {
            self.disturb(&format!("disturbed-{index}")).await?;
            tokio::time::sleep(SCRAPES).await;
        }
        wait::until("all jobs to end", WITHIN, async || {
            let jobs = self.jobs().list(&ListParams::default()).await?.items;
            let left = jobs
                .into_iter()
                .filter(|job| names.contains(&job.name_any()));
            let left: Vec<String> = left
                .filter(|job| !has_ended(job))
                .map(|job| job.name_any())
                .collect();
            Ok(Seen::when(left.is_empty(), || left.join(", ")))
        })
        .await
    }

    /// Deletes a running attempt of a job, as a drain does.
    async fn disturb(&self, name: &str) -> Result<()> {
        self.runs(name, 1).await?;
        let pod = self.running(name).await?.into_iter().next();
        let pod = pod.map(|pod| pod.name_any()).unwrap_or_default();
        ensure!(!pod.is_empty(), "{name} has no running attempt");
        let deleted = self.pods().delete(&pod, &DeleteParams::default()).await;
        Ok(deleted.map(drop)?)
    }
}

fn expected(millis: u32) -> Value {
    json!({"p50": format!("{millis}ms"), "p90": format!("{millis}ms")})
}

fn met() -> Value {
    json!({
        "completions": 2, "deadline": {"within": "2m"}, "expectedTaskDuration": expected(2000),
        "template": shell_or_fake("sleep 2", 2000, 0),
    })
}

/// One attempt of ten is a straggler, which a clone replaces in time.
fn cloned() -> Value {
    let mut template = shell_or_fake("sleep 3", 3000, 0);
    let durations = [&["3000"; 9][..], &["60000"]].concat().join(" ");
    template["metadata"]["annotations"][RUN_MS] = json!(durations);
    json!({
        "completions": 10, "deadline": {"within": "40s"}, "onMiss": "Continue",
        "speculation": {"mode": "Enabled"}, "expectedTaskDuration": expected(3000),
        "template": template,
    })
}

fn failed() -> Value {
    json!({
        "completions": 1, "deadline": {"within": "2m"}, "backoffLimit": 0,
        "template": shell_or_fake("exit 1", 1000, 1),
    })
}

/// A job that completes after its deadline.
fn late() -> Value {
    json!({
        "completions": 1, "deadline": {"within": "2s"}, "onMiss": "Continue",
        "template": shell_or_fake("sleep 5", 5000, 0),
    })
}

fn disturbed() -> Value {
    json!({
        "completions": 2, "deadline": {"within": "10m"}, "expectedTaskDuration": expected(20_000),
        "template": shell_or_fake("sleep 20", 20_000, 0),
    })
}

/// A job that is stopped at its deadline.
pub fn missed() -> Value {
    json!({
        "completions": 1, "deadline": {"within": "2s"}, "onMiss": "Fail",
        "template": shell_or_fake("sleep 60", 60_000, 0),
    })
}

/// A job whose tasks take longer than it has.
pub fn hopeless() -> Value {
    json!({
        "completions": 2, "deadline": {"within": "15m"}, "expectedTaskDuration": expected(LONG_MS),
        "template": shell_or_fake("sleep 1800", LONG_MS, 0),
    })
}

/// A job that goes on after its deadline.
pub fn overdue() -> Value {
    json!({
        "completions": 1, "deadline": {"within": "10s"}, "onMiss": "Continue",
        "template": shell_or_fake("sleep 1800", LONG_MS, 0),
    })
}

/// A job that no node could hold.
pub fn unplaceable() -> Value {
    let mut template = shell_or_fake("sleep 1", 1000, 0);
    template["spec"]["nodeSelector"] = json!({"example.com/none": "none"});
    json!({"completions": 1, "deadline": {"within": "2h"}, "template": template})
}

/// A suspended job.
pub fn suspended() -> Value {
    json!({
        "completions": 1, "suspend": true, "deadline": {"within": "2h"},
        "template": shell_or_fake("sleep 1", 1000, 0),
    })
}

/// A job with this many tasks that go on and report progress at this address.
pub fn reporting(tasks: u32, address: Ipv4Addr, port: u16) -> Value {
    let mut template = shell_or_fake("sleep 1800", LONG_MS, 0);
    template["metadata"]["annotations"][POD_IP] = json!(address.to_string());
    json!({
        "completions": tasks, "deadline": {"within": "3h"}, "expectedTaskDuration": expected(LONG_MS),
        "progress": {"httpGet": {"port": port}, "periodSeconds": 1}, "template": template,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_valid() {
        let address = Ipv4Addr::LOCALHOST;
        let all = [
            met(),
            cloned(),
            failed(),
            disturbed(),
            late(),
            missed(),
            hopeless(),
            overdue(),
            unplaceable(),
            suspended(),
            reporting(3, address, 80),
        ];
        for spec in all {
            let job: DeadlineJob = serde_json::from_value(manifest("a", &spec)).unwrap();
            assert!(job.spec.completions > 0, "{spec}");
        }
    }
}
