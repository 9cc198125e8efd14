//! Clones, in bundles: a job is in time only if all its tasks are, so that one clone alone often
//! gains nothing. For each job the number of clones with the largest gain in PoCD per clone is
//! found, and the job whose bundle gains most per clone is served first.

use std::collections::BinaryHeap;

use crate::estimate::pocd::{gain_of_one_more, ln_task_pocd, probability};
use crate::plan::{Finding, RefusalReason};
use crate::policy::prune::{is_seen, start_up};
use crate::policy::shed_prime::beliefs::Fresh;
use crate::policy::{Hedge, ShedPrime};
use crate::round::clones::{Ask, CloneJob, CloneTask, MODES, by_rule, clone_job, grant};
use crate::round::{AttemptEstimate, JobView, Round, TaskEstimate};
use crate::snapshot::SpeculationMode;

/// For such a share of the time from a launch to the first report an attempt is taken for just
/// launched.
const JUST_LAUNCHED: f64 = 0.5;

/// Clones that one pass may hand out.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// Hands out clones from what is left after admission.
pub(super) fn launch(pass: &mut Round<'_>, prime: &ShedPrime) {
    for mode in MODES {
        let mut jobs = candidates(pass, prime, mode);
        share_out(pass, &mut jobs, prime);
        for job in &mut jobs {
            job.refuse_rest(pass, RefusalReason::Capacity);
        }
    }
}

pub(super) fn candidates(
    pass: &mut Round<'_>,
    prime: &ShedPrime,
    mode: SpeculationMode,
) -> Vec<CloneJob> {
    let ln_target = libm::log(prime.miss_target);
    let ask = Ask {
        fast_nodes_only: true,
        ..Ask::aware(prime.max_clones)
    };
    let wants = |state: &JobView<'_>, task: &TaskEstimate<'_>| {
        let is_hopeless = state.rank.is_some_and(|(is_hopeless, _)| is_hopeless);
        let lives_on = |attempt: &AttemptEstimate| {
            let id = (task.task.index, attempt.number);
            !state.doomed.contains(&id)
        };
        !is_hopeless
            // What was launched already in this pass is not in the tasks' misses.
            && state.clones.is_empty()
            && task.attempts.iter().any(lives_on)
            && state.ln_miss_kept(task) > ln_target
            && may_hedge(state, task, prime)
    };
    let positions = pass.by_submission();
    let jobs = positions.into_iter();
    let jobs = jobs.filter_map(|at| clone_job(pass, at, mode, ask, wants));
    let mut jobs: Vec<CloneJob> = jobs.collect();
    for job in &mut jobs {
        count_on_rescue(pass, job);
    }
    jobs
}

/// A task that will report may still be rescued when it has: what is hedged now counts as far as that
/// would come too late.
fn count_on_rescue(pass: &Round<'_>, job: &mut CloneJob) {
    let Some(state) = pass.jobs.get(job.position) else {
        return;
    };
    if !state.job.reports_progress || !state.estimate.is_assumed {
        return;
    }
    let ln_lost = Fresh::of(state).ln_lost_later(state.t_avg);
    for task in &mut job.tasks {
        let running = state.estimate.running(task.index);
        if running.is_some_and(|it| !it.attempts.iter().any(AttemptEstimate::reports)) {
            task.ln_miss += ln_lost;
        }
    }
}

/// While a clone of the task is still silent nobody knows how it will do: its draw is in the task's
/// miss already. What is only silent so far is hedged as the policy says: best at its launch, since a
/// clone that is launched when the report is near comes late, and often for nothing.
fn may_hedge(state: &JobView<'_>, task: &TaskEstimate<'_>, prime: &ShedPrime) -> bool {
    let grace = start_up(state, prime.grace);
    let speaks = |attempt: &AttemptEstimate| !state.job.reports_progress || is_seen(attempt, grace);
    let seen = |attempt: &AttemptEstimate| match prime.hedge {
        Hedge::Always => attempt.since_launch < state.t_avg * JUST_LAUNCHED || speaks(attempt),
        Hedge::Silent => speaks(attempt),
        Hedge::Never => attempt.reports(),
    };
    task.attempts.iter().any(seen)
}

/// A bundle: its job, how many clones, what they gain in PoCD each.
#[derive(PartialEq)]
struct Bundle {
    gain: f64,
    job: usize,
    clones: u32,
}

impl Eq for Bundle {}

impl PartialOrd for Bundle {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bundle {
    /// By gain; of equals the earlier job is larger.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_gain = self.gain.total_cmp(&other.gain);
        by_gain.then_with(|| other.job.cmp(&self.job))
    }
}

fn share_out(pass: &mut Round<'_>, jobs: &mut [CloneJob], prime: &ShedPrime) {
    let mut bundles = BinaryHeap::new();
    for (at, job) in jobs.iter().enumerate() {
        bundles.extend(best_bundle(pass, at, job, prime));
    }
    while let Some(bundle) = bundles.pop() {
        let Some(job) = jobs.get_mut(bundle.job) else {
            continue;
        };
        let free = pass.capacity.times_free(job.position);
        if free < bundle.clones {
            // Others have taken the room: what is left may do for a smaller one.
            if free > 0 {
                bundles.extend(best_bundle(pass, bundle.job, job, prime));
            }
            continue;
        }
        let granted = grant_bundle(pass, job, bundle.clones, prime);
        if granted == bundle.clones {
            bundles.extend(best_bundle(pass, bundle.job, job, prime));
        }
    }
}

/// A task while a bundle is looked for: it is larger if one more clone gains more.
#[derive(PartialEq)]
struct Trial {
    gain: f64,
    /// Its place in the job.
    at: usize,
    ln_miss: f64,
    ln_miss_per_clone: f64,
    /// Clones that it may still get.
    left: u32,
}

impl Trial {
    fn new(at: usize, task: &CloneTask, job: &CloneJob, ln_target: f64) -> Self {
        let is_done = task.is_refused || task.ln_miss <= ln_target;
        let has = task.clones_alive + task.clones;
        Self {
            gain: gain_of_one_more(task.ln_miss, task.ln_miss_per_clone),
            at,
            ln_miss: task.ln_miss,
            ln_miss_per_clone: task.ln_miss_per_clone,
            left: if is_done {
                0
            } else {
                job.max_clones.saturating_sub(has)
            },
        }
    }

    fn may_get_one(&self) -> bool {
        self.left > 0 && self.gain > 0.0
    }

    fn with_one_more(self) -> Self {
        let ln_miss = self.ln_miss + self.ln_miss_per_clone;
        Self {
            gain: gain_of_one_more(ln_miss, self.ln_miss_per_clone),
            ln_miss,
            left: self.left - 1,
            ..self
        }
    }
}

impl Eq for Trial {}

impl PartialOrd for Trial {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Trial {
    /// By gain; of equals the earlier task is larger.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_gain = self.gain.total_cmp(&other.gain);
        by_gain.then_with(|| other.at.cmp(&self.at))
    }
}

/// The product of tasks' PoCDs, of which some may be 0.
struct Product {
    ln: f64,
    zeros: usize,
}

impl Product {
    fn add(&mut self, ln_miss: f64) {
        let ln_pocd = ln_task_pocd(ln_miss);
        if ln_pocd.is_finite() {
            self.ln += ln_pocd;
        } else {
            self.zeros += 1;
        }
    }

    fn take_out(&mut self, ln_miss: f64) {
        let ln_pocd = ln_task_pocd(ln_miss);
        if ln_pocd.is_finite() {
            self.ln -= ln_pocd;
        } else {
            self.zeros -= 1;
        }
    }

    fn value(&self) -> f64 {
        if self.zeros > 0 {
            0.0
        } else {
            probability(self.ln)
        }
    }
}

/// The task that gains most by one more clone.
fn best_task(job: &CloneJob, prime: &ShedPrime) -> Option<usize> {
    let ln_target = libm::log(prime.miss_target);
    let tasks = job.tasks.iter().enumerate();
    let trials = tasks.map(|(at, task)| Trial::new(at, task, job, ln_target));
    let best = trials.filter(Trial::may_get_one).max();
    best.map(|trial| trial.at)
}

/// Clones are added one by one where they gain most; the bundle is what they are when they gain
/// most each. None if there is none, or the pass runs out of work.
fn best_bundle(
    pass: &mut Round<'_>,
    at: usize,
    job: &CloneJob,
    prime: &ShedPrime,
) -> Option<Bundle> {
    if !pass.afford(job.position, job.tasks.len() as u64) {
        return None;
    }
    let ln_target = libm::log(prime.miss_target);
    let mut product = Product {
        ln: job.ln_pocd_rest,
        zeros: 0,
    };
    let mut trials = BinaryHeap::new();
    for (at, task) in job.tasks.iter().enumerate() {
        product.add(task.ln_miss);
        trials.extend(Some(Trial::new(at, task, job, ln_target)).filter(Trial::may_get_one));
    }
    let before = product.value();
    let most = pass
        .capacity
        .times_free(job.position)
        .min(CLONES_PER_PASS_MAX);
    let mut best: Option<Bundle> = None;
    for clones in 1..=most {
        let Some(trial) = trials.pop() else {
            break;
        };
        product.take_out(trial.ln_miss);
        let trial = trial.with_one_more();
        product.add(trial.ln_miss);
        trials.extend(Some(trial).filter(Trial::may_get_one));
        let gain = (product.value() - before) / f64::from(clones);
        if gain >= prime.min_gain && best.as_ref().is_none_or(|best| gain > best.gain) {
            let job = at;
            best = Some(Bundle { gain, job, clones });
        }
    }
    best
}

/// Grants the clones one by one; how many there was room for.
fn grant_bundle(pass: &mut Round<'_>, job: &mut CloneJob, clones: u32, prime: &ShedPrime) -> u32 {
    for granted in 0..clones {
        let Some(at) = best_task(job, prime) else {
            return granted;
        };
        let miss = job.tasks.get(at).map_or(1.0, CloneTask::miss);
        let finding = Finding::Late { miss };
        if !grant(pass, job, at, |odds| by_rule(finding, odds)) {
            return granted;
        }
    }
    clones
}
