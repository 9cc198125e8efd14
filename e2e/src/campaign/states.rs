//! The world that a history leads to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;
use shed::api;
use shed::api::DeadlineJob;

use super::history::{Change, Entry};
use crate::jobs::{is_true, reason};

/// A job as its user sees it: a DeadlineJob that is not a companion, or a batch/v1 Job.
#[derive(Debug)]
pub struct UsersJob {
    /// Its name.
    pub name: String,
    /// Whether it has come to its end.
    pub is_finished: bool,
    /// Whether its fate is known.
    pub is_decided: bool,
    /// Types, reasons and messages of the conditions that are true.
    conditions: Vec<(String, String, String)>,
}

impl UsersJob {
    /// Whether a condition of this type is true, for this reason unless that is empty.
    pub fn says(&self, type_: &str, reason: &str) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|own| own.0 == type_ && (reason.is_empty() || own.1 == reason))
    }

    /// Whether the message of a condition of this type, which is true, has these words.
    pub fn names(&self, type_: &str, words: &str) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|own| own.0 == type_ && own.2.contains(words))
    }
}

/// The jobs that are there.
pub fn users_jobs(states: &[Entry]) -> Vec<UsersJob> {
    let mut jobs = BTreeMap::new();
    for state in states {
        match &state.change {
            Change::Job(job) if !job.spec.is_companion() => {
                let status = job.status.as_ref();
                let ledger = status.and_then(|status| status.ledger.as_ref());
                let conditions = status.into_iter().flat_map(|status| &status.conditions);
                let true_ones = conditions.filter(|own| own.status == "True");
                let seen = UsersJob {
                    name: job.name_any(),
                    is_finished: ledger.is_some_and(|ledger| ledger.finished) || is_refused(job),
                    is_decided: ledger.is_some_and(|ledger| ledger.ending.is_some())
                        || is_refused(job),
                    conditions: true_ones
                        .map(|own| (own.type_.clone(), own.reason.clone(), own.message.clone()))
                        .collect(),
                };
                jobs.insert(job.uid(), seen);
            }
            Change::Batch(job) => {
                let status = job.status.as_ref();
                let conditions = status.and_then(|status| status.conditions.as_ref());
                let true_ones = conditions.into_iter().flatten();
                let true_ones = true_ones.filter(|own| own.status == "True");
                let decisive = [api::SUCCESS_CRITERIA_MET, api::FAILURE_TARGET];
                let seen = UsersJob {
                    name: job.name_any(),
                    is_decided: true_ones
                        .clone()
                        .any(|own| decisive.contains(&own.type_.as_str())),
                    is_finished: shed::reconcile::job_status::is_finished(job),
                    conditions: true_ones
                        .map(|own| {
                            let reason = own.reason.clone().unwrap_or_default();
                            (
                                own.type_.clone(),
                                reason,
                                own.message.clone().unwrap_or_default(),
                            )
                        })
                        .collect(),
                };
                jobs.insert(job.uid(), seen);
            }
            Change::JobGone(job) => drop(jobs.remove(&job.uid())),
            Change::BatchGone(job) => drop(jobs.remove(&job.uid())),
            Change::Job(_) | Change::Pod(_) | Change::PodGone(_) => {}
        }
    }
    jobs.into_values().collect()
}

/// Whether the job's specification was refused. Nothing was launched, so that its ledger is empty.
pub fn is_refused(job: &DeadlineJob) -> bool {
    reason(job, api::FAILED) == Some(api::reason::INVALID_SPEC)
}

/// How many jobs there are of any kind.
pub fn jobs(states: &[Entry]) -> usize {
    let mut uids = BTreeSet::new();
    for state in states {
        match &state.change {
            Change::Job(job) => drop(uids.insert(job.uid())),
            Change::Batch(job) => drop(uids.insert(job.uid())),
            Change::JobGone(job) => drop(uids.remove(&job.uid())),
            Change::BatchGone(job) => drop(uids.remove(&job.uid())),
            Change::Pod(_) | Change::PodGone(_) => {}
        }
    }
    uids.len()
}

/// Whether the job of this name ever said that its attempts are blocked.
pub fn was_blocked(states: &[Entry], name: &str) -> bool {
    states.iter().any(|state| match &state.change {
        Change::Job(job) => job.name_any() == name && is_true(job, api::ATTEMPTS_BLOCKED),
        _ => false,
    })
}

/// Names of jobs that are gone.
pub fn gone_jobs(states: &[Entry]) -> BTreeSet<String> {
    let gone = states.iter().filter_map(|state| match &state.change {
        Change::JobGone(job) => Some(job.name_any()),
        Change::BatchGone(job) => Some(job.name_any()),
        _ => None,
    });
    gone.collect()
}

/// The pods that are there.
pub fn latest_pods(states: &[Entry]) -> Vec<Pod> {
    let mut pods = BTreeMap::new();
    for state in states {
        match &state.change {
            Change::Pod(pod) => drop(pods.insert(pod.uid(), pod)),
            Change::PodGone(pod) => drop(pods.remove(&pod.uid())),
            _ => {}
        }
    }
    pods.into_values().map(|pod| (**pod).clone()).collect()
}

/// A history as lines of JSON.
pub fn reported(states: &[Entry]) -> Result<String> {
    let lines = states.iter().map(|state| {
        let (what, object) = match &state.change {
            Change::Pod(pod) => ("pod", serde_json::to_value(pod)?),
            Change::PodGone(pod) => ("pod gone", serde_json::to_value(pod)?),
            Change::Job(job) => ("job", serde_json::to_value(job)?),
            Change::JobGone(job) => ("job gone", serde_json::to_value(job)?),
            Change::Batch(job) => ("Job", serde_json::to_value(job)?),
            Change::BatchGone(job) => ("Job gone", serde_json::to_value(job)?),
        };
        Ok(json!({"version": state.version, "what": what, "object": object}).to_string())
    });
    let lines: Result<Vec<String>> = lines.collect();
    lines
        .map(|lines| lines.join("\n"))
        .context("the history as JSON")
}
