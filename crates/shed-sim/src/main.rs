//! Entry point.

use std::process::ExitCode;

fn main() -> ExitCode {
    shed_sim::policies::install(shed_papers::registry());
    shed_sim::cli::main()
}
