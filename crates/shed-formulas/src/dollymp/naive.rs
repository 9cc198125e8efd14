//! DollyMP's round as one would write it down: every offer of a level is weighed for every copy
//! that starts. Slow and obviously right; the fast one is compared with it.

use std::collections::{BTreeMap, VecDeque};

use crate::board::Board;
use crate::cluster::{CpuMem, Server};
use crate::dollymp::{DollyMp, Fit, PassLaunch, offered_tasks};
use shed_papers::formulas::first_largest;

/// As [`super::round`].
pub(crate) fn round(
    board: &mut Board,
    level: &BTreeMap<u64, u32>,
    params: &DollyMp,
) -> Vec<PassLaunch> {
    let mut launched = Vec::new();
    for pass in 0..=params.clones {
        let mut pass = Pass::new(board, level, params, pass);
        for server in 0..pass.board.servers().len() {
            pass.fill(server, &mut launched);
        }
    }
    launched
}

struct Offerer {
    job: usize,
    tasks: VecDeque<(usize, usize)>,
}

struct Pass<'a> {
    board: &'a mut Board,
    params: &'a DollyMp,
    pass: u32,
    clone_capacity: Option<CpuMem>,
    levels: Vec<Vec<Offerer>>,
}

impl<'a> Pass<'a> {
    fn new(
        board: &'a mut Board,
        level: &BTreeMap<u64, u32>,
        params: &'a DollyMp,
        pass: u32,
    ) -> Self {
        let mut levels: BTreeMap<u32, Vec<Offerer>> = BTreeMap::new();
        for (position, job) in board.jobs().iter().enumerate() {
            if let Some(&level) = level.get(&job.id) {
                let tasks = offered_tasks(board, position, pass);
                let level = levels.entry(level).or_default();
                level.push(Offerer {
                    job: position,
                    tasks,
                });
            }
        }
        let budget = params.clone_budget.filter(|_| pass > 0);
        let clone_capacity =
            budget.map(|share| board.total().times(share).minus(&board.clones_take()));
        Self {
            board,
            params,
            pass,
            clone_capacity,
            levels: levels.into_values().collect(),
        }
    }

    fn fill(&mut self, server: usize, launched: &mut Vec<PassLaunch>) {
        for level in 0..self.levels.len() {
            while let Some((offerer, place)) = self.best_offer(server, level) {
                let held = &mut self.levels[level][offerer];
                let (job, task) = (held.job, held.tasks.remove(place).unwrap());
                let demand = self.board.demand(job, task.0);
                self.clone_capacity = self.clone_capacity.map(|left| left.minus(&demand));
                launched.push(PassLaunch {
                    pass: self.pass,
                    launch: self.board.launch(job, task, server),
                });
            }
        }
    }

    fn best_offer(&self, server: usize, level: usize) -> Option<(usize, usize)> {
        let host = &self.board.servers()[server];
        let offers = self.levels[level].iter().enumerate();
        first_largest(offers.filter_map(|(position, offerer)| {
            let place = self.offer(offerer, host)?;
            let demand = self.board.demand(offerer.job, offerer.tasks[place].0);
            let in_budget = self.clone_capacity.is_none_or(|left| demand.fits(&left));
            let fits = demand.fits(&host.free) && in_budget;
            fits.then(|| (fit(self.params.fit, &demand, host), (position, place)))
        }))
    }

    fn offer(&self, offerer: &Offerer, host: &Server) -> Option<usize> {
        let job = &self.board.jobs()[offerer.job];
        let may_run = |&(phase, task): &(usize, usize)| {
            !(self.params.distinct && job.phases[phase].tasks[task].is_on(host.id))
        };
        offerer.tasks.iter().position(may_run)
    }
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
