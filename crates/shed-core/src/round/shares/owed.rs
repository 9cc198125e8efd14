//! The report of shares: what is lent and owed, and until when.

use super::{ROUNDING, Shares, dominant};
use crate::capacity::Capacity;
use crate::plan::TenantShare;
use crate::round::JobView;
use crate::time::{Instant, Span};

impl Shares {
    /// The share of each tenant with the plan; none while one tenant is alone.
    pub(crate) fn report(
        &self,
        now: Instant,
        jobs: &[JobView<'_>],
        capacity: &Capacity,
    ) -> Vec<TenantShare> {
        if !self.divides() {
            return Vec::new();
        }
        let of = |account: &super::Account| {
            let held = dominant(&self.usable, &account.held);
            TenantShare {
                tenant: account.tenant.clone(),
                entitled: account.entitled,
                held,
                lent: above_zero(held - account.share()),
                owed: 0.0,
                owed_until: None,
            }
        };
        let mut shares: Vec<TenantShare> = self.accounts.iter().map(of).collect();
        let lent: f64 = shares.iter().map(|share| share.lent).sum();
        for (share, account) in shares.iter_mut().zip(&self.accounts) {
            if self.is_below(account) {
                share.owed = (share.entitled - share.held).min(lent);
            }
        }
        let owed: f64 = shares.iter().map(|share| share.owed).sum();
        if owed > 0.0 {
            let until = self.returned_by(now, (jobs, capacity), owed.min(lent));
            for share in shares.iter_mut().filter(|share| share.owed > 0.0) {
                share.owed_until = until;
            }
        }
        shares
    }

    /// Whether the job's waiting attempts wait for a part of its tenant's share that others hold.
    pub(crate) fn is_owed(&self, position: usize) -> bool {
        let account = self.account(position).filter(|_| self.divides());
        account.is_some_and(|account| self.is_below(account)) && self.lends()
    }

    /// Whether a tenant holds more than its share.
    pub(super) fn lends(&self) -> bool {
        let mut accounts = self.accounts.iter();
        accounts.any(|it| dominant(&self.usable, &it.held) > it.share() + ROUNDING)
    }

    /// When attempts of tenants above their shares that hold this share are expected to have ended; `None` if that is not
    /// known.
    fn returned_by(
        &self,
        now: Instant,
        (jobs, capacity): (&[JobView<'_>], &Capacity),
        owed: f64,
    ) -> Option<Instant> {
        let mut lent: Vec<f64> = (self.accounts.iter())
            .map(|it| above_zero(dominant(&self.usable, &it.held) - it.share()))
            .collect();
        let mut ends: Vec<(Instant, usize, f64)> = Vec::new();
        for (position, state) in jobs.iter().enumerate() {
            let at = self.number(position);
            if lent.get(at).is_none_or(|&lent| lent <= 0.0) {
                continue;
            }
            let share = capacity.dominant_share(position);
            let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
            let known = attempts.filter_map(|attempt| attempt.remaining);
            let known = known.filter(|seconds| seconds.is_finite());
            ends.extend(known.map(|seconds| {
                let end = state
                    .appointment
                    .looked
                    .plus(Span::from_seconds_f64(seconds));
                (end.max(now), at, share)
            }));
        }
        ends.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let mut returned = 0.0;
        for (end, at, share) in ends {
            // A tenant gives back no more than what it holds beyond its share.
            let left = lent.get_mut(at)?;
            returned += share.min(*left);
            *left = above_zero(*left - share);
            if returned + ROUNDING >= owed {
                return Some(end);
            }
        }
        None
    }
}

fn above_zero(share: f64) -> f64 {
    match share > ROUNDING {
        true => share,
        false => 0.0,
    }
}
