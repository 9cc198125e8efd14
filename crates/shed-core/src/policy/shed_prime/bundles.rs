//! Clones, in bundles: a job is in time only if all its tasks are, so one clone alone often gains nothing. For each
//! job this module finds the number of clones with the largest gain in PoCD per clone, if they gain their price. The
//! job whose bundle gains most per clone is served first.

use std::collections::BinaryHeap;

use crate::estimate::pocd::{gain_of_one_more, ln_task_pocd, probability};
use crate::plan::{Alternative, Finding, RefusalReason, Trade};
use crate::policy::prune::{is_seen, start_up};
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::price::{Candidate, Prospect, price};
use crate::policy::{Hedge, ShedPrime};
use crate::round::clones::{Ask, CloneTask, MODES};
use crate::round::{AttemptEstimate, JobView, TaskEstimate};
use crate::snapshot::SpeculationMode;

#[cfg(test)]
mod tests;

/// The share of the time from a launch to the first report in which an attempt counts as just launched.
const JUST_LAUNCHED: f64 = 0.5;

/// Clones that one pass may hand out.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// Hands out clones from the capacity left after admission.
pub(super) fn launch(desk: &mut PrimeDesk<'_, '_>, prime: &ShedPrime) {
    for mode in MODES {
        let mut jobs = candidates(desk, prime, mode);
        share_out(desk, &mut jobs, prime);
        for candidate in &mut jobs {
            desk.refuse_rest(&mut candidate.job, RefusalReason::Capacity);
        }
    }
}

pub(super) fn candidates(
    desk: &mut PrimeDesk<'_, '_>,
    prime: &ShedPrime,
    mode: SpeculationMode,
) -> Vec<Candidate> {
    let ln_target = libm::log(prime.miss_target);
    let ask = Ask {
        fast_nodes_only: true,
        ..Ask::aware(prime.max_clones)
    };
    let wants = |_: usize, state: &JobView<'_>, task: &TaskEstimate| {
        let is_hopeless = state.rank.is_some_and(|(is_hopeless, _)| is_hopeless);
        let lives_on = |attempt: &AttemptEstimate| {
            let id = (task.index, attempt.number);
            !state.draft.doomed.contains(&id)
        };
        !is_hopeless
            // Launches of this pass are not yet in the tasks' misses.
            && state.draft.clones.is_empty()
            && task.attempts.iter().any(lives_on)
            && state.ln_miss_kept(task) > ln_target
            && may_hedge(state, task, prime)
    };
    let jobs = desk.clone_jobs(mode, ask, wants).into_iter();
    jobs.map(|job| Candidate::new(desk, job, prime)).collect()
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

/// A bundle: its job, its number of clones, and the gain in PoCD and the price per clone.
#[derive(PartialEq)]
struct Bundle {
    gain: f64,
    price: f64,
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

fn share_out(desk: &mut PrimeDesk<'_, '_>, candidates: &mut [Candidate], prime: &ShedPrime) {
    let mut bundles = BinaryHeap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        bundles.extend(best_bundle(desk, at, candidate, prime));
    }
    let mut left_out: Option<Bundle> = None;
    while let Some(bundle) = bundles.pop() {
        let Some(candidate) = candidates.get_mut(bundle.job) else {
            continue;
        };
        let free = desk.capacity().times_free(candidate.job.position);
        if free < bundle.clones {
            // Other bundles have taken the capacity, so a smaller bundle may still fit.
            let smaller = match free {
                0 => None,
                _ => best_bundle(desk, bundle.job, candidate, prime),
            };
            match smaller {
                Some(smaller) => bundles.push(smaller),
                None => left_out = left_out.max(Some(bundle)),
            }
            continue;
        }
        let granted = grant_bundle(desk, candidate, &bundle, prime);
        if granted == bundle.clones {
            bundles.extend(best_bundle(desk, bundle.job, candidate, prime));
        }
    }
    if let Some(alternative) = left_out.and_then(|bundle| bundle.as_alternative(desk, candidates)) {
        desk.report_alternative(&alternative);
    }
}

impl Bundle {
    fn as_alternative(&self, desk: &PrimeDesk<'_, '_>, jobs: &[Candidate]) -> Option<Alternative> {
        let position = jobs.get(self.job)?.job.position;
        Some(Alternative::Clones {
            job: desk.job(position)?.job.key.clone(),
            clones: self.clones,
            gain: self.gain,
            price: self.price,
        })
    }
}

/// A task during the search for a bundle: it is larger if one more clone gains more.
#[derive(PartialEq)]
struct Trial {
    gain: f64,
    /// The task's index in the job.
    at: usize,
    prospect: Prospect,
    /// The price of one more clone, if no later look would find a need for it.
    price: f64,
    /// Clones that the task may still get.
    left: u32,
}

impl Trial {
    /// The task at that index of the job, if it may get a clone that gains.
    fn new(at: usize, candidate: &Candidate, prime: &ShedPrime) -> Option<Self> {
        let prospect = candidate.prospect(at)?;
        let job = &candidate.job;
        let task = job.tasks.get(at)?;
        let is_done = task.is_refused || task.ln_miss <= libm::log(prime.miss_target);
        let has = task.clones_alive + task.clones;
        let trial = Self {
            gain: gain_of_one_more(prospect.ln_miss(), prospect.ln_step()),
            at,
            prospect,
            price: price(prime, task),
            left: if is_done {
                0
            } else {
                let most = job.max_clones.saturating_sub(has);
                most.min(candidate.at_once(at))
            },
        };
        trial.may_get_one().then_some(trial)
    }

    fn may_get_one(&self) -> bool {
        self.left > 0 && self.gain > 0.0
    }

    fn with_one_more(self) -> Self {
        let prospect = self.prospect.with_clone();
        Self {
            gain: gain_of_one_more(prospect.ln_miss(), prospect.ln_step()),
            prospect,
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
fn best_task(candidate: &Candidate, prime: &ShedPrime) -> Option<usize> {
    let places = 0..candidate.job.tasks.len();
    let best = places
        .filter_map(|at| Trial::new(at, candidate, prime))
        .max();
    best.map(|trial| trial.at)
}

/// Adds clones one by one where they gain most. The bundle has the size at which the gain per clone is largest, of
/// those that gain what they cost. `None` if no clone pays, or the pass runs out of work.
fn best_bundle(
    desk: &mut PrimeDesk<'_, '_>,
    at: usize,
    candidate: &Candidate,
    prime: &ShedPrime,
) -> Option<Bundle> {
    let tasks = candidate.job.tasks.len();
    if !desk.afford(&[candidate.job.position], tasks as u64) {
        return None;
    }
    let mut product = Product {
        ln: candidate.job.ln_pocd_rest,
        zeros: 0,
    };
    let mut trials = BinaryHeap::new();
    for place in 0..tasks {
        let prospect = candidate.prospect(place)?;
        product.add(prospect.ln_miss());
        trials.extend(Trial::new(place, candidate, prime));
    }
    let most = desk
        .capacity()
        .times_free(candidate.job.position)
        .min(CLONES_PER_PASS_MAX);
    let best = best_size(product, trials, most)?;
    Some(Bundle {
        gain: best.gain,
        price: best.price,
        job: at,
        clones: best.clones,
    })
}

/// A number of clones of a job, with the gain in PoCD and the price per clone.
#[derive(Debug, Clone, Copy)]
struct Size {
    gain: f64,
    price: f64,
    clones: u32,
}

/// The number of clones with the largest gain per clone.
fn best_size(mut product: Product, mut trials: BinaryHeap<Trial>, most: u32) -> Option<Size> {
    let before = product.value();
    let mut best: Option<Size> = None;
    let mut price = 0.0;
    for clones in 1..=most {
        let Some(trial) = trials.pop() else {
            break;
        };
        price += trial.price * trial.prospect.price_share();
        product.take_out(trial.prospect.ln_miss());
        let trial = trial.with_one_more();
        product.add(trial.prospect.ln_miss());
        trials.extend(Some(trial).filter(Trial::may_get_one));
        let gain = product.value() - before;
        let each = gain / f64::from(clones);
        if gain > 0.0 && gain >= price && best.is_none_or(|best| each > best.gain) {
            best = Some(Size {
                gain: each,
                price: price / f64::from(clones),
                clones,
            });
        }
    }
    best
}

/// Grants the clones one by one, and returns how many fit.
fn grant_bundle(
    desk: &mut PrimeDesk<'_, '_>,
    candidate: &mut Candidate,
    bundle: &Bundle,
    prime: &ShedPrime,
) -> u32 {
    let trade = Trade {
        gain: bundle.gain,
        price: bundle.price,
        alternative: candidate.wait(),
    };
    for granted in 0..bundle.clones {
        let Some(at) = best_task(candidate, prime) else {
            return granted;
        };
        let miss = candidate.job.tasks.get(at).map_or(1.0, CloneTask::miss);
        let finding = Finding::Late { miss };
        if !desk.request(&mut candidate.job, at, finding) {
            return granted;
        }
        desk.report_trade(candidate.job.position, trade.clone());
    }
    bundle.clones
}
