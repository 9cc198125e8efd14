//! The recording of the planner's input and decisions. It never blocks its callers. Records that
//! cannot be written are counted and reported.

use std::collections::HashMap;
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use shed_core::ids::{AttemptNumber, JobKey, TaskIndex};
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::Policy;
use shed_core::snapshot::{JobSnapshot, Snapshot};
use shed_core::time::Instant;
use shed_record::schema::{Decided, Ended};
use shed_record::{Basis, Fault, Pass, Recorder};

use crate::api::DeadlineJob;
use crate::args::OperatorArgs;
use crate::context::Context;
use crate::job::notice::Notice;
use crate::metrics::Metrics;
use crate::plan_slices::JobUid;

/// Starts the recording, if one is wanted.
pub fn start(
    args: &OperatorArgs,
    policy: &Policy,
    metrics: &Arc<Metrics>,
    now: Instant,
) -> std::io::Result<Option<Arc<Recorder>>> {
    let Some(folder) = &args.record else {
        return Ok(None);
    };
    let bytes_max = u64::from(args.record_max_mib) << 20;
    let metrics = Arc::clone(metrics);
    let on_fault = move |fault| match fault {
        Fault::Lost => {
            metrics.recording_lost.inc();
        }
        Fault::Write(error) => tracing::warn!(%error, "a part of the recording is lost"),
    };
    let recorder = Recorder::start(folder, bytes_max, policy, now, on_fault)?;
    Ok(Some(Arc::new(recorder)))
}

/// Moves of a pass, before any slice of it was refused.
pub struct Decision {
    /// What the pass was decided from, apart from the snapshot.
    pub basis: Basis,
    /// The memory before the pass, unless it is the one that the pass before left.
    pub restated: Option<Memory>,
    /// The plan.
    pub plan: Plan,
    /// How the pass decided.
    pub decided: Decided,
}

/// What the next pass must be decided from, so that its recording can be replayed. `changed` has the jobs that may have
/// changed since the pass before, by position; absent if all of them may have.
pub fn basis(recorder: &Recorder, changed: Option<&[bool]>, memory: &Memory) -> Basis {
    let needs_full_pass = recorder.needs_full_pass();
    match changed.filter(|_| !needs_full_pass) {
        None => Basis::Memory(Box::new(memory.clone())),
        Some(changed) => {
            let positions = changed.iter().enumerate().filter(|(_, changed)| **changed);
            Basis::PassBefore(positions.map(|(at, _)| at).collect())
        }
    }
}

/// Records a pass.
pub fn record_pass(
    context: &Context,
    snapshot: &Snapshot,
    references: &HashMap<JobUid, ObjectRef<DeadlineJob>>,
    decision: Option<Decision>,
) {
    let (Some(recording), Some(decision)) = (&context.recording, decision) else {
        return;
    };
    let names = references.iter().map(|(uid, reference)| {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let name = format!("{namespace}/{}", reference.name);
        (JobKey(Arc::clone(uid)), name)
    });
    recording.pass(Pass {
        snapshot: snapshot.clone(),
        basis: decision.basis,
        restated: decision.restated,
        plan: decision.plan,
        decided: decision.decided,
        names: names.collect(),
    });
}

/// Records the attempts that a step has counted, once that is durable.
pub fn record_ends(context: &Context, facts: &JobSnapshot, notices: &[Notice]) {
    let Some(recording) = &context.recording else {
        return;
    };
    for notice in notices {
        let (&(task, number), outcome) = match notice {
            Notice::Won { id, .. } => (id, None),
            Notice::Counted { id, outcome, .. } => (id, Some(*outcome)),
            _ => continue,
        };
        let ended = Ended::of(facts, TaskIndex(task), AttemptNumber(number), outcome);
        if let Some(ended) = ended {
            recording.ended(ended);
        }
    }
}
