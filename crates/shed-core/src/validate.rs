//! Values that no snapshot may have, and the snapshot without them. `decide` cannot fail and does not report such
//! values, but its decisions on them would be meaningless. [`sound`] removes them and restricts the affected jobs to
//! one attempt per task.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::ids::{AttemptNumber, JobKey, TaskIndex};
use crate::resources::Resources;
use crate::snapshot::{AttemptSnapshot, AttemptState, JobSnapshot, NodeIndex, SlotTime, Snapshot};
use crate::time::{Instant, Span};

mod repair;

/// The limit of times: larger ones (73 million years) are an overflow.
const TIME_MAX: i64 = i64::MAX / 4;

/// The most by which a start may be stamped before the launch: nodes have clocks of their own, which count whole
/// seconds.
const CLOCK_SKEW_MAX: Span = Span::from_seconds(60);

/// One invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The job that has it; absent if it is the cluster's.
    pub job: Option<JobKey>,
    /// The field, as in `tasks[3].attempts[0].progress.last`.
    pub field: String,
    /// The fault of the value.
    pub problem: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "{job}: ")?;
        }
        write!(f, "{} {}", self.field, self.problem)
    }
}

/// The snapshot for decisions, and the faults of the original. A job with faults stays in it, so that its attempts
/// are launched and their usage is counted. It stays without the invalid values and without speculation: one attempt
/// per task. Of two jobs with one key the first stays.
pub fn sound(snapshot: &Snapshot) -> (Cow<'_, Snapshot>, Vec<Fault>) {
    sound_where(snapshot, |_, _| true)
}

/// The same, if the facts of only some jobs may have faults.
pub(crate) fn sound_where(
    snapshot: &Snapshot,
    is_checked: impl Fn(usize, &JobSnapshot) -> bool,
) -> (Cow<'_, Snapshot>, Vec<Fault>) {
    let faults = faults_where(snapshot, is_checked);
    if faults.is_empty() {
        return (Cow::Borrowed(snapshot), faults);
    }
    (Cow::Owned(repair::repaired(snapshot, &faults)), faults)
}

/// All faults of the snapshot; empty if decisions may use it. Costs about as much as reading it once.
pub fn validate(snapshot: &Snapshot) -> Vec<Fault> {
    faults_where(snapshot, |_, _| true)
}

fn faults_where(
    snapshot: &Snapshot,
    is_checked: impl Fn(usize, &JobSnapshot) -> bool,
) -> Vec<Fault> {
    let mut check = Check {
        snapshot,
        job: None,
        at: Place::Whole,
        eligible: None,
        faults: Vec::new(),
    };
    check.cluster();
    check.keys();
    for (position, job) in snapshot.jobs.iter().enumerate() {
        if is_checked(position, job) {
            check.job(job);
        }
    }
    check.faults
}

fn is_negative(amounts: &Resources) -> bool {
    amounts.iter().any(|(_, amount)| amount < 0)
}

/// Also false for NaN.
fn is_share(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

/// Also false for NaN.
fn is_weight(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Also false for NaN.
fn is_budget(share: f64) -> bool {
    share >= 0.0 && share.is_finite()
}

fn is_finite(at: Instant) -> bool {
    (-TIME_MAX..=TIME_MAX).contains(&at.0)
}

fn is_time(span: Span) -> bool {
    (0..=TIME_MAX).contains(&span.0)
}

/// The positions of names that occur twice, each name once.
fn twice<'a>(names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let names: Vec<&str> = names.collect();
    if names.is_sorted_by(|a, b| a < b) {
        return Vec::new();
    }
    let mut sorted: Vec<(&str, usize)> = names.into_iter().zip(0..).collect();
    sorted.sort_unstable();
    let neighbours = sorted.iter().zip(sorted.iter().skip(1));
    let mut again: Vec<usize> = neighbours
        .filter(|(one, next)| one.0 == next.0)
        .map(|(_, next)| next.1)
        .collect();
    again.sort_unstable();
    again
}

/// The position in a job that is checked; it is written as text only for a fault.
#[derive(Clone, Copy)]
enum Place {
    Whole,
    Task(TaskIndex),
    Attempt(TaskIndex, AttemptNumber),
}

struct Check<'a> {
    snapshot: &'a Snapshot,
    job: Option<&'a JobSnapshot>,
    at: Place,
    /// The list of nodes that was checked last, because jobs share theirs.
    eligible: Option<&'a Arc<[NodeIndex]>>,
    faults: Vec<Fault>,
}

impl<'a> Check<'a> {
    fn fault(&mut self, field: &str, problem: &'static str) {
        let field = match self.at {
            Place::Whole => field.to_owned(),
            Place::Task(task) => format!("tasks[{task}].{field}"),
            Place::Attempt(task, attempt) => format!("tasks[{task}].attempts[{attempt}].{field}"),
        };
        self.faults.push(Fault {
            job: self.job.map(|job| job.key.clone()),
            field,
            problem,
        });
    }

    fn cluster(&mut self) {
        let snapshot = self.snapshot;
        if !is_finite(snapshot.now) {
            self.fault("now", "is infinite");
        }
        if snapshot.launch_overhead.is_some_and(|span| !is_time(span)) {
            self.fault("launch_overhead", "is negative or infinite");
        }
        for (tenant, &span) in &snapshot.launch_overheads {
            if !is_time(span) {
                let field = format!("launch_overheads[{tenant}]");
                self.fault(&field, "is negative or infinite");
            }
        }
        for (tenant, &weight) in &snapshot.weights {
            if !is_weight(weight) {
                let field = format!("weights[{tenant}]");
                self.fault(&field, "is not above 0, or infinite");
            }
        }
        for at in twice(snapshot.nodes.iter().map(|node| &*node.name.0)) {
            self.fault(&format!("nodes[{at}].name"), "is given twice");
        }
        for (at, node) in snapshot.nodes.iter().enumerate() {
            if is_negative(&node.allocatable) {
                self.fault(&format!("nodes[{at}].allocatable"), "is negative");
            }
        }
    }

    fn keys(&mut self) {
        let snapshot = self.snapshot;
        for at in twice(snapshot.jobs.iter().map(|job| &*job.key.0)) {
            self.job = snapshot.jobs.get(at);
            self.fault("key", "is given twice");
        }
    }

    fn job(&mut self, job: &'a JobSnapshot) {
        (self.job, self.at) = (Some(job), Place::Whole);
        self.rules(job);
        self.nodes(job);
        if !job.tasks.is_sorted_by(|a, b| a.index < b.index) {
            self.fault("tasks", "are not ascending by index");
        }
        for task in &job.tasks {
            self.at = Place::Task(task.index);
            if !task.attempts.is_sorted_by(|a, b| a.number < b.number) {
                self.fault("attempts", "are not ascending by number");
            }
            let point = task.resume_point.as_ref();
            if point.is_some_and(|point| !is_share(point.progress)) {
                self.fault("resume_point.progress", "is not in [0, 1]");
            }
            self.instant("retry_not_before", task.retry_not_before);
            self.instant("grant.at", task.grant.map(|grant| grant.at));
            for attempt in &task.attempts {
                self.at = Place::Attempt(task.index, attempt.number);
                self.attempt(attempt);
            }
        }
    }

    fn instant(&mut self, field: &str, at: Option<Instant>) {
        if at.is_some_and(|at| !is_finite(at)) {
            self.fault(field, "is infinite");
        }
    }

    fn rules(&mut self, job: &JobSnapshot) {
        if job.rules.completions == 0 {
            self.fault("rules.completions", "is zero");
        }
        let target = job.rules.target_pocd;
        if target.is_some_and(|target| !is_share(target) || target == 0.0) {
            self.fault("rules.target_pocd", "is not in (0, 1]");
        }
        let budget = job.rules.clone_budget;
        if budget.is_some_and(|share| !is_budget(share)) {
            self.fault("rules.clone_budget", "is negative or not finite");
        }
        self.instant("submitted", Some(job.submitted));
        self.instant("deadline", job.deadline);
        self.instant("time_limit", job.time_limit);
        self.instant("launch_not_before", job.launch_not_before);
        let clones = job.obstacles.clones_not_before;
        self.instant("obstacles.clones_not_before", clones);
        if !job.ended_runs.iter().all(|&run| is_time(run)) {
            self.fault("ended_runs", "has a negative or infinite time");
        }
        let SlotTime { own, clones } = job.ended_slot_time;
        if !is_time(own) || !is_time(clones) {
            self.fault("ended_slot_time", "is negative or infinite");
        }
    }

    fn nodes(&mut self, job: &'a JobSnapshot) {
        if is_negative(&job.demand) {
            self.fault("demand", "is negative");
        }
        let snapshot = self.snapshot;
        let eligible = &job.eligible_nodes;
        if !self
            .eligible
            .is_some_and(|seen| Arc::ptr_eq(seen, eligible))
        {
            let sorted = eligible.is_sorted_by(|a, b| a < b);
            let mut nodes = eligible.iter();
            let known = nodes.all(|node| node.0 < snapshot.nodes.len());
            if !sorted {
                self.fault("eligible_nodes", "are not ascending");
            }
            if !known {
                self.fault("eligible_nodes", "are not all in the cluster");
            }
            self.eligible = Some(eligible).filter(|_| sorted && known);
        }
        let holds = |free: &Resources| {
            let mut demand = job.demand.iter();
            demand.all(|(name, amount)| amount <= free.get(name))
        };
        let nodes = eligible
            .iter()
            .filter_map(|node| snapshot.nodes.get(node.0));
        let mut nodes = nodes.peekable();
        if nodes.peek().is_some() && !nodes.any(|node| holds(&node.allocatable)) {
            self.fault("demand", "is more than any eligible node has");
        }
    }

    fn attempt(&mut self, attempt: &AttemptSnapshot) {
        if !(0.0..1.0).contains(&attempt.start_progress) {
            self.fault("start_progress", "is not in [0, 1)");
        }
        if attempt
            .node
            .is_some_and(|node| node.0 >= self.snapshot.nodes.len())
        {
            self.fault("node", "is not in the cluster");
        }
        self.instant("launched", Some(attempt.launched));
        self.instant("killed_at", attempt.killed_at);
        self.instant("started", attempt.started);
        self.instant("state", instant_of(attempt.state));
        let launched = attempt.launched;
        let is_early = |started: Instant| launched.since(started) > CLOCK_SKEW_MAX;
        if attempt.started.is_some_and(is_early) {
            self.fault("started", "is before its launch");
        }
        let point = attempt.checkpoint.as_ref();
        if point.is_some_and(|point| !is_share(point.progress)) {
            self.fault("checkpoint.progress", "is not in [0, 1]");
        }
        let Some(progress) = attempt.progress else {
            return;
        };
        for (field, value) in [
            ("progress.first", progress.first),
            ("progress.last", progress.last),
        ] {
            if !is_share(value) {
                self.fault(field, "is not in [0, 1]");
            }
        }
        self.instant("progress.first_at", Some(progress.first_at));
        self.instant("progress.last_at", Some(progress.last_at));
        if progress.last_at < progress.first_at || progress.last < progress.first {
            self.fault("progress", "goes back");
        }
    }
}

fn instant_of(state: AttemptState) -> Option<Instant> {
    match state {
        AttemptState::Stuck { since } => Some(since),
        AttemptState::Succeeded { finished } | AttemptState::Failed { finished, .. } => {
            Some(finished)
        }
        AttemptState::Launching
        | AttemptState::Pending
        | AttemptState::Running
        | AttemptState::Lost => None,
    }
}

#[cfg(test)]
mod tests;
