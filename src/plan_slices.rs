//! The exchange of plan slices: the planner leaves each job's slice here, and the job's reconciler
//! takes it. A slice is finished once the ledger holds it, because the ledger then holds the
//! capacity. A slice that is not finished when the planner plans again is *held*: the planner
//! counts its launches, and plans nothing more for its job. So one job's slow write delays no other
//! job's plan, and no slot is used twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use shed_core::plan::{JobReport, Move};
use shed_core::time::{Instant, Span};

/// A job's uid.
pub type JobUid = Arc<str>;

/// Slices that wait or are in progress, and the last report about each job.
#[derive(Default)]
pub struct PlanSlices {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    slices: HashMap<JobUid, Slice>,
    reports: HashMap<JobUid, JobReport>,
    states: HashMap<JobUid, String>,
}

struct Slice {
    actions: Arc<[Move]>,
    /// When it was published, by the process's own clock.
    published: Instant,
    /// Whether its job's reconciler has it: its launches may be recorded at any time.
    is_taken: bool,
}

impl PlanSlices {
    /// Puts up the slices and the reports of a pass, which has one report for each job. The slice of a job that still
    /// has one is dropped.
    ///
    /// Each report comes with whether the pass looked at its job. Otherwise the findings of the last look stay, and
    /// only the numbers of waiting tasks are new.
    ///
    /// Returns the jobs whose tasks begin or cease to wait for the share of their namespace: their conditions name it.
    pub fn publish(
        &self,
        slices: HashMap<JobUid, Vec<Move>>,
        reports: Vec<(JobReport, bool)>,
        ticks: Instant,
    ) -> Vec<JobUid> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        for (job, actions) in slices {
            inner.slices.entry(job).or_insert(Slice {
                actions: actions.into(),
                published: ticks,
                is_taken: false,
            });
        }
        let (known, count) = (&mut inner.reports, reports.len());
        let mut turned = Vec::new();
        for (report, is_looked_at) in &reports {
            let job = &report.key.0;
            let waited = known.get(job).is_some_and(waits_for_share);
            if waited != waits_for_share(report) {
                turned.push(Arc::clone(job));
            }
            match known.get_mut(job).filter(|_| !is_looked_at) {
                Some(known) => {
                    known.waiting = report.waiting;
                    known.waiting_for_share = report.waiting_for_share;
                }
                None => {
                    known.insert(Arc::clone(job), report.clone());
                }
            }
        }
        if known.len() != count {
            let present: HashSet<&JobUid> = reports.iter().map(|(it, _)| &it.key.0).collect();
            known.retain(|job, _| present.contains(job));
        }
        turned
    }

    /// Stores the durable part of the planner's memory: the policy's state, by job.
    pub fn remember<'a>(&self, states: impl Iterator<Item = (&'a JobUid, &'a str)>) {
        let mut inner = self.inner.lock();
        let mut before = std::mem::take(&mut inner.states);
        let states = states.map(|(job, state)| {
            let known = before.remove(job).filter(|known| known == state);
            (Arc::clone(job), known.unwrap_or_else(|| state.to_owned()))
        });
        inner.states = states.collect();
    }

    /// The part of the policy's state for the job that must survive a failover.
    pub fn policy_state(&self, job: &str) -> Option<String> {
        self.inner.lock().states.get(job).cloned()
    }

    /// Takes a job's slice, which is then in progress. Empty if the job has no slice.
    pub fn take(&self, job: &str) -> Vec<Move> {
        let mut inner = self.inner.lock();
        let slice = inner.slices.get_mut(job).filter(|slice| !slice.is_taken);
        let Some(slice) = slice else {
            return Vec::new();
        };
        slice.is_taken = true;
        slice.actions.to_vec()
    }

    /// Whether a slice that waits stops an attempt of the job.
    pub fn must_stop_some(&self, job: &str) -> bool {
        let inner = self.inner.lock();
        let waiting = inner.slices.get(job).filter(|slice| !slice.is_taken);
        let mut moves = waiting.into_iter().flat_map(|slice| slice.actions.iter());
        moves.any(|action| matches!(action, Move::Kill(_)))
    }

    /// Nothing of the job's slice was recorded, and its reconciler takes it again later.
    pub fn put_back(&self, job: &str) {
        if let Some(slice) = self.inner.lock().slices.get_mut(job) {
            slice.is_taken = false;
        }
    }

    /// The job's slice is recorded, or given up.
    pub fn finish(&self, job: &str) {
        let mut inner = self.inner.lock();
        // A slice that was put back waits for its next taker.
        let was_taken = inner.slices.get(job).is_some_and(|slice| slice.is_taken);
        if was_taken {
            inner.slices.remove(job);
        }
    }

    /// Drops all that is there for a job: its slice, carried out half or not at all, and its report.
    pub fn abandon(&self, job: &str) {
        let mut inner = self.inner.lock();
        inner.reports.remove(job);
        inner.slices.remove(job);
    }

    /// The report about a job, of the last pass that looked at it.
    pub fn report(&self, job: &str) -> Option<JobReport> {
        self.inner.lock().reports.get(job).cloned()
    }

    /// Reads the report about a job, without a copy.
    pub fn read_report<T>(&self, job: &str, read: impl FnOnce(&JobReport) -> T) -> Option<T> {
        self.inner.lock().reports.get(job).map(read)
    }

    /// The unfinished slices. Before that, removes those that no reconciler has taken for
    /// `patience`.
    pub fn held(&self, patience: Span, ticks: Instant) -> BTreeMap<JobUid, Vec<Move>> {
        let mut inner = self.inner.lock();
        let is_fresh = |slice: &Slice| ticks.since(slice.published) < patience;
        inner
            .slices
            .retain(|_, slice| slice.is_taken || is_fresh(slice));
        let held = inner.slices.iter();
        held.map(|(job, slice)| (Arc::clone(job), slice.actions.to_vec()))
            .collect()
    }
}

fn waits_for_share(report: &JobReport) -> bool {
    report.waiting_for_share > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_seconds(5);

    fn with_a_slice() -> (PlanSlices, JobUid) {
        let (plan_slices, job): (_, JobUid) = (PlanSlices::default(), Arc::from("j"));
        let slices = HashMap::from([(Arc::clone(&job), vec![])]);
        plan_slices.publish(slices, vec![], Instant(0));
        (plan_slices, job)
    }

    fn is_held(plan_slices: &PlanSlices, at: i64) -> bool {
        plan_slices.held(PATIENCE, Instant(at)).contains_key("j")
    }

    #[test]
    fn a_slice_is_held_until_it_is_recorded() {
        let (plan_slices, job) = with_a_slice();
        assert!(is_held(&plan_slices, 0));
        let _ = plan_slices.take(&job);
        assert!(
            is_held(&plan_slices, 60_000),
            "its launches may be recorded at any time"
        );
        plan_slices.finish(&job);
        assert!(!is_held(&plan_slices, 60_000));
    }

    #[test]
    fn a_slice_that_is_not_taken_in_time_is_taken_back() {
        let (plan_slices, _) = with_a_slice();
        assert!(is_held(&plan_slices, 4_999));
        assert!(!is_held(&plan_slices, 5_000));
    }

    #[test]
    fn the_findings_of_the_last_look_at_a_job_stay() {
        let report = |pocd: f64, waiting: u32| JobReport {
            pocd_after: Some(pocd),
            waiting,
            ..crate::fixtures::report("j")
        };
        let plan_slices = PlanSlices::default();
        let publish = |reports| plan_slices.publish(HashMap::new(), reports, Instant(0));
        publish(vec![(report(0.5, 3), false)]);
        assert_eq!(
            plan_slices.report("j"),
            Some(report(0.5, 3)),
            "it is the first"
        );
        publish(vec![(report(0.9, 2), false)]);
        assert_eq!(plan_slices.report("j"), Some(report(0.5, 2)));
        publish(vec![(report(0.9, 1), true)]);
        assert_eq!(plan_slices.report("j"), Some(report(0.9, 1)));
        publish(vec![]);
        assert_eq!(plan_slices.report("j"), None, "the job is gone");
    }

    #[test]
    fn jobs_that_begin_or_cease_to_wait_for_a_share_are_news() {
        let plan_slices = PlanSlices::default();
        let turned = |waiting_for_share: u32, is_looked_at| {
            let report = JobReport {
                waiting_for_share,
                ..crate::fixtures::report("j")
            };
            let reports = vec![(report, is_looked_at)];
            plan_slices
                .publish(HashMap::new(), reports, Instant(0))
                .len()
        };
        assert_eq!(turned(0, true), 0);
        assert_eq!(turned(2, false), 1);
        assert_eq!(turned(1, true), 0, "another number");
        assert_eq!(turned(0, false), 1);
    }

    #[test]
    fn a_slice_that_was_put_back_waits_for_the_next_taker() {
        let (plan_slices, job) = with_a_slice();
        let _ = plan_slices.take(&job);
        plan_slices.put_back(&job);
        plan_slices.finish(&job);
        assert!(
            is_held(&plan_slices, 0),
            "what ends a pass does not drop it"
        );
        assert!(!is_held(&plan_slices, 5_000));
    }
}
