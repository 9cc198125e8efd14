//! Where the planner leaves each job's slice of the plan, and the job's reconciler picks it up.
//! The planner does not plan again before every slice is carried out or taken back, so that no
//! room is given away twice.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shed_core::plan::{Action, JobReport};
use tokio::sync::Notify;

/// A job's uid.
pub type JobUid = Arc<str>;

/// Slices that wait or are under way, and what the last pass found out.
#[derive(Default)]
pub struct Board {
    inner: Mutex<Inner>,
    finished: Notify,
}

#[derive(Default)]
struct Inner {
    waiting: HashMap<JobUid, Vec<Action>>,
    taken: HashSet<JobUid>,
    reports: HashMap<JobUid, JobReport>,
    copies: HashMap<JobUid, u32>,
}

impl Board {
    /// Puts up the slices and the reports of a pass.
    pub fn publish(&self, slices: HashMap<JobUid, Vec<Action>>, reports: Vec<JobReport>) {
        let mut inner = self.lock();
        inner.waiting = slices;
        inner.reports = reports
            .into_iter()
            .map(|report| (Arc::clone(&report.key.0), report))
            .collect();
    }

    /// Leaves what is to be durable of the planner's memory: attempts per task, by job.
    pub fn remember(&self, copies: HashMap<JobUid, u32>) {
        self.lock().copies = copies;
    }

    /// How many attempts per task the policy has decided on for the job.
    #[must_use]
    pub fn copies(&self, job: &str) -> Option<u32> {
        self.lock().copies.get(job).copied()
    }

    /// A job's slice, now under way; empty if there is none.
    #[must_use]
    pub fn take(&self, job: &JobUid) -> Vec<Action> {
        let mut inner = self.lock();
        let Some(slice) = inner.waiting.remove(job) else {
            return Vec::new();
        };
        inner.taken.insert(Arc::clone(job));
        slice
    }

    /// The job's slice is carried out, or given up.
    pub fn finish(&self, job: &JobUid) {
        if self.lock().taken.remove(job) {
            self.finished.notify_one();
        }
    }

    /// Drops all that is there for a job: its slice, carried out half or not at all, and its report.
    pub fn abandon(&self, job: &JobUid) {
        let mut inner = self.lock();
        inner.reports.remove(job);
        let waited = inner.waiting.remove(job).is_some();
        if inner.taken.remove(job) || waited {
            self.finished.notify_one();
        }
    }

    /// What the last pass found out about a job.
    #[must_use]
    pub fn report(&self, job: &str) -> Option<JobReport> {
        self.lock().reports.get(job).cloned()
    }

    /// Waits until no slice is left. Slices that nobody takes within `patience` are taken back;
    /// one that is under way is waited for, because its launches may already be recorded.
    pub async fn drained(&self, patience: Duration) {
        let taken_back = tokio::time::sleep(patience);
        tokio::pin!(taken_back);
        loop {
            {
                let inner = self.lock();
                if inner.waiting.is_empty() && inner.taken.is_empty() {
                    return;
                }
            }
            tokio::select! {
                () = self.finished.notified() => {}
                () = &mut taken_back, if !taken_back.is_elapsed() => self.lock().waiting.clear(),
            }
        }
    }

    // A panic while the lock was held leaves maps that the next pass replaces.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(job: &JobUid) -> HashMap<JobUid, Vec<Action>> {
        HashMap::from([(Arc::clone(job), vec![])])
    }

    #[tokio::test]
    async fn the_planner_waits_for_a_slice_that_is_under_way() {
        let (board, job): (_, JobUid) = (Arc::new(Board::default()), Arc::from("j"));
        board.publish(one(&job), vec![]);
        let _ = board.take(&job);
        let waiting = {
            let board = Arc::clone(&board);
            tokio::spawn(async move { board.drained(Duration::ZERO).await })
        };
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        board.finish(&job);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_slice_that_nobody_takes_is_taken_back() {
        let (board, job): (_, JobUid) = (Board::default(), Arc::from("j"));
        board.publish(one(&job), vec![]);
        board.drained(Duration::ZERO).await;
        assert!(board.lock().waiting.is_empty());
    }
}
