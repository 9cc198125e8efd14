//! DollyMP Algorithm 2: one online round that starts originals and then clones, by priority level
//! and best fit.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use crate::formulas::board::Board;
use crate::formulas::cluster::{CpuMem, Launch, Server};
use crate::formulas::compare::first_largest;
use crate::formulas::dag::DagError;
use crate::formulas::levels::{LevelItem, levels, remaining_time, volume};

/// How well a task fits a server, larger being better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// R^c·c + R^m·m in cores and GB, as printed.
    #[default]
    Raw,
    /// The same with free amounts and demands as shares of the server; needed where the unit of
    /// one resource outweighs that of the other, as with bytes.
    Server,
}

/// The parameters of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DollyMp {
    /// ρ, the weight of the standard deviation in a task's time (the paper's r). 1.5.
    pub rho: f64,
    /// A slot in seconds; the simulations of the paper have 5.
    pub slot: f64,
    /// K, the most clones of a task: 2.
    pub clones: u32,
    /// Best fit.
    pub fit: Fit,
    /// Whether copies of a task are kept on different servers. Equation (4) wants it, Figure 2 and
    /// Theorem 2 clone on one server. False, as the figures need; a real cluster wants true.
    pub distinct: bool,
    /// The share of each resource of the cluster that clones may hold; the paper names δ = 0.3
    /// once and defines it nowhere. `None` for no bound.
    pub clone_budget: Option<f64>,
}

impl Default for DollyMp {
    fn default() -> Self {
        Self {
            rho: 1.5,
            slot: 1.0,
            clones: 2,
            fit: Fit::Raw,
            distinct: false,
            clone_budget: None,
        }
    }
}

/// The measures of the jobs of a round and their levels, by job id.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Priorities {
    /// v(t).
    pub volume: BTreeMap<u64, f64>,
    /// e(t).
    pub time: BTreeMap<u64, f64>,
    /// p, 1 being served first.
    pub level: BTreeMap<u64, u32>,
}

/// Step 1: measures and levels of all jobs of `board`. To be done at each arrival; between
/// arrivals the levels are kept, see [`cached_levels`].
///
/// # Errors
///
/// [`DagError`] if the phases of a job are no partial order.
pub fn priorities(board: &Board, rho: f64, slot: f64) -> Result<Priorities, DagError> {
    let mut result = Priorities::default();
    let mut items = Vec::with_capacity(board.jobs().len());
    for job in board.jobs() {
        let item = LevelItem {
            id: job.id,
            volume: volume(job, board.total(), rho, slot),
            time: remaining_time(job, rho, slot)?,
        };
        result.volume.insert(item.id, item.volume);
        result.time.insert(item.id, item.time);
        items.push(item);
    }
    result.level = levels(&items).priority;
    Ok(result)
}

/// The levels of the jobs of `board` from those of an earlier round; a job without one gets the
/// largest of them + 1.
#[must_use]
pub fn cached_levels(board: &Board, cached: &BTreeMap<u64, u32>) -> BTreeMap<u64, u32> {
    let beyond = cached
        .values()
        .max()
        .map_or(1, |last| last.saturating_add(1));
    let level = |id: u64| cached.get(&id).copied().unwrap_or(beyond);
    let ids = board.jobs().iter().map(|job| job.id);
    ids.map(|id| (id, level(id))).collect()
}

/// A copy that a round starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassLaunch {
    /// 0 for an original, k for a task's k-th clone.
    pub pass: u32,
    /// What starts where.
    pub launch: Launch,
}

/// Steps 2–20: passes 0 (originals) to K (the K-th clone of a task). A clone starts only after no
/// original fits anywhere. Jobs without a level in `level` offer nothing.
///
/// The text of the paper and its step 19 differ on whether passes are per server or per cluster;
/// this is the text. Step 13's `<` is `≥` in effect, step 14's argmax is over the offers that
/// fit, and step 15's `<` is `≤` (equation (5)).
///
/// O(K·(servers·levels + launches·jobs)).
pub fn round(board: &mut Board, level: &BTreeMap<u64, u32>, params: &DollyMp) -> Vec<PassLaunch> {
    passes(board, level, params, 0..=params.clones)
}

/// The given passes of [`round`] alone; from 1 on they clone after some other order of originals.
pub fn passes(
    board: &mut Board,
    level: &BTreeMap<u64, u32>,
    params: &DollyMp,
    passes: RangeInclusive<u32>,
) -> Vec<PassLaunch> {
    let mut launched = Vec::new();
    for pass in passes {
        let mut pass = Pass::new(board, level, params, pass);
        for server in 0..pass.board.servers().len() {
            pass.fill(server, &mut launched);
        }
    }
    launched
}

/// A job that still has something to offer in a pass.
struct Offerer {
    job: usize,
    /// Its tasks with exactly as many running copies as the pass wants, lowest first.
    tasks: VecDeque<(usize, usize)>,
}

/// The jobs of one level.
struct Level {
    offerers: Vec<Offerer>,
    /// No offer of the level takes less of either resource: a server with less room is skipped.
    least: CpuMem,
}

struct Pass<'a> {
    board: &'a mut Board,
    params: &'a DollyMp,
    pass: u32,
    /// What clones may still take.
    clone_room: Option<CpuMem>,
    levels: Vec<Level>,
}

impl<'a> Pass<'a> {
    fn new(
        board: &'a mut Board,
        level: &BTreeMap<u64, u32>,
        params: &'a DollyMp,
        pass: u32,
    ) -> Self {
        let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
        for (position, job) in board.jobs().iter().enumerate() {
            let tasks = offered_tasks(board, position, pass);
            let (Some(&level), false) = (level.get(&job.id), tasks.is_empty()) else {
                continue;
            };
            let level = levels.entry(level).or_insert_with(|| Level {
                offerers: Vec::new(),
                least: CpuMem {
                    cpu: f64::INFINITY,
                    mem: f64::INFINITY,
                },
            });
            for &(phase, _) in &tasks {
                let demand = board.demand(position, phase);
                level.least.cpu = level.least.cpu.min(demand.cpu);
                level.least.mem = level.least.mem.min(demand.mem);
            }
            level.offerers.push(Offerer {
                job: position,
                tasks,
            });
        }
        let budget = params.clone_budget.filter(|_| pass > 0);
        let clone_room = budget.map(|share| board.total().times(share).minus(&board.clones_take()));
        Self {
            board,
            params,
            pass,
            clone_room,
            levels: levels.into_values().collect(),
        }
    }

    /// Starts on one server what fits, level by level.
    fn fill(&mut self, server: usize, launched: &mut Vec<PassLaunch>) {
        for level in 0..self.levels.len() {
            while let Some((offerer, place)) = self.best_offer(server, level) {
                let offers = &mut self.levels[level].offerers;
                let job = offers[offerer].job;
                let Some(task) = offers[offerer].tasks.remove(place) else {
                    break;
                };
                if offers[offerer].tasks.is_empty() {
                    offers.remove(offerer);
                }
                let demand = self.board.demand(job, task.0);
                self.clone_room = self.clone_room.map(|room| room.minus(&demand));
                launched.push(PassLaunch {
                    pass: self.pass,
                    launch: self.board.launch(job, task, server),
                });
            }
        }
    }

    /// The position of the offerer with the best fit of those that fit, and of its task.
    fn best_offer(&self, server: usize, level: usize) -> Option<(usize, usize)> {
        let host = &self.board.servers()[server];
        let level = &self.levels[level];
        if !level.least.fits(&host.free) {
            return None;
        }
        let offers = level
            .offerers
            .iter()
            .enumerate()
            .filter_map(|(position, offerer)| {
                let place = self.offer(offerer, host)?;
                let demand = self.board.demand(offerer.job, offerer.tasks[place].0);
                let in_budget = self.clone_room.is_none_or(|room| demand.fits(&room));
                let fits = demand.fits(&host.free) && in_budget;
                fits.then(|| (fit(self.params.fit, &demand, host), (position, place)))
            });
        first_largest(offers)
    }

    /// The place of the task that a job offers: its first, or its first without a copy on `host`.
    fn offer(&self, offerer: &Offerer, host: &Server) -> Option<usize> {
        let job = &self.board.jobs()[offerer.job];
        let may_run = |&(phase, task): &(usize, usize)| {
            !(self.params.distinct && job.phases[phase].tasks[task].is_on(host.id))
        };
        offerer.tasks.iter().position(may_run)
    }
}

fn offered_tasks(board: &Board, job: usize, copies: u32) -> VecDeque<(usize, usize)> {
    if copies == 0 {
        return board.waiting(job).collect();
    }
    let phases = board.jobs()[job].phases.iter().enumerate();
    phases
        .flat_map(|(position, phase)| {
            let tasks = phase.with_copies(copies as usize);
            tasks.map(move |task| (position, task))
        })
        .collect()
}

fn fit(fit: Fit, demand: &CpuMem, host: &Server) -> f64 {
    match fit {
        Fit::Raw => host.free.dot(demand),
        Fit::Server => {
            let free = host.free.share_of(&host.capacity);
            free.dot(&demand.share_of(&host.capacity))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formulas::dag::Task;
    use crate::formulas::dag::tests::{job, phase};

    fn servers(count: u64, cpu: f64) -> Vec<Server> {
        let capacity = CpuMem { cpu, mem: cpu };
        let server = |id| Server {
            id,
            capacity,
            free: capacity,
        };
        (0..count).map(server).collect()
    }

    fn run(
        servers: &[Server],
        jobs: &[crate::formulas::dag::Job],
        params: &DollyMp,
    ) -> Vec<PassLaunch> {
        let mut board = Board::new(servers, jobs).unwrap();
        let level = priorities(&board, params.rho, params.slot).unwrap().level;
        round(&mut board, &level, params)
    }

    #[test]
    fn clones_start_only_when_every_original_that_fits_runs() {
        let jobs = [
            job(1, vec![phase(2.0, &[], 2)]),
            job(2, vec![phase(90.0, &[], 3)]),
        ];
        let passes: Vec<u32> = run(&servers(2, 3.0), &jobs, &DollyMp::default())
            .iter()
            .map(|start| start.pass)
            .collect();
        assert_eq!(passes, [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn distinct_copies_are_on_different_servers() {
        let params = DollyMp {
            distinct: true,
            ..DollyMp::default()
        };
        let jobs = [job(1, vec![phase(2.0, &[], 1)])];
        let hosts: Vec<u64> = run(&servers(2, 9.0), &jobs, &params)
            .iter()
            .map(|start| start.launch.server)
            .collect();
        assert_eq!(hosts, [0, 1]);
        let anywhere = run(&servers(2, 9.0), &jobs, &DollyMp::default());
        assert_eq!(anywhere.len(), 3);
    }

    #[test]
    fn clones_that_already_run_count_towards_the_budget() {
        let mut cloned = job(1, vec![phase(2.0, &[], 2)]);
        cloned.phases[0].tasks[0] = Task::Running { hosts: vec![0, 0] };
        let mut server = servers(1, 10.0);
        server[0].free = CpuMem { cpu: 8.0, mem: 8.0 };
        let clones_within = |budget: f64| {
            let params = DollyMp {
                clone_budget: Some(budget),
                ..DollyMp::default()
            };
            let starts = run(&server, std::slice::from_ref(&cloned), &params);
            starts.iter().filter(|start| start.pass > 0).count()
        };
        assert_eq!(clones_within(0.1), 0);
        assert_eq!(clones_within(0.2), 1);
        assert_eq!(clones_within(1.0), 3);
    }

    #[test]
    fn a_job_without_a_cached_level_comes_after_all_that_have_one() {
        let jobs = [
            job(1, vec![phase(2.0, &[], 1)]),
            job(2, vec![phase(2.0, &[], 1)]),
        ];
        let board = Board::new(&servers(1, 1.0), &jobs).unwrap();
        let level = cached_levels(&board, &BTreeMap::from([(2, 3), (9, 7)]));
        assert_eq!(level, BTreeMap::from([(1, 8), (2, 3)]));
        assert_eq!(cached_levels(&board, &BTreeMap::new())[&1], 1);
    }
}
