//! Rows of jobs and attempts: flow times by policy, and the attempts of one job.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::lines::{self, Line};
use super::names::PolicyKey;
use super::results::Load;
use shed_record::InputError;

/// Fields that identify a row of `run --jobs`.
pub(super) const JOB: [&str; 4] = ["job", "flowtime_s", "complete", "policy"];
/// Fields that identify a row of `run --attempts`.
pub(super) const ATTEMPT: [&str; 4] = ["job", "attempt", "launched_s", "policy"];

/// Jobs of the same trace under the same load and deadlines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    pub(super) trace: String,
    pub(super) load: Load,
    pub(super) deadline_factor: Load,
}

/// Flow times of one policy.
#[derive(Debug, Default)]
pub(super) struct FlowTimes {
    /// Of completed jobs, in seconds.
    pub(super) completed: Vec<f64>,
    /// How many jobs were never completed.
    pub(super) open: usize,
}

/// All rows of jobs.
#[derive(Debug, Default)]
pub(super) struct Jobs(pub(super) BTreeMap<Setting, BTreeMap<PolicyKey, FlowTimes>>);

impl Jobs {
    /// Takes a row.
    pub(super) fn take(&mut self, line: &Line<'_>) -> Result<(), InputError> {
        let policies = self.0.entry(setting(line)?).or_default();
        let times = policies.entry(policy(line)?).or_default();
        match line.maybe_number("flowtime_s")? {
            Some(time) if line.flag("complete")? => times.completed.push(time),
            _ => times.open += 1,
        }
        Ok(())
    }

    /// All policies that there are.
    pub(super) fn policies(&self) -> BTreeSet<PolicyKey> {
        self.0.values().flat_map(BTreeMap::keys).cloned().collect()
    }
}

fn setting(line: &Line<'_>) -> Result<Setting, InputError> {
    Ok(Setting {
        trace: line.text("trace")?.to_owned(),
        load: Load(line.maybe_number("load")?),
        deadline_factor: Load(line.maybe_number("deadline_factor")?),
    })
}

fn policy(line: &Line<'_>) -> Result<PolicyKey, InputError> {
    Ok(PolicyKey {
        policy: line.text("policy")?.to_owned(),
        order: line.text("order")?.to_owned(),
    })
}

/// Attempts of a job: clones and all. More clones are more to see.
type Count = (u64, u64);

/// Number of attempts of each job; the attempts themselves stay in their files.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    counts: BTreeMap<String, Count>,
    files: BTreeSet<PathBuf>,
}

/// One attempt, in seconds since its job arrived.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    pub(super) stage: u32,
    pub(super) task: u32,
    pub(super) number: u32,
    pub(super) kind: String,
    pub(super) launched: f64,
    pub(super) placed: Option<f64>,
    pub(super) started: Option<f64>,
    pub(super) ended: f64,
    /// The share of its task that was done when it began.
    pub(super) begin: f64,
    pub(super) outcome: String,
    pub(super) kill: Option<String>,
}

/// One job under one policy.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct History {
    pub(super) policy: PolicyKey,
    pub(super) setting: Setting,
    pub(super) seed: u64,
    /// From the arrival on.
    pub(super) deadline: Option<f64>,
    pub(super) attempts: Vec<Attempt>,
}

impl Attempts {
    /// Counts a row.
    pub(super) fn take(&mut self, path: &Path, line: &Line<'_>) -> Result<(), InputError> {
        let job = line.text("job")?;
        let is_clone = line.text("kind")? == "clone";
        if !self.counts.contains_key(job) {
            self.counts.insert(job.to_owned(), (0, 0));
        }
        if let Some((clones, all)) = self.counts.get_mut(job) {
            *clones += u64::from(is_clone);
            *all += 1;
        }
        if !self.files.contains(path) {
            self.files.insert(path.to_path_buf());
        }
        Ok(())
    }

    /// Whether there is a row.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether there is a row of that job.
    pub(super) fn has(&self, job: &str) -> bool {
        self.counts.contains_key(job)
    }

    /// The job with the most clones, then attempts; the first of several.
    pub(super) fn most_cloned(&self) -> Option<&str> {
        let mut most: Option<(Count, &str)> = None;
        for (job, &count) in &self.counts {
            if most.is_none_or(|(other, _)| count > other) {
                most = Some((count, job));
            }
        }
        most.map(|(_, job)| job)
    }

    /// Reads the files again for one job: of each policy the first run that has it.
    pub(super) fn histories(&self, job: &str) -> Result<Vec<History>, InputError> {
        let mut histories: BTreeMap<PolicyKey, History> = BTreeMap::new();
        for file in &self.files {
            lines::for_each(file, |line| {
                if !line.has(&ATTEMPT) || line.text("job")? != job {
                    return Ok(());
                }
                let (policy, setting) = (policy(line)?, setting(line)?);
                let seed = line.number("seed")? as u64;
                let arrival = line.number("arrival_s")?;
                let deadline = line.maybe_number("deadline_s")?;
                let history = histories.entry(policy.clone()).or_insert_with(|| History {
                    policy,
                    setting: setting.clone(),
                    seed,
                    deadline: deadline.map(|deadline| deadline - arrival),
                    attempts: Vec::new(),
                });
                if (history.seed, &history.setting) == (seed, &setting) {
                    history.attempts.push(attempt(line, arrival)?);
                }
                Ok(())
            })?;
        }
        let mut histories: Vec<History> = histories.into_values().collect();
        for history in &mut histories {
            let place = |attempt: &Attempt| (attempt.stage, attempt.task, attempt.number);
            history.attempts.sort_by_key(place);
        }
        Ok(histories)
    }
}

fn attempt(line: &Line<'_>, arrival: f64) -> Result<Attempt, InputError> {
    let since = |name: &str| line.number(name).map(|at| at - arrival);
    let maybe_since = |name: &str| {
        let at = line.maybe_number(name)?;
        Ok::<_, InputError>(at.map(|at| at - arrival))
    };
    Ok(Attempt {
        stage: line.number("stage")? as u32,
        task: line.number("task")? as u32,
        number: line.number("attempt")? as u32,
        kind: line.text("kind")?.to_owned(),
        launched: since("launched_s")?,
        placed: maybe_since("placed_s")?,
        started: maybe_since("started_s")?,
        ended: since("ended_s")?,
        begin: line.number("begin")?,
        outcome: line.text("outcome")?.to_owned(),
        kill: line.maybe_text("kill")?.map(str::to_owned),
    })
}
