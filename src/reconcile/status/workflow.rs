//! The run of a workflow in the status of its stages. Pure.

use crate::api::{DeadlineJobStatus, Pocd, StageOverrun, WorkflowStatus};
use crate::clock;
use crate::reconcile::status::{Input, has_moved};
use crate::workflow_runs::SlowStage;

/// The figures of a run that a new leader does not know yet stay.
pub(super) fn status(input: Input<'_>) -> Option<WorkflowStatus> {
    let (job, old) = (input.job, input.old.workflow.as_ref());
    let Some(of_run) = job.run_deadline(input.ledger) else {
        return old.filter(|_| input.ledger.ending.is_some()).cloned();
    };
    let run = &*job.workflow.as_deref()?.run;
    let old = old.filter(|old| old.run == *run);
    let is_open = input.ledger.ending.is_none();
    let estimate = input.workflow.filter(|_| is_open);
    let figures = estimate.and_then(|estimate| estimate.figures.as_ref());
    let overrun = |it: &SlowStage| StageOverrun {
        stage: it.stage.to_string(),
        seconds: it.by.0 / 1000,
    };
    Some(WorkflowStatus {
        run: run.to_owned(),
        deadline: clock::time(of_run),
        stage_deadline: match estimate {
            Some(estimate) => estimate.stage_deadline.map(clock::time),
            None => old.and_then(|old| old.stage_deadline.clone()),
        },
        pocd: figures
            .and_then(|figures| figures.pocd)
            .map(Pocd::nearest)
            .or(old.and_then(|old| old.pocd)),
        estimated_completion_time: figures
            .and_then(|figures| figures.expected_end)
            .map(clock::time)
            .or(old.and_then(|old| old.estimated_completion_time.clone())),
        overrun: match figures {
            Some(figures) => figures.overrun.as_ref().map(overrun),
            None => old.and_then(|old| old.overrun.clone()),
        },
    })
}

fn pocd(status: &DeadlineJobStatus) -> Option<Pocd> {
    status.workflow.as_ref()?.pocd
}

fn slow_stage(status: &DeadlineJobStatus) -> Option<&str> {
    Some(&status.workflow.as_ref()?.overrun.as_ref()?.stage)
}

/// Whether the figures of the run have moved far enough for a write.
pub(super) fn have_moved(new: &DeadlineJobStatus, old: &DeadlineJobStatus) -> bool {
    has_moved(pocd(new), pocd(old)) || slow_stage(new) != slow_stage(old)
}

/// Restates the figures of the run, which change all the time.
pub(super) fn keep_figures(status: &mut DeadlineJobStatus, old: &DeadlineJobStatus) {
    if let (Some(new), Some(old)) = (&mut status.workflow, &old.workflow) {
        *new = WorkflowStatus {
            run: new.run.clone(),
            deadline: new.deadline.clone(),
            stage_deadline: new.stage_deadline.clone(),
            ..old.clone()
        };
    }
}
