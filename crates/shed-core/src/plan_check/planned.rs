//! Properties that a plan of `decide` must have.

use std::collections::{BTreeMap, BTreeSet};

use crate::capacity::{Capacity, Holdings, UnusableNodes};
use crate::ids::{AttemptNumber, JobKey, NodeName, TaskIndex, Tenant};
use crate::plan::{Kill, Launch, Move, Plan};
use crate::plan_check::budget::{Launched, excess};
use crate::plan_check::{Rule, Violation, find_attempt, shares};
use crate::policy::{PREEMPTION_LAUNCHES, Policy};
use crate::snapshot::{
    AttemptKind, AttemptSnapshot, GATED_MAX, Idempotency, JobPhase, JobSnapshot, KillKind, Node,
    NodeIndex, Snapshot, SpeculationMode, TaskSnapshot,
};
use crate::time::{Instant, Span};

/// The faults of a plan. Each violation names the job whose slice the operator must refuse; the slices of the others
/// remain valid.
pub fn plan_check(snapshot: &Snapshot, policy: &Policy, plan: &Plan) -> Vec<Violation> {
    if plan.actions.is_empty() {
        return Vec::new();
    }
    let positions = positions(snapshot, plan);
    let capacity = Capacity::new(snapshot, policy.capacity_share);
    let slice = |job| {
        let launched_by = preemptible_from(snapshot, job, policy, plan);
        Slice::new(job, snapshot.now, policy, launched_by, &capacity.unusable)
    };
    let named = positions
        .values()
        .filter_map(|&at| Some((at, snapshot.jobs.get(at)?)));
    let mut slices: BTreeMap<usize, Slice<'_>> = named.map(|(at, job)| (at, slice(job))).collect();
    let mut check = PlanCheck {
        policy,
        waiting: capacity.waiting_pods(snapshot),
        capacity,
        nodes: &snapshot.nodes,
        positions: None,
        violations: Vec::new(),
        step: 0,
    };
    // All stops first, because the survivor that a launch or a stop relies on must survive all of them.
    for planned in &plan.actions {
        let at = positions.get(&planned.job);
        let slice = at.and_then(|at| slices.get_mut(at));
        if let (Move::Kill(kill), Some(slice)) = (&planned.action, slice) {
            slice.kill_target(kill, &mut check.violations);
        }
    }
    for planned in &plan.actions {
        let at = positions.get(&planned.job).copied();
        match at.and_then(|at| Some((at, slices.get_mut(&at)?))) {
            Some((at, slice)) => check.action(at, slice, &planned.action),
            None => check.violations.push(Violation {
                job: planned.job.clone(),
                rule: Rule::UnknownTarget,
                message: "the job is not in the snapshot".into(),
            }),
        }
    }
    for (&at, slice) in &slices {
        let report = plan.report.jobs.get(at);
        let report = report.filter(|report| report.key == slice.job.key);
        if let Some(message) = excess(slice.job, snapshot.now, report, &slice.cloned) {
            let violation = slice.violation(Rule::CloneBudget, message);
            check.violations.push(violation);
        }
    }
    shares::check(snapshot, plan, &check.capacity, &mut check.violations);
    check.violations
}

/// Positions of the jobs that the plan has actions for.
fn positions<'a>(snapshot: &'a Snapshot, plan: &Plan) -> BTreeMap<&'a JobKey, usize> {
    let named: BTreeSet<&JobKey> = plan.actions.iter().map(|planned| &planned.job).collect();
    let jobs = snapshot.jobs.iter().enumerate();
    let named = jobs.filter(|(_, job)| named.contains(&job.key));
    named.map(|(at, job)| (&job.key, at)).collect()
}

struct PlanCheck<'a> {
    policy: &'a Policy,
    capacity: Capacity,
    nodes: &'a [Node],
    /// Positions of the nodes by name, built once a launch names one.
    positions: Option<BTreeMap<&'a NodeName, NodeIndex>>,
    /// Pods of each tenant that wait beyond capacity.
    waiting: BTreeMap<Tenant, usize>,
    violations: Vec<Violation>,
    /// 0 stops, 1 first attempts and retries, 2 clones.
    step: u8,
}

/// The part of a plan that concerns one job.
struct Slice<'a> {
    job: &'a JobSnapshot,
    now: Instant,
    /// Whether the policy gives up a task's only attempt.
    may_restart: bool,
    /// Whether resumed clones replace a first attempt once they have started.
    hands_over: bool,
    /// An attempt that was launched later than this may not be preempted.
    launched_by: Option<Instant>,
    doomed: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Tasks that get a first attempt or retry.
    started: BTreeSet<TaskIndex>,
    clones: BTreeMap<TaskIndex, u32>,
    /// The clones in the order of the plan.
    cloned: Vec<Launched>,
    /// Tasks with an attempt before the plan.
    active: u32,
    /// The capacity that the job's attempts hold before the plan.
    holdings: Holdings,
    /// The job's launches so far.
    launched: usize,
}

impl PlanCheck<'_> {
    fn action(&mut self, at: usize, slice: &mut Slice<'_>, action: &Move) {
        let step = match action {
            Move::Launch(launch) if launch.kind == AttemptKind::Clone => 2,
            Move::Launch(_) => 1,
            Move::Kill(_) => 0,
        };
        if step < self.step {
            let message = format!("{action:?} comes too late");
            self.violations.push(slice.violation(Rule::Order, message));
        }
        self.step = self.step.max(step);
        match action {
            Move::Kill(kill) => slice.kill_rule(kill, &mut self.violations),
            Move::Launch(launch) => {
                self.check_capacity(at, slice, launch);
                let max_clones = self.policy.speculation.max_clones();
                if let Some(rule) = slice.launch(launch, max_clones) {
                    let message =
                        format!("launches task {} as {}", launch.task, launch.kind.label());
                    self.violations.push(slice.violation(rule, message));
                }
            }
        }
    }

    fn check_capacity(&mut self, at: usize, slice: &Slice<'_>, launch: &Launch) {
        if launch.surge {
            let is_clone = launch.kind == AttemptKind::Clone;
            if is_clone || self.is_one_too_many(slice) {
                let message = format!("task {} is one too many beyond capacity", launch.task);
                self.violations.push(slice.violation(Rule::Surge, message));
            }
            return;
        }
        let demand = self.capacity.demands.get(at);
        if demand.is_some_and(|demand| !self.capacity.free.fits_total(demand)) {
            let message = format!("no usable capacity is left for task {}", launch.task);
            self.violations
                .push(slice.violation(Rule::Capacity, message));
        }
        let node = self.node(at, slice, launch);
        self.capacity.launch(at, node);
    }
}

impl PlanCheck<'_> {
    /// Whether the job's tenant exceeds its limit of pods beyond capacity, including this one.
    fn is_one_too_many(&mut self, slice: &Slice<'_>) -> bool {
        // The one exception: a quota outside shed counts on attempts that it has admitted.
        if slice.job.obstacles.no_node || slice.job.admitted.is_some() {
            return false;
        }
        let waiting = self.waiting.entry(slice.job.tenant.clone()).or_insert(0);
        *waiting += 1;
        *waiting > self.policy.surge_max as usize
    }

    /// The node that the launch names.
    fn node(&mut self, at: usize, slice: &Slice<'_>, launch: &Launch) -> Option<NodeIndex> {
        let name = launch.node.as_ref()?;
        let nodes = self.nodes;
        let positions = self.positions.get_or_insert_with(|| {
            let nodes = nodes.iter().zip((0..).map(NodeIndex));
            nodes.map(|(node, at)| (&node.name, at)).collect()
        });
        let node = positions.get(name).copied();
        let eligible = &slice.job.eligible_nodes;
        let node = node.filter(|node| eligible.binary_search(node).is_ok());
        let demand = self.capacity.demands.get(at);
        let fits = |&node: &NodeIndex| {
            demand.is_some_and(|demand| self.capacity.free.fits_node(node, demand))
        };
        if !node.as_ref().is_some_and(fits) {
            let message = format!("task {} does not fit on {name}", launch.task);
            self.violations
                .push(slice.violation(Rule::Placement, message));
        }
        node
    }
}

impl<'a> Slice<'a> {
    fn new(
        job: &'a JobSnapshot,
        now: Instant,
        policy: &Policy,
        launched_by: Option<Instant>,
        unusable: &UnusableNodes,
    ) -> Self {
        let never_two = job.rules.waits_until_gone();
        let counts =
            |attempt: &AttemptSnapshot| attempt.lives() || never_two && attempt.holds_capacity();
        let active = job
            .tasks
            .iter()
            .filter(|task| task.attempts.iter().any(counts));
        Self {
            job,
            now,
            may_restart: policy.speculation.restarts(),
            hands_over: policy.speculation.hands_over(),
            launched_by,
            doomed: BTreeSet::new(),
            started: BTreeSet::new(),
            clones: BTreeMap::new(),
            cloned: Vec::new(),
            active: active.count() as u32,
            holdings: Holdings::of(job, unusable),
            launched: 0,
        }
    }

    fn violation(&self, rule: Rule, message: String) -> Violation {
        Violation {
            job: self.job.key.clone(),
            rule,
            message,
        }
    }

    /// The number of attempts of the task that survive all stops of the plan.
    fn survivors(&self, task: &TaskSnapshot) -> u32 {
        let stays = |a: &&AttemptSnapshot| !self.doomed.contains(&(task.index, a.number));
        task.live().filter(stays).count() as u32
    }

    fn kill_target(&mut self, kill: &Kill, violations: &mut Vec<Violation>) {
        let name = format!("task {} attempt {}", kill.task, kill.attempt);
        let Some((task, attempt)) = find_attempt(self.job, kill.task, kill.attempt) else {
            violations.push(self.violation(Rule::UnknownTarget, format!("{name} is unknown")));
            return;
        };
        if task.granted_at(kill.attempt).is_some() {
            violations.push(self.violation(Rule::KillTarget, format!("{name} may be publishing")));
        }
        if !attempt.lives() {
            violations.push(self.violation(Rule::KillTarget, format!("{name} is not live")));
        }
        if !self.doomed.insert((kill.task, kill.attempt)) {
            violations.push(self.violation(Rule::KillTarget, format!("{name} is killed twice")));
        }
    }

    fn kill_rule(&self, kill: &Kill, violations: &mut Vec<Violation>) {
        let Some((task, victim)) = find_attempt(self.job, kill.task, kill.attempt) else {
            return;
        };
        let name = format!("task {} attempt {}", kill.task, kill.attempt);
        if self.survivors(task) == 0 && !kill.kind.gives_up_the_only() {
            let message = format!("{name} is the last live attempt");
            violations.push(self.violation(Rule::LastAttempt, message));
        }
        let survivor = kill.survivor.and_then(|number| {
            let live = task.live().filter(|attempt| attempt.number == number);
            live.into_iter()
                .find(|attempt| !self.doomed.contains(&(kill.task, attempt.number)))
        });
        let broken = match kill.kind {
            KillKind::Settle
            | KillKind::Replace
            | KillKind::Suspend
            | KillKind::JobEnd
            | KillKind::Abandon
            | KillKind::Surplus => Some(Rule::WrongSource),
            KillKind::Prune | KillKind::Restart
                if self.job.rules.speculation != SpeculationMode::Enabled =>
            {
                Some(Rule::Speculation)
            }
            KillKind::Prune => {
                let takes_over = |attempt: &&AttemptSnapshot| {
                    has_advanced(attempt) || self.has_handed_over(victim, attempt)
                };
                let is_sound = survivor.as_ref().is_some_and(takes_over);
                (!is_sound).then_some(Rule::KillRule)
            }
            KillKind::Restart if !self.may_restart => Some(Rule::Speculation),
            KillKind::Restart => {
                let is_only = task.live().count() == 1;
                (!is_only || !has_advanced(victim)).then_some(Rule::KillRule)
            }
            KillKind::Preempt => self.preemption_rule(task, victim),
            KillKind::Evict => {
                let is_sound = victim.kind == AttemptKind::Clone && survivor.is_some();
                (!is_sound).then_some(Rule::KillRule)
            }
        };
        if let Some(rule) = broken {
            let message = format!("{name} must not be killed as {}", kill.kind.label());
            violations.push(self.violation(rule, message));
        }
    }

    /// Whether a resumed clone that has started replaces the attempt.
    fn has_handed_over(&self, victim: &AttemptSnapshot, clone: &AttemptSnapshot) -> bool {
        self.hands_over
            && self.job.rules.resume.keeps_checkpoints()
            && victim.kind != AttemptKind::Clone
            && clone.kind == AttemptKind::Clone
            && clone.started.is_some()
    }

    /// An attempt is preempted only if its user allows it and its work is not lost. It is never preempted right after
    /// its launch, so that two jobs cannot preempt each other endlessly.
    fn preemption_rule(&self, task: &TaskSnapshot, victim: &AttemptSnapshot) -> Option<Rule> {
        let is_allowed = self.job.rules.is_preemptible();
        let Some(launched_by) = self.launched_by.filter(|_| is_allowed) else {
            return Some(Rule::Preemption);
        };
        let is_settled = victim.launched <= launched_by && task.live().count() == 1;
        (!task.has_checkpoint() || !is_settled).then_some(Rule::KillRule)
    }

    /// The first rule that the launch breaks, without capacity.
    fn launch(&mut self, launch: &Launch, max_clones: u32) -> Option<Rule> {
        let job = self.job;
        if launch.task.0 >= job.rules.completions {
            return Some(Rule::UnknownTarget);
        }
        let task = job.task(launch.task);
        self.launched += 1;
        if !self.may_launch(launch, task) || self.is_in_the_way(launch) {
            return Some(Rule::LaunchTarget);
        }
        let live = (self.holdings.live + self.launched).saturating_sub(self.doomed.len());
        let admitted = job.attempts_admitted();
        if admitted.is_some_and(|admitted| live > admitted as usize) {
            return Some(Rule::Quota);
        }
        let touched = task.is_some_and(|task| !task.attempts.is_empty());
        let again = self.started.contains(&launch.task) || self.clones.contains_key(&launch.task);
        if job.rules.idempotency == Idempotency::None && (touched || again) {
            return Some(Rule::NeverTwo);
        }
        // A clone may be launched together with its task's first attempt.
        let survivors = task.map_or(0, |task| self.survivors(task))
            + u32::from(self.started.contains(&launch.task));
        if launch.kind == AttemptKind::Clone {
            let clones = self.clones.entry(launch.task).or_insert(0);
            *clones += 1;
            // Of n attempts one is the task's own.
            self.cloned.push((launch.task, *clones + survivors > 2));
            let most = max_clones.min(job.rules.max_clones_per_task);
            if job.rules.speculation != SpeculationMode::Enabled || max_clones == 0 {
                Some(Rule::Speculation)
            } else if job.obstacles.clones_stopped {
                Some(Rule::CloneStop)
            } else if survivors == 0 {
                Some(Rule::LaunchKind)
            } else {
                // Of n attempts one is the task's own; the others are clones.
                (*clones + survivors - 1 > most).then_some(Rule::CloneCount)
            }
        } else {
            if job.rules.replaces_when_gone && touched {
                return Some(Rule::NeverTwo);
            }
            let lives = task.is_some_and(|task| task.live().next().is_some());
            if lives || !self.started.insert(launch.task) {
                return Some(Rule::LaunchKind);
            }
            let tasks = self.active + self.started.len() as u32;
            (tasks > job.rules.parallelism).then_some(Rule::Parallelism)
        }
    }

    fn may_launch(&self, launch: &Launch, task: Option<&TaskSnapshot>) -> bool {
        let job = self.job;
        let ended = job.has_ended(launch.task) || task.is_some_and(|task| task.winner.is_some());
        let back_off = task
            .filter(|_| launch.kind != AttemptKind::Clone)
            .and_then(|task| task.retry_not_before);
        let held_off = job.launch_not_before.max(back_off);
        let may_run = job.phase == JobPhase::Active && !job.rules.suspend;
        may_run && !ended && held_off.is_none_or(|until| until <= self.now)
    }
}

impl Slice<'_> {
    /// Whether the job must get no further attempt, or fewer, because its pods cannot be created or placed.
    fn is_in_the_way(&self, launch: &Launch) -> bool {
        let obstacles = &self.job.obstacles;
        let (held, launched) = (self.holdings, self.launched);
        let is_clone = launch.kind == AttemptKind::Clone;
        let clones_wait = obstacles.clones_not_before.is_some_and(|at| at > self.now);
        let is_second = obstacles.no_node && held.waiting + launched > 1;
        let is_gated = held.gated > 0 && held.gated + launched > GATED_MAX;
        let is_out_of_place = held.unplaceable > 0 || is_second || is_gated;
        let most = obstacles
            .attempts_max
            .map_or(usize::MAX, |most| most as usize);
        (is_out_of_place && self.job.admitted.is_none())
            || held.existing + launched > most
            || (is_clone && clones_wait)
    }
}

/// `None` if the policy preempts nothing, and the job's tenant has borrowed nothing.
fn preemptible_from(
    snapshot: &Snapshot,
    job: &JobSnapshot,
    policy: &Policy,
    plan: &Plan,
) -> Option<Instant> {
    let mut shares = plan.report.shares.iter();
    let mut borrows = || shares.any(|share| share.tenant == job.tenant && share.lent > 0.0);
    if !policy.speculation.preempts() && !borrows() {
        return None;
    }
    let overhead = snapshot.launch_overhead_of(&job.tenant);
    let overhead = overhead.unwrap_or_default();
    let run = overhead.seconds().max(0.0) * PREEMPTION_LAUNCHES;
    Some(Instant(snapshot.now.0 - Span::from_seconds_f64(run).0))
}

/// Whether the attempt has reported more progress than it began with.
fn has_advanced(attempt: &AttemptSnapshot) -> bool {
    attempt
        .progress
        .is_some_and(|progress| progress.last > attempt.start_progress)
}
