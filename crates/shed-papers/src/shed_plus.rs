//! Shed+ ([S+] Algorithm 1) on live jobs. It determines when the optimizer runs for a job, which attempts it keeps,
//! which tasks are stragglers, and which of them get clones. [`alloc_task`] counts the clones; this module prepares
//! its input and applies its result.

use crate::optimize::alpha_fair::{Stride, alloc_alpha_fair};
use crate::optimize::clone_capacity::CloneCapacity;
use crate::optimize::greedy::{
    self, GreedyInput, GreedyJob, GreedyMode, GreedyOutcome, GreedyTask, alloc_task,
};
use shed_core::plan::{LaunchReason, RefusalReason};
use shed_core::policy::prune::{self, GRACE_MIN, start_up};
use shed_core::policy::{Desk, Judgement, PolicyRule, Recall, SLOW_HALF_LIFE};
use shed_core::round::clones::{Ask, CloneJob, CloneTask, Heeds, MODES, Odds};
use shed_core::round::{AttemptEstimate, JobView};
use shed_core::settings::{Setting, word};
use shed_core::time::Span;

mod turn;

use turn::look_again;

/// A reporting sibling is pruned if its predicted end is later by more than this share of the
/// time that the kept attempt still needs: predictions are noisy, and a close race is worth
/// both lanes.
const PRUNE_MARGIN: f64 = 0.1;

/// Clones that one pass may hand out. It bounds the work of the optimizer, whose greedy takes O(log tasks) per clone.
/// The next run hands out the rest.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// The largest α that is used as a number. From here on the family equals max-min fairness up to the precision of a
/// probability, and `utility=maxmin` denotes that.
const ALPHA_MAX: f64 = 100.0;

/// The parameters of Shed+, named as in the papers.
#[derive(Debug, Clone, PartialEq)]
pub struct ShedPlus {
    /// ξ: the job progress at which the optimizer first runs for a job.
    pub xi: f64,
    /// θ': the share of the deadline that lies between two runs for a job, eq. 17.
    pub theta: f64,
    /// Whether θ adds t_avg, so that it is never less than a launch takes (eq. 17). Off: θ = θ'·D, as
    /// in Table II of \[S+\], which shows the effect of a smaller one.
    pub theta_floor: bool,
    /// MAX: the most clones that a task may have at a time; a job may set a lower limit.
    pub max_clones: u32,
    /// Shed+ as printed, or with the additions of this repository.
    pub variant: Variant,
    /// How clones are shared out.
    pub mode: Mode,
    /// The sum over the jobs that the optimizer maximizes, unless `mode` determines it.
    pub utility: Utility,
    /// α of `utility=alpha`, at least 0 (the sum); 1 is proportional. The larger α is, the more the lowest PoCD
    /// counts. Other utilities ignore it.
    pub alpha: f64,
    /// t_avg until one is measured.
    pub launch_overhead: Span,
    /// Lower bound of θ.
    pub min_interval: Span,
    /// How long a silent attempt is left alone at least, because it may be starting up.
    pub grace: Span,
    /// The time in which the estimate of a node's slowness loses half its weight.
    pub slow_half_life: Span,
}

impl Default for ShedPlus {
    fn default() -> Self {
        Self {
            xi: 0.1,
            theta: 0.05,
            theta_floor: true,
            max_clones: 5,
            variant: Variant::Tuned,
            mode: Mode::Guarded,
            utility: Utility::ByMode,
            alpha: 2.0,
            launch_overhead: Span::from_seconds(3),
            min_interval: Span::from_seconds(1),
            grace: GRACE_MIN,
            slow_half_life: SLOW_HALF_LIFE,
        }
    }
}

/// The rules that a run follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As printed in [S+]: the job with the lowest PoCD is served first, and within it the task with the lowest PoCD.
    /// This holds whether or not a clone helps the task, until capacity or MAX is reached. A run keeps the fastest
    /// attempt of a flagged task, stops all others and launches the clones that the task needs. Each attempt is
    /// judged by its own reports alone, and a silent one is no straggler.
    Printed,
    /// The printed rules with the corrections that the notes found necessary on real clusters: judged by `Rules`.
    Tuned,
}

word!(
    Variant,
    [
        Variant::Printed => "printed",
        Variant::Tuned => "tuned",
    ]
);

/// The figures that distinguish the two variants.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// A task whose probability of a miss is at or below this gets no further clone. It is 0 for the paper's rule,
    /// which continues until capacity or MAX is reached.
    miss_target: f64,
    /// Jobs that stay below this PoCD even with every permitted clone get none. When many pods start at once, the
    /// first reports make every task look late. A clone of each task would then make it late.
    min_pocd: f64,
    /// A task that reports is also a straggler if its probability of a miss is above this (A4),
    /// though it is expected to end in time.
    straggler_miss: f64,
    /// The weight of the job's median against an attempt's own reports, in tasks. On a node estimated as slow, the
    /// median is multiplied by that node's slowness. First reports are noisy, and clones launched because of them
    /// take capacity from the clones that are needed.
    rate_prior: f64,
    /// Whether a run keeps clones that are still needed (spec 7.7g).
    keeps: bool,
    /// Whether a task without a report is judged by its age (spec 7.1), and may be a straggler.
    judges_silent: bool,
}

impl Variant {
    fn rules(self) -> Rules {
        match self {
            Self::Printed => Rules {
                miss_target: 0.0,
                min_pocd: 0.0,
                straggler_miss: 1.0,
                rate_prior: 0.0,
                keeps: false,
                judges_silent: false,
            },
            Self::Tuned => Rules {
                miss_target: 0.01,
                min_pocd: 0.005,
                straggler_miss: 0.15,
                rate_prior: 0.2,
                keeps: true,
                judges_silent: true,
            },
        }
    }
}

/// How the greedy optimizer of the tuned variant selects the next clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The job with the lowest PoCD that a clone can help, its task with the lowest PoCD.
    Guarded,
    /// The job with the lowest PoCD, its task with the largest gain.
    MaxMin,
    /// The task with the largest gain in log PoCD over all jobs.
    Marginal,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Guarded, Self::MaxMin, Self::Marginal];

    fn greedy(self) -> GreedyMode {
        match self {
            Self::Guarded => GreedyMode::Guarded,
            Self::MaxMin => GreedyMode::MaxMin,
            Self::Marginal => GreedyMode::Marginal,
        }
    }
}

word!(
    Mode,
    [
        Mode::Guarded => "guarded",
        Mode::MaxMin => "maxmin",
        Mode::Marginal => "marginal",
    ]
);

/// The α-fair utility of [S+] (10), without the jobs that are hopeless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utility {
    /// The utility of the mode.
    ByMode,
    /// α = 0: the sum of PoCDs, the share of jobs in time.
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
        Utility::ByMode => "by_mode",
        Utility::Sum => "sum",
        Utility::Proportional => "proportional",
        Utility::MaxMin => "maxmin",
        Utility::Alpha => "alpha",
    ]
);

impl Utility {
    /// All utilities.
    pub const ALL: [Self; 5] = [
        Self::ByMode,
        Self::Sum,
        Self::Proportional,
        Self::MaxMin,
        Self::Alpha,
    ];
}

impl ShedPlus {
    fn is_printed(&self) -> bool {
        self.variant == Variant::Printed
    }

    fn rules(&self) -> Rules {
        self.variant.rules()
    }

    fn greedy_mode(&self) -> GreedyMode {
        if self.is_printed() {
            GreedyMode::Paper
        } else {
            self.mode.greedy()
        }
    }

    /// α of the utility; absent if the mode determines it.
    fn alpha_of_utility(&self) -> Option<f64> {
        match self.utility {
            Utility::ByMode => None,
            Utility::Sum => Some(0.0),
            Utility::Proportional => Some(1.0),
            Utility::MaxMin => Some(f64::INFINITY),
            Utility::Alpha => Some(self.alpha),
        }
    }
}

impl PolicyRule for ShedPlus {
    type Belief = ();
    type State = ();
    type Place = ();

    fn name(&self) -> &'static str {
        "shed-plus"
    }

    fn settings(&mut self) -> Vec<Setting<'_>> {
        vec![
            Setting::number("xi", &mut self.xi, 0.0, 1.0),
            Setting::number("theta", &mut self.theta, 0.0, 1.0),
            Setting::switch("theta_floor", &mut self.theta_floor),
            Setting::whole("max_clones", &mut self.max_clones, 0, 20),
            Setting::word("variant", &mut self.variant),
            Setting::word("mode", &mut self.mode),
            Setting::word("utility", &mut self.utility),
            Setting::number("alpha", &mut self.alpha, 0.0, ALPHA_MAX),
            Setting::seconds("launch_overhead", &mut self.launch_overhead, 0.0, 3600.0),
            Setting::seconds("min_interval", &mut self.min_interval, 0.1, 3600.0),
            Setting::seconds("grace", &mut self.grace, 0.0, 3600.0),
            Setting::seconds("slow_half_life", &mut self.slow_half_life, 1.0, 86_400.0),
        ]
    }

    fn max_clones(&self) -> u32 {
        self.max_clones
    }

    fn launch_overhead(&self) -> Span {
        self.launch_overhead
    }

    fn rate_prior(&self) -> f64 {
        self.rules().rate_prior
    }

    fn slow_half_life(&self) -> Span {
        self.slow_half_life
    }

    /// θ: a decision of the optimizer holds until its next run.
    fn clone_rest(&self, limit: Option<Span>, overhead: f64) -> Span {
        self.interval(limit.map_or(0.0, Span::seconds), overhead)
    }

    fn judge(&self, job: &JobView<'_>, recall: &Recall<'_, ()>) -> Judgement<()> {
        turn::judge(self, job, recall)
    }

    fn before(&self, desk: &mut Desk<'_, '_, Self>) {
        prune(desk, self);
    }

    fn after(&self, desk: &mut Desk<'_, '_, Self>) {
        launch_clones(desk, self);
        look_again(desk, self);
    }
}

/// Spec 5.5: at an optimization the fastest attempt of a flagged task is kept and the others are stopped. Ours
/// differs where the notes found the paper's rule to be harmful. "Fastest" means the earliest predicted end of those
/// that report. The tuned variant keeps siblings in a close race. Silent siblings that are still starting up stay and
/// count towards r.
fn prune(desk: &mut Desk<'_, '_, ShedPlus>, plus: &ShedPlus) {
    prune::prune(desk, |rivals| {
        let grace = start_up(rivals.state, plus.grace);
        let in_time = match (rivals.kept.remaining, rivals.state.estimate.slack) {
            (Some(remaining), Some(slack)) => remaining <= slack,
            _ => false,
        };
        !plus.rules().keeps || is_loser(rivals.other, rivals.kept, in_time, grace)
    });
}

/// Whether `kept` makes the attempt superfluous. An attempt that has been silent for long is given up only if the
/// kept one is expected to end in time.
fn is_loser(attempt: &AttemptEstimate, kept: &AttemptEstimate, in_time: bool, grace: f64) -> bool {
    match (attempt.remaining, kept.remaining) {
        (Some(other), Some(best)) if attempt.reports() => other > best * (1.0 + PRUNE_MARGIN),
        _ => in_time && !attempt.reports() && attempt.since_launch > grace,
    }
}

/// Launches clones for the stragglers of the jobs that are due, from the capacity left after admission.
fn launch_clones(desk: &mut Desk<'_, '_, ShedPlus>, plus: &ShedPlus) {
    let ask = Ask {
        heeds: match (plus.variant, plus.utility) {
            (Variant::Printed, Utility::ByMode) => Heeds::Deadline,
            _ => Heeds::Chance,
        },
        // On a slow node a clone would be late too, and take cpu from attempts that already are.
        fast_nodes_only: !plus.is_printed(),
        ..Ask::aware(plus.max_clones)
    };
    let rules = plus.rules();
    // ln 1 = 0 is not exceeded.
    let ln_risk = libm::log(rules.straggler_miss);
    for mode in MODES {
        let jobs = desk.clone_jobs(mode, ask, |_, state, task| {
            let late = state.stragglers.binary_search(&task.index).is_ok();
            if task.kept().is_some() {
                late || state.ln_miss_kept(task) > ln_risk
            } else {
                late && rules.judges_silent
            }
        });
        if !jobs.is_empty() {
            share_out(desk, jobs, plus);
        }
    }
}

/// A job in the form that the optimizer reads.
fn greedy_job(job: &CloneJob, plus: &ShedPlus) -> GreedyJob {
    let miss_target = plus.rules().miss_target;
    let task = |task: &CloneTask| {
        let enough = clones_until_enough(task, miss_target);
        GreedyTask {
            ln_miss_present: task.ln_miss,
            ln_miss_per_clone: task.ln_miss_per_clone,
            // MAX counts both the live clones and those that the task does not need.
            clones_alive: task.clones_alive.max(job.max_clones.saturating_sub(enough)),
            may_receive_clones: true,
        }
    };
    GreedyJob {
        max_clones: job.max_clones,
        ln_pocd_rest: job.ln_pocd_rest,
        ln_pocd_target: job.ln_pocd_target,
        tasks: job.tasks.iter().map(task).collect(),
    }
}

/// The number of clones that reduce the task's miss to the target. The papers' greedy continues until capacity or MAX
/// is reached, even for a task that is nearly certain. On real nodes such clones take cpu from each other and from
/// first attempts (clone storms, pitfall 6).
fn clones_until_enough(task: &CloneTask, miss_target: f64) -> u32 {
    if miss_target <= 0.0 {
        return u32::MAX;
    }
    let needed = (libm::log(miss_target) - task.ln_miss) / task.ln_miss_per_clone;
    // `as` saturates. A certain task needs no clone, and a clone that surely misses does not help.
    needed.ceil().max(0.0) as u32
}

/// Runs the greedy with capacity counted in slots of the smallest demand, the most that could fit. Then it launches
/// the clones one by one in the greedy's order, each checked against real capacity. A job with larger pods or without
/// a node is skipped.
fn share_out(desk: &mut Desk<'_, '_, ShedPlus>, mut jobs: Vec<CloneJob>, plus: &ShedPlus) {
    let free = jobs
        .iter()
        .map(|job| desk.capacity().times_free(job.position));
    let kappa = u64::from(free.max().unwrap_or(0).min(CLONES_PER_PASS_MAX));
    let affordable = kappa.min(desk.steps_left());
    let mut input = GreedyInput {
        kappa: i64::try_from(affordable).unwrap_or(i64::MAX),
        jobs: jobs.iter().map(|job| greedy_job(job, plus)).collect(),
    };
    let mut outcome = optimum(&input, plus);
    if !plus.is_printed() && give_up_lost(&mut input, &outcome, plus.rules().min_pocd) {
        outcome = optimum(&input, plus);
    }
    for step in &outcome.steps {
        if let Some(job) = jobs.get_mut(step.job) {
            desk.request_as(job, step.task, straggler);
        }
    }
    for job in &mut jobs {
        if desk.has_enough(job.position) {
            desk.refuse_rest(job, RefusalReason::Target);
        }
    }
    let ran_out = affordable < kappa;
    report_refused(desk, &mut jobs, &outcome, ran_out);
}

fn optimum(input: &GreedyInput, plus: &ShedPlus) -> GreedyOutcome {
    match plus.alpha_of_utility() {
        None => alloc_task(input, plus.greedy_mode()),
        Some(alpha) => {
            let capacity = CloneCapacity::slots(input.kappa);
            alloc_alpha_fair(&input.jobs, capacity, alpha, Stride::default())
        }
    }
}

/// Marks jobs hopeless that their clones do not raise above `min_pocd`, and returns whether there are any. Those
/// clones have a higher value elsewhere.
fn give_up_lost(input: &mut GreedyInput, outcome: &GreedyOutcome, min_pocd: f64) -> bool {
    let ln_min = libm::log(min_pocd);
    let mut is_any = false;
    for (job, result) in input.jobs.iter_mut().zip(&outcome.jobs) {
        if result.ln_pocd_after < ln_min && result.clones.iter().any(|&clones| clones > 0) {
            job.ln_pocd_rest = f64::NEG_INFINITY;
            is_any = true;
        }
    }
    is_any
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
