//! Shed+ ([S+] Algorithm 1) on live jobs, as printed. When the progress of a job reaches ξ, and θ seconds after the last
//! run, one run decides about all jobs together: of each task with several attempts it keeps the one that has processed
//! most data and stops the others; then it shares out the free slots, those of the stopped attempts included, among the
//! stragglers of all jobs. [`alloc_task`] counts the clones. Those whose slots are not free yet follow as these come
//! free.
//!
//! Where the paper is silent: κ subtracts the tasks that have not ended (A14), each job has its θ and the earliest
//! counts (A7), and an attempt without a report is no straggler.

use std::collections::{BTreeMap, BTreeSet};

use crate::optimize::alpha_fair::{Stride, alloc_alpha_fair};
use crate::optimize::clone_capacity::CloneCapacity;
use crate::optimize::greedy::{
    self, GreedyInput, GreedyJob, GreedyMode, GreedyOutcome, GreedyTask, alloc_task,
};
use crate::state::Runs;
use shed_core::estimate::progress::{is_straggler, optimization_interval};
use shed_core::ids::TaskIndex;
use shed_core::plan::{LaunchReason, RefusalReason};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall};
use shed_core::round::clones::{Ask, CloneJob, Heeds, MODES, Odds};
use shed_core::round::{AttemptEstimate, JobView, TaskEstimate};
use shed_core::settings::{Setting, word};
use shed_core::snapshot::SpeculationMode;
use shed_core::time::{Instant, Span};

/// Clones that one pass may hand out. It bounds the work of the optimizer, whose greedy takes O(log tasks) per clone.
/// The next run hands out the rest.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// The largest α that is used as a number. From here on the family equals max-min fairness up to the precision of a
/// probability, and `utility=maxmin` denotes that.
const ALPHA_MAX: f64 = 100.0;

/// The parameters of Shed+, named as in the papers.
#[derive(Debug, Clone, PartialEq)]
pub struct ShedPlus {
    /// ξ: the progress from which on a job takes part in runs.
    pub xi: f64,
    /// θ': the share of the deadline that lies between two runs, eq. 17.
    pub theta: f64,
    /// Whether θ adds t_avg, so that it is never less than a launch takes (eq. 17). Off: θ = θ'·D, as
    /// in Table II of \[S+\], which shows the effect of a smaller one.
    pub theta_floor: bool,
    /// Whether a run decides about all jobs together, as printed. Off: each job has runs of its own, at its ξ and every
    /// θ of its own. A job that reaches ξ then costs the others no clones that are still starting up.
    pub joint: bool,
    /// Which attempt of a task is the fastest, so that a run keeps it.
    pub keep: Keep,
    /// MAX: the most clones that a task may have at a time; a job may set a lower limit.
    pub max_clones: u32,
    /// The sum over the jobs that the optimizer maximizes, unless it is Algorithm 1's greedy.
    pub utility: Utility,
    /// α of `utility=alpha`, at least 0 (the sum); 1 is proportional. The larger α is, the more the lowest PoCD
    /// counts. Other utilities ignore it.
    pub alpha: f64,
    /// t_avg until one is measured.
    pub launch_overhead: Span,
    /// Lower bound of θ.
    pub min_interval: Span,
}

impl Default for ShedPlus {
    fn default() -> Self {
        Self {
            xi: 0.1,
            theta: 0.05,
            theta_floor: true,
            joint: true,
            keep: Keep::Data,
            max_clones: 5,
            utility: Utility::Greedy,
            alpha: 2.0,
            launch_overhead: Span::from_seconds(3),
            min_interval: Span::from_seconds(1),
        }
    }
}

/// The attempt that counts as a task's fastest. Only reported progress counts (pitfall 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// As printed: the one that has processed most data.
    Data,
    /// The one with the earliest predicted end. Clones that start over have less data than the slow attempt that they
    /// follow, and would be stopped for it (pitfall 2).
    End,
}

word!(
    Keep,
    [
        Keep::Data => "data",
        Keep::End => "end",
    ]
);

impl Keep {
    fn of(self, task: &TaskEstimate) -> Option<&AttemptEstimate> {
        let reporting = task.attempts.iter().filter(|attempt| attempt.reports());
        match self {
            Self::Data => reporting.max_by(|a, b| a.progress.total_cmp(&b.progress)),
            Self::End => task.kept(),
        }
    }
}

/// The utility U of [S+] (10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utility {
    /// Algorithm 1: the job with the lowest PoCD is served first, and within it the task with the lowest PoCD. This
    /// holds whether or not a clone helps the task, until capacity or MAX is reached.
    Greedy,
    /// α = 0: the sum of PoCDs, the share of jobs in time. This and the following leave out the jobs that are
    /// hopeless.
    Sum,
    /// α = 1: the sum of their logarithms.
    Proportional,
    /// α = ∞: the lowest.
    MaxMin,
    /// Any other α: [`ShedPlus::alpha`].
    Alpha,
}

word!(
    Utility,
    [
        Utility::Greedy => "greedy",
        Utility::Sum => "sum",
        Utility::Proportional => "proportional",
        Utility::MaxMin => "maxmin",
        Utility::Alpha => "alpha",
    ]
);

impl Utility {
    /// All utilities.
    pub const ALL: [Self; 5] = [
        Self::Greedy,
        Self::Sum,
        Self::Proportional,
        Self::MaxMin,
        Self::Alpha,
    ];
}

impl ShedPlus {
    /// α of the utility; absent for the greedy.
    fn alpha_of_utility(&self) -> Option<f64> {
        match self.utility {
            Utility::Greedy => None,
            Utility::Sum => Some(0.0),
            Utility::Proportional => Some(1.0),
            Utility::MaxMin => Some(f64::INFINITY),
            Utility::Alpha => Some(self.alpha),
        }
    }

    fn interval(&self, limit: f64, overhead: f64) -> Span {
        let theta = optimization_interval(limit, overhead, self.theta);
        Span::from_seconds_f64(theta).max(self.min_interval)
    }

    /// θ of the job; absent without a deadline.
    fn theta(&self, state: &JobView<'_>) -> Option<Span> {
        let limit = state.job.time_given()?.seconds();
        let overhead = if self.theta_floor { state.t_avg } else { 0.0 };
        Some(self.interval(limit, overhead))
    }

    /// Whether the job takes part in runs: "our scheduler waits for the job to progress ξ% before checking for
    /// stragglers".
    fn takes_part(&self, state: &JobView<'_>, runs: &Runs) -> bool {
        let may = state.speculates() && state.can_gain() && state.job.time_given().is_some();
        may && (runs.last.is_some() || state.estimate.progress >= self.xi)
    }

    /// When a job that takes part calls for a run. A clock that was put back delays it by no more than θ.
    fn calls_at(&self, state: &JobView<'_>, runs: &Runs, now: Instant) -> Option<Instant> {
        let theta = self.theta(state)?;
        Some(runs.last.map_or(now, |last| last.min(now).plus(theta)))
    }

    /// When the job's progress reaches ξ at the present rates.
    fn reaches_xi(&self, state: &JobView<'_>, now: Instant) -> Option<Instant> {
        let tasks = state.estimate.tasks.iter();
        let totals = tasks.filter_map(|task| self.keep.of(task));
        let rate: f64 = totals
            .filter_map(|it| it.total)
            .map(|total| 1.0 / total)
            .sum();
        let tasks = f64::from(state.job.rules.completions.max(1));
        let left = Span::from_seconds_f64((self.xi - state.estimate.progress) * tasks / rate);
        (rate > 0.0).then(|| now.plus(left.max(self.min_interval)))
    }
}

impl PolicyRule for ShedPlus {
    type Belief = ();
    type State = Runs;
    type Place = ();

    fn name(&self) -> &'static str {
        "shed-plus"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::number("xi", &mut self.xi, 0.0, 1.0),
            Setting::number("theta", &mut self.theta, 0.0, 1.0),
            Setting::switch("theta_floor", &mut self.theta_floor),
            Setting::switch("joint", &mut self.joint),
            Setting::word("keep", &mut self.keep),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::word("utility", &mut self.utility),
            Setting::number("alpha", &mut self.alpha, 0.0, ALPHA_MAX),
            Setting::seconds("launch_overhead", &mut self.launch_overhead, 0.0, 3600.0),
            Setting::seconds("min_interval", &mut self.min_interval, 0.1, 3600.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn launch_overhead(&self) -> Span {
        self.launch_overhead
    }

    /// θ: a decision of the optimizer holds until its next run.
    fn clone_rest(&self, limit: Option<Span>, overhead: f64) -> Span {
        self.interval(limit.map_or(0.0, Span::seconds), overhead)
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, Runs>) -> Judgement<()> {
        let acts = self.takes_part(job, recall.state);
        let awaits = !acts && job.speculates();
        Judgement {
            acts,
            // Progress causes no event.
            next: awaits.then(|| self.reaches_xi(job, recall.now)).flatten(),
            ..Judgement::default()
        }
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        let members = members(desk, self);
        keep_fastest(desk, self.keep, &members);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        let members = members(desk, self);
        launch_owed(desk, self, &members);
        run(desk, self, &members);
        let now = desk.now();
        let jobs = desk.jobs().iter().zip(desk.states());
        let acting = jobs.filter(|(state, _)| state.draft.optimized);
        let next = acting.filter_map(|(state, runs)| self.calls_at(state, runs, now));
        if let Some(next) = next.min() {
            desk.wake_at(next);
        }
    }
}

/// The positions of the jobs that this pass decides about: a job has reached ξ, or θ has passed. A job that only
/// observes calls for no run of others.
fn members(desk: &Desk<'_, '_, ShedPlus>, plus: &ShedPlus) -> BTreeSet<usize> {
    let now = desk.now();
    let jobs = desk.jobs().iter().zip(desk.states()).enumerate();
    let acting = jobs.filter(|(_, (state, _))| state.draft.optimized);
    let acting: Vec<_> = acting.collect();
    let calls = |state, runs| plus.calls_at(state, runs, now).is_some_and(|at| at <= now);
    let is_enabled = |state: &JobView<'_>| state.job.rules.speculation == SpeculationMode::Enabled;
    let mut callers = acting.iter().map(|(_, job)| job);
    let is_joint =
        plus.joint && callers.any(|(state, runs)| is_enabled(state) && calls(state, runs));
    let members = acting
        .iter()
        .filter(|(_, (state, runs))| is_joint || calls(state, runs));
    members.map(|(position, _)| *position).collect()
}

/// Stops all attempts of a task but the fastest, which a straggler's clones then follow.
fn keep_fastest(desk: &mut Desk<'_, '_, ShedPlus>, keep: Keep, members: &BTreeSet<usize>) {
    let mut losers = Vec::new();
    for &position in members {
        let enabled =
            |state: &&JobView<'_>| state.job.rules.speculation == SpeculationMode::Enabled;
        let Some(state) = desk.job(position).filter(enabled) else {
            continue;
        };
        for task in state.estimate.cloned() {
            let Some(kept) = keep.of(task).map(|kept| kept.number) else {
                continue;
            };
            let others = task.attempts.iter().filter(|other| other.number != kept);
            losers.extend(others.map(|other| (position, (task.index, other.number), kept)));
        }
    }
    for (position, id, kept) in losers {
        desk.prune(position, id, kept);
    }
}

/// Decides about the clones of these jobs together, and launches those that have a slot.
fn run(desk: &mut Desk<'_, '_, ShedPlus>, plus: &ShedPlus, members: &BTreeSet<usize>) {
    let last = Some(desk.now());
    for &position in members {
        if let Some(runs) = desk.state_mut(position) {
            let owed = BTreeMap::new();
            *runs = Runs { last, owed };
        }
    }
    for mode in MODES {
        let jobs = candidates(desk, mode, plus, |position, state, task| {
            let remaining = plus.keep.of(task).and_then(|it| it.remaining);
            let slack = state.estimate.slack.unwrap_or(f64::INFINITY);
            members.contains(&position) && is_straggler(remaining, slack)
        });
        if !jobs.is_empty() {
            share_out(desk, jobs, plus);
        }
    }
}

/// The jobs with tasks that may get clones. By Theorem 2 a clone misses as the attempt does that it follows.
fn candidates(
    desk: &mut Desk<'_, '_, ShedPlus>,
    mode: SpeculationMode,
    plus: &ShedPlus,
    wants: impl Fn(usize, &JobView<'_>, &TaskEstimate) -> bool,
) -> Vec<CloneJob> {
    let ask = Ask {
        heeds: Heeds::Deadline,
        ..Ask::aware(plus.max_clones)
    };
    let mut jobs = desk.clone_jobs(mode, ask, wants);
    for task in jobs.iter_mut().flat_map(|job| &mut job.tasks) {
        task.ln_miss_per_clone = task.ln_miss;
    }
    jobs
}

/// A job in the form that the optimizer reads.
fn greedy_job(job: &CloneJob) -> GreedyJob {
    let tasks = job.tasks.iter().map(|task| GreedyTask {
        ln_miss_present: task.ln_miss,
        ln_miss_per_clone: task.ln_miss_per_clone,
        clones_alive: task.clones_alive,
        may_receive_clones: true,
    });
    GreedyJob {
        max_clones: job.max_clones,
        ln_pocd_rest: job.ln_pocd_rest,
        ln_pocd_target: job.ln_pocd_target,
        tasks: tasks.collect(),
    }
}

/// Runs the greedy with capacity counted in slots of the smallest demand, the most that could fit. Then it launches
/// the clones one by one in the greedy's order, each checked against real capacity. A job with larger pods or without
/// a node is skipped. Clones on slots of attempts that the run stops are owed.
fn share_out(desk: &mut Desk<'_, '_, ShedPlus>, mut jobs: Vec<CloneJob>, plus: &ShedPlus) {
    let capacity = desk.capacity();
    let free = jobs
        .iter()
        .map(|job| capacity.times_free_after_kills(job.position));
    let kappa = u64::from(free.max().unwrap_or(0).min(CLONES_PER_PASS_MAX));
    let affordable = kappa.min(desk.steps_left());
    let input = GreedyInput {
        kappa: i64::try_from(affordable).unwrap_or(i64::MAX),
        jobs: jobs.iter().map(greedy_job).collect(),
    };
    let outcome = optimum(&input, plus);
    for step in &outcome.steps {
        let Some(job) = jobs.get_mut(step.job) else {
            continue;
        };
        let is_enabled = job.mode == SpeculationMode::Enabled;
        if is_enabled && desk.capacity().times_free(job.position) == 0 {
            owe(desk, job, step.task);
        } else {
            desk.request_as(job, step.task, straggler);
        }
    }
    for job in &mut jobs {
        if desk.has_enough(job.position) {
            desk.refuse_rest(job, RefusalReason::Target);
        }
    }
    report_refused(desk, &mut jobs, &outcome, affordable < kappa);
}

fn optimum(input: &GreedyInput, plus: &ShedPlus) -> GreedyOutcome {
    match plus.alpha_of_utility() {
        None => alloc_task(input, GreedyMode::Paper),
        Some(alpha) => {
            let capacity = CloneCapacity::slots(input.kappa);
            alloc_alpha_fair(&input.jobs, capacity, alpha, Stride::default())
        }
    }
}

/// Notes a clone that gets a slot once the attempts that this run stops are gone.
fn owe(desk: &mut Desk<'_, '_, ShedPlus>, job: &mut CloneJob, at: usize) {
    if let Some(task) = job.tasks.get_mut(at)
        && let Some(runs) = desk.state_mut(job.position)
    {
        // It is not refused, and not to be reported so.
        task.is_refused = true;
        *runs.owed.entry(task.index).or_default() += 1;
    }
}

/// Launches the clones that the last run decided on and that found no slot, but those of jobs that run again.
fn launch_owed(desk: &mut Desk<'_, '_, ShedPlus>, plus: &ShedPlus, members: &BTreeSet<usize>) {
    let jobs = desk.states().iter().enumerate();
    let owing = jobs.filter(|(at, runs)| !runs.owed.is_empty() && !members.contains(at));
    let owed: BTreeMap<usize, _> = owing.map(|(at, runs)| (at, runs.owed.clone())).collect();
    if owed.is_empty() {
        return;
    }
    let of = |position: usize, task: TaskIndex| owed.get(&position)?.get(&task).copied();
    let mut jobs = candidates(desk, SpeculationMode::Enabled, plus, |position, _, task| {
        of(position, task.index).is_some()
    });
    for job in &mut jobs {
        for at in 0..job.tasks.len() {
            let Some(index) = job.tasks.get(at).map(|task| task.index) else {
                continue;
            };
            let mut left = of(job.position, index).unwrap_or(0);
            while left > 0
                && desk.capacity().times_free(job.position) > 0
                && desk.request_as(job, at, straggler)
            {
                left -= 1;
            }
            settle_owed(desk, job.position, index, left);
        }
    }
}

fn settle_owed(desk: &mut Desk<'_, '_, ShedPlus>, position: usize, task: TaskIndex, left: u32) {
    if let Some(runs) = desk.state_mut(position) {
        match left {
            0 => runs.owed.remove(&task),
            left => runs.owed.insert(task, left),
        };
    }
}

fn straggler(odds: Odds) -> LaunchReason {
    LaunchReason::Straggler {
        pocd_before: odds.before.unwrap_or(0.0),
        pocd_after: odds.after.unwrap_or(0.0),
    }
}

/// `ran_out`: the work budget was used up before the capacity.
fn report_refused(
    desk: &mut Desk<'_, '_, ShedPlus>,
    jobs: &mut [CloneJob],
    outcome: &GreedyOutcome,
    ran_out: bool,
) {
    for refused in &outcome.refused {
        let why = match refused.reason {
            greedy::RefusalReason::Hopeless => RefusalReason::Hopeless,
            greedy::RefusalReason::Capacity if ran_out => RefusalReason::Work,
            greedy::RefusalReason::Capacity => RefusalReason::Capacity,
        };
        if let Some(job) = jobs.get_mut(refused.job) {
            if why == RefusalReason::Work {
                desk.cut_short(job.position);
            }
            desk.refuse_rest(job, why);
        }
    }
}
