//! The α-fair family (\[S\], \[S+\] (10)): each clone goes where it raises Σ U_α(PoCD) most.

use std::collections::VecDeque;

use crate::optimize::clone_capacity::CloneCapacity;
use crate::optimize::greedy::{
    GreedyJob, GreedyMode, GreedyOutcome, GreedyStep, JobOutcome, Refusal, RefusalReason,
    alloc_task_within, hopeless_jobs,
};
use crate::optimize::job_state::{JobState, is_impossible};
use crate::optimize::keys::TaskKey;
use crate::optimize::tournament::{ABSENT, Tournament};
use crate::optimize::utility::is_logarithm;

/// A longer bundle must be better by this much (in ln of the slope) to be taken instead.
const LONGER: f64 = 1e-12;

/// The number of clones that are weighed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stride {
    /// One: "jobs with highest utility improvement" in the papers' text. With α < 1 it stalls when a job has several
    /// bad tasks, because no single clone helps a product that is near 0.
    Clone,
    /// The number of clones of one job with the largest gain in utility per clone: the steepest edge of the upper
    /// concave hull of its curve. Exact whenever the capacity ends between two bundles.
    #[default]
    Bundle,
}

/// Hands out clones so that Σ U_α(PoCD) over the jobs that are not hopeless becomes large. `alpha` 0 sums PoCDs, 1 is
/// proportional fairness ([`GreedyMode::Marginal`]), +∞ max-min fairness ([`GreedyMode::MaxMin`]). A negative number
/// or NaN counts as 0.
///
/// Exact for α ≥ 1 if all attempts take the same. Within a job the clones that gain most come first for any α, and ln
/// PoCD is concave along them. So is U_α of it, which from α = 1 on is increasing and concave in ln PoCD. Below, the
/// curve of U_α is convex at first; the hull's bundles are exact for the relaxed problem in which the last one may be
/// cut.
///
/// No bundle extends beyond a job's target. The cost is that of [`crate::optimize::greedy::alloc_task`], plus for
/// each bundle the clones weighed in vain. These are at most the clones up to which PoCD 1 would be steeper.
pub fn alloc_alpha_fair(
    jobs: &[GreedyJob],
    capacity: CloneCapacity,
    alpha: f64,
    stride: Stride,
) -> GreedyOutcome {
    let alpha = alpha.max(0.0);
    if alpha.is_infinite() {
        return alloc_task_within(jobs, capacity, GreedyMode::MaxMin);
    }
    if is_logarithm(alpha) {
        return alloc_task_within(jobs, capacity, GreedyMode::Marginal);
    }
    let states: Vec<JobState> = jobs.iter().map(|job| JobState::new(job, false)).collect();
    let refused = hopeless_jobs(&states);
    let curves = states.into_iter().enumerate();
    let run = Run {
        curves: curves.map(|(job, state)| Curve::new(job, state)).collect(),
        capacity,
        rule: Rule { alpha, stride },
        steps: Vec::new(),
        refused,
    };
    run.finish()
}

struct Run {
    curves: Vec<Curve>,
    capacity: CloneCapacity,
    rule: Rule,
    steps: Vec<GreedyStep>,
    refused: Vec<Refusal>,
}

impl Run {
    fn finish(mut self) -> GreedyOutcome {
        let keys: Vec<f64> = (0..self.curves.len()).map(|job| self.rank(job)).collect();
        let mut ranking = Tournament::new(keys.iter().copied(), keys.len());
        while let Some(job) = ranking.best() {
            let fits = self.capacity.times(job);
            let Some(curve) = self.curves.get_mut(job) else {
                break;
            };
            // A bundle that no longer fits is weighed again for the remaining capacity.
            if curve.bundle <= fits {
                self.steps.extend(curve.grant_bundle());
                self.capacity.take(job, curve.bundle);
            }
            ranking.set(job, self.rank(job));
        }
        self.refused.sort_unstable_by_key(|refusal| refusal.job);
        GreedyOutcome {
            omega: self.steps.len() as i64,
            jobs: self.curves.iter().map(Curve::outcome).collect(),
            steps: self.steps,
            refused: self.refused,
        }
    }

    /// Chooses the job's next bundle and returns its key, [`ABSENT`] if the job gets no more.
    fn rank(&mut self, job: usize) -> f64 {
        let (fits, price) = (self.capacity.times(job), self.capacity.price(job));
        let Some(curve) = self.curves.get_mut(job) else {
            return ABSENT;
        };
        if curve.state.is_hopeless || curve.state.is_enough(curve.ln_pocd) {
            return ABSENT;
        }
        match curve.best_bundle(fits, self.rule) {
            Some((clones, ln_slope)) => {
                curve.bundle = clones;
                // A bundle without cost comes first.
                libm::log(price) - ln_slope
            }
            None => {
                if fits < curve.clones_left() {
                    let reason = RefusalReason::Capacity;
                    self.refused.push(Refusal { job, reason });
                }
                ABSENT
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    alpha: f64,
    stride: Stride,
}

impl Rule {
    /// ln of the rise of U_α when ln PoCD rises by `gain` from `before` to `after`. It is computed as a difference of
    /// powers that neither overflows nor loses precision. −∞ for no rise.
    fn ln_improvement(self, before: f64, gain: f64, after: f64) -> f64 {
        let exponent = 1.0 - self.alpha;
        if is_impossible(after) {
            f64::NEG_INFINITY
        } else if exponent > 0.0 {
            // (p·e^g)^c · (1 − e^(−c·g)) / c
            exponent * after + libm::log(-libm::expm1(-exponent * gain) / exponent)
        } else if is_impossible(before) {
            f64::INFINITY
        } else {
            exponent * before + libm::log(libm::expm1(exponent * gain) / exponent)
        }
    }
}

/// One clone that was weighed.
#[derive(Debug, Clone, Copy)]
struct Rung {
    task: usize,
    /// The clone's increase of ln PoCD, as [`JobState::grant`] returns it.
    gain: f64,
    /// ln PoCD with the clone.
    after: f64,
}

/// The clones of one job in the order of their gains, weighed ahead of being granted.
struct Curve {
    job: usize,
    /// The state with all clones that were weighed.
    state: JobState,
    tasks: Tournament,
    /// Clones that were weighed and not granted.
    ahead: VecDeque<Rung>,
    /// The granted clones per task, and ln PoCD with them.
    clones: Vec<u32>,
    ln_pocd: f64,
    ln_pocd_before: f64,
    /// The number of clones in the next bundle.
    bundle: i64,
}

impl Curve {
    fn new(job: usize, state: JobState) -> Self {
        Self {
            job,
            tasks: TaskKey::Gain.rank(&state),
            ahead: VecDeque::new(),
            clones: vec![0; state.tasks()],
            ln_pocd: state.ln_pocd(),
            ln_pocd_before: state.ln_pocd(),
            bundle: 0,
            state,
        }
    }

    /// The bundle of at most `fits` clones with the steepest rise of the utility per clone, and ln of that slope.
    /// Among equally steep ones it is the shortest.
    fn best_bundle(&mut self, fits: i64, rule: Rule) -> Option<(i64, f64)> {
        let longest = match rule.stride {
            Stride::Clone => fits.min(1),
            Stride::Bundle => fits,
        };
        let (mut best, mut steepest, mut gain) = (None, f64::NEG_INFINITY, 0.0);
        for (clones, at) in (1..=longest).zip(0..) {
            let ln_clones = libm::log(clones as f64);
            let bound = rule.ln_improvement(self.ln_pocd, -self.ln_pocd, 0.0) - ln_clones;
            if bound <= steepest {
                break;
            }
            let Some((step_gain, after)) = self.weigh(at) else {
                break;
            };
            gain += step_gain;
            let slope = rule.ln_improvement(self.ln_pocd, gain, after) - ln_clones;
            if slope > steepest && (best.is_none() || slope > steepest + LONGER) {
                (best, steepest) = (Some((clones, slope)), slope);
            }
            if self.state.is_enough(after) {
                break;
            }
        }
        best
    }

    /// Gain and ln PoCD of the clone at position `at` after the granted ones.
    fn weigh(&mut self, at: usize) -> Option<(f64, f64)> {
        while self.ahead.len() <= at {
            let task = self.tasks.best()?;
            let gain = self.state.grant(task);
            self.ahead.push_back(Rung {
                task,
                gain: gain.ln_pocd,
                after: self.state.ln_pocd(),
            });
            self.tasks.set(task, TaskKey::Gain.of(&self.state, task));
        }
        let rung = self.ahead.get(at)?;
        Some((rung.gain, rung.after))
    }

    /// Grants the next bundle, as steps.
    fn grant_bundle(&mut self) -> impl Iterator<Item = GreedyStep> + '_ {
        let bundle = usize::try_from(self.bundle).unwrap_or(0);
        let (job, clones, ln_pocd) = (self.job, &mut self.clones, &mut self.ln_pocd);
        let granted = self.ahead.drain(..bundle.min(self.ahead.len()));
        granted.map(move |rung| {
            if let Some(clones) = clones.get_mut(rung.task) {
                *clones += 1;
            }
            *ln_pocd = rung.after;
            GreedyStep {
                job,
                task: rung.task,
            }
        })
    }

    /// The number of clones that the job may still get.
    fn clones_left(&self) -> i64 {
        let ahead = i64::try_from(self.ahead.len()).unwrap_or(i64::MAX);
        self.state.clones_left().saturating_add(ahead)
    }

    fn outcome(&self) -> JobOutcome {
        JobOutcome {
            clones: self.clones.clone(),
            ln_pocd_before: self.ln_pocd_before,
            ln_pocd_after: self.ln_pocd,
        }
    }
}

#[cfg(test)]
#[path = "alpha_fair/tests.rs"]
mod tests;
