//! The command line.

mod bound;
mod calibrate;
mod cluster;
mod compare;
mod details;
mod fault;
mod files;
mod fit;
mod laser;
mod league;
mod lists;
mod options;
mod output;
mod presets;
mod record;
mod replay;
mod report;
mod reproduce;
mod run;
mod sweep;
mod values;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::engine::RunError;
pub use options::{Prepared, RunOptions};
pub use output::Format;
pub use presets::{expand, expand_with};
use shed_laser::TrainError;
use shed_record::InputError;

const COMPLETION_EXAMPLES: &str = "\
Example:
  For this shell alone; a file in the shell's folder of completions makes it stay:
    source <(shed-sim completion bash)";

/// Replays traces of batch jobs under the scheduling policies of shed, with the operator's own
/// decisions.
#[derive(Debug, Parser)]
#[command(name = "shed-sim", version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one trace under one policy.
    #[command(after_help = run::EXAMPLES, allow_negative_numbers = true)]
    Run(Box<run::RunArgs>),
    /// Run every combination of lists of values, on all cores; a sweep that was stopped goes on.
    #[command(after_help = sweep::EXAMPLES, allow_negative_numbers = true)]
    Sweep(Box<sweep::SweepArgs>),
    /// Compare policies on the same seeds.
    #[command(after_help = compare::EXAMPLES, allow_negative_numbers = true)]
    Compare(Box<compare::CompareArgs>),
    /// Say how many deadlines no policy can pass.
    #[command(after_help = bound::EXAMPLES, allow_negative_numbers = true)]
    Bound(Box<bound::BoundArgs>),
    /// Say how far predicted PoCDs are from what happens.
    #[command(after_help = calibrate::EXAMPLES, allow_negative_numbers = true)]
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Make the page that compares all policies with each other and with what is possible.
    #[command(after_help = league::EXAMPLES)]
    League(league::LeagueArgs),
    /// Run the papers' figures and tables again: published value, ours, verdict.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::ReproduceArgs),
    /// Train the networks that the policy laser decides by.
    #[command(subcommand)]
    Laser(laser::LaserCommand),
    /// Decide again on what a recording's passes saw.
    #[command(after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Make one HTML file of tables and figures.
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Say which law a trace's task times follow.
    #[command(after_help = fit::EXAMPLES)]
    Fit(fit::FitArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// A file is not what it should be.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Flags that do not go together, or with the workload.
    #[error("{0}")]
    Usage(String),
    /// The run went wrong.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run of a figure went wrong.
    #[error("run {flags}: {error}")]
    Figure {
        /// Its flags.
        flags: String,
        /// What went wrong.
        error: RunError,
    },
    /// Nothing was trained.
    #[error("{}: {error}", file.display())]
    Train {
        /// What it was to be trained on.
        file: PathBuf,
        /// Why.
        error: TrainError,
    },
    /// A recorded pass is decided otherwise.
    #[error("the recording is not decided again alike, first at {0}")]
    Differs(String),
    /// Something could not be written.
    #[error("can't write {what}: {error}")]
    Write {
        /// What.
        what: String,
        /// Why.
        error: std::io::Error,
    },
}

impl CliError {
    /// 2 for what the user can mend in flags and files, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_)
            | Self::Usage(_)
            | Self::Train {
                error: TrainError::TooFew { .. },
                ..
            } => 2,
            Self::Run(_)
            | Self::Figure { .. }
            | Self::Train { .. }
            | Self::Differs(_)
            | Self::Write { .. } => 1,
        }
    }
}

impl Args {
    /// Carries out the sub-command.
    ///
    /// # Errors
    /// Whatever keeps it from its result.
    pub fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Sweep(args) => sweep::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Bound(args) => bound::run(&args),
            Command::Calibrate(args) => calibrate::run(&args),
            Command::League(args) => league::run(&args),
            Command::Reproduce(args) => reproduce::run(&args),
            Command::Laser(command) => laser::run(&command),
            Command::Replay(args) => replay::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Fit(args) => fit::run(&args),
            Command::Completion { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "shed-sim", &mut script);
                output::write_to_stdout(&script)
            }
        }
    }
}
