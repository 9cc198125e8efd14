//! The view of a pass through which a policy reads the jobs and requests stops and clones.

use crate::capacity::Capacity;
use crate::estimate::distribution::Distribution;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::memory::{Arrivals, CloneGains, Restarts, ShownTimes};
use crate::plan::{Alternative, Finding, LaunchReason, RefusalReason, Trade};
use crate::policy::contract::PolicyRule;
use crate::round::clones::{self, Ask, CloneJob, Odds};
use crate::round::{JobView, Round, TaskEstimate, ValueDensity};
use crate::snapshot::{KillKind, Snapshot, SpeculationMode};
use crate::time::{Instant, Span};

/// The jobs of a pass, the policy's estimates and memory of them, and its requests.
pub struct Desk<'d, 'a, R: PolicyRule> {
    round: &'d mut Round<'a>,
    states: &'d mut [R::State],
    /// The positions of the jobs whose memory was asked for to change it.
    changed: &'d mut Vec<usize>,
    beliefs: &'d [R::Belief],
    places: &'d [R::Place],
}

impl<'d, 'a, R: PolicyRule> Desk<'d, 'a, R> {
    pub(super) fn new(
        round: &'d mut Round<'a>,
        (states, changed): (&'d mut [R::State], &'d mut Vec<usize>),
        beliefs: &'d [R::Belief],
        places: &'d [R::Place],
    ) -> Self {
        Self {
            round,
            states,
            changed,
            beliefs,
            places,
        }
    }

    /// When the pass takes place.
    pub fn now(&self) -> Instant {
        self.round.snapshot.now
    }

    /// The facts that the pass decides by.
    pub fn snapshot(&self) -> &'a Snapshot {
        self.round.snapshot
    }

    /// The jobs, in the snapshot's order.
    pub fn jobs(&self) -> &[JobView<'a>] {
        &self.round.jobs
    }

    /// The job at this position.
    pub fn job(&self, position: usize) -> Option<&JobView<'a>> {
        self.round.jobs.get(position)
    }

    /// The positions of the jobs by submission, then by key: where a job stands in the snapshot
    /// does not matter.
    pub fn by_submission(&self) -> Vec<usize> {
        self.round.by_submission()
    }

    /// The cluster's capacity that remains.
    pub fn capacity(&self) -> &Capacity {
        &self.round.capacity
    }

    /// The policy's estimates of the job.
    pub fn belief(&self, position: usize) -> Option<&R::Belief> {
        self.beliefs.get(position)
    }

    /// The same of all jobs, by position.
    pub fn beliefs(&self) -> &[R::Belief] {
        self.beliefs
    }

    /// The policy's decisions about all jobs, by position.
    pub fn places(&self) -> &[R::Place] {
        self.places
    }

    /// The policy's decision about the job after comparing it with the others.
    pub fn place(&self, position: usize) -> Option<&R::Place> {
        self.places.get(position)
    }

    /// The policy's memory of the jobs, by position.
    pub fn states(&self) -> &[R::State] {
        self.states
    }

    /// The policy's memory of the job.
    pub fn state(&self, position: usize) -> Option<&R::State> {
        self.states.get(position)
    }

    /// The policy's memory of the job, mutable.
    pub fn state_mut(&mut self, position: usize) -> Option<&mut R::State> {
        self.changed.push(position);
        self.states.get_mut(position)
    }

    /// Whether the policy remembers a job that is no longer in the snapshot.
    pub fn has_departed(&self) -> bool {
        self.round.memory.has_departed(self.round.snapshot)
    }

    /// DollyMP Algorithm 1: the level of each job, by position; 1 is served first.
    pub fn levels(&self, rho: f64, slot: Span) -> Vec<u32> {
        self.round.levels(rho, slot.seconds())
    }

    /// Requests a pass at `at`, if that is still to come.
    pub fn wake_at(&mut self, at: Instant) {
        self.round.wake_at(Some(at));
    }

    /// Takes `steps` of the pass's work budget for these jobs, which are decided together. If fewer steps remain it
    /// takes none, and the policy must leave the jobs unchanged.
    pub fn afford(&mut self, positions: &[usize], steps: u64) -> bool {
        self.round.afford_all(positions, steps)
    }

    /// Whether this plan stops the attempt.
    pub fn is_stopped(&self, position: usize, id: (TaskIndex, AttemptNumber)) -> bool {
        let job = self.round.jobs.get(position);
        job.is_some_and(|job| job.draft.doomed.contains(&id))
    }

    /// Stops an attempt in favor of `kept`, which takes the task over. If the plan
    /// stops one of the two already, nothing changes.
    pub fn prune(&mut self, position: usize, id: (TaskIndex, AttemptNumber), kept: AttemptNumber) {
        if !self.is_stopped(position, id) && !self.is_stopped(position, (id.0, kept)) {
            self.round.kill(position, id, KillKind::Prune, Some(kept));
        }
    }

    /// Stops a task's only attempt, and the task is launched again.
    pub fn restart(&mut self, position: usize, id: (TaskIndex, AttemptNumber)) {
        self.round.kill(position, id, KillKind::Restart, None);
    }

    /// The jobs of that mode with tasks that may get clones from the policy, by submission.
    pub fn clone_jobs(
        &mut self,
        mode: SpeculationMode,
        ask: Ask,
        wants: impl Fn(usize, &JobView<'_>, &TaskEstimate) -> bool,
    ) -> Vec<CloneJob> {
        clones::clone_jobs(self.round, mode, ask, wants)
    }

    /// The same for the tasks whose first attempts this plan launches.
    pub fn clone_job_of_started(
        &mut self,
        position: usize,
        mode: SpeculationMode,
        ask: Ask,
    ) -> Option<CloneJob> {
        clones::clone_job_of_started(self.round, position, mode, ask)
    }

    /// Requests one clone of the task at that index of the job, and returns whether it is granted.
    pub fn request(&mut self, job: &mut CloneJob, at: usize, finding: Finding) -> bool {
        clones::grant(self.round, job, at, |odds| clones::by_rule(finding, odds))
    }

    /// The same with the policy's own reason, given the job's PoCD before and after.
    pub fn request_as(
        &mut self,
        job: &mut CloneJob,
        at: usize,
        why: impl FnOnce(Odds) -> LaunchReason,
    ) -> bool {
        clones::grant(self.round, job, at, why)
    }

    /// Reports what was weighed for the clone of the job that was granted last.
    pub fn report_trade(&mut self, position: usize, trade: Trade) {
        let job = self.round.jobs.get_mut(position);
        if let Some(clone) = job.and_then(|job| job.draft.clones.last_mut()) {
            clone.trade = Some(trade);
        }
    }

    /// Reports clones that this pass did not launch, as the alternative to every clone that it did launch and that
    /// took no slot from a waiting attempt.
    pub fn report_alternative(&mut self, alternative: &Alternative) {
        let clones = self
            .round
            .jobs
            .iter_mut()
            .flat_map(|job| &mut job.draft.clones);
        for trade in clones.filter_map(|clone| clone.trade.as_mut()) {
            if !matches!(trade.alternative, Some(Alternative::Attempt { .. })) {
                trade.alternative = Some(alternative.clone());
            }
        }
    }

    /// Whether the job's PoCD has reached the value that its user set.
    pub fn has_enough(&self, position: usize) -> bool {
        clones::has_enough(self.round, position)
    }

    /// The work budget that remains in the pass.
    pub fn steps_left(&self) -> u64 {
        self.round.steps_left()
    }

    /// Reports that the work budget ended before the policy was done with the job.
    pub fn cut_short(&mut self, position: usize) {
        self.round.cut_short(&[position]);
    }

    /// Reports the tasks of the job that got no clone and were not refused yet.
    pub fn refuse_rest(&mut self, job: &mut CloneJob, why: RefusalReason) {
        job.refuse_rest(self.round, why);
    }

    /// Gives the job, which has shown no times, the distribution of times that other jobs suggest. It decides, and
    /// is not reported.
    pub fn assume(&mut self, position: usize, distribution: Distribution, common: f64) {
        if let Some(job) = self.round.jobs.get_mut(position) {
            job.assume(distribution, common);
        }
    }

    /// Sets the value of the job's waiting attempts and of its clones. `decide` evicts a clone only for an attempt
    /// of at least its value.
    pub fn set_value_density(&mut self, position: usize, value_density: ValueDensity) {
        if let Some(job) = self.round.jobs.get_mut(position) {
            job.draft.value_density = Some(value_density);
        }
    }

    /// Stops a task's only attempt so that a task of the job `waiter` takes its slot for these seconds; the stopped task
    /// is launched again.
    pub fn preempt(
        &mut self,
        position: usize,
        id: (TaskIndex, AttemptNumber),
        (waiter, seconds): (usize, f64),
    ) {
        let round = &mut self.round;
        if round.shares.are_apart(waiter, position) {
            round.shares.charge(&round.capacity, waiter, seconds);
        }
        round.kill(position, id, KillKind::Preempt, None);
    }

    /// Whether a waiting attempt of one job may take the slot of a running attempt of another one: within a tenant, or if
    /// the waiting attempt is within its tenant's share and the running one is lent, or is of a tenant with less credit.
    pub fn may_displace(&self, waiter: usize, victim: usize) -> bool {
        let round = &self.round;
        round.shares.may_displace(&round.capacity, waiter, victim)
    }

    /// Withdraws the refusals of the job that this pass has reported so far.
    pub fn withdraw_refusals(&mut self, position: usize) {
        if let Some(job) = self.round.jobs.get_mut(position) {
            job.draft.refusals.clear();
        }
    }

    /// Results of attempts that replaced slow ones.
    pub fn restarts(&self) -> &Restarts {
        &self.round.restarts
    }

    /// The same, to be changed, and the jobs.
    pub fn jobs_and_restarts(&mut self) -> (&[JobView<'a>], &mut Restarts) {
        (&self.round.jobs, &mut self.round.restarts)
    }

    /// What clones have gained.
    pub fn clone_gains(&self) -> &CloneGains {
        &self.round.clone_gains
    }

    /// The same, to be changed, and the jobs.
    pub fn jobs_and_clone_gains(&mut self) -> (&[JobView<'a>], &mut CloneGains) {
        (&self.round.jobs, &mut self.round.clone_gains)
    }

    /// The task times that recent jobs have shown.
    pub fn shown_times(&self) -> &ShownTimes {
        &self.round.shown_times
    }

    /// The same, to be changed.
    pub fn shown_times_mut(&mut self) -> &mut ShownTimes {
        &mut self.round.shown_times
    }

    /// The demand of the jobs that arrived recently.
    pub fn arrivals(&self) -> &Arrivals {
        &self.round.arrivals
    }

    /// The same, to be changed, and the jobs.
    pub fn jobs_and_arrivals(&mut self) -> (&[JobView<'a>], &mut Arrivals) {
        (&self.round.jobs, &mut self.round.arrivals)
    }
}
