//! Recorded or made-up workloads: jobs of stages of tasks, as every parser and generator returns them. Times are
//! milliseconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shed_core::snapshot::ExpectedDuration;
use shed_core::time::{Instant, Span};

mod attempts;
mod build;
pub mod cut;
pub mod distributions;
mod natural;
mod pods;
pub mod recording;
pub mod repeat;
pub mod setups;
mod stages;
mod swf;
mod swim;
pub mod table;
pub(crate) mod tasks;
mod tpch;

use shed_record::InputError;
use table::Table;

type Reader = fn(&Path, Table) -> Result<Trace, InputError>;

/// Formats by the columns that identify them, the more specific first.
const FORMATS: [(&[&str], Reader); 7] = [
    (&swim::TYPICAL_FIELDS, swim::read),
    (&distributions::TYPICAL_FIELDS, distributions::read),
    (&attempts::TYPICAL_FIELDS, attempts::read),
    (&tpch::TYPICAL_FIELDS, tpch::read),
    (&pods::TYPICAL_FIELDS, pods::read),
    (&stages::TYPICAL_FIELDS, stages::read),
    (&tasks::REQUIRED, tasks::read),
];

/// Reads a trace. A folder is a recording ([`recording`]). The columns of a file's header determine its format; a
/// file whose name ends with `.swf` or `.swf.gz` is in the Standard Workload Format.
pub fn read(path: &Path) -> Result<Trace, InputError> {
    if recording::is_one(path) {
        return recording::read(path);
    }
    let name = path.to_string_lossy();
    if name.ends_with(".swf") || name.ends_with(".swf.gz") {
        return swf::read(path);
    }
    let table = Table::open(path)?;
    let tells = |columns: &&[&str]| columns.iter().all(|column| table.has(column));
    if let Some((_, read)) = FORMATS.iter().find(|(columns, _)| tells(columns)) {
        return read(path, table);
    }
    let missing = tasks::REQUIRED.iter().filter(|name| !table.has(name));
    let missing: Vec<_> = missing.copied().collect();
    let message = format!(
        "no format has these columns: {}; the CSV for users needs {} too",
        table.header().join(", "),
        missing.join(", ")
    );
    Err(InputError::of_line(path, 1, message))
}

/// Jobs in the order of their arrival.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// By arrival, then by id in natural order.
    pub jobs: Vec<Job>,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The job's name in the trace.
    pub id: Arc<str>,
    /// When the job arrives, from the start of the trace.
    pub arrival: Instant,
    /// The job's own deadline, from its arrival.
    pub deadline: Option<Span>,
    /// The job's weight; 1 if the trace has none.
    pub weight: f64,
    /// The class in which it recurs: the trace's column `class`, or its id without the number of the run.
    pub class: Option<Arc<str>>,
    /// The tenant that the job belongs to; absent if all jobs have one tenant.
    pub tenant: Option<Arc<str>>,
    /// The usual time of the job's tasks, if it is known beforehand: the median of the distribution of made-up times.
    pub usual: Option<Span>,
    /// How long the job's user expects a task to take, known at its submission.
    pub expected: Option<ExpectedDuration>,
    /// The job's stages; parents have lower positions.
    pub stages: Vec<Stage>,
}

/// Tasks of a job that become available together with the same demand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stage {
    /// Positions of the stages that must be done before this one.
    pub parents: Vec<usize>,
    /// The demand of an attempt.
    pub demand: Demand,
    /// How long each task took, by the task's position.
    pub durations: Vec<Span>,
    /// How long the stage takes usually, known to rules that know the graph; absent: the median of its tasks.
    pub usual: Option<Span>,
    /// Recorded attempts of tasks that had more than one or did not finish.
    pub recorded: BTreeMap<u32, Vec<Recorded>>,
}

/// The demand of an attempt; absent if the trace has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Thousandths of a core.
    pub cpu_milli: Option<i64>,
    /// Bytes.
    pub memory_bytes: Option<i64>,
}

/// A recorded attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The attempt's duration.
    pub duration: Span,
    /// How the attempt ended.
    pub ending: Ending,
}

/// The ending of a recorded attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself with its work done.
    Finished,
    /// It ended by itself with its work not done.
    Failed,
    /// It was evicted or lost, not caused by the attempt.
    Evicted,
}

/// The class of a job called `NAME-RUN` or `NAME_RUN`, where the run is a number.
fn class_of_id(id: &str) -> Option<Arc<str>> {
    let (name, run) = id.rsplit_once(['-', '_'])?;
    let is_run = !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_digit());
    (is_run && !name.is_empty()).then(|| Arc::from(name))
}

impl Job {
    /// The number of the job's tasks.
    pub fn tasks(&self) -> usize {
        self.stages.iter().map(|stage| stage.durations.len()).sum()
    }

    /// Times of all the job's tasks.
    pub fn durations(&self) -> impl Iterator<Item = Span> + '_ {
        self.stages
            .iter()
            .flat_map(|stage| stage.durations.iter().copied())
    }

    /// The usual time of the job's tasks: the basis of deadlines and of shares of the median.
    pub fn usual_duration(&self) -> Span {
        self.usual.unwrap_or_else(|| self.median_duration())
    }

    /// The median of the job's task times: the mean of the middle two if their number is even; zero without tasks.
    pub fn median_duration(&self) -> Span {
        median(self.durations())
    }

    /// By stage: the usual time from its begin to the end of the job, if it and the longest chain of later stages take
    /// their usual times.
    pub fn paths(&self) -> Vec<Span> {
        let times = self.stages.iter().map(|stage| stage.usual_time());
        let behind = self.longest_behind(&times.collect::<Vec<_>>(), |a, b| Span(a.0 + b.0));
        behind.into_iter().map(|[path, _]| path).collect()
    }

    /// By stage, given the length of each: that of the longest chain from it on, and that of the longest one behind it.
    pub fn longest_behind<L>(&self, lengths: &[L], sum: impl Fn(L, L) -> L) -> Vec<[L; 2]>
    where
        L: Copy + Default + PartialOrd,
    {
        let mut chains = vec![[L::default(); 2]; self.stages.len()];
        for (at, stage) in self.stages.iter().enumerate().rev() {
            // Later stages have higher positions, so the longest chain behind this one is known.
            let chain = sum(lengths[at], chains[at][1]);
            chains[at][0] = chain;
            for &parent in &stage.parents {
                if chain > chains[parent][1] {
                    chains[parent][1] = chain;
                }
            }
        }
        chains
    }
}

impl Stage {
    /// The median of the stage's task times.
    pub fn median_duration(&self) -> Span {
        median(self.durations.iter().copied())
    }

    /// The standard deviation of the stage's task times, in seconds.
    pub fn deviation(&self) -> f64 {
        let count = self.durations.len().max(1) as f64;
        let seconds = || self.durations.iter().map(|time| time.seconds());
        let mean = seconds().sum::<f64>() / count;
        let squares: f64 = seconds().map(|time| (time - mean) * (time - mean)).sum();
        (squares / count).sqrt()
    }

    /// How long the stage takes usually.
    pub fn usual_time(&self) -> Span {
        self.usual.unwrap_or_else(|| self.median_duration())
    }
}

/// The mean of the middle two if their number is even; zero without any.
fn median(times: impl Iterator<Item = Span>) -> Span {
    let mut times: Vec<i64> = times.map(|span| span.0).collect();
    let count = times.len();
    if count == 0 {
        return Span(0);
    }
    let (below, &mut upper, _) = times.select_nth_unstable(count / 2);
    let lower = below.iter().copied().max();
    let lower = lower.filter(|_| count.is_multiple_of(2));
    Span((lower.unwrap_or(upper) + upper) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_run_is_no_part_of_the_class() {
        let class = |id| class_of_id(id).map(|class| class.to_string());
        assert_eq!(class("bdb-2a_1391737661").as_deref(), Some("bdb-2a"));
        assert_eq!(class("genome-2ch-001").as_deref(), Some("genome-2ch"));
        for id in ["g17", "query-q1", "17", "-17", "nightly-", ""] {
            assert_eq!(class(id), None, "{id}");
        }
    }
}
