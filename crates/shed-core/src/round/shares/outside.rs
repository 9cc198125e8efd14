//! Jobs of quotas outside shed: they have no part in the division of capacity, and what they take is not divided.

use super::{ROUNDING, dominant};
use crate::capacity::{Amounts, Capacity, add};
use crate::round::JobView;
use crate::snapshot::Snapshot;

/// The number of the account that such a job does not have.
pub(super) const OUTSIDE: usize = usize::MAX;

/// The part of the capacity that these jobs neither hold nor may take now; 1 without such jobs.
pub(super) fn left_by_quotas(
    usable: &[f64],
    snapshot: &Snapshot,
    (jobs, capacity): (&[JobView<'_>], &Capacity),
) -> f64 {
    let mut taken: Amounts = usable.iter().map(|_| 0).collect();
    let all = jobs.iter().enumerate();
    for (position, state) in all.filter(|(_, state)| state.job.admitted.is_some()) {
        let waits = match state.may_launch(snapshot.now) {
            true => state.launchable_now(),
            false => 0,
        };
        if let Some(demand) = capacity.demands.get(position) {
            let attempts = i64::from(waits) + state.holdings.all as i64;
            add(&mut taken, demand, attempts);
        }
    }
    (1.0 - dominant(usable, &taken)).max(ROUNDING)
}
