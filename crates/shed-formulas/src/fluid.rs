//! The deterministic model of DollyMP, equations (4)–(8), in continuous time: a task with k copies
//! processes its mean time θ at rate h(k).
//!
//! A reference for whole schedules without random numbers, such as those of DollyMP's Figure 2. A
//! round function decides the starts, so that every round of this field runs in the model.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::cluster::{CpuMem, Server, total_capacity};
use crate::dag::{DagError, Job, Phase, Task};
use crate::speedup::speedup;

/// A job of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct FluidJob {
    /// The job, nothing of it started.
    pub job: Job,
    /// α of each phase's tasks. A missing value, or one of at most 1, makes copies useless.
    pub alpha: Vec<f64>,
}

/// Result for all jobs. Seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FluidOutcome {
    /// When each job finished, by id; a job that never could is absent.
    pub finish: BTreeMap<u64, f64>,
    /// Σ (finish − arrival) over these.
    pub flow_sum: f64,
    /// The last finish.
    pub makespan: f64,
    /// Σ copies·time·(c/ΣC + m/ΣM).
    pub resource: f64,
}

/// Runs `jobs` on `servers`. `round` starts copies on a board that holds the unfinished jobs that
/// have arrived. It is called after each arrival and completion; its argument is whether a job
/// arrived.
///
/// # Errors
///
/// [`DagError`] if the phases of a job are no partial order, or what `round` returns.
pub fn simulate(
    servers: &[Server],
    jobs: &[FluidJob],
    mut round: impl FnMut(&mut Board, bool) -> Result<(), DagError>,
) -> Result<FluidOutcome, DagError> {
    let mut world = World::new(servers, jobs);
    loop {
        let arrived = world.admit();
        let waiting: Vec<Job> = world.active.values().map(|run| run.job.clone()).collect();
        let mut board = Board::new(&world.servers, &waiting)?;
        round(&mut board, arrived)?;
        world.take(&board);
        let Some(next) = world.next_event() else {
            return Ok(world.outcome);
        };
        world.advance(next);
    }
}

/// A job that has arrived and not finished.
struct Run {
    job: Job,
    alpha: Vec<f64>,
    /// Work that is left per phase and task, in seconds of one copy.
    left: Vec<Vec<f64>>,
}

struct World {
    now: f64,
    total: CpuMem,
    servers: Vec<Server>,
    /// Jobs to come, the latest first.
    coming: Vec<FluidJob>,
    active: BTreeMap<u64, Run>,
    outcome: FluidOutcome,
}

impl World {
    fn new(servers: &[Server], jobs: &[FluidJob]) -> Self {
        let mut coming = jobs.to_vec();
        coming.sort_by(|a, b| b.job.arrival.total_cmp(&a.job.arrival));
        Self {
            now: coming.last().map_or(0.0, |first| first.job.arrival),
            total: total_capacity(servers),
            servers: servers.to_vec(),
            coming,
            active: BTreeMap::new(),
            outcome: FluidOutcome::default(),
        }
    }

    /// Admits the jobs that have arrived; returns whether there were any.
    fn admit(&mut self) -> bool {
        let before = self.coming.len();
        while let Some(FluidJob { job, alpha }) =
            self.coming.pop_if(|next| next.job.arrival <= self.now)
        {
            let left = |phase: &Phase| vec![phase.theta; phase.tasks.len()];
            let left = job.phases.iter().map(left).collect();
            self.active.insert(job.id, Run { job, alpha, left });
        }
        self.coming.len() < before
    }

    /// Takes over the starts of a round.
    fn take(&mut self, board: &Board) {
        self.servers = board.servers().to_vec();
        for job in board.jobs() {
            if let Some(run) = self.active.get_mut(&job.id) {
                run.job = job.clone();
            }
        }
    }

    /// When the next task ends or the next job arrives; `None` when nothing will happen.
    fn next_event(&self) -> Option<f64> {
        let arrival = self.coming.last().map(|next| next.job.arrival);
        let ends = self.active.values().flat_map(Run::times_left);
        let end = ends.reduce(f64::min).map(|time| self.now + time);
        match (arrival, end) {
            (Some(arrival), Some(end)) => Some(arrival.min(end)),
            (arrival, end) => arrival.or(end),
        }
    }

    /// Advances all running copies to `until`, and finishes tasks that are done.
    fn advance(&mut self, until: f64) {
        let elapsed = until - self.now;
        self.now = until;
        for run in self.active.values_mut() {
            self.outcome.resource += elapsed * run.job.usage().share_of(&self.total).sum();
            run.work(elapsed);
            for (host, demand) in run.finish() {
                let server = self.servers.iter_mut().find(|server| server.id == host);
                if let Some(server) = server {
                    server.free = server.free.plus(&demand);
                }
            }
        }
        let is_done = |run: &Run| run.job.phases.iter().all(Phase::is_finished);
        for (id, run) in self.active.extract_if(.., |_, run| is_done(run)) {
            self.outcome.finish.insert(id, until);
            self.outcome.flow_sum += until - run.job.arrival;
            self.outcome.makespan = until;
        }
    }
}

impl Run {
    /// The rate of a task with `copies` copies.
    fn rate(&self, phase: usize, copies: usize) -> f64 {
        let gain = self
            .alpha
            .get(phase)
            .and_then(|&alpha| speedup(alpha, copies as f64));
        gain.unwrap_or(1.0)
    }

    /// Per running task how long it will still take.
    fn times_left(&self) -> impl Iterator<Item = f64> + '_ {
        self.running()
            .map(|(phase, task, copies)| self.left[phase][task] / self.rate(phase, copies))
    }

    /// Phase, task and number of copies of the running tasks.
    fn running(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let phases = self.job.phases.iter().enumerate();
        phases.flat_map(|(position, phase)| {
            let tasks = phase.tasks.iter().enumerate();
            tasks.filter_map(move |(task, state)| match state {
                Task::Running { hosts } => Some((position, task, hosts.len())),
                Task::Finished | Task::Pending => None,
            })
        })
    }

    fn work(&mut self, elapsed: f64) {
        let done: Vec<(usize, usize, f64)> = self
            .running()
            .map(|(phase, task, copies)| (phase, task, elapsed * self.rate(phase, copies)))
            .collect();
        for (phase, task, work) in done {
            self.left[phase][task] -= work;
        }
    }

    /// Finishes the tasks whose remaining work is only a rounding error. Returns their copies'
    /// capacity and servers.
    fn finish(&mut self) -> Vec<(u64, CpuMem)> {
        let mut released = Vec::new();
        for (phase, left) in self.job.phases.iter_mut().zip(&self.left) {
            for (task, &left) in phase.tasks.iter_mut().zip(left) {
                if left > 1e-9 * phase.theta {
                    continue;
                }
                if let Task::Running { hosts } = task {
                    released.extend(hosts.drain(..).map(|host| (host, phase.demand)));
                    *task = Task::Finished;
                }
            }
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::tests::{job, phase};
    use crate::ordering::{by_arrival, in_order};

    fn server(cpu: f64) -> Server {
        let capacity = CpuMem { cpu, mem: cpu };
        Server {
            id: 0,
            capacity,
            free: capacity,
        }
    }

    fn fifo(board: &mut Board, _: bool) -> Result<(), DagError> {
        let order = by_arrival(board);
        in_order(board, &order, true);
        Ok(())
    }

    #[test]
    fn phases_run_one_after_the_other_and_tasks_in_waves() {
        let jobs = [FluidJob {
            job: job(1, vec![phase(5.0, &[], 3), phase(2.0, &[0], 1)]),
            alpha: vec![2.0, 2.0],
        }];
        let outcome = simulate(&[server(2.0)], &jobs, fifo).unwrap();
        assert_eq!(outcome.finish, BTreeMap::from([(1, 12.0)]));
        // 17 task seconds on one of two cores and one of two GB.
        assert_eq!(outcome.resource, 17.0);
    }

    #[test]
    fn a_job_that_fits_nowhere_never_finishes_and_stops_nothing() {
        let mut big = job(2, vec![phase(5.0, &[], 1)]);
        big.phases[0].demand.cpu = 9.0;
        let jobs = [big, job(1, vec![phase(5.0, &[], 1)])].map(|job| FluidJob {
            job,
            alpha: vec![2.0],
        });
        let outcome = simulate(&[server(2.0)], &jobs, fifo).unwrap();
        assert_eq!(outcome.finish, BTreeMap::from([(1, 5.0)]));
    }

    #[test]
    fn phases_that_wait_for_each_other_are_an_error() {
        let jobs = [FluidJob {
            job: job(1, vec![phase(5.0, &[0], 1)]),
            alpha: vec![2.0],
        }];
        let outcome = simulate(&[server(2.0)], &jobs, fifo);
        assert_eq!(outcome, Err(DagError::Cycle { job: 1 }));
    }

    #[test]
    fn without_jobs_nothing_happens() {
        let outcome = simulate(&[server(2.0)], &[], fifo).unwrap();
        assert_eq!(outcome, FluidOutcome::default());
    }
}
