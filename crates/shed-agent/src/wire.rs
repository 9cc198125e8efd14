//! Messages between a pod and the operator: the agent's response, and the response of a task
//! that serves its own progress. Both are bound to one attempt, because pod IPs are reused.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::metric::{Metric, parse_metric};
use crate::report::{CONTENT_BYTES_MAX, Report, ReportError, parse_report};
use crate::stop::StopState;

/// Where the agent answers.
pub const PROGRESS_PATH: &str = "/progress";

/// The operator reads no more of an answer than this: 4097 bytes of content, each of them
/// escaped as `\u0000`, and the frame.
pub const REPLY_BYTES_MAX: usize = 32 * 1024;

/// With this header a task's own endpoint may say which attempt it is (`$SHED_ATTEMPT_ID`, since
/// a task does not know its pod's uid).
pub const ATTEMPT_HEADER: &str = "shed-attempt";

/// Why an answer says nothing about the attempt that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the response is longer than {REPLY_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the response does not come from shed's agent")]
    BadJson,
    #[error("the response comes from another attempt")]
    WrongAttempt,
}

impl WireError {
    /// The value of the metric label `reason`.
    pub fn label(&self) -> &'static str {
        match self {
            WireError::TooLarge => "reply_too_large",
            WireError::BadJson => "reply_bad_json",
            WireError::WrongAttempt => "wrong_attempt",
        }
    }
}

/// The content that the agent found at the path of the progress file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// The task has not written the file yet.
    Missing,
    /// The first bytes of the file, at most [`CONTENT_BYTES_MAX`] + 1, and the time since they
    /// were written.
    Bytes(Vec<u8>, Duration),
    /// The file may not be read, or is no regular file.
    Unreadable,
}

#[derive(Serialize, Deserialize)]
struct Reply {
    attempt: String,
    content: Option<String>,
    /// Milliseconds since the content was written; an older agent does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    age_ms: u64,
    /// Why there is no content although there is a file. A string, so that an operator
    /// understands the answer of a newer agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Only with `resume: Range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop: Option<StopState>,
}

/// The agent's answer, as JSON. One byte over the limit is sent of a longer file, so that the
/// operator refuses it for its size.
pub fn write_reply(
    attempt: &str,
    content: FileContent,
    stop: Option<StopState>,
) -> serde_json::Result<Vec<u8>> {
    let mut age_ms = 0;
    let (content, problem) = match content {
        FileContent::Missing => (None, None),
        FileContent::Unreadable => (None, Some(ReportError::Unreadable)),
        FileContent::Bytes(mut bytes, age) => {
            age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            bytes.truncate(CONTENT_BYTES_MAX + 1);
            to_text(bytes)
        }
    };
    serde_json::to_vec(&Reply {
        attempt: attempt.to_owned(),
        content,
        age_ms,
        problem: problem.map(|error| error.label().to_owned()),
        stop,
    })
}

/// Text that is not UTF-8 is not repaired: a checkpoint with replacement characters in it would
/// be accepted and then fail the clone that gets it. Text that is too long may be cut inside
/// a character, and replacing never makes it shorter.
fn to_text(bytes: Vec<u8>) -> (Option<String>, Option<ReportError>) {
    if bytes.len() > CONTENT_BYTES_MAX {
        return (Some(String::from_utf8_lossy(&bytes).into_owned()), None);
    }
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(_) => (None, Some(ReportError::NotUtf8)),
    }
}

/// Reads the agent's answer. The outer error says that the answer is not about this attempt,
/// the inner result is what [`crate::Series::observe`] takes.
pub fn read_reply(
    body: &[u8],
    expected_uid: &str,
) -> Result<Result<Option<Report>, ReportError>, WireError> {
    if body.len() > REPLY_BYTES_MAX {
        return Err(WireError::TooLarge);
    }
    let reply: Reply = serde_json::from_slice(body).map_err(|_| WireError::BadJson)?;
    if reply.attempt != expected_uid {
        return Err(WireError::WrongAttempt);
    }
    if let Some(problem) = reply.problem {
        return Ok(Err(if problem == ReportError::NotUtf8.label() {
            ReportError::NotUtf8
        } else {
            ReportError::Unreadable
        }));
    }
    Ok(match reply.content {
        Some(content) => parse_report(content.as_bytes())
            .map(|report| Some(report?.written_before(reply.age_ms))),
        None => Ok(None),
    })
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The stop point in a response that [`read_reply`] accepts.
pub fn read_stop(body: &[u8]) -> Option<StopState> {
    serde_json::from_slice::<Reply>(body).ok()?.stop
}

/// Reads the answer of a task's own endpoint: the body is the report, and the header
/// [`ATTEMPT_HEADER`], where present, must name the attempt. The caller reads at most
/// [`CONTENT_BYTES_MAX`] + 1 bytes of the body.
pub fn read_endpoint(
    attempt_header: Option<&[u8]>,
    body: &[u8],
    expected_id: &str,
) -> Result<Result<Option<Report>, ReportError>, WireError> {
    named_rightly(attempt_header, expected_id)?;
    Ok(parse_report(body))
}

/// Reads a page of metrics, which may name its attempt in the same way. The caller reads at most
/// [`PAGE_BYTES_MAX`](crate::metric::PAGE_BYTES_MAX) + 1 bytes of it.
pub fn read_metrics(
    attempt_header: Option<&[u8]>,
    page: &[u8],
    expected_id: &str,
    metric: Metric<'_>,
) -> Result<Result<Option<Report>, ReportError>, WireError> {
    named_rightly(attempt_header, expected_id)?;
    Ok(parse_metric(page, metric))
}

fn named_rightly(attempt_header: Option<&[u8]>, expected_id: &str) -> Result<(), WireError> {
    match attempt_header {
        Some(id) if id.trim_ascii() != expected_id.as_bytes() => Err(WireError::WrongAttempt),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(content: FileContent) -> Result<Option<Report>, ReportError> {
        let body = write_reply("uid-1", content, None).unwrap();
        assert!(body.len() <= REPLY_BYTES_MAX);
        read_reply(&body, "uid-1").unwrap()
    }

    fn bytes(content: &[u8]) -> FileContent {
        FileContent::Bytes(content.to_vec(), Duration::ZERO)
    }

    #[test]
    fn the_answer_has_the_documented_form() {
        let body = write_reply("uid-1", bytes(b"17/40\n"), None).unwrap();
        assert_eq!(body, br#"{"attempt":"uid-1","content":"17/40\n"}"#);
        let body = write_reply("uid-1", FileContent::Missing, None).unwrap();
        assert_eq!(body, br#"{"attempt":"uid-1","content":null}"#);
    }

    #[test]
    fn a_report_comes_through_unchanged() {
        let report = round_trip(bytes(br#"{"progress":0.4,"checkpoint":"\"\u00e9"}"#));
        let report = report.unwrap().unwrap();
        assert_eq!(report.progress(), 0.4);
        assert_eq!(report.checkpoint(), Some("\"é"));
        assert_eq!(round_trip(FileContent::Missing), Ok(None));
        assert_eq!(round_trip(bytes(b"")), Ok(None));
    }

    #[test]
    fn how_long_ago_it_was_written_comes_with_it() {
        let content = FileContent::Bytes(b"0.5".to_vec(), Duration::from_millis(1750));
        assert_eq!(round_trip(content).unwrap().unwrap().age_ms(), 1750);
        let older_agent = br#"{"attempt":"uid-1","content":"0.5"}"#;
        let report = read_reply(older_agent, "uid-1").unwrap().unwrap().unwrap();
        assert_eq!(report.age_ms(), 0);
    }

    #[test]
    fn what_the_agent_cannot_pass_on_is_refused_with_its_reason() {
        assert_eq!(
            round_trip(FileContent::Unreadable),
            Err(ReportError::Unreadable)
        );
        let corrupt = b"{\"progress\":0.4,\"checkpoint\":\"\xff\"}";
        assert_eq!(round_trip(bytes(corrupt)), Err(ReportError::NotUtf8));
        let newer = br#"{"attempt":"uid-1","content":null,"problem":"on_fire","since":7}"#;
        assert_eq!(read_reply(newer, "uid-1"), Ok(Err(ReportError::Unreadable)));
    }

    #[test]
    fn a_file_over_the_limit_stays_over_it_whatever_its_bytes() {
        for filler in [
            b"0".as_slice(),
            b"\0",
            b"\xff",
            b"\xf0\x9f\x98\x80",
            b"\xf0\x9f\x98",
        ] {
            let content: Vec<u8> = filler.iter().copied().cycle().take(10_000).collect();
            assert_eq!(round_trip(bytes(&content)), Err(ReportError::TooLarge));
        }
    }

    #[test]
    fn another_attempt_is_not_believed() {
        let body = write_reply("uid-2", bytes(b"0.9"), None).unwrap();
        assert_eq!(read_reply(&body, "uid-1"), Err(WireError::WrongAttempt));
    }

    #[test]
    fn what_is_no_answer_of_an_agent_is_refused() {
        for body in ["", "0.4", "<html>", "{}", r#"{"content":"0.4"}"#, "[[[["] {
            assert_eq!(
                read_reply(body.as_bytes(), "uid-1"),
                Err(WireError::BadJson)
            );
        }
        let huge = vec![b' '; REPLY_BYTES_MAX + 1];
        assert_eq!(read_reply(&huge, "uid-1"), Err(WireError::TooLarge));
    }

    #[test]
    fn a_tasks_own_endpoint_may_name_its_attempt() {
        let read = |header: Option<&str>| {
            read_endpoint(header.map(str::as_bytes), b"0.5\n", "uid-1")
                .map(|answer| answer.unwrap().unwrap().progress())
        };
        assert_eq!(read(None), Ok(0.5));
        assert_eq!(read(Some(" uid-1 ")), Ok(0.5));
        assert_eq!(read(Some("uid-2")), Err(WireError::WrongAttempt));
        assert_eq!(read(Some("")), Err(WireError::WrongAttempt));
        assert_eq!(read_endpoint(None, b"", "uid-1"), Ok(Ok(None)));
        assert_eq!(
            read_endpoint(None, b"7", "uid-1"),
            Ok(Err(ReportError::OutOfRange))
        );
    }
}
