//! Times, spans, shares and colors as text.

use jiff::fmt::friendly::{Spacing, SpanPrinter};
use jiff::{SignedDuration, Timestamp};
use shed::api::Pocd;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// A span such as `45s`, `12m30s`, `3h05m` or `2d04h`; its sign is dropped.
pub fn span(seconds: i64) -> String {
    let seconds = seconds.unsigned_abs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// A span in the form of `spec.deadline.within`, such as `1h30m`.
pub fn exact_span(seconds: i64) -> String {
    let printer = SpanPrinter::new().spacing(Spacing::None);
    printer.duration_to_string(&SignedDuration::from_secs(seconds))
}

/// A span with a minus before it if it is negative.
pub fn signed_span(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    format!("{sign}{}", span(seconds))
}

/// `in 5m00s` or `5m00s ago`.
pub fn relative(now: Timestamp, time: Timestamp) -> String {
    let seconds = time.as_second() - now.as_second();
    match seconds {
        0.. => format!("in {}", span(seconds)),
        _ => format!("{} ago", span(seconds)),
    }
}

/// Date and time in UTC.
pub fn instant(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The time in UTC, with its date if that is another day than now.
pub fn clock(now: Timestamp, time: Timestamp) -> String {
    let is_today = now.as_second().div_euclid(86_400) == time.as_second().div_euclid(86_400);
    let format = if is_today {
        "%H:%M:%SZ"
    } else {
        "%m-%d %H:%MZ"
    };
    time.strftime(format).to_string()
}

/// A share as whole percent. Only a share of 1 is 100 %.
pub fn percent(share: f64) -> String {
    let most = if share < 1.0 { 99.0 } else { 100.0 };
    format!("{:.0} %", (share * 100.0).round().clamp(0.0, most))
}

/// Progress per time, in a unit that gives a number of at least about 1.
pub fn pace(progress: f64, seconds: i64) -> Option<String> {
    if seconds <= 0 || progress <= 0.0 {
        return None;
    }
    let per_minute = progress * 100.0 * 60.0 / seconds as f64;
    Some(match per_minute {
        10.0.. => format!("{per_minute:.0} %/min"),
        0.95.. => format!("{per_minute:.1} %/min"),
        _ => format!("{:.1} %/h", per_minute * 60.0),
    })
}

/// A count with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Tint {
    /// Text in this color, if colors are on.
    pub fn paint(self, color: bool, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            _ if !color || text.trim().is_empty() => return text.to_owned(),
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// The color of a probability of completion in time.
    pub fn of_pocd(pocd: Option<Pocd>) -> Self {
        match pocd.map(Pocd::value) {
            Some(pocd) if pocd < 0.5 => Self::Red,
            Some(pocd) if pocd < 0.9 => Self::Yellow,
            Some(_) => Self::Green,
            None => Self::Plain,
        }
    }
}

/// Text without control characters, which could change what the terminal shows.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Text cut to columns; an ellipsis stands for the rest.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept = text.chars().take(columns.saturating_sub(1));
    kept.chain("…".chars()).take(columns).collect()
}

/// Paragraph with lines of at most this width. The first begins with `first`, the others are indented as deep.
pub fn wrap(first: &str, text: &str, width: usize) -> String {
    let indent = " ".repeat(first.chars().count());
    let options = Options::new(width.max(indent.len() + 10))
        .initial_indent(first)
        .subsequent_indent(&indent)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let text = printable(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let lines = textwrap::wrap(&text, options);
    let lines = lines.iter().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let spans = [0, 59, 60, 750, 3599, 3600, 11_100, 86_400, 187_200];
        let texts = spans.map(span);
        assert_eq!(
            texts.join(" "),
            "0s 59s 1m00s 12m30s 59m59s 1h00m 3h05m 1d00h 2d04h"
        );
        assert_eq!(signed_span(-90), "-1m30s");
        let exact = [0, 90, 3600, 5405, 90_000].map(exact_span);
        assert_eq!(exact.join(" "), "0s 1m30s 1h 1h30m5s 25h");
    }

    #[test]
    fn a_share_below_one_is_never_a_hundred_percent() {
        assert_eq!(
            [0.0, 0.424, 0.999, 1.0].map(percent),
            ["0 %", "42 %", "99 %", "100 %"]
        );
    }

    #[test]
    fn a_pace_has_a_unit_that_shows_digits() {
        assert_eq!(pace(0.5, 60).unwrap(), "50 %/min");
        assert_eq!(pace(0.05, 120).unwrap(), "2.5 %/min");
        assert_eq!(pace(0.05, 3600).unwrap(), "5.0 %/h");
        assert_eq!((pace(0.0, 60), pace(0.5, 0)), (None, None));
    }

    #[test]
    fn lines_are_wrapped_and_long_words_broken() {
        let text = wrap("a: ", "one two three abcdefghijklmnopqrst", 13);
        assert_eq!(text, "a: one two\n   three\n   abcdefghij\n   klmnopqrst\n");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(wrap("", "a\u{1b}[31mb", 80), "a [31mb\n");
    }

    #[test]
    fn colors_are_added_only_if_they_are_on() {
        assert_eq!(Tint::Red.paint(true, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Tint::Red.paint(false, "x"), "x");
        assert_eq!(Tint::of_pocd(Some(Pocd::nearest(0.2))), Tint::Red);
    }
}
