//! The end of a run: how its jobs ended, whether anything is left of them, and what was broken on
//! the way.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::batch::v1 as batch;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use shed::api::DeadlineJob;

use super::{CAPACITY, LOOK, Run};
use crate::bench::namespace::free_pods;
use crate::campaign::check::{self, Capacity, Evidence};
use crate::campaign::history::Change;
use crate::campaign::nodes::PODS_PER_NODE;
use crate::campaign::passes::Passes;
use crate::campaign::proxy::Seen;
use crate::campaign::states::{self, latest_pods, users_jobs, was_blocked};
use crate::campaign::workload::{DENIED, NARROW, OLD, QUOTA, Workload};
use crate::host_operator::series_of;

/// Creates that may be refused of one job. A repeated refusal is retried less and less often; a job that
/// meets a quota tries once for each pod that ends.
const REFUSALS_MAX: [(&str, u64); 2] = [(DENIED, 16), (NARROW, 20)];

impl Run<'_> {
    /// How each job ended, where no deadline passed during the fault.
    pub(super) fn ends_as_expected(&self) -> Result<()> {
        let is_open = self
            .point
            .is_some_and(|point| point.fault.outlasts_deadlines());
        let states = self.history.so_far();
        let jobs = users_jobs(&states);
        let mut wrong = Vec::new();
        for expected in self.expected() {
            let found = jobs.iter().find(|job| job.name == expected.job);
            let (Some((type_, reason)), Some(job)) = (expected.end, found) else {
                continue;
            };
            if !job.says(type_, reason) {
                wrong.push(format!(
                    "I3: {} did not end as {type_} {reason}: {job:?}",
                    job.name
                ));
            }
            if !job.names(type_, expected.names) {
                wrong.push(format!(
                    "I3: {type_} of {} does not name {}: {job:?}",
                    job.name, expected.names
                ));
            }
            if expected.is_blocked && !was_blocked(&states, expected.job) {
                let name = &job.name;
                wrong.push(format!(
                    "I11: {name} never said that its attempts are blocked"
                ));
            }
        }
        ensure!(is_open || wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    }

    /// I8: nothing is left of deleted jobs, neither objects nor metrics.
    pub(super) async fn delete_all(&mut self) -> Result<()> {
        self.environment.weed().await?;
        self.delete_jobs().await?;
        let started = Instant::now();
        loop {
            self.keep_operator().await?;
            let states = self.history.so_far();
            let (pods, jobs) = (latest_pods(&states).len(), states::jobs(&states));
            let mut series = Some(0);
            for namespace in self.environment.namespaces() {
                let more = match self.http {
                    Some(http) => series_of(http, namespace).await,
                    None => None,
                };
                series = series.zip(more).map(|(sum, more)| sum + more);
            }
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

    /// The garbage collector takes companions away with their Jobs.
    async fn delete_jobs(&self) -> Result<()> {
        let (now, all) = (DeleteParams::background(), ListParams::default());
        for namespace in self.environment.namespaces() {
            let jobs: Api<DeadlineJob> = self.all_in(namespace);
            for job in jobs.list(&all).await? {
                if !job.spec.is_companion() {
                    // One with a time to live may go by itself.
                    drop(jobs.delete(&job.name_any(), &now).await);
                }
            }
        }
        if self.workload.is_adopted() {
            let jobs: Api<batch::Job> = self.all();
            drop(jobs.delete_collection(&now, &all).await?);
        }
        Ok(())
    }

    /// I6: what had finished before the operator started is not written until it is deleted.
    fn written_again(&self) -> Vec<String> {
        let states = self.history.so_far();
        let begins_at = self.history.begins_at();
        let written = states.iter().filter_map(|state| match &state.change {
            Change::Job(job) if state.version > begins_at && job.name_any().starts_with(OLD) => {
                let leaves = job.metadata.deletion_timestamp.is_some();
                (!leaves)
                    .then(|| format!("I6: {}, which has finished, was written", job.name_any()))
            }
            _ => None,
        });
        written.collect()
    }

    pub(super) fn verdict(&self, went: Result<()>, seen: &Seen) -> Vec<String> {
        let emptied = went.is_ok();
        let ended = went.err().map(|error| format!("{error:#}"));
        let ended = ended.iter().flat_map(|text| text.lines());
        let mut broken: Vec<String> = ended.map(str::to_owned).collect();
        broken.extend(self.history.broken());
        broken.extend(self.before_restore.iter().flatten().cloned());
        let known = self.known(emptied);
        broken.extend(check::check(&self.history.so_far(), &known));
        broken.extend(seen.unguarded.iter().cloned());
        broken.extend(self.written_again());
        if self.may_wait_for_none() {
            broken.extend(self.waits());
            broken.extend(too_often(&seen.refused));
        }
        broken
    }

    /// I11 and I12, from what the operator was shown and what it recorded.
    fn waits(&self) -> Vec<String> {
        let sight = self.proxy.sight();
        let mut shown = self.history.received();
        shown.extend(sight.shown);
        let passes = self.passes.as_ref().map(Passes::samples);
        let evidence = Evidence {
            shown,
            sent: sight.sent,
            passes: passes.unwrap_or_default(),
        };
        let nodes = self.environment.nodes.as_ref();
        let own = nodes.into_iter().flat_map(|nodes| nodes.names());
        let fault = self.point.map(|point| point.fault);
        let is_limited = self.workload == Workload::Quota;
        let capacity = Capacity {
            attempts: CAPACITY,
            nodes: own.map(|name| (name.clone(), PODS_PER_NODE)).collect(),
            unusable: nodes.and_then(|nodes| nodes.victim()),
            quota: is_limited.then(|| (self.environment.own.clone(), QUOTA)),
            troubled: self.troubled(),
            slow: fault
                .filter(|fault| fault.has_neighbor())
                .map(|_| self.environment.own.clone()),
        };
        let states = self.history.so_far();
        let mut broken = check::waits(&states, &capacity, &evidence);
        broken.extend(check::outlasted(&states, &capacity, &evidence));
        broken
    }

    /// Keeps what explains a failure, and nothing else.
    pub(super) async fn clean_up(&self, broken: &[String], seen: &Seen) -> Result<()> {
        if broken.is_empty() {
            std::fs::remove_dir_all(&self.folder)?;
        } else {
            std::fs::write(self.folder.join("violations"), broken.join("\n"))?;
            std::fs::write(self.folder.join("calls"), seen.log.join("\n"))?;
            std::fs::write(
                self.folder.join("history"),
                states::reported(&self.history.so_far())?,
            )?;
            for namespace in self.environment.namespaces() {
                free_pods(&self.stage.cluster.client(), namespace).await?;
            }
        }
        self.environment.remove().await
    }
}

/// I9: jobs with too many refused creates, in words.
fn too_often(refused: &BTreeMap<String, u64>) -> Vec<String> {
    let reported = REFUSALS_MAX.iter().filter_map(|&(job, most)| {
        let count = refused.get(job).copied().unwrap_or(0);
        (count > most).then(|| {
            format!(
                "I9: {count} creates of {job} were refused, and {most} are enough to learn that"
            )
        })
    });
    reported.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_refusals_than_it_takes_to_learn_are_reported() {
        let refused = |count| BTreeMap::from([(DENIED.to_owned(), count)]);
        assert_eq!(too_often(&refused(16)), Vec::<String>::new());
        assert_eq!(too_often(&refused(17)).len(), 1);
    }
}
