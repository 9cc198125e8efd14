//! Progress from a page of metrics, as Prometheus scrapes them: the text format, and OpenMetrics as far
//! as both are alike. The page comes from inside the task's container, so anything is possible.

use crate::report::{Report, ReportError, share};

/// A longer page is refused. Pages of common client libraries with their own metrics take some 10 KiB.
pub const PAGE_BYTES_MAX: usize = 64 * 1024;

/// The metric of a page that has the task's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric<'a> {
    /// Name of the sample: a share from 0 to 1, or what is done if there is a total.
    pub name: &'a str,
    /// Name of the sample that says how much the task has to do.
    pub total: Option<&'a str>,
}

/// Reads the report from a page. A page without the metrics is `Ok(None)`, "no report yet": many
/// programs register a metric with its first value.
///
/// # Errors
/// If the page is too long or no text, if a metric is there more than once (with different labels), or
/// if its value is no progress.
pub fn parse_metric(page: &[u8], metric: Metric<'_>) -> Result<Option<Report>, ReportError> {
    if page.len() > PAGE_BYTES_MAX {
        return Err(ReportError::TooLarge);
    }
    let text = std::str::from_utf8(page).map_err(|_| ReportError::NotUtf8)?;
    let Some(done) = sample(text, metric.name)? else {
        return Ok(None);
    };
    let Some(total) = metric.total else {
        return Report::new(done, None).map(Some);
    };
    let Some(total) = sample(text, total)? else {
        return Ok(None);
    };
    Report::new(share(done, total)?, None).map(Some)
}

/// The value of the one sample of that name.
fn sample(page: &str, name: &str) -> Result<Option<f64>, ReportError> {
    let mut found = None;
    for line in page.lines() {
        let Some(rest) = line.trim_start().strip_prefix(name) else {
            continue;
        };
        // `jobs` is not `jobs_total`.
        let value = match rest.chars().next() {
            Some('{') => after_labels(rest).ok_or(ReportError::NotANumber)?,
            Some(' ' | '\t') => rest,
            _ => continue,
        };
        let value = value.split_whitespace().next().unwrap_or_default();
        let value: f64 = value.parse().map_err(|_| ReportError::NotANumber)?;
        if found.replace(value).is_some() {
            return Err(ReportError::Ambiguous);
        }
    }
    Ok(found)
}

/// The text after `{…}`: label values are quoted and may contain braces and escaped quotes.
fn after_labels(text: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: &str = "\
# HELP rows_done_total Rows.
# TYPE rows_done_total counter
rows_done_total{table=\"a \\\"}\\\" b\"} 30 1700000000000
rows 40
# TYPE share gauge
share 0.25 # {trace=\"x\"} 0.5
twice{a=\"1\"} 1
twice{a=\"2\"} 2
odd x
";

    fn read(name: &str, total: Option<&str>) -> Result<Option<f64>, ReportError> {
        let report = parse_metric(PAGE.as_bytes(), Metric { name, total });
        report.map(|report| report.map(|report| report.progress()))
    }

    #[test]
    fn a_share_or_a_count_with_its_total_is_progress() {
        assert_eq!(read("share", None), Ok(Some(0.25)));
        assert_eq!(read("rows_done_total", Some("rows")), Ok(Some(0.75)));
    }

    #[test]
    fn a_metric_that_is_not_there_says_nothing() {
        assert_eq!(read("shar", None), Ok(None));
        assert_eq!(read("rows_done", None), Ok(None));
        assert_eq!(read("rows_done_total", Some("all_rows")), Ok(None));
        assert_eq!(
            parse_metric(
                b"",
                Metric {
                    name: "a",
                    total: None
                }
            ),
            Ok(None)
        );
    }

    #[test]
    fn what_is_no_progress_is_refused_with_its_reason() {
        assert_eq!(read("rows", None), Err(ReportError::OutOfRange));
        assert_eq!(
            read("rows", Some("rows_done_total")),
            Err(ReportError::OutOfRange)
        );
        assert_eq!(read("twice", None), Err(ReportError::Ambiguous));
        assert_eq!(read("odd", None), Err(ReportError::NotANumber));
        let of = |page: &[u8]| {
            parse_metric(
                page,
                Metric {
                    name: "a",
                    total: Some("b"),
                },
            )
        };
        assert_eq!(of(b"a 1\nb 0\n"), Err(ReportError::ZeroTotal));
        assert_eq!(of(b"a NaN\nb 1\n"), Err(ReportError::NotFinite));
        assert_eq!(of(b"a 1\nb +Inf\n"), Err(ReportError::NotFinite));
        assert_eq!(of(b"a -1\nb 1\n"), Err(ReportError::OutOfRange));
        assert_eq!(of(b"a{x=\"} 1\nb 1\n"), Err(ReportError::NotANumber));
        assert_eq!(of(b"a\xff 1"), Err(ReportError::NotUtf8));
        assert_eq!(of(&[b'#'; PAGE_BYTES_MAX + 1]), Err(ReportError::TooLarge));
    }

    proptest! {
        #[test]
        fn whatever_the_page_what_is_accepted_is_a_share(
            page in "(a|b|#| |\\{|\\}|\"|\\\\|=|\n|[0-9.eE+-]|NaN|Inf){0,60}",
            with_total in any::<bool>(),
        ) {
            let metric = Metric { name: "a", total: with_total.then_some("b") };
            if let Ok(Some(report)) = parse_metric(page.as_bytes(), metric) {
                prop_assert!((0.0..=1.0).contains(&report.progress()));
            }
        }
    }
}
