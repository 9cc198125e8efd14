//! Snapshots as what changed since the one before, and back.

use std::collections::BTreeMap;

use shed_core::ids::{JobKey, TaskIndex};
use shed_core::snapshot::{JobSnapshot, Node, Snapshot, TaskSnapshot};

use crate::schema::{JobLine, PassLine};

/// The last state that was written or read.
#[derive(Default)]
pub(crate) struct Last {
    nodes: Vec<Node>,
    jobs: BTreeMap<JobKey, Split>,
}

/// A job apart from its tasks, which are most of it.
struct Split {
    head: JobSnapshot,
    tasks: Vec<TaskSnapshot>,
}

impl Split {
    fn of(mut job: JobSnapshot) -> Self {
        let tasks = std::mem::take(&mut job.tasks);
        Self { head: job, tasks }
    }

    fn task(&self, index: TaskIndex) -> Option<&TaskSnapshot> {
        let position = self.tasks.binary_search_by_key(&index, |task| task.index);
        self.tasks.get(position.ok()?)
    }

    /// The difference from `before`.
    fn changes(&self, before: Option<&Self>) -> JobLine {
        let same_head = before.is_some_and(|before| {
            let [was, is] = [&before.head, &self.head].map(head_bits);
            before.head == self.head && was == is
        });
        let is_new = |task: &&TaskSnapshot| {
            let known = before.and_then(|before| before.task(task.index));
            known.is_none_or(|known| !is_same(known, task))
        };
        let known = before.iter().flat_map(|before| &before.tasks);
        let gone = known.map(|task| task.index);
        JobLine {
            key: self.head.key.clone(),
            head: (!same_head).then(|| Box::new(self.head.clone())),
            tasks: self.tasks.iter().filter(is_new).cloned().collect(),
            gone: gone.filter(|&index| self.task(index).is_none()).collect(),
        }
    }
}

/// The bits of the floats of a job without its tasks.
fn head_bits(head: &JobSnapshot) -> [Option<u64>; 2] {
    let rules = &head.rules;
    [rules.target_pocd, rules.clone_budget].map(|share| share.map(f64::to_bits))
}

/// Whether the tasks are equal to the bit. `==` takes the two zeros for one.
fn is_same(before: &TaskSnapshot, task: &TaskSnapshot) -> bool {
    before == task && float_bits(before).eq(float_bits(task))
}

/// The bits of all floats of the task, in a fixed order.
fn float_bits(task: &TaskSnapshot) -> impl Iterator<Item = u64> + '_ {
    let of_attempts = task.attempts.iter().flat_map(|attempt| {
        let progress = attempt.progress.iter();
        let reported = progress.flat_map(|progress| [progress.first, progress.last]);
        let checkpoint = attempt.checkpoint.iter().map(|point| point.progress);
        reported.chain(checkpoint).chain([attempt.start_progress])
    });
    let resumed = task.resume_point.iter().map(|point| point.progress);
    of_attempts.chain(resumed).map(f64::to_bits)
}

/// The difference from the last snapshot.
pub(crate) struct Changes {
    pub(crate) node_count: usize,
    pub(crate) nodes: Vec<(usize, Node)>,
    pub(crate) jobs: Vec<JobLine>,
}

impl Last {
    /// The changes to `snapshot`, which is the last one from now on.
    pub(crate) fn advance(&mut self, snapshot: Snapshot) -> Changes {
        let positions = snapshot.nodes.iter().enumerate();
        let changed = positions.filter(|&(at, node)| self.nodes.get(at) != Some(node));
        let nodes = changed.map(|(at, node)| (at, node.clone())).collect();
        let jobs: Vec<Split> = snapshot.jobs.into_iter().map(Split::of).collect();
        let lines = jobs.iter();
        let lines = lines.map(|job| job.changes(self.jobs.get(&job.head.key)));
        let changes = Changes {
            node_count: snapshot.nodes.len(),
            nodes,
            jobs: lines.collect(),
        };
        self.nodes = snapshot.nodes;
        self.jobs = jobs
            .into_iter()
            .map(|job| (job.head.key.clone(), job))
            .collect();
        changes
    }
}

/// A change that fits no snapshot: its field, and what is wrong with it.
pub(crate) type Misfit = (String, String);

/// Makes `snapshot` what the line says that it had become.
pub(crate) fn apply(snapshot: &mut Snapshot, line: &mut PassLine) -> Result<(), Misfit> {
    snapshot.now = line.now;
    snapshot.launch_overhead = line.launch_overhead;
    snapshot.launch_overheads = std::mem::take(&mut line.launch_overheads);
    snapshot.weights = std::mem::take(&mut line.weights);
    snapshot.nodes.truncate(line.node_count);
    for (at, node) in std::mem::take(&mut line.nodes) {
        let known = snapshot.nodes.len();
        match snapshot.nodes.get_mut(at) {
            Some(known) => *known = node,
            None if at == known => snapshot.nodes.push(node),
            None => return Err(("nodes".into(), format!("node {at} follows no other"))),
        }
    }
    if snapshot.nodes.len() != line.node_count {
        let found = snapshot.nodes.len();
        return Err(("node_count".into(), format!("{found} nodes are known")));
    }
    let before = std::mem::take(&mut snapshot.jobs);
    let mut before: BTreeMap<JobKey, JobSnapshot> = before
        .into_iter()
        .map(|job| (job.key.clone(), job))
        .collect();
    for (at, change) in std::mem::take(&mut line.jobs).into_iter().enumerate() {
        let known = before.remove(&change.key);
        let job = changed(known, change).map_err(|key| {
            let message = format!("job {key} is new and needs one");
            (format!("jobs[{at}].head"), message)
        })?;
        snapshot.jobs.push(job);
    }
    Ok(())
}

/// The job after a change; its key if there is nothing to change.
fn changed(known: Option<JobSnapshot>, change: JobLine) -> Result<JobSnapshot, JobKey> {
    let JobLine {
        key,
        head,
        tasks,
        gone,
    } = change;
    let (mut job, old_tasks) = match (known, head) {
        (Some(known), Some(head)) => (*head, known.tasks),
        (None, Some(head)) => (*head, Vec::new()),
        (Some(mut known), None) => {
            let tasks = std::mem::take(&mut known.tasks);
            (known, tasks)
        }
        (None, None) => return Err(key),
    };
    job.tasks = old_tasks;
    job.tasks
        .retain(|task| gone.binary_search(&task.index).is_err());
    for task in tasks {
        match job.tasks.binary_search_by_key(&task.index, |t| t.index) {
            Ok(at) => job.tasks[at] = task,
            Err(at) => job.tasks.insert(at, task),
        }
    }
    Ok(job)
}
