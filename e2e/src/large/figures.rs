//! The load and the figures of a run.

use std::fmt::{Display, Formatter};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::bench::results::{Line, Lines};

/// Pods of a node, as e2e/bench-large.sh sets it.
const PODS_PER_NODE: u32 = 110;

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Nothing.
    None,
    /// Lost nodes, killed leaders, a bad connection.
    All,
}

impl Trouble {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "without trouble",
            Self::All => "with trouble",
        }
    }
}

/// Nodes, jobs, tasks of each job, and what goes wrong meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Load {
    /// Fake nodes.
    pub nodes: u32,
    /// Jobs.
    pub jobs: u32,
    /// Tasks of each.
    pub tasks: u32,
    /// What goes wrong.
    pub trouble: Trouble,
}

impl Display for Load {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}", self.size(), self.trouble.name())
    }
}

impl Load {
    /// Nodes, jobs and tasks, for people.
    pub fn size(self) -> String {
        format!("{} nodes, {} x {} tasks", self.nodes, self.jobs, self.tasks)
    }

    /// Tasks of all jobs.
    pub fn all_tasks(self) -> u32 {
        self.jobs * self.tasks
    }

    /// Pods that its nodes take.
    pub fn capacity(self) -> usize {
        (self.nodes * PODS_PER_NODE) as usize
    }

    /// Refuses a job with more tasks than its nodes take pods: it would measure waiting.
    pub fn ensure_fits(self) -> Result<()> {
        ensure!(
            self.tasks as usize <= self.capacity(),
            "a job has {} tasks, and {} nodes take {} pods: use --nodes {} or more",
            self.tasks,
            self.nodes,
            self.capacity(),
            self.tasks.div_ceil(PODS_PER_NODE)
        );
        Ok(())
    }
}

/// The runs of a file.
pub type Runs = Lines<Load, Figures>;
/// One run.
pub type Run = Line<Load, Figures>;

fn one() -> f64 {
    1.0
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Jobs that were created per second. Older lines, which do not say it, had one.
    #[serde(default = "one")]
    pub rate: f64,
    /// From the first create of a job until the last one was complete, in seconds.
    pub wall_seconds: f64,
    /// Jobs that were complete at the end.
    pub complete: u64,
    /// Why the run stopped before every job was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Requests of the operators.
    pub requests: u64,
    /// Writes of the operators that the apiserver carried out.
    pub writes: u64,
    /// Attempts that were created.
    pub attempts: u64,
    /// CPU of all operators, in seconds.
    pub cpu_seconds: f64,
    /// CPU of the apiserver, in seconds.
    pub apiserver_cpu_seconds: f64,
    /// Leaders that were killed.
    pub killed: u64,
    /// Nodes that were lost, and came back.
    pub lost_nodes: u64,
    /// States that were checked.
    pub states: u64,
    /// The largest DeadlineJob without managedFields, in bytes.
    pub largest_object: u64,
    /// Most writes of one job's ledger in ten seconds.
    pub busiest_job: u64,
    /// Memory of the leader and of the harness's cluster over time.
    pub memory: Vec<Moment>,
    /// Violations, in words.
    pub broken: Vec<String>,
}

/// One look at the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// Seconds since the first create.
    pub seconds: f64,
    /// Live attempts.
    pub live: u64,
    /// Complete jobs.
    pub complete: u64,
    /// Memory of the operator with most of it, in MiB.
    pub operator: u64,
    /// Memory of the apiserver, in MiB.
    pub apiserver: u64,
    /// Memory of etcd, in MiB.
    pub etcd: u64,
}

impl Figures {
    /// Whether every job finished and nothing was broken.
    pub fn is_clean(&self) -> bool {
        self.broken.is_empty() && self.stopped.is_none()
    }

    /// Most memory that an operator had, in MiB.
    pub fn peak(&self) -> u64 {
        let all = self.memory.iter().map(|moment| moment.operator);
        all.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_no_cluster_of_the_size_takes_is_refused() {
        let load = |nodes, tasks| Load {
            nodes,
            jobs: 1,
            tasks,
            trouble: Trouble::None,
        };
        assert!(load(50, 5500).ensure_fits().is_ok());
        let said = load(50, 5501).ensure_fits().unwrap_err().to_string();
        assert!(said.contains("--nodes 51"), "{said}");
    }
}
