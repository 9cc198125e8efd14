//! Reads what a task says about itself: how far it is and where it could be resumed.
//! The content comes from inside the task's container, so anything is possible; what is
//! accepted is in range and bounded, what is refused has a reason that fits a metric label.

use std::fmt;

use serde::{Deserialize, Serialize};

/// More than this is refused unread. A report with the longest checkpoint, every character
/// of it escaped, takes less than half.
pub const CONTENT_BYTES_MAX: usize = 4096;

/// A checkpoint is kept for many attempts in one Kubernetes object, hence a name or an offset
/// and not the state itself.
pub const CHECKPOINT_BYTES_MAX: usize = 256;

/// One accepted report, or a resume point: the two have the same content.
#[derive(Clone, PartialEq, Serialize)]
pub struct Report {
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    /// Of `N/M` in whole units.
    #[serde(skip)]
    units: Option<Units>,
    #[serde(skip)]
    age_ms: u64,
}

// The checkpoint may be a secret such as a signed address: logs show its length alone.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("progress", &self.progress)
            .field(
                "checkpoint_bytes",
                &self.checkpoint.as_ref().map(String::len),
            )
            .field("units", &self.units)
            .field("age_ms", &self.age_ms)
            .finish()
    }
}

/// A report `N/M` in whole units of the task's own choosing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// The unit that comes next: all before it, from where the attempt began, are done.
    pub done: u64,
    /// How many units the whole task has.
    pub total: u64,
}

/// Beyond this a unit is no whole number any more when it is turned into a share.
const UNITS_MAX: u64 = 1 << 53;

impl Units {
    /// Reads `N/M`; absent if it is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (done, total) = text.split_once('/')?;
        let (done, total) = (done.trim().parse().ok()?, total.trim().parse().ok()?);
        (done <= total && (1..=UNITS_MAX).contains(&total)).then_some(Units { done, total })
    }
}

impl std::fmt::Display for Units {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.done, self.total)
    }
}

impl Report {
    /// Fails unless `progress` lies in [0, 1] and the checkpoint is short enough. An empty
    /// checkpoint is no checkpoint.
    pub fn new(progress: f64, checkpoint: Option<String>) -> Result<Self, ReportError> {
        if !progress.is_finite() {
            return Err(ReportError::NotFinite);
        }
        if !(0.0..=1.0).contains(&progress) {
            return Err(ReportError::OutOfRange);
        }
        let checkpoint = checkpoint.filter(|text| !text.is_empty());
        if let Some(text) = &checkpoint
            && text.len() > CHECKPOINT_BYTES_MAX
        {
            return Err(ReportError::CheckpointTooLong);
        }
        // Adding zero turns -0.0 into 0.0, which would otherwise be written as "-0.0".
        let progress = progress + 0.0;
        Ok(Report {
            progress,
            checkpoint,
            units: None,
            age_ms: 0,
        })
    }

    /// Milliseconds since it was written, as far as that is known; 0 for one that was made when
    /// it was asked for.
    pub fn age_ms(&self) -> u64 {
        self.age_ms
    }

    /// The same report, written this many milliseconds ago.
    pub(crate) fn written_before(mut self, age_ms: u64) -> Self {
        self.age_ms = age_ms;
        self
    }

    /// The report in whole units, if it was given as `N/M`.
    pub fn units(&self) -> Option<Units> {
        self.units
    }

    /// The same report, given as this text.
    fn given_as(mut self, text: &str) -> Self {
        self.units = Units::parse(text);
        self
    }

    /// How much of the whole task is done, in [0, 1].
    pub fn progress(&self) -> f64 {
        self.progress
    }

    /// The data with which a task resumes at this progress; opaque to shed.
    pub fn checkpoint(&self) -> Option<&str> {
        self.checkpoint.as_deref()
    }
}

/// Why a report was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("the report is longer than {CONTENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the report is not UTF-8 text")]
    NotUtf8,
    #[error("the report is neither a number, nor N/M, nor a JSON object")]
    NotANumber,
    #[error("the progress is not a finite number")]
    NotFinite,
    #[error("the progress is outside 0 to 1")]
    OutOfRange,
    #[error("the progress is N/M with M = 0")]
    ZeroTotal,
    #[error("the checkpoint is longer than {CHECKPOINT_BYTES_MAX} bytes")]
    CheckpointTooLong,
    #[error("the report is not a JSON object with a `progress` and, if any, a text `checkpoint`")]
    BadJson,
    #[error("the page has the metric more than once, with different labels")]
    Ambiguous,
    #[error("the progress file cannot be read: no permission, or not a regular file")]
    Unreadable,
}

impl ReportError {
    /// The value of the metric label `reason`.
    pub fn label(&self) -> &'static str {
        match self {
            ReportError::TooLarge => "too_large",
            ReportError::NotUtf8 => "not_utf8",
            ReportError::NotANumber => "not_a_number",
            ReportError::NotFinite => "not_finite",
            ReportError::OutOfRange => "out_of_range",
            ReportError::ZeroTotal => "zero_total",
            ReportError::CheckpointTooLong => "checkpoint_too_long",
            ReportError::BadJson => "bad_json",
            ReportError::Ambiguous => "ambiguous",
            ReportError::Unreadable => "unreadable",
        }
    }
}

/// Parses `0.42`, `17/40` or `{"progress":0.42,"checkpoint":"…"}`; surrounding white space is
/// allowed. Nothing but white space is `Ok(None)`, "no report yet": a shell's `>` empties the
/// file before it writes, so that any honest task can be caught with an empty one.
pub fn parse_report(content: &[u8]) -> Result<Option<Report>, ReportError> {
    if content.len() > CONTENT_BYTES_MAX {
        return Err(ReportError::TooLarge);
    }
    let text = std::str::from_utf8(content).map_err(|_| ReportError::NotUtf8)?;
    let text = text.trim();
    if text.is_empty() {
        Ok(None)
    } else if text.starts_with('{') {
        parse_json(text).map(Some)
    } else {
        let report = Report::new(parse_progress(text)?, None)?;
        Ok(Some(report.given_as(text)))
    }
}

fn parse_json(text: &str) -> Result<Report, ReportError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Progress {
        Number(f64),
        Text(String),
    }
    #[derive(Deserialize)]
    struct Content {
        progress: Progress,
        #[serde(default)]
        checkpoint: Option<String>,
    }
    // The error's own text is dropped: it quotes the content, which must not reach a log.
    let content: Content = serde_json::from_str(text).map_err(|_| ReportError::BadJson)?;
    match content.progress {
        Progress::Number(number) => Report::new(number, content.checkpoint),
        Progress::Text(text) => {
            let report = Report::new(parse_progress(text.trim())?, content.checkpoint)?;
            Ok(report.given_as(text.trim()))
        }
    }
}

fn parse_progress(text: &str) -> Result<f64, ReportError> {
    match text.split_once('/') {
        None => parse_number(text),
        Some((done, total)) => share(parse_number(done.trim())?, parse_number(total.trim())?),
    }
}

/// The finished part of a total, if the task reports both.
pub(crate) fn share(done: f64, total: f64) -> Result<f64, ReportError> {
    if !done.is_finite() || !total.is_finite() {
        return Err(ReportError::NotFinite);
    }
    if total == 0.0 {
        return Err(ReportError::ZeroTotal);
    }
    // Signs are checked before dividing: -3/-4 is not 0.75.
    if done < 0.0 || done > total {
        return Err(ReportError::OutOfRange);
    }
    Ok(done / total)
}

fn parse_number(text: &str) -> Result<f64, ReportError> {
    text.parse().map_err(|_| ReportError::NotANumber)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(content: &str, progress: f64, checkpoint: Option<&str>) {
        let report = parse_report(content.as_bytes()).unwrap().unwrap();
        assert_eq!(report.progress(), progress, "{content}");
        assert_eq!(report.checkpoint(), checkpoint, "{content}");
    }

    fn check_refused(content: impl AsRef<[u8]>, error: ReportError) {
        let content = content.as_ref();
        let shown = String::from_utf8_lossy(&content[..content.len().min(60)]);
        assert_eq!(parse_report(content), Err(error), "{shown}");
    }

    #[test]
    fn every_documented_form_is_accepted() {
        check("0.42", 0.42, None);
        check("0", 0.0, None);
        check("1", 1.0, None);
        check("1.0\n", 1.0, None);
        check("-0", 0.0, None);
        check(" \t\r\n.5 \n", 0.5, None);
        check("5e-1", 0.5, None);
        check("17/40", 0.425, None);
        check(" 17 / 40\n", 0.425, None);
        check("0/7", 0.0, None);
        check("7/7", 1.0, None);
        check("99999999999999999999/99999999999999999999", 1.0, None);
        check(r#"{"progress":0.42}"#, 0.42, None);
        check(r#"{"progress":1}"#, 1.0, None);
        check(r#"{"progress":"17/40"}"#, 0.425, None);
        check(
            r#"{"progress":0.42,"checkpoint":"s3://b/k"}"#,
            0.42,
            Some("s3://b/k"),
        );
        check(r#"{"progress":0.42,"checkpoint":null}"#, 0.42, None);
        check(r#"{"progress":0.42,"checkpoint":""}"#, 0.42, None);
        check(
            "\n{ \"checkpoint\": \"a\\nb\", \"progress\": 0.42 }\n",
            0.42,
            Some("a\nb"),
        );
        check(
            r#"{"progress":0.42,"loss":[1,{"a":null}],"epoch":3}"#,
            0.42,
            None,
        );
    }

    #[test]
    fn whole_units_are_kept_as_they_are() {
        let units = |content: &str| parse_report(content.as_bytes()).unwrap().unwrap().units();
        let some = Some(Units {
            done: 17,
            total: 40,
        });
        assert_eq!(units(" 17 / 40\n"), some);
        assert_eq!(units(r#"{"progress":"17/40"}"#), some);
        for content in [
            "0.42",
            "1.5/40",
            r#"{"progress":0.42}"#,
            "1/9007199254740993",
        ] {
            assert_eq!(units(content), None, "{content}");
        }
    }

    #[test]
    fn an_empty_content_is_no_report_yet() {
        assert_eq!(parse_report(b""), Ok(None));
        assert_eq!(parse_report(b" \n\t"), Ok(None));
    }

    #[test]
    fn negative_zero_is_written_as_zero() {
        let report = parse_report(b"-0.0").unwrap().unwrap();
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"progress":0.0}"#
        );
    }

    #[test]
    fn each_refusal_has_its_reason() {
        check_refused(vec![b'1'; 10 << 20], ReportError::TooLarge);
        check_refused(vec![b' '; 4097], ReportError::TooLarge);
        check_refused([b'0', 0xff], ReportError::NotUtf8);
        check_refused([0x00], ReportError::NotANumber);
        for text in [
            "done", "42%", "0,42", "1/2/3", "/", "3/", "/3", "0x1", "[0.4]", "\"0.4\"", "1 2",
        ] {
            check_refused(text, ReportError::NotANumber);
        }
        for text in [
            "NaN",
            "nan",
            "inf",
            "-Infinity",
            "1e400",
            "NaN/3",
            "3/inf",
            "inf/inf",
        ] {
            check_refused(text, ReportError::NotFinite);
        }
        for text in [
            "-1",
            "7",
            "1.0000001",
            "-1e-9",
            "41/40",
            "-1/4",
            "-3/-4",
            "3/-4",
        ] {
            check_refused(text, ReportError::OutOfRange);
        }
        check_refused("3/0", ReportError::ZeroTotal);
        check_refused("0/0", ReportError::ZeroTotal);
        check_refused("1/-0", ReportError::ZeroTotal);
    }

    #[test]
    fn each_json_refusal_has_its_reason() {
        let long = |length| {
            format!(
                r#"{{"progress":0.4,"checkpoint":"{}"}}"#,
                "x".repeat(length)
            )
        };
        assert!(parse_report(long(256).as_bytes()).is_ok());
        check_refused(long(257), ReportError::CheckpointTooLong);
        check_refused(long(5000), ReportError::TooLarge);
        check_refused("{\"a\":".repeat(800), ReportError::BadJson);
        for text in [
            "{",
            "{}",
            r#"{"progress":null}"#,
            r#"{"progress":NaN}"#,
            r#"{"progress":{"a":0.4}}"#,
            r#"{"progress":[0.4]}"#,
            r#"{"progress":true}"#,
            r#"{"checkpoint":"a"}"#,
            r#"{"progress":0.4,"progress":0.5}"#,
            r#"{"progress":0.4,"checkpoint":7}"#,
            r#"{"progress":0.4} x"#,
            r#"{"progress":1e400}"#,
        ] {
            check_refused(text, ReportError::BadJson);
        }
        check_refused(r#"{"progress":7}"#, ReportError::OutOfRange);
        check_refused(r#"{"progress":"3/0"}"#, ReportError::ZeroTotal);
        check_refused(r#"{"progress":"nan"}"#, ReportError::NotFinite);
        check_refused(r#"{"progress":"x"}"#, ReportError::NotANumber);
    }

    fn check_in_range(content: &[u8]) {
        if let Ok(Some(report)) = parse_report(content) {
            assert!((0.0..=1.0).contains(&report.progress()));
            assert!(report.checkpoint().is_none_or(|text| text.len() <= 256));
            let written = serde_json::to_vec(&report).unwrap();
            assert!(parse_report(&written).unwrap().is_some());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_in_range(content in prop::collection::vec(any::<u8>(), 0..64)) {
            check_in_range(&content);
        }

        #[test]
        fn any_number_is_refused_or_in_range(
            done in any::<f64>(), total in any::<f64>(), checkpoint in ".{0,300}",
        ) {
            check_in_range(done.to_string().as_bytes());
            check_in_range(format!("{done:e}/{total:e}").as_bytes());
            let json = serde_json::json!({ "progress": done, "checkpoint": checkpoint });
            check_in_range(json.to_string().as_bytes());
        }

        #[test]
        fn text_like_a_report_never_panics(content in "[-+0-9./eE{}\":, a-z\\\\u]{0,80}") {
            check_in_range(content.as_bytes());
        }
    }
}
