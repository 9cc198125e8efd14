//! The greedy's result, updated incrementally: when one task or the capacity changes, only the affected decisions are
//! made again.

use crate::optimize::greedy::{
    GreedyInput, GreedyJob, GreedyMode, GreedyTask, JobOutcome, Refusal, RefusalReason,
};
use crate::optimize::job_state::JobState;
use crate::optimize::keys::{TaskKey, job_key};
use crate::optimize::tournament::{ABSENT, TIE, Tournament};

/// [`crate::optimize::greedy::alloc_task`] as a state that changes. After every change its clones equal those that
/// `alloc_task` computes from scratch, ties included.
///
/// Every mode merges *queues* and takes the κ clones of the lowest keys. A queue has the clones of a job in its own
/// order, or in `Marginal` those of a task, and its keys never fall. The clones taken are a prefix of each queue. A
/// change of one queue therefore affects the others only by the number of clones that it takes or leaves.
///
/// Ties matter near the last key that was taken. There clones are returned up to the next gap wider than a tie, and
/// handed out again by the greedy's own rule. The greedy passes through that state, because it takes everything
/// before a gap before anything after it.
///
/// Targets ([`GreedyJob::ln_pocd_target`]) are assumed absent. A job that reaches its target ends all its queues at
/// once, so the clones taken would no longer be a prefix by key.
///
/// A change costs O(clones moved · log S), plus O(jobs) and O(tasks of the job). It is as slow as starting from
/// scratch if very many keys tie at the end of the capacity.
#[derive(Debug, Clone)]
pub struct Incremental {
    input: GreedyInput,
    mode: GreedyMode,
    jobs: Vec<Job>,
    /// The key of each queue's next clone, and minus the key of the last one taken.
    next: Tournament,
    last: Tournament,
    omega: i64,
}

/// A job with its clones.
#[derive(Debug, Clone)]
struct Job {
    state: JobState,
    order: Order,
    /// The job's first queue.
    first: usize,
    /// Refused permanently: hopeless, or the capacity is too small to make the job possible.
    refused: Option<RefusalReason>,
    /// The number of clones that make the job possible, counted before any is given.
    rescues: i64,
}

/// The order of a job's clones.
#[derive(Debug, Clone)]
enum Order {
    /// One queue for the job: its tasks ranked by their own key, and the clones taken, each with its task and the
    /// job's key before.
    OfJob {
        key: TaskKey,
        tasks: Tournament,
        taken: Vec<(usize, f64)>,
    },
    /// One queue per task.
    OfTasks,
}

impl Incremental {
    /// From scratch. O(S + κ log S).
    pub fn new(mut input: GreedyInput, mode: GreedyMode) -> Self {
        for job in &mut input.jobs {
            job.ln_pocd_target = f64::INFINITY;
        }
        let mut jobs = Vec::with_capacity(input.jobs.len());
        let mut queues = 0;
        for job in &input.jobs {
            let job = Job::new(job, mode, queues);
            queues += job.queues();
            jobs.push(job);
        }
        let next = jobs.iter().flat_map(Job::next_keys);
        let mut all = Self {
            next: Tournament::new(next, queues),
            last: Tournament::new([], queues),
            input,
            mode,
            jobs,
            omega: 0,
        };
        all.replan();
        all
    }

    /// Sets another κ.
    pub fn set_kappa(&mut self, kappa: i64) {
        self.input.kappa = kappa;
        self.replan();
    }

    /// Updates the facts about a task. A position that does not exist is ignored.
    pub fn set_task(&mut self, job: usize, task: usize, known: GreedyTask) {
        let inputs = self.input.jobs.get_mut(job);
        let held = inputs.and_then(|inputs| inputs.tasks.get_mut(task));
        let Some(held) = held else {
            return;
        };
        *held = known;
        let level = self.next.lowest();
        if let (Some(inputs), Some(held)) = (self.input.jobs.get(job), self.jobs.get_mut(job)) {
            self.omega -= held.granted();
            let old = std::mem::replace(held, Job::new(inputs, self.mode, held.first));
            if old.refused == Some(RefusalReason::Capacity) && held.rescues > 0 {
                held.refused = held.refused.or(old.refused);
            }
            held.restore(&old, task, level);
            self.omega += held.granted();
            self.rank(job);
        }
        self.replan();
    }

    /// ω: the clones handed out.
    pub fn omega(&self) -> i64 {
        self.omega
    }

    /// The job's clones; absent if there is no such job.
    pub fn job(&self, job: usize) -> Option<JobOutcome> {
        self.jobs.get(job).map(|job| job.state.outcome())
    }

    /// The refused jobs, ascending.
    pub fn refused(&self) -> Vec<Refusal> {
        let is_full = self.omega >= self.input.kappa;
        let jobs = self.jobs.iter().enumerate();
        jobs.filter_map(|(job, held)| {
            let waits = is_full && held.state.is_open();
            let reason = held.refused.or(waits.then_some(RefusalReason::Capacity))?;
            Some(Refusal { job, reason })
        })
        .collect()
    }

    fn replan(&mut self) {
        self.refuse_lost_jobs();
        while self.omega > self.input.kappa.max(0) || self.is_unsettled() {
            let Some(queue) = self.last.best() else {
                break;
            };
            self.serve(queue, -1);
        }
        while self.omega < self.input.kappa {
            let Some(queue) = self.next.best() else {
                break;
            };
            self.serve(queue, 1);
        }
    }

    /// Whether the last clone taken and the first one not taken are within twice a tie. Twice, so that rounding
    /// within a queue cannot matter.
    fn is_unsettled(&self) -> bool {
        let (last, next) = (-self.last.lowest(), self.next.lowest());
        if next >= ABSENT || last <= -ABSENT {
            return false;
        }
        if next.is_infinite() {
            return true;
        }
        next - last <= 2.0 * TIE * last.abs().max(next.abs())
    }

    /// Impossible jobs come first, in their order. Each takes the clones that make it possible if the capacity still
    /// suffices; otherwise it gets nothing at all. As printed in the paper, they take in any case.
    fn refuse_lost_jobs(&mut self) {
        if self.mode == GreedyMode::Paper {
            return;
        }
        let mut room = self.input.kappa.max(0);
        for job in 0..self.jobs.len() {
            let level = self.next.lowest();
            let (Some(inputs), Some(held)) = (self.input.jobs.get(job), self.jobs.get_mut(job))
            else {
                return;
            };
            if held.rescues == 0 || held.refused == Some(RefusalReason::Hopeless) {
                continue;
            }
            let is_lost = held.rescues > room;
            if !is_lost {
                room -= held.rescues;
            }
            if is_lost == held.refused.is_some() {
                continue;
            }
            self.omega -= held.granted();
            *held = Job::new(inputs, self.mode, held.first);
            held.refused = is_lost.then_some(RefusalReason::Capacity);
            held.catch_up(level);
            self.omega += held.granted();
            self.rank(job);
        }
    }

    /// Takes (1) or returns (−1) one clone of a queue.
    fn serve(&mut self, queue: usize, clones: i64) {
        self.omega += clones;
        let job = self.jobs.partition_point(|job| job.first <= queue) - 1;
        if let Some(held) = self.jobs.get_mut(job) {
            let place = queue - held.first;
            if clones > 0 {
                held.take(place);
            } else {
                held.give_back(place);
            }
            self.rank_queue(job, place);
        }
    }

    fn rank(&mut self, job: usize) {
        let places = self.jobs.get(job).map_or(0, Job::queues);
        for place in 0..places {
            self.rank_queue(job, place);
        }
    }

    fn rank_queue(&mut self, job: usize, place: usize) {
        if let Some(held) = self.jobs.get(job) {
            self.next.set(held.first + place, held.next_key(place));
            // A key of −∞ can be returned too, after everything else.
            let last = held.last_key(place).map(|key| -key.max(f64::MIN));
            self.last.set(held.first + place, last.unwrap_or(ABSENT));
        }
    }
}

impl Job {
    fn new(job: &GreedyJob, mode: GreedyMode, first: usize) -> Self {
        let state = JobState::new(job, mode == GreedyMode::Paper);
        let of_job = |key: TaskKey| Order::OfJob {
            tasks: key.rank(&state),
            key,
            taken: Vec::new(),
        };
        let order = match mode {
            GreedyMode::Paper | GreedyMode::Guarded => of_job(TaskKey::Pocd),
            GreedyMode::MaxMin => of_job(TaskKey::Gain),
            GreedyMode::Marginal => Order::OfTasks,
        };
        let is_refused = state.is_hopeless && mode != GreedyMode::Paper;
        Self {
            rescues: state.rescues_needed,
            refused: is_refused.then_some(RefusalReason::Hopeless),
            state,
            order,
            first,
        }
    }

    fn queues(&self) -> usize {
        match self.order {
            Order::OfJob { .. } => 1,
            Order::OfTasks => self.state.tasks(),
        }
    }

    fn next_keys(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.queues()).map(|place| self.next_key(place))
    }

    /// The key of the queue's next clone, [`ABSENT`] if it has none.
    fn next_key(&self, place: usize) -> f64 {
        if self.refused.is_some() {
            return ABSENT;
        }
        match self.order {
            Order::OfJob { .. } => job_key(&self.state),
            Order::OfTasks => TaskKey::Gain.of(&self.state, place),
        }
    }

    /// The key with which the queue's last clone was taken.
    fn last_key(&self, place: usize) -> Option<f64> {
        match &self.order {
            Order::OfJob { taken, .. } => taken.last().map(|&(_, key)| key),
            Order::OfTasks => self.state.last_gain(place).map(|gain| -gain),
        }
    }

    fn granted(&self) -> i64 {
        self.state.clones().into_iter().map(i64::from).sum()
    }

    fn take(&mut self, place: usize) {
        let before = self.state.ln_pocd();
        match &mut self.order {
            Order::OfJob { key, tasks, taken } => {
                if let Some(task) = tasks.best() {
                    taken.push((task, before));
                    self.state.give(task);
                    tasks.set(task, key.of(&self.state, task));
                }
            }
            Order::OfTasks => self.state.give(place),
        }
    }

    fn give_back(&mut self, place: usize) {
        match &mut self.order {
            Order::OfJob { key, tasks, taken } => {
                if let Some((task, _)) = taken.pop() {
                    self.state.revoke(task);
                    tasks.set(task, key.of(&self.state, task));
                }
            }
            Order::OfTasks => self.state.revoke(place),
        }
    }

    /// Takes the clones of `old` whose order the change of `task` does not affect, and those that now come before
    /// `level`.
    fn restore(&mut self, old: &Job, task: usize, level: f64) {
        if matches!(self.order, Order::OfTasks) && self.refused.is_none() {
            for (place, clones) in old.state.clones().into_iter().enumerate() {
                for _ in 0..if place == task { 0 } else { clones } {
                    self.take(place);
                }
            }
        }
        self.catch_up(level);
    }

    /// Takes every clone that comes before `level`, the lowest key that others wait with.
    fn catch_up(&mut self, level: f64) {
        for place in 0..self.queues() {
            while self.next_key(place) < level {
                self.take(place);
            }
        }
    }
}

#[cfg(test)]
#[path = "incremental/tests.rs"]
mod tests;
