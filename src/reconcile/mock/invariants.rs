//! Invariants of the apiserver's content after every write and every crash.

use std::collections::BTreeSet;

use crate::api::ledger::invariants::faults;
use crate::api::{DeadlineJob, Ledger, NewerForm};
use crate::cluster::pod::AttemptId;
use crate::reconcile::mock::{Call, is_annotation};

/// Observations so far, and violated invariants.
#[derive(Default)]
pub struct Invariants {
    recorded: BTreeSet<AttemptId>,
    /// Sentences for the failure of the test.
    pub broken: Vec<String>,
}

fn ledger(job: &DeadlineJob) -> Ledger {
    match Ledger::from_status(job.status.as_ref()) {
        // Only a test writes one.
        Err(NewerForm(_)) => Ledger::default(),
        read => read.expect("ledger"),
    }
}

impl Invariants {
    /// Checks a write that was carried out.
    pub fn check(
        &mut self,
        call: &Call,
        before: Option<&DeadlineJob>,
        after: Option<&DeadlineJob>,
    ) {
        let Some(before) = before.filter(|job| job.metadata.deletion_timestamp.is_none()) else {
            return;
        };
        let (old, is) = (ledger(before), |words: &str| call.words.starts_with(words));
        if let Some(after) = after.filter(|_| is("PUT job")) {
            self.check_ledger(&old, &ledger(after));
        }
        let Some(id) = id_of(call) else {
            return;
        };
        let entry = old.attempt(id.0, id.1);
        let alive = entry.is_some_and(|entry| entry.kill.is_none());
        self.demand(!is("POST pod") || alive, call, "an unrecorded pod");
        self.demand(!is("DELETE pod") || !alive, call, "no kill is recorded");
        self.demand(
            !is("PATCH pod") || is_annotation(call) || entry.is_none(),
            call,
            "its end is not counted",
        );
    }

    fn check_ledger(&mut self, old: &Ledger, new: &Ledger) {
        let mut demand = |holds: bool, what: &str| {
            if !holds {
                self.broken.push(format!("{what}: {old:?} → {new:?}"));
            }
        };
        for fault in faults(old, new) {
            demand(false, fault.words());
        }
        // A status about an invalid specification leaves the ledger as it was.
        let is_counted = new == old || new.revision == old.revision + 1;
        demand(is_counted, "revisions count the writes of the ledger");
        let is_open = |id: &AttemptId| old.attempt(id.0, id.1).is_some();
        for (id, _) in new.open_attempts().filter(|(id, _)| !is_open(id)) {
            demand(self.recorded.insert(id), "no number is given out twice");
        }
    }

    fn demand(&mut self, holds: bool, call: &Call, what: &str) {
        if !holds {
            self.broken.push(format!("{}: {what}", call.words));
        }
    }
}

/// Task and attempt by the words of a call about a pod.
fn id_of(call: &Call) -> Option<AttemptId> {
    let (_, id) = call.words.split_once(" pod ")?;
    let (task, number) = id.split_once('-')?;
    Some((task.parse().ok()?, number.parse().ok()?))
}
