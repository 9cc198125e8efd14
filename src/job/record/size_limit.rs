//! The bound of a record in bytes: what is left out of one that is too large, in which order.

use std::cmp::Reverse;

use crate::api::{AttemptRecord, JobRecord, RECORD_MAX};
use crate::clock;
use crate::job::record::attempts::{self, Significance};
use crate::job::record::{count, curve, decisions};
use crate::size;

/// A part of a record that may be left out.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Decisions that launched and stopped nothing, the oldest first.
    Refusals,
    /// Points of the curve, the one that it needs least first.
    Points,
    /// Attempts, the one that shows least first, as long as it is the only one of its task.
    PlainAttempts,
    /// Attempts, the one that shows least first.
    Attempts,
    /// Decisions, the oldest first, refusals before others.
    Decisions,
}

/// A part and the number of its entries that stay. The parts are shortened in this order until the record fits.
const ORDER: [(Part, usize); 11] = [
    (Part::Refusals, 4),
    (Part::Points, 16),
    (Part::PlainAttempts, 8),
    (Part::Decisions, 8),
    (Part::PlainAttempts, 0),
    (Part::Points, 8),
    (Part::Attempts, 4),
    (Part::Decisions, 2),
    (Part::Attempts, 0),
    (Part::Decisions, 0),
    (Part::Points, 0),
];

/// The record without what does not fit into [`RECORD_MAX`] bytes.
pub fn fitted(mut record: JobRecord) -> JobRecord {
    let listed = record.attempts.len();
    let omitted = record.omitted_attempts;
    // The number of omitted attempts grows, so the bound counts its longest value.
    record.omitted_attempts = i32::MAX;
    let mut bytes = size::bytes(&record);
    for (part, stays) in ORDER {
        while bytes > RECORD_MAX && part.len(&record) > stays {
            let Some(freed) = part.shorten(&mut record) else {
                break;
            };
            bytes = bytes.saturating_sub(freed);
        }
    }
    let left_out = count(listed - record.attempts.len());
    record.omitted_attempts = omitted.saturating_add(left_out);
    record
}

impl Part {
    fn len(self, record: &JobRecord) -> usize {
        match self {
            Self::Refusals => {
                let refusals = record
                    .decisions
                    .iter()
                    .filter(|one| !decisions::is_act(one));
                refusals.count()
            }
            Self::Decisions => record.decisions.len(),
            Self::Points => record.pocd.len(),
            Self::PlainAttempts => {
                let rivals = attempts::rivals(record.attempts.iter());
                let lines = record.attempts.iter();
                let plain =
                    lines.filter(|line| significance(line, rivals.contains(&line.task)).is_plain());
                plain.count()
            }
            Self::Attempts => record.attempts.len(),
        }
    }

    /// Leaves out one entry, and returns the bytes that this frees. A comma is not counted, because the last entry of
    /// a list has none.
    fn shorten(self, record: &mut JobRecord) -> Option<usize> {
        match self {
            Self::Refusals | Self::Decisions => {
                let decision = decisions::drop_oldest(&mut record.decisions)?;
                Some(size::bytes(&decision))
            }
            Self::Points => {
                let point = curve::drop_least(&mut record.pocd)?;
                Some(size::bytes(&point))
            }
            Self::PlainAttempts | Self::Attempts => {
                let at = least(&record.attempts)?;
                Some(size::bytes(&record.attempts.remove(at)))
            }
        }
    }
}

/// Position of the attempt that shows least.
fn least(lines: &[AttemptRecord]) -> Option<usize> {
    let rivals = attempts::rivals(lines.iter());
    let orders = lines.iter().enumerate().map(|(at, line)| {
        let end = line.end_time.as_ref().map(clock::instant);
        let significance = significance(line, rivals.contains(&line.task));
        (significance, Reverse(end), line.task, line.attempt, at)
    });
    orders.max().map(|(.., at)| at)
}

fn significance(line: &AttemptRecord, is_rival: bool) -> Significance {
    Significance::of(line.state, line.estimated_end_time.is_some(), is_rival)
}
