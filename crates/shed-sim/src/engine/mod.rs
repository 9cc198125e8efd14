//! The simulation: event → world → settle each touched job → decide for the cluster when a pass is due → carry the
//! plan out. `settle` and `decide` are the operator's own.
//!
//! All events of one instant are taken and settled before the planner runs. As in the operator, a burst makes one
//! plan.

mod apply;
mod attempt;
mod capacity;
mod group;
mod incremental_passes;
mod job_queue;
mod launch;
mod listed;
mod nodes;
mod passes;
mod phases;
mod record;
mod settle;
mod stage_deadline;
mod time_limit;
mod watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use shed_core::decide::queue_positions::has_places;
use shed_core::decide::{News, decide};
use shed_core::ids::{JobClass, JobKey, Tenant};
use shed_core::index_set::IndexSet;
use shed_core::memory::Memory;
use shed_core::plan::{Plan, Settled};
use shed_core::plan_check::Violation;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::settle::DEADLINE_GRACE;
use shed_core::snapshot::{
    AttemptState, EndRules, Idempotency, JobPhase, JobRules, JobSnapshot, NodeIndex, Obstacles,
    Resume, SlotTime, Snapshot, SpeculationMode,
};
use shed_core::time::{Instant, Span};
use shed_core::workflow::{JobState, Workflows};

use crate::event::{AttemptRef, Event, EventQueue};
use crate::outcome::{AttemptOutcome, JobOutcome, Outcome, Totals};
use crate::settings::{Passes, Resuming, Settings};
use crate::trace::{Ending, Job, Trace};
use attempt::{Attempts, ReportTimes};
use capacity::Capacity;
use group::{Group, Spare};
use incremental_passes::Steady;
use job_queue::Places;
pub use time_limit::ThreadTime;
use time_limit::TimeLimit;
pub use watch::Watch;

/// Passes at one instant: more can only mean that a policy reverses its own actions.
const PASSES_PER_INSTANT_MAX: u32 = 100_000;

/// The error that stops a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan breaks a rule of the core.
    #[error("at {at} s the plan breaks a rule: {violation}")]
    Plan {
        /// When, in seconds.
        at: f64,
        /// The violation.
        violation: Violation,
    },
    /// A shortcut gave another result than the full computation.
    #[error("at {at} s {what} differ from those of the whole snapshot: {details}")]
    Shortcut {
        /// When, in seconds.
        at: f64,
        /// The values that differ.
        what: &'static str,
        /// Both values.
        details: String,
    },
    /// An attempt skipped a part of its task that no other attempt has done.
    #[error(
        "at {at} s job {job}, task {task}: an attempt began at {begin} of its task, and others \
         cover only {covered} of it"
    )]
    Uncovered {
        /// When, in seconds.
        at: f64,
        /// The job.
        job: String,
        /// The task.
        task: u32,
        /// The progress at which the attempt began.
        begin: f64,
        /// The progress that others cover.
        covered: f64,
    },
    /// The policy plans endlessly at one instant.
    #[error(
        "at {0} s the planner made {PASSES_PER_INSTANT_MAX} passes: it reverses its own actions"
    )]
    Livelock(f64),
    /// The run took more processor time than it may.
    #[error("the run takes over {} s of processor time", .0.as_secs_f64())]
    OverLimit(Duration),
    /// No event remains, but some jobs are not done.
    #[error("{0} jobs can't be done: no attempt runs and no event remains")]
    Stalled(usize),
}

/// The remaining stages of a job.
struct JobProgress {
    /// Per stage: parents that are not done.
    missing: Vec<u32>,
    /// The groups of stages that are available and not done.
    active: Vec<u32>,
    failed: bool,
    /// The median of the job's task times.
    median: Span,
    /// By stage: the usual time from its begin to the job's end; empty unless the rule for stage deadlines needs it.
    paths: Vec<Span>,
}

/// A run.
pub struct Engine<'a> {
    settings: &'a Settings,
    trace: &'a Trace,
    /// The weights of tenants; empty if they do not divide the capacity.
    weights: BTreeMap<Tenant, f64>,
    now: Instant,
    queue: EventQueue,
    capacity: Capacity,
    attempts: Attempts,
    groups: Vec<Group>,
    /// Groups that are not finished, in the snapshot's order, and the data that gives each its position.
    live: Vec<u32>,
    live_places: Vec<(u32, u32)>,
    jobs: Vec<JobProgress>,
    outcomes: Vec<JobOutcome>,
    /// Ended attempts; absent unless requested.
    ended: Option<Vec<AttemptOutcome>>,
    totals: Totals,
    /// Tasks with facts that `settle` has not processed.
    dirty: Vec<(u32, u32)>,
    /// Positions of the tasks that are settled, and the resulting actions; kept to reuse their memory.
    settling: (Vec<usize>, Vec<Settled>),
    spare: Spare,
    /// Finished groups that no pass has seen yet.
    finished: Vec<u32>,
    /// Groups that `settle` must process as a whole.
    dirty_groups: Vec<u32>,
    /// Attempts that no node had capacity for, in the order of their launch.
    unplaced: Vec<AttemptRef>,
    /// The capacity that ended attempts still hold on nodes, in the order of their ends.
    leaving: VecDeque<(u32, Resources)>,
    changed: bool,
    /// The runs that learned stage deadlines come from.
    workflows: Workflows,
    planner: Planner,
    no_checkpoint: Arc<str>,
    watch: Option<&'a mut dyn Watch>,
    limit: Option<TimeLimit>,
}

/// The planner's state from pass to pass.
struct Planner {
    memory: Memory,
    scope: Scope,
    /// The wake event that is already in the queue.
    wake_at: Option<Instant>,
    /// Whether tasks that failed or were disrupted may wait for a retry.
    retries: bool,
    /// The next pass that the last one requested.
    next_pass: Option<Instant>,
    overhead_total: i64,
    overhead_count: i64,
    scratch: Snapshot,
    steady: Steady,
    places: Places,
    decide: Decide,
    /// Jobs with facts that the core rejects.
    refused: BTreeSet<Option<JobKey>>,
}

/// The planning function: the core's `decide`.
pub type Decide = fn(&Snapshot, Memory, &Policy) -> (Plan, Memory);

/// How a pass is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Every job is looked at.
    Full,
    /// The jobs that have changed: see `incremental_passes`.
    Steady,
    /// Single jobs, which then stand in a queue: see `job_queue`.
    Places,
}

impl Scope {
    fn of(settings: &Settings, capacity: &Capacity, trace: &Trace) -> Self {
        // The place of a tenant's job depends on what other jobs hold.
        let has_tenants = settings.shares && trace.jobs.iter().any(|job| job.tenant.is_some());
        let is_slots = matches!(capacity, Capacity::Slots { .. });
        if settings.passes == Passes::Full || settings.policy.speculation.looks_at_all() {
            Self::Full
        } else if is_slots && !has_tenants && has_places(&settings.policy) {
            Self::Places
        } else {
            Self::Steady
        }
    }
}

/// The weights of the trace's tenants: those of the settings, or else equal ones.
fn weights(settings: &Settings, trace: &Trace) -> BTreeMap<Tenant, f64> {
    let tenants = trace.jobs.iter().filter_map(|job| job.tenant.clone());
    let equal = tenants.map(|tenant| (Tenant(tenant), 1.0));
    match settings.shares && settings.weights.is_empty() {
        true => equal.collect(),
        false => settings.weights.clone(),
    }
}

impl<'a> Engine<'a> {
    /// A run over a workload that has been checked against the cluster.
    pub fn new(settings: &'a Settings, trace: &'a Trace) -> Self {
        let capacity = Capacity::new(&settings.cluster);
        let scope = Scope::of(settings, &capacity, trace);
        let mut queue = EventQueue::default();
        if let Some(first) = trace.jobs.first() {
            queue.put(first.arrival, Event::Arrival(0));
        }
        if let Capacity::Nodes(nodes) = &capacity {
            for (at, node) in nodes.iter().enumerate() {
                if node.spec.slowdowns.is_some() {
                    queue.put(Instant(0), Event::Slowdown(at as u32));
                }
                if let Some(change) = node.spec.changes.first() {
                    queue.put(change.at, Event::Node(at as u32));
                }
            }
        }
        Self {
            settings,
            trace,
            weights: weights(settings, trace),
            now: Instant(0),
            queue,
            capacity,
            attempts: Attempts::default(),
            groups: Vec::new(),
            live: Vec::new(),
            live_places: Vec::new(),
            jobs: Vec::with_capacity(trace.jobs.len()),
            outcomes: Vec::with_capacity(trace.jobs.len()),
            ended: None,
            totals: Totals::default(),
            dirty: Vec::new(),
            settling: (Vec::new(), Vec::new()),
            spare: Spare::default(),
            finished: Vec::new(),
            dirty_groups: Vec::new(),
            unplaced: Vec::new(),
            leaving: VecDeque::new(),
            changed: false,
            workflows: Workflows::default(),
            planner: Planner {
                memory: Memory::default(),
                scope,
                wake_at: None,
                retries: false,
                next_pass: None,
                overhead_total: 0,
                overhead_count: 0,
                scratch: Snapshot::default(),
                steady: Steady::default(),
                places: Places::default(),
                decide,
                refused: BTreeSet::new(),
            },
            no_checkpoint: Arc::from(""),
            watch: None,
            limit: None,
        }
    }

    /// The same with a limit on its processor time.
    pub fn limited_to(mut self, most: Duration) -> Self {
        self.limit = Some(TimeLimit::new(most));
        self
    }

    /// The same with another `decide`, for a policy outside the core.
    pub fn deciding_by(mut self, decide: Decide) -> Self {
        self.planner.decide = decide;
        self.planner.scope = Scope::Full;
        self
    }

    /// Runs until no event remains.
    ///
    /// # Errors
    /// If a plan breaks a rule, an attempt claims work that no attempt did, jobs cannot end, or the run takes longer
    /// than its limit.
    pub fn run(mut self) -> Result<Outcome, RunError> {
        while let Some(at) = self.queue.next_at() {
            if let Some(limit) = &mut self.limit
                && limit.is_over()
            {
                return Err(RunError::OverLimit(limit.most));
            }
            self.now = at;
            self.instant()?;
        }
        self.finish()
    }

    /// Processes the present instant: events, their consequences, and passes until nothing changes any more.
    fn instant(&mut self) -> Result<(), RunError> {
        for _ in 0..PASSES_PER_INSTANT_MAX {
            while let Some(event) = self.queue.take_at(self.now) {
                self.handle(event)?;
            }
            self.settle_dirty()?;
            // Settling may have freed capacity immediately.
            if self.queue.next_at() == Some(self.now) {
                continue;
            }
            if !std::mem::take(&mut self.changed) {
                return Ok(());
            }
            self.plan()?;
        }
        Err(RunError::Livelock(self.seconds()))
    }

    fn seconds(&self) -> f64 {
        self.now.since(Instant(0)).seconds()
    }

    fn finish(mut self) -> Result<Outcome, RunError> {
        let open = self.outcomes.iter().filter(|job| job.ended.is_none());
        let open = open.count();
        if open > 0 {
            return Err(RunError::Stalled(open));
        }
        self.totals.events = self.queue.taken();
        self.totals.refused = self.planner.refused.len() as u64;
        Ok(Outcome {
            jobs: self.outcomes,
            attempts: self.ended.unwrap_or_default(),
            totals: self.totals,
        })
    }

    fn handle(&mut self, event: Event) -> Result<(), RunError> {
        match event {
            Event::Arrival(job) => self.arrive(job),
            Event::Start(name) if self.attempts.is_current(name) => self.start(name.slot),
            Event::FirstReport(name) if self.attempts.is_current(name) => {
                self.first_report(name.slot);
            }
            Event::End(name) if self.attempts.is_current(name) => return self.end(name.slot),
            Event::Gone(name) if self.attempts.is_current(name) => self.gone(name.slot),
            Event::Start(_) | Event::FirstReport(_) | Event::End(_) | Event::Gone(_) => {}
            Event::Freed => self.free_next(),
            Event::Deadline(group) => {
                if let Some(facts) = &mut self.groups[group as usize].facts {
                    // A simulated end is stamped to the millisecond, so everything up to the deadline is known at the
                    // deadline; the grace is for container times.
                    facts.facts_as_of = self.now.plus(DEADLINE_GRACE);
                    self.dirty_groups.push(group);
                }
            }
            Event::StageDeadline(group) => self.leave_stage_deadline(group),
            Event::Wake => {
                if self.planner.wake_at.is_some_and(|at| at <= self.now) {
                    self.planner.wake_at = None;
                }
                self.woken();
            }
            Event::Node(node) => self.change_node(node),
            Event::Slowdown(node) => self.draw_slowdown(node),
        }
        Ok(())
    }

    fn arrive(&mut self, position: u32) {
        let trace = self.trace;
        let job = &trace.jobs[position as usize];
        if let Some(next) = trace.jobs.get(position as usize + 1) {
            self.queue.put(next.arrival, Event::Arrival(position + 1));
        }
        let missing: Vec<u32> = job.stages.iter().map(|s| s.parents.len() as u32).collect();
        self.jobs.push(JobProgress {
            missing,
            active: Vec::new(),
            failed: false,
            median: job.usual_duration(),
            paths: self.paths(job),
        });
        self.outcomes.push(JobOutcome::new(job));
        if self.settings.job_masters {
            self.capacity.count_master(true);
        }
        let first: Vec<usize> = (0..job.stages.len())
            .filter(|&stage| job.stages[stage].parents.is_empty())
            .collect();
        for stage in first {
            self.open_group(position, stage);
        }
        self.show_phases(position);
    }

    /// A stage becomes available.
    fn open_group(&mut self, position: u32, stage: usize) {
        let trace = self.trace;
        let job = &trace.jobs[position as usize];
        let key = format!("{position:07}.{stage:04}");
        let mut facts = self.facts(job, stage, &key);
        let deadline = facts.deadline;
        facts.deadline = self.stage_deadline(position, stage);
        let own = facts.deadline.filter(|own| Some(*own) != deadline);
        facts.is_stage = job.stages.len() > 1 && own.is_none();
        let on_miss_fails = facts.rules.on_miss == shed_core::snapshot::OnMiss::Fail;
        let id = self.groups.len() as u32;
        let mut group = Group::new(position, stage as u32, facts);
        group.median = self.jobs[position as usize].median;
        group.launch_overhead = self.settings.launch_overhead.of(group.median);
        group.reports = self.settings.reports.map(|reports| ReportTimes {
            first: reports.first.of(group.median),
            every: reports.every.of(group.median).max(Span(1)),
        });
        self.groups.push(group);
        let place = self.place_of(id);
        self.live.insert(place, id);
        self.live_places.insert(place, (position, stage as u32));
        if let Some(deadline) = deadline.filter(|_| on_miss_fails) {
            self.queue.put(deadline.max(self.now), Event::Deadline(id));
        }
        if let Some(own) = own {
            self.queue.put(own, Event::StageDeadline(id));
        }
        self.jobs[position as usize].active.push(id);
        self.show_stage(id, JobState::Open);
        self.touch(id, News::Urgent);
        self.touch_place(id, true);
        self.changed = true;
    }

    /// The group's position among the live ones, or where it belongs: they are in the order of arrival, as the jobs
    /// of the trace are.
    fn place_of(&self, id: u32) -> usize {
        let group = &self.groups[id as usize];
        let mine = (group.job, group.stage);
        self.live_places.partition_point(|&other| other < mine)
    }

    /// A stage as the core's job. All stages have the job's arrival and, unless the rule for stage deadlines says
    /// otherwise, the job's deadline.
    fn facts(&self, job: &Job, stage: usize, key: &str) -> JobSnapshot {
        let class = class(job, stage);
        let stage = &job.stages[stage];
        let settings = self.settings;
        JobSnapshot {
            key: JobKey::from(key),
            tenant: match &job.tenant {
                Some(tenant) if settings.shares => Tenant(Arc::clone(tenant)),
                _ => Tenant::from("trace"),
            },
            class,
            expected_duration: job.expected,
            submitted: job.arrival,
            deadline: job.deadline.map(|deadline| job.arrival.plus(deadline)),
            rules: JobRules {
                completions: stage.durations.len() as u32,
                parallelism: u32::MAX,
                idempotency: Idempotency::Safe,
                resume: match settings.resuming {
                    Resuming::Scratch => Resume::None,
                    Resuming::Latest => Resume::Latest,
                    Resuming::Offset | Resuming::Checkpoint(_) => Resume::Checkpoint,
                },
                speculation: SpeculationMode::Enabled,
                max_clones_per_task: settings.max_clones,
                target_pocd: None,
                clone_budget: None,
                on_miss: settings.on_miss,
                backoff_limit_per_index: settings.backoff_limit_per_index,
                suspend: false,
                replaces_when_gone: false,
                preemption: settings.preemption,
                ending: EndRules::default(),
            },
            phase: JobPhase::Active,
            launched_before: false,
            reports_progress: settings.reports.is_some(),
            demand: self.capacity.demand(stage.demand),
            eligible_nodes: (0..self.capacity.len()).map(NodeIndex).collect(),
            done: IndexSet::new(),
            failed: IndexSet::new(),
            tasks: Vec::new(),
            ended_runs: Vec::new(),
            ended_slot_time: SlotTime::default(),
            launch_not_before: None,
            obstacles: Obstacles::default(),
            failures: 0,
            time_limit: None,
            facts_as_of: self.now,
            asks_feasibility: false,
            admitted: None,
            is_stage: false,
            phases: None,
            avoid: Vec::new(),
        }
    }

    fn first_report(&mut self, slot: u32) {
        let attempt = self.attempts.get(slot);
        self.planner.overhead_total += self.now.since(attempt.launched).0;
        self.planner.overhead_count += 1;
        let id = attempt.group;
        let news = self.groups[id as usize].attention.of_time(News::Urgent);
        self.touch(id, news);
        self.changed |= !matches!(self.planner.scope, Scope::Steady | Scope::Places);
    }

    fn end(&mut self, slot: u32) -> Result<(), RunError> {
        let (at, ending) = self.attempts.get(slot).end();
        if at != self.now {
            // Its node changed its speed after this event was queued, and queued another.
            return Ok(());
        }
        if ending == Ending::Finished {
            self.check_coverage(slot)?;
        }
        let state = match ending {
            Ending::Finished => AttemptState::Succeeded { finished: self.now },
            Ending::Failed | Ending::Evicted => AttemptState::Failed {
                finished: self.now,
                disrupted: ending == Ending::Evicted,
            },
        };
        self.ended(slot, state);
        Ok(())
    }

    fn gone(&mut self, slot: u32) {
        self.ended(slot, AttemptState::Lost);
    }
}

/// The class in which the stage recurs, because stages of one job have little in common.
fn class(job: &Job, stage: usize) -> Option<JobClass> {
    let class = job.class.as_ref()?;
    Some(if job.stages.len() > 1 {
        JobClass::from(format!("{class}/{stage}").as_str())
    } else {
        JobClass(Arc::clone(class))
    })
}
