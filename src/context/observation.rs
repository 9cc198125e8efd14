//! How a pass builds a job from this process's data.

use shed_core::time::Instant;

use crate::cluster::pod::JobPods;
use crate::context::{Context, JobMemory};
use crate::job::facts::Traces;
use crate::job::pod_adoption::{self, Claims};
use crate::job::troubled_nodes::TroubledNodes;
use crate::job::view::{JobView, Sighting};
use crate::job::{termination_proof, unreachable_attempts};

impl Context {
    /// Adds to a job the observations of its attempts, and records them.
    pub fn see(&self, read: JobView, mut sighting: Sighting) -> JobView {
        let seen = std::mem::take(&mut sighting.pods);
        let (pods, claims) = self.sorted(&read, seen);
        let noted = self.job_memories.with(&read.job.uid, |memory| {
            sighting.note(
                &mut memory.planned.unmarked().traces,
                &pods,
                &read.ledger,
                read.ticks,
            );
            Noted::of(memory)
        });
        let facts_as_of = sighting.facts_as_of;
        self.with(
            (pods, claims),
            noted,
            JobView {
                facts_as_of,
                ..read
            },
        )
    }

    fn sorted(&self, read: &JobView, seen: JobPods) -> (JobPods, Claims) {
        let (job, stores) = (&read.job, &self.stores);
        match &job.adopted {
            Some(adopted) => {
                pod_adoption::sort(adopted, seen, &stores.pods.unlabelled_of(&job.owner()))
            }
            None => (seen, Claims::default()),
        }
    }

    fn with(&self, (pods, claims): (JobPods, Claims), noted: Noted, read: JobView) -> JobView {
        let (job, stores) = (&read.job, &self.stores);
        let Noted {
            traces,
            troubled,
            until,
        } = noted;
        let limits = [job.rules.clone_budget, self.clone_budget];
        JobView {
            clone_budget: stores.namespaces().clone_budget(&job.namespace, limits),
            is_queued: read.is_queued && stores.has_kueue(),
            reports: self.progress.reports_of(&job.uid),
            proven_gone: termination_proof::proven(&read.ledger, stores),
            out_of_reach: unreachable_attempts::out_of_reach(&pods, stores, read.now),
            maintained: stores.nodes.maintained(),
            launch_not_before: until.map(|until| self.clock.at(until)),
            pods,
            claims,
            traces,
            troubled,
            ..read
        }
    }
}

/// What a job's memory has about its attempts.
#[derive(Default)]
struct Noted {
    traces: Traces,
    troubled: TroubledNodes,
    /// The end of a back-off, by the process's own clock.
    until: Option<Instant>,
}

impl Noted {
    fn of(memory: &JobMemory) -> Self {
        Self {
            traces: memory.planned.traces.clone(),
            troubled: memory.planned.troubled.clone(),
            until: memory.planned.backoff.as_ref().map(|backoff| backoff.until),
        }
    }
}
