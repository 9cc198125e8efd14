//! The record of a job: the bounded one of its status, or the leader's, which has every live attempt.

use anyhow::Context;
use jiff::Timestamp;
use serde::Deserialize;
use shed::api::{AttemptRecord, AttemptState, JobRecord};

use crate::connection::{Connection, Session};
use crate::leader::{self, LeaderError};
use crate::model::{JobView, RECORD_SINCE, RecordState};
use crate::words;

/// A record, and what the user should know about it.
#[derive(Debug, Clone, Default)]
pub struct FoundRecord {
    /// Absent if the user cannot read one.
    pub record: Option<JobRecord>,
    /// Sentences.
    pub notes: Vec<String>,
}

/// The leader's answer about one job.
#[derive(Debug, Deserialize)]
pub struct JobAnswer {
    pub record: Option<JobRecord>,
}

/// The most complete record that the user may read.
pub async fn find(session: &Session, connection: &Connection, job: &JobView) -> FoundRecord {
    let state = job.record();
    let bounded = match &state {
        RecordState::Present(record) if record.omitted_attempts == 0 => {
            let notes = operator_notes(session, connection, job).await;
            return FoundRecord {
                record: Some(*record.clone()),
                notes,
            };
        }
        RecordState::Present(record) => Some(*record.clone()),
        RecordState::Absent | RecordState::Unknown => None,
    };
    let asked = match job.is_finished() {
        true => None,
        false => Some(from_leader(session, connection, job).await),
    };
    match asked {
        Some(Ok(record)) => FoundRecord {
            notes: omitted(&record).into_iter().collect(),
            record: Some(record),
        },
        Some(Err(error)) => FoundRecord {
            notes: notes(&state, Some(&error)),
            record: bounded,
        },
        None => FoundRecord {
            notes: notes(&state, None),
            record: bounded,
        },
    }
}

async fn from_leader(
    session: &Session,
    connection: &Connection,
    job: &JobView,
) -> anyhow::Result<JobRecord> {
    let path = format!("/v1/jobs/{}", job.leader_path());
    let answer: JobAnswer = leader::get(&session.client, connection, &path).await?;
    answer
        .record
        .context("the operator has no record of the job")
}

/// A note if the job is unfinished and no operator leads. Without the right to read the Lease there is no note.
async fn operator_notes(session: &Session, connection: &Connection, job: &JobView) -> Vec<String> {
    if job.is_finished() {
        return Vec::new();
    }
    match leader::leading_pod(&session.client, connection).await {
        Err(error @ LeaderError::NoOperator(_)) => vec![sentence(&error.to_string())],
        _ => Vec::new(),
    }
}

/// A note about the attempts that a record leaves out.
fn omitted(record: &JobRecord) -> Option<String> {
    let omitted = usize::try_from(record.omitted_attempts).ok()?;
    let omitted = (omitted > 0).then(|| words::count(omitted, "attempt is", "attempts are"))?;
    Some(format!(
        "{omitted} not listed, because the record of a job is bounded."
    ))
}

fn notes(state: &RecordState, error: Option<&anyhow::Error>) -> Vec<String> {
    let mut notes = vec![match state {
        RecordState::Present(record) => omitted(record).unwrap_or_default(),
        RecordState::Absent => format!(
            "The job has no record of its attempts: shed writes it from version {RECORD_SINCE} on, with the first change \
             of the job."
        ),
        RecordState::Unknown => {
            "A newer operator wrote the record of the attempts: update kubectl-shed to its version."
                .to_owned()
        }
    }];
    notes.extend(error.map(|error| sentence(&format!("{error:#}"))));
    notes
}

fn sentence(text: &str) -> String {
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

/// An attempt's label within its job: `3.1`.
pub fn label(attempt: &AttemptRecord) -> String {
    format!("{}.{}", attempt.task, attempt.attempt)
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
    fn notes_tell_an_older_operator_from_a_newer_one() {
        let absent = notes(&RecordState::Absent, None);
        assert!(absent[0].contains("from version 0.1.0 on"), "{absent:?}");
        let error = anyhow::anyhow!("no operator leads");
        let unknown = notes(&RecordState::Unknown, Some(&error));
        assert!(unknown[0].contains("update kubectl-shed"));
        assert_eq!(unknown[1], "No operator leads.");
    }
}
