//! Entry point.

use std::process::ExitCode;

fn main() -> ExitCode {
    shed_sim::cli::main()
}
