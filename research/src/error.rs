//! Why a sub-command has no result.

use std::path::PathBuf;

use shed_record::InputError;
use shed_sim::cli::CliError;
use shed_sim::engine::RunError;

use crate::laser::TrainError;

/// An error of the program.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An error that the simulator's program has too.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// A run of a figure went wrong.
    #[error("run {flags}: {error}")]
    Figure {
        /// Its flags.
        flags: String,
        /// The error.
        error: RunError,
    },
    /// Nothing was trained.
    #[error("{}: {error}", file.display())]
    Train {
        /// The training data.
        file: PathBuf,
        /// Why.
        error: TrainError,
    },
    /// The committed page of the reproduction is not that of a fresh run.
    #[error("{} differs from a fresh run (- committed, + now):\n{}", file.display(), differences.join("\n"))]
    Page {
        /// The committed page.
        file: PathBuf,
        /// Its lines and those of now.
        differences: Vec<String>,
    },
}

impl From<InputError> for LabError {
    fn from(error: InputError) -> Self {
        CliError::from(error).into()
    }
}

impl From<RunError> for LabError {
    fn from(error: RunError) -> Self {
        CliError::from(error).into()
    }
}

impl LabError {
    /// Flags that do not go together, or with the workload.
    pub(crate) fn usage(message: String) -> Self {
        CliError::Usage(message).into()
    }

    /// 2 for errors that the user can correct in flags and files, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Cli(error) => error.exit_code(),
            Self::Train {
                error: TrainError::TooFew { .. },
                ..
            } => 2,
            Self::Figure { .. } | Self::Train { .. } | Self::Page { .. } => 1,
        }
    }
}
