//! First attempts that wait as pods beyond capacity, so that autoscalers see demand. The number is limited per
//! tenant, so that one tenant's pods do not hide another's.

use std::collections::BTreeMap;

use crate::ids::Tenant;
use crate::round::Round;

/// How many more pods of each tenant may wait beyond capacity.
pub(super) struct Surge {
    most: usize,
    waiting: BTreeMap<Tenant, usize>,
}

impl Surge {
    /// At most `most` of each tenant, including those that wait already.
    pub(super) fn new(pass: &Round<'_>, most: u32) -> Self {
        Self {
            most: most as usize,
            waiting: pass.capacity.waiting_pods(pass.snapshot),
        }
    }

    /// Whether one more pod of the tenant may wait.
    pub(super) fn is_left(&self, tenant: &Tenant) -> bool {
        self.waiting.get(tenant).copied().unwrap_or(0) < self.most
    }

    /// Counts one more waiting pod of the tenant, if it was launched.
    pub(super) fn take(&mut self, tenant: &Tenant, launched: bool) {
        if launched {
            *self.waiting.entry(tenant.clone()).or_insert(0) += 1;
        }
    }
}
