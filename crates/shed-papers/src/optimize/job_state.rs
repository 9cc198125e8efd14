//! A job while clones are handed out to its tasks.

use crate::optimize::greedy::{GreedyJob, GreedyTask, JobOutcome, StepGain};
use crate::optimize::ln_sum::LnSum;
use shed_core::estimate::pareto::LN_CERTAIN;
use shed_core::estimate::pocd::{TaskMiss, probability};

/// A job with the clones that it was granted so far; the default has no tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct JobState {
    tasks: Vec<TaskState>,
    /// ln PoCD of every task, then of the rest.
    ln_pocds: LnSum,
    ln_pocd_before: f64,
    /// At this ln PoCD the job needs no more clones.
    ln_pocd_target: f64,
    /// The number of tasks that may still get clones.
    open: usize,
    /// Tasks that are impossible now and that one clone would make possible.
    pub(super) rescues_needed: i64,
    /// Whether a task is impossible and stays so.
    pub(super) is_hopeless: bool,
}

/// The clones that a job was granted before, per task; tasks beyond its end have none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Granted<'a> {
    pub(super) clones: &'a [u32],
    /// The tasks' ln PoCDs with them, so that they need not be computed again.
    pub(super) ln_pocds: &'a [f64],
}

/// A task in 24 bytes. The two structs in it would take 32, and fewer tasks would fit the caches.
#[derive(Debug, Clone, Copy)]
struct TaskState {
    ln_miss_present: f64,
    ln_miss_per_clone: f64,
    clones: u32,
    /// The number of further clones that the task may still get.
    clones_left: u32,
}

impl JobState {
    /// `useless_too` also allows clones that cannot help, as the papers' algorithm does.
    pub(super) fn new(job: &GreedyJob, useless_too: bool) -> Self {
        let mut state = Self::default();
        state.load(job, useless_too, Granted::default());
        state
    }

    /// Becomes the state of a job with clones granted, in the memory of the previous one.
    pub(super) fn load(&mut self, job: &GreedyJob, useless_too: bool, granted: Granted<'_>) {
        let tasks = job.tasks.iter();
        let tasks = tasks.map(|task| TaskState::new(task, job.max_clones, useless_too));
        self.tasks.clear();
        self.tasks.extend(tasks);
        for (task, &clones) in self.tasks.iter_mut().zip(granted.clones) {
            task.clones = clones;
            task.clones_left -= clones;
        }
        let rest = if job.ln_pocd_rest.is_nan() {
            f64::NEG_INFINITY
        } else {
            job.ln_pocd_rest
        };
        let known = granted.ln_pocds.iter().copied();
        let unknown = self.tasks.iter().skip(granted.ln_pocds.len());
        let terms = known.chain(unknown.map(|task| task.miss().ln_pocd()));
        self.ln_pocds
            .refill(terms.chain([rest]), job.tasks.len() + 1);
        self.ln_pocd_before = self.ln_pocds.total();
        self.ln_pocd_target = job.ln_pocd_target;
        self.open = self.tasks.iter().filter(|t| t.clones_left > 0).count();
        self.rescues_needed = 0;
        self.is_hopeless = is_impossible(rest);
        if is_impossible(self.ln_pocd_before) {
            self.count_rescues();
        }
    }

    fn count_rescues(&mut self) {
        for (task, ln_pocd) in self.tasks.iter().zip(self.ln_pocds.terms()) {
            if is_impossible(ln_pocd) {
                let rescuable = task.clones_left > 0 && task.miss().clone_can_help();
                self.rescues_needed += i64::from(rescuable);
                self.is_hopeless |= !rescuable;
            }
        }
    }

    pub(super) fn ln_pocd(&self) -> f64 {
        self.ln_pocds.total()
    }

    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Whether any task may still get clones, and the job needs them.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0 && !self.is_enough(self.ln_pocd())
    }

    /// Whether the job needs no clone with that ln PoCD.
    pub(super) fn is_enough(&self, ln_pocd: f64) -> bool {
        ln_pocd >= self.ln_pocd_target
    }

    pub(super) fn may_receive(&self, task: usize) -> bool {
        self.tasks
            .get(task)
            .is_some_and(|task| task.clones_left > 0)
    }

    pub(super) fn task_ln_pocd(&self, task: usize) -> f64 {
        self.ln_pocds.term(task)
    }

    pub(super) fn task_ln_pocds(&self) -> impl Iterator<Item = f64> + '_ {
        self.ln_pocds.terms().take(self.tasks.len())
    }

    /// The increase of ln PoCD by one more clone of the task; +∞ when it makes an impossible task possible.
    pub(super) fn gain(&self, task: usize) -> f64 {
        let task = self.tasks.get(task);
        task.map_or(0.0, |task| task.miss().gain_of_one_more())
    }

    /// The number of clones that the job's tasks may still get altogether.
    pub(super) fn clones_left(&self) -> i64 {
        let tasks = self.tasks.iter();
        tasks.map(|task| i64::from(task.clones_left)).sum()
    }

    pub(super) fn clones(&self) -> Vec<u32> {
        self.tasks.iter().map(|task| task.clones).collect()
    }

    /// Gives the task one clone and returns its effect on the job.
    pub(super) fn grant(&mut self, task: usize) -> StepGain {
        let (before, task_gain) = (self.ln_pocd(), self.gain(task));
        self.give(task);
        let after = self.ln_pocd();
        if is_impossible(after) {
            return StepGain::NONE;
        }
        StepGain {
            ln_pocd: task_gain,
            pocd: if is_impossible(before) {
                probability(after)
            } else {
                probability(before) * libm::expm1(task_gain)
            },
        }
    }

    /// Gives the task one clone.
    pub(super) fn give(&mut self, task: usize) {
        let was_impossible = is_impossible(self.task_ln_pocd(task));
        if let Some(state) = self.tasks.get_mut(task) {
            self.rescues_needed -= i64::from(was_impossible && state.miss().clone_can_help());
            state.clones += 1;
            state.clones_left -= 1;
            self.open -= usize::from(state.clones_left == 0);
            self.ln_pocds.set(task, state.miss().ln_pocd());
        }
    }

    pub(super) fn outcome(&self) -> JobOutcome {
        JobOutcome {
            clones: self.clones(),
            ln_pocd_before: self.ln_pocd_before,
            ln_pocd_after: self.ln_pocd(),
        }
    }
}

impl TaskState {
    fn new(task: &GreedyTask, max_clones: u32, useless_too: bool) -> Self {
        // NaN, or a number above 0, is a sure miss.
        let mut state = Self {
            ln_miss_present: task.ln_miss_present.min(LN_CERTAIN),
            ln_miss_per_clone: task.ln_miss_per_clone.min(LN_CERTAIN),
            clones: 0,
            clones_left: 0,
        };
        let may_receive = task.may_receive_clones & (useless_too | state.miss().clone_can_help());
        if may_receive {
            state.clones_left = max_clones.saturating_sub(task.clones_alive);
        }
        state
    }

    fn miss(&self) -> TaskMiss {
        TaskMiss {
            ln_miss_present: self.ln_miss_present,
            ln_miss_per_clone: self.ln_miss_per_clone,
            clones: self.clones,
        }
    }
}

/// Whether a ln PoCD denotes 0.
pub(super) fn is_impossible(ln_pocd: f64) -> bool {
    ln_pocd.is_infinite()
}
