//! The order of service when capacity is short. While all jobs can be in time, the least slack comes first. Otherwise
//! most jobs are in time if the highest value density comes first. Moore and Hodgson's rule for the fewest late jobs
//! on one machine (Management Science 15(1), 1968) determines the jobs to leave out.
//!
//! The jobs are therefore served in two groups. The first is the largest set of those with the highest value density
//! that can all be in time, by slack. The rest follow by value density.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::estimate::distribution::AttemptDistribution;
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Fresh, task_time, usual_share};
use crate::policy::shed_prime::outlook::Found;
use crate::policy::shed_prime::preempt::may_yield;
use crate::policy::shed_prime::value_density::surging;
use crate::round::{AttemptEstimate, JobView, Number, TaskEstimate};

/// A job gets its slots within this share of the time until its last task would have to start. A task that starts at
/// the last moment has no time left for a second attempt.
const WITHIN: f64 = 0.75;

/// ln of the share of attempts that may be late although a job with an expected duration got its slots in time.
const LN_LATE: f64 = -std::f64::consts::LN_10;

/// Tolerance of a share, because the wanted share is a sum over slots.
const ROUNDING: f64 = 1e-9;

/// Up to this many slots that come free are examined one by one; more are examined in groups.
const RELEASES_MAX: usize = 1024;

/// The same of one job.
const RELEASES_PER_JOB_MAX: usize = 64;

/// Slots that one schedule examines. Jobs that would still wait then are ordered by value density.
const STEPS_MAX: u32 = 100_000;

/// A job with tasks that wait.
struct Waiter {
    position: usize,
    /// The number of jobs with a higher value density.
    bring_more: usize,
    /// The job's slack in milliseconds.
    slack: i64,
    /// Seconds within which the job's last task must start.
    latest: f64,
    /// The share of the usable capacity that the job's tasks take together, with as many clones as run for other
    /// jobs.
    wanted: f64,
    /// Seconds for which each task holds its slot.
    holds: f64,
}

/// A share of the usable capacity that comes free after `at` seconds.
#[derive(Clone, Copy)]
struct Release {
    at: f64,
    share: f64,
}

/// Marks the jobs to be served first.
pub(super) fn mark(desk: &mut PrimeDesk<'_, '_>) {
    let waiters = waiters(desk);
    if waiters.len() < 2 {
        return;
    }
    let releases = releases(desk);
    let counts: Vec<usize> = (1..=waiters.len()).collect();
    // If some jobs cannot all be in time, a larger set cannot either.
    let timely = counts.partition_point(|count| {
        let some = waiters.iter().filter(|waiter| waiter.bring_more < *count);
        are_in_time(some, &releases)
    });
    for waiter in waiters.iter().filter(|waiter| waiter.bring_more < timely) {
        desk.set_timely(waiter.position);
    }
}

/// The waiting jobs, least slack first.
fn waiters(desk: &PrimeDesk<'_, '_>) -> Vec<Waiter> {
    let mut waiters = Vec::new();
    let redundancy = redundancy(desk);
    for (position, state) in desk.jobs().iter().enumerate() {
        let share = desk.capacity().dominant_share(position);
        let waiting = state
            .launchable_now()
            .saturating_add(surging(desk, position));
        if let (Some((false, slack)), Some(left)) = (state.rank, state.estimate.slack)
            && waiting > 0
            && share.is_finite()
            && state.may_launch(desk.now())
        {
            let holds = Fresh::of(state, usual_share(desk, position)).holds(0.0);
            let latest = WITHIN * (left - holds);
            waiters.push(Waiter {
                position,
                bring_more: 0,
                slack,
                latest: latest.max(latest_of_expected(state, left)),
                wanted: share * f64::from(waiting) * redundancy,
                holds,
            });
        }
    }
    // Not the position, because a job's position in the snapshot must not matter.
    let name = |waiter: &Waiter| {
        let state = desk.job(waiter.position);
        state.map(|state| (state.job.submitted, &state.job.key))
    };
    let worth = |waiter: &Waiter| {
        let state = desk.job(waiter.position);
        Number(-state.map_or(0.0, JobView::waiting_value_density))
    };
    waiters.sort_by_cached_key(|waiter| (worth(waiter), name(waiter)));
    for (count, waiter) in waiters.iter_mut().enumerate() {
        waiter.bring_more = count;
    }
    waiters.sort_by_key(|waiter| waiter.slack);
    waiters
}

/// Seconds within which a task of a job with an expected duration must start. That distribution is narrow enough that
/// one attempt suffices. Without an expectation a second one must remain possible.
fn latest_of_expected(state: &JobView<'_>, left: f64) -> f64 {
    let expected = state.job.expected_duration.is_some();
    let distribution = state.estimate.own_distribution().filter(|_| expected);
    distribution.map_or(0.0, |distribution| {
        left - state.launch_time() - distribution.quantile(LN_LATE)
    })
}

/// The mean number of attempts per running task.
fn redundancy(desk: &PrimeDesk<'_, '_>) -> f64 {
    let estimates = desk.jobs().iter().map(|state| &state.estimate);
    let (mut attempts, mut tasks) = (0, 0);
    for estimate in estimates {
        attempts += estimate.attempts;
        tasks += estimate.tasks.len();
    }
    if tasks > 0 {
        attempts as f64 / tasks as f64
    } else {
        1.0
    }
}

/// Seconds until the first of the task's attempts ends. For a silent attempt this follows from the job's
/// distribution. Without one, an attempt that has taken longer than usual is expected to take as long again.
fn until_end(task: &TaskEstimate, time: f64) -> f64 {
    let end = |attempt: &AttemptEstimate| match attempt.remaining {
        Some(remaining) if remaining.is_finite() => remaining,
        _ if attempt.age < time => time - attempt.age,
        _ => attempt.age,
    };
    task.attempts.iter().map(end).fold(f64::INFINITY, f64::min)
}

/// The capacity that the tasks of one job release as they end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct JobReleases {
    /// When, after the look, and the number of attempts; earliest first.
    ends: Vec<(f64, f64)>,
}

impl JobReleases {
    fn of(desk: &PrimeDesk<'_, '_>, position: usize, state: &JobView<'_>) -> Self {
        let time = task_time(state, usual_share(desk, position));
        let is_held_up = state.is_held_up(desk.now());
        let mut ends = Vec::with_capacity(state.estimate.tasks.len());
        // Such an attempt has endless slack, so any waiting task with a deadline may preempt it.
        let is_always_preemptible = state.estimate.slack.is_none() && may_yield(desk, state);
        for task in &state.estimate.tasks {
            let places = match is_held_up {
                // A pod that cannot be placed releases no slot.
                true => state.places_of(task),
                false => task.attempts.len(),
            };
            // An attempt on an unusable node releases none either.
            let attempts = task.attempts.iter();
            let apart = attempts.filter(|a| desk.capacity().unusable.has(a.node));
            let places = places.saturating_sub(apart.count()) as f64;
            let at = match is_always_preemptible {
                true => 0.0,
                false => until_end(task, time),
            };
            ends.push((at, places));
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            ends: grouped(&ends, RELEASES_PER_JOB_MAX),
        }
    }
}

/// At most `most` groups of neighbors, each with the last time and the sum of all.
fn grouped(ends: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let groups = ends.chunks(ends.len().div_ceil(most).max(1));
    let one = |group: &[(f64, f64)]| {
        let last = group.last().map_or(0.0, |(at, _)| *at);
        (last, group.iter().map(|(_, amount)| amount).sum())
    };
    groups.map(one).collect()
}

/// Finds the releases of the jobs that were looked at.
fn find_releases(desk: &mut PrimeDesk<'_, '_>) {
    for position in 0..desk.jobs().len() {
        let (Some(state), Some(outlook)) = (desk.job(position), desk.state(position)) else {
            continue;
        };
        if outlook.releases.get(state).is_none() {
            let found = Found::new(state, JobReleases::of(desk, position, state));
            if let Some(outlook) = desk.state_mut(position) {
                outlook.releases = found;
            }
        }
    }
}

/// The free capacity, and the capacity that tasks release as they end; earliest first.
fn releases(desk: &mut PrimeDesk<'_, '_>) -> Vec<Release> {
    find_releases(desk);
    let mut releases = Vec::new();
    let mut held = 0.0;
    for (position, state) in desk.jobs().iter().enumerate() {
        let share = desk.capacity().dominant_share(position);
        let found = desk.state(position).and_then(|it| it.releases.last());
        let Some(found) = found.filter(|_| share.is_finite()) else {
            continue;
        };
        let age = desk.now().since(state.appointment.looked).seconds();
        for (end, places) in &found.ends {
            let share = share * places;
            held += share;
            releases.push((end - age, share));
        }
    }
    releases.push((0.0, (1.0 - held).max(0.0)));
    // Each job's are in order already.
    releases.sort_by(|a, b| a.0.total_cmp(&b.0));
    let groups = grouped(&releases, RELEASES_MAX).into_iter();
    groups.map(|(at, share)| Release { at, share }).collect()
}

/// Whether the last task of each job starts in time, or at once, if the jobs are served in this order.
fn are_in_time<'w>(mut waiters: impl Iterator<Item = &'w Waiter>, releases: &[Release]) -> bool {
    let mut places = Places {
        releases,
        again: BinaryHeap::new(),
        steps_left: STEPS_MAX,
    };
    waiters.all(|waiter| places.hold(waiter))
}

/// Slots as they come free.
struct Places<'r> {
    releases: &'r [Release],
    /// Slots that were handed out: when they come free again, and their share.
    again: BinaryHeap<Reverse<(Number, Number)>>,
    steps_left: u32,
}

impl Places<'_> {
    /// Gives the waiter the first slots that come free; false if the last of them is too late.
    fn hold(&mut self, waiter: &Waiter) -> bool {
        let mut wanted = waiter.wanted;
        while wanted > ROUNDING {
            let Some(Release { at, share }) = self.first() else {
                return false;
            };
            if at > waiter.latest.max(0.0) || self.steps_left == 0 {
                return false;
            }
            self.steps_left -= 1;
            let taken = share.min(wanted);
            wanted -= taken;
            self.free(at + waiter.holds, taken);
            self.free(at, share - taken);
        }
        true
    }

    fn free(&mut self, at: f64, share: f64) {
        if share > ROUNDING {
            self.again.push(Reverse((Number(at), Number(share))));
        }
    }

    fn first(&mut self) -> Option<Release> {
        let again = self.again.peek().map(|Reverse((at, _))| at.0);
        let (first, rest) = match self.releases.split_first() {
            Some((first, rest)) if again.is_none_or(|again| first.at <= again) => (*first, rest),
            _ => {
                let Reverse((at, share)) = self.again.pop()?;
                let (at, share) = (at.0, share.0);
                (Release { at, share }, self.releases)
            }
        };
        self.releases = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(wanted: f64, holds: f64) -> Waiter {
        Waiter {
            position: 0,
            bring_more: 0,
            slack: 0,
            latest: 10.0,
            wanted,
            holds,
        }
    }

    fn is_in_time(waiter: &Waiter, shares: &[f64]) -> bool {
        let release = |share: &f64| Release {
            at: 0.0,
            share: *share,
        };
        let releases: Vec<_> = shares.iter().map(release).collect();
        are_in_time([waiter].into_iter(), &releases)
    }

    #[test]
    fn places_are_given_away_again_until_it_is_too_late() {
        // A third of the wanted share at a time: the last third starts after ten seconds.
        assert!(is_in_time(&waiter(1.5, 5.0), &[0.25, 0.25]));
        assert!(!is_in_time(&waiter(1.5, 5.1), &[0.25, 0.25]));
    }

    #[test]
    fn a_schedule_ends_whatever_attempts_take() {
        assert!(!is_in_time(&waiter(1.0, 0.0), &[0.0]));
        assert!(!is_in_time(&waiter(1.0, 0.0), &[1e-7]));
    }
}
