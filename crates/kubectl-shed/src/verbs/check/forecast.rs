//! What the planner would say about the deadline of a job that has not begun, if it had this many slots. Pure.

use std::sync::Arc;

use shed::api::Ledger;
use shed::clock;
use shed::context::feasibility::Told;
use shed::validate::{DeadlineRule, ValidatedJob};
use shed_core::decide::decide;
use shed_core::ids::{JobClass, JobKey, NodeName, Tenant};
use shed_core::index_set::IndexSet;
use shed_core::memory::Memory;
use shed_core::plan::Feasibility;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{JobPhase, JobSnapshot, Node, NodeIndex, Obstacles, SlotTime, Snapshot};
use shed_core::time::Instant;

use crate::words;

/// A forecast for a job that is created now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    figures: Feasibility,
    created: Instant,
}

impl Forecast {
    /// Whether PoCD reaches the target. Absent while the durations are unknown.
    pub fn is_feasible(&self) -> Option<bool> {
        let pocd = self.figures.pocd.filter(|_| self.figures.is_known)?;
        Some(pocd >= self.figures.target)
    }

    /// One sentence, as in the condition `DeadlineFeasible`.
    pub fn words(&self) -> String {
        if !self.figures.is_known {
            return "no forecast, because spec.expectedTaskDuration does not say how long a task takes: add it, \
                    e.g. {p50: 10m, p90: 15m}, or in a Job the annotation shed.dev/expected-task-duration"
                .to_owned();
        }
        let (_, words) = Told::after(None, &self.figures, 0, self.created).words();
        match self.figures.earliest {
            Some(earliest) => {
                let seconds = (earliest.since(self.created).0 + 999) / 1000;
                format!("{words}, {} after its creation", words::exact_span(seconds))
            }
            None => words,
        }
    }
}

/// The forecast for a job without attempts. Absent without a deadline.
pub fn forecast(job: &ValidatedJob, slots: u32) -> Option<Forecast> {
    let deadline = deadline(job)?;
    let snapshot = Snapshot {
        now: job.created,
        nodes: vec![node(slots)],
        jobs: vec![snapshot(job, deadline)],
        launch_overhead: None,
        launch_overheads: [].into(),
    };
    let (plan, _) = decide(&snapshot, Memory::default(), &policy());
    let figures = plan
        .report
        .jobs
        .into_iter()
        .find_map(|job| job.feasibility)?;
    Some(Forecast {
        figures,
        created: job.created,
    })
}

/// The default policy, which keeps no slot back from a job that is alone.
pub fn policy() -> Policy {
    Policy {
        capacity_share: 1.0,
        surge_max: 0,
        ..Policy::default()
    }
}

/// The deadline if the first planning pass follows the creation at once.
fn deadline(job: &ValidatedJob) -> Option<Instant> {
    let ledger = Ledger {
        first_pass: Some(job.created),
        ..Ledger::default()
    };
    job.deadline_by(&ledger)
}

/// A node with that many slots.
pub fn node(slots: u32) -> Node {
    let room = Resources::from_pairs([("pods", i64::from(slots))]);
    Node {
        name: NodeName(Arc::from("slots")),
        allocatable: room.clone(),
        free: room,
        used_by_others: Resources::default(),
        usable: true,
    }
}

/// The job before its first attempt. A suspended one is judged as if it were not.
fn snapshot(job: &ValidatedJob, deadline: Instant) -> JobSnapshot {
    let mut rules = job.rules.clone();
    rules.suspend = false;
    JobSnapshot {
        key: JobKey(Arc::clone(&job.uid)),
        tenant: Tenant(Arc::clone(&job.namespace)),
        class: job.class.clone().map(JobClass),
        expected_duration: job.expected_duration,
        submitted: job.created,
        deadline: Some(deadline),
        rules,
        phase: JobPhase::Active,
        launched_before: false,
        reports_progress: job.progress.is_some(),
        demand: Resources::from_pairs([("pods", 1)]),
        eligible_nodes: Arc::from([NodeIndex(0)]),
        done: job.skipped.clone().unwrap_or_default(),
        failed: IndexSet::default(),
        tasks: Vec::new(),
        ended_runs: Vec::new(),
        ended_slot_time: SlotTime::default(),
        launch_not_before: None,
        obstacles: Obstacles::default(),
        failures: 0,
        time_limit: None,
        facts_as_of: job.created,
        asks_feasibility: true,
        avoid: Vec::new(),
    }
}

/// How a job's deadline is stated, relative to its creation.
pub fn deadline_words(job: &ValidatedJob) -> String {
    match deadline(job) {
        None if job.deadline == DeadlineRule::Never => "no deadline".to_owned(),
        None => {
            "a deadline from earlier runs of its class, which only the operator knows".to_owned()
        }
        Some(deadline) => {
            let seconds = deadline.since(job.created).0 / 1000;
            let at = clock::rfc3339(deadline);
            match seconds {
                1.. => format!(
                    "deadline {} after its creation ({at} if created now)",
                    words::exact_span(seconds)
                ),
                _ => format!("deadline {at}, which is over"),
            }
        }
    }
}
