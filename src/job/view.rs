//! One job as a pass reads it. The planner and the job's reconciler decide on the same view and
//! differ only in the facts that they add.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shed_core::resources::Resources;
use shed_core::snapshot::NodeIndex;
use shed_core::time::Instant;

use kube::Resource;

use crate::adopt::{self, Jobs};
use crate::api::{DeadlineJob, Ledger};
use crate::clock;
use crate::cluster::pod::{AttemptId, JobPods};
use crate::job::facts::{self, Reported, Traces};
use crate::job::pod_adoption::Claims;
use crate::job::troubled_nodes::TroubledNodes;
use crate::validate::{self, ValidatedJob};

/// One job: its specification, its ledger, and the observations of its attempts.
#[derive(Debug, Clone)]
pub struct JobView {
    /// The specification.
    pub job: Arc<ValidatedJob>,
    /// The ledger.
    pub ledger: Ledger,
    /// The deadline; absent while its clock has not started.
    pub deadline: Option<Instant>,
    /// The pods of its attempts.
    pub pods: JobPods,
    /// Pods that an adopted Job adopts or releases.
    pub claims: Claims,
    /// Earlier observations of the pods.
    pub traces: Traces,
    /// Reports by pod uid.
    pub reports: BTreeMap<String, Reported>,
    /// Attempts whose node proves that they are gone.
    pub proven_gone: BTreeSet<AttemptId>,
    /// Attempts whose end will not be reported soon.
    pub out_of_reach: BTreeSet<AttemptId>,
    /// Nodes where attempts recently failed to start or were disrupted.
    pub troubled: TroubledNodes,
    /// Nodes whose maintenance is announced.
    pub maintained: Arc<[Arc<str>]>,
    /// No launch before this.
    pub launch_not_before: Option<Instant>,
    /// Where attempts may run.
    pub places: Places,
    /// Whether Kueue decides when it may run.
    pub is_queued: bool,
    /// The limit of its clones: the lowest of its own, its namespace's and the cluster's.
    pub clone_budget: Option<f64>,
    /// Up to when every end of an attempt is known.
    pub facts_as_of: Instant,
    /// When the job was read.
    pub now: Instant,
    /// The same by the process's own clock, which the traces go by.
    pub ticks: Instant,
}

impl JobView {
    /// A job without any observation of its attempts.
    pub fn new(job: Arc<ValidatedJob>, ledger: Ledger, now: Instant, ticks: Instant) -> Self {
        Self {
            deadline: job.deadline_by(&ledger),
            clone_budget: job.rules.clone_budget,
            is_queued: job.adopted.as_ref().is_some_and(|job| job.queued),
            job,
            ledger,
            pods: JobPods::new(),
            claims: Claims::default(),
            traces: Traces::new(),
            reports: BTreeMap::new(),
            proven_gone: BTreeSet::new(),
            out_of_reach: BTreeSet::new(),
            troubled: TroubledNodes::default(),
            maintained: Arc::default(),
            launch_not_before: None,
            places: Places::default(),
            facts_as_of: Instant(0),
            now,
            ticks,
        }
    }
}

/// The deadline of a job as its view has it, without the rest of the view. A companion's clock
/// starts with its Job.
pub fn deadline(job: &DeadlineJob, batch: Option<&Jobs>) -> Option<Instant> {
    let Ok(rule) = validate::deadline_rule(job) else {
        return validate::recorded_deadline(job);
    };
    let from = match job.spec.is_companion() {
        true => {
            let owner = batch?.present(&job.metadata);
            adopt::counts_from(owner.filter(|owner| owner.is_ours())?.meta())?
        }
        false => clock::instant(job.metadata.creation_timestamp.as_ref()?),
    };
    match job.ledger() {
        Some(ledger) => rule.instant(from, ledger),
        None => rule.instant(from, &Ledger::default()),
    }
}

/// A job's pods as a pass sees them.
#[derive(Debug)]
pub struct Sighting {
    pub(crate) pods: JobPods,
    /// They were read just now: the watch may be behind.
    pub(crate) is_live: bool,
    /// Up to when every end of an attempt is known.
    pub(crate) facts_as_of: Instant,
    /// The ledger is the newest, so that an attempt which it lacks was counted.
    pub(crate) is_newest: bool,
}

impl Sighting {
    /// As the watch shows them.
    pub fn watched(pods: JobPods) -> Self {
        Self {
            pods,
            is_live: false,
            facts_as_of: Instant(0),
            is_newest: false,
        }
    }

    /// As the apiserver has them.
    pub fn live(pods: JobPods, facts_as_of: Instant) -> Self {
        Self {
            is_live: true,
            facts_as_of,
            ..Self::watched(pods)
        }
    }

    /// Seen together with the newest ledger.
    pub fn with_newest_ledger(self) -> Self {
        Self {
            is_newest: true,
            ..self
        }
    }

    /// Records its observations, and forgets attempts that are counted.
    pub(crate) fn note(
        &self,
        traces: &mut Traces,
        pods: &JobPods,
        ledger: &Ledger,
        ticks: Instant,
    ) {
        match self.is_live {
            true => facts::note_live(traces, pods, ticks),
            false => facts::note(traces, pods, ticks),
        }
        if self.is_newest {
            facts::forget(traces, ledger, pods);
        }
    }
}

/// The nodes that the attempts of a job may use. Only the planner numbers nodes; a reconciler knows
/// no numbers.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Position of each node in the snapshot.
    pub positions: Arc<BTreeMap<Arc<str>, NodeIndex>>,
    /// Nodes that the job's attempts may use.
    pub eligible: Arc<[NodeIndex]>,
    /// Requests of one attempt.
    pub demand: Resources,
}

impl Places {
    pub(super) fn position(&self, node: &str) -> Option<NodeIndex> {
        self.positions.get(node).copied()
    }

    /// Positions of these nodes, as far as they are numbered.
    pub(super) fn positions<'n>(
        &self,
        names: impl IntoIterator<Item = &'n Arc<str>>,
    ) -> Vec<NodeIndex> {
        let numbered = names.into_iter().filter_map(|name| self.position(name));
        numbered.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::validate::validate;

    #[test]
    fn a_poller_reads_the_deadline_of_the_view() {
        for change in [
            "",
            "deadline: {within: 5m, clockStart: Start}",
            "deadline: {at: '1970-01-01T00:07:00Z'}",
            "deadline: {clock: {time: '06:00', timeZone: Europe/Zurich}}",
        ] {
            let mut job = fixtures::job(change);
            for first_pass in [None, Some(Instant(30_000))] {
                let ledger = Ledger {
                    first_pass,
                    ..Ledger::default()
                };
                job.status = Some(crate::api::DeadlineJobStatus {
                    ledger: Some(ledger.clone()),
                    ..Default::default()
                });
                let validated = Arc::new(validate(&job).unwrap());
                let view = JobView::new(validated, ledger, Instant(0), Instant(0));
                assert_eq!(deadline(&job, None), view.deadline, "{change}");
            }
        }
    }
}
