//! The record of a job: the bounded one of its status, and what the pods show.

use jiff::Timestamp;
use shed::api::{AttemptRecord, AttemptState, JobRecord};

use crate::connection::Session;
use crate::leader::{self, NoOperator};
use crate::model::{JobView, RECORD_SINCE};
use crate::{pods, words};

/// A record, and what the user should know about it.
#[derive(Debug, Clone, Default)]
pub struct FoundRecord {
    /// Absent if nothing is known of the attempts.
    pub record: Option<JobRecord>,
    /// Sentences.
    pub notes: Vec<String>,
}

/// What the user may read of the job's attempts.
pub async fn find(session: &Session, job: &JobView) -> FoundRecord {
    let written = job.record();
    let mut notes = Vec::new();
    let is_whole = |record: &JobRecord| job.is_finished() && record.omitted_attempts == 0;
    let pods = match &written {
        Some(record) if is_whole(record) => Vec::new(),
        _ => pods::list(&session.client, job)
            .await
            .unwrap_or_else(|error| {
                notes.push(sentence(&format!(
                    "Only the record of the status: {error:#}"
                )));
                Vec::new()
            }),
    };
    let attempts = pods.iter().map(|(attempt, _)| attempt);
    let record = match written {
        None if pods.is_empty() => None,
        written => Some(pods::complete(written, attempts)),
    };
    notes.splice(0..0, missing(job, record.as_ref()));
    notes.extend(operator_note(session, job).await);
    FoundRecord { record, notes }
}

/// A note if the job is unfinished and no operator leads. Without the right to read the Lease there is no note.
async fn operator_note(session: &Session, job: &JobView) -> Option<String> {
    if job.is_finished() {
        return None;
    }
    let error = leader::leading_pod(session).await.err()?;
    let error = error.downcast_ref::<NoOperator>()?;
    Some(sentence(&error.to_string()))
}

/// What the record does not have.
fn missing(job: &JobView, record: Option<&JobRecord>) -> Option<String> {
    if job.status.record.is_none() {
        return Some(format!(
            "The job has no record of its attempts: shed writes it from version {RECORD_SINCE} on, with the first change \
             of the job."
        ));
    }
    if job.record().is_none() {
        return Some(
            "Another version of the operator wrote the record of the attempts in a form that this program does not know: \
             use the kubectl-shed of its version."
                .to_owned(),
        );
    }
    let omitted = usize::try_from(record?.omitted_attempts).ok()?;
    let words = words::count(omitted, "attempt is", "attempts are");
    (omitted > 0).then(|| {
        format!(
            "{words} not listed, because the record of a job is bounded and their pods are gone or too many."
        )
    })
}

/// The text as a sentence.
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string());
    let text = format!("{}{}", first.unwrap_or_default(), characters.as_str());
    if text.ends_with(['.', '`']) {
        text
    } else {
        format!("{text}.")
    }
}

/// Its last report, from 0 to 1.
pub fn progress(attempt: &AttemptRecord) -> Option<f64> {
    match attempt.state {
        AttemptState::Won => Some(1.0),
        _ => attempt.progress.map(|progress| progress.value()),
    }
}

/// Its progress per time since its start, as text.
pub fn pace(attempt: &AttemptRecord, time: Timestamp) -> Option<String> {
    let start = attempt.start_time.as_ref()?.0;
    let end = attempt.end_time.as_ref().map_or(time, |end| end.0);
    let from = attempt.resumed_from.map_or(0.0, |from| from.value());
    words::pace(
        progress(attempt)? - from,
        end.as_second() - start.as_second(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pace_counts_from_where_the_attempt_resumed() {
        let attempt = json!({
            "task": 1, "attempt": 1, "kind": "Clone", "startTime": "2030-01-31T07:00:00Z",
            "progress": "0.700", "resumedFrom": "0.400", "state": "Running",
        });
        let attempt: AttemptRecord = serde_json::from_value(attempt).unwrap();
        let now = "2030-01-31T07:10:00Z".parse().unwrap();
        assert_eq!(pace(&attempt, now).unwrap(), "3.0 %/min");
    }

    #[test]
    fn notes_tell_a_missing_record_from_one_in_another_form() {
        let mut job = JobView::default();
        let absent = missing(&job, None).unwrap();
        assert!(absent.contains("from version 0.1.0 on"), "{absent}");
        job.status.record = Some(json!({"moment": 3}));
        let unknown = missing(&job, None).unwrap();
        assert!(unknown.contains("use the kubectl-shed of its version"));
    }
}
