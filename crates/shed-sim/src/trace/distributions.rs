//! `alibaba2018_distributions`: exact counts of the values of quantities in the trace of 2018. Real: each
//! distribution by itself. Sampled: their combination.
//!
//! A job has `task_num` stages in as many levels as `cpl` gives for that number. Each level has one stage, the other
//! stages are on the levels that `level` gives for that depth, and each has one parent in the level above. A stage
//! has `instance_num` tasks, whose times are independent samples of `instance_duration`: the counts do not contain
//! their correlation.

use std::collections::BTreeMap;
use std::path::Path;

use shed_core::time::{Instant, Span};

use super::stages::from_jobs;
use super::table::Table;
use super::{Demand, Stage, Trace};
use crate::random::{Purpose, Stream};
use shed_record::InputError;

/// The columns that distinguish this format from others.
pub(super) const TYPICAL_FIELDS: [&str; 4] = ["quantity", "given", "value", "count"];

/// The number of sampled jobs.
const JOBS: u64 = 2000;

/// Machines of that trace have 96 cores and their memory is 100; a nominal 512 GiB.
const BYTES_PER_MEMORY_UNIT: f64 = 512.0 * 1_073_741_824.0 / 100.0;

/// A quantity and its condition.
type Which = (String, String);

/// Values with the cumulative counts of their occurrences.
type Counts = Vec<(f64, f64)>;

struct Distributions(BTreeMap<Which, Counts>);

pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let [quantity, given, value, count] = [
        table.column("quantity")?,
        table.column("given")?,
        table.column("value")?,
        table.column("count")?,
    ];
    let mut all: BTreeMap<Which, Counts> = BTreeMap::new();
    while table.next()? {
        let which = (
            table.name(quantity)?.to_owned(),
            table.text(given)?.to_owned(),
        );
        let value = table.number(value, 0.0, 1e12)?;
        let count = table.number(count, 0.0, 1e15)?;
        let counts = all.entry(which).or_default();
        let before = counts.last().map_or(0.0, |last| last.1);
        counts.push((value, before + count));
    }
    for needed in [
        "job_interval",
        "task_num",
        "instance_num",
        "instance_duration",
    ] {
        if !all.contains_key(&(needed.to_owned(), String::new())) {
            let message = format!("has no line for the quantity `{needed}`");
            return Err(InputError::of_file(path, message));
        }
    }
    generate(path, &Distributions(all))
}

fn generate(path: &Path, all: &Distributions) -> Result<Trace, InputError> {
    let mut arrival = 0.0;
    let mut jobs = Vec::new();
    for number in 0..JOBS {
        let mut stream = Stream::new(0, Purpose::Workload, [number, 0, 0]);
        let at = Instant(Span::from_seconds_f64(arrival).0);
        jobs.push((format!("a{number}"), at, all.stages(&mut stream)));
        arrival += all.draw(&mut stream, "job_interval", "").unwrap_or(1.0);
    }
    from_jobs(path, jobs.into_iter())
}

impl Distributions {
    fn draw(&self, stream: &mut Stream, quantity: &str, given: &str) -> Option<f64> {
        let counts = self.0.get(&(quantity.to_owned(), given.to_owned()))?;
        let total = counts.last()?.1;
        let at = stream.unit() * total;
        let position = counts.partition_point(|(_, below)| *below <= at);
        counts.get(position).map(|(value, _)| *value)
    }

    fn stages(&self, stream: &mut Stream) -> Vec<Stage> {
        let count = self.draw(stream, "task_num", "").unwrap_or(1.0).max(1.0);
        let depth = self.draw(stream, "cpl", &count.to_string());
        let depth = depth.unwrap_or(1.0).clamp(1.0, count) as usize;
        let mut levels: Vec<usize> = (0..depth).collect();
        for _ in depth..count as usize {
            let level = self.draw(stream, "level", &depth.to_string());
            levels.push((level.unwrap_or(1.0).max(1.0) as usize - 1).min(depth - 1));
        }
        levels.sort_unstable();
        let mut stages = Vec::with_capacity(levels.len());
        for &level in &levels {
            let above: Vec<usize> = (0..stages.len())
                .filter(|&other| level > 0 && levels[other] == level - 1)
                .collect();
            let parent = above.get(stream.index(above.len())).copied();
            stages.push(self.stage(stream, parent));
        }
        stages
    }

    fn stage(&self, stream: &mut Stream, parent: Option<usize>) -> Stage {
        let count = self
            .draw(stream, "instance_num", "")
            .unwrap_or(1.0)
            .max(1.0);
        let cpu = self.draw(stream, "task_cpu", "");
        let memory = self.draw(stream, "task_mem", "");
        let durations = (0..count as usize).map(|_| {
            let seconds = self.draw(stream, "instance_duration", "");
            Span::from_seconds_f64(seconds.unwrap_or(1.0).max(1.0))
        });
        let durations = durations.collect();
        Stage {
            parents: parent.into_iter().collect(),
            demand: Demand {
                // 100 is one core.
                cpu_milli: cpu.map(|cpu| (cpu * 10.0) as i64),
                memory_bytes: memory.map(|share| (share * BYTES_PER_MEMORY_UNIT) as i64),
            },
            durations,
            ..Stage::default()
        }
    }
}
