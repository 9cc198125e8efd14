//! What must hold in the apiserver after every write, whoever crashed when.

use std::collections::BTreeSet;

use shed_core::ids::TaskIndex;

use crate::api::{AttemptCounts, DeadlineJob, Ledger, NewerForm};
use crate::cluster::pod::AttemptId;
use crate::reconcile::mock::Call;

/// What was seen so far, and what was broken.
#[derive(Default)]
pub struct Invariants {
    recorded: BTreeSet<AttemptId>,
    /// Sentences for the failure of the test.
    pub broken: Vec<String>,
}

fn book(job: &DeadlineJob) -> Ledger {
    match Ledger::from_status(job.status.as_ref()) {
        // Nobody but a test writes one.
        Err(NewerForm(_)) => Ledger::default(),
        read => read.expect("ledger"),
    }
}

fn open_attempts(book: &Ledger) -> BTreeSet<AttemptId> {
    let attempts = |task: &crate::api::TaskEntry| {
        let index = task.index;
        let numbers = task.attempts.iter().map(|attempt| attempt.number);
        numbers.map(|number| (index, number)).collect::<Vec<_>>()
    };
    book.tasks.values().flat_map(attempts).collect()
}

/// A grant stays where it is while its holder's end is not counted, and a new one has a token
/// higher than all before.
fn grants_hold(old: &Ledger, new: &Ledger) -> bool {
    let grant =
        |book: &Ledger, task: u32| book.tasks.get(&task).and_then(|task| task.grant.clone());
    let tasks = old.tasks.keys().chain(new.tasks.keys());
    let mut kept = tasks.map(|&task| (task, grant(old, task), grant(new, task)));
    new.fence_token >= old.fence_token
        && kept.all(|(task, before, after)| match (before, after) {
            (Some(before), after) if after.as_ref() == Some(&before) => true,
            (before, after) => {
                let is_counted =
                    before.is_none_or(|grant| new.attempt(task, grant.attempt).is_none());
                is_counted && after.is_none_or(|grant| grant.token > old.fence_token)
            }
        })
}

fn launched(counts: &AttemptCounts) -> i64 {
    counts.originals + counts.clones + counts.retries
}

fn ended(counts: &AttemptCounts) -> i64 {
    counts.won
        + counts.superseded
        + counts.failed
        + counts.clone_failed
        + counts.disrupted
        + counts.late
        + counts.refused
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
        let (old, is) = (book(before), |words: &str| call.words.starts_with(words));
        if let Some(after) = after.filter(|_| is("PUT job")) {
            self.check_ledger(&old, &book(after));
        }
        let Some(id) = id_of(call) else {
            return;
        };
        let entry = old.attempt(id.0, id.1);
        let alive = entry.is_some_and(|entry| entry.kill.is_none());
        self.demand(!is("POST pod") || alive, call, "a pod nobody recorded");
        self.demand(!is("DELETE pod") || !alive, call, "no kill is recorded");
        self.demand(
            !is("PATCH pod") || entry.is_none(),
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
        let open = open_attempts(new);
        let counts = &new.counts;
        let is_in_a_bucket = launched(counts) == ended(counts) + open.len() as i64;
        demand(is_in_a_bucket, "every attempt is open or in one bucket");
        demand(
            counts.won == i64::from(new.done.len()),
            "one winner per task",
        );
        // Only a part that was taken over needs no attempt, so it has not failed.
        let lasting = (0..1000).map(TaskIndex).all(|task| {
            (!old.done.contains(task) || new.done.contains(task))
                && (!old.failed.contains(task)
                    || new.failed.contains(task)
                    || new.is_dropped(task.0))
        });
        demand(lasting, "no task's end is taken back");
        // What is wrong with a specification is said beside the ledger, which stays as it was.
        let is_counted = new == old || new.revision == old.revision + 1;
        demand(is_counted, "revisions count the writes of the ledger");
        demand(!old.finished || new.finished, "a final end stays");
        demand(
            grants_hold(old, new),
            "one attempt of a task may publish at a time",
        );
        let before = open_attempts(old);
        for id in open.difference(&before) {
            demand(self.recorded.insert(*id), "no number is given out twice");
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
