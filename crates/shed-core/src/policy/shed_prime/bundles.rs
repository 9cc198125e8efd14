//! Clones, in bundles: a job is in time only if all its tasks are, so that one clone alone often
//! gains nothing. For each job the number of clones with the largest gain in PoCD per clone is
//! found, and the job whose bundle gains most per clone is served first.

use std::collections::BinaryHeap;

use crate::decide::{AttemptEstimate, JobState, Pass, TaskEstimate};
use crate::estimate::pocd::{gain_of_one_more, ln_task_pocd, probability};
use crate::plan::{Finding, RefusalReason};
use crate::policy::clones::{Ask, CloneJob, CloneTask, MODES, by_rule, clone_job, grant};
use crate::policy::keep::{is_seen, start_up};
use crate::policy::{Hedge, ShedPrime};
use crate::snapshot::SpeculationMode;

/// Clones that one pass may hand out.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// Hands out clones from what is left after admission.
pub(super) fn launch(pass: &mut Pass<'_>, prime: &ShedPrime) {
    for mode in MODES {
        let mut jobs = candidates(pass, prime, mode);
        share_out(pass, &mut jobs, prime);
        for job in &mut jobs {
            job.refuse_rest(pass, RefusalReason::Capacity);
        }
    }
}

fn candidates(pass: &mut Pass<'_>, prime: &ShedPrime, mode: SpeculationMode) -> Vec<CloneJob> {
    let ln_target = libm::log(prime.miss_target);
    let grace = start_up(pass, prime.grace);
    let ask = Ask {
        fast_nodes_only: true,
        ..Ask::aware(prime.max_clones)
    };
    let wants = |state: &JobState<'_>, task: &TaskEstimate<'_>| {
        let is_hopeless = state.rank.is_some_and(|(is_hopeless, _)| is_hopeless);
        let lives_on = |attempt: &AttemptEstimate| {
            let id = (task.task.index, attempt.number);
            !state.doomed.contains(&id)
        };
        !is_hopeless
            && task.attempts.iter().any(lives_on)
            && state.ln_miss_kept(task) > ln_target
            && may_hedge(state, task, prime.hedge, grace)
    };
    let positions = pass.by_submission();
    let jobs = positions.into_iter();
    jobs.filter_map(|at| clone_job(pass, at, mode, ask, wants))
        .collect()
}

/// While a clone of the task is still silent nobody knows how it will do: its draw is in the task's
/// miss already. What is only silent so far is hedged as the policy says.
fn may_hedge(state: &JobState<'_>, task: &TaskEstimate<'_>, hedge: Hedge, grace: f64) -> bool {
    let seen = |attempt: &AttemptEstimate| match hedge {
        Hedge::Always => true,
        Hedge::Silent => !state.job.reports_progress || is_seen(attempt, grace),
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

fn share_out(pass: &mut Pass<'_>, jobs: &mut [CloneJob], prime: &ShedPrime) {
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
            bundles.extend(best_bundle(pass, bundle.job, job, prime));
            if free == 0 {
                return;
            }
            continue;
        }
        let granted = grant_bundle(pass, job, bundle.clones, prime);
        if granted == bundle.clones {
            bundles.extend(best_bundle(pass, bundle.job, job, prime));
        }
    }
}

/// The task that gains most by one more clone, and ln of what its job's PoCD rises by.
fn best_task(tasks: &[(f64, f64, u32)]) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (at, &(ln_miss, ln_per_clone, left)) in tasks.iter().enumerate() {
        let gain = gain_of_one_more(ln_miss, ln_per_clone);
        if left > 0 && gain > 0.0 && best.is_none_or(|(_, most)| gain > most) {
            best = Some((at, gain));
        }
    }
    best
}

/// ln miss, ln miss per clone and how many clones it may still get, of each task.
fn tasks_of(job: &CloneJob, prime: &ShedPrime) -> Vec<(f64, f64, u32)> {
    let ln_target = libm::log(prime.miss_target);
    let of = |task: &CloneTask| {
        let has = task.clones_alive + task.clones;
        let is_done = task.is_refused || task.ln_miss <= ln_target;
        let left = job.max_clones.saturating_sub(has);
        let left = if is_done { 0 } else { left };
        (task.ln_miss, task.ln_miss_per_clone, left)
    };
    job.tasks.iter().map(of).collect()
}

fn best_bundle(pass: &Pass<'_>, at: usize, job: &CloneJob, prime: &ShedPrime) -> Option<Bundle> {
    let mut tasks = tasks_of(job, prime);
    let ln_pocd = |tasks: &[(f64, f64, u32)]| {
        let sum: f64 = tasks.iter().map(|task| ln_task_pocd(task.0)).sum();
        job.ln_pocd_rest + sum
    };
    let before = probability(ln_pocd(&tasks));
    let most = pass.capacity.times_free(job.position);
    let (mut best, mut clones) = (None::<Bundle>, 0);
    while clones < most.min(CLONES_PER_PASS_MAX) {
        let Some((index, _)) = best_task(&tasks) else {
            break;
        };
        let Some(task) = tasks.get_mut(index) else {
            break;
        };
        task.0 += task.1;
        task.2 -= 1;
        clones += 1;
        let gain = (probability(ln_pocd(&tasks)) - before) / f64::from(clones);
        if gain >= prime.min_gain && best.as_ref().is_none_or(|best| gain > best.gain) {
            let job = at;
            best = Some(Bundle { gain, job, clones });
        }
    }
    best
}

/// Grants the clones one by one; how many there was room for.
fn grant_bundle(pass: &mut Pass<'_>, job: &mut CloneJob, clones: u32, prime: &ShedPrime) -> u32 {
    for granted in 0..clones {
        let Some((at, _)) = best_task(&tasks_of(job, prime)) else {
            return granted;
        };
        let miss = job
            .tasks
            .get(at)
            .map_or(1.0, |task| libm::exp(task.ln_miss));
        let finding = Finding::Late { miss };
        if !grant(pass, job, at, |odds| by_rule(finding, odds)) {
            return granted;
        }
    }
    clones
}
