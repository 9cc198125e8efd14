//! Each clone goes to the job with the lowest PoCD, and in it to the task that is first by its own key.

use crate::optimize::clone_capacity::CloneCapacity;
use crate::optimize::greedy::{GreedyJob, GreedyOutcome, GreedyStep, JobOutcome, Refusal};
use crate::optimize::job_state::{Granted, JobState, is_impossible};
use crate::optimize::keys::{TaskKey, job_key};
use crate::optimize::tournament::{ABSENT, Tournament};

/// The least number of clones of a job that are computed together.
const AHEAD_MIN: usize = 8;

/// One more clone is computed for this many tasks, which have to be examined for it.
const TASKS_PER_AHEAD: usize = 16;

/// Hands out clones while anything fits. `guarded` excludes hopeless jobs and those that the capacity cannot make
/// possible.
///
/// The order in which a job's tasks are served does not depend on other jobs, and turns change from job to job with
/// every clone. Several clones of a job are therefore computed together at a [`Desk`], and little has to be kept in
/// between. Fetching a whole job from memory for each clone would take longer than the computation itself.
/// take longer than the work itself.
pub(super) fn alloc(
    jobs: &[GreedyJob],
    key: TaskKey,
    guarded: bool,
    capacity: &mut CloneCapacity,
) -> GreedyOutcome {
    let mut desk = Desk::new(key, !guarded);
    let opened = (0..).zip(jobs).map(|(at, job)| {
        // Most jobs get half of an equal share.
        desk.open(job, share(capacity.times(at), jobs.len()) / 2)
    });
    let (mut files, mut queues): (Vec<File>, Vec<Queue>) = opened.unzip();
    let keys = files.iter().map(|file| file.key);
    let mut waiting = Tournament::new(keys, jobs.len());
    let mut in_turn = waiting.indexes().count();
    let lost = (0..).zip(&files).filter(|(_, file)| file.is_lost);
    let mut refused: Vec<Refusal> = lost.map(|(job, _)| Refusal::hopeless(job)).collect();
    let mut steps = Vec::new();
    while let Some(job) = waiting.best() {
        let (Some(file), Some(queue)) = (files.get_mut(job), queues.get_mut(job)) else {
            break;
        };
        let fits = capacity.times(job);
        // Without the capacity to rescue it, the job's PoCD would stay 0 and the clones would be wasted.
        let least = if guarded { queue.rescues_needed } else { 1 };
        if fits < least.max(1) {
            if capacity.is_exhausted() {
                break;
            }
            waiting.remove(job);
            in_turn -= 1;
            refused.push(Refusal::no_capacity(job));
            continue;
        }
        if queue.is_used_up() {
            desk.continue_with(file, queue, fits, in_turn);
        }
        let Some(clone) = queue.take() else {
            break;
        };
        let task = clone.task;
        steps.push(GreedyStep { job, task });
        capacity.take(job, 1);
        waiting.set(job, clone.key_after);
        in_turn -= usize::from(clone.key_after >= ABSENT);
    }
    refused.extend(waiting.indexes().map(Refusal::no_capacity));
    refused.sort_unstable_by_key(|refusal| refusal.job);
    let outcomes = files.into_iter().zip(&queues);
    GreedyOutcome {
        omega: steps.len() as i64,
        jobs: outcomes.map(|(file, queue)| file.outcome(queue)).collect(),
        steps,
        refused,
    }
}

/// The number of clones per job in an equal split of the capacity.
fn share(fits: i64, jobs: usize) -> usize {
    usize::try_from(fits).unwrap_or(0) / jobs.max(1)
}

/// The clones of a job that were computed last.
#[derive(Default)]
struct Queue {
    ahead: Vec<Served>,
    /// The number of them that are handed out.
    taken: usize,
    /// The next clone, fetched early to avoid a wait for memory at its turn.
    next: Option<Served>,
    /// The rescues that the job still needs with all of them.
    rescues_needed: i64,
}

#[derive(Debug, Clone, Copy)]
struct Served {
    task: usize,
    /// The job's key with the clone.
    key_after: f64,
}

impl Queue {
    fn is_used_up(&self) -> bool {
        self.next.is_none()
    }

    fn take(&mut self) -> Option<Served> {
        let clone = self.next?;
        self.taken += 1;
        self.next = self.ahead.get(self.taken).copied();
        Some(clone)
    }
}

/// The data of a job while it is not at the desk.
struct File<'a> {
    job: &'a GreedyJob,
    /// Per task, with all clones that were computed; `keys` only if they are costly to compute.
    clones: Vec<u32>,
    ln_pocds: Vec<f64>,
    keys: Vec<f64>,
    /// The job's ln PoCD without any clone, without those of the queue, and with all.
    ln_pocd_before: f64,
    ln_pocd_behind: f64,
    ln_pocd: f64,
    /// The job's key without any clone.
    key: f64,
    /// Whether the job gets no clone because it is hopeless.
    is_lost: bool,
}

impl File<'_> {
    /// Records the clone that a task was given last.
    fn note(&mut self, task: usize, state: &JobState, key: f64) {
        if let Some(clones) = self.clones.get_mut(task) {
            *clones += 1;
        }
        if let Some(ln_pocd) = self.ln_pocds.get_mut(task) {
            *ln_pocd = state.task_ln_pocd(task);
        }
        if let Some(held) = self.keys.get_mut(task) {
            *held = key;
        }
    }

    /// The outcome without the clones that were computed in vain.
    fn outcome(mut self, queue: &Queue) -> JobOutcome {
        let (taken, rest) = queue.ahead.split_at(queue.taken.min(queue.ahead.len()));
        for clone in rest {
            if let Some(clones) = self.clones.get_mut(clone.task) {
                *clones -= 1;
            }
        }
        let ln_pocd_after = match (taken.last(), rest.is_empty()) {
            (_, true) => self.ln_pocd,
            // A job that gets more clones has its ln PoCD as key.
            (Some(last), false) => last.key_after,
            (None, false) => self.ln_pocd_behind,
        };
        JobOutcome {
            clones: self.clones,
            ln_pocd_before: self.ln_pocd_before,
            ln_pocd_after,
        }
    }
}

/// The workspace for one job at a time, always in the same memory.
struct Desk {
    state: JobState,
    /// The job's tasks, ranked.
    tasks: Tournament,
    key: TaskKey,
    useless_too: bool,
}

impl Desk {
    fn new(key: TaskKey, useless_too: bool) -> Self {
        Self {
            state: JobState::default(),
            tasks: Tournament::new([], 0),
            key,
            useless_too,
        }
    }

    /// A job's file, and its first clones if computing `ahead` of them is worthwhile.
    fn open<'a>(&mut self, job: &'a GreedyJob, ahead: usize) -> (File<'a>, Queue) {
        let state = &mut self.state;
        state.load(job, self.useless_too, Granted::default());
        let ln_pocd = state.ln_pocd();
        let is_lost = state.is_hopeless && !self.useless_too;
        let mut file = File {
            job,
            clones: vec![0; job.tasks.len()],
            ln_pocds: state.task_ln_pocds().collect(),
            keys: Vec::new(),
            ln_pocd_before: ln_pocd,
            ln_pocd_behind: ln_pocd,
            ln_pocd,
            key: if is_lost { ABSENT } else { job_key(state) },
            is_lost,
        };
        let mut queue = Queue {
            rescues_needed: state.rescues_needed,
            ..Queue::default()
        };
        // An impossible job may be refused.
        if ahead >= AHEAD_MIN && !is_impossible(ln_pocd) && self.state.is_open() {
            self.work_ahead(&mut file, &mut queue, ahead.min(job.tasks.len()));
        }
        (file, queue)
    }

    /// Computes the job's next clones: about as many as it will get when `in_turn` jobs compete for the capacity, in
    /// which `fits` of its clones fit. The job may be impossible before some of them. This does not matter, because
    /// it has its turn until it is possible.
    fn continue_with(&mut self, file: &mut File<'_>, queue: &mut Queue, fits: i64, in_turn: usize) {
        let granted = Granted {
            clones: &file.clones,
            ln_pocds: &file.ln_pocds,
        };
        self.state.load(file.job, self.useless_too, granted);
        let tasks = file.job.tasks.len();
        let ahead = share(fits, in_turn).min(tasks);
        let ahead = ahead.max(AHEAD_MIN).max(tasks / TASKS_PER_AHEAD);
        self.work_ahead(file, queue, ahead.min(share(fits, 1)));
    }

    /// Computes clones of the job that is loaded.
    fn work_ahead(&mut self, file: &mut File<'_>, queue: &mut Queue, clones: usize) {
        let Self {
            state, tasks, key, ..
        } = self;
        if key.is_costly() {
            if file.keys.is_empty() {
                file.keys.extend(key.all(state));
            }
            tasks.refill(file.keys.iter().copied(), state.tasks());
        } else {
            tasks.refill(key.all(state), state.tasks());
        }
        file.ln_pocd_behind = file.ln_pocd;
        queue.ahead.clear();
        queue.taken = 0;
        for _ in 0..clones {
            let Some(task) = tasks.best() else {
                break;
            };
            state.give(task);
            let key = key.of(state, task);
            tasks.set(task, key);
            file.note(task, state, key);
            let key_after = job_key(state);
            queue.ahead.push(Served { task, key_after });
            // With enough clones the job takes no more.
            if key_after >= ABSENT {
                break;
            }
        }
        file.ln_pocd = state.ln_pocd();
        queue.next = queue.ahead.first().copied();
        queue.rescues_needed = state.rescues_needed;
    }
}
