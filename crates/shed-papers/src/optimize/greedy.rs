//! Shed+ Algorithm 1, steps 3 and 4: the number of clones for each task of each job, one clone at a time. It only
//! counts: it has no data about nodes, and stops nothing.

use crate::optimize::best_task;
use crate::optimize::clone_capacity::CloneCapacity;
use crate::optimize::job_state::JobState;
use crate::optimize::keys::TaskKey;
use crate::optimize::worst_job;

/// One task of a job, with the facts that the optimizer needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GreedyTask {
    /// ln P(all live attempts of the task miss), including live clones.
    pub ln_miss_present: f64,
    /// ln P(one further clone, launched now, misses).
    pub ln_miss_per_clone: f64,
    /// Live clones; they count against MAX.
    pub clones_alive: u32,
    /// Whether the task is a straggler, so that it may receive clones.
    pub may_receive_clones: bool,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyJob {
    /// MAX: the number of clones that a task of the job may have at once.
    pub max_clones: u32,
    /// ln of the product of the PoCDs of all tasks that are not in `tasks`; 0 without such tasks. −∞ makes the job
    /// hopeless, and so does NaN.
    pub ln_pocd_rest: f64,
    /// ln of the PoCD at which the job gets no further clone. +∞ if the job takes every clone that helps.
    pub ln_pocd_target: f64,
    /// The job's stragglers, and any other task that is worth listing separately.
    pub tasks: Vec<GreedyTask>,
}

/// The capacity and the jobs that compete for it. Jobs past their deadline are not among `jobs` (step 1 kills them).
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyInput {
    /// κ, the slots for further clones.
    pub kappa: i64,
    /// The live jobs; ties go to the first job, then to its first task.
    pub jobs: Vec<GreedyJob>,
}

/// The rule that selects the next clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GreedyMode {
    /// As printed: the task with the lowest PoCD of the job with the lowest PoCD. Jobs that no clone can save have
    /// PoCD 0 and use up the capacity.
    Paper,
    /// As printed, but clones that cannot help are not launched and hopeless jobs get none.
    #[default]
    Guarded,
    /// As guarded, but within the job with the lowest PoCD the task that gains most. It maximizes the lowest PoCD
    /// exactly.
    MaxMin,
    /// As guarded, but always the task that gains most, across jobs. It maximizes Σ ln PoCD exactly, because ln(1 −
    /// q^(r+1)) is concave in r and every clone costs one slot. With targets this holds while no job reaches its own.
    Marginal,
}

/// One clone handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GreedyStep {
    /// Position of the job in the input.
    pub job: usize,
    /// Position of the task in its job.
    pub task: usize,
}

/// The effect of one clone on its job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepGain {
    /// The increase of ln PoCD. +∞ when it makes an impossible job possible, 0 when the job stays impossible.
    pub ln_pocd: f64,
    /// The increase of the PoCD.
    pub pocd: f64,
}

impl StepGain {
    pub(super) const NONE: Self = Self {
        ln_pocd: 0.0,
        pocd: 0.0,
    };
}

/// The clones that a job got.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// Further clones per task, in the order of its `tasks`.
    pub clones: Vec<u32>,
    /// ln PoCD with the live attempts.
    pub ln_pocd_before: f64,
    /// ln PoCD with the further clones.
    pub ln_pocd_after: f64,
}

/// Why a job got fewer clones than MAX allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// A task of the job cannot be in time with any number of clones. Never in mode `Paper`.
    Hopeless,
    /// The capacity was used up while the job could still receive clones, or is too small to make it possible.
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

impl Refusal {
    pub(super) fn hopeless(job: usize) -> Self {
        let reason = RefusalReason::Hopeless;
        Self { job, reason }
    }

    pub(super) fn no_capacity(job: usize) -> Self {
        let reason = RefusalReason::Capacity;
        Self { job, reason }
    }
}

/// The complete allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyOutcome {
    /// ω, the clones handed out; at most κ.
    pub omega: i64,
    /// Per job of the input, in its order.
    pub jobs: Vec<JobOutcome>,
    /// The clones in the order in which they were handed out. A prefix of it is the optimizer's result with less
    /// capacity, unless a refusal for capacity differs.
    pub steps: Vec<GreedyStep>,
    /// The refused jobs, ascending.
    pub refused: Vec<Refusal>,
}

/// Hands out at most κ clones by `mode`. Ties (keys within a relative 1e-11) go to the lowest index in a scan by
/// ascending index.
///
/// O(S) for S tasks and at most min(κ, MAX·S) steps of O(log S) each.
pub fn alloc_task(input: &GreedyInput, mode: GreedyMode) -> GreedyOutcome {
    alloc_task_within(&input.jobs, CloneCapacity::slots(input.kappa), mode)
}

/// As [`alloc_task`], with attempts that take different amounts of several resources. A job whose attempt no longer
/// fits is skipped in favor of smaller ones, as in Shed Algorithm 1.
///
/// `MaxMin` stays exact. Any allocation that gives every job a higher PoCD than the lowest here must give each job at
/// least its clones here. It must also give one more to the lowest job, which did not fit. `Marginal` compares gains
/// per attempt's price and is exact only for jobs of equal demands.
pub fn alloc_task_within(
    jobs: &[GreedyJob],
    mut capacity: CloneCapacity,
    mode: GreedyMode,
) -> GreedyOutcome {
    let (key, is_guarded) = match mode {
        GreedyMode::Paper => (TaskKey::Pocd, false),
        GreedyMode::Guarded => (TaskKey::Pocd, true),
        GreedyMode::MaxMin => (TaskKey::Gain, true),
        GreedyMode::Marginal => return best_task::alloc(jobs, &mut capacity),
    };
    worst_job::alloc(jobs, key, is_guarded, &mut capacity)
}

/// The increase by each of `steps`, given that those before it are taken. It explains a choice; the choice itself
/// does not need it. A step whose job or task does not exist adds nothing.
pub fn gains(jobs: &[GreedyJob], steps: &[GreedyStep]) -> Vec<StepGain> {
    let mut states: Vec<JobState> = jobs.iter().map(|job| JobState::new(job, true)).collect();
    let gain = |step: &GreedyStep| {
        let state = states.get_mut(step.job);
        state.map_or(StepGain::NONE, |state| state.grant(step.task))
    };
    steps.iter().map(gain).collect()
}

/// The refusals of the jobs that no clone can rescue.
pub(super) fn hopeless_jobs(states: &[JobState]) -> Vec<Refusal> {
    let jobs = states.iter().enumerate();
    jobs.filter(|(_, state)| state.is_hopeless)
        .map(|(job, _)| Refusal::hopeless(job))
        .collect()
}

#[cfg(test)]
#[path = "greedy/tests.rs"]
mod tests;
