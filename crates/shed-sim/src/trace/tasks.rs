//! The CSV for users, and every trace with one row per task: `job_id, arrival_s, task_id, duration_s` and optionally
//! `cpu` (cores), `memory_mib`, `deps` (with `;` between them), `stage` (then `deps` name stages, not tasks),
//! `deadline_s` (from the arrival), `weight`, `class` (the class of jobs that recur), `tenant` (the tenant that the job
//! belongs to), `expected_s` (how long the job's user expects a task to take).

use std::path::Path;
use std::sync::Arc;

use shed_core::snapshot::ExpectedDuration;
use shed_core::time::{Instant, Span};

use super::build::{Builder, JobRow, TaskRow};
use super::table::{Column, Table};
use super::{Demand, Trace};
use shed_record::InputError;

/// The columns that every such file has.
pub(super) const REQUIRED: [&str; 4] = ["job_id", "arrival_s", "task_id", "duration_s"];

/// More than any node has.
const CORES_MAX: f64 = 1e6;
const MIB_MAX: f64 = 1e9;
/// Seconds of a thousand years, the limit of the core.
const EXPECTED_MAX: f64 = 3.15576e10;
/// The limit of a Kubernetes label and of a namespace, which are the operator's source of the class and the tenant.
const NAME_LEN_MAX: usize = 63;
const BYTES_PER_MIB: f64 = 1_048_576.0;

/// Columns of a file with one row per task.
pub(crate) struct Columns {
    pub(crate) job: Column,
    pub(super) arrival: Column,
    pub(super) task: Column,
    pub(super) duration: Column,
    cpu: Option<Column>,
    memory: Option<Column>,
    pub(super) deps: Option<Column>,
    stage: Option<Column>,
    deadline: Option<Column>,
    weight: Option<Column>,
    class: Option<Column>,
    tenant: Option<Column>,
    expected: Option<Column>,
}

impl Columns {
    pub(crate) fn of(table: &Table) -> Result<Self, InputError> {
        Ok(Self {
            job: table.column("job_id")?,
            arrival: table.column("arrival_s")?,
            task: table.column("task_id")?,
            duration: table.column("duration_s")?,
            cpu: table.optional("cpu"),
            memory: table.optional_with_unit("memory_mib")?,
            deps: table.optional("deps"),
            stage: table.optional("stage"),
            deadline: table.optional_with_unit("deadline_s")?,
            weight: table.optional("weight"),
            class: table.optional("class"),
            tenant: table.optional("tenant"),
            expected: table.optional_with_unit("expected_s")?,
        })
    }

    pub(crate) fn demand(&self, table: &Table) -> Result<Demand, InputError> {
        let cores = table.maybe(self.cpu, 0.0, CORES_MAX)?;
        let mib = table.maybe(self.memory, 0.0, MIB_MAX)?;
        Ok(Demand {
            cpu_milli: cores.map(|cores| (cores * 1000.0).round() as i64),
            memory_bytes: mib.map(|mib| (mib * BYTES_PER_MIB).round() as i64),
        })
    }

    pub(super) fn job_row(&self, table: &Table) -> Result<JobRow, InputError> {
        let deadline = table.maybe(self.deadline, 0.0, 1e12)?;
        let expected = table.maybe(self.expected, 0.001, EXPECTED_MAX)?;
        // Empty if the source has no arrivals; the workload samples them.
        let arrival = table.maybe(Some(self.arrival), 0.0, 1e12)?;
        Ok(JobRow {
            arrival: Instant(Span::from_seconds_f64(arrival.unwrap_or(0.0)).0),
            deadline: deadline.map(Span::from_seconds_f64),
            weight: table.maybe(self.weight, 0.0, 1e12)?.unwrap_or(1.0),
            class: self.name_of(self.class, table)?,
            tenant: self.name_of(self.tenant, table)?,
            expected: expected.and_then(expected_of),
        })
    }

    /// The class, or the tenant.
    fn name_of(
        &self,
        column: Option<Column>,
        table: &Table,
    ) -> Result<Option<Arc<str>>, InputError> {
        let Some(column) = column else {
            return Ok(None);
        };
        let name = table.text(column)?.trim();
        if name.len() > NAME_LEN_MAX {
            let message = format!("a name has at most {NAME_LEN_MAX} bytes");
            return Err(table.error(column, message));
        }
        Ok((!name.is_empty()).then(|| Arc::from(name)))
    }

    pub(super) fn task_row(&self, table: &Table) -> Result<TaskRow, InputError> {
        let id = Box::from(table.name(self.task)?);
        let duration = table.seconds(self.duration)?;
        let demand = self.demand(table)?;
        let deps = match self.deps {
            Some(column) => table.text(column)?,
            None => "",
        };
        let deps = deps.split(';').map(str::trim).filter(|dep| !dep.is_empty());
        let entity = match self.stage {
            Some(column) => Some(Box::from(table.name(column)?)),
            None => None,
        };
        Ok(TaskRow {
            line: table.line(),
            id,
            duration,
            demand,
            entity,
            deps: deps.map(Box::from).collect(),
            recorded: Vec::new(),
        })
    }
}

fn expected_of(seconds: f64) -> Option<ExpectedDuration> {
    ExpectedDuration::new(Span::from_seconds_f64(seconds), None).ok()
}

/// Reads such a file.
pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let columns = Columns::of(&table)?;
    let mut builder = Builder::new(path);
    while table.next()? {
        let job = columns.job_row(&table)?;
        let task = columns.task_row(&table)?;
        builder.add(table.name(columns.job)?, job, task)?;
    }
    builder.finish()
}
