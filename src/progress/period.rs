//! The time of an attempt's next poll. Polls are more frequent if a newer value could change a
//! decision sooner. Pure.

use shed_core::time::Span;

use crate::validate::ProgressRule;

/// An attempt that stops progressing is polled this often before it is late.
const QUESTIONS_IN_MARGIN: i64 = 8;
/// An attempt whose rate is unknown is polled this often in the time that is left: a straggler that is found late needs
/// several clones at once, because no second look fits in before the deadline.
const QUESTIONS_IN_SLACK: i64 = 24;
/// No attempt is polled more often.
const PERIOD_MIN: Span = Span::from_seconds(1);
/// After this number of polls without an answer, an attempt is polled less often.
const UNANSWERED_MIN: u32 = 3;

/// Input for the time of the next poll.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Time until the deadline; absent without a deadline.
    pub slack: Option<Span>,
    /// Time that the attempt needs at its rate; absent while its rate is unknown.
    pub remaining: Option<Span>,
    /// Polls in a row without an answer.
    pub unanswered: u32,
}

impl Outlook {
    /// Time until the next poll.
    pub fn next(&self, rule: &ProgressRule) -> Span {
        let (shortest, longest) = (rule.period, rule.period_max);
        if self.unanswered >= UNANSWERED_MIN {
            let doubled = 1 << (self.unanswered - UNANSWERED_MIN + 1).min(3);
            return Span(shortest.0.saturating_mul(doubled));
        }
        match (self.slack, self.remaining) {
            // Its first reports show its rate.
            (Some(slack), None) if slack.0 > 0 && !rule.never_cloned => {
                let soon = Span(slack.0 / QUESTIONS_IN_SLACK);
                soon.clamp(PERIOD_MIN.min(shortest), shortest)
            }
            (_, None) => shortest,
            // No decision depends on its reports.
            _ if rule.never_cloned => longest,
            (None, _) => longest,
            // After the deadline shed launches no clone of it.
            (Some(slack), _) if slack.0 <= 0 => longest,
            // If it makes no progress from now on, it is late once its margin is used up.
            (Some(slack), Some(remaining)) => {
                let margin = slack.0.saturating_sub(remaining.0);
                Span(margin / QUESTIONS_IN_MARGIN).clamp(shortest, longest)
            }
        }
    }
}

/// The time with up to a tenth more or less, by pod and count. Otherwise attempts that started
/// together would always be polled together.
pub fn jittered(span: Span, uid: &str, asked: u32) -> Span {
    // FNV-1a: the same on every machine, and spread well enough for this.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = uid.bytes().chain(asked.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, step);
    let tenths = i64::try_from((hash >> 32) % 2001).unwrap_or(0) - 1000;
    Span(
        span.0
            .saturating_add(span.0.saturating_mul(tenths) / 10_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::job;
    use crate::validate::progress_rule;

    fn rule(change: &str) -> ProgressRule {
        progress_rule(&job(change).spec).unwrap().unwrap()
    }

    fn seconds(slack: i64, remaining: Option<i64>, change: &str) -> i64 {
        let outlook = Outlook {
            slack: Some(Span::from_seconds(slack)),
            remaining: remaining.map(Span::from_seconds),
            unanswered: 0,
        };
        outlook.next(&rule(change)).0 / 1000
    }

    const FILE: &str = "progress: {file: {}}";

    #[test]
    fn who_may_soon_be_late_is_asked_often_and_who_has_time_seldom() {
        let next = |slack, remaining| seconds(slack, Some(remaining), FILE);
        assert_eq!(next(100, 120), 5, "late");
        assert_eq!(next(100, 90), 5, "a close race");
        assert_eq!(next(180, 100), 10);
        assert_eq!(next(10_000, 100), 40, "plenty of time");
        assert_eq!(next(-1, 10), 40, "past the deadline");
    }

    #[test]
    fn first_reports_checkpoints_and_parts_are_wanted_soon() {
        let plenty = |change| seconds(10_000, Some(10), change);
        assert_eq!(seconds(10_000, None, FILE), 5);
        assert_eq!(seconds(48, None, FILE), 2);
        assert_eq!(seconds(1, None, FILE), 1);
        assert_eq!(seconds(-1, None, FILE), 5);
        let disabled = "{speculation: {mode: Disabled}, progress: {file: {}}}";
        assert_eq!(seconds(48, None, disabled), 5);
        assert_eq!(plenty("{resume: Checkpoint, progress: {file: {}}}"), 10);
        assert_eq!(plenty("{resume: Range, progress: {file: {}}}"), 5);
        let late = |change| seconds(5, Some(10), change);
        assert_eq!(late(FILE), 5);
        assert_eq!(late("{idempotency: None, progress: {file: {}}}"), 40);
        assert_eq!(late(disabled), 40);
    }

    #[test]
    fn who_does_not_answer_is_asked_less_and_less_often() {
        let after = |unanswered| {
            let outlook = Outlook {
                slack: None,
                remaining: None,
                unanswered,
            };
            outlook.next(&rule(FILE)).0 / 1000
        };
        assert_eq!([0, 2, 3, 4, 5, 99].map(after), [5, 5, 10, 20, 40, 40]);
    }

    #[test]
    fn jitter_is_a_tenth_at_most_and_not_always_the_same() {
        let spans: Vec<i64> = (0..200)
            .map(|asked| jittered(Span(10_000), "uid", asked).0)
            .collect();
        assert!(spans.iter().all(|span| (9000..=11_000).contains(span)));
        let (early, late) = (spans.iter().min(), spans.iter().max());
        assert!(early < Some(&9200) && late > Some(&10_800), "{spans:?}");
    }
}
