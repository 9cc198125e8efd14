//! Shed+ Algorithm 1, steps 3 and 4: which tasks of which jobs get how many clones, one clone at
//! a time. It only counts: it knows nothing of nodes, and kills nothing.

use crate::estimate::pocd::{TaskMiss, probability};
use crate::optimize::ln_sum::LnSum;
use crate::optimize::ranking::Ranking;

/// One task of a job, as far as the optimizer has to know it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GreedyTask {
    /// ln P(all its live attempts miss), clones that live included.
    pub ln_miss_present: f64,
    /// ln P(one further clone, launched now, misses).
    pub ln_miss_per_clone: f64,
    /// Clones that live; they count against MAX.
    pub clones_alive: u32,
    /// Whether it is a straggler, so that it may receive clones.
    pub may_receive_clones: bool,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyJob {
    /// MAX: how many clones a task of the job may have at once.
    pub max_clones: u32,
    /// ln of the product of the PoCDs of all tasks that are not in `tasks`; 0 when there are
    /// none. −∞ makes the job hopeless, and so does what is no number.
    pub ln_pocd_rest: f64,
    /// The job's stragglers, and any other task worth showing one by one.
    pub tasks: Vec<GreedyTask>,
}

/// What is shared out. Jobs past their deadline are not among `jobs` (step 1 kills them).
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyInput {
    /// κ, the room for further clones, see [`crate::optimize::capacity::room_for_clones`].
    pub kappa: i64,
    /// The live jobs; ties go to the first job, then to its first task.
    pub jobs: Vec<GreedyJob>,
}

/// Who is served next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GreedyMode {
    /// As printed: the task with the lowest PoCD of the job with the lowest PoCD. Jobs that no
    /// clone can save have PoCD 0 and swallow the room.
    Paper,
    /// As printed, but clones that can't help are not launched and hopeless jobs get none.
    #[default]
    Guarded,
    /// As guarded, but within the job with the lowest PoCD the task that gains most: maximises
    /// the lowest PoCD exactly.
    MaxMin,
    /// As guarded, but always the task that gains most, across jobs: maximises Σ ln PoCD
    /// exactly, since ln(1 − q^(r+1)) is concave in r and every clone costs one slot.
    Marginal,
}

/// One clone handed out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GreedyStep {
    /// Position of the job in the input.
    pub job: usize,
    /// Position of the task in its job.
    pub task: usize,
    /// What it adds to the job's ln PoCD. +∞ when it makes an impossible job possible, 0 when
    /// the job stays impossible.
    pub gain_ln_pocd: f64,
    /// What it adds to the job's PoCD.
    pub gain_pocd: f64,
}

/// What a job got.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// Further clones per task, in the order of its `tasks`.
    pub clones: Vec<u32>,
    /// ln PoCD with the attempts that live.
    pub ln_pocd_before: f64,
    /// ln PoCD with the further clones.
    pub ln_pocd_after: f64,
}

/// Why a job got fewer clones than MAX allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// A task of it can't be in time whatever number of clones it gets. Never in mode `Paper`.
    Hopeless,
    /// The room ended while it could still receive some, or is too small to make it possible.
    Capacity,
}

/// A job that was refused clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Position of the job in the input.
    pub job: usize,
    /// Why.
    pub reason: RefusalReason,
}

/// The whole distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyOutcome {
    /// ω, the clones handed out; at most κ.
    pub omega: i64,
    /// Per job of the input, in its order.
    pub jobs: Vec<JobOutcome>,
    /// The clones in the order in which they were handed out. Carrying out a prefix of it is
    /// what the optimizer would have done with less room, unless a refusal for capacity differs.
    pub steps: Vec<GreedyStep>,
    /// The refused jobs, ascending.
    pub refused: Vec<Refusal>,
}

/// Hands out at most κ clones by `mode`. Ties, that is keys within a relative 1e-11, go to the
/// lowest index in a scan by ascending index.
///
/// At most min(κ, MAX·stragglers) steps of O(log jobs + log tasks) each.
#[must_use]
pub fn alloc_task(input: &GreedyInput, mode: GreedyMode) -> GreedyOutcome {
    let mut jobs: Vec<JobState> = input
        .jobs
        .iter()
        .map(|job| JobState::new(job, mode))
        .collect();
    let before: Vec<f64> = jobs.iter().map(JobState::ln_pocd).collect();
    let mut refused = refuse_hopeless(&jobs, mode);
    let mut board = Board::new(&jobs, &refused, mode);
    let mut steps = Vec::new();
    let mut omega = 0i64;
    while omega < input.kappa {
        let Some((job, task)) = board.next() else {
            break;
        };
        let state = &mut jobs[job];
        if mode != GreedyMode::Paper && state.rescues_needed > input.kappa - omega {
            // Its PoCD would stay 0: the clones would be wasted.
            board.drop_job(job, state);
            refused.push(Refusal {
                job,
                reason: RefusalReason::Capacity,
            });
            continue;
        }
        steps.push(state.grant(job, task));
        omega += 1;
        board.update(job, task, state);
    }
    refused.extend(board.waiting_jobs().into_iter().map(|job| Refusal {
        job,
        reason: RefusalReason::Capacity,
    }));
    refused.sort_unstable_by_key(|refusal| refusal.job);
    GreedyOutcome {
        omega,
        jobs: jobs
            .iter()
            .zip(before)
            .map(|(state, before)| state.outcome(before))
            .collect(),
        steps,
        refused,
    }
}

fn refuse_hopeless(jobs: &[JobState], mode: GreedyMode) -> Vec<Refusal> {
    if mode == GreedyMode::Paper {
        return Vec::new();
    }
    jobs.iter()
        .enumerate()
        .filter(|(_, state)| state.is_hopeless())
        .map(|(job, _)| Refusal {
            job,
            reason: RefusalReason::Hopeless,
        })
        .collect()
}

/// A job while clones are handed out.
struct JobState {
    misses: Vec<TaskMiss>,
    /// How many further clones each task may still get.
    clones_left: Vec<u32>,
    /// ln PoCD of every task, then of the rest.
    ln_pocds: LnSum,
    /// Tasks that are impossible now and that one clone would make possible.
    rescues_needed: i64,
    /// Whether a task is impossible and stays so.
    hopeless: bool,
}

impl JobState {
    fn new(job: &GreedyJob, mode: GreedyMode) -> Self {
        let misses: Vec<TaskMiss> = job.tasks.iter().map(present_miss).collect();
        let clones_left: Vec<u32> = job
            .tasks
            .iter()
            .map(|task| clones_allowed(task, job.max_clones, mode))
            .collect();
        let mut terms: Vec<f64> = misses.iter().map(TaskMiss::ln_pocd).collect();
        let rest = if job.ln_pocd_rest.is_nan() {
            f64::NEG_INFINITY
        } else {
            job.ln_pocd_rest
        };
        terms.push(rest);
        let (mut rescues_needed, mut hopeless) = (0, is_impossible(rest));
        for (miss, &left) in misses.iter().zip(&clones_left) {
            if is_impossible(miss.ln_pocd()) {
                let rescuable = left > 0 && miss.clone_can_help();
                rescues_needed += i64::from(rescuable);
                hopeless |= !rescuable;
            }
        }
        Self {
            misses,
            clones_left,
            ln_pocds: LnSum::new(&terms),
            rescues_needed,
            hopeless,
        }
    }

    fn ln_pocd(&self) -> f64 {
        self.ln_pocds.total()
    }

    fn is_hopeless(&self) -> bool {
        self.hopeless
    }

    /// Gives `task` one clone.
    fn grant(&mut self, job: usize, task: usize) -> GreedyStep {
        let before = self.ln_pocd();
        let miss = &mut self.misses[task];
        let task_gain = miss.gain_of_one_more();
        self.rescues_needed -= i64::from(is_impossible(miss.ln_pocd()) && miss.clone_can_help());
        miss.clones += 1;
        self.clones_left[task] -= 1;
        self.ln_pocds.set(task, miss.ln_pocd());
        let after = self.ln_pocd();
        let (gain_ln_pocd, gain_pocd) = if is_impossible(after) {
            (0.0, 0.0)
        } else if is_impossible(before) {
            (task_gain, probability(after))
        } else {
            (task_gain, probability(before) * libm::expm1(task_gain))
        };
        GreedyStep {
            job,
            task,
            gain_ln_pocd,
            gain_pocd,
        }
    }

    fn outcome(&self, ln_pocd_before: f64) -> JobOutcome {
        JobOutcome {
            clones: self.misses.iter().map(|miss| miss.clones).collect(),
            ln_pocd_before,
            ln_pocd_after: self.ln_pocd(),
        }
    }
}

fn present_miss(task: &GreedyTask) -> TaskMiss {
    TaskMiss {
        ln_miss_present: task.ln_miss_present,
        ln_miss_per_clone: task.ln_miss_per_clone,
        clones: 0,
    }
}

/// How many further clones a task may get; none, except as printed, when a clone can't help.
fn clones_allowed(task: &GreedyTask, max_clones: u32, mode: GreedyMode) -> u32 {
    let worthwhile = mode == GreedyMode::Paper || present_miss(task).clone_can_help();
    if task.may_receive_clones && worthwhile {
        max_clones.saturating_sub(task.clones_alive)
    } else {
        0
    }
}

/// Whether a ln PoCD stands for 0.
fn is_impossible(ln_pocd: f64) -> bool {
    ln_pocd.is_infinite()
}

/// The candidates of all jobs, ranked as the mode wants it.
enum Board {
    /// Jobs by PoCD, and the tasks of each by their own key.
    WorstJob {
        key: TaskKey,
        jobs: Ranking,
        tasks: Vec<Ranking>,
    },
    /// All tasks by gain. `first[j]` is the place of job j's first task in the ranking, which
    /// counts tasks through all jobs.
    BestTask { tasks: Ranking, first: Vec<usize> },
}

/// What orders the tasks of the worst job; smallest first.
#[derive(Clone, Copy)]
enum TaskKey {
    Pocd,
    Gain,
}

impl TaskKey {
    fn of(self, miss: &TaskMiss) -> f64 {
        match self {
            TaskKey::Pocd => miss.ln_pocd(),
            TaskKey::Gain => -miss.gain_of_one_more(),
        }
    }
}

impl Board {
    fn new(states: &[JobState], refused: &[Refusal], mode: GreedyMode) -> Self {
        let mut board = match mode {
            GreedyMode::Paper | GreedyMode::Guarded => Self::worst_job(TaskKey::Pocd, states.len()),
            GreedyMode::MaxMin => Self::worst_job(TaskKey::Gain, states.len()),
            GreedyMode::Marginal => Self::best_task(states),
        };
        let mut is_in = vec![true; states.len()];
        for refusal in refused {
            is_in[refusal.job] = false;
        }
        for (job, state) in states.iter().enumerate().filter(|&(job, _)| is_in[job]) {
            for task in 0..state.misses.len() {
                board.update(job, task, state);
            }
        }
        board
    }

    fn worst_job(key: TaskKey, jobs: usize) -> Self {
        Self::WorstJob {
            key,
            jobs: Ranking::default(),
            tasks: vec![Ranking::default(); jobs],
        }
    }

    fn best_task(states: &[JobState]) -> Self {
        let first = states
            .iter()
            .scan(0, |next, state| {
                let place = *next;
                *next += state.misses.len();
                Some(place)
            })
            .collect();
        Self::BestTask {
            tasks: Ranking::default(),
            first,
        }
    }

    /// The job and the task to serve next.
    fn next(&self) -> Option<(usize, usize)> {
        match self {
            Self::WorstJob { jobs, tasks, .. } => {
                let job = jobs.best()?;
                Some((job, tasks[job].best()?))
            }
            Self::BestTask { tasks, first } => tasks.best().map(|place| task_at(first, place)),
        }
    }

    /// Ranks `task` by its present state, or takes it out when it may get no more.
    fn update(&mut self, job: usize, task: usize, state: &JobState) {
        let miss = &state.misses[task];
        let is_candidate = state.clones_left[task] > 0;
        match self {
            Self::WorstJob { key, jobs, tasks } => {
                if is_candidate {
                    tasks[job].set(task, key.of(miss));
                } else {
                    tasks[job].remove(task);
                }
                if tasks[job].is_empty() {
                    jobs.remove(job);
                } else {
                    jobs.set(job, state.ln_pocd());
                }
            }
            Self::BestTask { tasks, first } => {
                let place = first[job] + task;
                if is_candidate {
                    tasks.set(place, TaskKey::Gain.of(miss));
                } else {
                    tasks.remove(place);
                }
            }
        }
    }

    fn drop_job(&mut self, job: usize, state: &JobState) {
        match self {
            Self::WorstJob { jobs, .. } => jobs.remove(job),
            Self::BestTask { tasks, first } => {
                for task in 0..state.misses.len() {
                    tasks.remove(first[job] + task);
                }
            }
        }
    }

    /// The jobs that still have candidates, each once.
    fn waiting_jobs(&self) -> Vec<usize> {
        match self {
            Self::WorstJob { jobs, .. } => jobs.indexes().collect(),
            Self::BestTask { tasks, first } => {
                let mut jobs: Vec<usize> = tasks
                    .indexes()
                    .map(|place| task_at(first, place).0)
                    .collect();
                jobs.sort_unstable();
                jobs.dedup();
                jobs
            }
        }
    }
}

/// The job and the task at a place that counts tasks through all jobs.
fn task_at(first: &[usize], place: usize) -> (usize, usize) {
    let job = first.partition_point(|&start| start <= place) - 1;
    (job, place - first[job])
}

#[cfg(test)]
#[path = "greedy/tests.rs"]
mod tests;
