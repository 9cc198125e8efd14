//! The command line.

mod bound;
mod calibrate;
mod clone_counts;
mod fit;
mod frontier;
mod laser;
mod league;
mod preset_cells;
mod report;
mod reproduce;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use shed_sim::cli::{output, presets};

use crate::LabError;

const COMPLETION_EXAMPLES: &str = "\
Example:
  For this shell alone; a file in the shell's folder of completions makes it stay:
    source <(shed-lab completion bash)";

/// Measures policies with the simulator: the papers' figures, bounds, calibration, league tables,
/// prices of clones, fits, reports, and LASER's training.
#[derive(Debug, Parser)]
#[command(name = "shed-lab", version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compute an upper bound of the deadlines that any policy can meet.
    #[command(after_help = bound::EXAMPLES, allow_negative_numbers = true)]
    Bound(Box<bound::BoundArgs>),
    /// Compare predicted PoCDs with outcomes.
    #[command(after_help = calibrate::EXAMPLES, allow_negative_numbers = true)]
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Make the page that compares all policies with each other and with the upper bound.
    #[command(after_help = league::EXAMPLES)]
    League(league::LeagueArgs),
    /// Show what shed-prime's clones gain at each price, compared with other policies, or test it against its bars.
    #[command(after_help = frontier::EXAMPLES, allow_negative_numbers = true)]
    Frontier(frontier::FrontierArgs),
    /// Run the papers' figures and tables again: published value, ours, verdict.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::ReproduceArgs),
    /// Train the networks that the policy laser decides by.
    #[command(subcommand)]
    Laser(laser::LaserCommand),
    /// Make one HTML file of tables and figures.
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Fit distributions to a trace's task times.
    #[command(after_help = fit::EXAMPLES)]
    Fit(fit::FitArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The program with these arguments, its own name first.
pub fn run_with(args: Vec<OsString>) -> Result<(), LabError> {
    let is = |name: &str| args.get(1).is_some_and(|word| word == name);
    // The frontier takes several presets, and expands each of them itself.
    if is("frontier") {
        return Args::parse_from(args).run();
    }
    let words = if is("laser") { 2 } else { 1 };
    Args::parse_from(presets::expand(args, words)?).run()
}

impl Args {
    /// Runs the sub-command.
    pub fn run(self) -> Result<(), LabError> {
        match self.command {
            Command::Bound(args) => bound::run(&args)?,
            Command::Calibrate(args) => calibrate::run(&args)?,
            Command::League(args) => league::run(&args)?,
            Command::Frontier(args) => frontier::run(&args)?,
            Command::Reproduce(args) => reproduce::run(&args)?,
            Command::Laser(command) => laser::run(&command)?,
            Command::Report(args) => report::run(&args)?,
            Command::Fit(args) => fit::run(&args)?,
            Command::Completion { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "shed-lab", &mut script);
                output::write_to_stdout(&script)?;
            }
        }
        Ok(())
    }
}
