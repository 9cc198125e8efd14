//! `fb2009_swim` and `fb2010_swim`: arrivals and bytes of Facebook jobs. Real: arrivals and bytes. Derived: a map
//! task per 128 MiB of input and a reduce task per GiB shuffled (at least one if anything is shuffled), after all
//! maps. Made up: times, as bytes at 10 MiB/s and at least a second; an attempt-time model may spread them.

use std::path::Path;

use shed_core::time::{Instant, Span};

use super::Trace;
use super::stages::{equal, from_jobs};
use super::table::{Column, Table};
use shed_record::InputError;

/// The columns that distinguish this format from others.
pub(super) const TYPICAL_FIELDS: [&str; 3] = ["input_bytes", "n_map_derived", "n_reduce_derived"];

const BYTES_PER_SECOND: f64 = 10.0 * 1_048_576.0;
const TASKS_MAX: f64 = 1e7;

pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let (id, arrival) = (table.column("job_id")?, table.column("arrival_s")?);
    let maps = (table.column("n_map_derived")?, table.column("input_bytes")?);
    let reduces = (
        table.column("n_reduce_derived")?,
        table.column("shuffle_bytes")?,
    );
    let mut jobs = Vec::new();
    while table.next()? {
        let (maps, reduces) = (tasks(&table, maps)?, tasks(&table, reduces)?);
        let mut stages = Vec::new();
        for (count, duration) in [maps, reduces] {
            if count > 0 {
                let parents: Vec<usize> = (0..stages.len()).collect();
                stages.push(equal(count, duration, &parents));
            }
        }
        let arrival = Instant(table.seconds(arrival)?.0);
        jobs.push((table.name(id)?.to_owned(), arrival, stages));
    }
    from_jobs(path, jobs.into_iter())
}

fn tasks(table: &Table, (count, bytes): (Column, Column)) -> Result<(usize, Span), InputError> {
    let count = table.number(count, 0.0, TASKS_MAX)?;
    let seconds = table.number(bytes, 0.0, 1e18)? / count.max(1.0) / BYTES_PER_SECOND;
    Ok((count as usize, Span::from_seconds_f64(seconds.max(1.0))))
}
