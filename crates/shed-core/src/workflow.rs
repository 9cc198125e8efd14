//! Runs of a workflow, and what they teach: how long the stages take that begin after the end of a stage (its *tail*).
//!
//! Workflow engines create the Job of a stage when its turn comes, so shed does not know the graph. A stage must end before the
//! run's deadline by the time that the later stages take. That time is learned from earlier runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tenant_fairness::{keep_fair, keep_newest};
use crate::time::{Instant, Span};

/// The quantile of the tails that a stage leaves for the later ones.
pub const TAIL_QUANTILE: f64 = 0.8;
/// With fewer earlier runs the tail of a stage is unknown.
pub const TAILS_MIN: usize = 3;
/// Runs of a class that are kept.
pub const RUNS_MAX: usize = 20;
/// Jobs of a run that are kept.
pub const JOBS_MAX: usize = 64;
/// Workflow classes that are kept.
pub const CLASSES_MAX: usize = 200;

/// What is known of the job of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It has not ended.
    Open,
    /// All its tasks have succeeded; the last one at that instant.
    Complete(Instant),
    /// It has failed.
    Failed,
    /// It was deleted before its end.
    Gone,
}

/// A job of a run, as it is shown. It may be shown any number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageJob<'a> {
    /// The job, by a hash of its uid.
    pub job: u64,
    /// Its stage.
    pub stage: &'a str,
    /// When it was created.
    pub created: Instant,
    /// When its user says that the run began, if that was earlier.
    pub run_start: Option<Instant>,
    /// What is known of it.
    pub state: JobState,
    /// Whether its stage is the run's last one.
    pub is_last: bool,
}

/// A job of a run: its stage, when it was created, and when it was complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part(String, Instant, Option<Instant>);

/// Numbers as keys of a map can't be read in a part of a format that is flattened.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Part;

    pub(super) fn serialize<S: Serializer>(
        jobs: &BTreeMap<u64, Part>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(jobs)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<u64, Part>, D::Error> {
        let list = Vec::<(u64, Part)>::deserialize(from)?;
        Ok(list.into_iter().collect())
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When it began.
    pub start: Instant,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "as_list")]
    jobs: BTreeMap<u64, Part>,
    /// The stage whose job failed, until another job of it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// When the stage that is marked as the last one was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marked_end: Option<Instant>,
}

impl Run {
    fn new(start: Instant) -> Self {
        Self {
            start,
            jobs: BTreeMap::new(),
            failed: None,
            marked_end: None,
        }
    }

    fn see(&mut self, job: &StageJob<'_>) {
        let began = job.run_start.unwrap_or(job.created).min(job.created);
        self.start = self.start.min(began);
        let end = match job.state {
            JobState::Open => None,
            JobState::Complete(end) => Some(end),
            JobState::Failed | JobState::Gone => {
                if job.state == JobState::Failed && !self.has_succeeded_after(job) {
                    self.failed = Some(job.stage.to_owned());
                }
                self.jobs.remove(&job.job);
                return;
            }
        };
        if end.is_some() && self.failed.as_deref() == Some(job.stage) {
            self.failed = None;
        }
        if job.is_last && end.is_some() {
            self.marked_end = self.marked_end.max(end);
        }
        if self.jobs.contains_key(&job.job) || self.jobs.len() < JOBS_MAX {
            let part = Part(job.stage.to_owned(), job.created, end);
            self.jobs.insert(job.job, part);
        }
    }

    /// Whether a later job of its stage is complete. Jobs may be shown in any order.
    fn has_succeeded_after(&self, failed: &StageJob<'_>) -> bool {
        self.jobs.values().any(|Part(stage, created, end)| {
            stage == failed.stage && end.is_some() && *created >= failed.created
        })
    }

    /// Adds what an earlier leader has stored, without the jobs that were open then.
    fn restore(&mut self, stored: &Self) {
        self.start = self.start.min(stored.start);
        self.marked_end = self.marked_end.max(stored.marked_end);
        for (job, part) in &stored.jobs {
            if part.2.is_some() && self.jobs.len() < JOBS_MAX {
                self.jobs.entry(*job).or_insert_with(|| part.clone());
            }
        }
        let is_repeated = |stage: &String| {
            let mut jobs = self.jobs.values();
            jobs.any(|Part(name, .., end)| name == stage && end.is_some())
        };
        let failed = stored.failed.as_ref();
        let failed = failed.filter(|stage| !is_repeated(stage)).cloned();
        self.failed = self.failed.take().or(failed);
    }

    fn is_open(&self) -> bool {
        self.jobs.values().any(|Part(.., end)| end.is_none())
    }

    /// When its last job was complete.
    fn last_end(&self) -> Option<Instant> {
        self.jobs.values().filter_map(|Part(.., end)| *end).max()
    }

    /// When each stage began and, once all its jobs are complete, when it ended.
    fn stages(&self) -> BTreeMap<&str, (Instant, Option<Instant>)> {
        let mut stages = BTreeMap::new();
        for Part(stage, created, end) in self.jobs.values() {
            let (begin, last) = stages.entry(&**stage).or_insert((*created, *end));
            *begin = (*begin).min(*created);
            *last = last.zip(*end).map(|(last, end)| last.max(end));
        }
        stages
    }

    /// How long the stages took that began after the end of this one. Stages that run at the same time are not part of it:
    /// if the next stage waited for another one, the tail counts from the end of that one. Nothing began: no time.
    fn tail(&self, stage: &str) -> Option<Span> {
        let end = self.stages().get(stage)?.1?;
        let jobs = || self.jobs.values();
        let later = || jobs().filter(|Part(_, created, _)| *created >= end);
        let next = later().map(|Part(_, created, _)| *created).min();
        let last = later().filter_map(|Part(.., end)| *end).max();
        let (Some(next), Some(last)) = (next, last) else {
            return Some(Span(0));
        };
        let ends = jobs().filter_map(|Part(.., end)| *end);
        let awaited = ends.filter(|end| *end <= next).max();
        Some(last.since(awaited.unwrap_or(end)))
    }

    /// The longest time within the run in which it had no open job.
    fn longest_gap(&self) -> Option<Span> {
        let jobs = self.jobs.values();
        let mut jobs: Vec<(Instant, Option<Instant>)> =
            jobs.map(|Part(_, created, end)| (*created, *end)).collect();
        jobs.sort_unstable();
        let mut longest = None;
        let mut until: Option<Instant> = None;
        for (created, end) in jobs {
            if let Some(until) = until.filter(|until| *until < created) {
                longest = longest.max(Some(created.since(until)));
            }
            let Some(end) = end else { break };
            until = until.max(Some(end));
        }
        longest
    }

    fn last_activity(&self) -> Instant {
        let jobs = self.jobs.values();
        let times = jobs.map(|Part(_, created, end)| end.unwrap_or(*created));
        times.max().unwrap_or(self.start)
    }
}

/// The runs of one workflow class, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Runs(BTreeMap<String, Run>);

impl Runs {
    /// A job of a run is shown. A job that was created after the marked end of a run of that name begins another run.
    pub fn see(&mut self, run: &str, job: &StageJob<'_>) {
        let earlier = format!("{run}#");
        let mut of_name = self
            .0
            .range(earlier.clone()..)
            .take_while(|(name, _)| name.starts_with(&earlier));
        if of_name.any(|(_, known)| known.jobs.contains_key(&job.job)) {
            return;
        }
        let is_of_another = |known: &Run| {
            let is_later = known.marked_end.is_some_and(|end| end < job.created);
            is_later && !known.jobs.contains_key(&job.job)
        };
        if self.0.get(run).is_some_and(is_of_another)
            && let Some(ended) = self.0.remove(run)
        {
            self.0.insert(format!("{earlier}{}", ended.start.0), ended);
        }
        let begins = !matches!(job.state, JobState::Failed | JobState::Gone);
        match self.0.get_mut(run) {
            Some(known) => known.see(job),
            None if begins => {
                let new = self.0.entry(run.to_owned());
                new.or_insert_with(|| Run::new(job.created)).see(job);
            }
            None => {}
        }
        self.keep_newest();
    }

    fn keep_newest(&mut self) {
        // An open run keeps its place before one that has ended: its later stages need its start.
        keep_newest(&mut self.0, RUNS_MAX, |run| {
            (run.is_open(), run.last_activity())
        });
    }

    /// Adds a run that an earlier leader has stored.
    fn restore(&mut self, name: &str, stored: &Run) {
        let is_earlier = |known: &Run| stored.marked_end.is_some_and(|end| end < known.start);
        let place = match self.0.get(name).is_some_and(is_earlier) {
            true => format!("{name}#{}", stored.start.0),
            false => name.to_owned(),
        };
        let own = self.0.entry(place);
        own.or_insert_with(|| Run::new(stored.start))
            .restore(stored);
    }

    /// When a run began; absent if none of its jobs is known.
    pub fn start(&self, run: &str) -> Option<Instant> {
        self.0.get(run).map(|run| run.start)
    }

    /// When the run ended, as far as that is known at `now`. It has ended if its last stage is marked and complete, or if it
    /// has had no open job for longer than any run of the class had between two. Where the class has shown no such gap,
    /// a run has ended once a later one has begun.
    fn end(&self, run: &Run, gap: Option<Span>, now: Instant) -> Option<Instant> {
        if run.is_open() || run.failed.is_some() {
            return None;
        }
        let end = run.last_end()?;
        let is_quiet = match gap {
            Some(gap) => now.since(end) > gap,
            None => self.0.values().any(|other| other.start > end),
        };
        (run.marked_end.is_some() || is_quiet).then_some(end)
    }

    /// The runs that have ended, with their ends, but for the run of that name.
    fn ended<'a>(&'a self, but: &str, now: Instant) -> impl Iterator<Item = (&'a Run, Instant)> {
        let gap = self.0.values().filter_map(Run::longest_gap).max();
        let others = self.0.iter().filter(move |(name, _)| *name != but);
        others.filter_map(move |(_, run)| Some((run, self.end(run, gap, now)?)))
    }

    /// The tails of a stage in other runs than `run`, ascending.
    pub fn tails(&self, run: &str, stage: &str, now: Instant) -> Vec<Span> {
        let ended = self.ended(run, now);
        let mut tails: Vec<Span> = ended.filter_map(|(run, _)| run.tail(stage)).collect();
        tails.sort_unstable();
        tails
    }

    /// The times of the stages of a run so far. Those without a name, and those that too few other runs had, are left out.
    pub fn stage_times(&self, run: &str, now: Instant) -> Vec<StageTime<'_>> {
        let Some(known) = self.0.get(run) else {
            return Vec::new();
        };
        let mut earlier: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for (ended, _) in self.ended(run, now) {
            for (stage, (begin, end)) in ended.stages() {
                let took = end.map(|end| end.since(begin));
                earlier.entry(stage).or_default().extend(took);
            }
        }
        let mut usual = |stage| {
            let times = earlier.get_mut(stage)?;
            times.sort_unstable();
            median(times)
        };
        let stages = known.stages().into_iter();
        let named = stages.filter(|(stage, _)| !stage.is_empty());
        let times = named.filter_map(|(stage, (begin, end))| {
            Some(StageTime {
                stage,
                begin,
                end,
                usual: usual(stage)?,
            })
        });
        times.collect()
    }
}

/// The time of a stage of a run, and of the same stage in other runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime<'a> {
    /// The stage.
    pub stage: &'a str,
    /// When it began.
    pub begin: Instant,
    /// When it ended; absent while a job of it is open.
    pub end: Option<Instant>,
    /// How long it took in other runs: the median.
    pub usual: Span,
}

/// The tail that a stage leaves for the later ones: the quantile [`TAIL_QUANTILE`] of its `tails`, which are ascending;
/// absent if they are fewer than [`TAILS_MIN`].
pub fn reserved_tail(tails: &[Span]) -> Option<Span> {
    quantile(tails, TAIL_QUANTILE)
}

/// The median of times of earlier runs, which are ascending; absent if they are fewer than [`TAILS_MIN`].
pub fn median(times: &[Span]) -> Option<Span> {
    quantile(times, 0.5)
}

/// By nearest rank.
fn quantile(times: &[Span], quantile: f64) -> Option<Span> {
    let rank = (times.len() as f64 * quantile).ceil() as usize;
    let time = times.get(rank.checked_sub(1)?).copied();
    time.filter(|_| times.len() >= TAILS_MIN)
}

/// The probability that the run is complete before its deadline: the mean over the stage's `tails` of the probability
/// `in_time` that the stage ends by that time before it; absent if they are fewer than [`TAILS_MIN`].
pub fn pocd_of_run(
    deadline: Instant,
    tails: &[Span],
    in_time: impl Fn(Instant) -> f64,
) -> Option<f64> {
    let each = tails
        .iter()
        .map(|tail| in_time(deadline.plus(Span(-tail.0))));
    (tails.len() >= TAILS_MIN).then(|| each.sum::<f64>() / tails.len() as f64)
}

/// The runs of all workflow classes (`namespace/class`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Workflows(BTreeMap<String, Runs>);

impl Workflows {
    /// A job of a run of the class is shown.
    pub fn see(&mut self, class: &str, run: &str, job: &StageJob<'_>) {
        let begins = !matches!(job.state, JobState::Failed | JobState::Gone);
        if begins || self.0.contains_key(class) {
            self.0.entry(class.to_owned()).or_default().see(run, job);
            self.keep_most(CLASSES_MAX);
        }
    }

    /// Adds what an earlier leader has stored. Jobs that were open then are left out: the watch shows those that still
    /// exist, before or after this.
    pub fn restore(&mut self, stored: &Self) {
        for (class, Runs(stored)) in &stored.0 {
            let own = self.0.entry(class.clone()).or_default();
            stored.iter().for_each(|(name, run)| own.restore(name, run));
            own.keep_newest();
        }
        self.keep_most(CLASSES_MAX);
    }

    /// The runs of a class.
    pub fn runs(&self, class: &str) -> Option<&Runs> {
        self.0.get(class)
    }

    /// Whether no run is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is within its bounds.
    pub fn is_sound(&self) -> bool {
        let is_sound = |run: &Run| run.jobs.len() <= JOBS_MAX;
        self.len() <= CLASSES_MAX
            && self
                .0
                .values()
                .all(|Runs(runs)| runs.len() <= RUNS_MAX && runs.values().all(is_sound))
    }

    /// Keeps this share of the classes: the least recently used ones of the namespaces with the most are dropped.
    pub fn keep(&mut self, share: f64) {
        self.keep_most((self.len() as f64 * share) as usize);
    }

    fn keep_most(&mut self, max: usize) {
        let namespace = |class: &str| class.find('/').unwrap_or(0);
        keep_fair(
            &mut self.0,
            max,
            |class, _| &class[..namespace(class)],
            |Runs(runs)| runs.values().map(Run::last_activity).max(),
        );
    }
}

#[cfg(test)]
mod tests;
