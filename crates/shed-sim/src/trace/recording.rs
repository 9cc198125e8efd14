//! A recording of the operator, or of a simulated run, as a trace.
//!
//! Real: arrivals, deadlines, demands, and the times of first attempts that won from zero. A first attempt that was
//! stopped before it was done is extrapolated at the rate of its last report. If it reported nothing, or is not in
//! the recording, the time of the task's winner replaces its own. Without a winner, the median of the job's other
//! tasks does. A job without any known time is left out. Stages of a simulated run are jobs of their own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shed_core::ids::{JobKey, NodeName};
use shed_core::resources::Resources;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, ExpectedDuration, JobSnapshot, Node, Snapshot,
};
use shed_core::time::{Instant, Span};
use shed_record::schema::Ended;
use shed_record::{InputError, Item, Reader};

use crate::policies;

use super::natural::natural;
use super::{Demand, Job, Stage, Trace};

/// Whether the path names a recording: a folder, or one of its files.
pub fn is_one(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    path.is_dir() || name.is_some_and(|name| name.starts_with("shed-recording-"))
}

pub(super) fn read(path: &Path) -> Result<Trace, InputError> {
    let mut reader = Reader::open(path)?.knowing(policies::known());
    let mut seen = Seen::default();
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Pass { names, .. } => {
                seen.names.extend(names);
                seen.look_at(reader.snapshot());
            }
            Item::Ended(ended) => seen.end(&ended),
            Item::File(..) | Item::Gap(_) | Item::Cut => {}
        }
    }
    let trace = seen.trace();
    if trace.jobs.is_empty() {
        let message = "the recording has no attempt with a known time; at least one is expected";
        return Err(InputError::of_file(path, message));
    }
    Ok(trace)
}

/// The nodes of a recording, as of the pass that saw the most usable ones: what they have, less what
/// other pods requested on them in every pass (such as those of DaemonSets).
pub fn nodes(path: &Path) -> Result<Vec<Node>, InputError> {
    let mut reader = Reader::open(path)?.knowing(policies::known());
    let (mut most, mut others): (Vec<Node>, BTreeMap<NodeName, Resources>) = Default::default();
    while let Some(item) = reader.next_item()? {
        let Item::Pass { .. } = item else {
            continue;
        };
        let nodes = &reader.snapshot().nodes;
        for node in nodes {
            let always = others.entry(node.name.clone());
            let always = always.or_insert_with(|| node.used_by_others.clone());
            *always = always.min(&node.used_by_others);
        }
        let usable = || nodes.iter().filter(|node| node.usable);
        if usable().count() > most.len() {
            most = usable().cloned().collect();
        }
    }
    if most.is_empty() {
        let message = "the recording has no usable node; give --nodes or --slots";
        return Err(InputError::of_file(path, message));
    }
    for node in &mut most {
        if let Some(always) = others.get(&node.name) {
            node.allocatable.subtract(always);
        }
    }
    Ok(most)
}

/// The data of an attempt.
#[derive(Default, Clone, Copy)]
struct Attempt {
    is_original: bool,
    won: bool,
    started: Option<Instant>,
    finished: Option<Instant>,
    start_progress: f64,
    reported: Option<(f64, Instant)>,
}

impl Attempt {
    /// The attempt's time for the whole task.
    fn whole(&self) -> Option<Span> {
        let started = self.started?;
        let (reached, at) = match (self.won, self.finished) {
            (true, Some(finished)) => (1.0, finished),
            _ => self.reported?,
        };
        let share = reached - self.start_progress;
        let seconds = at.since(started).seconds() / share;
        (share > 0.0).then(|| Span::from_seconds_f64(seconds))
    }
}

struct SeenJob {
    submitted: Instant,
    deadline: Option<Instant>,
    tasks: u32,
    class: Option<Arc<str>>,
    tenant: Arc<str>,
    expected: Option<ExpectedDuration>,
    demand: Demand,
    /// By task and number.
    attempts: BTreeMap<(u32, u32), Attempt>,
}

#[derive(Default)]
struct Seen {
    jobs: BTreeMap<JobKey, SeenJob>,
    names: BTreeMap<JobKey, String>,
}

impl Seen {
    fn look_at(&mut self, snapshot: &Snapshot) {
        for job in &snapshot.jobs {
            let entry = self.jobs.entry(job.key.clone());
            let known = entry.or_insert_with(|| SeenJob {
                submitted: job.submitted,
                deadline: None,
                tasks: job.rules.completions,
                class: job.class.as_ref().map(|class| Arc::clone(&class.0)),
                tenant: Arc::clone(&job.tenant.0),
                expected: job.expected_duration,
                demand: demand(job),
                attempts: BTreeMap::new(),
            });
            // The clock of a job may start with its first unsuspended pass.
            known.submitted = job.submitted;
            known.deadline = job.deadline;
            for task in &job.tasks {
                for attempt in &task.attempts {
                    let id = (task.index.0, attempt.number.0);
                    known.attempts.entry(id).or_default().look_at(attempt);
                }
            }
        }
    }

    fn end(&mut self, ended: &Ended) {
        let Some(job) = self.jobs.get_mut(&ended.job) else {
            return;
        };
        let id = (ended.task.0, ended.attempt.0);
        let known = job.attempts.entry(id).or_default();
        known.is_original = ended.kind == AttemptKind::Original;
        known.won = ended.outcome.is_none();
        known.started = ended.started.or(known.started);
        known.finished = ended.finished;
        known.start_progress = ended.start_progress;
        known.reported = ended.reported.or(known.reported);
    }

    fn trace(self) -> Trace {
        let first = self.jobs.values().map(|job| job.submitted).min();
        let first = first.unwrap_or_default();
        let names = &self.names;
        let mut times_used: BTreeMap<&str, u32> = BTreeMap::new();
        for name in names.values() {
            *times_used.entry(name).or_default() += 1;
        }
        let name = |key: &JobKey| match names.get(key) {
            Some(name) if times_used.get(name.as_str()) == Some(&1) => Arc::from(name.as_str()),
            // Deleted and created again under one name.
            Some(name) => Arc::from(format!("{name} {key}")),
            None => Arc::clone(&key.0),
        };
        let jobs = self.jobs.iter();
        let jobs = jobs.filter_map(|(key, job)| job.job(name(key), first));
        let mut jobs: Vec<Job> = jobs.collect();
        jobs.sort_by(|a, b| (a.arrival, natural(&a.id)).cmp(&(b.arrival, natural(&b.id))));
        Trace { jobs }
    }
}

fn demand(job: &JobSnapshot) -> Demand {
    let amount = |name| Some(job.demand.get(name)).filter(|amount| *amount > 0);
    Demand {
        cpu_milli: amount("cpu"),
        memory_bytes: amount("memory"),
    }
}

impl Attempt {
    fn look_at(&mut self, seen: &AttemptSnapshot) {
        self.is_original = seen.kind == AttemptKind::Original;
        self.started = seen.started.or(self.started);
        self.start_progress = seen.start_progress;
        let report = seen.progress.map(|report| (report.last, report.last_at));
        self.reported = report.or(self.reported);
    }
}

impl SeenJob {
    fn job(&self, id: Arc<str>, first: Instant) -> Option<Job> {
        let known: Vec<Option<Span>> = (0..self.tasks).map(|task| self.task(task)).collect();
        let mut times: Vec<Span> = known.iter().flatten().copied().collect();
        times.sort_unstable();
        let median = *times.get(times.len() / 2)?;
        let durations = known.iter().map(|time| time.unwrap_or(median));
        Some(Job {
            class: self.class.clone(),
            tenant: Some(Arc::clone(&self.tenant)),
            usual: None,
            expected: self.expected,
            id,
            arrival: Instant(0).plus(self.submitted.since(first)),
            // A deadline that was in the past is never met.
            deadline: self
                .deadline
                .map(|at| at.since(self.submitted).max(Span(1))),
            weight: 1.0,
            stages: vec![Stage {
                demand: self.demand,
                durations: durations.collect(),
                ..Stage::default()
            }],
        })
    }

    /// The time of the task's first attempt, or else of its winner.
    fn task(&self, task: u32) -> Option<Span> {
        let attempts = self.attempts.range((task, 0)..=(task, u32::MAX));
        let attempts = attempts.map(|(_, attempt)| attempt);
        let time = |wanted: fn(&Attempt) -> bool| {
            let mut wanted = attempts.clone().filter(|attempt| wanted(attempt));
            wanted.find_map(Attempt::whole)
        };
        time(|attempt| attempt.is_original).or_else(|| time(|attempt| attempt.won))
    }
}
