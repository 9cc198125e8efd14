//! The limit of active jobs that administrators set for a namespace. Jobs with attempts keep their places; the other
//! places go to unsuspended jobs in the order of submission. This depends on the jobs' objects alone, so it is the same
//! after a restart of the operator.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::ids::Tenant;
use shed_core::snapshot::{AttemptSnapshot, JobPhase, JobSnapshot};

use crate::context::Context;
use crate::plan_slices::JobUid;
use crate::planner::known_jobs::SettingsNowAndBefore;

/// Lets the jobs beyond the limit of their namespace launch nothing. The jobs are in the order of submission, and
/// `changed` has those that the pass looked at. Returns the jobs that begin or cease to wait.
pub(super) fn limit(
    context: &Context,
    settings: &SettingsNowAndBefore,
    jobs: &mut [JobSnapshot],
    changed: &mut [bool],
) -> Vec<JobUid> {
    let SettingsNowAndBefore { now, before } = settings;
    if !now.limits_active_jobs() && !before.limits_active_jobs() {
        return Vec::new();
    }
    let limit_of = |tenant: &Tenant| now.active_jobs_max(&tenant.0);
    let mut left: BTreeMap<Tenant, u32> = BTreeMap::new();
    for job in jobs.iter().filter(|job| has_attempts(job)) {
        if let Some(limit) = limit_of(&job.tenant) {
            take_place(left.entry(job.tenant.clone()).or_insert(limit));
        }
    }
    let mut news = Vec::new();
    for (job, changed) in jobs.iter_mut().zip(changed) {
        let limit = limit_of(&job.tenant).filter(|_| is_candidate(job));
        let exceeded = limit.filter(|&limit| {
            let left = left.entry(job.tenant.clone()).or_insert(limit);
            !take_place(left)
        });
        *changed |= hold(job, exceeded.is_some(), *changed);
        let uid = &job.key.0;
        let is_news = context.job_memories.with(uid, |memory| {
            std::mem::replace(&mut memory.awaits_place_of, exceeded) != exceeded
        });
        news.extend(is_news.then(|| Arc::clone(uid)));
    }
    news
}

/// Takes one of the places that are left, if there is one.
fn take_place(left: &mut u32) -> bool {
    let has_place = *left > 0;
    *left = left.saturating_sub(1);
    has_place
}

fn has_attempts(job: &JobSnapshot) -> bool {
    let mut attempts = job.tasks.iter().flat_map(|task| &task.attempts);
    is_open(job) && attempts.any(AttemptSnapshot::holds_capacity)
}

fn is_candidate(job: &JobSnapshot) -> bool {
    is_open(job) && !has_attempts(job)
}

/// A job that ends or is suspended takes no place.
fn is_open(job: &JobSnapshot) -> bool {
    job.phase == JobPhase::Active && !job.rules.suspend
}

/// Lets the job launch nothing, or no longer. Returns whether that changed the facts. A job that the pass did not look
/// at has no other obstacle.
fn hold(job: &mut JobSnapshot, waits: bool, was_looked_at: bool) -> bool {
    let before = job.obstacles.attempts_max;
    if waits {
        job.obstacles.attempts_max = Some(0);
    } else if !was_looked_at {
        job.obstacles.attempts_max = None;
    }
    job.obstacles.attempts_max != before
}
