//! Entry point: parses the arguments, runs, and reports errors.

use std::process::ExitCode;

fn main() -> ExitCode {
    shed_sim::policies::install(shed_papers::registry());
    match shed_lab::cli::run_with(std::env::args_os().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
