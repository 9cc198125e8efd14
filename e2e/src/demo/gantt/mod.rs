//! The attempts of a job over time, as text and as a picture. Pure.
//!
//! `kubectl shed timeline` draws the same facts for another reader. Its rows have no nodes and its axis has times of day,
//! but the story of the demo is about one slow node and the seconds since the job's creation. To build the plugin would
//! also take minutes of the demo's twelve.

mod svg;
mod text;

use jiff::Timestamp;

pub use self::svg::svg;
pub use self::text::text;

use super::attempt::Attempt;
use super::outcome::winners;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Won,
    Stopped,
    Failed,
}

/// One attempt, in seconds since the job's creation.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub task: u32,
    /// `original`, `clone` or `retry`.
    pub kind: String,
    pub node: String,
    pub from: f64,
    pub to: f64,
    /// Progress at which it began.
    pub resumed_at: f64,
    pub end: End,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// By task and start.
    pub bars: Vec<Bar>,
    /// Seconds since the job's creation.
    pub deadline: f64,
}

impl Chart {
    /// The attempts of a job that has ended.
    pub fn of(attempts: &[Attempt], created: Timestamp, deadline: f64) -> Self {
        let since = |time: Timestamp| time.duration_since(created).as_secs_f64().max(0.0);
        let ended = |attempt: &Attempt| attempt.ended.map(|(end, _)| end);
        let last = attempts.iter().filter_map(ended).max();
        let bar = |attempt: &Attempt| Bar {
            task: attempt.task,
            kind: attempt.kind.clone(),
            node: attempt.place().to_owned(),
            from: since(attempt.created),
            to: since(
                ended(attempt)
                    .or(attempt.deleted)
                    .or(last)
                    .unwrap_or(attempt.created),
            ),
            resumed_at: attempt.resumes_at,
            end: if winners(attempts).any(|winner| winner == attempt) {
                End::Won
            } else if attempt.deleted.is_none() && attempt.ended.is_some_and(|(_, code)| code != 0)
            {
                End::Failed
            } else {
                End::Stopped
            },
        };
        let mut bars: Vec<Bar> = attempts.iter().map(bar).collect();
        bars.sort_by(|one, other| {
            (one.task.cmp(&other.task)).then(one.from.total_cmp(&other.from))
        });
        Self { bars, deadline }
    }

    /// The end of the time that is drawn.
    fn seconds(&self) -> f64 {
        let last = self.bars.iter().map(|bar| bar.to).fold(0.0, f64::max);
        last.max(self.deadline).max(1.0) * 1.02
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    pub fn attempt(task: u32, number: u32, from: i64, ended: Option<(i64, i32)>) -> Attempt {
        Attempt {
            task,
            number,
            kind: if number == 0 { "original" } else { "clone" }.to_owned(),
            node: Some(format!("n{}", number + 1)),
            created: second(from),
            ended: ended.map(|(end, code)| (second(end), code)),
            resumes_at: if number == 0 { 0.0 } else { 0.05 },
            deleted: ended.is_none().then(|| second(12)),
        }
    }

    /// Task 0 wins by itself, task 1 by its clone.
    pub fn chart() -> Chart {
        let attempts = [
            attempt(1, 1, 6, Some((17, 0))),
            attempt(0, 0, 0, Some((8, 0))),
            attempt(1, 0, 0, None),
        ];
        Chart::of(&attempts, second(0), 20.0)
    }

    #[test]
    fn bars_are_sorted_and_end_as_their_attempts() {
        let bars: Vec<_> = chart()
            .bars
            .iter()
            .map(|bar| (bar.task, bar.from, bar.to, bar.end))
            .collect();
        assert_eq!(
            bars,
            [
                (0, 0.0, 8.0, End::Won),
                (1, 0.0, 12.0, End::Stopped),
                (1, 6.0, 17.0, End::Won)
            ]
        );
        let failed = [attempt(0, 0, 0, Some((3, 1)))];
        assert_eq!(Chart::of(&failed, second(0), 20.0).bars[0].end, End::Failed);
    }
}
