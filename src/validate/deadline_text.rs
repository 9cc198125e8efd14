//! The text of the annotations `shed.dev/deadline` and `shed.dev/workflow-deadline`. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ClockDeadline, Deadline, HistoryDeadline, Quantile};
use crate::validate::{ClockFault, ClockTime, HistoryRule, duration};

/// The values that the deadline of a job may have.
const FORMS: &str = "use a value such as 90s, 10m, 1h30m, 2030-01-31T08:00:00Z, `06:00 Europe/Zurich` or \
                     `history(p95)*1.5`";
/// The values that the deadline of a workflow's run may have.
const FORMS_OF_RUN: &str =
    "use a value such as 90s, 10m, 1h30m, 2030-01-31T08:00:00Z or `06:00 Europe/Zurich`";

/// Reads the deadline of a job. The start of a duration is not part of it.
pub fn read(text: &str) -> Result<Deadline, String> {
    match text.strip_prefix("history") {
        Some(rest) => history(text, rest),
        None => fixed(text, FORMS),
    }
}

/// Reads the deadline of a workflow's run, which has all forms but the one from history.
pub fn read_of_run(text: &str) -> Result<Deadline, String> {
    fixed(text, FORMS_OF_RUN)
}

fn fixed(text: &str, forms: &str) -> Result<Deadline, String> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        if at < jiff::Timestamp::UNIX_EPOCH {
            return Err(format!("`{text}` is before 1970: {forms}"));
        }
        return Ok(Deadline {
            at: Some(Time(at)),
            ..Deadline::default()
        });
    }
    if text.contains(':') {
        return clock(text, forms);
    }
    if duration(text).is_none() {
        return Err(format!("invalid deadline `{text}`: {forms}"));
    }
    Ok(Deadline {
        within: Some(text.to_owned()),
        ..Deadline::default()
    })
}

/// A time of day and its time zone.
fn clock(text: &str, forms: &str) -> Result<Deadline, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (time, zone) = match words[..] {
        [time, zone] => (time, zone),
        [time] if ClockTime::new(time, "Etc/UTC").is_ok() => {
            let fix = format!("add its name, such as `{time} Europe/Zurich`");
            return Err(format!("`{text}` has no time zone: {fix}"));
        }
        _ => return Err(format!("invalid deadline `{text}`: {forms}")),
    };
    match ClockTime::new(time, zone) {
        Ok(_) => Ok(Deadline {
            clock: Some(ClockDeadline {
                time: time.to_owned(),
                time_zone: zone.to_owned(),
            }),
            ..Deadline::default()
        }),
        Err(ClockFault::Time) => {
            let fix = "use HH:MM from 00:00 to 23:59, such as `06:00 Europe/Zurich`";
            Err(format!("invalid time `{time}`: {fix}"))
        }
        Err(ClockFault::TimeZone) => {
            let fix =
                "use a name from the IANA time zone database, such as Europe/Zurich or Etc/UTC";
            Err(format!("unknown time zone `{zone}`: {fix}"))
        }
    }
}

/// `(p95)*1.5` or `(p95)`.
fn history(text: &str, rest: &str) -> Result<Deadline, String> {
    let fix = "use p50, p90, p95, p99 or max, and a factor above 0 and at most 100, such as `history(p95)*1.5`";
    let wrong = || format!("invalid value `{text}`: {fix}");
    let inner = rest.trim_start().strip_prefix('(').ok_or_else(wrong)?;
    let (name, rest) = inner.split_once(')').ok_or_else(wrong)?;
    let mut all = Quantile::ALL.into_iter();
    let quantile = all.find(|quantile| quantile.to_string() == name.trim());
    let quantile = quantile.ok_or_else(wrong)?;
    let factor = match rest.trim() {
        "" => "1",
        rest => rest.strip_prefix('*').ok_or_else(wrong)?.trim_start(),
    };
    HistoryRule::new(quantile, factor).ok_or_else(wrong)?;
    Ok(Deadline {
        history: Some(HistoryDeadline {
            quantile,
            factor: factor.to_owned(),
        }),
        ..Deadline::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read() {
        let clock = read("06:00 Europe/Zurich").unwrap().clock.unwrap();
        assert_eq!(
            (&*clock.time, &*clock.time_zone),
            ("06:00", "Europe/Zurich")
        );
        assert_eq!(read("1h30m").unwrap().within.as_deref(), Some("1h30m"));
        assert!(read("2030-01-31T08:00:00+01:00").unwrap().at.is_some());
        for (text, quantile, factor) in [
            ("history(p95)*1.5", Quantile::P95, "1.5"),
            ("history(max)", Quantile::Max, "1"),
            ("history( p50 ) * 2", Quantile::P50, "2"),
        ] {
            let history = read(text).unwrap().history.unwrap();
            assert_eq!(
                (history.quantile, &*history.factor),
                (quantile, factor),
                "{text}"
            );
        }
    }

    #[test]
    fn the_deadline_of_a_run_has_no_history() {
        assert_eq!(read_of_run("2h"), read("2h"));
        let problem = read_of_run("history(p95)").unwrap_err();
        assert!(problem.ends_with(FORMS_OF_RUN), "{problem}");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_fix() {
        for (text, words) in [
            ("soon", "use a value such as 90s, 10m, 1h30m"),
            ("-5m", "invalid deadline `-5m`"),
            ("1h 30m", "invalid deadline `1h 30m`"),
            ("10 min", "invalid deadline `10 min`"),
            ("PT30M", "invalid deadline `PT30M`"),
            ("99999999999h", "invalid deadline `99999999999h`"),
            ("1969-12-31T23:59:59Z", "before 1970"),
            ("25:00 Europe/Zurich", "invalid time `25:00`: use HH:MM"),
            (
                "6:00 Europe/Zurich",
                "invalid time `6:00`: use HH:MM from 00:00 to 23:59",
            ),
            (
                "06:00 Europe/Atlantis",
                "unknown time zone `Europe/Atlantis`",
            ),
            ("06:00 Etc/Unknown", "unknown time zone"),
            ("06:00 +01:00", "unknown time zone `+01:00`"),
            ("06:00", "`06:00` has no time zone: add its name"),
            ("06:00 in Europe/Zurich", "invalid deadline"),
            ("history(p80)*1.5", "use p50, p90, p95, p99 or max"),
            ("history(p95)*0", "a factor above 0 and at most 100"),
            ("history(p95)*100.001", "at most 100"),
            ("history(p95)1.5", "such as `history(p95)*1.5`"),
            ("history", "such as `history(p95)*1.5`"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
