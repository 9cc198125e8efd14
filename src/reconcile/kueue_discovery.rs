//! Whether the cluster has Kueue. Without it the label of a queue means nothing, so that a user cannot set it to start a
//! job before others. Every client may read the list of API groups.

use std::sync::Arc;
use std::time::Duration;

use crate::adopt::kueue;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::periodic_checks;

/// Kueue is seldom installed or removed. Each check is one request.
const PERIOD: Duration = Duration::from_secs(30);

/// Checks without end, if shed runs Jobs.
pub async fn run(context: Arc<ReconcileContext>) {
    if context.stores.jobs.batch().is_none() {
        return std::future::pending().await;
    }
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        match look(&context).await {
            Ok(has_kueue) => note(&context, has_kueue),
            // What was known still holds.
            Err(error) => tracing::debug!(%error, "list of API groups"),
        }
    }
}

fn note(context: &ReconcileContext, has_kueue: bool) {
    match (context.stores.note_kueue(has_kueue), has_kueue) {
        (false, _) => {}
        (true, true) => {
            tracing::info!("the cluster has Kueue: its quota orders the Jobs of its queues")
        }
        (true, false) => {
            tracing::info!("the cluster has no Kueue: the label of a queue means nothing")
        }
    }
}

async fn look(context: &ReconcileContext) -> Result<bool, kube::Error> {
    let served = context.client.list_api_groups().await?;
    Ok(served
        .groups
        .iter()
        .any(|group| group.name == kueue::API_GROUP))
}
