//! Functions that every policy about clones shares: they select the tasks of a job that may get a clone, estimate its
//! gain and cost, and grant it. The rules of the job's user are enforced here, so that no policy can forget one:
//! `speculation`, `idempotency`, the bound per task, failed clones, real capacity, and the capacity that waiting
//! first attempts count on.

use crate::estimate::distribution::AttemptDistribution;
use crate::estimate::pareto::LN_CERTAIN;
use crate::estimate::pocd::{ln_miss_of_launch, ln_task_pocd};
use crate::ids::TaskIndex;
use crate::plan::{Finding, Launch, LaunchReason, Refusal, RefusalReason};
use crate::round::estimates::resume_point;
use crate::round::{AttemptEstimate, JobView, Round, TaskEstimate};
use crate::snapshot::{AttemptKind, Idempotency, NodeIndex, ResumePoint, SpeculationMode};

mod budget;
mod grants;

pub(crate) use grants::{grant, has_enough};

/// After this many failed clones a task gets no more.
const CLONE_FAILURES_MAX: u32 = 2;

/// Jobs that only observe are served last and only on paper, so that they take nothing from others.
pub const MODES: [SpeculationMode; 2] = [SpeculationMode::Enabled, SpeculationMode::Observe];

/// How a policy selects the tasks that it requests clones for.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// The policy's bound of clones per task; jobs may allow less.
    pub max_clones: u32,
    /// How the deadline limits clones.
    pub heeds: Heeds,
    /// Where clones begin.
    pub begins: Begins,
    /// Whether clones avoid every node that is estimated as slow.
    pub fast_nodes_only: bool,
}

/// How a policy treats the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heeds {
    /// It ignores the deadline.
    Nothing,
    /// Jobs past it get no clones.
    Deadline,
    /// In addition, tasks that no clone can bring in time get none.
    Chance,
}

/// Where the clones of a policy begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// Where the job's user allows attempts to begin: at the best checkpoint or from zero.
    AsTheJobResumes,
    /// From zero, as in the policies that know no checkpoints.
    FromZero,
}

impl Ask {
    /// The options of a policy that reads neither deadlines nor checkpoints.
    pub fn blind(max_clones: u32) -> Self {
        Self {
            max_clones,
            heeds: Heeds::Nothing,
            begins: Begins::FromZero,
            fast_nodes_only: false,
        }
    }

    /// The options of a policy that reads both.
    pub fn aware(max_clones: u32) -> Self {
        Self {
            max_clones,
            heeds: Heeds::Chance,
            begins: Begins::AsTheJobResumes,
            fast_nodes_only: false,
        }
    }
}

/// A job with tasks that may get clones.
pub struct CloneJob {
    pub position: usize,
    /// The mode that the job's user set: `Enabled`, or `Observe`.
    pub mode: SpeculationMode,
    /// Most live clones per task.
    pub max_clones: u32,
    /// ln of the PoCD at which shed stops starting clones; +∞ without one.
    pub ln_pocd_target: f64,
    fast_nodes_only: bool,
    /// The tasks, ascending.
    pub tasks: Vec<CloneTask>,
    /// ln of the product of the PoCDs of all other tasks.
    pub ln_pocd_rest: f64,
}

impl CloneJob {
    fn ln_pocd(&self) -> f64 {
        let tasks = self.tasks.iter().map(|task| ln_task_pocd(task.ln_miss));
        self.ln_pocd_rest + tasks.sum::<f64>()
    }
}

/// A task that may get clones.
pub struct CloneTask {
    pub index: TaskIndex,
    launch: Launch,
    /// Further nodes to avoid if possible.
    avoid: Vec<NodeIndex>,
    /// Nodes with an attempt of the task. They include the assumed nodes of attempts without one, and the nodes of
    /// the task's clones of this pass.
    nodes: Vec<NodeIndex>,
    /// The first of these nodes.
    known: Vec<NodeIndex>,
    /// ln P(its attempts that the plan leaves alive, and its clones of this pass, all miss).
    pub ln_miss: f64,
    /// ln P(one further clone, launched now, misses).
    pub ln_miss_per_clone: f64,
    /// Clones that the plan leaves alive.
    pub clones_alive: u32,
    /// Clones of this pass.
    pub clones: u32,
    /// Seconds until the task is expected to end without a further clone; absent while unknown.
    pub remaining: Option<f64>,
    /// Expected slot-seconds of a clone.
    pub cost: f64,
    pub is_refused: bool,
}

impl CloneTask {
    /// P(its attempts that the plan leaves alive, and its clones of this pass, all miss).
    pub fn miss(&self) -> f64 {
        libm::exp(self.ln_miss)
    }
}

/// The job's PoCD before and after a clone; absent while nothing is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Odds {
    pub before: Option<f64>,
    pub after: Option<f64>,
}

impl CloneTask {
    /// Attempts that live after the plan.
    pub fn copies(&self) -> u32 {
        1 + self.clones_alive + self.clones
    }
}

/// The reason of a clone that a policy other than Shed+ launches.
pub(crate) fn by_rule(finding: Finding, odds: Odds) -> LaunchReason {
    LaunchReason::Rule {
        finding,
        pocd_before: odds.before,
        pocd_after: odds.after,
    }
}

/// The jobs of that mode with tasks that may get clones from the policy, by submission. A job's position in the
/// snapshot does not matter.
pub(crate) fn clone_jobs(
    pass: &mut Round<'_>,
    mode: SpeculationMode,
    ask: Ask,
    wants: impl Fn(usize, &JobView<'_>, &TaskEstimate) -> bool,
) -> Vec<CloneJob> {
    let positions = pass.by_submission();
    let of = |position| {
        clone_job(pass, position, mode, ask, |state, task| {
            wants(position, state, task)
        })
    };
    positions.into_iter().filter_map(of).collect()
}

/// The job's tasks that the policy `wants` clones for and that may get them. The other wanted tasks are reported as
/// refused. `None` unless the job is due, is in that mode and may be launched for.
pub(crate) fn clone_job(
    pass: &mut Round<'_>,
    position: usize,
    mode: SpeculationMode,
    ask: Ask,
    wants: impl Fn(&JobView<'_>, &TaskEstimate) -> bool,
) -> Option<CloneJob> {
    let weighed = open_job(pass, position, mode)?.estimate.tasks.len();
    if !pass.afford(position, weighed as u64) {
        return None;
    }
    let state = pass.jobs.get(position)?;
    let (mut tasks, mut refusals) = (Vec::new(), Vec::new());
    for task in state.estimate.tasks.iter().filter(|t| wants(state, t)) {
        match clone_task(pass, position, state, task, ask) {
            Ok(candidate) => tasks.extend(candidate),
            Err(why) => refusals.push(Refusal {
                task: task.index,
                why,
            }),
        }
    }
    // Most runs find no such tasks, and a PoCD takes longer to compute than the search.
    let ln_pocd_rest = if tasks.is_empty() {
        None
    } else {
        let is_candidate = |index| tasks.binary_search_by_key(&index, |t| t.index).is_ok();
        state.ln_pocd_without(is_candidate)
    };
    let ln_pocd_rest = ln_pocd_rest.unwrap_or(f64::NEG_INFINITY);
    pass.jobs.get_mut(position)?.draft.refusals.extend(refusals);
    CloneJob::of(pass, position, mode, ask, tasks, ln_pocd_rest)
}

/// The job, if clones of it may be weighed in this pass and mode.
fn open_job<'p, 'a>(
    pass: &'p Round<'a>,
    position: usize,
    mode: SpeculationMode,
) -> Option<&'p JobView<'a>> {
    let state = pass.jobs.get(position)?;
    let applies = state.draft.optimized && state.job.rules.speculation == mode;
    (applies && state.may_clone(pass.snapshot.now)).then_some(state)
}

impl CloneJob {
    /// None without a task to clone.
    fn of(
        pass: &Round<'_>,
        position: usize,
        mode: SpeculationMode,
        ask: Ask,
        tasks: Vec<CloneTask>,
        ln_pocd_rest: f64,
    ) -> Option<Self> {
        let rules = &pass.jobs.get(position)?.job.rules;
        (!tasks.is_empty()).then_some(Self {
            position,
            mode,
            max_clones: rules.max_clones_per_task.min(ask.max_clones),
            ln_pocd_target: rules.target_pocd.map_or(f64::INFINITY, libm::log),
            fast_nodes_only: ask.fast_nodes_only,
            tasks,
            ln_pocd_rest,
        })
    }
}

/// The same for the tasks whose first attempts this plan launches: clones at submission. `ln_pocd_rest` includes
/// these tasks, without clones.
pub(crate) fn clone_job_of_started(
    pass: &mut Round<'_>,
    position: usize,
    mode: SpeculationMode,
    ask: Ask,
) -> Option<CloneJob> {
    let weighed = open_job(pass, position, mode)?.draft.started.len();
    if !pass.afford(position, weighed as u64) {
        return None;
    }
    let state = pass.jobs.get(position)?;
    let (mut tasks, mut refusals) = (Vec::new(), Vec::new());
    for &(index, node) in &state.draft.started {
        match started_task(pass, state, index, node, ask) {
            Ok(candidate) => tasks.push(candidate),
            Err(why) => refusals.push(Refusal { task: index, why }),
        }
    }
    tasks.sort_by_key(|task| task.index);
    let ln_pocd_rest = state.draft.ln_pocd_after.unwrap_or(f64::NEG_INFINITY);
    pass.jobs.get_mut(position)?.draft.refusals.extend(refusals);
    CloneJob::of(pass, position, mode, ask, tasks, ln_pocd_rest)
}

/// Clones of the task that the plan leaves alive.
fn clones_alive(state: &JobView<'_>, task: &TaskEstimate) -> u32 {
    let index = task.index;
    let attempts = task.attempts.iter();
    let alive = attempts.filter(|a| !state.draft.doomed.contains(&(index, a.number)));
    (alive.count() as u32).saturating_sub(1)
}

/// Why a task with this many failed and live clones is not considered.
fn refusal(
    state: &JobView<'_>,
    clone_failures: u32,
    clones_alive: u32,
    ask: Ask,
) -> Option<RefusalReason> {
    let max_clones = state.job.rules.max_clones_per_task.min(ask.max_clones);
    let heeds_deadline = ask.heeds != Heeds::Nothing;
    if state.job.obstacles.clones_stopped {
        Some(RefusalReason::Stopped)
    } else if state.job.admitted.is_some() {
        Some(RefusalReason::Queue)
    } else if state.job.rules.idempotency == Idempotency::None {
        Some(RefusalReason::NotIdempotent)
    } else if heeds_deadline && state.estimate.slack.is_none_or(|slack| slack <= 0.0) {
        // [S+] Algorithm 1, step 1: jobs past their deadline get no clones.
        Some(RefusalReason::Hopeless)
    } else if clone_failures >= CLONE_FAILURES_MAX {
        Some(RefusalReason::CloneFailures)
    } else if clones_alive >= max_clones {
        Some(RefusalReason::Maximum)
    } else {
        None
    }
}

/// The expected result of an attempt launched now.
struct Prospect {
    ln_miss: f64,
    cost: f64,
}

/// Spec 7.2: the remaining time of a new attempt follows the job's distribution, and the launch overhead δ reduces
/// its slack. Without a distribution or deadline it counts as a miss. `None` if the policy needs both.
fn prospect(state: &JobView<'_>, begin: f64, ask: Ask) -> Option<Prospect> {
    let known = state
        .estimate
        .distribution
        .as_ref()
        .zip(state.estimate.slack);
    let mean = state.estimate.mean_run;
    let overhead = state.launch_time();
    match known {
        Some((distribution, slack)) => Some(Prospect {
            ln_miss: ln_miss_of_launch(distribution, begin, slack, overhead),
            cost: (1.0 - begin) * mean.unwrap_or(distribution.minimum()),
        }),
        None if ask.heeds == Heeds::Nothing => Some(Prospect {
            ln_miss: LN_CERTAIN,
            cost: (1.0 - begin) * mean.unwrap_or(0.0),
        }),
        None => None,
    }
}

fn clone_of(index: TaskIndex, resume: Option<&ResumePoint>) -> Launch {
    Launch {
        task: index,
        kind: AttemptKind::Clone,
        resume: resume.cloned(),
        avoid: Vec::new(),
        rather_not: Vec::new(),
        node: None,
        surge: false,
        reason: LaunchReason::Admitted,
    }
}

/// None while too little is known about the job.
fn clone_task(
    pass: &Round<'_>,
    position: usize,
    state: &JobView<'_>,
    task: &TaskEstimate,
    ask: Ask,
) -> Result<Option<CloneTask>, RefusalReason> {
    let index = task.index;
    let facts = state.job.task(index);
    let clones_alive = clones_alive(state, task);
    let failures = facts.map_or(0, |facts| facts.clone_failures);
    if let Some(why) = refusal(state, failures, clones_alive, ask) {
        return Err(why);
    }
    if facts.is_some_and(|facts| state.rests(pass.snapshot.now, facts)) {
        return Err(RefusalReason::Disrupted);
    }
    let node_of = |attempt: &AttemptEstimate| {
        let id = (position, index, attempt.number);
        attempt.node.or_else(|| pass.capacity.tentative_node(id))
    };
    let (resume, begin) = match ask.begins {
        Begins::AsTheJobResumes => {
            let point = facts.and_then(|facts| resume_point(state.job, facts));
            (point, task.clone_begin())
        }
        Begins::FromZero => (None, 0.0),
    };
    let Some(prospect) = prospect(state, begin, ask) else {
        return Ok(None);
    };
    if ask.heeds == Heeds::Chance && prospect.ln_miss >= LN_CERTAIN {
        return Err(RefusalReason::Hopeless);
    }
    Ok(Some(CloneTask {
        index,
        launch: clone_of(index, resume),
        avoid: state.avoided(facts).collect(),
        nodes: task.attempts.iter().filter_map(node_of).collect(),
        known: task.attempts.iter().filter_map(|a| a.node).collect(),
        ln_miss: state.ln_miss_kept(task),
        ln_miss_per_clone: prospect.ln_miss,
        clones_alive,
        clones: 0,
        remaining: task.remaining(),
        cost: prospect.cost,
        is_refused: false,
    }))
}

fn started_task(
    pass: &Round<'_>,
    state: &JobView<'_>,
    index: TaskIndex,
    node: NodeIndex,
    ask: Ask,
) -> Result<CloneTask, RefusalReason> {
    let task = state.job.task(index);
    let failures = task.map_or(0, |task| task.clone_failures);
    if let Some(why) = refusal(state, failures, 0, ask) {
        return Err(why);
    }
    if task.is_some_and(|task| state.rests(pass.snapshot.now, task)) {
        return Err(RefusalReason::Disrupted);
    }
    let blind = Ask {
        heeds: Heeds::Nothing,
        ..ask
    };
    let prospect = prospect(state, 0.0, blind);
    let (ln_miss, cost) = prospect.map_or((LN_CERTAIN, 0.0), |p| (p.ln_miss, p.cost));
    Ok(CloneTask {
        index,
        launch: clone_of(index, None),
        avoid: state.avoided(task).collect(),
        nodes: vec![node],
        known: Vec::new(),
        ln_miss,
        ln_miss_per_clone: ln_miss,
        clones_alive: 0,
        clones: 0,
        remaining: None,
        cost,
        is_refused: false,
    })
}
