//! Checks for what no watch event reports.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::reconcile::context::ReconcileContext;

/// Ticks once each period, from the first lists of the watches on. A check that takes long delays the next.
pub async fn every(context: &ReconcileContext, period: Duration) -> Interval {
    context.stores.ready().await;
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
