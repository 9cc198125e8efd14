//! The command line. `shed-lab` shares its public modules: flags, lists of flags, sweeps, files and formats.

pub mod chart;
mod cluster;
mod compare;
mod details;
mod fault;
pub mod files;
pub mod lists;
mod moved;
pub mod options;
pub mod output;
pub mod presets;
pub mod progress;
mod record;
mod replay;
mod run;
mod size;
pub mod sweep;
pub mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::engine::RunError;
pub use options::{Prepared, RunOptions};
pub use output::Format;
use presets::expand;
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
    /// Run every combination of lists of values, on all cores; a sweep that was stopped continues.
    #[command(after_help = sweep::EXAMPLES, allow_negative_numbers = true)]
    Sweep(Box<sweep::SweepArgs>),
    /// Compare policies on the same seeds.
    #[command(after_help = compare::EXAMPLES, allow_negative_numbers = true)]
    Compare(Box<compare::CompareArgs>),
    /// Find the smallest cluster, λ or factor on deadlines that meets a share of deadlines.
    #[command(after_help = size::EXAMPLES, allow_negative_numbers = true)]
    Size(Box<size::SizeArgs>),
    /// Decide the passes of a recording again.
    #[command(after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// List the presets: name, letter (an alias) and description.
    Presets,
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The error of a sub-command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// A file is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Flags are incompatible with each other or with the workload.
    #[error("{0}")]
    Usage(String),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The decision of a recorded pass differs.
    #[error("the decisions differ from the recording, first at {0}")]
    Differs(String),
    /// Something could not be written.
    #[error("can't write {what}: {error}")]
    Write {
        /// The name of the output.
        what: String,
        /// The reason.
        error: std::io::Error,
    },
}

impl CliError {
    /// 2 for faults that the user can correct in flags and files, 1 for all others.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) | Self::Usage(_) => 2,
            Self::Run(_) | Self::Differs(_) | Self::Write { .. } => 1,
        }
    }
}

impl Args {
    /// Runs the sub-command.
    pub fn run(self) -> Result<(), CliError> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Sweep(args) => sweep::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Size(args) => size::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Presets => output::write_to_stdout(presets::listed().as_bytes()),
            Command::Completion { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "shed-sim", &mut script);
                output::write_to_stdout(&script)
            }
        }
    }
}

/// The program: parses the arguments, runs, and reports the error.
pub fn main() -> ExitCode {
    match run_with(std::env::args_os().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run_with(args: Vec<OsString>) -> Result<(), CliError> {
    moved::refuse(&args)?;
    Args::parse_from(expand(args, 1)?).run()
}
