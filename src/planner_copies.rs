//! Copies of the planner's state for readers outside of its passes. The planner makes a copy between two passes, only
//! when a reader asks for one. Without readers it therefore costs nothing.

use std::collections::VecDeque;

use parking_lot::Mutex;
use shed_core::memory::Memory;
use shed_core::policy::Policy;
use shed_core::snapshot::Snapshot;
use tokio::sync::{Notify, oneshot};

/// The planner's state after a pass.
#[derive(Debug, Clone)]
pub struct PlannerCopy {
    /// The facts of the last pass.
    pub snapshot: Snapshot,
    /// The planner's memory after it.
    pub memory: Memory,
    /// The policy in force.
    pub policy: Policy,
}

/// Readers that wait for a copy.
#[derive(Default)]
pub struct CopyRequests {
    waiting: Mutex<VecDeque<oneshot::Sender<PlannerCopy>>>,
    asked: Notify,
}

impl CopyRequests {
    /// A copy, after the pass under way or before the next one; absent if the planner has ended.
    pub async fn copy(&self) -> Option<PlannerCopy> {
        let (sender, copy) = oneshot::channel();
        self.waiting.lock().push_back(sender);
        self.asked.notify_one();
        copy.await.ok()
    }

    /// The planner waits here for the next reader that still wants its copy.
    pub async fn next(&self) -> oneshot::Sender<PlannerCopy> {
        loop {
            let asked = self.asked.notified();
            let next = self.waiting.lock().pop_front();
            match next {
                Some(reader) if reader.is_closed() => {}
                Some(reader) => return reader,
                None => asked.await,
            }
        }
    }
}
