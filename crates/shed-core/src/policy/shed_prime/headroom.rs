//! Room for what is to come. An attempt that holds its place for long may keep it from tasks that
//! bring more and are still to be submitted; what came lately tells how many. So a job gets first
//! attempts as far as the jobs that bring no more than it leave room for the others' demand.
//!
//! Such demand is that of an M/G/∞ queue with arrivals in groups: by Campbell's theorem its mean is
//! Σ volume / window and its variance Σ width · volume / window over the jobs that came within the
//! window. One more attempt takes from it what the part of the time in which that demand is beyond
//! what is left for it brings.

use std::collections::BTreeSet;

use crate::estimate::special::normal_tail_quantile;
use crate::ids::JobKey;
use crate::memory::{Arrival, Arrivals};
use crate::policy::shed_prime::beliefs::{Fresh, known_time};
use crate::round::{Allowance, Claim, JobView, Round};
use crate::snapshot::JobSnapshot;
use crate::time::Instant;

/// Jobs that bring so many times as much per share and second have room kept for them.
const TIMES_AS_MUCH: f64 = 5.0;

/// What is likely to come while an attempt holds its place is what came in the same time before,
/// or in this part of it if no job came earlier.
const WINDOW_MIN: f64 = 0.25;

/// Who could wait counts less: one that could for four times as long as the place would be held,
/// not at all.
const SLACK_WEIGHT: f64 = 0.25;

/// The part of the time in which the others may lack room. What brings next to nothing (a hopeless
/// job, one without a deadline) leaves room for all but a hundredth of it, and nobody is kept from
/// more than the mean of their demand for less than half.
const RISK_MIN: f64 = 0.01;
const RISK_MAX: f64 = 0.5;

/// What a job asks for.
#[derive(Clone, Copy)]
struct Ask {
    /// Of what is usable, per attempt.
    share: f64,
    /// Seconds for which an attempt holds it.
    seconds: f64,
    arrival: Option<Arrival>,
}

/// Notes what came, and says how many first attempts each job that waits may get.
pub(super) fn reserve(pass: &mut Round<'_>) {
    let jobs = pass.jobs.iter().enumerate();
    let asks: Vec<Ask> = jobs
        .map(|(position, state)| ask(pass, position, state))
        .collect();
    let now = pass.snapshot.now;
    for (state, ask) in pass.jobs.iter_mut().zip(&asks) {
        note(&mut pass.arrivals, now, state, ask.arrival);
        state.claim = Claim {
            share: ask.share,
            density: ask.arrival.map_or(0.0, |arrival| 1.0 / arrival.volume),
            allowance: None,
        };
    }
    let held = Held::of(pass);
    let jobs = pass.jobs.iter().zip(&asks);
    let allowances: Vec<_> = jobs
        .map(|(state, ask)| allowance(pass, state, *ask, &held))
        .collect();
    for (state, allowance) in pass.jobs.iter_mut().zip(allowances) {
        state.claim.allowance = allowance;
    }
}

/// Notes what came, if it may run: what its user holds back, or what can't be created or placed, is not
/// likely to come again and ask for room.
fn note(arrivals: &mut Arrivals, now: Instant, state: &JobView<'_>, arrival: Option<Arrival>) {
    let key = &state.job.key;
    let has_run = arrivals.has_run(key) || has_run(state.job);
    if let Some(arrival) = arrival.filter(|_| has_run || !state.is_held_up(now)) {
        arrivals.note(key, arrival);
        arrivals.mark(key, has_run, state.holds_room());
    }
}

/// Looks in every pass at what became of jobs that were noted, and forgets those that may not run any
/// more, or are gone before their deadline, and never ran.
pub(super) fn follow(pass: &mut Round<'_>) {
    let (now, arrivals) = (pass.snapshot.now, &mut pass.arrivals);
    if !arrivals.may_be_withdrawn(now) {
        return;
    }
    for state in &pass.jobs {
        let key = &state.job.key;
        if arrivals.has_run(key) {
            continue;
        }
        let has_run = has_run(state.job);
        if state.is_held_up(now) && !has_run {
            arrivals.withdraw(key);
        } else {
            arrivals.mark(key, has_run, state.holds_room());
        }
    }
    let present: BTreeSet<&JobKey> = pass.snapshot.jobs.iter().map(|job| &job.key).collect();
    arrivals.forget_withdrawn(now, |key| present.contains(key));
}

/// Whether an attempt of the job has begun.
fn has_run(job: &JobSnapshot) -> bool {
    let mut attempts = job.tasks.iter().flat_map(|task| &task.attempts);
    let has_ended = !job.done.is_empty() || !job.failed.is_empty() || !job.ended_runs.is_empty();
    has_ended || attempts.any(|attempt| attempt.started.is_some())
}

fn ask(pass: &Round<'_>, position: usize, state: &JobView<'_>) -> Ask {
    let share = pass.capacity.dominant_share(position);
    // What asks for more than there is takes nothing from anybody, and nothing is kept from it.
    let share = if share.is_finite() { share } else { 0.0 };
    let rules = &state.job.rules;
    let limit = state.job.deadline.map(|at| at.since(state.job.submitted));
    let is_known = limit.is_some() || known_time(state).is_some();
    let seconds = if is_known {
        Fresh::of(state).holds(0.0)
    } else {
        // Nothing says when it would end.
        f64::INFINITY
    };
    let width = share * f64::from(rules.completions.min(rules.parallelism).max(1));
    let volume = share * f64::from(rules.completions) * seconds;
    let arrival = limit
        .filter(|_| volume > 0.0 && volume.is_finite())
        .map(|limit| Arrival {
            submitted: state.job.submitted,
            width,
            volume,
            slack: (limit.seconds() - seconds).max(0.0),
            deadline: state.job.submitted.plus(limit),
            has_run: false,
            is_launched: false,
        });
    Ask {
        share,
        seconds,
        arrival,
    }
}

/// What attempts hold, by what their jobs bring.
struct Held {
    /// Density, and what attempts hold of jobs up to it; ascending.
    sums: Vec<(f64, f64)>,
}

impl Held {
    fn of(pass: &Round<'_>) -> Self {
        let jobs = pass.jobs.iter();
        let mut sums: Vec<(f64, f64)> = jobs
            .map(|state| (state.claim.density, state.held()))
            .collect();
        sums.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        for (_, held) in &mut sums {
            sum += *held;
            *held = sum;
        }
        Self { sums }
    }

    fn up_to(&self, density: f64) -> f64 {
        let count = self.sums.partition_point(|(at, _)| *at <= density);
        let last = count.checked_sub(1).and_then(|at| self.sums.get(at));
        last.map_or(0.0, |(_, sum)| *sum)
    }
}

/// How much the job may take, if room is to be kept from it.
fn allowance(pass: &Round<'_>, state: &JobView<'_>, ask: Ask, held: &Held) -> Option<Allowance> {
    if state.launchable_now() == 0 || ask.share <= 0.0 {
        return None;
    }
    let worth = state.worth_of_waiting() / ask.share;
    let up_to = TIMES_AS_MUCH * worth;
    let demand = demand(pass, &state.job.key, up_to, ask.seconds)?;
    let risk = (worth / demand.density).clamp(RISK_MIN, RISK_MAX);
    let kept = demand.mean + normal_tail_quantile(libm::log(risk)) * demand.deviation;
    let of_others = if state.claim.density <= up_to {
        held.up_to(up_to)
    } else {
        held.up_to(up_to) + state.held()
    };
    let left = (1.0 - kept).max(0.0) - of_others;
    // One attempt of each job may go on: nobody waits for ever, and what runs shows its time.
    let left = left.max(ask.share - state.held());
    Some(Allowance { up_to, left })
}

/// What is likely to be asked for by jobs that bring more.
struct Demand {
    /// Of what is usable.
    mean: f64,
    deviation: f64,
    /// Deadlines met per share and second.
    density: f64,
}

fn demand(pass: &Round<'_>, key: &JobKey, above: f64, seconds: f64) -> Option<Demand> {
    let now = pass.snapshot.now;
    let elapsed = now.since(pass.arrivals.first()?).seconds();
    // For what may hold its place for ever all that is remembered counts.
    let window = if seconds.is_finite() {
        elapsed.clamp(WINDOW_MIN * seconds, seconds)
    } else {
        elapsed
    };
    let window = window.max(1.0);
    let (mut count, mut volume, mut squares) = (0.0, 0.0, 0.0);
    for (other, arrival) in pass.arrivals.iter() {
        let is_recent = now.since(arrival.submitted).seconds() <= window;
        if is_recent && 1.0 / arrival.volume > above && other != key {
            let waits = SLACK_WEIGHT * arrival.slack / seconds.max(1.0);
            let weight = (1.0 - waits).max(0.0);
            count += weight;
            volume += weight * arrival.volume;
            squares += weight * arrival.width.min(1.0) * arrival.volume;
        }
    }
    // So many came within one interval less: a single one tells of no rate.
    let rate = (count - 1.0) / count / window;
    (rate > 0.0).then(|| Demand {
        mean: volume * rate,
        deviation: libm::sqrt(squares * rate),
        density: count / volume,
    })
}
