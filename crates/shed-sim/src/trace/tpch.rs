//! `tpch_decima`: measured Spark task times of TPC-H queries, each query run with several numbers of executors. One
//! number of executors makes one set of whole jobs. The trace has no arrivals: they are sampled.

use std::path::Path;

use super::Trace;
use super::build::Builder;
use super::table::Table;
use super::tasks::Columns;
use shed_record::InputError;

/// The columns that distinguish this format from one row per task.
pub(super) const TYPICAL_FIELDS: [&str; 2] = ["executors", "wave"];

/// The middle value of 10, 50 and 100.
const EXECUTORS: &str = "50";

pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let columns = Columns::of(&table)?;
    let (executors, wave) = (table.column("executors")?, table.column("wave")?);
    let mut builder = Builder::new(path);
    while table.next()? {
        if table.text(executors)? != EXECUTORS {
            continue;
        }
        let (job, mut task) = (columns.job_row(&table)?, columns.task_row(&table)?);
        // Numbered within its wave.
        task.id = format!("{}.{}", task.id, table.name(wave)?).into();
        builder.add(table.name(columns.job)?, job, task)?;
    }
    builder.finish()
}
