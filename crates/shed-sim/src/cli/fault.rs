//! The location of faults that only trace and cluster together show: the line of the trace, the flag.

use std::path::Path;

use super::CliError;
use crate::settings::Cluster;
use crate::trace::Demand;
use crate::trace::table::Table;
use crate::trace::tasks::Columns;
use crate::workload::WorkloadError;
use shed_record::InputError;

/// The same error, with the location that the user has to correct.
pub(super) fn of_workload(error: WorkloadError, trace: &Path, cluster: &Cluster) -> CliError {
    match &error {
        WorkloadError::TooLarge { job, demand } => {
            let most = most(cluster);
            let message = format!(
                "{error}; the largest cpu is {} milli-cores, the largest memory {} MiB",
                most.0,
                most.1 >> 20
            );
            let memory = demand.memory_bytes.unwrap_or(0);
            let is_memory = demand.cpu_milli.unwrap_or(0) <= most.0 && memory > most.1;
            let field = if is_memory { "memory_mib" } else { "cpu" };
            InputError {
                line: line_of(trace, job, *demand),
                field: Some(field.to_owned()),
                ..InputError::of_file(trace, message)
            }
            .into()
        }
        WorkloadError::Empty => InputError::of_file(trace, error.to_string()).into(),
        WorkloadError::NoSlots => match cluster {
            Cluster::Slots(_) => CliError::Usage(format!("--slots: {error}")),
            Cluster::Nodes(_) => CliError::Usage(format!("--nodes: {error}")),
        },
    }
}

/// The largest cpu and memory of any node.
fn most(cluster: &Cluster) -> (i64, i64) {
    let Cluster::Nodes(nodes) = cluster else {
        return (0, 0);
    };
    let of = |name: &str| nodes.iter().map(|node| node.allocatable.get(name)).max();
    (of("cpu").unwrap_or(0), of("memory").unwrap_or(0))
}

/// The first line of a job with that demand, if the trace is a file with a row per task.
fn line_of(trace: &Path, job: &str, demand: Demand) -> Option<u64> {
    let mut table = Table::open(trace).ok()?;
    let columns = Columns::of(&table).ok()?;
    while table.next().ok()? {
        let is_of_job = table.text(columns.job).ok()? == job;
        if is_of_job && columns.demand(&table).ok()? == demand {
            return Some(table.line());
        }
    }
    None
}

/// The message for a file that none of these policies reads.
pub(super) fn of_unread_file<T: AsRef<str>>(policies: &[T]) -> CliError {
    let names: Vec<String> = policies
        .iter()
        .map(|policy| format!("`{}`", policy.as_ref()))
        .collect();
    let reads = if names.len() == 1 { "reads" } else { "read" };
    CliError::Usage(format!(
        "--policy-file: {} {reads} no file; use a policy that does, or leave it out",
        names.join(" and ")
    ))
}
