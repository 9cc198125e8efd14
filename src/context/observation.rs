//! How a pass builds a job from this process's data.

use crate::context::Context;
use crate::job::claims::{self, Claims};
use crate::job::view::{JobView, Sighting};
use crate::job::{reach, termination_proof};

impl Context {
    /// Adds to a job the observations of its attempts, and records them.
    #[must_use]
    pub fn see(&self, read: JobView, mut sighting: Sighting) -> JobView {
        let (job, stores) = (&read.job, &self.stores);
        let seen = std::mem::take(&mut sighting.pods);
        let (pods, claims) = match &job.adopted {
            Some(adopted) => claims::sort(adopted, seen, &stores.unlabelled_pods_of(&job.owner())),
            None => (seen, Claims::default()),
        };
        let (traces, troubled, until) = self.memos.look(&job.uid, |memo| {
            sighting.note(&mut memo.traces, &pods, &read.ledger, read.ticks);
            let until = memo.backoff.as_ref().map(|backoff| backoff.until);
            (memo.traces.clone(), memo.troubled.clone(), until)
        });
        JobView {
            reports: self.progress.reports_of(&job.uid),
            proven_gone: termination_proof::proven(&read.ledger, stores),
            out_of_reach: reach::out_of_reach(&pods, stores, read.now),
            launch_not_before: until.map(|until| self.clock.at(until)),
            facts_as_of: sighting.facts_as_of,
            pods,
            claims,
            traces,
            troubled,
            ..read
        }
    }
}
