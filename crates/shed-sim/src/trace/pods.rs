//! `alibaba_k8s_pods`: one row per pod. Only pods that ended are jobs. A pod that still ran at the end of the trace
//! has no observed duration, and one that never ran has none at all.

use std::path::Path;

use super::Trace;
use super::build::Builder;
use super::table::Table;
use super::tasks::Columns;
use shed_record::InputError;

/// The columns that distinguish this format from one row per task.
pub(super) const TYPICAL_FIELDS: [&str; 2] = ["phase", "qos"];

pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let columns = Columns::of(&table)?;
    let phase = table.column("phase")?;
    let mut builder = Builder::new(path);
    while table.next()? {
        match table.text(phase)? {
            "Succeeded" | "Failed" => {
                let (job, task) = (columns.job_row(&table)?, columns.task_row(&table)?);
                builder.add(table.name(columns.job)?, job, task)?;
            }
            "Running" | "Pending" => {}
            other => {
                let message =
                    format!("`{other}` is not one of Succeeded, Failed, Running, Pending");
                return Err(table.error(phase, message));
            }
        }
    }
    builder.finish()
}
