//! The main cause of a job's risk.
//!
//! ln PoCD is a sum over tasks, so each task's share of the risk is known: −ln of its PoCD. The tasks are grouped by
//! cause, and the cause with the largest sum is reported. That takes one logarithm per task, and only of jobs that are
//! looked at and whose PoCD is not near 1.

use crate::estimate::pocd::ln_task_pocd;
use crate::ids::TaskIndex;
use crate::risk::{Risk, RiskCause};
use crate::round::estimates::TaskEstimate;
use crate::round::job::JobView;
use crate::snapshot::{NodeIndex, Snapshot};

/// The risk of jobs with a higher PoCD is not reported.
const POCD_SAFE: f64 = 0.99;

/// The cost of a task that cannot be in time: finite, so that the number of such tasks counts.
const COST_MAX: f64 = 50.0;

/// An attempt is silent if it has run for this share of the usual time of a task without a report.
const SILENT_SHARE: f64 = 0.25;

/// The tasks with one cause.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// The sum of −ln of their PoCDs.
    cost: f64,
    /// The task with the largest share of it, and that share.
    worst: Option<(TaskIndex, f64)>,
}

impl Group {
    fn add(&mut self, task: TaskIndex, cost: f64) {
        self.cost += cost;
        if self.worst.is_none_or(|(_, worst)| worst < cost) {
            self.worst = Some((task, cost));
        }
    }
}

/// The cost of an event with this ln of its probability.
fn cost(ln_probability: f64, limit: f64) -> f64 {
    // A sum of many tiny terms may be above 0 by rounding.
    match -ln_probability {
        cost if cost <= limit => cost.max(0.0),
        _ => limit,
    }
}

impl JobView<'_> {
    /// The main cause of the job's risk, given its PoCD without the plan's clones.
    pub(crate) fn risk(&self, snapshot: &Snapshot, pocd: Option<f64>) -> Option<Risk> {
        if !self.is_looked_at() || pocd.is_none_or(|pocd| pocd >= POCD_SAFE) {
            return None;
        }
        if let Some(task) = self.job.failed.iter().next() {
            return Some(self.risk_of(RiskCause::Failed, Some(task), snapshot));
        }
        let (cause, group) = self.main_cause()?;
        let task = group.worst.map(|(task, _)| task);
        Some(self.risk_of(cause, task, snapshot))
    }

    fn main_cause(&self) -> Option<(RiskCause, Group)> {
        let slack = self.estimate.slack?;
        let [mut waiting, mut failed, mut silent, mut running] = [Group::default(); 4];
        let without_attempt = if self.draft.waiting > 0 {
            &mut waiting
        } else if self.any_retry() {
            &mut failed
        } else {
            // This plan starts them all.
            &mut running
        };
        without_attempt.cost = self.cost_without_attempts(slack)?;
        for task in &self.estimate.tasks {
            let group = if self.failures(task.index) > 0 {
                &mut failed
            } else if self.job.reports_progress && self.is_silent(task) {
                &mut silent
            } else {
                &mut running
            };
            let ln_pocd = ln_task_pocd(self.ln_miss_kept(task));
            group.add(task.index, cost(ln_pocd, COST_MAX));
        }
        let [mut straggler, mut slow] = [Group::default(); 2];
        match self.has_stragglers(&running) {
            true => straggler = running,
            false => slow = running,
        }
        let groups = [waiting, straggler, failed, silent, slow];
        let of_causes = RiskCause::WEIGHED.into_iter().zip(groups);
        // Of equal maxima `max_by` takes the last one.
        of_causes
            .rev()
            .max_by(|(_, a), (_, b)| a.cost.total_cmp(&b.cost))
    }

    fn cost_without_attempts(&self, slack: f64) -> Option<f64> {
        let distribution = self.estimate.distribution.as_ref()?;
        let touched = self.ready.len().saturating_add(self.held_back.len());
        let tasks = u32::try_from(touched).unwrap_or(u32::MAX);
        let tasks = tasks.saturating_add(self.untouched);
        let ln_pocd = self.ln_pocd_without_attempts(self.launch_time(), slack, distribution);
        Some(cost(ln_pocd, COST_MAX * f64::from(tasks)))
    }

    /// Whether the risk of these running tasks is that of a few: at most half of the job's tasks are late, or, if none
    /// is, one task has more than half of the risk.
    fn has_stragglers(&self, running: &Group) -> bool {
        let completions = self.job.rules.completions as usize;
        match self.stragglers.len() {
            0 => {
                let worst = running.worst.map_or(0.0, |(_, cost)| cost);
                completions > 1 && 2.0 * worst > running.cost
            }
            late => 2 * late <= completions,
        }
    }

    fn is_silent(&self, task: &TaskEstimate) -> bool {
        let usual = self.estimate.mean_run.unwrap_or(f64::INFINITY);
        task.attempts
            .iter()
            .all(|attempt| !attempt.has_progress && attempt.age > SILENT_SHARE * usual)
    }

    /// Whether a task without an attempt has failed before.
    fn any_retry(&self) -> bool {
        let mut touched = self.ready.iter().chain(&self.held_back);
        touched.any(|&task| self.failures(task) > 0)
    }

    fn failures(&self, task: TaskIndex) -> u32 {
        self.job.task(task).map_or(0, |task| task.failures)
    }

    fn risk_of(&self, cause: RiskCause, task: Option<TaskIndex>, snapshot: &Snapshot) -> Risk {
        let estimate = task.and_then(|task| self.estimate.running(task));
        let node = estimate.and_then(best_node);
        let name = node.and_then(|node| snapshot.nodes.get(node.0));
        Risk {
            cause,
            task,
            node: name.map(|node| node.name.clone()),
            failures: task.map_or(0, |task| self.failures(task)),
        }
    }
}

/// The node of the attempt that is expected to end first.
fn best_node(task: &TaskEstimate) -> Option<NodeIndex> {
    let first = task.attempts.first();
    task.kept().or(first).and_then(|attempt| attempt.node)
}
