//! The exchange of plan slices: the planner leaves each job's slice here, and the job's reconciler
//! takes it. A slice is finished once the ledger holds it, because the ledger then holds the
//! capacity. A slice that is not finished when the planner plans again is *held*: the planner
//! counts its launches, and plans nothing more for its job. So one job's slow write delays no other
//! job's plan, and no slot is used twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use shed_core::explain::explain;
use shed_core::ids::JobKey;
use shed_core::plan::{CapacityReport, JobReport, Move, Plan, PlanReport, PlannedMove};
use shed_core::time::{Instant, Span};

/// A job's uid.
pub type JobUid = Arc<str>;

/// Slices that wait or are in progress, and the last report about each job.
#[derive(Default)]
pub struct Board {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    slices: HashMap<JobUid, Slice>,
    reports: HashMap<JobUid, JobReport>,
    /// The pass of each report, and the moves of its plan, for explanations.
    plans: HashMap<JobUid, (PassFacts, Arc<[Move]>)>,
    states: HashMap<JobUid, String>,
}

/// Facts about a pass that all its jobs share.
#[derive(Debug, Clone)]
pub struct PassFacts {
    /// When, by the process's own clock.
    pub ticks: Instant,
    /// When, by the apiserver's clock.
    pub now: Instant,
    /// The capacity as the pass saw it.
    pub capacity: Arc<CapacityReport>,
    /// When the next pass is due even if nothing happens, by the apiserver's clock.
    pub next_pass: Option<Instant>,
}

struct Slice {
    actions: Arc<[Move]>,
    /// When it was published, by the process's own clock.
    published: Instant,
    /// Whether its job's reconciler has it: its launches may be recorded at any time.
    is_taken: bool,
}

impl Board {
    /// Puts up the slices and the reports of a pass, which has one report for each job. The slice of a job that still
    /// has one is dropped.
    ///
    /// Each report comes with whether the pass looked at its job. Otherwise the findings of the last look stay, and
    /// only the numbers of waiting tasks are new.
    pub fn publish(
        &self,
        slices: HashMap<JobUid, Vec<Move>>,
        reports: Vec<(JobReport, bool)>,
        pass: &PassFacts,
    ) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let mut planned = HashMap::with_capacity(slices.len());
        for (job, actions) in slices {
            let actions: Arc<[Move]> = actions.into();
            planned.insert(Arc::clone(&job), Arc::clone(&actions));
            inner.slices.entry(job).or_insert(Slice {
                actions,
                published: pass.ticks,
                is_taken: false,
            });
        }
        let (known, count) = (&mut inner.reports, reports.len());
        for (report, is_looked_at) in &reports {
            let job = &report.key.0;
            match known.get_mut(job).filter(|_| !is_looked_at) {
                Some(known) => {
                    known.waiting = report.waiting;
                    known.kept_back = report.kept_back;
                }
                None => {
                    known.insert(Arc::clone(job), report.clone());
                    let actions = planned.remove(job).unwrap_or_default();
                    inner.plans.insert(Arc::clone(job), (pass.clone(), actions));
                }
            }
        }
        if known.len() != count {
            let present: HashSet<&JobUid> = reports.iter().map(|(it, _)| &it.key.0).collect();
            known.retain(|job, _| present.contains(job));
            inner.plans.retain(|job, _| present.contains(job));
        }
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
        inner.plans.remove(job);
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

    /// The text of the last pass that looked at the job, and when that was. `name` gives the names of jobs.
    pub fn explanation(
        &self,
        job: &str,
        name: impl Fn(&JobKey) -> String,
    ) -> Option<(Instant, String)> {
        let (report, (pass, actions)) = {
            let inner = self.inner.lock();
            (
                inner.reports.get(job)?.clone(),
                inner.plans.get(job)?.clone(),
            )
        };
        let report = report.with_names(|key| JobKey::from(&*name(key)));
        let key = report.key.clone();
        let actions = actions.iter().map(|action| PlannedMove {
            job: key.clone(),
            action: action.clone(),
        });
        let plan = Plan {
            actions: actions.collect(),
            report: PlanReport {
                capacity: (*pass.capacity).clone(),
                next_pass: pass.next_pass,
                jobs: vec![report],
            },
        };
        let text = explain(pass.now, &plan, &key)?.to_string();
        Some((pass.now, text))
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

#[cfg(test)]
impl PassFacts {
    /// A pass at this time, without capacity.
    pub fn at(ticks: Instant) -> Self {
        Self {
            ticks,
            now: ticks,
            capacity: Arc::default(),
            next_pass: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_seconds(5);

    fn board() -> (Board, JobUid) {
        let (board, job): (_, JobUid) = (Board::default(), Arc::from("j"));
        let slices = HashMap::from([(Arc::clone(&job), vec![])]);
        board.publish(slices, vec![], &PassFacts::at(Instant(0)));
        (board, job)
    }

    fn is_held(board: &Board, at: i64) -> bool {
        board.held(PATIENCE, Instant(at)).contains_key("j")
    }

    #[test]
    fn a_slice_is_held_until_it_is_recorded() {
        let (board, job) = board();
        assert!(is_held(&board, 0));
        let _ = board.take(&job);
        assert!(
            is_held(&board, 60_000),
            "its launches may be recorded at any time"
        );
        board.finish(&job);
        assert!(!is_held(&board, 60_000));
    }

    #[test]
    fn a_slice_that_is_not_taken_in_time_is_taken_back() {
        let (board, _) = board();
        assert!(is_held(&board, 4_999));
        assert!(!is_held(&board, 5_000));
    }

    #[test]
    fn the_findings_of_the_last_look_at_a_job_stay() {
        let report = |pocd: f64, waiting: u32| JobReport {
            pocd_after: Some(pocd),
            waiting,
            ..crate::fixtures::report("j")
        };
        let board = Board::default();
        let pass = PassFacts::at(Instant(0));
        let publish = |reports| board.publish(HashMap::new(), reports, &pass);
        publish(vec![(report(0.5, 3), false)]);
        assert_eq!(board.report("j"), Some(report(0.5, 3)), "it is the first");
        publish(vec![(report(0.9, 2), false)]);
        assert_eq!(board.report("j"), Some(report(0.5, 2)));
        publish(vec![(report(0.9, 1), true)]);
        assert_eq!(board.report("j"), Some(report(0.9, 1)));
        publish(vec![]);
        assert_eq!(board.report("j"), None, "the job is gone");
    }

    #[test]
    fn an_explanation_has_the_plan_of_the_last_look_and_names_jobs() {
        let board = Board::default();
        let launch = shed_core::fixtures::launch(3, shed_core::snapshot::AttemptKind::Original);
        let slices = HashMap::from([(Arc::from("j"), vec![Move::Launch(launch)])]);
        let name = |key: &JobKey| format!("team/{key}");
        assert_eq!(board.explanation("j", name), None);
        let report = |looked| vec![(crate::fixtures::report("j"), looked)];
        board.publish(slices, report(true), &PassFacts::at(Instant(1000)));
        board.publish(HashMap::new(), report(false), &PassFacts::at(Instant(2000)));
        let (at, text) = board.explanation("j", name).unwrap();
        assert_eq!(at, Instant(1000));
        assert!(text.starts_with("job team/j: PoCD unknown"), "{text}");
        assert!(text.contains("launches task 3 as original"), "{text}");
        board.publish(HashMap::new(), report(true), &PassFacts::at(Instant(3000)));
        let (at, text) = board.explanation("j", name).unwrap();
        assert_eq!(at, Instant(3000));
        assert!(!text.contains("launches"), "{text}");
        board.abandon("j");
        assert_eq!(board.explanation("j", name), None);
    }

    #[test]
    fn a_slice_that_was_put_back_waits_for_the_next_taker() {
        let (board, job) = board();
        let _ = board.take(&job);
        board.put_back(&job);
        board.finish(&job);
        assert!(is_held(&board, 0), "what ends a pass does not drop it");
        assert!(!is_held(&board, 5_000));
    }
}
