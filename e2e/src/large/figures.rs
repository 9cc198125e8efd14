//! Figures of runs, one line of JSON each.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::run::Trouble;
use crate::bench_scale::results::Origin;
use crate::json_lines;

/// Pods of a node, as e2e/bench-large.sh sets it.
pub const PODS_PER_NODE: u32 = 110;

/// Nodes, jobs, and tasks of each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Size {
    /// Fake nodes.
    pub nodes: u32,
    /// Jobs.
    pub jobs: u32,
    /// Tasks of each.
    pub tasks: u32,
}

impl Size {
    /// For people.
    pub fn name(self) -> String {
        format!("{} nodes, {} x {} tasks", self.nodes, self.jobs, self.tasks)
    }

    /// Tasks of all jobs.
    pub fn all_tasks(self) -> u32 {
        self.jobs * self.tasks
    }

    /// Pods that its nodes take.
    pub fn room(self) -> usize {
        (self.nodes * PODS_PER_NODE) as usize
    }

    /// Refuses a job with more tasks than its nodes take pods: it would measure waiting.
    pub fn ensure_fits(self) -> Result<()> {
        ensure!(
            self.tasks as usize <= self.room(),
            "a job has {} tasks, and {} nodes take {} pods: use --nodes {} or more",
            self.tasks,
            self.nodes,
            self.room(),
            self.tasks.div_ceil(PODS_PER_NODE)
        );
        Ok(())
    }
}

/// The runs of a file.
pub type Lines = BTreeMap<(Size, Trouble), Line>;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Its size.
    #[serde(flatten)]
    pub size: Size,
    /// What went wrong meanwhile.
    pub trouble: Trouble,
    /// Jobs that were created per second. Older lines, which do not say it, had one.
    #[serde(default = "one")]
    pub rate: f64,
    /// Its surroundings.
    #[serde(flatten)]
    pub origin: Origin,
    /// When it ended, in UTC.
    pub ended: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

fn one() -> f64 {
    1.0
}

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
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

/// The runs of a file. One that was repeated is there with its last result.
pub fn read(file: &Path) -> Result<Lines> {
    let lines = json_lines::read(file, "run")?.into_iter();
    Ok(lines
        .map(|line: Line| ((line.size, line.trouble), line))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_no_cluster_of_the_size_takes_is_refused() {
        let size = |nodes, tasks| Size {
            nodes,
            jobs: 1,
            tasks,
        };
        assert!(size(50, 5500).ensure_fits().is_ok());
        let said = size(50, 5501).ensure_fits().unwrap_err().to_string();
        assert!(said.contains("--nodes 51"), "{said}");
    }
}
