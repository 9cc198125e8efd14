//! The deadline that a job could keep with the present capacity, for the jobs of the snapshot that request it. Clones
//! are not included, because they are a remedy for a bad estimate and not a basis for planning.

use crate::estimate::distribution::{AttemptDistribution, Distribution};
use crate::estimate::feasibility::{EVALUATIONS_MAX, earliest_slack};
use crate::estimate::pocd::{Waves, ln_task_pocd, probability};
use crate::plan::Feasibility;
use crate::round::{AttemptEstimate, JobView, Round};
use crate::snapshot::{JobPhase, Node};
use crate::time::Span;

/// The PoCD target if the user does not set one.
pub const TARGET_DEFAULT: f64 = 0.9;

/// Evaluations of distributions in a pass. The first job that requests an estimate always gets it; later passes serve
/// the others. About a tenth of a second.
const WORK_MAX: u64 = 1_000_000;

/// Serves the jobs that request an estimate, in the order of submission.
pub(super) fn weigh(pass: &mut Round<'_>) {
    let mut spent = 0u64;
    for position in pass.by_submission() {
        let asks = |state: &&JobView<'_>| {
            state.job.asks_feasibility && state.job.phase == JobPhase::Active
        };
        let Some(state) = pass.jobs.get(position).filter(asks) else {
            continue;
        };
        let waves = state.outlook(pass, position);
        let cost = state.evaluation(waves) * u64::from(EVALUATIONS_MAX);
        if spent > 0 && spent.saturating_add(cost) > WORK_MAX {
            continue;
        }
        spent = spent.saturating_add(cost);
        let feasibility = state.feasibility(pass, waves);
        if let Some(state) = pass.jobs.get_mut(position) {
            state.draft.feasibility = Some(feasibility);
        }
    }
}

impl JobView<'_> {
    /// How tasks without an attempt would start. It follows this plan; for a job that may not launch now, it assumes
    /// that the job may. If no capacity is free at all, as many start at a time as the nodes hold next to other pods,
    /// one mean time from now. With several tenants, the attempts that start now are those of the plan, and the tenant's
    /// part of the capacity by weight bounds how many run at a time later. What others hold of it, or lend, is no part of
    /// the promise.
    fn outlook(&self, pass: &Round<'_>, position: usize) -> Waves {
        let now = pass.snapshot.now;
        let held = self.active.saturating_add(self.draft.admitted);
        let unused = self.job.rules.parallelism.saturating_sub(held);
        let more = match self.may_launch(now) {
            true => 0,
            false => {
                let free = self.places(pass, |node| node.free.times(&self.job.demand));
                free.min(pass.capacity.times_free(position)).min(unused)
            }
        };
        let width = match pass.shares.divides() {
            true => {
                let waits = self.waiting_now().saturating_sub(self.draft.admitted);
                let width = (held, waits.min(unused));
                pass.shares.width(&pass.capacity, position, width)
            }
            false => held.saturating_add(more),
        };
        let width = match width {
            0 => {
                let places = self.places(pass, |node| {
                    let mut free = node.allocatable.clone();
                    free.subtract(&node.used_by_others);
                    free.times(&self.job.demand)
                });
                let most = pass.shares.width_max(&pass.capacity, position);
                let most = most.min(pass.capacity.times_usable(position));
                places.min(most).min(unused)
            }
            width => width,
        };
        Waves {
            at_once: self.draft.admitted.saturating_add(more.min(width)),
            width,
            period: self.mean_run(),
        }
    }

    fn places(&self, pass: &Round<'_>, of: impl Fn(&Node) -> u32) -> u32 {
        let nodes = self.job.eligible_nodes.iter();
        let nodes = nodes.filter_map(|node| pass.snapshot.nodes.get(node.0));
        let nodes = nodes.filter(|node| node.usable);
        nodes.map(of).fold(0, u32::saturating_add)
    }

    fn mean_run(&self) -> f64 {
        let least = || {
            self.estimate
                .distribution
                .as_ref()
                .map_or(0.0, AttemptDistribution::minimum)
        };
        self.estimate.mean_run.unwrap_or_else(least)
    }

    /// The number of evaluations of the distribution for one PoCD.
    fn evaluation(&self, waves: Waves) -> u64 {
        let attempts = self.estimate.tasks.iter().map(|task| task.attempts.len());
        let waiting = self.ready.len() + self.held_back.len();
        let waves = u64::from(self.untouched / waves.width.max(1));
        self.estimate.cases() * ((attempts.sum::<usize>() + waiting) as u64 + waves + 1)
    }

    fn feasibility(&self, pass: &Round<'_>, waves: Waves) -> Feasibility {
        let target = self.job.rules.target_pocd.unwrap_or(TARGET_DEFAULT);
        let distribution = self.estimate.own_distribution();
        let unknown = Feasibility {
            pocd: None,
            target,
            earliest: None,
            is_known: distribution.is_some(),
            width: waves.width,
        };
        let Some(distribution) = distribution else {
            return unknown;
        };
        let ln_pocd = |slack| {
            let given = |given: Option<&Distribution>| {
                let period = self.estimate.mean_run_given(given).unwrap_or(waves.period);
                let waves = Waves { period, ..waves };
                self.ln_pocd_within((distribution, given), waves, self.t_avg, slack)
            };
            self.estimate.ln_mean(given)
        };
        let guess = self.t_avg + self.mean_run();
        let earliest = earliest_slack(libm::log(target), guess, ln_pocd);
        Feasibility {
            pocd: self.estimate.slack.map(ln_pocd).map(probability),
            earliest: earliest.map(|slack| pass.snapshot.now.plus(Span::from_seconds_f64(slack))),
            ..unknown
        }
    }

    /// ln of the PoCD with a deadline that is `slack` seconds away, by the job's distribution, and `given` a value of what
    /// its tasks have in common. It never falls as `slack` grows.
    fn ln_pocd_within(
        &self,
        (distribution, given): (&Distribution, Option<&Distribution>),
        waves: Waves,
        overhead: f64,
        slack: f64,
    ) -> f64 {
        let waits = !self.ready.is_empty() || !self.held_back.is_empty() || self.untouched > 0;
        if !self.job.failed.is_empty() || waits && waves.width == 0 {
            return f64::NEG_INFINITY;
        }
        let mut running = 0.0;
        for task in &self.estimate.tasks {
            let index = task.index;
            let stay = task.attempts.iter();
            let stay = stay.filter(|a| !self.draft.doomed.contains(&(index, a.number)));
            let distribution_of = |attempt: &AttemptEstimate| match given {
                Some(given) if !attempt.reports() => given,
                _ => distribution,
            };
            let ln_miss: f64 = stay
                .map(|a| a.ln_miss_within(distribution_of(a), slack))
                .sum();
            running += ln_task_pocd(ln_miss);
        }
        if !waits {
            return running;
        }
        running + self.ln_pocd_of_waiting(waves, slack - overhead, given.unwrap_or(distribution))
    }
}
