//! The ways in which a job ends, and the rules that end it before all its tasks have ended: those of batch/v1 Job.

use serde::{Deserialize, Serialize};

use crate::ids::TaskIndex;
use crate::index_set::IndexSet;

/// How a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conclusion {
    /// Every task has a winner.
    Complete,
    /// The tasks that have a winner satisfy a rule of `successPolicy`.
    SuccessPolicy,
    /// `onMiss: Fail` and the deadline passed with tasks unfinished.
    DeadlineExceeded,
    /// The deadline had passed before anything was launched.
    DeadlineInPast,
    /// `activeDeadlineSeconds` passed with tasks unfinished.
    TimeLimit,
    /// Every task ended, some failed for good.
    FailedIndexes,
    /// More tasks failed for good than `maxFailedIndexes` allows.
    MaxFailedIndexes,
    /// All tasks together failed more often than `backoffLimit` allows.
    BackoffLimit,
    /// An attempt failed in a way for which `podFailurePolicy` fails the job.
    PodFailurePolicy,
}

impl Conclusion {
    /// Whether the job achieved its user's goal.
    pub fn is_success(self) -> bool {
        match self {
            Self::Complete | Self::SuccessPolicy => true,
            Self::DeadlineExceeded
            | Self::DeadlineInPast
            | Self::TimeLimit
            | Self::FailedIndexes
            | Self::MaxFailedIndexes
            | Self::BackoffLimit
            | Self::PodFailurePolicy => false,
        }
    }
}

/// The rules that end a job before all its tasks have ended; empty unless its user sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRules {
    /// Failures that all tasks together may have (`backoffLimit`).
    pub backoff_limit: Option<u32>,
    /// Tasks that may fail for good (`maxFailedIndexes`).
    pub failed_tasks_max: Option<u32>,
    /// The job has succeeded once one of these is met (`successPolicy`).
    pub success: Vec<SuccessRule>,
}

/// Tasks whose success suffices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessRule {
    /// The indexes that count; absent: all.
    pub indexes: Option<IndexSet>,
    /// How many of them must have a winner; absent: each.
    pub count: Option<u32>,
}

impl SuccessRule {
    /// Whether these winners suffice: those recorded and those found now, without duplicates.
    pub fn is_met(&self, done: &IndexSet, found: &[TaskIndex]) -> bool {
        let counts = |index: &&TaskIndex| {
            self.indexes
                .as_ref()
                .is_none_or(|set| set.contains(**index))
        };
        let recorded = match &self.indexes {
            Some(indexes) => indexes.count_common(done),
            None => done.len(),
        };
        let succeeded = recorded as usize + found.iter().filter(counts).count();
        let all = self
            .indexes
            .as_ref()
            .map_or(usize::MAX, |set| set.len() as usize);
        succeeded >= self.count.map_or(all, |count| count as usize)
    }
}
