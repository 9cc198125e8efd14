//! Texts of the events on Jobs that shed only watches. Pure.

use kube::runtime::events::EventType;
use shed_core::time::Instant;

use super::View;
use crate::api::{self, Pocd, reason};
use crate::clock;
use crate::cluster::watch_only::RunEnd;
use crate::completion_history::RUNS_MIN;
use crate::reconcile::events::Words;
use crate::validate::DeadlineRule;

pub(super) fn invalid(fault: &str) -> Words {
    let note = format!("{fault}; until then shed watches the Job without its annotations");
    (EventType::Warning, reason::INVALID_ANNOTATION, note)
}

pub(super) fn at_risk(view: &View<'_>, pocd: f64, begin: f64) -> Words {
    let mut note = format!("PoCD is {}, below {begin}", Pocd::nearest(pocd));
    if let (Some(end), Some(deadline)) = (view.expected_end(), view.deadline) {
        let (end, deadline) = (clock::rfc3339(end), clock::rfc3339(deadline));
        note += &format!(": the expected end is {end}, and the deadline is {deadline}");
    }
    note += &format!(
        "; estimated from {}; shed only watches this Job, and does nothing about the risk",
        basis(view)
    );
    (EventType::Warning, api::DEADLINE_AT_RISK, note)
}

pub(super) fn on_track(pocd: f64) -> Words {
    let note = format!("PoCD is {}, which is high enough", Pocd::nearest(pocd));
    (EventType::Normal, reason::ON_TRACK, note)
}

pub(super) fn missed(view: &View<'_>) -> Words {
    let run = view.job.run;
    let deadline = view.deadline.map(clock::rfc3339).unwrap_or_default();
    let note = format!(
        "the deadline {deadline} passed: {} of {} tasks are complete, and the Job continues, because shed only watches it",
        run.done, run.tasks
    );
    (EventType::Warning, reason::DEADLINE_MISSED, note)
}

/// The end of a Job that was at risk or late.
pub(super) fn ended(end: RunEnd, deadline: Instant) -> Words {
    let how = if end.is_complete {
        "completed"
    } else {
        "failed"
    };
    let order = match end.at > deadline {
        true => "after",
        false => "before",
    };
    let (at, deadline) = (clock::rfc3339(end.at), clock::rfc3339(deadline));
    let note = format!("the Job {how} at {at}, {order} its deadline {deadline}");
    (EventType::Normal, reason::JOB_ENDED, note)
}

/// Why the deadline or PoCD is unknown, and how it becomes known.
pub(super) fn unknown(view: &View<'_>) -> Words {
    let class = view.job.class.as_deref();
    let terms = view.job.terms.as_ref().ok();
    let is_history = terms.is_some_and(|terms| matches!(terms.deadline, DeadlineRule::History(_)));
    if is_history && view.runs < RUNS_MIN {
        let note = format!(
            "the deadline is unknown: class {} has {} of the {RUNS_MIN} completion times that history needs",
            class.unwrap_or_default(),
            view.runs
        );
        return (EventType::Normal, api::DEADLINE_UNKNOWN, note);
    }
    let note = match (view.estimate, class) {
        // The deadline counts from the start, or from history.
        (Some(_), _) => "the deadline is unknown until the Job starts".to_owned(),
        (None, Some(class)) => format!(
            "PoCD is unknown, because no Job of class {class} has completed in this namespace: it becomes known with \
             the first one, or with shed.dev/expected-task-duration"
        ),
        (None, None) => {
            "PoCD is unknown, because the Job has no class and no expected duration: add \
                         shed.dev/expected-task-duration, or the label shed.dev/class"
                .to_owned()
        }
    };
    (EventType::Normal, reason::DURATIONS_UNKNOWN, note)
}

fn basis(view: &View<'_>) -> String {
    let terms = view.job.terms.as_ref().ok();
    let is_expected = terms.is_some_and(|terms| terms.expected.is_some());
    let class = view.job.class.as_deref().unwrap_or_default();
    let runs = match view.runs {
        1 => format!("one earlier run of class {class}"),
        runs => format!("{runs} earlier runs of class {class}"),
    };
    match (is_expected, view.runs) {
        (true, 0) => "shed.dev/expected-task-duration".to_owned(),
        (true, _) => format!("shed.dev/expected-task-duration and {runs}"),
        (false, _) => runs,
    }
}
