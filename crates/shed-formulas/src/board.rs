//! Servers and jobs of one scheduling round, with the round's starts so far.

use std::collections::VecDeque;

use crate::cluster::{CpuMem, Launch, Server, total_capacity};
use crate::dag::{DagError, Job, Task};
use crate::free_index::FreeIndex;

/// Input of a round: servers and jobs by ascending id, so that their original order never matters.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    servers: Vec<Server>,
    total: CpuMem,
    jobs: Vec<Job>,
    left_out: Vec<Job>,
    /// Per job the pending tasks of its ready phases, lowest (phase, task) first. A round
    /// finishes nothing, so no phase becomes ready in it.
    waiting: Vec<VecDeque<(usize, usize)>>,
    /// Demand of the running copies, per job.
    usage: Vec<CpuMem>,
    free: FreeIndex,
}

impl Board {
    /// A round's state. Jobs with an unfinished phase that fits no empty server are left out.
    ///
    /// # Errors
    ///
    /// [`DagError`] if the phases of a job are no partial order.
    pub fn new(servers: &[Server], jobs: &[Job]) -> Result<Self, DagError> {
        let mut servers = servers.to_vec();
        servers.sort_by_key(|server| server.id);
        for job in jobs {
            job.topological_order()?;
        }
        let mut jobs = jobs.to_vec();
        jobs.sort_by_key(|job| job.id);
        let (jobs, left_out): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.is_feasible(&servers));
        Ok(Self {
            total: total_capacity(&servers),
            waiting: jobs.iter().map(waiting).collect(),
            usage: jobs.iter().map(Job::usage).collect(),
            free: FreeIndex::new(servers.iter().map(|server| server.free)),
            servers,
            jobs,
            left_out,
        })
    }

    /// The servers, by id.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Total capacity of all servers.
    pub fn total(&self) -> &CpuMem {
        &self.total
    }

    /// The jobs of the round, by id.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The jobs that are left out, by id.
    pub fn left_out(&self) -> &[Job] {
        &self.left_out
    }

    /// The pending tasks of the ready phases of the job at `job`, as (phase, task), ascending.
    pub fn waiting(&self, job: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.waiting.get(job).into_iter().flatten().copied()
    }

    /// The first pending task of the first ready phase that has one.
    pub fn candidate(&self, job: usize) -> Option<(usize, usize)> {
        self.waiting(job).next()
    }

    /// Demand of one copy of a task of this phase.
    pub fn demand(&self, job: usize, phase: usize) -> CpuMem {
        self.jobs[job].phases[phase].demand
    }

    /// The position of the first server with enough capacity for `demand`.
    pub fn first_fit(&self, demand: &CpuMem) -> Option<usize> {
        self.free.first_fit(demand)
    }

    /// Dominant share of the copies of the job at `job`.
    pub fn dominant_share(&self, job: usize) -> f64 {
        self.usage[job].share_of(&self.total).largest()
    }

    /// Demand of the clones: all copies but one of each task, including those of left-out jobs.
    pub fn clones_take(&self) -> CpuMem {
        let jobs = self.jobs.iter().chain(&self.left_out);
        let phases = jobs.flat_map(|job| &job.phases);
        phases.fold(CpuMem::default(), |sum, phase| {
            let copies = phase.tasks.iter().filter_map(Task::copies);
            let clones: usize = copies.map(|copies| copies.saturating_sub(1)).sum();
            sum.plus(&phase.demand.times(clones as f64))
        })
    }

    /// Starts a copy of a task on the server at `server`, even beyond its capacity.
    pub(crate) fn launch(&mut self, job: usize, task: (usize, usize), server: usize) -> Launch {
        let (phase, index) = task;
        let demand = self.demand(job, phase);
        let host = self.take(job, server, &demand);
        match &mut self.jobs[job].phases[phase].tasks[index] {
            Task::Running { hosts } => hosts.push(host),
            first => {
                *first = Task::Running { hosts: vec![host] };
                let waiting = &mut self.waiting[job];
                if let Some(place) = waiting.iter().position(|&waiting| waiting == task) {
                    waiting.remove(place);
                }
            }
        }
        Launch {
            job: self.jobs[job].id,
            phase,
            task: index,
            server: host,
        }
    }

    /// Counts `demand` as the job's on a server; the server's id.
    fn take(&mut self, job: usize, server: usize, demand: &CpuMem) -> u64 {
        let host = &mut self.servers[server];
        host.free = host.free.minus(demand);
        self.free.set(server, host.free);
        self.usage[job] = self.usage[job].plus(demand);
        host.id
    }

    /// Takes back the start of a first copy.
    pub(crate) fn withdraw(&mut self, job: usize, task: (usize, usize), server: usize) {
        let (phase, index) = task;
        let demand = self.demand(job, phase);
        self.take(job, server, &demand.times(-1.0));
        self.jobs[job].phases[phase].tasks[index] = Task::Pending;
        let waiting = &mut self.waiting[job];
        let place = waiting.partition_point(|&waiting| waiting < task);
        waiting.insert(place, task);
    }
}

fn waiting(job: &Job) -> VecDeque<(usize, usize)> {
    let tasks = |phase: usize| {
        job.phases[phase]
            .with_copies(0)
            .map(move |task| (phase, task))
    };
    job.ready().flat_map(tasks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::tests::{job, phase};

    fn server(id: u64, cpu: f64) -> Server {
        let capacity = CpuMem { cpu, mem: cpu };
        Server {
            id,
            capacity,
            free: capacity,
        }
    }

    #[test]
    fn a_withdrawn_task_waits_at_its_old_place() {
        let jobs = [job(1, vec![phase(5.0, &[], 3), phase(5.0, &[0], 1)])];
        let mut board = Board::new(&[server(0, 4.0)], &jobs).unwrap();
        let before = board.clone();
        board.launch(0, (0, 1), 0);
        assert_eq!(board.waiting(0).collect::<Vec<_>>(), [(0, 0), (0, 2)]);
        assert_eq!(board.servers()[0].free, CpuMem { cpu: 3.0, mem: 3.0 });
        board.withdraw(0, (0, 1), 0);
        assert_eq!(board, before);
    }

    #[test]
    fn only_copies_beyond_the_first_are_clones() {
        let jobs = [job(1, vec![phase(5.0, &[], 2)])];
        let mut board = Board::new(&[server(0, 4.0)], &jobs).unwrap();
        for task in [0, 1, 1] {
            board.launch(0, (0, task), 0);
        }
        assert_eq!(board.clones_take(), CpuMem { cpu: 1.0, mem: 1.0 });
        assert_eq!(board.dominant_share(0), 0.75);
    }

    #[test]
    fn a_job_that_fits_no_server_is_left_out() {
        let mut big = job(1, vec![phase(5.0, &[], 1)]);
        big.phases[0].demand.cpu = 9.0;
        let board = Board::new(&[server(0, 4.0)], &[big.clone()]).unwrap();
        assert_eq!((board.jobs().len(), board.left_out().len()), (0, 1));
        big.phases[0].parents = vec![0];
        assert_eq!(
            Board::new(&[server(0, 4.0)], &[big]),
            Err(DagError::Cycle { job: 1 })
        );
    }
}
