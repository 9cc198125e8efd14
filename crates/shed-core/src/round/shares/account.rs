//! The account of one tenant in a pass.

use crate::capacity::Amounts;
use crate::ids::Tenant;
use crate::memory::TenantRecord;
use crate::time::Instant;

/// One tenant.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) tenant: Tenant,
    /// The tenant's part of the capacity by weight.
    pub(super) part: f64,
    /// Its weighted max-min share.
    pub(super) entitled: f64,
    /// Its attempts, with the launches of the plan.
    pub(super) held: Amounts,
    /// The same with the capacity that is reserved for its waiting attempts.
    pub(super) taken: Amounts,
    /// Attempts of it that the plan stops.
    pub(super) leaving: Amounts,
    /// Its attempts that can be taken back.
    pub(super) returnable: Amounts,
    /// Its attempts, and those that wait.
    pub(super) demand: Amounts,
    /// The smallest of its waiting attempts.
    pub(super) least_waiting: f64,
    /// The dominant share of `held` before the plan.
    pub(super) before: f64,
    pub(super) record: TenantRecord,
    /// What is kept for it while others borrow: a dominant share.
    pub(super) kept: f64,
    /// What the launches of the plan cost at least, in shares times seconds.
    pub(super) charged: f64,
    /// The same by the expected times of attempts, for the order of borrowers.
    pub(super) expected: f64,
}

impl Account {
    pub(super) fn new(tenant: &Tenant, weight: f64, resources: usize) -> Self {
        let none: Amounts = (0..resources).map(|_| 0).collect();
        Self {
            tenant: tenant.clone(),
            // Divided by the sum of weights later.
            part: weight,
            entitled: 0.0,
            held: none.clone(),
            taken: none.clone(),
            leaving: none.clone(),
            returnable: none.clone(),
            demand: none,
            least_waiting: f64::INFINITY,
            before: 0.0,
            record: TenantRecord {
                seen: Instant(0),
                used: 0.0,
                credit: 0.0,
            },
            kept: 0.0,
            charged: 0.0,
            expected: 0.0,
        }
    }

    pub(super) fn holds_none(&self) -> bool {
        self.held.iter().all(|&amount| amount == 0)
    }

    /// The tenant's share: what it is entitled to, and at least its part by weight, which its clones may use.
    pub(super) fn share(&self) -> f64 {
        self.entitled.max(self.part)
    }
}
