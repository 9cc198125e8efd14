//! The texts for each state of a job: one row with condition, reason and words. The message of a
//! blocked job contains the obstacle, its start, and a remedy. docs/reference/conditions.md shows the same
//! table.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shed_core::index_set::IndexSet;
use shed_core::time::Instant;

use crate::clock;
use crate::size;

mod table;
pub use table::TABLE;

/// One state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The conditions with this reason.
    pub conditions: &'static [&'static str],
    /// Their status.
    pub status: &'static str,
    /// Their reason.
    pub reason: &'static str,
    /// Kind of the statement.
    pub says: Says,
    /// The message; `{}` stands for the details of this job.
    pub message: &'static str,
    /// The remedy, if there is one; [`NAMED`] if the message contains it.
    pub help: &'static str,
}

/// Kind of a statement about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// An obstacle to the job; the message contains its start.
    Blocked,
    /// Its outcome, now or in the future.
    Verdict,
    /// The end of an obstacle.
    Over,
}

/// The detail contains the remedy.
pub const NAMED: &str = "{}";

/// The remedy for a task that ends without a commit grant.
pub const REQUEST_A_GRANT: &str = "publish with `$SHED_BIN agent commit -- <command>`";

/// Introduces the last cause of a risk in a message about what came of it.
pub const LAST_RISK: &str = "; the last risk: ";

/// Characters of a list of indexes in a message.
const LIST_MAX: usize = 200;
/// Bytes of JSON of a message that come from third parties. With this limit all conditions together
/// fit into the bytes that `Bounds` reserves for them.
const DETAIL_MAX: usize = 600;

/// The row of a state.
pub fn row(condition: &str, reason: &str) -> Option<&'static Row> {
    let is_it = |row: &&Row| row.reason == reason && row.conditions.contains(&condition);
    TABLE.iter().find(is_it)
}

impl Row {
    /// The message about a job. `since` is the start of the state; a message `before` that has a
    /// start keeps it.
    pub fn words(&self, detail: &str, since: Instant, before: Option<&str>) -> String {
        let detail = &shortened(detail);
        let mut words = self.message.replacen("{}", detail, 1);
        if !matches!(self.help, "" | NAMED) {
            words = format!("{words}; {}", self.help.replacen("{}", detail, 1));
        }
        if self.says != Says::Blocked {
            return words;
        }
        let reported = before.and_then(reported_since);
        let since = reported.map_or_else(|| clock::rfc3339(since), str::to_owned);
        format!("{words} (since {since})")
    }
}

/// Indexes in words: of a long list its beginning, and how many there are.
pub fn some_of(indexes: &IndexSet) -> String {
    let all = indexes.to_string();
    let Some((begin, _)) = all.get(..LIST_MAX).and_then(|begin| begin.rsplit_once(',')) else {
        return all;
    };
    format!("{begin},… ({} in all)", indexes.len())
}

/// A text of a third party, such as a scheduler or a webhook, up to its bound.
fn shortened(detail: &str) -> Cow<'_, str> {
    let mut bytes = 0;
    let mut too_long = detail.char_indices().filter(|(_, one)| {
        // Without its quotes.
        bytes += size::bytes(one) - 2;
        bytes > DETAIL_MAX
    });
    match too_long.next() {
        Some((end, _)) => Cow::Owned(format!("{}…", &detail[..end])),
        None => Cow::Borrowed(detail),
    }
}

/// A message without the start of its state.
pub fn without_since(message: &str) -> &str {
    message
        .rsplit_once(" (since ")
        .map_or(message, |(words, _)| words)
}

/// The message of a condition without its remedy and the start of its state.
pub fn without_help(condition: &Condition) -> &str {
    let words = without_since(&condition.message);
    let help = row(&condition.type_, &condition.reason).map_or("", |row| row.help);
    let bare = words.strip_suffix(help);
    bare.and_then(|bare| bare.strip_suffix("; "))
        .unwrap_or(words)
}

/// Whether a condition has had its reason since its status changed.
pub fn is_first_reason(condition: &Condition) -> bool {
    let turned = condition.last_transition_time.0.to_string();
    reported_since(&condition.message) == Some(&*turned)
}

/// The start of the state in a message.
fn reported_since(message: &str) -> Option<&str> {
    let (_, since) = message.rsplit_once(" (since ")?;
    since.strip_suffix(')')
}

#[cfg(test)]
mod tests;
