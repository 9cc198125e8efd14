//! One job in a run of `decide`: its facts, what the pass has found about it, and what it plans for it.

use std::ops::Deref;

use crate::estimate::distribution::Distribution;
use crate::estimate::pocd::probability;
use crate::estimate::progress::is_straggler;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::JobReport;
use crate::round::Terms;
use crate::round::draft::JobDraft;
use crate::round::estimates::TaskEstimate;
use crate::round::findings::JobFindings;
use crate::round::findings_cache::{News, Origin};
use crate::round::job_distribution::Learner;
use crate::round::slow_nodes::Beliefs;
use crate::snapshot::{
    AttemptKind, GATED_MAX, Idempotency, JobPhase, JobSnapshot, NodeIndex, Snapshot,
    SpeculationMode, TaskSnapshot,
};
use crate::time::Instant;

/// One job of a pass.
///
/// It reads like its findings, which change only by the methods here: nothing that plans can write them. The plan for
/// the job is in its draft.
pub struct JobView<'a> {
    pub job: &'a JobSnapshot,
    found: Box<JobFindings>,
    pub draft: JobDraft,
}

impl Deref for JobView<'_> {
    type Target = JobFindings;

    fn deref(&self) -> &JobFindings {
        &self.found
    }
}

impl<'a> JobView<'a> {
    pub(crate) fn new(job: &'a JobSnapshot, found: impl Into<Box<JobFindings>>) -> Self {
        let found = found.into();
        let draft = JobDraft {
            ln_pocd_after: found.ln_pocd_before,
            ..JobDraft::default()
        };
        Self { job, found, draft }
    }

    pub(super) fn into_findings(self) -> Box<JobFindings> {
        self.found
    }

    /// Judges the attempts with the findings of all jobs.
    pub(super) fn judge(&mut self, learner: &Learner<'_>, beliefs: &Beliefs, terms: &Terms<'_>) {
        let found = &mut self.found;
        found.view = beliefs.view_of(&self.job.tenant);
        if found.origin == Origin::Looked {
            found.further_attempts = terms.further_attempts;
            found.clone_rest = (terms.clone_rest)(self.job.time_given(), found.t_avg);
            found.estimate.judge(self.job, learner);
        }
    }

    /// Judges the attempts, with the job's launch time if the policy measures it.
    pub(crate) fn assess(&mut self, launch_time: Option<f64>) {
        self.found.overhead = launch_time;
        self.found.estimate.assess(launch_time);
    }

    /// See [`Desk::assume`](crate::policy::Desk::assume).
    pub(crate) fn assume(&mut self, distribution: Distribution, common: f64) {
        self.found.estimate.assume(self.job, distribution, common);
    }

    /// Notes whether the policy acts on the job for the first time.
    pub(crate) fn set_new(&mut self, is_new: bool) {
        self.found.is_new = is_new;
    }

    /// Ranks the job, if the policy has a rank for it.
    pub(crate) fn rank(&mut self, rank: Option<(bool, i64)>) {
        self.found.rank = rank.or(self.found.rank);
    }

    /// The policy needs to judge the job again then.
    pub(crate) fn judge_at(&mut self, at: Option<Instant>) {
        self.found.appointment.judge_at(at);
    }

    /// Computes stragglers, PoCD and completion without clones of this plan. The same formulas serve every job,
    /// whether or not the optimizer runs for it. `clone_gain`: see [`CloneGains::share`].
    pub(crate) fn predict(&mut self, now: Instant, clone_gain: impl FnOnce() -> f64) {
        if self.is_looked_at() && self.estimate.is_assumed {
            self.found.ln_pocd_before = self.certain_ln_pocd();
            self.found.ln_pocd_expected = self.ln_pocd_before;
            self.draft.ln_pocd_after = self.ln_pocd_before;
            return;
        }
        // Without a look they are those of the last one.
        if self.is_looked_at() {
            if let Some(slack) = self.estimate.slack {
                let late = |task: &&TaskEstimate| is_straggler(task.remaining(), slack);
                let stragglers = self.estimate.tasks.iter().filter(late);
                self.found.stragglers = stragglers.map(|task| task.index).collect();
            }
            self.found.ln_pocd_before = self.ln_pocd(|_| false, |_, _| true);
            self.draft.ln_pocd_after = self.ln_pocd_before;
            self.found.ln_pocd_expected = self.ln_pocd_expected(clone_gain);
            self.found.completion = self.expected_completion(now);
        }
        if !self.draft.doomed.is_empty() {
            self.draft.ln_pocd_after = self.ln_pocd_without(|_| false);
        }
    }

    /// Finds the job's likely end, once it is predicted. The time that this takes is that of some twenty PoCDs.
    pub(crate) fn predict_range(&mut self, now: Instant) {
        if self.is_looked_at() {
            self.found.end_range = self.end_range(now);
        }
    }

    /// Seconds from a launch to the start of its work: measured for the job by a policy, or else t_avg.
    pub fn launch_time(&self) -> f64 {
        self.overhead.unwrap_or(self.t_avg)
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
    pub(crate) fn clone_value_density(&self, id: (TaskIndex, AttemptNumber)) -> f64 {
        let value_density = self.draft.value_density.as_ref();
        value_density
            .and_then(|value_density| value_density.of_clone(id))
            .unwrap_or(0.0)
    }

    /// The value density of the waiting attempts, ∞ without an estimate.
    pub(crate) fn waiting_value_density(&self) -> f64 {
        self.draft
            .value_density
            .as_ref()
            .map_or(f64::INFINITY, |value_density| value_density.waiting)
    }

    /// Whether this plan stops the attempt.
    pub fn is_stopped(&self, id: (TaskIndex, AttemptNumber)) -> bool {
        self.draft.doomed.contains(&id)
    }

    /// Whether the plan may launch or prune attempts of the job.
    pub fn may_run(&self) -> bool {
        self.job.phase == JobPhase::Active && !self.job.rules.suspend
    }

    /// Whether shed may launch clones of the job's tasks.
    pub(crate) fn may_get_clones(&self) -> bool {
        let rules = &self.job.rules;
        let is_allowed = rules.speculation == SpeculationMode::Enabled
            && rules.idempotency != Idempotency::None
            && rules.max_clones_per_task > 0;
        let is_stopped = self.job.obstacles.clones_stopped || self.job.admitted.is_some();
        is_allowed && self.may_run() && !is_stopped
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
        let is_full = self.attempts_left() == 0 && self.holdings.gated > 0;
        let is_out_of_place = obstacles.no_node || self.holdings.unplaceable > 0 || is_full;
        let is_blocked = is_out_of_place && self.job.admitted.is_none();
        is_blocked
            || obstacles.attempts_max == Some(0)
            || self.job.rules.suspend
            || self.is_refused(now)
    }

    fn is_refused(&self, now: Instant) -> bool {
        let until = self.job.launch_not_before;
        until.is_some_and(|until| until > now)
    }

    /// The number of further attempts that may exist, after the launches of the plan.
    pub fn attempts_left(&self) -> u32 {
        let left = |most: usize, held: usize| {
            let left = most.saturating_sub(held + self.draft.launched);
            u32::try_from(left).unwrap_or(u32::MAX)
        };
        let most = self.job.obstacles.attempts_max;
        let created = most.map(|most| left(most as usize, self.holdings.existing));
        let limit = match (self.job.attempts_admitted(), self.holdings.gated) {
            (Some(admitted), _) => Some(left(admitted as usize, self.holdings.live)),
            (None, 0) => None,
            (None, gated) => Some(left(GATED_MAX, gated)),
        };
        created.into_iter().chain(limit).min().unwrap_or(u32::MAX)
    }

    /// Whether a run of the optimizer could change anything. A job past its deadline gets no clones, and a job
    /// without clones has nothing to prune.
    pub fn can_gain(&self) -> bool {
        let mut attempts = self.estimate.tasks.iter().flat_map(|task| &task.attempts);
        self.estimate.slack.is_some_and(|slack| slack > 0.0)
            || attempts.any(|attempt| attempt.kind == AttemptKind::Clone)
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

    /// Whether tasks of the job wait that its parallelism would allow to start.
    pub fn waits_for_capacity(&self) -> bool {
        let started = self.active.saturating_add(self.draft.admitted);
        self.draft.waiting > 0 && started < self.job.rules.parallelism
    }

    /// Whether the optimizer's run for the job counts as a run.
    pub(crate) fn has_run(&self) -> bool {
        self.draft.optimized && !self.draft.is_cut_short
    }

    /// The running clones that the plan leaves alive.
    pub fn clones_alive(&self) -> usize {
        let attempts = self.estimate.tasks.iter().flat_map(|task| {
            let index = task.index;
            task.attempts.iter().map(move |a| (index, a))
        });
        let alive = attempts.filter(|(index, attempt)| {
            attempt.kind == AttemptKind::Clone
                && !self.draft.doomed.contains(&(*index, attempt.number))
        });
        alive.count()
    }

    /// Tasks that have not ended, including those that wait.
    pub fn unfinished(&self) -> u32 {
        self.job.unfinished()
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
        let pocd_after = self.draft.ln_pocd_unobserved.or(self.draft.ln_pocd_after);
        let pocd_after = pocd_after.map(probability);
        let risk = self.risk(snapshot, pocd_after);
        JobReport {
            key: self.job.key.clone(),
            pocd_before: self.ln_pocd_before.map(probability),
            pocd_after,
            pocd_expected: self.pocd_expected(pocd_after),
            // One that is overdue may end at any moment.
            estimated_completion: self.completion.map(|at| at.max(now)),
            end_range: self.end_range,
            optimized: self.draft.optimized,
            is_cut_short: self.draft.is_cut_short,
            stragglers: self.stragglers.clone(),
            clones: std::mem::take(&mut self.draft.clones),
            kills: std::mem::take(&mut self.draft.kills),
            refusals: std::mem::take(&mut self.draft.refusals),
            clone_budget: self.draft.clone_budget,
            waiting: self.draft.waiting,
            waiting_for_share: self.draft.waiting_for_share,
            attempt_slot_seconds: self.estimate.mean_run.filter(|run| run.is_finite()),
            feasibility: self.draft.feasibility,
            ends: self.expected_ends(now, risk.as_ref().and_then(|risk| risk.task)),
            risk,
        }
    }
}
