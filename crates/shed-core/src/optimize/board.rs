//! The candidates for the next clone, ranked as the mode wants it.

use crate::optimize::greedy::GreedyMode;
use crate::optimize::job_state::JobState;
use crate::optimize::room::Room;
use crate::optimize::tournament::{ABSENT, Tournament};

/// The candidates of all jobs.
pub(super) enum Board {
    /// Jobs by PoCD, and the tasks of each by their own key. A job's tasks are ranked when it is
    /// first served: most never are when room is short. `next` has each ranked job's best task,
    /// found while its ranking is in the caches: to look for it when the job's turn comes would
    /// wait for memory at every level.
    WorstJob {
        key: TaskKey,
        jobs: Tournament,
        tasks: Vec<Option<Tournament>>,
        next: Vec<Option<usize>>,
    },
    /// All tasks by gain for its price. `first[j]` is the place of job j's first task in the
    /// ranking, which counts tasks through all jobs.
    BestTask {
        tasks: Tournament,
        first: Vec<usize>,
        prices: Vec<f64>,
    },
}

/// What orders the tasks of the worst job; smallest first.
#[derive(Debug, Clone, Copy)]
pub(super) enum TaskKey {
    Pocd,
    Gain,
}

impl TaskKey {
    /// [`ABSENT`] for a task that may get no more.
    pub(super) fn of(self, state: &JobState, task: usize) -> f64 {
        if !state.may_receive(task) {
            return ABSENT;
        }
        match self {
            TaskKey::Pocd => state.task_ln_pocd(task),
            TaskKey::Gain => -state.gain(task),
        }
    }

    pub(super) fn rank(self, state: &JobState) -> Tournament {
        let keys = (0..state.tasks()).map(|task| self.of(state, task));
        Tournament::new(keys, state.tasks())
    }
}

impl Board {
    /// Every job but the hopeless ones, which only the papers' algorithm serves.
    pub(super) fn new(states: &[JobState], room: &Room, mode: GreedyMode) -> Self {
        let is_in = |state: &JobState| mode == GreedyMode::Paper || !state.is_hopeless;
        let key = match mode {
            GreedyMode::Paper | GreedyMode::Guarded => TaskKey::Pocd,
            GreedyMode::MaxMin => TaskKey::Gain,
            GreedyMode::Marginal => return Self::best_task(states, room, is_in),
        };
        let keys = states.iter().map(|state| match is_in(state) {
            true => job_key(state),
            false => ABSENT,
        });
        Self::WorstJob {
            key,
            jobs: Tournament::new(keys, states.len()),
            tasks: vec![None; states.len()],
            next: vec![None; states.len()],
        }
    }

    fn best_task(states: &[JobState], room: &Room, is_in: impl Fn(&JobState) -> bool) -> Self {
        let (mut first, mut total) = (Vec::with_capacity(states.len()), 0);
        for state in states {
            first.push(total);
            total += state.tasks();
        }
        let prices: Vec<f64> = (0..states.len()).map(|job| room.price(job)).collect();
        let open = states.iter().zip(&prices);
        let keys = open.flat_map(|(state, &price)| {
            let is_in = is_in(state);
            (0..state.tasks()).map(move |task| match is_in {
                true => priced(TaskKey::Gain.of(state, task), price),
                false => ABSENT,
            })
        });
        Self::BestTask {
            tasks: Tournament::new(keys, total),
            first,
            prices,
        }
    }

    /// The job and the task to serve next.
    pub(super) fn next(&mut self, states: &[JobState]) -> Option<(usize, usize)> {
        match self {
            Self::WorstJob {
                key,
                jobs,
                tasks,
                next,
            } => {
                let job = jobs.best()?;
                if let Some(task) = next.get(job)? {
                    return Some((job, *task));
                }
                let ranked = key.rank(states.get(job)?);
                let task = ranked.best()?;
                *tasks.get_mut(job)? = Some(ranked);
                Some((job, task))
            }
            Self::BestTask { tasks, first, .. } => task_at(first, tasks.best()?),
        }
    }

    /// Ranks `task` and its job by their present state.
    pub(super) fn update(&mut self, job: usize, task: usize, state: &JobState) {
        match self {
            Self::WorstJob {
                key,
                jobs,
                tasks,
                next,
            } => {
                if let (Some(Some(tasks)), Some(next)) = (tasks.get_mut(job), next.get_mut(job)) {
                    tasks.set(task, key.of(state, task));
                    *next = tasks.best();
                }
                jobs.set(job, job_key(state));
            }
            Self::BestTask {
                tasks,
                first,
                prices,
            } => {
                if let (Some(first), Some(&price)) = (first.get(job), prices.get(job)) {
                    tasks.set(first + task, priced(TaskKey::Gain.of(state, task), price));
                }
            }
        }
    }

    pub(super) fn drop_job(&mut self, job: usize, state: &JobState) {
        match self {
            Self::WorstJob { jobs, .. } => jobs.remove(job),
            Self::BestTask { tasks, first, .. } => {
                let first = first.get(job).copied().unwrap_or(0);
                for task in 0..state.tasks() {
                    tasks.remove(first + task);
                }
            }
        }
    }

    /// The jobs that still have candidates, ascending.
    pub(super) fn waiting_jobs(&self) -> Vec<usize> {
        match self {
            Self::WorstJob { jobs, .. } => jobs.indexes().collect(),
            Self::BestTask { tasks, first, .. } => {
                let places = tasks.indexes().filter_map(|place| task_at(first, place));
                let mut jobs: Vec<usize> = places.map(|(job, _)| job).collect();
                jobs.dedup();
                jobs
            }
        }
    }
}

/// [`ABSENT`] for a job of which no task may get more.
pub(super) fn job_key(state: &JobState) -> f64 {
    if state.is_open() {
        state.ln_pocd()
    } else {
        ABSENT
    }
}

/// A gain's key for what it costs. What costs nothing and helps comes first.
fn priced(key: f64, price: f64) -> f64 {
    if key == 0.0 || key == ABSENT {
        key
    } else if price > 0.0 {
        key / price
    } else {
        f64::NEG_INFINITY
    }
}

/// The job and the task at a place that counts tasks through all jobs.
fn task_at(first: &[usize], place: usize) -> Option<(usize, usize)> {
    let job = first.partition_point(|&start| start <= place) - 1;
    Some((job, place - first.get(job)?))
}
