//! The order of first attempts and retries.

use std::fmt;
use std::str::FromStr;

use crate::policy::params::ParsePolicyError;

/// The order of first attempts and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Least slack first; jobs that can't make it last.
    #[default]
    LeastSlack,
    /// Earliest deadline first.
    EarliestDeadline,
    /// First submitted first.
    Fifo,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LeastSlack, Self::EarliestDeadline, Self::Fifo];

    pub(super) const HELP: &'static str = "lst, edf or fifo";

    /// The name in settings.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::LeastSlack => "lst",
            Self::EarliestDeadline => "edf",
            Self::Fifo => "fifo",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for Order {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|order| order.label() == text);
        let fault = || ParsePolicyError(format!("`{text}` is no order: use {}", Self::HELP));
        found.ok_or_else(fault)
    }
}
