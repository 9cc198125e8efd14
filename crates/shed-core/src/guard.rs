//! The guard that both executors put around [`decide`]: it removes invalid facts before it and catches a panic after
//! it. In any case each task still gets its one attempt.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::decide::{Changed, Planner};
use crate::ids::JobKey;
use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::{Order, Policy, Speculation};
use crate::snapshot::{JobSnapshot, Snapshot};
use crate::validate::{Fault, sound, sound_where};

/// The result of one pass.
#[derive(Debug)]
pub struct Passed<'a> {
    /// The facts that the pass decided by and that the plan must be checked against: without the invalid ones.
    pub snapshot: Cow<'a, Snapshot>,
    /// The plan.
    pub plan: Plan,
    /// The invalid facts. The jobs named here get one attempt per task.
    pub faults: Vec<Fault>,
    /// How many of [`policies`] panicked; if all three, the plan is empty.
    pub panics: u32,
}

/// Validates, decides by this function, and falls back: for executors that look at every job, and for tests of panics.
/// Returns the memory for the next pass too.
pub fn decide_guarded_by<'a>(
    snapshot: &'a Snapshot,
    memory: Memory,
    policy: &Policy,
    mut decide: impl FnMut(&Snapshot, Memory, &Policy) -> (Plan, Memory),
) -> (Passed<'a>, Memory) {
    let (snapshot, faults) = sound(snapshot);
    // The memory is a copy.
    let (decided, panics) = tried(policy, |policy| decide(&snapshot, memory.clone(), policy));
    let (plan, memory) = decided.unwrap_or_else(|| (Plan::default(), memory));
    let passed = Passed {
        snapshot,
        plan,
        faults,
        panics,
    };
    (passed, memory)
}

/// Decides by the first of [`policies`] that does not panic, and counts the panics. No state that a panic could leave
/// incomplete may be used afterwards.
fn tried<T>(policy: &Policy, mut decide: impl FnMut(&Policy) -> T) -> (Option<T>, u32) {
    for (policy, panics) in policies(policy).iter().zip(0..) {
        if let Ok(decided) = catch_unwind(AssertUnwindSafe(|| decide(policy))) {
            return (Some(decided), panics);
        }
    }
    (None, 3)
}

/// A [`Planner`] behind the same guard, for executors that tell it what has changed.
#[derive(Debug, Default)]
pub struct GuardedPlanner {
    planner: Planner,
    /// Jobs with invalid facts in the last pass.
    faulty: BTreeSet<JobKey>,
    /// Whether a policy panicked in the last pass.
    has_panicked: bool,
    /// See [`GuardedPlanner::with_end_ranges`].
    reports_ranges: bool,
}

impl GuardedPlanner {
    /// A planner whose reports have the likely ends of jobs, for executors that show them to people.
    pub fn with_end_ranges() -> Self {
        Self {
            reports_ranges: true,
            ..Self::default()
        }
    }

    /// One pass. It looks at every job after a pass that panicked, and while any facts are invalid.
    pub fn decide<'a>(
        &mut self,
        snapshot: &'a Snapshot,
        memory: &mut Memory,
        policy: &Policy,
        changed: Changed<'_>,
    ) -> Passed<'a> {
        // A panic leaves a planner that knows no job, and the memory as it was.
        self.pass(snapshot, changed, |planner, snapshot, changed| {
            tried(policy, |policy| {
                planner.decide(snapshot, memory, policy, changed)
            })
        })
    }

    /// The same pass again, in which this many of [`policies`] panicked.
    pub fn decide_again(
        &mut self,
        snapshot: &Snapshot,
        memory: &mut Memory,
        policy: &Policy,
        changed: Changed<'_>,
        panics: u32,
    ) -> Plan {
        let passed = self.pass(snapshot, changed, |planner, snapshot, changed| {
            if panics > 0 {
                *planner = Planner::default();
            }
            let policies = policies(policy);
            let policy = policies.get(panics as usize);
            let plan = policy.map(|policy| planner.decide(snapshot, memory, policy, changed));
            (plan, panics)
        });
        passed.plan
    }

    fn pass<'a>(
        &mut self,
        snapshot: &'a Snapshot,
        changed: Changed<'_>,
        decide: impl FnOnce(&mut Planner, &Snapshot, Changed<'_>) -> (Option<Plan>, u32),
    ) -> Passed<'a> {
        let changed = match self.has_panicked {
            false => changed,
            true => Changed::All,
        };
        let faulty = &self.faulty;
        let is_checked = |at, job: &JobSnapshot| changed.has(at) || faulty.contains(&job.key);
        let (snapshot, faults) = sound_where(snapshot, is_checked);
        self.faulty = faults
            .iter()
            .filter_map(|fault| fault.job.clone())
            .collect();
        let changed = match faults.is_empty() {
            true => changed,
            // Without the invalid facts the positions are other ones.
            false => Changed::All,
        };
        self.planner.reports_ranges = self.reports_ranges;
        let (plan, panics) = decide(&mut self.planner, &snapshot, changed);
        self.has_panicked = panics > 0;
        Passed {
            snapshot,
            plan: plan.unwrap_or_default(),
            faults,
            panics,
        }
    }

    /// The planner.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }
}

/// The policies that are tried in turn while each panics: the policy, the same without clones, and that with first
/// attempts by submission.
pub fn policies(policy: &Policy) -> [Policy; 3] {
    let plain = Policy {
        speculation: Speculation::none(),
        ..policy.clone()
    };
    let plainest = Policy {
        order: Order::Fifo,
        ..plain.clone()
    };
    [policy.clone(), plain, plainest]
}

#[cfg(test)]
mod tests;
