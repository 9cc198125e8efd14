//! The record of a job as it is now, with all live attempts. That in the status is bounded in bytes, and as old as the
//! status.

use std::sync::Arc;

use super::jobs::uid;
use crate::api::{DeadlineJob, JobRecord, Ledger, Pocd};
use crate::context::{Context, validation};
use crate::job::facts;
use crate::job::record::{Input, continued};
use crate::job::view::JobView;

/// The record; that of the status if the job cannot be read or has ended.
pub(super) fn of(context: &Context, job: &Arc<DeadlineJob>) -> Option<JobRecord> {
    let status = job.status.as_ref();
    let old = status.and_then(|status| status.record.as_ref());
    fresh(context, job, old).or_else(|| old.cloned())
}

fn fresh(context: &Context, job: &DeadlineJob, old: Option<&JobRecord>) -> Option<JobRecord> {
    let validated = validation::read(&context.memos, job, context.stores.batch()).ok()?;
    let ledger = Ledger::from_status(job.status.as_ref()).ok()?;
    if ledger.ending.is_some() {
        return None;
    }
    let ticks = context.clock.ticks();
    let pods = context.stores.pods_of(&validated);
    let view = JobView::new(validated, ledger, context.clock.at(ticks), ticks);
    let view = context.glance(view, pods);
    let facts = facts::facts(&view);
    let report = context.board.report(uid(job));
    let pocd = report.as_ref().and_then(|report| report.pocd_after);
    let waits = report.as_ref().is_some_and(|report| report.waiting > 0);
    let waiting = old.and_then(|old| old.waiting.as_ref());
    let input = Input {
        view: &view,
        facts: &facts,
        ledger: &view.ledger,
        notices: &[],
        report: report.as_ref(),
        pocd: view.deadline.and(pocd).map(Pocd::nearest),
        waiting: waiting.map(|it| &*it.reason).filter(|_| waits),
        old,
    };
    Some(continued(input, usize::MAX))
}
