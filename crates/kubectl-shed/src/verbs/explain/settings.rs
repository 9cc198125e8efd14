//! What limits a job's clones and attempts now: its settings, its state, its conditions. Pure.

use shed::api::{self, JobRecord};
use shed_core::plan::RefusalReason;

use super::reasons::{self, Reason, reason};
use crate::model::JobView;
use crate::words;

/// The limits, the strongest first.
pub fn limits(job: &JobView, record: Option<&JobRecord>) -> Vec<Reason> {
    if job.is_finished() {
        return vec![reason(
            format!("the job has finished ({})", job.phase()),
            "",
        )];
    }
    // shed starts no attempt of it.
    if job.watched.is_some() {
        return Vec::new();
    }
    let mut limits = attempts(job, record);
    limits.extend(clones(job));
    limits
}

/// Why attempts do not start. The text of a condition has the remedy.
fn attempts(job: &JobView, record: Option<&JobRecord>) -> Vec<Reason> {
    let mut limits = Vec::new();
    if job.status.phase.is_none() {
        limits.push(reason(
            "no operator has read the job yet",
            "check that shed runs: kubectl -n shed-system get deployment shed",
        ));
    }
    let held = job.condition(api::SUSPENDED);
    let held = held.filter(|held| held.reason == api::reason::RESTORED_WITHOUT_STATUS);
    if let Some(held) = held {
        limits.push(reason(held.message.clone(), ""));
    } else if job.spec.suspend {
        limits.push(reason(
            "spec.suspend is true, so nothing starts",
            "set spec.suspend to false",
        ));
    }
    if let Some(waiting) = record.and_then(|record| record.waiting.as_ref()) {
        let waits = reasons::waiting(&waiting.reason);
        let tasks = words::count(
            waiting.tasks.unsigned_abs() as usize,
            "task waits",
            "tasks wait",
        );
        let name = &waiting.reason;
        limits.push(Reason {
            why: format!("{tasks} for an attempt ({name}): {}", waits.why),
            ..waits
        });
    }
    limits
}

/// Why there are no clones, or no more of them.
fn clones(job: &JobView) -> Vec<Reason> {
    let spec = &job.spec;
    let mut limits = Vec::new();
    if job.status.phase.is_some() && job.deadline().is_none() {
        limits.push(reason(
            "the job has no deadline, so a clone gains nothing",
            "set spec.deadline",
        ));
    }
    if spec.idempotency == "None" {
        limits.push(reasons::refusal(RefusalReason::NotIdempotent));
    }
    match spec.speculation.mode.as_str() {
        "Observe" => limits.push(reasons::refusal(RefusalReason::Observe)),
        "Disabled" => limits.push(reason(
            "spec.speculation.mode is Disabled, so the job gets no clones",
            "set spec.speculation.mode to Enabled",
        )),
        _ => {}
    }
    if spec.speculation.max_clones_per_task == 0 {
        limits.push(reason(
            "spec.speculation.maxClonesPerTask is 0, so the job gets no clones",
            "raise spec.speculation.maxClonesPerTask",
        ));
    }
    if job.condition("ClonesStopped").is_some() {
        limits.push(reasons::refusal(RefusalReason::Stopped));
    }
    let reached = spec
        .target_pocd
        .zip(job.pocd())
        .filter(|(target, pocd)| pocd.value() >= *target);
    if let Some((target, pocd)) = reached {
        limits.push(reason(
            format!(
                "PoCD {pocd} has reached spec.targetPoCD {target}, so shed starts no more clones"
            ),
            "raise spec.targetPoCD",
        ));
    }
    if limits.is_empty() && job.pocd().is_some_and(|pocd| pocd.value() >= 0.99) {
        limits.push(reason(
            "PoCD is so high that a clone would gain less than its price",
            "",
        ));
    }
    limits
}
