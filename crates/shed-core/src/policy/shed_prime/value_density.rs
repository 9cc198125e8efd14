//! The value density of a slot when slots are short: expected deadlines met per second for which an attempt holds it.
//! A clone is evicted only for a first attempt of a higher value density. A clone of a higher density than all
//! waiting first attempts is launched before them, because the job that it saves has already paid for its slots.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::capacity::Amounts;
use crate::ids::{AttemptNumber, JobKey, TaskIndex};
use crate::plan::{Alternative, Finding, RefusalReason, Trade};
use crate::policy::ShedPrime;
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::Fresh;
use crate::policy::shed_prime::bundles::candidates;
use crate::policy::shed_prime::price::{Candidate, price};
use crate::round::clones::CloneTask;
use crate::round::{AttemptEstimate, JobView, Number, TaskEstimate, ValueDensity};
use crate::snapshot::{AttemptKind, SpeculationMode};

/// A clone is launched before waiting first attempts only if its value density is this many times as high. Estimates
/// change from pass to pass, and a clone launched now must not be evicted right after.
const MARGIN: f64 = 1.5;

/// Whether tasks wait for capacity that is not reserved.
pub(super) fn someone_waits(desk: &PrimeDesk<'_, '_>) -> bool {
    let now = desk.now();
    let waits = |state: &JobView<'_>| state.launchable_now() > 0 && !state.is_held_up(now);
    desk.jobs().iter().any(waits)
}

/// What the waiting tasks leave of the free capacity once they are launched; `None` if they need all of it. Where a
/// job has just arrived at an idle cluster, its tasks are launched in the same pass.
pub(super) fn rest_after_waiting(desk: &PrimeDesk<'_, '_>) -> Option<Amounts> {
    let now = desk.now();
    let jobs = desk.jobs().iter().enumerate();
    let waiting = jobs.filter(|(_, state)| !state.is_held_up(now));
    let waiting = waiting.map(|(position, state)| (position, state.launchable_now()));
    desk.capacity()
        .rest_after(waiting.filter(|(_, wanted)| *wanted > 0))
}

/// Whether capacity is short: tasks wait for it, or pods that were launched beyond capacity.
pub(super) fn is_short(desk: &PrimeDesk<'_, '_>) -> bool {
    someone_waits(desk) || !desk.capacity().surging.is_empty()
}

/// Pending pods of the job that were launched so that the cluster may grow.
pub(super) fn surging(desk: &PrimeDesk<'_, '_>, position: usize) -> u32 {
    let surging = desk.capacity().surging.iter();
    surging.filter(|at| **at == position).count() as u32
}

/// The value density of the job's waiting attempts and of its clones; `ln_hope` is the hope that ranks the job.
/// Attempts without a deadline have no value.
pub(super) fn worth(fresh: &Fresh<'_, '_>, ln_hope: f64) -> ValueDensity {
    let estimate = &fresh.state.estimate;
    let waiting = f64::from(fresh.state.waiting_now().max(1));
    let hope = estimate.slack.map_or(0.0, |_| libm::exp(ln_hope));
    let own = hope / waiting / fresh.holds(0.0).max(1.0);
    let of_run = until_deadline(fresh).map_or(f64::INFINITY, |left| hope / left);
    let mut tasks = estimate.cloned();
    let clones = tasks.next().map(|first| {
        let ln_hope = if estimate.is_assumed {
            fresh.ln_hope()
        } else {
            ln_hope
        };
        let tasks = std::iter::once(first).chain(tasks);
        tasks.flat_map(move |task| of_clones(fresh, task, ln_hope))
    });
    ValueDensity {
        waiting: own.min(of_run),
        clones: clones.into_iter().flatten().collect(),
    }
}

/// Seconds until the deadline of a stage, at least 1. Its end meets no deadline yet, and what follows is unknown: the
/// run is taken to hold a slot until its deadline.
fn until_deadline(fresh: &Fresh<'_, '_>) -> Option<f64> {
    let left = fresh.state.estimate.slack;
    let left = left.filter(|_| fresh.state.job.is_stage);
    left.map(|left| left.max(1.0))
}

/// Seconds of a slot that a clone costs which would hold it for `holds` seconds: at most until the deadline.
fn slot_time(fresh: &Fresh<'_, '_>, holds: f64) -> f64 {
    let slack = fresh.state.estimate.slack.unwrap_or(f64::INFINITY);
    until_deadline(fresh).unwrap_or(holds.min(slack).max(1.0))
}

/// The value density of each clone of the task: an equal part of the value that the clones save together.
fn of_clones(
    fresh: &Fresh<'_, '_>,
    task: &TaskEstimate,
    ln_hope: f64,
) -> Vec<((TaskIndex, AttemptNumber), f64)> {
    let is_clone = |attempt: &&AttemptEstimate| attempt.kind == AttemptKind::Clone;
    let [with, without] = [true, false].map(|counts| {
        let ln_miss = task.ln_miss(|attempt| counts || !is_clone(&attempt));
        libm::exp(ln_miss)
    });
    let count = task.attempts.iter().filter(is_clone).count().max(1);
    let saved = hope_of_others(fresh, task, ln_hope) * (without - with) / count as f64;
    let whole = fresh.holds(task.clone_begin());
    let clones = task.attempts.iter().filter(is_clone);
    let density = |clone: &AttemptEstimate| {
        let remaining = clone.remaining.filter(|_| clone.reports());
        let holds = remaining.unwrap_or(whole - clone.since_launch);
        // A clone launched at this very instant stays, so that no pass reverses the previous one.
        let worth = if clone.since_launch > 0.0 {
            saved / slot_time(fresh, holds)
        } else {
            f64::INFINITY
        };
        ((task.index, clone.number), worth)
    };
    clones.map(density).collect()
}

/// P(all other tasks of the job are in time), if the job has any hope. With a factor in common, it is that given that
/// the task is in time.
fn hope_of_others(fresh: &Fresh<'_, '_>, task: &TaskEstimate, ln_hope: f64) -> f64 {
    if ln_hope.is_finite() {
        libm::exp(ln_hope - fresh.ln_hope_of(task)).min(1.0)
    } else {
        0.0
    }
}

/// Hands out clones of a higher value density than any waiting first attempt, before those are served.
pub(super) fn rescue(desk: &mut PrimeDesk<'_, '_>, prime: &ShedPrime) {
    let waits = |state: &&JobView<'_>| state.launchable_now() > 0 && state.may_launch(desk.now());
    let worth = |state: &JobView<'_>| match state.rank {
        Some((is_hopeless, _)) if !is_hopeless => state.waiting_value_density(),
        _ => 0.0,
    };
    let waiting = desk.jobs().iter().filter(waits);
    let waiting = waiting.map(|state| Waiting {
        job: state.job.key.clone(),
        density: worth(state),
    });
    let Some(most) = waiting.max_by(|a, b| a.density.total_cmp(&b.density)) else {
        return;
    };
    // The clones of a job that only observes exist on paper, and must take nothing from first attempts.
    rescue_in(desk, prime, SpeculationMode::Enabled, &most);
}

/// The job whose waiting attempts have the highest value density.
struct Waiting {
    job: JobKey,
    density: f64,
}

fn rescue_in(
    desk: &mut PrimeDesk<'_, '_>,
    prime: &ShedPrime,
    mode: SpeculationMode,
    waiting: &Waiting,
) {
    let least = waiting.density * MARGIN;
    let mut jobs = candidates(desk, prime, mode);
    let mut trials = Vec::new();
    for (at, candidate) in jobs.iter().enumerate() {
        let job = &candidate.job;
        if desk.afford(&[job.position], job.tasks.len() as u64) {
            let of_job = trials_of(desk, (at, candidate), prime);
            trials.extend(of_job.filter(|trial| trial.is_worth(least)));
        }
    }
    // Between equals the earlier job's earlier task is first.
    let places = trials.iter().enumerate();
    let places = places.map(|(at, trial)| (Number(trial.worth), Reverse(at)));
    let mut queue: BinaryHeap<_> = places.collect();
    while let Some((_, Reverse(at))) = queue.pop() {
        let Some(trial) = trials.get_mut(at) else {
            continue;
        };
        let Some(candidate) = jobs.get_mut(trial.job) else {
            continue;
        };
        let miss = candidate
            .job
            .tasks
            .get(trial.task)
            .map_or(1.0, CloneTask::miss);
        let finding = Finding::Late { miss };
        let instead = trial.alternative(candidate, waiting);
        if !desk.request(&mut candidate.job, trial.task, finding) {
            continue;
        }
        desk.report_trade(candidate.job.position, trial.trade(instead));
        let next = trial.again(candidate, prime);
        if let Some(next) = next.filter(|next| next.is_worth(least)) {
            queue.push((Number(next.worth), Reverse(at)));
            *trial = next;
        }
    }
    for Candidate { job, .. } in &mut jobs {
        match desk.job(job.position) {
            Some(state) if state.draft.clones.is_empty() => desk.withdraw_refusals(job.position),
            _ => desk.refuse_rest(job, RefusalReason::Capacity),
        }
    }
}

/// One more clone of a task.
struct Trial {
    worth: f64,
    /// The expected deadlines that it gains, less its price.
    profit: f64,
    /// P(the other tasks are in time).
    others: f64,
    /// Seconds for which the clone holds its slot, or a stage until its deadline.
    holds: f64,
    job: usize,
    task: usize,
}

fn trials_of<'j>(
    desk: &'j PrimeDesk<'_, '_>,
    (at, candidate): (usize, &'j Candidate),
    prime: &'j ShedPrime,
) -> impl Iterator<Item = Trial> + 'j {
    let job = &candidate.job;
    let fresh = Fresh::at(desk, job.position);
    let fresh = fresh.map(|fresh| (fresh.ln_hope(), fresh));
    let tasks = job.tasks.iter().enumerate();
    tasks.filter_map(move |(place, task)| {
        let (ln_hope, fresh) = fresh.as_ref()?;
        let estimate = &fresh.state.estimate;
        let running = estimate.running(task.index)?;
        let trial = Trial {
            worth: 0.0,
            profit: 0.0,
            others: hope_of_others(fresh, running, *ln_hope),
            holds: slot_time(fresh, fresh.holds(running.clone_begin())),
            job: at,
            task: place,
        };
        trial.again(candidate, prime)
    })
}

impl Trial {
    /// The next clone of the same task, if the task may get one.
    fn again(&self, candidate: &Candidate, prime: &ShedPrime) -> Option<Self> {
        let job = &candidate.job;
        let task = job.tasks.get(self.task)?;
        let prospect = candidate.prospect(self.task)?;
        let may = task.clones_alive + task.clones < job.max_clones && !task.is_refused;
        let saved = libm::exp(prospect.ln_miss()) * -libm::expm1(prospect.ln_step());
        let gain = self.others * saved;
        may.then_some(Self {
            worth: gain / self.holds,
            profit: gain - price(prime, task) * prospect.price_share(),
            ..*self
        })
    }

    /// What the slot could be used for instead.
    fn alternative(&self, candidate: &Candidate, waiting: &Waiting) -> Option<Alternative> {
        if waiting.density <= 0.0 {
            return candidate.wait();
        }
        Some(Alternative::Attempt {
            job: waiting.job.clone(),
            gain: waiting.density * self.holds,
        })
    }

    fn trade(&self, alternative: Option<Alternative>) -> Trade {
        let gain = self.worth * self.holds;
        Trade {
            gain,
            price: gain - self.profit,
            alternative,
        }
    }

    fn is_worth(&self, least: f64) -> bool {
        self.worth > 0.0 && self.worth >= least && self.profit >= 0.0
    }
}
