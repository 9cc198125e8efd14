//! Whether a plan lends capacity that a tenant below its share waits for.

use std::collections::BTreeMap;

use crate::capacity::{Capacity, Holdings};
use crate::ids::{JobKey, Tenant};
use crate::plan::{JobReport, Launch, Move, Plan, TenantShare};
use crate::plan_check::{Rule, Violation};
use crate::snapshot::{AttemptKind, JobSnapshot, KillKind, Snapshot};

/// Adds a violation for each tenant that holds more than its share and gets attempts, although each of these could have
/// been a waiting attempt of a tenant below its share: one that requests no more and may use the same nodes.
///
/// Evictions free capacity in the midst of a pass. Attempts that did not fit before may fit then, so that a plan with
/// evictions is not judged.
pub(super) fn check(
    snapshot: &Snapshot,
    plan: &Plan,
    capacity: &Capacity,
    violations: &mut Vec<Violation>,
) {
    let evicts = |action: &Move| matches!(action, Move::Kill(kill) if kill.kind == KillKind::Evict);
    let shares = &plan.report.shares;
    let lends = shares.iter().any(|share| share.lent > 0.0);
    if !lends || plan.actions.iter().any(|planned| evicts(&planned.action)) {
        return;
    }
    let launches = Launches::of(snapshot, plan);
    let waiting: Vec<&JobSnapshot> = launches.waiting(snapshot, plan, capacity).collect();
    for share in shares.iter().filter(|share| share.lent > 0.0) {
        let Some(borrowed) = launches.of_tenant.get(&share.tenant) else {
            continue;
        };
        let wronged = waiting.iter().find(|job| {
            let is_other = job.tenant != share.tenant;
            is_other && borrowed.iter().all(|other| could_have(job, other))
        });
        if let (Some(wronged), Some(job)) = (wronged, borrowed.last()) {
            violations.push(Violation {
                job: job.key.clone(),
                rule: Rule::Share,
                message: format!("{} waits for a slot of its tenant's share", wronged.key),
            });
        }
    }
}

/// Whether an attempt of one job would fit wherever one of the other job does.
fn could_have(job: &JobSnapshot, other: &JobSnapshot) -> bool {
    let mut nodes = other.eligible_nodes.iter();
    let mut amounts = job.demand.iter();
    amounts.all(|(name, amount)| amount <= other.demand.get(name).max(0))
        && (job.eligible_nodes == other.eligible_nodes
            || nodes.all(|node| job.eligible_nodes.binary_search(node).is_ok()))
}

/// The launches of a plan within capacity.
struct Launches<'a> {
    /// The jobs that get attempts, by tenant.
    of_tenant: BTreeMap<&'a Tenant, Vec<&'a JobSnapshot>>,
    /// The numbers of all attempts and of first attempts and retries, by job.
    counts: BTreeMap<&'a JobKey, [u32; 2]>,
}

impl<'a> Launches<'a> {
    fn of(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        let jobs: BTreeMap<&JobKey, &JobSnapshot> =
            snapshot.jobs.iter().map(|job| (&job.key, job)).collect();
        let mut launches = Self {
            of_tenant: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        for planned in &plan.actions {
            let Move::Launch(Launch { kind, surge, .. }) = &planned.action else {
                continue;
            };
            // Jobs of a quota outside shed borrow nothing.
            let job = jobs.get(&planned.job).filter(|job| job.admitted.is_none());
            let Some(job) = job else {
                continue;
            };
            let [all, firsts] = launches.counts.entry(&job.key).or_default();
            *all += 1;
            *firsts += u32::from(*kind != AttemptKind::Clone);
            if !surge {
                launches.of_tenant.entry(&job.tenant).or_default().push(job);
            }
        }
        launches
    }

    /// The jobs with a waiting attempt that their tenant's share would allow.
    fn waiting<'s>(
        &'s self,
        snapshot: &'a Snapshot,
        plan: &'s Plan,
        capacity: &'s Capacity,
    ) -> impl Iterator<Item = &'a JobSnapshot> + 's
    where
        'a: 's,
    {
        let shares = plan.report.shares.iter();
        let shares: BTreeMap<&Tenant, &TenantShare> =
            shares.map(|share| (&share.tenant, share)).collect();
        let jobs = snapshot.jobs.iter().enumerate().zip(&plan.report.jobs);
        jobs.filter_map(move |((at, job), report)| {
            let share = shares.get(&job.tenant)?;
            let is_within = share.held + capacity.dominant_share(at) <= share.entitled;
            (is_within && self.waits(job, report, capacity)).then_some(job)
        })
    }

    /// Whether one more attempt of the job could be launched if there were capacity.
    fn waits(&self, job: &JobSnapshot, report: &JobReport, capacity: &Capacity) -> bool {
        let is_outside = job.admitted.is_some() || job.obstacles.no_node;
        if report.waiting == 0 || is_outside {
            return false;
        }
        let [all, firsts] = self.counts.get(&job.key).copied().unwrap_or_default();
        let held = Holdings::of(job, &capacity.unusable);
        let existing = (held.existing as u32).saturating_add(all);
        let most = job.obstacles.attempts_max.unwrap_or(u32::MAX);
        let active = job.tasks.iter().filter(|task| !task.attempts.is_empty());
        let active = (active.count() as u32).saturating_add(firsts);
        held.unplaceable == 0 && existing < most && active < job.rules.parallelism
    }
}
