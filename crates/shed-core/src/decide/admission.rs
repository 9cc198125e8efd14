//! First attempts and retries: who is launched when capacity is short, which clones make way,
//! and who waits beyond capacity so that the cluster may grow.

use crate::decide::Pass;
use crate::decide::estimates::resume_point;
use crate::decide::evict::{Evictions, Reserve};
use crate::decide::job::JobState;
use crate::ids::TaskIndex;
use crate::plan::{Launch, LaunchReason};
use crate::policy::{Order, Policy};
use crate::snapshot::{AttemptKind, JobSnapshot, NodeIndex};

/// Launches what fits, in the policy's order, and makes room for what does not. A job that
/// does not fit holds up nobody behind it.
pub(super) fn admit(pass: &mut Pass<'_>, policy: &Policy) {
    let mut evictions = Evictions::new(pass);
    let mut surge_left = policy.surge_max as usize;
    // Those that wait as pods already come first: their room is reserved before anything new.
    for position in std::mem::take(&mut pass.capacity.surging) {
        surge_left = surge_left.saturating_sub(1);
        Reserve::new(position).one(pass, &mut evictions);
    }
    for position in ranked(pass, policy.order) {
        admit_job(pass, position, &mut evictions, &mut surge_left);
    }
}

/// Positions of the jobs that may launch, the first to be served first.
fn ranked(pass: &Pass<'_>, order: Order) -> Vec<usize> {
    let now = pass.snapshot.now;
    let mut ranks = Vec::new();
    for (position, state) in pass.jobs.iter().enumerate() {
        if state.may_launch(now) {
            let (is_hopeless, urgency) = match order {
                Order::Fifo => (false, 0),
                Order::EarliestDeadline => (false, state.job.deadline.map_or(i64::MAX, |d| d.0)),
                Order::LeastSlack => urgency(pass, position, state),
            };
            let key = (is_hopeless, urgency, state.job.submitted, &state.job.key);
            ranks.push((key, position));
        }
    }
    ranks.sort();
    ranks.into_iter().map(|(_, position)| position).collect()
}

/// Whether the job can't make it, and its slack in milliseconds: the time to its deadline less
/// the work that is left on as many nodes as it could get. Without any known time the work is
/// taken as none, so that such jobs are served by deadline.
fn urgency(pass: &Pass<'_>, position: usize, state: &JobState<'_>) -> (bool, i64) {
    let Some(slack) = state.estimate.slack else {
        return (false, i64::MAX);
    };
    let waiting = state.ready.len() as f64 + f64::from(state.untouched);
    let mean_run = state.estimate.mean_run.unwrap_or(0.0);
    let running = state.estimate.tasks.iter();
    let (mut work, mut longest) = (waiting * mean_run, 0.0_f64);
    for remaining in running.filter_map(|task| task.remaining()) {
        if remaining.is_finite() {
            work += remaining;
            longest = longest.max(remaining);
        }
    }
    if waiting > 0.0 {
        longest = longest.max(mean_run);
    }
    let room = pass.capacity.times_usable(position);
    let width = state.job.rules.parallelism.min(room).max(1);
    let slack = slack - longest.max(work / f64::from(width));
    (slack < 0.0, (slack * 1000.0) as i64)
}

fn admit_job(
    pass: &mut Pass<'_>,
    position: usize,
    evictions: &mut Evictions,
    surge_left: &mut usize,
) {
    let Some(state) = pass.jobs.get(position) else {
        return;
    };
    let job = state.job;
    let ready = state.ready.clone();
    let total = (ready.len() as u32).saturating_add(state.untouched);
    let slots = job
        .rules
        .parallelism
        .saturating_sub(state.active)
        .min(total);
    let mut candidates = ready.into_iter().chain(Untouched::new(job));
    let mut launched = 0;
    while launched < slots {
        let Some(node) = room_for_one(pass, position) else {
            break;
        };
        let Some(index) = candidates.next() else {
            break;
        };
        launch_first(pass, position, index, Some(node));
        launched += 1;
    }
    let mut reserve = Reserve::new(position);
    let mut reserved = 0;
    while launched + reserved < slots {
        if reserve.one(pass, evictions) {
            reserved += 1;
            continue;
        }
        // Only a pod that no node can take makes an autoscaler act; one that λ alone keeps
        // out would be run at once.
        if *surge_left == 0 || pass.find_node(position, &[]).is_some() {
            break;
        }
        let Some(index) = candidates.next() else {
            break;
        };
        launch_first(pass, position, index, None);
        launched += 1;
        *surge_left -= 1;
    }
    if let Some(state) = pass.jobs.get_mut(position) {
        state.admitted = launched;
        state.waiting = total - launched;
    }
}

fn room_for_one(pass: &mut Pass<'_>, position: usize) -> Option<NodeIndex> {
    let demand = pass.capacity.demands.get(position)?;
    let fits =
        pass.capacity.room.fits_total(demand) && pass.capacity.room_after_kills.fits_total(demand);
    if fits {
        pass.find_node(position, &[])
    } else {
        None
    }
}

/// Launches a task's first attempt or retry, beyond capacity if there is no node for it.
fn launch_first(pass: &mut Pass<'_>, position: usize, index: TaskIndex, node: Option<NodeIndex>) {
    let Some(job) = pass.jobs.get(position).map(|state| state.job) else {
        return;
    };
    let task = job.task(index);
    let kind = if task.is_some() {
        AttemptKind::Retry
    } else {
        AttemptKind::Original
    };
    let launch = Launch {
        task: index,
        kind,
        resume: task.and_then(|task| resume_point(job, task)).cloned(),
        // First attempts are placed by the cluster's scheduler alone, so that a job that only
        // observes runs as it would without shed.
        avoid: match kind {
            AttemptKind::Original => Vec::new(),
            AttemptKind::Retry | AttemptKind::Clone => pass.avoid(&[]),
        },
        surge: node.is_none(),
        reason: LaunchReason::Admitted,
    };
    pass.launch(position, node, launch);
    if let (Some(state), Some(node)) = (pass.jobs.get_mut(position), node) {
        state.started.push((index, node));
    }
}

/// The tasks that nothing was ever launched for, ascending, in one walk over the indexes.
struct Untouched<'a> {
    job: &'a JobSnapshot,
    next: u32,
    touched: usize,
}

impl<'a> Untouched<'a> {
    fn new(job: &'a JobSnapshot) -> Self {
        Self {
            job,
            next: 0,
            touched: 0,
        }
    }
}

impl Iterator for Untouched<'_> {
    type Item = TaskIndex;

    fn next(&mut self) -> Option<TaskIndex> {
        while self.next < self.job.rules.completions {
            let index = TaskIndex(self.next);
            self.next += 1;
            let touched = self.job.tasks.get(self.touched);
            if touched.is_some_and(|task| task.index == index) {
                self.touched += 1;
            } else if !self.job.has_ended(index) {
                return Some(index);
            }
        }
        None
    }
}
