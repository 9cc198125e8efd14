//! What no snapshot may hold. `decide` can't fail and draws no error from such values, but what it
//! decides on them means nothing: an executor leaves the jobs named here to one attempt per task.

use std::collections::BTreeSet;
use std::fmt;

use crate::ids::{JobKey, NodeName};
use crate::resources::Resources;
use crate::snapshot::{AttemptSnapshot, JobSnapshot, Snapshot, TaskSnapshot};
use crate::time::Span;

/// One value that may not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Whose; absent if it is the cluster's.
    pub job: Option<JobKey>,
    /// Which field, as in `tasks[3].attempts[0].progress.last`.
    pub field: String,
    /// What is wrong with it.
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

/// Everything that is wrong with the snapshot; nothing, if it may be decided on.
#[must_use]
pub fn validate(snapshot: &Snapshot) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut cluster = |field: String, problem| {
        let job = None;
        faults.push(Fault {
            job,
            field,
            problem,
        });
    };
    if snapshot.launch_overhead.is_some_and(|span| span < Span(0)) {
        cluster("launch_overhead".into(), "is negative");
    }
    let mut names: BTreeSet<&NodeName> = BTreeSet::new();
    for (at, node) in snapshot.nodes.iter().enumerate() {
        if !names.insert(&node.name) {
            cluster(format!("nodes[{at}].name"), "is given twice");
        }
        if is_negative(&node.allocatable) {
            cluster(format!("nodes[{at}].allocatable"), "is negative");
        }
    }
    let mut keys: BTreeSet<&JobKey> = BTreeSet::new();
    for job in &snapshot.jobs {
        let mut check = JobCheck {
            job,
            faults: &mut faults,
        };
        if !keys.insert(&job.key) {
            check.fault("key", "is given twice");
        }
        check.rules(snapshot);
        check.tasks();
    }
    faults
}

fn is_negative(amounts: &Resources) -> bool {
    amounts.iter().any(|(_, amount)| amount < 0)
}

struct JobCheck<'a> {
    job: &'a JobSnapshot,
    faults: &'a mut Vec<Fault>,
}

impl JobCheck<'_> {
    fn fault(&mut self, field: impl Into<String>, problem: &'static str) {
        self.faults.push(Fault {
            job: Some(self.job.key.clone()),
            field: field.into(),
            problem,
        });
    }

    fn rules(&mut self, snapshot: &Snapshot) {
        let job = self.job;
        if job.rules.completions == 0 {
            self.fault("rules.completions", "is zero");
        }
        if is_negative(&job.demand) {
            self.fault("demand", "is negative");
        }
        let eligible = &job.eligible_nodes;
        if !eligible.is_sorted_by(|a, b| a < b) {
            self.fault("eligible_nodes", "are not ascending");
        }
        let nodes = || eligible.iter().map(|node| snapshot.nodes.get(node.0));
        if nodes().any(|node| node.is_none()) {
            self.fault("eligible_nodes", "are not all in the cluster");
        }
        let holds = |room: &Resources| {
            let mut demand = job.demand.iter();
            demand.all(|(name, amount)| amount <= room.get(name))
        };
        let mut known = nodes().flatten().peekable();
        if known.peek().is_some() && !known.any(|node| holds(&node.allocatable)) {
            self.fault("demand", "is more than any eligible node has");
        }
        if job.ended_runs.iter().any(|run| *run < Span(0)) {
            self.fault("ended_runs", "has a negative time");
        }
    }

    fn tasks(&mut self) {
        let tasks = &self.job.tasks;
        if !tasks.is_sorted_by(|a, b| a.index < b.index) {
            self.fault("tasks", "are not ascending by index");
        }
        for task in tasks {
            self.task(task);
        }
    }

    fn task(&mut self, task: &TaskSnapshot) {
        let name = format!("tasks[{}]", task.index);
        if task.index.0 >= self.job.rules.completions {
            self.fault(format!("{name}.index"), "is not below completions");
        }
        if !task.attempts.is_sorted_by(|a, b| a.number < b.number) {
            self.fault(format!("{name}.attempts"), "are not ascending by number");
        }
        let point = task.resume_point.as_ref();
        if point.is_some_and(|point| !is_share(point.progress)) {
            self.fault(format!("{name}.resume_point.progress"), "is not in [0, 1]");
        }
        for attempt in &task.attempts {
            self.attempt(&format!("{name}.attempts[{}]", attempt.number), attempt);
        }
    }

    fn attempt(&mut self, name: &str, attempt: &AttemptSnapshot) {
        let begin = attempt.start_progress;
        if !(0.0..1.0).contains(&begin) {
            self.fault(format!("{name}.start_progress"), "is not in [0, 1)");
        }
        if attempt
            .started
            .is_some_and(|started| started < attempt.launched)
        {
            self.fault(format!("{name}.started"), "is before its launch");
        }
        let point = attempt.checkpoint.as_ref();
        if point.is_some_and(|point| !is_share(point.progress)) {
            self.fault(format!("{name}.checkpoint.progress"), "is not in [0, 1]");
        }
        let Some(progress) = attempt.progress else {
            return;
        };
        for (field, value) in [("first", progress.first), ("last", progress.last)] {
            if !is_share(value) {
                self.fault(format!("{name}.progress.{field}"), "is not in [0, 1]");
            }
        }
        if progress.last_at < progress.first_at || progress.last < progress.first {
            self.fault(format!("{name}.progress"), "goes back");
        }
    }
}

/// Also false for what is no number.
fn is_share(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{JobBuilder, attempt, job, world};
    use crate::ids::TaskIndex;
    use crate::snapshot::NodeIndex;

    fn sound() -> JobBuilder {
        let reporting = attempt(0).on(0).progress(0.4, 20.0);
        job("a").task(0, [reporting, attempt(1).on(1)])
    }

    #[track_caller]
    fn check(builder: JobBuilder, expected: &[&str]) {
        let snapshot = world(30.0, 2, 4000).job(builder).build();
        let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_sound_snapshot_has_no_faults() {
        check(sound(), &[]);
    }

    #[test]
    fn a_fault_names_its_job_and_field() {
        check(job("a").tasks(0), &["a: rules.completions is zero"]);
        check(
            job("a").cpu(5000),
            &["a: demand is more than any eligible node has"],
        );
        check(job("a").cpu(-1), &["a: demand is negative"]);
        check(
            job("a").ended_runs([-1.0]),
            &["a: ended_runs has a negative time"],
        );
        let strange = sound().with(|job| job.eligible_nodes = [NodeIndex(1), NodeIndex(1)].into());
        check(strange, &["a: eligible_nodes are not ascending"]);
        let beyond = sound().with(|job| job.eligible_nodes = [NodeIndex(0), NodeIndex(2)].into());
        check(beyond, &["a: eligible_nodes are not all in the cluster"]);
        let twice = sound().with(|job| job.tasks.push(job.tasks[0].clone()));
        check(twice, &["a: tasks are not ascending by index"]);
        let far = sound().with(|job| job.tasks[0].index = TaskIndex(4));
        check(far, &["a: tasks[4].index is not below completions"]);
    }

    #[test]
    fn what_attempts_report_must_be_shares_that_do_not_go_back() {
        for value in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
            let odd = sound().with(|job| {
                let progress = job.tasks[0].attempts[0].progress.as_mut();
                progress.unwrap().last = value;
            });
            let snapshot = world(30.0, 2, 4000).job(odd).build();
            let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
            let named = "a: tasks[0].attempts[0].progress.last is not in [0, 1]";
            assert_eq!(faults[0], named);
        }
        let back = sound().with(|job| {
            let progress = job.tasks[0].attempts[0].progress.as_mut();
            progress.unwrap().last = 0.0;
        });
        check(back, &["a: tasks[0].attempts[0].progress goes back"]);
        let whole = sound().with(|job| job.tasks[0].attempts[1].start_progress = 1.0);
        check(
            whole,
            &["a: tasks[0].attempts[1].start_progress is not in [0, 1)"],
        );
    }

    #[test]
    fn names_are_given_once() {
        let mut snapshot = world(30.0, 2, 4000).job(sound()).job(sound()).build();
        snapshot.nodes[1].name = snapshot.nodes[0].name.clone();
        snapshot.launch_overhead = Some(Span(-1));
        let faults: Vec<String> = validate(&snapshot).iter().map(Fault::to_string).collect();
        let expected = [
            "launch_overhead is negative",
            "nodes[1].name is given twice",
            "a: key is given twice",
        ];
        assert_eq!(faults, expected);
    }
}
