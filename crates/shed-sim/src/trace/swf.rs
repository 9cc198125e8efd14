//! Standard Workload Format, version 2: 18 numbers per line, `;` before comments. A job of p processors becomes p
//! tasks of its run time; the model does not require that they run at the same time. Jobs whose run time or
//! processors are unknown (−1) or zero are left out.

use std::io::{BufRead, BufReader};
use std::path::Path;

use shed_core::time::{Instant, Span};

use super::stages::from_jobs;
use super::table::{open, read_error};
use super::{Demand, Stage, Trace};
use shed_record::InputError;

/// The fields of a line, by position.
const FIELDS: [&str; 18] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average cpu time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];
const JOB: usize = 0;
const SUBMIT: usize = 1;
const RUN: usize = 3;
const ALLOCATED: usize = 4;
const REQUESTED: usize = 7;
const REQUESTED_MEMORY: usize = 9;
const USED_MEMORY: usize = 6;

const PROCESSORS_MAX: f64 = 1e7;
const BYTES_PER_KIB: i64 = 1024;

pub(super) fn read(path: &Path) -> Result<Trace, InputError> {
    let mut jobs = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (at, line) in BufReader::new(open(path)?).lines().enumerate() {
        let number = at as u64 + 1;
        let line = line.map_err(|error| read_error(path, Some(number), &error))?;
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let fields = fields(path, number, line)?;
        if !seen.insert(fields[JOB].to_bits()) {
            let message = format!("job {} occurs twice", fields[JOB]);
            return Err(InputError::of_field(path, number, FIELDS[JOB], message));
        }
        if fields[SUBMIT] < 0.0 {
            let message = format!("`{}` is not a number of seconds from 0 on", fields[SUBMIT]);
            return Err(InputError::of_field(path, number, FIELDS[SUBMIT], message));
        }
        jobs.extend(job(&fields));
    }
    from_jobs(path, jobs.into_iter())
}

fn fields(path: &Path, number: u64, line: &str) -> Result<[f64; 18], InputError> {
    let mut fields = [-1.0; 18];
    let mut words = line.split_whitespace();
    for (field, name) in fields.iter_mut().zip(FIELDS) {
        let Some(word) = words.next() else {
            let message = "the line ends before this field; 18 numbers are expected";
            return Err(InputError::of_field(path, number, name, message));
        };
        let value = word.parse::<f64>().ok();
        let value = value.filter(|value| value.is_finite() && *value >= -1.0);
        *field = value.ok_or_else(|| {
            let message = format!("`{word}` is not a number from -1 (unknown) on");
            InputError::of_field(path, number, name, message)
        })?;
    }
    Ok(fields)
}

fn job(fields: &[f64; 18]) -> Option<(String, Instant, Vec<Stage>)> {
    let processors = match fields[ALLOCATED] {
        known if known > 0.0 => known,
        _ => fields[REQUESTED],
    };
    if fields[RUN] <= 0.0 || processors <= 0.0 || processors > PROCESSORS_MAX {
        return None;
    }
    let memory = match fields[REQUESTED_MEMORY] {
        known if known > 0.0 => known,
        _ => fields[USED_MEMORY],
    };
    let stage = Stage {
        demand: Demand {
            cpu_milli: Some(1000),
            memory_bytes: (memory > 0.0).then_some(memory as i64 * BYTES_PER_KIB),
        },
        durations: vec![Span::from_seconds_f64(fields[RUN]); processors as usize],
        ..Stage::default()
    };
    let arrival = Instant(Span::from_seconds_f64(fields[SUBMIT]).0);
    Some((format!("{}", fields[JOB]), arrival, vec![stage]))
}
