//! Clones, in bundles: a job is in time only if all its tasks are, so one clone alone often gains nothing. For each
//! job this module finds the number of clones with the largest gain in PoCD per clone. The job whose bundle gains
//! most per clone is served first.

use std::collections::BinaryHeap;

use crate::estimate::pocd::{gain_of_one_more, ln_task_pocd, probability};
use crate::plan::{Finding, RefusalReason};
use crate::policy::prune::{is_seen, start_up};
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Fresh, usual_share};
use crate::policy::{Hedge, ShedPrime};
use crate::round::clones::{Ask, CloneJob, CloneTask, MODES};
use crate::round::{AttemptEstimate, JobView, TaskEstimate};
use crate::snapshot::SpeculationMode;

/// The share of the time from a launch to the first report in which an attempt counts as just launched.
const JUST_LAUNCHED: f64 = 0.5;

/// Clones that one pass may hand out.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// Hands out clones from the capacity left after admission.
pub(super) fn launch(desk: &mut PrimeDesk<'_, '_>, prime: &ShedPrime) {
    for mode in MODES {
        let mut jobs = candidates(desk, prime, mode);
        share_out(desk, &mut jobs, prime);
        for job in &mut jobs {
            desk.refuse_rest(job, RefusalReason::Capacity);
        }
    }
}

pub(super) fn candidates(
    desk: &mut PrimeDesk<'_, '_>,
    prime: &ShedPrime,
    mode: SpeculationMode,
) -> Vec<CloneJob> {
    let ln_target = libm::log(prime.miss_target);
    let ask = Ask {
        fast_nodes_only: true,
        ..Ask::aware(prime.max_clones)
    };
    let wants = |_: usize, state: &JobView<'_>, task: &TaskEstimate| {
        let is_hopeless = state.rank.is_some_and(|(is_hopeless, _)| is_hopeless);
        let lives_on = |attempt: &AttemptEstimate| {
            let id = (task.index, attempt.number);
            !state.doomed.contains(&id)
        };
        !is_hopeless
            // Launches of this pass are not yet in the tasks' misses.
            && state.clones.is_empty()
            && task.attempts.iter().any(lives_on)
            && state.ln_miss_kept(task) > ln_target
            && may_hedge(state, task, prime)
    };
    let mut jobs = desk.clone_jobs(mode, ask, wants);
    for job in &mut jobs {
        count_on_rescue(desk, job);
    }
    jobs
}

/// A task that will report may still be rescued after its report. A clone launched now therefore counts only as far
/// as that rescue would come too late.
fn count_on_rescue(desk: &PrimeDesk<'_, '_>, job: &mut CloneJob) {
    let Some(state) = desk.job(job.position) else {
        return;
    };
    // What other jobs or the user suggest is uncertain, and a report will show more.
    let is_prior = state.estimate.is_assumed || state.job.expected_duration.is_some();
    if !state.job.reports_progress || !is_prior {
        return;
    }
    let ln_lost = Fresh::of(state, usual_share(desk, job.position)).ln_lost_later(state.t_avg);
    for task in &mut job.tasks {
        let running = state.estimate.running(task.index);
        if running.is_some_and(|it| !it.attempts.iter().any(AttemptEstimate::reports)) {
            task.ln_miss += ln_lost;
        }
    }
}

/// A silent clone of the task has an unknown speed, and its probability is in the task's miss already. The policy
/// decides how silent attempts are hedged. The best time is their launch, because a clone launched shortly before the
/// report comes late, and often in vain.
fn may_hedge(state: &JobView<'_>, task: &TaskEstimate, prime: &ShedPrime) -> bool {
    let grace = start_up(state, prime.grace);
    let speaks = |attempt: &AttemptEstimate| !state.job.reports_progress || is_seen(attempt, grace);
    let seen = |attempt: &AttemptEstimate| match prime.hedge {
        Hedge::Always => attempt.since_launch < state.t_avg * JUST_LAUNCHED || speaks(attempt),
        Hedge::Silent => speaks(attempt),
        Hedge::Never => attempt.reports(),
    };
    task.attempts.iter().any(seen)
}

/// A bundle: its job, its number of clones, and the gain in PoCD per clone.
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
    /// By gain; between equals the earlier job is larger.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_gain = self.gain.total_cmp(&other.gain);
        by_gain.then_with(|| other.job.cmp(&self.job))
    }
}

fn share_out(desk: &mut PrimeDesk<'_, '_>, jobs: &mut [CloneJob], prime: &ShedPrime) {
    let mut bundles = BinaryHeap::new();
    for (at, job) in jobs.iter().enumerate() {
        bundles.extend(best_bundle(desk, at, job, prime));
    }
    while let Some(bundle) = bundles.pop() {
        let Some(job) = jobs.get_mut(bundle.job) else {
            continue;
        };
        let free = desk.capacity().times_free(job.position);
        if free < bundle.clones {
            // Other bundles have taken the capacity, so a smaller bundle may still fit.
            if free > 0 {
                bundles.extend(best_bundle(desk, bundle.job, job, prime));
            }
            continue;
        }
        let granted = grant_bundle(desk, job, bundle.clones, prime);
        if granted == bundle.clones {
            bundles.extend(best_bundle(desk, bundle.job, job, prime));
        }
    }
}

/// A task during the search for a bundle: it is larger if one more clone gains more.
#[derive(PartialEq)]
struct Trial {
    gain: f64,
    /// The task's index in the job.
    at: usize,
    ln_miss: f64,
    ln_miss_per_clone: f64,
    /// Clones that the task may still get.
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
    /// By gain; between equals the earlier task is larger.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_gain = self.gain.total_cmp(&other.gain);
        by_gain.then_with(|| other.at.cmp(&self.at))
    }
}

/// The product of the tasks' PoCDs, where some may be 0.
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

/// Adds clones one by one where they gain most. The bundle has the size at which the gain per clone is largest.
/// `None` if no clone gains, or the pass runs out of work.
fn best_bundle(
    desk: &mut PrimeDesk<'_, '_>,
    at: usize,
    job: &CloneJob,
    prime: &ShedPrime,
) -> Option<Bundle> {
    if !desk.afford(&[job.position], job.tasks.len() as u64) {
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
    let most = desk
        .capacity()
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

/// Grants the clones one by one, and returns how many fit.
fn grant_bundle(
    desk: &mut PrimeDesk<'_, '_>,
    job: &mut CloneJob,
    clones: u32,
    prime: &ShedPrime,
) -> u32 {
    for granted in 0..clones {
        let Some(at) = best_task(job, prime) else {
            return granted;
        };
        let miss = job.tasks.get(at).map_or(1.0, CloneTask::miss);
        let finding = Finding::Late { miss };
        if !desk.request(job, at, finding) {
            return granted;
        }
    }
    clones
}
