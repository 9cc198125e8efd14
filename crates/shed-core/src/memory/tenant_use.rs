//! What tenants have used of the capacity lately: for the capacity that is kept for them while others borrow it, and
//! for who borrows first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::Tenant;
use crate::tenant_fairness::keep_newest;
use crate::time::{Instant, Span};

/// Tenants that are remembered; the one that demanded or held nothing for the longest time is forgotten first.
const TENANTS_MAX: usize = 8192;

/// A tenant is remembered for this long after it last demanded or held anything.
const KEPT_FOR: Span = Span::from_seconds(3600);

/// Credit and past use halve within this many seconds.
const HALF_LIFE: f64 = 3600.0;

/// One tenant's use of the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TenantRecord {
    /// When the tenant last demanded or held capacity.
    pub seen: Instant,
    /// The share that it held on average. A past use counts half after an hour.
    #[serde(with = "float")]
    pub used: f64,
    /// What it used less than its part by weight, in shares times seconds: its credit when tenants borrow.
    #[serde(with = "float")]
    pub credit: f64,
}

/// What all tenants have used lately, as of the last pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TenantUse {
    /// When the last pass was made.
    pub(crate) at: Instant,
    /// The share of the capacity that was taken back from running attempts lately.
    #[serde(with = "float", default)]
    pub(crate) taken_back: f64,
    tenants: BTreeMap<Tenant, TenantRecord>,
}

impl TenantUse {
    pub(super) fn is_none(&self) -> bool {
        self.tenants.is_empty()
    }

    /// The tenants that have demanded or held anything within the last hour, as of `now`.
    pub(crate) fn recent(&self, now: Instant) -> impl Iterator<Item = (&Tenant, TenantRecord)> {
        let decay = self.decay(now);
        let all = self.tenants.iter();
        let all = all.filter(move |(_, it)| now.since(it.seen) <= KEPT_FOR);
        all.map(move |(tenant, it)| {
            let record = TenantRecord {
                used: it.used * decay,
                credit: it.credit * decay,
                ..*it
            };
            (tenant, record)
        })
    }

    /// Seconds since the last pass; 0 before the first one.
    pub(crate) fn elapsed(&self, now: Instant) -> f64 {
        if self.is_none() {
            return 0.0;
        }
        now.since(self.at).seconds().clamp(0.0, HALF_LIFE)
    }

    /// What is left of an earlier use at `now`.
    pub(crate) fn decay(&self, now: Instant) -> f64 {
        libm::exp2(-self.elapsed(now) / HALF_LIFE)
    }

    /// The records of a pass.
    pub(crate) fn new(
        now: Instant,
        taken_back: f64,
        tenants: impl Iterator<Item = (Tenant, TenantRecord)>,
    ) -> Self {
        let mut tenants: BTreeMap<Tenant, TenantRecord> = tenants.collect();
        keep_newest(&mut tenants, TENANTS_MAX, |it| it.seen);
        Self {
            at: now,
            taken_back,
            tenants,
        }
    }

    /// The record of a tenant.
    pub fn get(&self, tenant: &Tenant) -> Option<&TenantRecord> {
        self.tenants.get(tenant)
    }

    /// The number of remembered tenants.
    pub fn len(&self) -> usize {
        self.tenants.len()
    }

    /// Whether no tenant is remembered.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }
}
