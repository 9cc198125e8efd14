//! One job in a run of `decide`: the state of its tasks, and the plan's actions for it.

use std::collections::BTreeSet;

use crate::capacity::{Holdings, NodeQueue, UnusableNodes};
use crate::estimate::pocd::probability;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{CloneBudget, CloneReport, Feasibility, JobReport, KillReport, Refusal};
use crate::round::estimates::{JobEstimate, TaskEstimate};
use crate::round::kept::{Appointment, Kept, News, Origin, shifted};
use crate::round::slow::Heard;
use crate::round::specification::Specification;
use crate::round::standing::{Standing, is_active, standing};
use crate::snapshot::{
    AttemptKind, JobPhase, JobSnapshot, NodeIndex, Snapshot, SpeculationMode, TaskSnapshot,
};
use crate::time::{Instant, Span};

/// Value density: expected deadlines met per second for which an attempt holds its slot.
#[derive(Debug, Clone)]
pub struct Worth {
    /// The value density of each waiting attempt.
    pub waiting: f64,
    /// Whether the waiting attempts can be in time together with those of all jobs of a higher value density.
    pub is_timely: bool,
    /// The value density of each live clone, ascending by task and number.
    pub clones: Vec<((TaskIndex, AttemptNumber), f64)>,
}

impl Worth {
    fn of_clone(&self, id: (TaskIndex, AttemptNumber)) -> Option<f64> {
        let at = self.clones.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.clones.get(at).map(|(_, worth)| *worth)
    }
}

/// The demand and the value of a job, for a policy that reserves headroom for future jobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claim {
    /// The share of the usable capacity that one attempt takes.
    pub share: f64,
    /// Deadlines met per share and second by the whole job; 0 without a deadline.
    pub density: f64,
    /// The limit of the job's capacity, if headroom is kept from it.
    pub allowance: Option<Allowance>,
}

/// The capacity that the jobs up to the value density `up_to` may still take.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Deadlines met per share and second.
    pub up_to: f64,
    /// The share of the usable capacity.
    pub left: f64,
}

/// Tolerance of an attempt's share, because the remaining capacity is a sum of shares.
const ROUNDING: f64 = 1e-6;

impl Claim {
    /// Whether the capacity that the other job takes counts against this one's allowance.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        let allowance = self.allowance;
        allowance.is_some_and(|allowance| other.density <= allowance.up_to)
    }

    /// The attempts that the allowance still permits after `taken` was used.
    pub(crate) fn allowed(&self, taken: f64) -> u32 {
        self.allowance.map_or(u32::MAX, |allowance| {
            ((allowance.left - taken) / self.share + ROUNDING) as u32
        })
    }
}

/// One job of a pass.
pub struct JobView<'a> {
    pub job: &'a JobSnapshot,
    pub estimate: JobEstimate,
    /// How the pass came to this view.
    pub(crate) origin: Origin,
    pub(crate) appointment: Appointment,
    /// Whether the executor names the jobs that have changed.
    pub(crate) is_followed: bool,
    /// Whether news of the job may wait.
    pub(crate) is_patient: bool,
    /// The news of the job that wait.
    pub(crate) news: News,
    /// Its specification at the last look, if that was in an earlier pass.
    pub(crate) specification: Option<Box<Specification>>,
    /// The capacity that the job's attempts hold.
    pub(crate) holdings: Holdings,
    /// What its attempts show about nodes.
    pub(crate) heard: Heard,
    /// The index of its tenant's view in the estimates of nodes.
    pub(crate) view: usize,
    /// When the first of the job's tasks that back off may be launched again.
    pub(crate) next_retry: Option<Instant>,
    /// Touched tasks that need an attempt and may get one now, ascending.
    pub(crate) ready: Vec<TaskIndex>,
    /// Touched tasks that need an attempt and must not get one yet, ascending.
    pub(crate) held_back: Vec<TaskIndex>,
    /// The number of tasks without any launch so far.
    pub(crate) untouched: u32,
    /// How many tasks count against parallelism.
    pub(crate) active: u32,
    /// First attempts and retries that the plan launches.
    pub(crate) admitted: u32,
    /// First attempts and retries that would start if capacity or parallelism allowed it.
    pub waiting: u32,
    /// Those of them that may not start although parallelism allows it.
    pub(crate) kept_back: u32,
    pub(crate) queue: Option<NodeQueue>,
    /// Tasks whose first attempt or retry the plan launches, each with the node that has capacity for it.
    pub started: Vec<(TaskIndex, NodeIndex)>,
    /// Launches of the plan, clones included.
    pub(crate) launched: usize,
    /// Live attempts that the plan stops.
    pub(crate) doomed: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Attempts that a stop of the plan relies on.
    pub(crate) survivors: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Whether the optimizer runs for the job in this pass.
    pub optimized: bool,
    /// Whether the policy acts on the job for the first time.
    pub is_new: bool,
    /// Whether the job is hopeless, and its slack in milliseconds, if the policy ranks jobs itself.
    pub(crate) rank: Option<(bool, i64)>,
    /// The value density of the job's waiting attempts and clones, if the policy compares them with those of other
    /// jobs.
    pub(crate) worth: Option<Worth>,
    /// The job's demand and value, if the policy reserves headroom for future jobs.
    pub(crate) claim: Claim,
    /// Seconds from a launch of the job's tenant to the first report.
    pub t_avg: f64,
    /// Seconds from a launch to the start of its work, if the policy measures it job by job.
    pub(crate) overhead: Option<f64>,
    /// How long a task gets no clone after one of its clones was disrupted.
    pub(crate) clone_rest: Span,
    /// Whether that run changes nothing, so that the next one need not wait for launches.
    pub(crate) was_idle: bool,
    /// Whether the pass ran out of work before the policy was done with the job.
    pub(crate) is_cut_short: bool,
    /// Tasks whose expected end is after the deadline.
    pub stragglers: Vec<TaskIndex>,
    /// ln PoCD without the plan's prunes and clones, and with them.
    pub(crate) ln_pocd_before: Option<f64>,
    pub(crate) ln_pocd_after: Option<f64>,
    /// ln PoCD before the first clone of the plan that the job only observes; absent without such a clone.
    pub(crate) ln_pocd_unobserved: Option<f64>,
    pub(crate) clones: Vec<CloneReport>,
    /// The figures of the job's clone budget, once a clone was weighed.
    pub(crate) clone_budget: Option<CloneBudget>,
    pub(crate) kills: Vec<KillReport>,
    pub(crate) refusals: Vec<Refusal>,
    /// Seconds until the job's last task is expected to end.
    pub(crate) completion: Option<f64>,
    /// The deadline that the job could keep, if its user requests that estimate.
    pub(crate) feasibility: Option<Feasibility>,
}

impl<'a> JobView<'a> {
    pub(crate) fn new(
        now: Instant,
        t_avg: f64,
        job: &'a JobSnapshot,
        unusable: &UnusableNodes,
    ) -> Self {
        let estimate = JobEstimate::new(now, job);
        let mut view = Self::before_tasks(now, t_avg, job, estimate);
        view.count(now, unusable, |view, task| {
            view.estimate.note_running(now, view.t_avg, job, task);
        });
        view.estimate.add_up_progress(job);
        view.appointment.watch(view.moments(now));
        view
    }

    /// The findings of an earlier look, which had the position `at` in the pass before. After news of the job, its
    /// tasks are counted again.
    pub(crate) fn kept(
        now: Instant,
        job: &'a JobSnapshot,
        (at, kept): (usize, Kept),
        has_changed: bool,
        unusable: &UnusableNodes,
    ) -> Self {
        let mut view = Self {
            origin: Origin::Kept(at),
            ..Self::before_tasks(now, kept.t_avg, job, kept.estimate)
        };
        view.estimate.slack = job.deadline.map(|at| at.since(now).seconds());
        view.appointment = kept.appointment;
        view.news = kept.news;
        view.specification = Some(kept.specification);
        (view.heard, view.is_new) = (kept.heard, kept.is_new);
        let elapsed = Span(-now.since(Instant(0)).0);
        view.rank = kept.rank.map(|rank| shifted(rank, elapsed));
        (view.overhead, view.clone_rest) = (kept.overhead, kept.clone_rest);
        view.stragglers = kept.stragglers;
        (view.ln_pocd_before, view.ln_pocd_after) = (kept.ln_pocd, kept.ln_pocd);
        let left = |at: Instant| at.since(now).seconds().max(0.0);
        view.completion = kept.completes.map(left);
        if has_changed {
            view.news = view.news.max(News::Usual);
            let had_ended = !view.estimate.ended.is_empty();
            let past = view.estimate.begin_again(job);
            let mut past = past.into_iter().peekable();
            view.count(now, unusable, |view, task| {
                let known = std::iter::from_fn(|| past.next_if(|it| it.index <= task.index));
                let known = known.filter(|it| it.index == task.index).last();
                let shown = known.as_ref().map_or(&[][..], |known| &known.attempts);
                for attempt in task.live() {
                    view.news = view.news.max(view.appointment.news_of(attempt, shown));
                }
                view.estimate
                    .note_known(now, view.t_avg, (job, task), known);
            });
            if !had_ended && !view.estimate.ended.is_empty() {
                view.news = view.news.max(view.appointment.of_time(News::Usual));
            }
            view.appointment.watch(view.moments(now));
        } else {
            (view.ready, view.held_back) = (kept.ready, kept.held_back);
            (view.untouched, view.active) = (kept.untouched, kept.active);
            (view.holdings, view.next_retry) = (kept.holdings, kept.next_retry);
        }
        view
    }

    /// The moments at which the job's facts change by themselves.
    fn moments(&self, now: Instant) -> impl Iterator<Item = Instant> + use<'a> {
        let job = self.job;
        let moments = [job.deadline, job.launch_not_before, self.next_retry]
            .into_iter()
            .chain([job.obstacles.clones_not_before]);
        moments.flatten().filter(move |&at| at > now)
    }

    /// Counts the tasks, and has those with live attempts noted in ascending order.
    fn count(
        &mut self,
        now: Instant,
        unusable: &UnusableNodes,
        mut note: impl FnMut(&mut Self, &TaskSnapshot),
    ) {
        let job = self.job;
        let mut touched = 0u32;
        for task in &job.tasks {
            self.holdings.count(job, task, unusable);
            let standing = standing(now, job, task);
            touched += u32::from(standing != Standing::Ended);
            self.estimate.note_ended(task);
            let retry = task.retry_not_before.filter(|&at| at > now);
            self.next_retry = self.next_retry.into_iter().chain(retry).min();
            self.active += u32::from(is_active(job, task));
            match standing {
                Standing::Ended | Standing::Succeeded => {}
                Standing::Live => note(self, task),
                Standing::Ready => self.ready.push(task.index),
                Standing::Unsettled | Standing::BackOff(_) | Standing::NotGone => {
                    self.held_back.push(task.index);
                }
            }
        }
        let ended = job.done.len().saturating_add(job.failed.len());
        let known = ended.saturating_add(touched);
        self.untouched = job.rules.completions.saturating_sub(known);
    }

    fn before_tasks(now: Instant, t_avg: f64, job: &'a JobSnapshot, estimate: JobEstimate) -> Self {
        Self {
            job,
            estimate,
            origin: Origin::Looked,
            appointment: Appointment::made(now),
            is_followed: false,
            is_patient: true,
            news: News::None,
            specification: None,
            holdings: Holdings::default(),
            heard: Heard::default(),
            view: 0,
            next_retry: None,
            ready: Vec::new(),
            held_back: Vec::new(),
            untouched: 0,
            active: 0,
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
            was_idle: false,
            is_cut_short: false,
            stragglers: Vec::new(),
            ln_pocd_before: None,
            ln_pocd_after: None,
            ln_pocd_unobserved: None,
            clones: Vec::new(),
            clone_budget: None,
            kills: Vec::new(),
            refusals: Vec::new(),
            completion: None,
            feasibility: None,
        }
    }

    /// Seconds from a launch to the start of its work: measured for the job by a policy, or else t_avg.
    pub fn launch_time(&self) -> f64 {
        self.overhead.unwrap_or(self.t_avg)
    }

    /// The live attempts of the task that hold capacity.
    pub(crate) fn places_of(&self, task: &TaskEstimate) -> usize {
        let facts = self.job.task(task.index);
        let live = facts.into_iter().flat_map(TaskSnapshot::live);
        live.filter(|attempt| self.job.takes_room(attempt)).count()
    }

    /// Nodes that attempts of the task avoid if possible: the task was disrupted there, or attempts of its job could
    /// not start there.
    pub(crate) fn avoided(
        &self,
        task: Option<&'a TaskSnapshot>,
    ) -> impl Iterator<Item = NodeIndex> + use<'a> {
        let of_task = task.into_iter().flat_map(|task| &task.avoid);
        of_task.chain(&self.job.avoid).copied()
    }

    /// Whether a clone of the task was disrupted so recently that the task gets no other.
    pub(crate) fn rests(&self, now: Instant, task: &TaskSnapshot) -> bool {
        let disrupted = task.clone_disrupted;
        disrupted.is_some_and(|at| now < at.plus(self.clone_rest))
    }

    /// The value density of this clone, 0 without an estimate.
    pub(crate) fn worth_of_clone(&self, id: (TaskIndex, AttemptNumber)) -> f64 {
        let worth = self.worth.as_ref();
        worth.and_then(|worth| worth.of_clone(id)).unwrap_or(0.0)
    }

    /// The value density of the waiting attempts, ∞ without an estimate.
    pub(crate) fn worth_of_waiting(&self) -> f64 {
        self.worth
            .as_ref()
            .map_or(f64::INFINITY, |worth| worth.waiting)
    }

    /// Whether this plan stops the attempt.
    pub fn is_stopped(&self, id: (TaskIndex, AttemptNumber)) -> bool {
        self.doomed.contains(&id)
    }

    /// Whether the plan may launch or prune attempts of the job.
    pub fn may_run(&self) -> bool {
        self.job.phase == JobPhase::Active && !self.job.rules.suspend
    }

    /// Seconds from the job's submission to its deadline.
    pub fn limit(&self) -> Option<f64> {
        let limit = self.job.time_given()?.seconds();
        (limit > 0.0).then_some(limit)
    }

    /// Whether a policy about clones may act on the job, also if no attempt of it runs yet.
    pub fn may_speculate(&self) -> bool {
        self.may_run() && self.job.rules.speculation != SpeculationMode::Disabled
    }

    /// Whether the job has attempts that a policy about clones may act on.
    pub fn speculates(&self) -> bool {
        self.may_speculate() && !self.estimate.tasks.is_empty()
    }

    /// Whether launches of the job may proceed now.
    pub fn may_launch(&self, now: Instant) -> bool {
        self.may_run() && !self.is_held_up(now)
    }

    /// Whether clones of the job may be launched now as well.
    pub fn may_clone(&self, now: Instant) -> bool {
        let until = self.job.obstacles.clones_not_before;
        self.may_launch(now) && until.is_none_or(|until| until <= now)
    }

    /// Whether the job may get the one attempt that shows an autoscaler a demand that no node could hold.
    pub(crate) fn may_probe(&self, now: Instant) -> bool {
        let is_wanted = self.job.obstacles.no_node && self.holdings.waiting == 0;
        is_wanted && self.may_run() && !self.is_refused(now)
    }

    /// Whether launches of the job are held up although capacity may be free. Such a job neither holds nor reserves
    /// capacity.
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

    /// The number of further attempts that may exist, after the launches of the plan.
    pub fn attempts_left(&self) -> u32 {
        let most = self.job.obstacles.attempts_max;
        let taken = self.holdings.existing + self.launched;
        let taken = u32::try_from(taken).unwrap_or(u32::MAX);
        most.map_or(u32::MAX, |most| most.saturating_sub(taken))
    }

    /// Whether a run of the optimizer could change anything. A job past its deadline gets no clones, and a job
    /// without clones has nothing to prune.
    pub fn can_gain(&self) -> bool {
        let mut attempts = self.estimate.tasks.iter().flat_map(|task| &task.attempts);
        self.estimate.slack.is_some_and(|slack| slack > 0.0)
            || attempts.any(|attempt| attempt.kind == AttemptKind::Clone)
    }

    /// Whether the optimizer ran for the job and changed nothing.
    pub fn optimized_idly(&self) -> bool {
        self.optimized && self.clones.is_empty() && self.doomed.is_empty()
    }

    /// Tasks that could start now if capacity allowed it.
    pub fn waiting_now(&self) -> u32 {
        let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        let slots = self.job.rules.parallelism.saturating_sub(self.active);
        ready.saturating_add(self.untouched).min(slots)
    }

    /// Those of them whose pods the apiserver would accept.
    pub(crate) fn launchable_now(&self) -> u32 {
        self.waiting_now().min(self.attempts_left())
    }

    /// Those of them that reserved headroom does not hold back.
    pub(crate) fn wanting_now(&self) -> u32 {
        self.launchable_now().min(self.allowed())
    }

    /// The attempts that the job may get while headroom is kept for others.
    pub(crate) fn allowed(&self) -> u32 {
        self.claim.allowed(0.0)
    }

    /// The share of the usable capacity that the job's attempts hold.
    pub(crate) fn held(&self) -> f64 {
        self.claim.share * self.holdings.all as f64
    }

    /// Whether attempts of the job hold capacity.
    pub(crate) fn holds_room(&self) -> bool {
        self.holdings.all > 0
    }

    /// Whether tasks of the job wait that its parallelism would allow to start.
    pub fn waits_for_room(&self) -> bool {
        let started = self.active.saturating_add(self.admitted);
        self.waiting > 0 && started < self.job.rules.parallelism
    }

    /// Whether the optimizer's run for the job counts as a run.
    pub(crate) fn has_run(&self) -> bool {
        self.optimized && !self.is_cut_short
    }

    /// The running clones that the plan leaves alive.
    pub fn clones_alive(&self) -> usize {
        let attempts = self.estimate.tasks.iter().flat_map(|task| {
            let index = task.index;
            task.attempts.iter().map(move |a| (index, a))
        });
        let alive = attempts.filter(|(index, attempt)| {
            attempt.kind == AttemptKind::Clone && !self.doomed.contains(&(*index, attempt.number))
        });
        alive.count()
    }

    /// Tasks that have not ended, including those that wait.
    pub fn unfinished(&self) -> u32 {
        let ended = self.job.done.len().saturating_add(self.job.failed.len());
        self.job.rules.completions.saturating_sub(ended)
    }

    /// Whether this pass looks at the job.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.origin == Origin::Looked
    }

    /// Whether the job's facts may have changed since the pass before.
    pub(crate) fn has_changed(&self) -> bool {
        self.is_looked_at() || self.news > News::None
    }

    pub(crate) fn report(&mut self, snapshot: &Snapshot) -> JobReport {
        let now = snapshot.now;
        let pocd_after = self.ln_pocd_unobserved.or(self.ln_pocd_after);
        let pocd_after = pocd_after.map(probability);
        let seconds = self.completion.filter(|seconds| seconds.is_finite());
        let risk = self.risk(snapshot, pocd_after);
        JobReport {
            key: self.job.key.clone(),
            pocd_before: self.ln_pocd_before.map(probability),
            pocd_after,
            estimated_completion: seconds.map(|s| now.plus(Span::from_seconds_f64(s))),
            optimized: self.optimized,
            is_cut_short: self.is_cut_short,
            stragglers: self.stragglers.clone(),
            clones: std::mem::take(&mut self.clones),
            kills: std::mem::take(&mut self.kills),
            refusals: std::mem::take(&mut self.refusals),
            clone_budget: self.clone_budget,
            waiting: self.waiting,
            kept_back: self.kept_back,
            attempt_slot_seconds: self.estimate.mean_run.filter(|run| run.is_finite()),
            feasibility: self.feasibility,
            ends: self.expected_ends(now, risk.as_ref().and_then(|risk| risk.task)),
            risk,
        }
    }
}
