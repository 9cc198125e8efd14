//! `alibaba2017_stages`: one row per task group: its number of instances and their mean time. Real: sizes, means,
//! demand, arrivals. Absent: the spread within a group (all its instances take the mean; an attempt-time model may
//! spread them) and dependencies.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shed_core::time::Instant;

use super::natural::natural;
use super::table::Table;
use super::tasks::Columns;
use super::{Demand, Job, Stage, Trace};
use shed_record::InputError;

/// The columns that distinguish this format from one row per task.
pub(super) const TYPICAL_FIELDS: [&str; 1] = ["n_instances"];

const INSTANCES_MAX: f64 = 1e7;

pub(super) fn read(path: &Path, mut table: Table) -> Result<Trace, InputError> {
    let columns = Columns::of(&table)?;
    let instances = table.column("n_instances")?;
    // By job; within a job by group, so that the order of rows does not matter.
    let mut jobs: BTreeMap<String, (Instant, BTreeMap<Box<str>, Stage>)> = BTreeMap::new();
    while table.next()? {
        let (job, task) = (columns.job_row(&table)?, columns.task_row(&table)?);
        let count = table.number(instances, 0.0, INSTANCES_MAX)? as usize;
        let entry = jobs.entry(table.name(columns.job)?.to_owned());
        let (_, stages) = entry.or_insert_with(|| (job.arrival, BTreeMap::new()));
        let stage = Stage {
            demand: task.demand,
            durations: vec![task.duration; count],
            ..Stage::default()
        };
        if stages.insert(task.id.clone(), stage).is_some() {
            let message = format!("group `{}` of this job occurs twice", task.id);
            return Err(table.error(columns.task, message));
        }
    }
    from_jobs(
        path,
        jobs.into_iter().map(|(id, (arrival, stages))| {
            let stages = stages
                .into_values()
                .filter(|stage| !stage.durations.is_empty());
            (id, arrival, stages.collect())
        }),
    )
}

/// Jobs from their stages; those without tasks are left out.
pub(super) fn from_jobs(
    path: &Path,
    jobs: impl Iterator<Item = (String, Instant, Vec<Stage>)>,
) -> Result<Trace, InputError> {
    let jobs = jobs.filter(|(_, _, stages)| !stages.is_empty());
    let mut jobs: Vec<Job> = jobs
        .map(|(id, arrival, stages)| Job {
            id: Arc::from(id),
            arrival,
            deadline: None,
            weight: 1.0,
            class: None,
            usual: None,
            tenant: None,
            expected: None,
            stages,
        })
        .collect();
    if jobs.is_empty() {
        let message = "holds no job; at least one line below the header is expected";
        return Err(InputError::of_file(path, message));
    }
    jobs.sort_by(|a, b| (a.arrival, natural(&a.id)).cmp(&(b.arrival, natural(&b.id))));
    Ok(Trace { jobs })
}

/// A stage of equal tasks.
pub(super) fn equal(count: usize, duration: shed_core::time::Span, parents: &[usize]) -> Stage {
    Stage {
        parents: parents.to_vec(),
        demand: Demand::default(),
        durations: vec![duration; count],
        ..Stage::default()
    }
}
