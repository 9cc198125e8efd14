//! One job in a run of `decide`: how its tasks stand, and what the plan does for it.

use std::collections::BTreeSet;

use crate::capacity::{Holdings, NodeQueue, UnusableNodes};
use crate::estimate::pocd::probability;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{CloneReport, Feasibility, JobReport, KillReport, Refusal};
use crate::round::estimates::{JobEstimate, Standing, is_active, standing};
use crate::snapshot::{
    AttemptKind, JobPhase, JobSnapshot, NodeIndex, SpeculationMode, TaskSnapshot,
};
use crate::time::{Instant, Span};

/// Expected deadlines met per second for which an attempt holds its place.
#[derive(Debug, Clone)]
pub(crate) struct Worth {
    /// Of each of the attempts that wait.
    pub waiting: f64,
    /// Whether these can be in time together with those of all jobs that bring more.
    pub(crate) is_timely: bool,
    /// Of each live clone, ascending by task and number.
    pub(crate) clones: Vec<((TaskIndex, AttemptNumber), f64)>,
}

impl Worth {
    fn of_clone(&self, id: (TaskIndex, AttemptNumber)) -> Option<f64> {
        let at = self.clones.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.clones.get(at).map(|(_, worth)| *worth)
    }
}

/// What a job takes of the cluster and brings, for a policy that keeps room for jobs to come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Claim {
    /// The share of what is usable that one attempt takes.
    pub(crate) share: f64,
    /// Deadlines met per share and second by the whole job; 0 without a deadline.
    pub(crate) density: f64,
    /// How much it may take, if room is kept from it.
    pub(crate) allowance: Option<Allowance>,
}

/// How much the jobs that bring no more than `up_to` may take yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// Deadlines met per share and second.
    pub(crate) up_to: f64,
    /// The share of what is usable.
    pub(crate) left: f64,
}

/// Of an attempt: what is left is a sum of shares.
const ROUNDING: f64 = 1e-6;

impl Claim {
    /// Whether what that job takes counts against this one's allowance.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        let allowance = self.allowance;
        allowance.is_some_and(|allowance| other.density <= allowance.up_to)
    }

    /// How many attempts it leaves, after so much was `taken` of it.
    pub(crate) fn allowed(&self, taken: f64) -> u32 {
        self.allowance.map_or(u32::MAX, |allowance| {
            ((allowance.left - taken) / self.share + ROUNDING) as u32
        })
    }
}

/// One job.
pub struct JobView<'a> {
    pub job: &'a JobSnapshot,
    pub estimate: JobEstimate<'a>,
    /// What its attempts hold.
    pub(crate) holdings: Holdings,
    /// Which of the beliefs about nodes are its tenant's.
    pub(crate) view: usize,
    /// When the first of its tasks that back off may be launched again.
    pub(crate) next_retry: Option<Instant>,
    /// Touched tasks that need an attempt and may get one now, ascending.
    pub(crate) ready: Vec<TaskIndex>,
    /// Touched tasks that need an attempt and must not get one yet, ascending.
    pub(crate) held_back: Vec<TaskIndex>,
    /// How many tasks no attempt was ever launched for.
    pub(crate) untouched: u32,
    /// How many tasks count against parallelism.
    pub(crate) active: u32,
    /// First attempts and retries that the plan launches.
    pub(crate) admitted: u32,
    /// Those that would start if there were room or parallelism.
    pub waiting: u32,
    /// Those of them that may not start though parallelism lets them.
    pub(crate) kept_back: u32,
    pub(crate) queue: Option<NodeQueue>,
    /// Tasks whose first attempt or retry the plan launches, and where there is room for it.
    pub started: Vec<(TaskIndex, NodeIndex)>,
    /// Launches of the plan, clones included.
    pub(crate) launched: usize,
    /// Live attempts that the plan kills.
    pub(crate) doomed: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Attempts that a kill of the plan relies on.
    pub(crate) survivors: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Whether the optimizer runs for it in this pass.
    pub optimized: bool,
    /// Whether the policy acts on it for the first time.
    pub is_new: bool,
    /// Whether it is hopeless and its slack in milliseconds, by a policy that knows better than
    /// the order of first attempts.
    pub(crate) rank: Option<(bool, i64)>,
    /// What its waiting attempts and clones are worth, by a policy that weighs them against those
    /// of other jobs.
    pub(crate) worth: Option<Worth>,
    /// What it takes and brings, by a policy that keeps room for jobs to come.
    pub(crate) claim: Claim,
    /// Seconds from a launch of its tenant to the first report.
    pub t_avg: f64,
    /// Seconds from a launch to the start of its work, by a policy that measures it job by job.
    pub(crate) overhead: Option<f64>,
    /// How long a task gets no clone after one of its clones was disrupted.
    pub(crate) clone_rest: Span,
    /// What the time of a usual task is taken for while nothing is known of the job, as a share of
    /// the time from submission to deadline, by a policy that learns it.
    pub(crate) usual_share: f64,
    /// Whether that run changes nothing, so that the next one need not wait for launches.
    pub(crate) was_idle: bool,
    /// Whether the pass ran out of work before the policy was through with it.
    pub(crate) is_cut_short: bool,
    /// Tasks whose expected end is after the deadline.
    pub stragglers: Vec<TaskIndex>,
    /// ln PoCD without the plan's prunes and clones, and with them.
    pub(crate) ln_pocd_before: Option<f64>,
    pub(crate) ln_pocd_after: Option<f64>,
    pub(crate) clones: Vec<CloneReport>,
    pub(crate) kills: Vec<KillReport>,
    pub(crate) refusals: Vec<Refusal>,
    /// Seconds until its last task is expected to end.
    pub(crate) completion: Option<f64>,
    /// Which deadline it could keep, if that was asked for.
    pub(crate) feasibility: Option<Feasibility>,
}

impl<'a> JobView<'a> {
    pub(crate) fn new(
        now: Instant,
        t_avg: f64,
        job: &'a JobSnapshot,
        unusable: &UnusableNodes,
    ) -> Self {
        let mut estimate = JobEstimate::new(now, job);
        let mut holdings = Holdings::default();
        let (mut ready, mut held_back) = (Vec::new(), Vec::new());
        let (mut active, mut touched) = (0u32, 0u32);
        let mut next_retry: Option<Instant> = None;
        for task in &job.tasks {
            holdings.count(job, task, unusable);
            estimate.note_ended(task);
            let retry = task.retry_not_before.filter(|&at| at > now);
            next_retry = next_retry.into_iter().chain(retry).min();
            active += u32::from(is_active(job, task));
            let standing = standing(now, job, task);
            touched += u32::from(standing != Standing::Ended);
            match standing {
                Standing::Ended | Standing::Succeeded => {}
                Standing::Live => estimate.note_running(now, t_avg, job, task),
                Standing::Ready => ready.push(task.index),
                Standing::Unsettled | Standing::BackOff(_) | Standing::NotGone => {
                    held_back.push(task.index);
                }
            }
        }
        estimate.add_up_progress(job);
        let ended = job.done.len().saturating_add(job.failed.len());
        let known = ended.saturating_add(touched);
        Self {
            job,
            estimate,
            holdings,
            view: 0,
            next_retry,
            ready,
            held_back,
            untouched: job.rules.completions.saturating_sub(known),
            active,
            admitted: 0,
            waiting: 0,
            kept_back: 0,
            queue: None,
            started: Vec::new(),
            launched: 0,
            doomed: BTreeSet::new(),
            survivors: BTreeSet::new(),
            optimized: false,
            is_new: false,
            rank: None,
            worth: None,
            claim: Claim::default(),
            t_avg,
            overhead: None,
            clone_rest: Span::default(),
            usual_share: 1.0,
            was_idle: false,
            is_cut_short: false,
            stragglers: Vec::new(),
            ln_pocd_before: None,
            ln_pocd_after: None,
            clones: Vec::new(),
            kills: Vec::new(),
            refusals: Vec::new(),
            completion: None,
            feasibility: None,
        }
    }

    /// Seconds from a launch to the start of its work: what a policy has measured of the job, or
    /// else t_avg.
    #[must_use]
    pub fn launch_time(&self) -> f64 {
        self.overhead.unwrap_or(self.t_avg)
    }

    /// Nodes that attempts of the task had better avoid: it was disrupted there, or attempts of its
    /// job could not start.
    pub(crate) fn avoided(
        &self,
        task: Option<&'a TaskSnapshot>,
    ) -> impl Iterator<Item = NodeIndex> {
        let of_task = task.into_iter().flat_map(|task| &task.avoid);
        of_task.chain(&self.job.avoid).copied()
    }

    /// Whether a clone of the task was disrupted so short a time ago that it gets no other.
    pub(crate) fn rests(&self, now: Instant, task: &TaskSnapshot) -> bool {
        let disrupted = task.clone_disrupted;
        disrupted.is_some_and(|at| now < at.plus(self.clone_rest))
    }

    /// What a clone of it is worth, 0 where nobody says.
    pub(crate) fn worth_of_clone(&self, id: (TaskIndex, AttemptNumber)) -> f64 {
        let worth = self.worth.as_ref();
        worth.and_then(|worth| worth.of_clone(id)).unwrap_or(0.0)
    }

    /// What its waiting attempts are worth, ∞ where nobody says.
    pub(crate) fn worth_of_waiting(&self) -> f64 {
        self.worth
            .as_ref()
            .map_or(f64::INFINITY, |worth| worth.waiting)
    }

    /// Whether this plan stops the attempt.
    #[must_use]
    pub fn is_stopped(&self, id: (TaskIndex, AttemptNumber)) -> bool {
        self.doomed.contains(&id)
    }

    /// Whether anything may be launched or pruned for it.
    #[must_use]
    pub fn may_run(&self) -> bool {
        self.job.phase == JobPhase::Active && !self.job.rules.suspend
    }

    /// Seconds from its submission to its deadline.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        let limit = self.job.deadline?.since(self.job.submitted).seconds();
        (limit > 0.0).then_some(limit)
    }

    /// Whether a policy about clones may act on it, also if nothing of it runs yet.
    #[must_use]
    pub fn may_speculate(&self) -> bool {
        self.may_run() && self.job.rules.speculation != SpeculationMode::Disabled
    }

    /// Whether it has attempts that a policy about clones may act on.
    #[must_use]
    pub fn speculates(&self) -> bool {
        self.may_speculate() && !self.estimate.tasks.is_empty()
    }

    /// Whether launches of it are not held off.
    #[must_use]
    pub fn may_launch(&self, now: Instant) -> bool {
        self.may_run() && !self.is_held_up(now)
    }

    /// Whether clones of it are not held off either.
    #[must_use]
    pub fn may_clone(&self, now: Instant) -> bool {
        let until = self.job.obstacles.clones_not_before;
        self.may_launch(now) && until.is_none_or(|until| until <= now)
    }

    /// Whether it may get the one attempt that shows an autoscaler what no node could hold.
    pub(crate) fn may_probe(&self, now: Instant) -> bool {
        let is_wanted = self.job.obstacles.no_node && self.holdings.waiting == 0;
        is_wanted && self.may_run() && !self.is_refused(now)
    }

    /// Whether nothing is launched for it at present, though it may have room: it neither holds
    /// nor reserves any.
    #[must_use]
    pub fn is_held_up(&self, now: Instant) -> bool {
        let obstacles = &self.job.obstacles;
        let is_blocked =
            obstacles.no_node || obstacles.attempts_max == Some(0) || self.holdings.unplaceable > 0;
        is_blocked || self.job.rules.suspend || self.is_refused(now)
    }

    fn is_refused(&self, now: Instant) -> bool {
        let until = self.job.launch_not_before;
        until.is_some_and(|until| until > now)
    }

    /// How many attempts more may exist, the launches of the plan taken off.
    #[must_use]
    pub fn attempts_left(&self) -> u32 {
        let most = self.job.obstacles.attempts_max;
        let taken = self.holdings.existing + self.launched;
        let taken = u32::try_from(taken).unwrap_or(u32::MAX);
        most.map_or(u32::MAX, |most| most.saturating_sub(taken))
    }

    /// Whether a run of the optimizer could change anything: past its deadline a job gets no
    /// clones any more, and without any there is nothing to prune.
    pub(crate) fn can_gain(&self) -> bool {
        let mut attempts = self.estimate.tasks.iter().flat_map(|task| &task.attempts);
        self.estimate.slack.is_some_and(|slack| slack > 0.0)
            || attempts.any(|attempt| attempt.kind == AttemptKind::Clone)
    }

    /// Whether the optimizer ran for it and changed nothing.
    pub(crate) fn optimized_idly(&self) -> bool {
        self.optimized && self.clones.is_empty() && self.doomed.is_empty()
    }

    /// Tasks that could start now if there were room.
    #[must_use]
    pub fn waiting_now(&self) -> u32 {
        let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        let slots = self.job.rules.parallelism.saturating_sub(self.active);
        ready.saturating_add(self.untouched).min(slots)
    }

    /// Those of them that the apiserver would let be created.
    pub(crate) fn launchable_now(&self) -> u32 {
        self.waiting_now().min(self.attempts_left())
    }

    /// Those of them that no room is kept from.
    pub(crate) fn wanting_now(&self) -> u32 {
        self.launchable_now().min(self.allowed())
    }

    /// How many attempts it may get, as far as room is kept for others.
    pub(crate) fn allowed(&self) -> u32 {
        self.claim.allowed(0.0)
    }

    /// The share of what is usable that its attempts hold.
    pub(crate) fn held(&self) -> f64 {
        self.claim.share * self.holdings.all as f64
    }

    /// Whether attempts of it hold room.
    pub(crate) fn holds_room(&self) -> bool {
        self.holdings.all > 0
    }

    /// Whether tasks of it wait that its parallelism would let start.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        let started = self.active.saturating_add(self.admitted);
        self.waiting > 0 && started < self.job.rules.parallelism
    }

    /// Whether the optimizer's run for it counts as one.
    pub(crate) fn has_run(&self) -> bool {
        self.optimized && !self.is_cut_short
    }

    /// Clones that run and that the plan leaves alive.
    #[must_use]
    pub fn clones_alive(&self) -> usize {
        let attempts = self.estimate.tasks.iter().flat_map(|task| {
            let index = task.task.index;
            task.attempts.iter().map(move |a| (index, a))
        });
        let alive = attempts.filter(|(index, attempt)| {
            attempt.kind == AttemptKind::Clone && !self.doomed.contains(&(*index, attempt.number))
        });
        alive.count()
    }

    /// Tasks that have not ended, those that wait included.
    #[must_use]
    pub fn unfinished(&self) -> u32 {
        let ended = self.job.done.len().saturating_add(self.job.failed.len());
        self.job.rules.completions.saturating_sub(ended)
    }

    pub(crate) fn report(self, now: Instant) -> JobReport {
        let seconds = self.completion.filter(|seconds| seconds.is_finite());
        JobReport {
            key: self.job.key.clone(),
            pocd_before: self.ln_pocd_before.map(probability),
            pocd_after: self.ln_pocd_after.map(probability),
            estimated_completion: seconds.map(|s| now.plus(Span::from_seconds_f64(s))),
            optimized: self.optimized,
            is_cut_short: self.is_cut_short,
            stragglers: self.stragglers,
            clones: self.clones,
            kills: self.kills,
            refusals: self.refusals,
            waiting: self.waiting,
            kept_back: self.kept_back,
            attempt_slot_seconds: self.estimate.mean_run.filter(|run| run.is_finite()),
            feasibility: self.feasibility,
        }
    }
}
