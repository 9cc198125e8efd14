//! Every reconcile runs in a task of its own, with a time limit. A panic or an overrun ends only
//! that task, and the job is quarantined. Other jobs are not affected.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::Instrument;

use crate::api::DeadlineJob;
use crate::quarantine::Crash;
use crate::watchdog::Watch;

/// A reconcile that takes longer is cut off. The longest that are in order create thousands of pods,
/// 16 at a time: the slowest apiserver measured, on two loaded cores, takes 40 pods in a second, so
/// 24 000 of them fit. One call that the apiserver refuses as overloaded is repeated by the client
/// for up to 8 minutes; that fits too, so that an apiserver in trouble does not quarantine jobs.
pub const PASS_MAX: Duration = Duration::from_secs(600);

/// Runs a reconcile to its end, or cuts it off. It ends with this future, so that nothing of a term
/// outlives it.
pub async fn run<T: Send + 'static>(
    watch: &Watch,
    job: Option<Arc<DeadlineJob>>,
    reconcile: impl Future<Output = T> + Send + 'static,
) -> Result<T, Crash> {
    let mut task = JoinSet::new();
    let reconcile = watch.clone().over(job, reconcile);
    task.spawn(reconcile.in_current_span());
    let Ok(ended) = timeout(PASS_MAX, task.join_next()).await else {
        task.shutdown().await;
        return Err(Crash::overran(PASS_MAX));
    };
    match ended {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) if error.is_panic() => Err(Crash::panicked(error.into_panic().as_ref())),
        // Only a runtime that is ending cancels it.
        _ => std::future::pending().await,
    }
}
