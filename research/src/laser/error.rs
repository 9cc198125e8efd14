//! Why nothing was trained.

/// Why nothing was trained.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// There is too little to learn from.
    #[error(
        "field `{field}`: {found} {what}; at least {needed} are needed to train on: record for longer, or run more jobs"
    )]
    TooFew {
        /// Name of the samples.
        field: &'static str,
        /// Description of the samples.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// The weights ran away.
    #[error(
        "the network for the {0} time diverged: its loss is no number; another --seed or fewer --epochs may help"
    )]
    Diverged(&'static str),
    /// The library for networks failed.
    #[error("training: {0}")]
    Candle(#[from] candle_core::Error),
    /// The library for forests failed.
    #[error("random forest: {0}")]
    Forest(#[from] smartcore::error::Failed),
}
