//! DollyMP Algorithm 2: one online round that starts originals and then clones, by priority level
//! and best fit.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Range, RangeInclusive};

use crate::best_fit::{BestFit, least_of};
use crate::board::Board;
use crate::cluster::{CpuMem, Launch, Server, share};
use crate::dag::{DagError, Task};
use crate::levels::{LevelItem, levels, remaining_time, volume};

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
    /// Whether copies of a task run on different servers. Equation (4) requires that, but Figure 2
    /// and Theorem 2 clone on one server. False, as for the figures; a real cluster needs true.
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

/// The levels of the jobs of `board` from those of an earlier round. A job without one gets the
/// largest of them + 1.
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
    /// The copy and its server.
    pub launch: Launch,
}

/// Steps 2–20: passes 0 (originals) to K (the K-th clone of a task). A clone starts only after no
/// original fits anywhere. Jobs without a level in `level` offer nothing.
///
/// The text of the paper and its step 19 differ on whether passes are per server or per cluster;
/// this is the text. Step 13's `<` is `≥` in effect, step 14's argmax is over the offers that
/// fit, and step 15's `<` is `≤` (equation (5)).
///
/// About O(K·(tasks + servers) + launches·(levels + √jobs)), by an index of what is offered: a
/// server that no offer fits costs one comparison.
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

/// A job that had something to offer when the pass began.
struct Offerer {
    job: usize,
    /// Its tasks with exactly the number of running copies for the pass, lowest first.
    tasks: VecDeque<(usize, usize)>,
    /// The place in `tasks` of its offer, and the offer's phase.
    offered: Option<(usize, usize)>,
}

/// The jobs of one level, and their offers.
struct Level {
    offerers: Vec<Offerer>,
    demands: BestFit,
}

impl Level {
    fn new(board: &Board, offerers: Vec<Offerer>) -> Self {
        let mut demands = Vec::new();
        for held in &offerers {
            let mut phases: Vec<usize> = held.tasks.iter().map(|&(phase, _)| phase).collect();
            phases.dedup();
            let of_phases = phases.into_iter();
            demands.extend(of_phases.map(|phase| board.demand(held.job, phase)));
        }
        let count = offerers.len();
        let mut level = Self {
            offerers,
            demands: BestFit::new(demands),
        };
        for offerer in 0..count {
            level.offer(board, offerer, None);
        }
        level
    }

    /// Lets a job offer its first task, or its first without a copy on `host`.
    fn offer(&mut self, board: &Board, offerer: usize, host: Option<u64>) {
        let held = &mut self.offerers[offerer];
        let phases = &board.jobs()[held.job].phases;
        let may_run = |&(phase, task): &(usize, usize)| {
            host.is_none_or(|host| !phases[phase].tasks[task].is_on(host))
        };
        let place = held.tasks.iter().position(may_run);
        let offered = place.map(|place| (place, held.tasks[place].0));
        let before = std::mem::replace(&mut held.offered, offered);
        let (old, new) = (
            before.map(|(_, phase)| phase),
            offered.map(|(_, phase)| phase),
        );
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.demands.withdraw(&phases[old].demand, offerer);
        }
        if let Some(new) = new {
            self.demands.offer(&phases[new].demand, offerer);
        }
    }
}

struct Pass<'a> {
    board: &'a mut Board,
    params: &'a DollyMp,
    pass: u32,
    /// Capacity that clones may still take.
    clone_capacity: Option<CpuMem>,
    levels: Vec<Level>,
    /// No offer takes less of either resource. A server with less free capacity is skipped, unless
    /// a smaller demand is offered.
    least: CpuMem,
    /// Where copies are kept apart: server, level and offerer of each task that is on one.
    apart: Vec<(u64, usize, usize)>,
}

impl<'a> Pass<'a> {
    fn new(
        board: &'a mut Board,
        level: &BTreeMap<u64, u32>,
        params: &'a DollyMp,
        pass: u32,
    ) -> Self {
        let mut offerers: BTreeMap<u32, Vec<Offerer>> = BTreeMap::new();
        for (position, job) in board.jobs().iter().enumerate() {
            let tasks = offered_tasks(board, position, pass);
            if let (Some(&level), false) = (level.get(&job.id), tasks.is_empty()) {
                offerers.entry(level).or_default().push(Offerer {
                    job: position,
                    tasks,
                    offered: None,
                });
            }
        }
        let levels = offerers.into_values();
        let levels: Vec<Level> = levels.map(|jobs| Level::new(board, jobs)).collect();
        let budget = params.clone_budget.filter(|_| pass > 0);
        Self {
            clone_capacity: budget
                .map(|share| board.total().times(share).minus(&board.clones_take())),
            least: least(&levels),
            apart: if params.distinct {
                places_of_copies(board, &levels)
            } else {
                Vec::new()
            },
            board,
            params,
            pass,
            levels,
        }
    }

    /// Starts the offers that fit on one server, level by level.
    fn fill(&mut self, server: usize, launched: &mut Vec<PassLaunch>) {
        let Server { id: host, free, .. } = self.board.servers()[server];
        let apart = self.apart_on(host);
        if apart.is_empty() && !self.least.fits(&free) {
            return;
        }
        let before = launched.len();
        self.offer_again(apart.clone(), Some(host));
        for level in 0..self.levels.len() {
            while let Some(offerer) = self.best_offerer(server, level) {
                let Some(start) = self.launch(level, offerer, server) else {
                    break;
                };
                launched.push(start);
            }
        }
        self.offer_again(apart, None);
        if launched.len() > before {
            self.least = least(&self.levels);
        }
    }

    /// The job with the best of the offers that fit.
    fn best_offerer(&mut self, server: usize, level: usize) -> Option<usize> {
        let Server { free, capacity, .. } = self.board.servers()[server];
        let demands = &mut self.levels[level].demands;
        let least = demands.least();
        if !least.fits(&free) {
            return None;
        }
        let mut limit = free.largest_that_fits();
        if let Some(budget) = &self.clone_capacity {
            if !least.fits(budget) {
                return None;
            }
            limit = limit.least(&budget.largest_that_fits());
        }
        match self.params.fit {
            Fit::Raw => demands.best(&limit, |cpu| free.cpu * cpu, |mem| free.mem * mem),
            Fit::Server => {
                let part = free.share_of(&capacity);
                let cpu = |cpu| part.cpu * share(cpu, capacity.cpu);
                demands.best(&limit, cpu, |mem| part.mem * share(mem, capacity.mem))
            }
        }
    }

    /// Starts the job's offer.
    fn launch(&mut self, level: usize, offerer: usize, server: usize) -> Option<PassLaunch> {
        let held = &mut self.levels[level].offerers[offerer];
        let (place, _) = held.offered?;
        let (job, task) = (held.job, held.tasks.remove(place)?);
        let demand = self.board.demand(job, task.0);
        self.clone_capacity = self.clone_capacity.map(|left| left.minus(&demand));
        let start = PassLaunch {
            pass: self.pass,
            launch: self.board.launch(job, task, server),
        };
        let host = self.params.distinct.then_some(start.launch.server);
        self.levels[level].offer(self.board, offerer, host);
        Some(start)
    }

    /// Jobs with copies on a server temporarily offer what the server may run. Afterwards they
    /// offer again what they offer elsewhere.
    fn offer_again(&mut self, apart: Range<usize>, host: Option<u64>) {
        for &(_, level, offerer) in &self.apart[apart] {
            self.levels[level].offer(self.board, offerer, host);
        }
    }

    fn apart_on(&self, host: u64) -> Range<usize> {
        let begin = self.apart.partition_point(|&(held, ..)| held < host);
        let end = self.apart.partition_point(|&(held, ..)| held <= host);
        begin..end
    }
}

fn least(levels: &[Level]) -> CpuMem {
    least_of(levels.iter().map(|level| level.demands.least()))
}

fn places_of_copies(board: &Board, levels: &[Level]) -> Vec<(u64, usize, usize)> {
    let mut places = Vec::new();
    for (at, level) in levels.iter().enumerate() {
        for (offerer, held) in level.offerers.iter().enumerate() {
            let phases = &board.jobs()[held.job].phases;
            for &(phase, task) in &held.tasks {
                if let Task::Running { hosts } = &phases[phase].tasks[task] {
                    places.extend(hosts.iter().map(|&host| (host, at, offerer)));
                }
            }
        }
    }
    places.sort_unstable();
    places.dedup();
    places
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

#[cfg(test)]
mod naive;

#[cfg(test)]
mod tests;
