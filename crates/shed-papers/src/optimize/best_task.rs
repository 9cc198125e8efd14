//! Each clone goes to the task that gains most for its price, across all jobs.

use crate::optimize::clone_capacity::CloneCapacity;
use crate::optimize::greedy::{GreedyJob, GreedyOutcome, GreedyStep, Refusal, hopeless_jobs};
use crate::optimize::job_state::JobState;
use crate::optimize::keys::TaskKey;
use crate::optimize::tournament::{ABSENT, Tournament};

/// Hands out clones while anything fits and helps; jobs that are hopeless get none.
pub(super) fn alloc(jobs: &[GreedyJob], capacity: &mut CloneCapacity) -> GreedyOutcome {
    let mut states: Vec<JobState> = jobs.iter().map(|job| JobState::new(job, false)).collect();
    let mut refused = hopeless_jobs(&states);
    let mut board = Board::new(&states, capacity);
    let mut steps = Vec::new();
    while let Some((job, task)) = board.next() {
        let Some(state) = states.get_mut(job) else {
            break;
        };
        // Without the capacity to rescue it, the job's PoCD would stay 0 and the clones would be wasted.
        if capacity.times(job) < state.rescues_needed.max(1) {
            if capacity.is_exhausted() {
                break;
            }
            board.drop_job(job, state);
            refused.push(Refusal::no_capacity(job));
            continue;
        }
        state.give(task);
        steps.push(GreedyStep { job, task });
        capacity.take(job, 1);
        if state.is_open() {
            board.update(job, task, state);
        } else {
            board.drop_job(job, state);
        }
    }
    refused.extend(board.waiting_jobs().into_iter().map(Refusal::no_capacity));
    refused.sort_unstable_by_key(|refusal| refusal.job);
    GreedyOutcome {
        omega: steps.len() as i64,
        jobs: states.iter().map(JobState::outcome).collect(),
        steps,
        refused,
    }
}

/// All tasks by gain. `first[j]` is the position of job j's first task in the ranking, which counts the tasks of all
/// jobs.
struct Board {
    tasks: Tournament,
    first: Vec<usize>,
    prices: Vec<f64>,
}

impl Board {
    fn new(states: &[JobState], capacity: &CloneCapacity) -> Self {
        let (mut first, mut total) = (Vec::with_capacity(states.len()), 0);
        for state in states {
            first.push(total);
            total += state.tasks();
        }
        let prices: Vec<f64> = (0..states.len()).map(|job| capacity.price(job)).collect();
        let keys = states.iter().zip(&prices).flat_map(|(state, &price)| {
            (0..state.tasks()).map(move |task| {
                if state.is_hopeless || !state.is_open() {
                    ABSENT
                } else {
                    priced(TaskKey::Gain.of(state, task), price)
                }
            })
        });
        Self {
            tasks: Tournament::new(keys, total),
            first,
            prices,
        }
    }

    /// The job and the task to serve next.
    fn next(&self) -> Option<(usize, usize)> {
        self.at(self.tasks.best()?)
    }

    /// Ranks `task` by its present state.
    fn update(&mut self, job: usize, task: usize, state: &JobState) {
        if let (Some(first), Some(&price)) = (self.first.get(job), self.prices.get(job)) {
            let key = priced(TaskKey::Gain.of(state, task), price);
            self.tasks.set(first + task, key);
        }
    }

    fn drop_job(&mut self, job: usize, state: &JobState) {
        let first = self.first.get(job).copied().unwrap_or(0);
        for task in 0..state.tasks() {
            self.tasks.remove(first + task);
        }
    }

    /// The jobs that still have candidates, ascending.
    fn waiting_jobs(&self) -> Vec<usize> {
        let places = self.tasks.indexes().filter_map(|place| self.at(place));
        let mut jobs: Vec<usize> = places.map(|(job, _)| job).collect();
        jobs.dedup();
        jobs
    }

    /// The job and the task at a position that counts the tasks of all jobs.
    fn at(&self, place: usize) -> Option<(usize, usize)> {
        let job = self.first.partition_point(|&start| start <= place) - 1;
        Some((job, place - self.first.get(job)?))
    }
}

/// A gain's key for its price. A clone that helps at no cost comes first.
fn priced(key: f64, price: f64) -> f64 {
    if key == 0.0 || key == ABSENT {
        key
    } else if price > 0.0 {
        key / price
    } else {
        f64::NEG_INFINITY
    }
}
