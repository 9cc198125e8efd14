//! What happened, or is made up to happen: jobs of stages of tasks, as every parser and generator
//! gives them. Times are milliseconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shed_core::time::{Instant, Span};

mod attempts;
mod build;
pub mod cut;
pub mod distributions;
mod natural;
mod pods;
pub mod recording;
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

/// Formats by the columns that tell them, the more special first.
const FORMATS: [(&[&str], Reader); 7] = [
    (&swim::TELLING, swim::read),
    (&distributions::TELLING, distributions::read),
    (&attempts::TELLING, attempts::read),
    (&tpch::TELLING, tpch::read),
    (&pods::TELLING, pods::read),
    (&stages::TELLING, stages::read),
    (&tasks::REQUIRED, tasks::read),
];

/// Reads a trace. A folder is a recording ([`recording`]). The columns of its header say which format it is; a file whose name ends with
/// `.swf` or `.swf.gz` is in the Standard Workload Format.
///
/// # Errors
/// If the file can't be read or is no trace.
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
    let message = format!(
        "no trace has these columns: {}; the CSV for users has {}",
        table.header().join(", "),
        tasks::REQUIRED.join(", ")
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
    /// Its name in the trace.
    pub id: Arc<str>,
    /// When it arrives, from the start of the trace.
    pub arrival: Instant,
    /// Its own deadline, from its arrival.
    pub deadline: Option<Span>,
    /// Its weight; 1 where the trace does not say.
    pub weight: f64,
    /// What it recurs as: the trace's column `class`, or its id without the number of the run.
    pub class: Option<Arc<str>>,
    /// How long its tasks usually take, where that is known beforehand: the median of the law that
    /// made-up times are drawn from.
    pub usual: Option<Span>,
    /// Its stages; parents have lower positions.
    pub stages: Vec<Stage>,
}

/// Tasks of a job that become available together and ask for the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stage {
    /// Positions of the stages that must be done before.
    pub parents: Vec<usize>,
    /// What an attempt asks for.
    pub demand: Demand,
    /// How long each task took, by the task's position.
    pub durations: Vec<Span>,
    /// Attempts as they happened, of tasks that had more than one or did not finish.
    pub recorded: BTreeMap<u32, Vec<Recorded>>,
}

/// What an attempt asks for; absent where the trace does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Thousandths of a core.
    pub cpu_milli: Option<i64>,
    /// Bytes.
    pub memory_bytes: Option<i64>,
}

/// An attempt that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// How long it ran.
    pub duration: Span,
    /// How it ended.
    pub ending: Ending,
}

/// How an attempt that happened ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, its work done.
    Finished,
    /// By itself, its work not done.
    Failed,
    /// Not of its own doing: it was evicted or lost.
    Evicted,
}

/// What a job called `NAME-RUN` or `NAME_RUN`, the run being a number, recurs as.
fn class_of_id(id: &str) -> Option<Arc<str>> {
    let (name, run) = id.rsplit_once(['-', '_'])?;
    let is_run = !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_digit());
    (is_run && !name.is_empty()).then(|| Arc::from(name))
}

impl Job {
    /// How many tasks it has.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.stages.iter().map(|stage| stage.durations.len()).sum()
    }

    /// Times of all its tasks.
    pub fn durations(&self) -> impl Iterator<Item = Span> + '_ {
        self.stages
            .iter()
            .flat_map(|stage| stage.durations.iter().copied())
    }

    /// How long its tasks usually take: what deadlines and shares of the median are counted from.
    #[must_use]
    pub fn usual_duration(&self) -> Span {
        self.usual.unwrap_or_else(|| self.median_duration())
    }

    /// The median of its tasks' times: the mean of the middle two if their number is even; zero
    /// without tasks.
    #[must_use]
    pub fn median_duration(&self) -> Span {
        let mut times: Vec<i64> = self.durations().map(|span| span.0).collect();
        let count = times.len();
        if count == 0 {
            return Span(0);
        }
        let (below, &mut upper, _) = times.select_nth_unstable(count / 2);
        let lower = below
            .iter()
            .copied()
            .max()
            .filter(|_| count.is_multiple_of(2));
        Span((lower.unwrap_or(upper) + upper) / 2)
    }
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
