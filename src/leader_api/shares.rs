//! The division of capacity between namespaces in the last planning pass.

use std::sync::Arc;

use shed_core::plan::TenantShare;

use super::answers::ShareSummary;
use crate::api::Decimal;
use crate::clock;
use crate::context::Context;

/// At most this many namespaces: those that are owed most, then those that hold most.
pub fn list(context: &Context, most: usize) -> Vec<ShareSummary> {
    let shares = context.shares.all();
    let mut ranked: Vec<&TenantShare> = shares.iter().collect();
    ranked.sort_by(|a, b| {
        let by_owed = b.owed.total_cmp(&a.owed);
        by_owed.then_with(|| b.held.total_cmp(&a.held))
    });
    let namespaces = context.stores.namespaces();
    let shares = ranked.into_iter().take(most).map(|share| ShareSummary {
        namespace: Arc::clone(&share.tenant.0),
        weight: Decimal::nearest(namespaces.weight(&share.tenant.0).unwrap_or(1.0)),
        entitled: Decimal::nearest(share.entitled),
        held: Decimal::nearest(share.held),
        lent: Decimal::nearest(share.lent),
        owed: Decimal::nearest(share.owed),
        owed_until: share.owed_until.map(clock::time),
    });
    shares.collect()
}
