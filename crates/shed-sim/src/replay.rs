//! Decides the passes of a recording again. Under their own policy the plans are compared bit by bit; under another
//! one the result shows the decisions of that policy.
//!
//! The second is one step into a counterfactual: each pass uses facts that followed from the recorded decisions, not
//! from those of the other policy. A clone that the other policy requests is never launched, so it is requested again
//! in the next pass. Such a request counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use shed_core::ids::{AttemptNumber, JobKey, TaskIndex};
use shed_core::plan::{Move, Plan};
use shed_core::policy::Policy;
use shed_core::snapshot::{AttemptKind, Snapshot};
use shed_record::schema::{Decided, Ended, Header};
use shed_record::{InputError, Item, Reader, Replayer};

use crate::policies;

/// The results of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Files that were read.
    pub files: u64,
    /// Passes that were decided again.
    pub passes: u64,
    /// Passes that gave the same plan, bit by bit.
    pub equal: u64,
    /// Passes that the recording lost.
    pub lost: u64,
    /// Files that end within a line.
    pub cut: Vec<String>,
    /// Files that continue another one, where the planner's memory was compared.
    pub memories: u64,
    /// The first difference.
    pub first_difference: Option<Difference>,
    /// The policy of the last file.
    pub policy: Option<Policy>,
    /// Jobs, in the order of their appearance.
    pub jobs: Vec<JobTally>,
}

/// The location of the first difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// File and line.
    pub at: String,
    /// The field and both values.
    pub what: String,
}

/// The numbers of decisions for a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// First attempts.
    pub originals: u64,
    /// Clones.
    pub clones: u64,
    /// Retries.
    pub retries: u64,
    /// Kills that the planner decided.
    pub kills: u64,
}

/// The recorded and the new decisions for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTally {
    /// Its name, or its key if the recording has none.
    pub name: String,
    /// Its tasks.
    pub tasks: u32,
    /// As recorded.
    pub recorded: Counts,
    /// As decided again.
    pub again: Counts,
}

/// Replays a recording, under the policy that `choose` returns for each file's own.
pub fn replay(path: &Path, choose: impl Fn(&Policy) -> Policy) -> Result<Replayed, InputError> {
    let mut reader = Reader::open(path)?.knowing(policies::known());
    let mut run = Run::default();
    while let Some(item) = reader.next_item()? {
        match item {
            Item::File(header, policy) => {
                let chosen = choose(&policy);
                run.begin(&reader, *header, *policy, chosen);
            }
            Item::Pass {
                number,
                changed,
                decided,
                plan,
                names,
            } => {
                run.next = number + 1;
                run.names.extend(names);
                run.pass(&reader, changed.as_deref(), decided, &plan);
            }
            Item::Ended(ended) => run.tally.ended(&ended),
            Item::Gap(gap) => {
                run.found.lost += gap.passes;
                if run.is_same {
                    run.replayer.skip(*gap);
                }
            }
            Item::Cut => run.found.cut.push(place(&reader)),
        }
    }
    Ok(run.finish())
}

/// The plan without what the recording leaves out, and what its writer did not report yet.
fn without_news(plan: &Plan, recorded: &Plan) -> Plan {
    let mut plan = plan.clone();
    for (job, recorded) in plan.report.jobs.iter_mut().zip(&recorded.report.jobs) {
        job.risk = job.risk.take().filter(|_| recorded.risk.is_some());
        let expected = job.pocd_expected.take();
        job.pocd_expected = expected.filter(|_| recorded.pocd_expected.is_some());
        if recorded.ends.is_empty() {
            job.ends.clear();
        }
        for (clone, recorded) in job.clones.iter_mut().zip(&recorded.clones) {
            clone.trade = clone.trade.take().filter(|_| recorded.trade.is_some());
        }
    }
    plan
}

fn place(reader: &Reader) -> String {
    let (file, line) = reader.position();
    format!("{}:{line}", file.display())
}

#[derive(Default)]
struct Run {
    found: Replayed,
    tally: Tally,
    names: BTreeMap<JobKey, String>,
    replayer: Replayer,
    policy: Policy,
    /// The chosen policy is the recorded one.
    is_same: bool,
    /// The run that the last file belongs to, and the number of the pass after its last.
    run: Option<shed_core::time::Instant>,
    next: u64,
}

impl Run {
    fn begin(&mut self, reader: &Reader, header: Header, recorded: Policy, chosen: Policy) {
        self.found.files += 1;
        self.found.lost += header.lost;
        let goes_on =
            self.run == Some(header.run) && self.next == header.first_pass && header.lost == 0;
        self.is_same = chosen == recorded;
        if goes_on && self.is_same {
            self.found.memories += 1;
            let memory = self.replayer.memory().clone();
            self.compare(reader, "header.memory", &header.memory, &memory);
        }
        // Another policy continues with its own memory.
        if !goes_on || self.is_same {
            self.replayer = Replayer::new(header.memory);
        }
        self.run = Some(header.run);
        self.next = header.first_pass;
        self.policy = chosen;
        self.found.policy = Some(recorded);
    }

    fn pass(
        &mut self,
        reader: &Reader,
        changed: Option<&[bool]>,
        decided: Decided,
        recorded: &Plan,
    ) {
        let snapshot = reader.snapshot();
        let way = if self.is_same {
            decided
        } else {
            Decided::Policy
        };
        let plan = self.replayer.pass(snapshot, &self.policy, changed, way);
        self.found.passes += 1;
        if self.compare(reader, "plan", recorded, &without_news(&plan, recorded)) {
            self.found.equal += 1;
        }
        self.tally.pass(snapshot, recorded, &plan);
    }

    /// Whether both are written identically: floats are written without loss of any bit.
    fn compare<T: serde::Serialize>(
        &mut self,
        reader: &Reader,
        what: &str,
        recorded: &T,
        again: &T,
    ) -> bool {
        let text = |value: &T| serde_json::to_string(value).unwrap_or_default();
        let (recorded, again) = (text(recorded), text(again));
        if recorded == again {
            return true;
        }
        if self.found.first_difference.is_none() {
            let value = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
            self.found.first_difference = Some(Difference {
                at: place(reader),
                what: difference(what, &value(&recorded), &value(&again)),
            });
        }
        false
    }

    fn finish(mut self) -> Replayed {
        let names = &self.names;
        let jobs = self.tally.order.iter().filter_map(|key| {
            let mut job = self.tally.jobs.get(key)?.clone();
            job.name = names.get(key).map_or_else(|| key.to_string(), Clone::clone);
            Some(job)
        });
        self.found.jobs = jobs.collect();
        self.found
    }
}

/// The first field in which two values differ, with both values.
fn difference(at: &str, recorded: &Value, again: &Value) -> String {
    match (recorded, again) {
        (Value::Object(a), Value::Object(b)) => {
            let differs = a.iter().find(|(name, value)| b.get(*name) != Some(value));
            if let Some((name, value)) = differs {
                let other = b.get(name).unwrap_or(&Value::Null);
                return difference(&format!("{at}.{name}"), value, other);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let differs = a.iter().zip(b).position(|(a, b)| a != b);
            if let Some(place) = differs {
                return difference(&format!("{at}[{place}]"), &a[place], &b[place]);
            }
            let (count, other) = (a.len(), b.len());
            return format!("{at}: {count} recorded, {other} decided again");
        }
        _ => {}
    }
    format!("{at}: {recorded} recorded, {again} decided again")
}

/// Decisions by job, where each request counts once.
#[derive(Default)]
struct Tally {
    order: Vec<JobKey>,
    jobs: BTreeMap<JobKey, JobTally>,
    /// The highest attempt number of the task so far.
    highest: BTreeMap<(JobKey, TaskIndex), u32>,
    recorded: BTreeSet<Wish>,
    again: BTreeSet<Wish>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Launch(JobKey, TaskIndex, u32),
    Kill(JobKey, TaskIndex, AttemptNumber),
}

impl Tally {
    fn ended(&mut self, ended: &Ended) {
        self.note_number(&ended.job, ended.task, ended.attempt);
    }

    fn note_number(&mut self, job: &JobKey, task: TaskIndex, number: AttemptNumber) {
        let highest = self.highest.entry((job.clone(), task)).or_default();
        *highest = number.0.max(*highest);
    }

    fn pass(&mut self, snapshot: &Snapshot, recorded: &Plan, again: &Plan) {
        for job in &snapshot.jobs {
            if !self.jobs.contains_key(&job.key) {
                self.order.push(job.key.clone());
                let tally = JobTally {
                    name: String::new(),
                    tasks: job.rules.completions,
                    recorded: Counts::default(),
                    again: Counts::default(),
                };
                self.jobs.insert(job.key.clone(), tally);
            }
            for task in &job.tasks {
                if let Some(last) = task.attempts.last() {
                    self.note_number(&job.key, task.index, last.number);
                }
            }
        }
        let mut seen = std::mem::take(&mut self.recorded);
        self.count(recorded, &mut seen, |tally| &mut tally.recorded);
        self.recorded = seen;
        let mut seen = std::mem::take(&mut self.again);
        self.count(again, &mut seen, |tally| &mut tally.again);
        self.again = seen;
    }

    fn count(
        &mut self,
        plan: &Plan,
        seen: &mut BTreeSet<Wish>,
        side: fn(&mut JobTally) -> &mut Counts,
    ) {
        // Launches of a task within this plan, in addition to those of earlier passes.
        let mut here: BTreeMap<(JobKey, TaskIndex), u32> = BTreeMap::new();
        for planned in &plan.actions {
            let Some(tally) = self.jobs.get_mut(&planned.job) else {
                continue;
            };
            let counts = side(tally);
            let (wish, counter) = match &planned.action {
                Move::Launch(launch) => {
                    let key = (planned.job.clone(), launch.task);
                    let known = self.highest.get(&key).map_or(0, |number| number + 1);
                    let more = here.entry(key).or_default();
                    let number = known + *more;
                    *more += 1;
                    let counter = match launch.kind {
                        AttemptKind::Original => &mut counts.originals,
                        AttemptKind::Clone => &mut counts.clones,
                        AttemptKind::Retry => &mut counts.retries,
                    };
                    (
                        Wish::Launch(planned.job.clone(), launch.task, number),
                        counter,
                    )
                }
                Move::Kill(kill) => {
                    let wish = Wish::Kill(planned.job.clone(), kill.task, kill.attempt);
                    (wish, &mut counts.kills)
                }
            };
            if seen.insert(wish) {
                *counter += 1;
            }
        }
    }
}
