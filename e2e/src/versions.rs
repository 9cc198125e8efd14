//! Every version of a job's status that a watch shows.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use parking_lot::Mutex;
use shed::api::{DeadlineJob, DeadlineJobStatus};
use tokio::task::JoinSet;

/// The statuses of a job since the watch began.
pub struct Versions {
    statuses: Arc<Mutex<Vec<DeadlineJobStatus>>>,
    _task: JoinSet<()>,
}

impl Versions {
    /// Starts to watch.
    pub fn of(api: &Api<DeadlineJob>, name: &str) -> Self {
        let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let events = watcher(api.clone(), only).default_backoff();
        let statuses: Arc<Mutex<Vec<DeadlineJobStatus>>> = Arc::default();
        let seen = Arc::clone(&statuses);
        let _task = JoinSet::from_iter([async move {
            let mut jobs = events.applied_objects().boxed();
            loop {
                // The stream backs off by itself after errors.
                if let Ok(Some(job)) = jobs.try_next().await {
                    let mut seen = seen.lock();
                    seen.extend(job.status);
                }
            }
        }]);
        Self { statuses, _task }
    }

    /// Holds that no version differs from the one before in its record alone.
    pub fn record_caused_no_write(&self) -> Result<()> {
        let seen = self.statuses.lock();
        ensure!(seen.len() > 2, "only {} versions were seen", seen.len());
        for pair in seen.windows(2) {
            let is_alone = pair[0].record != pair[1].record && rest(&pair[0]) == rest(&pair[1]);
            ensure!(
                !is_alone,
                "a write for the record alone: {:?}",
                pair[1].record
            );
        }
        Ok(())
    }
}

/// The status without its record and the number of its write.
fn rest(status: &DeadlineJobStatus) -> DeadlineJobStatus {
    let mut rest = status.clone();
    rest.record = None;
    if let Some(ledger) = &mut rest.ledger {
        ledger.revision = 0;
    }
    rest
}
