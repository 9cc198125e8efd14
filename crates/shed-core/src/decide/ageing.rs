//! Late jobs age. A job past its deadline is served after all jobs that can still finish in time, so under
//! lasting overload it would wait without end. A job has aged once it has been late for as long as it had
//! from submission to deadline. Aged jobs share a small part of the capacity, which is served first.

use crate::round::{JobView, Round};
use crate::time::{Instant, Span};

/// The part of a tenant's share that attempts of its aged jobs may hold before other jobs are served. One attempt is
/// always allowed.
const SHARE: f64 = 0.02;

/// A job ages for at least this many launch overheads, also if its deadline left no time.
const LAUNCHES_MIN: f64 = 10.0;

/// Tolerance of a sum of shares.
const ROUNDING: f64 = 1e-9;

/// When a job with a deadline has aged.
pub(super) fn aged_at(state: &JobView<'_>) -> Option<Instant> {
    let (deadline, given) = (state.job.deadline?, state.job.time_given()?);
    let least = Span::from_seconds_f64(LAUNCHES_MIN * state.t_avg);
    Some(deadline.plus(given.max(least)))
}

/// Whether one more attempt of aged jobs may be served before other jobs, as these hold the share `held` of the usable
/// capacity and it takes `share`.
pub fn may_be_served(held: f64, share: f64) -> bool {
    is_within(held, share, 1.0)
}

/// The same within the share of a tenant.
fn is_within(held: f64, share: f64, of_tenant: f64) -> bool {
    held == 0.0 || held + share <= SHARE * of_tenant + ROUNDING
}

/// The capacity of aged jobs by tenant, as shares of the usable capacity.
pub(super) struct AgedShare {
    held: Vec<f64>,
}

impl AgedShare {
    /// The capacity that aged jobs hold before the plan, and the positions of those that wait: the job that aged
    /// first comes first. Requests a pass when the next late job has aged.
    pub(super) fn new(pass: &mut Round<'_>) -> (Self, Vec<usize>) {
        let now = pass.snapshot.now;
        let (mut waiting, mut next) = (Vec::new(), None);
        let mut held = vec![0.0; pass.shares.tenants()];
        for (position, state) in pass.jobs.iter().enumerate() {
            let is_late = state.job.deadline.is_some_and(|deadline| deadline <= now);
            let Some(at) = aged_at(state).filter(|_| is_late && state.may_launch(now)) else {
                continue;
            };
            let share = pass.capacity.dominant_share(position);
            if at > now {
                next = next.into_iter().chain([at]).min();
            } else if share.is_finite() {
                if let Some(held) = held.get_mut(pass.shares.number(position)) {
                    *held += share * state.holdings.all as f64;
                }
                if state.waiting_now() > 0 {
                    waiting.push((at, state.job.submitted, &state.job.key, position));
                }
            }
        }
        waiting.sort();
        let positions = waiting.into_iter().map(|(.., position)| position).collect();
        pass.wake_at(next);
        (Self { held }, positions)
    }

    /// Whether one more attempt of the job may be served.
    pub(super) fn fits(&self, pass: &Round<'_>, position: usize) -> bool {
        let share = pass.capacity.dominant_share(position);
        let held = self.held.get(pass.shares.number(position));
        let held = held.copied().unwrap_or(0.0);
        is_within(held, share, pass.shares.share(position))
    }

    /// One more attempt of the job is served.
    pub(super) fn take(&mut self, pass: &Round<'_>, position: usize) {
        if let Some(held) = self.held.get_mut(pass.shares.number(position)) {
            *held += pass.capacity.dominant_share(position);
        }
    }
}
