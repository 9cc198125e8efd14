//! Rows → jobs: tasks get one order for any order of the rows. Tasks that become available together with the same
//! demand form a stage.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shed_core::snapshot::ExpectedDuration;
use shed_core::time::{Instant, Span};

use super::natural::natural;
use super::{Demand, Job, Recorded, Stage, Trace, class_of_id};
use shed_record::InputError;

/// One task of a row.
#[derive(Debug, Clone)]
pub(super) struct TaskRow {
    pub(super) line: u64,
    pub(super) id: Box<str>,
    pub(super) duration: Span,
    pub(super) demand: Demand,
    /// The name of the task in other tasks' `deps`: its stage, or its own id.
    pub(super) entity: Option<Box<str>>,
    /// Entities that must be done before the task.
    pub(super) deps: Vec<Box<str>>,
    pub(super) recorded: Vec<Recorded>,
}

/// The data of a row about its job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JobRow {
    pub(super) arrival: Instant,
    pub(super) deadline: Option<Span>,
    pub(super) weight: f64,
    pub(super) class: Option<Arc<str>>,
    pub(super) tenant: Option<Arc<str>>,
    pub(super) expected: Option<ExpectedDuration>,
}

struct JobRows {
    id: Arc<str>,
    line: u64,
    row: JobRow,
    tasks: Vec<TaskRow>,
}

/// Collects rows.
pub(super) struct Builder {
    path: PathBuf,
    jobs: Vec<JobRows>,
    /// For lookup only.
    positions: HashMap<Box<str>, usize>,
}

impl Builder {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            jobs: Vec::new(),
            positions: HashMap::new(),
        }
    }

    /// Adds a task of the job.
    pub(super) fn add(&mut self, job: &str, row: JobRow, task: TaskRow) -> Result<(), InputError> {
        // Rows of a job mostly follow each other.
        let last = self.jobs.len().wrapping_sub(1);
        let known = match self.jobs.last() {
            Some(rows) if &*rows.id == job => Some(last),
            _ => self.positions.get(job).copied(),
        };
        let at = known.unwrap_or_else(|| {
            self.positions.insert(Box::from(job), self.jobs.len());
            self.jobs.push(JobRows {
                id: Arc::from(job),
                line: task.line,
                row: row.clone(),
                tasks: Vec::new(),
            });
            self.jobs.len() - 1
        });
        let rows = &mut self.jobs[at];
        if rows.row != row {
            let message = format!(
                "job `{job}` has another arrival, deadline, weight, class or expected duration in line {}",
                rows.line
            );
            return Err(InputError::of_line(&self.path, task.line, message));
        }
        rows.tasks.push(task);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Trace, InputError> {
        if self.jobs.is_empty() {
            let message = "holds no job; at least one line below the header is expected";
            return Err(InputError::of_file(&self.path, message));
        }
        let path = self.path;
        let jobs: Result<Vec<Job>, InputError> =
            self.jobs.into_iter().map(|rows| job(&path, rows)).collect();
        let mut jobs = jobs?;
        jobs.sort_by(|a, b| (a.arrival, natural(&a.id)).cmp(&(b.arrival, natural(&b.id))));
        Ok(Trace { jobs })
    }
}

fn job(path: &Path, mut rows: JobRows) -> Result<Job, InputError> {
    rows.tasks
        .sort_by(|a, b| natural(&a.id).cmp(&natural(&b.id)));
    for pair in rows.tasks.windows(2) {
        if pair[0].id == pair[1].id {
            let (first, second) = (
                pair[0].line.min(pair[1].line),
                pair[0].line.max(pair[1].line),
            );
            let message = format!(
                "task `{}` of job `{}` occurs twice: also in line {first}",
                pair[0].id, rows.id
            );
            return Err(InputError::of_field(path, second, "task_id", message));
        }
    }
    let has_deps = rows.tasks.iter().any(|task| !task.deps.is_empty());
    let entities = if has_deps {
        linked(path, &rows)?
    } else {
        unlinked(&rows)
    };
    let class = rows.row.class.or_else(|| class_of_id(&rows.id));
    Ok(Job {
        class,
        tenant: rows.row.tenant,
        usual: None,
        expected: rows.row.expected,
        id: rows.id,
        arrival: rows.row.arrival,
        deadline: rows.row.deadline,
        weight: rows.row.weight,
        stages: stages(&rows.tasks, entities),
    })
}

/// Tasks with the same parents, children and demand, as positions in the list of tasks.
struct Block {
    tasks: Vec<usize>,
    parents: Vec<usize>,
}

fn unlinked(rows: &JobRows) -> Vec<Block> {
    let mut by_demand: BTreeMap<Demand, Vec<usize>> = BTreeMap::new();
    for (at, task) in rows.tasks.iter().enumerate() {
        by_demand.entry(task.demand).or_default().push(at);
    }
    let mut blocks: Vec<Block> = by_demand
        .into_values()
        .map(|tasks| Block {
            tasks,
            parents: Vec::new(),
        })
        .collect();
    blocks.sort_by_key(|block| block.tasks.first().copied());
    blocks
}

/// An entity that `deps` name: a stage or a task.
struct Entity<'a> {
    name: &'a str,
    line: u64,
    tasks: Vec<usize>,
    demand: Demand,
    parents: BTreeSet<usize>,
    children: BTreeSet<usize>,
}

fn linked(path: &Path, rows: &JobRows) -> Result<Vec<Block>, InputError> {
    let mut entities: Vec<Entity<'_>> = Vec::new();
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, task) in rows.tasks.iter().enumerate() {
        let name = task.entity.as_deref().unwrap_or(&task.id);
        let position = *positions.entry(name).or_insert(entities.len());
        if position == entities.len() {
            entities.push(Entity {
                name,
                line: task.line,
                tasks: Vec::new(),
                demand: task.demand,
                parents: BTreeSet::new(),
                children: BTreeSet::new(),
            });
        }
        let entity = &mut entities[position];
        entity.tasks.push(at);
        entity.demand = entity.demand.max(task.demand);
    }
    for task in &rows.tasks {
        let child = positions[task.entity.as_deref().unwrap_or(&task.id)];
        for dep in &task.deps {
            let Some(&parent) = positions.get(&**dep) else {
                let message = format!("`{dep}` is not a task or stage of job `{}`", rows.id);
                return Err(InputError::of_field(path, task.line, "deps", message));
            };
            entities[child].parents.insert(parent);
            entities[parent].children.insert(child);
        }
    }
    in_order(path, rows, &entities).map(|order| merge(&entities, &order))
}

/// Parents before children; among the possible next ones the one with the lowest position.
fn in_order(
    path: &Path,
    rows: &JobRows,
    entities: &[Entity<'_>],
) -> Result<Vec<usize>, InputError> {
    let mut missing: Vec<usize> = entities.iter().map(|e| e.parents.len()).collect();
    let mut ready: BTreeSet<usize> = (0..entities.len()).filter(|&e| missing[e] == 0).collect();
    let mut order = Vec::with_capacity(entities.len());
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for &child in &entities[next].children {
            missing[child] -= 1;
            if missing[child] == 0 {
                ready.insert(child);
            }
        }
    }
    if order.len() == entities.len() {
        return Ok(order);
    }
    let stuck = (0..entities.len()).filter(|&e| missing[e] > 0);
    // Not all of them lie on the cycle, but each waits for it.
    let stuck: Vec<&Entity<'_>> = stuck.map(|e| &entities[e]).collect();
    let names: Vec<&str> = stuck.iter().take(5).map(|entity| entity.name).collect();
    let message = format!(
        "the dependencies of job `{}` form a cycle among: {}",
        rows.id,
        names.join(", ")
    );
    let line = stuck.first().map_or(rows.line, |entity| entity.line);
    Err(InputError::of_field(path, line, "deps", message))
}

/// Entities with the same parents, children and demand start and count together.
fn merge(entities: &[Entity<'_>], order: &[usize]) -> Vec<Block> {
    type Key<'k> = (&'k BTreeSet<usize>, &'k BTreeSet<usize>, Demand);
    let mut block_of: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut at_block = vec![0; entities.len()];
    let mut blocks: Vec<Block> = Vec::new();
    for &at in order {
        let entity = &entities[at];
        let key = (&entity.parents, &entity.children, entity.demand);
        let block = *block_of.entry(key).or_insert(blocks.len());
        if block == blocks.len() {
            let parents: BTreeSet<usize> = entity.parents.iter().map(|&p| at_block[p]).collect();
            blocks.push(Block {
                tasks: Vec::new(),
                parents: parents.into_iter().collect(),
            });
        }
        at_block[at] = block;
        blocks[block].tasks.extend(&entity.tasks);
    }
    blocks
}

fn stages(tasks: &[TaskRow], blocks: Vec<Block>) -> Vec<Stage> {
    let stage = |mut block: Block| {
        block.tasks.sort_unstable();
        let demand = block.tasks.first().map(|&at| tasks[at].demand);
        let recorded = block.tasks.iter().enumerate();
        let recorded = recorded
            .filter(|&(_, &at)| !tasks[at].recorded.is_empty())
            .map(|(position, &at)| (position as u32, tasks[at].recorded.clone()));
        Stage {
            demand: demand.unwrap_or_default(),
            recorded: recorded.collect(),
            durations: block.tasks.iter().map(|&at| tasks[at].duration).collect(),
            parents: block.parents,
            usual: None,
        }
    };
    blocks.into_iter().map(stage).collect()
}
