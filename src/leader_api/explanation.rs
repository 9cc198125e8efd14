//! The last plan for a job in words.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use crate::answers::Refusal;
use crate::answers::jobs::{self, Wanted};
use crate::clock;
use crate::context::Context;

#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    /// When the planner last looked at the job.
    time: Time,
    text: String,
}

pub(super) fn of(context: &Context, wanted: &Wanted) -> Result<Explanation, Refusal> {
    let job = wanted.find(context)?;
    let name = |key: &shed_core::ids::JobKey| match jobs::names(context, key) {
        Some((namespace, name)) => format!("{namespace}/{name}"),
        None => key.to_string(),
    };
    let (time, text) = context
        .board
        .explanation(jobs::uid(&job), name)
        .ok_or_else(|| {
            Refusal::not_found("the planner has not looked at the job yet: ask again in a second")
        })?;
    Ok(Explanation {
        time: clock::time(time),
        text,
    })
}
