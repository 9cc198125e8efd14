//! What would become of a job with another deadline or with more or fewer slots. It decides on a copy of the
//! planner's state, which is dropped then.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use shed_core::ids::JobKey;
use shed_core::plan::JobReport;
use shed_core::time::Instant;
use shed_core::what_if::{Change, Unanswered, what_if};

use crate::answers::Refusal;
use crate::answers::jobs::{self, Wanted};
use crate::answers::query::Query;
use crate::api::{Pocd, TASKS_MAX};
use crate::clock;
use crate::context::Context;
use crate::planner_copies::PlannerCopy;

/// What is asked, about which job.
#[derive(Debug)]
pub(super) struct Question {
    job: JobKey,
    change: Change,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// The time of the facts.
    time: Time,
    #[serde(flatten)]
    then: Figures,
    now: Figures,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
    /// Slots of the job that the usable capacity has, those of other jobs included.
    slots: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pocd: Option<Pocd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_completion_time: Option<Time>,
    /// Clones that a pass would start now.
    clones: usize,
    /// First attempts and retries that would wait.
    waiting: u32,
    /// Whether the policy's work budget ended before it was done with the job.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_cut_short: bool,
}

impl Question {
    pub(super) fn of(
        context: &Context,
        namespace: &str,
        name: &str,
        mut query: Query,
    ) -> Result<Self, Refusal> {
        let wanted = Wanted::take(namespace, name, &mut query)?;
        let deadline = query.take("deadline");
        let slots = query.take_number("slots", TASKS_MAX)?;
        query.none_left(&["deadline", "slots", "kind"])?;
        let change = match (deadline, slots) {
            (Some(text), None) => Change::Deadline(future(&text, context.clock.now())?),
            (None, Some(slots)) => Change::Slots(slots),
            (Some(_), Some(_)) => {
                return Err(Refusal::bad("deadline and slots are given: remove one"));
            }
            (None, None) => {
                return Err(Refusal::bad(
                    "deadline or slots is missing: add deadline=<RFC3339 time> or slots=<number>",
                ));
            }
        };
        let job = wanted.find(context)?;
        Ok(Self {
            job: JobKey::from(jobs::uid(&job)),
            change,
        })
    }

    pub(super) fn answer(self, copy: PlannerCopy) -> Result<Answer, Refusal> {
        let Self { job, change } = self;
        let now = copy.snapshot.now;
        let mut known = copy.snapshot.jobs.iter();
        let deadline = known
            .find(|known| known.key == job)
            .and_then(|known| known.deadline);
        let answer = what_if(copy.snapshot, copy.memory, &copy.policy, &job, change);
        let answer = answer.map_err(|why| match why {
            Unanswered::UnknownJob => Refusal::not_found(
                "the planner has no facts about the job: it has ended, is quarantined, or is new; ask again in a \
                 second",
            ),
            Unanswered::Panicked => Refusal::internal(),
        })?;
        let (then_deadline, then_slots) = match change {
            Change::Deadline(deadline) => (Some(deadline), answer.slots),
            Change::Slots(slots) => (deadline, slots),
        };
        Ok(Answer {
            time: clock::time(now),
            then: Figures::of(&answer.then, then_deadline, then_slots),
            now: Figures::of(&answer.now, deadline, answer.slots),
        })
    }
}

impl Figures {
    fn of(report: &JobReport, deadline: Option<Instant>, slots: u32) -> Self {
        Self {
            deadline: deadline.map(clock::time),
            slots,
            pocd: deadline.and(report.pocd_after).map(Pocd::nearest),
            estimated_completion_time: report.estimated_completion.map(clock::time),
            clones: report.clones.len(),
            waiting: report.waiting,
            is_cut_short: report.is_cut_short,
        }
    }
}

/// A time after `now`.
fn future(text: &str, now: Instant) -> Result<Instant, Refusal> {
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        Refusal::bad(format!(
            "deadline={text}: use an RFC 3339 time such as 2030-01-02T06:00:00Z"
        ))
    })?;
    let at = clock::instant(&Time(time));
    if at <= now {
        let now = clock::rfc3339(now);
        let error = format!("deadline={text} is in the past: use a time after {now}");
        return Err(Refusal::bad(error));
    }
    Ok(at)
}
