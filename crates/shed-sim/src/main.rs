//! Entry point: parse arguments, run, say what is wrong.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match shed_sim::cli::Args::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
