//! Jobs of phases: ready phases, lengths of the chains through them, remaining work.
//!
//! A phase is a set of equal tasks that start when all tasks of all its parents have finished
//! (DollyMP (7)). The phases of a job form a directed graph without cycles.

use std::fmt;

use crate::cluster::{CpuMem, Server};

/// One task of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// It is done.
    Finished,
    /// No copy of it runs.
    Pending,
    /// Copies of it run.
    Running {
        /// The servers of its copies, one entry per copy.
        hosts: Vec<u64>,
    },
}

impl Task {
    /// How many copies run; `None` when it is finished.
    pub fn copies(&self) -> Option<usize> {
        match self {
            Task::Finished => None,
            Task::Pending => Some(0),
            Task::Running { hosts } => Some(hosts.len()),
        }
    }

    /// Whether a copy of it runs on `server`.
    pub fn is_on(&self, server: u64) -> bool {
        matches!(self, Task::Running { hosts } if hosts.contains(&server))
    }
}

/// A phase of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// c, m: demand of one copy of one task.
    pub demand: CpuMem,
    /// θ, the mean time of a task in seconds.
    pub theta: f64,
    /// σ, its standard deviation in seconds.
    pub sigma: f64,
    /// P(φ): positions of the phases that must finish first.
    pub parents: Vec<usize>,
    /// The tasks.
    pub tasks: Vec<Task>,
}

impl Phase {
    /// Whether all tasks are.
    pub fn is_finished(&self) -> bool {
        self.unfinished() == 0
    }

    /// n(t): the tasks that are not finished; running ones count.
    pub fn unfinished(&self) -> usize {
        let is_open = |task: &&Task| **task != Task::Finished;
        self.tasks.iter().filter(is_open).count()
    }

    /// Positions of the tasks with exactly this number of running copies, ascending.
    pub fn with_copies(&self, copies: usize) -> impl Iterator<Item = usize> + '_ {
        let tasks = self.tasks.iter().enumerate();
        tasks
            .filter(move |(_, task)| task.copies() == Some(copies))
            .map(|(position, _)| position)
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Identifies the job; ties go to the least.
    pub id: u64,
    /// a, when it was submitted, in seconds.
    pub arrival: f64,
    /// The queue it was submitted to.
    pub queue: String,
    /// Its phases.
    pub phases: Vec<Phase>,
}

/// Why a job's phases are no partial order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DagError {
    /// Some phases wait for each other.
    Cycle {
        /// The job's id.
        job: u64,
    },
    /// A phase names a parent that the job does not have.
    UnknownParent {
        /// The job's id.
        job: u64,
        /// Position of the phase.
        phase: usize,
        /// The position it names.
        parent: usize,
    },
}

impl fmt::Display for DagError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DagError::Cycle { job } => write!(out, "phases of job {job} wait for each other"),
            DagError::UnknownParent { job, phase, parent } => {
                write!(
                    out,
                    "phase {phase} of job {job} waits for phase {parent}, which it lacks"
                )
            }
        }
    }
}

impl std::error::Error for DagError {}

/// Longest chains of phases, each phase counting with its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Chains {
    /// The longest chain of the job.
    pub longest: f64,
    /// Per phase the longest chain that it is part of.
    pub through: Vec<f64>,
}

impl Chains {
    /// How much longer `phase` may take without making the job's longest chain longer.
    pub fn slack(&self, phase: usize) -> f64 {
        let through = self.through.get(phase);
        through.map_or(0.0, |through| self.longest - through)
    }
}

impl Job {
    /// Positions of the phases in an order in which parents come before children, the least
    /// position first where there is a choice. O(phases · parents).
    ///
    /// # Errors
    ///
    /// [`DagError`] if there is no such order.
    pub fn topological_order(&self) -> Result<Vec<usize>, DagError> {
        let count = self.phases.len();
        let mut children = vec![Vec::new(); count];
        let mut waiting_for: Vec<usize> = Vec::with_capacity(count);
        for (position, phase) in self.phases.iter().enumerate() {
            waiting_for.push(phase.parents.len());
            for &parent in &phase.parents {
                let unknown = DagError::UnknownParent {
                    job: self.id,
                    phase: position,
                    parent,
                };
                children.get_mut(parent).ok_or(unknown)?.push(position);
            }
        }
        let mut free: std::collections::BTreeSet<usize> = (0..count)
            .filter(|&phase| waiting_for[phase] == 0)
            .collect();
        let mut order = Vec::with_capacity(count);
        while let Some(phase) = free.pop_first() {
            order.push(phase);
            for &child in &children[phase] {
                waiting_for[child] -= 1;
                if waiting_for[child] == 0 {
                    free.insert(child);
                }
            }
        }
        if order.len() < count {
            return Err(DagError::Cycle { job: self.id });
        }
        Ok(order)
    }

    /// Longest chains with `weight` of each phase; a finished phase weighs nothing.
    /// O(phases + edges).
    ///
    /// # Errors
    ///
    /// [`DagError`] if the phases are no partial order.
    pub fn chains(&self, weight: impl Fn(&Phase) -> f64) -> Result<Chains, DagError> {
        let order = self.topological_order()?;
        let weights: Vec<f64> = self
            .phases
            .iter()
            .map(|phase| {
                if phase.is_finished() {
                    0.0
                } else {
                    weight(phase)
                }
            })
            .collect();
        // The longest chain that ends before a phase, and the longest that begins after it.
        let mut before = vec![0.0_f64; weights.len()];
        let mut after = vec![0.0_f64; weights.len()];
        for &phase in &order {
            for &parent in &self.phases[phase].parents {
                before[phase] = before[phase].max(before[parent] + weights[parent]);
            }
        }
        for &phase in order.iter().rev() {
            for &parent in &self.phases[phase].parents {
                after[parent] = after[parent].max(after[phase] + weights[phase]);
            }
        }
        let through: Vec<f64> = (0..weights.len())
            .map(|phase| before[phase] + weights[phase] + after[phase])
            .collect();
        let longest = through.iter().copied().fold(0.0, f64::max);
        Ok(Chains { longest, through })
    }

    /// Whether all tasks of all parents of `phase` are finished and `phase` itself is not.
    pub fn is_ready(&self, phase: usize) -> bool {
        let Some(this) = self.phases.get(phase) else {
            return false;
        };
        let is_done = |&parent: &usize| self.phases.get(parent).is_some_and(Phase::is_finished);
        !this.is_finished() && this.parents.iter().all(is_done)
    }

    /// Positions of the ready phases, ascending.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.phases.len()).filter(|&phase| self.is_ready(phase))
    }

    /// Whether every unfinished phase has a server that could hold a task of it when empty.
    pub fn is_feasible(&self, servers: &[Server]) -> bool {
        let open = self.phases.iter().filter(|phase| !phase.is_finished());
        let fits = |phase: &Phase| {
            let could = |server: &Server| phase.demand.fits(&server.capacity);
            servers.iter().any(could)
        };
        open.into_iter().all(fits)
    }

    /// Demand of all running copies of the job.
    pub fn usage(&self) -> CpuMem {
        let copies = |phase: &Phase| -> usize { phase.tasks.iter().filter_map(Task::copies).sum() };
        self.phases.iter().fold(CpuMem::default(), |sum, phase| {
            sum.plus(&phase.demand.times(copies(phase) as f64))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A phase of `tasks` pending tasks of one core and one GB that take `theta` seconds.
    pub(crate) fn phase(theta: f64, parents: &[usize], tasks: usize) -> Phase {
        Phase {
            demand: CpuMem { cpu: 1.0, mem: 1.0 },
            theta,
            sigma: 0.0,
            parents: parents.to_vec(),
            tasks: vec![Task::Pending; tasks],
        }
    }

    pub(crate) fn job(id: u64, phases: Vec<Phase>) -> Job {
        Job {
            id,
            arrival: 0.0,
            queue: "default".into(),
            phases,
        }
    }

    fn diamond() -> Job {
        let phases = vec![
            phase(4.0, &[], 1),
            phase(10.0, &[0], 1),
            phase(3.0, &[0], 1),
            phase(2.0, &[1, 2], 1),
        ];
        job(7, phases)
    }

    #[test]
    fn the_slack_of_a_phase_is_what_its_chain_lacks_to_the_longest() {
        let chains = diamond().chains(|phase| phase.theta).unwrap();
        assert_eq!(chains.longest, 16.0);
        let slack: Vec<f64> = (0..4).map(|phase| chains.slack(phase)).collect();
        assert_eq!(slack, [0.0, 0.0, 7.0, 0.0]);
    }

    #[test]
    fn finished_phases_weigh_nothing_and_make_their_children_ready() {
        let mut job = diamond();
        assert_eq!(job.ready().collect::<Vec<_>>(), [0]);
        job.phases[0].tasks[0] = Task::Finished;
        assert_eq!(job.ready().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(job.chains(|phase| phase.theta).unwrap().longest, 12.0);
    }

    #[test]
    fn phases_that_wait_for_each_other_are_an_error() {
        let mut job = diamond();
        job.phases[0].parents = vec![3];
        assert_eq!(job.topological_order(), Err(DagError::Cycle { job: 7 }));
        assert!(job.chains(|phase| phase.theta).is_err());
        let itself = super::tests::job(1, vec![phase(1.0, &[0], 1)]);
        assert_eq!(itself.topological_order(), Err(DagError::Cycle { job: 1 }));
    }

    #[test]
    fn a_parent_that_the_job_lacks_is_an_error_that_names_it() {
        let orphan = job(3, vec![phase(1.0, &[5], 1)]);
        let error = orphan.topological_order().unwrap_err();
        assert_eq!(
            error.to_string(),
            "phase 0 of job 3 waits for phase 5, which it lacks"
        );
        assert!(!orphan.is_ready(0));
    }

    #[test]
    fn a_finished_phase_that_fits_no_server_keeps_a_job_feasible() {
        let server = Server {
            id: 0,
            capacity: CpuMem { cpu: 2.0, mem: 2.0 },
            free: CpuMem::default(),
        };
        let mut job = diamond();
        job.phases[0].demand.cpu = 3.0;
        assert!(!job.is_feasible(&[server]));
        job.phases[0].tasks[0] = Task::Finished;
        assert!(job.is_feasible(&[server]));
        assert!(!job.is_feasible(&[]));
    }

    #[test]
    fn usage_counts_every_running_copy() {
        let mut job = diamond();
        job.phases[0].tasks[0] = Task::Running {
            hosts: vec![1, 1, 2],
        };
        assert_eq!(job.usage(), CpuMem { cpu: 3.0, mem: 3.0 });
        assert!(job.phases[0].tasks[0].is_on(2) && !job.phases[0].tasks[0].is_on(3));
    }
}
