//! The order of first attempts and retries.

use std::fmt;
use std::str::FromStr;

use crate::settings::ParsePolicyError;

/// The order of first attempts and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Least slack first; jobs that cannot meet their deadline last. If a policy estimates the value of attempts,
    /// this holds for the jobs that can all finish in time. After them come the jobs of the highest value.
    #[default]
    LeastSlack,
    /// Earliest deadline first.
    EarliestDeadline,
    /// First submitted first.
    Fifo,
    /// The queue with the least used share first, and within it first submitted first. There is one queue per tenant;
    /// all have equal shares and no upper bound. With one tenant this is [`Order::Fifo`].
    Capacity,
    /// Dominant resource fairness: the job with the least dominant share first.
    Drf,
    /// Carbyne, simplified: what each job would get by [`Order::Drf`], less the attempts of phases that can wait without a
    /// later end of their run. The capacity that is left goes to the job with the shortest remaining chain. It needs
    /// [`Phases`](crate::snapshot::Phases); without them it is DRF.
    Carbyne,
    /// Node by node: jobs that fit the free capacity there and have little work left come first.
    Tetris,
    /// Least remaining time first: the mean time of a task.
    Srpt,
    /// Least volume first: remaining tasks times their mean time times their dominant share.
    Svf,
    /// DollyMP Algorithm 2: node by node, lowest level of Algorithm 1 first (ρ = 1.5, slots of 5 s). Within a level
    /// the best fit comes first.
    DollyMp,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::LeastSlack,
        Self::EarliestDeadline,
        Self::Fifo,
        Self::Capacity,
        Self::Drf,
        Self::Carbyne,
        Self::Tetris,
        Self::Srpt,
        Self::Svf,
        Self::DollyMp,
    ];

    pub(super) const HELP: &'static str =
        "lst, edf, fifo, capacity, drf, carbyne, tetris, srpt, svf or dollymp";

    /// The name in settings.
    pub fn label(self) -> &'static str {
        match self {
            Self::LeastSlack => "lst",
            Self::EarliestDeadline => "edf",
            Self::Fifo => "fifo",
            Self::Capacity => "capacity",
            Self::Drf => "drf",
            Self::Carbyne => "carbyne",
            Self::Tetris => "tetris",
            Self::Srpt => "srpt",
            Self::Svf => "svf",
            Self::DollyMp => "dollymp",
        }
    }

    /// Whether it ranks jobs by their size, in which the other phases of a run count.
    pub fn reads_sizes(self) -> bool {
        match self {
            Self::Carbyne | Self::Tetris | Self::Srpt | Self::Svf | Self::DollyMp => true,
            Self::LeastSlack | Self::EarliestDeadline | Self::Fifo | Self::Capacity | Self::Drf => {
                false
            }
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
        let fault = || ParsePolicyError::new(format!("unknown order `{text}`: use {}", Self::HELP));
        found.ok_or_else(fault)
    }
}
