//! One round of each baseline that orders and places first attempts: FIFO, SRPT, SVF, DRF, Tetris,
//! Capacity, Carbyne. None of them clones.
//!
//! DollyMP describes DRF, Tetris, SRPT and SVF in a sentence each, and Capacity and Carbyne in
//! less. The details follow common practice. Starts are one by one and only of ready phases. The
//! *candidate* of a job is its first pending task; *first fit* takes the first server with enough
//! capacity.

use crate::board::Board;
use crate::cluster::{CpuMem, Launch};
use crate::dag::{DagError, Job, Phase};
use crate::levels::{remaining_time, volume};
use shed_core::estimate::compare::{at_most, sort_with_ties};
use shed_papers::formulas::first_largest;

/// The positions of the jobs of `board` by arrival.
pub fn by_arrival(board: &Board) -> Vec<usize> {
    by_key(board, |job| job.arrival)
}

/// The positions of the jobs of `board` by e(t), the shortest remaining time first; `rho` weighs
/// the standard deviation.
///
/// # Errors
///
/// [`DagError`] if the phases of a job are no partial order.
pub fn by_remaining_time(board: &Board, rho: f64) -> Result<Vec<usize>, DagError> {
    let times: Result<Vec<f64>, DagError> = board
        .jobs()
        .iter()
        .map(|job| remaining_time(job, rho, 1.0))
        .collect();
    let times = times?;
    let mut order: Vec<usize> = (0..times.len()).collect();
    sort_with_ties(&mut order, |&job| times[job], |&job| job);
    Ok(order)
}

/// The positions of the jobs of `board` by v(t), the smallest volume first.
pub fn by_volume(board: &Board, rho: f64) -> Vec<usize> {
    by_key(board, |job| volume(job, board.total(), rho, 1.0))
}

/// Jobs lie by id on the board, so that their position ends a tie as their id does.
fn by_key(board: &Board, key: impl Fn(&Job) -> f64) -> Vec<usize> {
    let keys: Vec<f64> = board.jobs().iter().map(key).collect();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    sort_with_ties(&mut order, |&job| keys[job], |&job| job);
    order
}

/// FIFO, SRPT and SVF: job by job in `order`, all ready phases by position, first fit.
///
/// With `backfill` a phase that fits nowhere is skipped and the next one continues. Without it, the
/// first task that fits nowhere ends the round. O(tasks · log servers) as a rule.
pub fn in_order(board: &mut Board, order: &[usize], backfill: bool) -> Vec<Launch> {
    let mut launched = Vec::new();
    for &job in order {
        let mut full_phase = None;
        let waiting: Vec<(usize, usize)> = board.waiting(job).collect();
        for task in waiting {
            if full_phase == Some(task.0) {
                continue;
            }
            match board.first_fit(&board.demand(job, task.0)) {
                Some(server) => launched.push(board.launch(job, task, server)),
                None if backfill => full_phase = Some(task.0),
                None => return launched,
            }
        }
    }
    launched
}

/// DRF: always starts the candidate of the job whose running copies have the smallest dominant
/// share, if it fits somewhere. Ties go to the earlier arrival, then the smaller id. Equal weights.
pub fn drf(board: &mut Board) -> Vec<Launch> {
    let starts = drf_starts(board);
    starts.into_iter().map(|start| start.launch).collect()
}

/// A start with the positions that take it back.
struct Start {
    job: usize,
    task: (usize, usize),
    server: usize,
    launch: Launch,
}

fn drf_starts(board: &mut Board) -> Vec<Start> {
    let mut starts = Vec::new();
    let mut active = by_arrival(board);
    let mut shares: Vec<f64> = (0..board.jobs().len())
        .map(|job| board.dominant_share(job))
        .collect();
    while let Some(job) = first_largest(active.iter().map(|&job| (-shares[job], job))) {
        let fitting = board.candidate(job).and_then(|task| {
            let server = board.first_fit(&board.demand(job, task.0))?;
            Some((task, server))
        });
        // Capacity only shrinks in a round, so a candidate that fits nowhere now never will.
        let Some((task, server)) = fitting else {
            active.retain(|&other| other != job);
            continue;
        };
        let launch = board.launch(job, task, server);
        shares[job] = board.dominant_share(job);
        starts.push(Start {
            job,
            task,
            server,
            launch,
        });
    }
    starts
}

/// How Tetris weighs the work that is left of a job, p, against the alignment a of its candidate
/// with the server. ε balances their means over the jobs that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TetrisScore {
    /// a + ε·p, as DollyMP §2 writes it; favors long jobs.
    Plus,
    /// a − ε·p: the shortest remaining first. Contradicts DollyMP's Figure 2.
    Minus,
    /// a + ε/p: the shortest remaining first, and in agreement with Figure 2.
    #[default]
    Inverse,
}

/// Tetris: server by server, always starts the fitting candidate with the largest score, until none
/// fits. Ties go to the smaller id. With `fairness` f only the ⌈(1−f)·n⌉ jobs with the smallest
/// dominant shares are compared, at least one.
pub fn tetris(board: &mut Board, score: TetrisScore, fairness: f64) -> Vec<Launch> {
    let mut launched = Vec::new();
    let work: Vec<f64> = board
        .jobs()
        .iter()
        .map(|job| work_left(job, board.total()))
        .collect();
    for server in 0..board.servers().len() {
        loop {
            let mut fitting = candidates_on(board, server);
            keep_poorest(board, &mut fitting, fairness);
            let Some((job, task)) = best_aligned(board, server, &fitting, score, &work) else {
                break;
            };
            launched.push(board.launch(job, task, server));
        }
    }
    launched
}

/// p = Σ n(t)·θ·(c/ΣC + m/ΣM), the work that is left of a job.
fn work_left(job: &Job, total: &CpuMem) -> f64 {
    let of_phase = |phase: &Phase| {
        phase.unfinished() as f64 * phase.theta * phase.demand.share_of(total).sum()
    };
    job.phases.iter().map(of_phase).sum()
}

/// A job's position and its candidate.
type Candidate = (usize, (usize, usize));

fn candidates_on(board: &Board, server: usize) -> Vec<Candidate> {
    let free = board.servers()[server].free;
    (0..board.jobs().len())
        .filter_map(|job| Some((job, board.candidate(job)?)))
        .filter(|&(job, (phase, _))| board.demand(job, phase).fits(&free))
        .collect()
}

fn keep_poorest(board: &Board, candidates: &mut Vec<Candidate>, fairness: f64) {
    if fairness <= 0.0 {
        return;
    }
    let share = |candidate: &Candidate| board.dominant_share(candidate.0);
    sort_with_ties(candidates, share, |candidate| candidate.0);
    let exact = (1.0 - fairness) * candidates.len() as f64;
    // A product such as (1 − 0.9)·10 must not be rounded up for its last digit.
    let kept = (exact - 1e-9).ceil().max(1.0) as usize;
    candidates.truncate(kept);
    candidates.sort_unstable();
}

fn best_aligned(
    board: &Board,
    server: usize,
    candidates: &[Candidate],
    score: TetrisScore,
    work: &[f64],
) -> Option<Candidate> {
    let host = &board.servers()[server];
    let free = host.free.share_of(&host.capacity);
    let alignment = |&(job, (phase, _)): &Candidate| {
        let demand = board.demand(job, phase).share_of(&host.capacity);
        demand.dot(&free)
    };
    // Means over the same jobs: their ratio is the ratio of the sums.
    let sum = |of: &dyn Fn(&Candidate) -> f64| -> f64 { candidates.iter().map(of).sum() };
    let weight = |candidate: &Candidate| match score {
        TetrisScore::Plus => work[candidate.0],
        TetrisScore::Minus => -work[candidate.0],
        TetrisScore::Inverse => 1.0 / work[candidate.0],
    };
    let epsilon = sum(&alignment) / sum(&weight).abs();
    let scored = candidates.iter().map(|candidate| {
        let weighted = epsilon * weight(candidate);
        let value = alignment(candidate) + if weighted.is_nan() { 0.0 } else { weighted };
        (value, *candidate)
    });
    first_largest(scored)
}

/// A queue of the capacity scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Its name; jobs name it.
    pub name: String,
    /// The share of the cluster that it is meant to have.
    pub capacity: f64,
    /// The share of the cluster that it may have.
    pub max: f64,
}

/// Capacity: server by server, always serves the queue with the least dominant share relative to
/// its capacity, ties by name. In the queue it starts the first job, by arrival and id, whose
/// candidate fits and keeps the queue within its maximum. Jobs of unknown queues do not start.
/// Without any queue all jobs are in one queue without a limit. No reservations, no preemption.
pub fn capacity(board: &mut Board, queues: &[Queue]) -> Vec<Launch> {
    let mut queues = queue_states(board, queues);
    let mut launched = Vec::new();
    for server in 0..board.servers().len() {
        while let Some((queue, (job, task))) = next_of_queues(board, &queues, server) {
            queues[queue].used = queues[queue].used.plus(&board.demand(job, task.0));
            launched.push(board.launch(job, task, server));
        }
    }
    launched
}

struct QueueState {
    capacity: f64,
    max: f64,
    used: CpuMem,
    /// Positions of its jobs by arrival.
    jobs: Vec<usize>,
}

/// The queues by name.
fn queue_states(board: &Board, queues: &[Queue]) -> Vec<QueueState> {
    let order = by_arrival(board);
    let state = |capacity: f64, max: f64, is_in: &dyn Fn(&Job) -> bool| {
        let all = board.jobs().iter().chain(board.left_out());
        let usages = all.filter(|job| is_in(job)).map(Job::usage);
        let in_queue = |job: &usize| is_in(&board.jobs()[*job]);
        QueueState {
            capacity,
            max,
            used: usages.fold(CpuMem::default(), |sum, usage| sum.plus(&usage)),
            jobs: order.iter().copied().filter(in_queue).collect(),
        }
    };
    if queues.is_empty() {
        return vec![state(1.0, 1.0, &|_| true)];
    }
    let mut named: Vec<&Queue> = queues.iter().collect();
    named.sort_by(|a, b| a.name.cmp(&b.name));
    named
        .into_iter()
        .map(|queue| state(queue.capacity, queue.max, &|job| job.queue == queue.name))
        .collect()
}

fn next_of_queues(
    board: &Board,
    queues: &[QueueState],
    server: usize,
) -> Option<(usize, Candidate)> {
    let share = |used: &CpuMem| used.share_of(board.total()).largest();
    let free = board.servers()[server].free;
    let mut order: Vec<usize> = (0..queues.len()).collect();
    let relative = |&queue: &usize| share(&queues[queue].used) / queues[queue].capacity;
    sort_with_ties(&mut order, relative, |&queue| queue);
    order.into_iter().find_map(|queue| {
        let QueueState {
            max, used, jobs, ..
        } = &queues[queue];
        let may_start = |job: &usize| {
            let task = board.candidate(*job)?;
            let demand = board.demand(*job, task.0);
            let within = at_most(share(&used.plus(&demand)), *max);
            (demand.fits(&free) && within).then_some((*job, task))
        };
        Some((queue, jobs.iter().find_map(may_start)?))
    })
}

/// Starts of Carbyne.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CarbyneRound {
    /// Starts of each job within its fair share.
    pub fair: Vec<Launch>,
    /// Starts on the capacity that jobs gave back.
    pub leftover: Vec<Launch>,
}

/// Carbyne, simplified. Every job gets its fair share as by [`drf`]. It gives back the attempts of
/// phases whose slack is at least `slot` seconds (by θ, over unfinished phases). The remaining
/// capacity goes to the shortest remaining time first, with backfill.
///
/// # Errors
///
/// [`DagError`] if the phases of a job are no partial order.
pub fn carbyne(board: &mut Board, slot: f64) -> Result<CarbyneRound, DagError> {
    let mut round = CarbyneRound::default();
    let chains: Result<Vec<_>, DagError> = board
        .jobs()
        .iter()
        .map(|job| job.chains(|phase| phase.theta))
        .collect();
    let chains = chains?;
    for start in drf_starts(board) {
        if at_most(slot, chains[start.job].slack(start.task.0)) {
            board.withdraw(start.job, start.task, start.server);
        } else {
            round.fair.push(start.launch);
        }
    }
    let order = by_remaining_time(board, 0.0)?;
    round.leftover = in_order(board, &order, true);
    Ok(round)
}

#[cfg(test)]
mod tests;
