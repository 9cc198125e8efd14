//! What the history of a run shows: violations, and figures that are counted along the way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use shed::api::{self, DeadlineJob};

use crate::campaign::check::{Known, Replay};
use crate::campaign::history::{Change, Entry};
use crate::campaign::report::what;
use crate::jobs::{is_true, object_bytes, reason};
use crate::large::figures::{Figures, Load};

/// Writes of one job are counted over this time …
const SPAN: Duration = Duration::from_secs(10);
/// … in which there may be as many as this (I9: five per second).
const WRITES_MAX: u64 = 50;
/// Violations of a kind that are reported.
const REPORTED: usize = 100;

/// The history so far.
#[derive(Default)]
pub struct Observed {
    replay: Replay,
    tasks: u32,
    /// Uids of the pods of each job, by the job's name.
    pods: BTreeMap<String, BTreeSet<String>>,
    /// Jobs that are complete.
    complete: BTreeSet<String>,
    /// When each job was written of late.
    written: BTreeMap<String, VecDeque<Instant>>,
    /// Objects that are there.
    there: BTreeSet<String>,
    states: u64,
    largest: u64,
    busiest: u64,
    broken: Vec<String>,
}

impl Observed {
    /// Before the first state.
    pub fn new(load: Load, begins_at: u64) -> Self {
        let known = Known {
            capacity: load.capacity(),
            begins_at,
            ..Known::default()
        };
        Self {
            replay: Replay::new(known),
            tasks: load.tasks,
            ..Self::default()
        }
    }

    /// More states, and the pods that the operator deleted until then.
    pub fn take(&mut self, states: &[Entry], deleted: BTreeSet<String>) {
        self.replay.deleted_by_operator(deleted);
        for state in states {
            self.states += 1;
            self.replay.take(state);
            match &state.change {
                Change::Job(job) => self.job(job),
                Change::Pod(pod) => {
                    let uid = pod.uid().unwrap_or_default();
                    if let Some(job) = pod.labels().get(api::LABEL_JOB_NAME) {
                        self.pods
                            .entry(job.clone())
                            .or_default()
                            .insert(uid.clone());
                    }
                    self.there.insert(uid);
                }
                Change::PodGone(pod) => {
                    self.there.remove(&pod.uid().unwrap_or_default());
                }
                Change::JobGone(job) => {
                    self.there.remove(&job.uid().unwrap_or_default());
                }
                Change::Batch(_) | Change::BatchGone(_) => {}
            }
        }
    }

    fn job(&mut self, job: &DeadlineJob) {
        let name = job.name_any();
        self.there.insert(job.uid().unwrap_or_default());
        self.largest = self.largest.max(object_bytes(job) as u64);
        let now = Instant::now();
        let written = self.written.entry(name.clone()).or_default();
        written.push_back(now);
        while written.front().is_some_and(|first| now - *first > SPAN) {
            written.pop_front();
        }
        self.busiest = self.busiest.max(written.len() as u64);
        if let Some(failed) = reason(job, api::FAILED) {
            self.broken.push(format!("I3: {name} failed: {failed}"));
        }
        if is_true(job, api::COMPLETE) && self.complete.insert(name) {
            self.counts(job);
        }
    }

    /// I10: the counters of a complete job are those of the history.
    fn counts(&mut self, job: &DeadlineJob) {
        let name = job.name_any();
        let Some(status) = &job.status else { return };
        let own = &status.attempts;
        let pods = self.pods.get(&name).map_or(0, BTreeSet::len);
        let recorded = own.originals + own.clones + own.retries;
        if own.won != i64::from(self.tasks) || recorded < i64::try_from(pods).unwrap_or(i64::MAX) {
            self.broken.push(format!(
                "I10: {name} counts {} winners and {recorded} attempts; it has {} tasks, and had {pods} pods",
                own.won, self.tasks
            ));
        }
    }

    /// Attempts that take capacity.
    pub fn live(&self) -> u64 {
        self.replay.live() as u64
    }

    /// Jobs that are complete.
    pub fn complete(&self) -> u64 {
        self.complete.len() as u64
    }

    /// Jobs and pods that are there.
    pub fn objects(&self) -> usize {
        self.there.len()
    }

    /// All objects were deleted, so that none may be left.
    pub fn all_deleted(&mut self) {
        self.replay.all_deleted();
    }

    /// The figures, with what the history adds to them. A run that stopped early has jobs that did not come to an end,
    /// which is no violation of its own.
    pub fn end(mut self, rest: &[Entry], mut broken: Vec<String>, mut figures: Figures) -> Figures {
        self.take(rest, BTreeSet::new());
        let is_whole = figures.stopped.is_none();
        let checked = self.replay.end();
        broken.extend(
            checked
                .into_iter()
                .filter(|line| is_whole || !line.contains("I3:")),
        );
        broken.append(&mut self.broken);
        if self.busiest > WRITES_MAX {
            let busiest = self.busiest;
            broken.push(format!(
                "I9: one job was written {busiest} times in {SPAN:?}"
            ));
        }
        let mut reported = BTreeSet::new();
        // A violation in one state mostly persists in the following states.
        broken.retain(|line| reported.insert(what(line).to_owned()));
        broken.truncate(REPORTED);
        figures.complete = self.complete.len() as u64;
        figures.attempts = self.pods.values().map(|pods| pods.len() as u64).sum();
        figures.states = self.states;
        figures.largest_object = self.largest;
        figures.busiest_job = self.busiest;
        figures.broken = broken;
        figures
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::large::figures::Trouble;

    fn job(version: u64, won: i64, conditions: &[&str]) -> Entry {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|type_| {
                json!({"type": type_, "status": "True", "reason": "R", "message": "",
                    "lastTransitionTime": "2030-01-01T00:00:00Z"})
            })
            .collect();
        let job = json!({"metadata": {"name": "j", "uid": "u", "resourceVersion": version.to_string()},
            "spec": {"template": {"spec": {"containers": []}}, "completions": 2,
                "deadline": {"within": "5m"}, "idempotency": "Safe"},
            "status": {"conditions": conditions, "attempts": {"originals": 2, "won": won}}});
        Entry {
            version,
            change: Change::Job(Box::new(serde_json::from_value(job).unwrap())),
        }
    }

    fn ended(states: &[Entry]) -> Figures {
        let load = Load {
            nodes: 2,
            jobs: 1,
            tasks: 2,
            trouble: Trouble::None,
        };
        let mut observed = Observed::new(load, 0);
        observed.take(states, BTreeSet::new());
        observed.end(&[], Vec::new(), Figures::default())
    }

    #[test]
    fn counters_that_differ_from_the_history_are_reported() {
        let figures = ended(&[job(1, 1, &["Complete"])]);
        assert_eq!(figures.complete, 1);
        let reported = figures.broken.iter().any(|line| line.starts_with("I10: j"));
        assert!(reported, "{:?}", figures.broken);
        let figures = ended(&[job(1, 2, &["Complete"])]);
        assert!(!figures.broken.iter().any(|line| line.contains("I10")));
    }

    #[test]
    fn a_job_that_is_written_again_and_again_is_reported() {
        let states: Vec<Entry> = (1..=60).map(|version| job(version, 0, &[])).collect();
        let figures = ended(&states);
        assert_eq!((figures.states, figures.busiest_job), (60, 60));
        assert!(figures.broken.iter().any(|line| line.starts_with("I9")));
    }

    #[test]
    fn a_failed_job_is_reported_once() {
        let figures = ended(&[job(1, 0, &["Failed"]), job(2, 0, &["Failed"])]);
        let failed = figures
            .broken
            .iter()
            .filter(|line| line.starts_with("I3: j failed"));
        assert_eq!(failed.count(), 1);
    }
}
