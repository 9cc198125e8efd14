//! When an attempt is asked next: the more often, the sooner a newer value could change a decision.
//! Pure.

use shed_core::time::Span;

use crate::validate::ProgressRule;

/// An attempt that fails to get on is asked this often before it is late for it.
const QUESTIONS_IN_MARGIN: i64 = 8;
/// From so many questions without an answer on an attempt is asked less often.
const UNANSWERED_MIN: u32 = 3;

/// What the next question depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Time until the deadline; absent while there is none.
    pub slack: Option<Span>,
    /// Time that the attempt needs at its rate; absent while it has not shown one.
    pub remaining: Option<Span>,
    /// Questions in a row without an answer.
    pub unanswered: u32,
}

impl Outlook {
    /// Time until the next question.
    #[must_use]
    pub fn next(&self, rule: &ProgressRule) -> Span {
        let (shortest, longest) = (rule.period, rule.period_max);
        if self.unanswered >= UNANSWERED_MIN {
            let doubled = 1 << (self.unanswered - UNANSWERED_MIN + 1).min(3);
            return Span(shortest.0.saturating_mul(doubled));
        }
        match (self.slack, self.remaining) {
            // Its first reports say how fast it is.
            (_, None) => shortest,
            // Nothing is decided on what it says.
            _ if rule.never_cloned => longest,
            (None, _) => longest,
            // Past the deadline nothing is launched for it any more.
            (Some(slack), _) if slack.0 <= 0 => longest,
            // Should it stand still from now on, it is late when its margin is used up.
            (Some(slack), Some(remaining)) => {
                let margin = slack.0.saturating_sub(remaining.0);
                Span(margin / QUESTIONS_IN_MARGIN).clamp(shortest, longest)
            }
        }
    }
}

/// A tenth more or less, by whom and when: attempts that started together are not asked together for
/// ever.
#[must_use]
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
        assert_eq!(plenty("{resume: Checkpoint, progress: {file: {}}}"), 10);
        assert_eq!(plenty("{resume: Range, progress: {file: {}}}"), 5);
        let late = |change| seconds(5, Some(10), change);
        assert_eq!(late(FILE), 5);
        assert_eq!(late("{idempotency: None, progress: {file: {}}}"), 40);
        let disabled = "{speculation: {mode: Disabled}, progress: {file: {}}}";
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
